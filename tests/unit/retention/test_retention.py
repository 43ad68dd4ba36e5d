"""Expiry of messages and deletion of segments: a table of the rules, and a cleaner killed at every operation."""

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgid import iggy
from msgid.retention import InvalidPolicy, RetentionPolicy, Segment, decide
from msgid.retention.cleaner import Cleaner, OsFiles

NOW = 1_700_000_000_000_000
DAY = 86_400_000_000


def segment(first=0, *, size=10, closed=True, latest=NOW - 10 * DAY):
    return Segment(first, first + 9, size, closed, latest, latest)


@pytest.mark.parametrize(
    ("held", "expiry", "removing"),
    [
        (segment(), 86_400, True),
        (segment(closed=False), 86_400, False),  # it must be closed first
        (segment(latest=NOW), 86_400, False),
        (segment(), 0, False),
        (segment(latest=None), 86_400, False),  # the segment is empty
        (segment(latest=NOW - 86_400_000_000), 86_400, True),
        (segment(latest=NOW - 86_400_000_000 + 1), 86_400, False),
    ],
)
def test_segment_of_any_state_goes_by_the_rule(held, expiry, removing):
    """A segment is deleted when it is closed and has expired, by the expiry of its topic."""
    policy = RetentionPolicy(default_expiry=0 if expiry else 1, topics={"orders": expiry})
    (decision,) = decide([held], policy, NOW, topic="orders")
    assert (decision.expired, decision.action) == (removing, "delete" if removing else "keep")
    assert not any(decision.expired for decision in decide([held], replace(policy, enabled=False), NOW, topic="orders"))


def log(*parts):
    """Return the segments of a log from (first offset, last offset), and from "-" in front those with a bad begin."""
    return [Segment(first, last, 10, False, NOW - DAY, NOW - DAY, follows) for first, last, follows in parts]


@pytest.mark.parametrize(
    ("parts", "closed", "allowing", "kept"),
    [
        ([(0, 4, True)], "-", "-", "-"),
        ([(0, 4, True), (5, 9, True)], "x-", "x-", "--"),
        ([(0, 4, True), (5, None, True)], "x-", "x-", "--"),  # the new segment is empty
        ([(0, 4, True), (5, 9, False)], "--", "--", "--"),  # it does not begin with a valid message
        ([(0, 4, True), (6, 9, True)], "--", "x-", "x-"),  # an offset is missing
        ([(0, 4, True), (6, None, True)], "--", "--", "--"),  # nothing is known about the offsets between
        ([(0, 4, True), (3, 9, True)], "--", "--", "--"),  # a copy that overlaps
        ([(0, 4, True), (3, 9, True), (5, 6, True)], "x--", "x--", "---"),
        ([(0, 4, True), (3, 9, True), (12, 13, True)], "---", "xx-", "xx-"),
        ([(0, None, True), (5, 9, True)], "x-", "x-", "--"),  # empty, so nothing in it is lost or deleted
        ([(5, 9, True), (0, 4, True)], "-x", "-x", "--"),  # in any order
        ([(5, 4, True)], "-", "-", "-"),  # a wrong offset: no segment closes itself
    ],
)
def test_segment_is_closed_by_a_later_one_at_its_last_offset_plus_one(parts, closed, allowing, kept):
    """Any other later segment may be a stray copy: the segment before the gap is kept, and the reason says so."""
    policy = RetentionPolicy(default_expiry=60)
    decided = decide(log(*parts), policy, NOW)
    assert ["x" if decision.closed else "-" for decision in decided] == list(closed)
    assert ["x" if decision.reason else "-" for decision in decided] == list(kept)
    allowed = decide(log(*parts), policy, NOW, allow_gaps=True)
    assert ["x" if decision.closed else "-" for decision in allowed] == list(allowing)
    assert not any(decision.reason for decision in allowed)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"interval": 0}, "interval must be more than 0 seconds, got 0"),
        ({"interval": -1}, "interval must be more than 0"),
        ({"interval": float("nan")}, "interval must be more than 0"),
        ({"interval": True}, "interval must be more than 0"),
        ({"default_expiry": -1}, "default_expiry must be an integer of 0 to 4294967295 seconds, got -1"),
        ({"default_expiry": 1.5}, "default_expiry must be an integer of 0 to 4294967295 seconds"),
        ({"default_expiry": None}, "default_expiry must be an integer of 0 to 4294967295 seconds"),
        ({"topics": {"orders": 1 << 32}}, "the expiry of 'orders' must be an integer of 0 to 4294967295 seconds"),
        ({"topics": []}, "topics must be a mapping of topics to seconds"),
        ({"segment_bytes": 0}, "segment_bytes must be an integer of 1 or more"),
        ({"enabled": 1}, "enabled must be true or false"),
        ({"ttl": 1}, "settings must be among default_expiry, .*, got 'ttl'"),
    ],
)
def test_policy_with_bad_values_raises(values, says):
    """Each invalid policy raises an error with the reason; an interval of 0 is invalid."""
    with pytest.raises(InvalidPolicy, match=says):
        RetentionPolicy.of(values)


def test_policy_in_a_file_is_read(tmp_path):
    """A TOML policy sets the expiry of a topic, the default, or no expiry."""
    path = tmp_path / "policy.toml"
    path.write_text("default_expiry = 60\ninterval = 5\n[topics]\norders = 10\naudit = 0\n")
    policy = RetentionPolicy.load(path)
    assert [policy.expiry_of(topic) for topic in ("orders", "audit", "others", None)] == [10, 0, 60, 60]
    path.write_text("default_expiry =")
    with pytest.raises(InvalidPolicy, match=r"cannot read .*policy\.toml as TOML: "):
        RetentionPolicy.load(path)
    with pytest.raises(OSError, match="No such file"):
        RetentionPolicy.load(tmp_path / "nothing.toml")


POLICY = RetentionPolicy(default_expiry=60)
BESIDE = (".index", ".timeindex")


def fill(folder, topic="orders", segments=4, ending=b"", stream="1"):
    """Create segments of two messages each, a minute apart, with their indexes; return their folder."""
    inner = folder / "streams" / stream / "topics" / topic / "partitions" / "1"
    inner.mkdir(parents=True)
    for number in range(segments):
        messages = [
            iggy.Message.new(
                b"x", id=1, offset=number * 2 + k, timestamp=NOW + (number * 60 + k) * 1_000_000, layout="m45"
            )
            for k in range(2)
        ]
        path = inner / f"{number * 2:020d}.log"
        path.write_bytes(iggy.encode_log(messages, "m45") + ending)
        for suffix in BESIDE:
            path.with_suffix(suffix).write_bytes(b"index")
    return inner


def cleaner(folder, seconds, policy=POLICY, files=None):
    return Cleaner(folder, policy, _files=files, clock=lambda: NOW + seconds * 1_000_000)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_cleaner_on_a_dry_run_removes_nothing(tmp_path):
    """A dry run reports the segments that would be deleted."""
    inner = fill(tmp_path)
    before = names(inner)
    report = cleaner(tmp_path, 121).clean()
    assert [(found.segment.first_offset, found.segment.closed, found.expired) for found in report] == [
        (0, True, True),
        (2, True, True),
        (4, True, False),
        (6, False, False),
    ]
    assert report[0].segment == Segment(0, 1, 92, True, NOW, NOW + 1_000_000)
    assert {found.topic for found in report} == {"orders"}
    assert names(inner) == before


def test_cleaner_of_expired_segments_removes_whole_ones(tmp_path):
    """Segments expire to the microsecond of their last message, and only they and their indexes are deleted."""
    inner = fill(tmp_path)
    (inner / "notes.txt").write_text("mine")
    just_not = Cleaner(tmp_path, POLICY, clock=lambda: NOW + 61_000_000 - 1)
    assert not any(found.expired for found in just_not.clean(apply=True))
    cleaner(tmp_path, 61).clean(apply=True)
    stems = {name.split(".")[0] for name in names(inner)}
    assert stems == {f"{first:020d}" for first in (2, 4, 6)} | {"notes"}


def test_cleaner_of_the_active_segment_never_touches_it(tmp_path):
    """The active segment is kept, whatever the age of its messages."""
    inner = fill(tmp_path)
    cleaner(tmp_path, 10**6).clean(apply=True)
    assert names(inner) == [f"{6:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")]


def kept_forever(*entries):
    return RetentionPolicy(default_expiry=60, topics=dict.fromkeys(entries, 0))


@pytest.mark.parametrize("entry", ["2", "1/2"])
def test_cleaner_with_a_policy_of_a_topic_uses_its_expiry(tmp_path, entry):
    """An entry names a topic as its folder does, with or without the stream."""
    kept, gone = fill(tmp_path, "2"), fill(tmp_path, "3")
    cleaner(tmp_path, 10**6, kept_forever(entry)).clean(apply=True)
    assert (len(names(kept)), len(names(gone))) == (12, 3)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (["audit"], r"topics must name folders of topics in .* \(1/2, 1/3, 2/2\), got 'audit'"),
        (["3", "audit"], "got 'audit'"),
        (["3/2"], "got '3/2'"),
        (["2"], "topics must name one topic per entry, got '2' for 1/2 and 2/2"),
        (["3", "1/3"], "topics must name each topic once, got '3' and '1/3' for 1/3"),
    ],
)
def test_cleaner_with_an_entry_that_is_not_for_one_topic_deletes_nothing(tmp_path, entries, says):
    """Messages were deleted by the default expiry, because no folder has the name of the topic."""
    folders = [fill(tmp_path, "2"), fill(tmp_path, "3"), fill(tmp_path, "2", stream="2")]
    careful = cleaner(tmp_path, 10**6, kept_forever(*entries))
    for apply in (False, True):
        with pytest.raises(InvalidPolicy, match=says):
            careful.clean(apply=apply)
    with pytest.raises(InvalidPolicy, match=says):
        careful.run(threading.Event())
    assert [len(names(folder)) for folder in folders] == [12, 12, 12]


@given(
    st.sets(st.tuples(st.sampled_from("123"), st.sampled_from(["1", "2", "topics"])), min_size=1),
    st.sets(st.sampled_from(["1", "2", "1/1", "1/2", "2/1", "2/2", "3/topics", "topics", "audit"]), max_size=3),
)
def test_cleaner_of_any_folders_keeps_what_an_entry_keeps_or_deletes_nothing(tmp_path_factory, topics, entries):
    """Each entry is for exactly one topic, or nothing is deleted; two streams never share an entry."""
    root = tmp_path_factory.mktemp("server")
    folders = {topic: fill(root, topic[1], 2, stream=topic[0]) for topic in topics}
    matches = [{topic for topic in topics if entry in (topic[1], "/".join(topic))} for entry in entries]
    kept = set().union(*matches)
    try:
        cleaner(root, 10**6, kept_forever(*entries)).clean(apply=True)
    except InvalidPolicy:
        assert any(len(match) != 1 for match in matches) or len(kept) < len(entries)
        assert {len(names(folder)) for folder in folders.values()} == {6}
    else:
        assert all(len(match) == 1 for match in matches)
        assert len(kept) == len(entries)
        assert {topic for topic, folder in folders.items() if len(names(folder)) == 6} == kept


def test_cleaner_in_a_loop_goes_on_when_a_topic_of_its_policy_is_deleted(tmp_path, caplog):
    """The first round refuses a wrong name; later a server may delete the topic, and the rounds delete nothing."""
    kept, other = fill(tmp_path, "2"), fill(tmp_path, "3")
    policy, stop, rounds = replace(kept_forever("2"), interval=0.001), threading.Event(), []

    class Walking(OsFiles):
        def walk(self, folder):
            rounds.append(len(names(other)))
            if len(rounds) == 2:
                shutil.rmtree(kept)
                kept.parents[1].rename(tmp_path / "elsewhere")
                fill(tmp_path, "4")
            if len(rounds) == 4:
                stop.set()
            return OsFiles.walk(self, folder)

    cleaner(tmp_path, 10**6, policy, Walking()).run(stop)
    assert (rounds, len(list(tmp_path.rglob("4/**/*.log")))) == ([12, 3, 3, 3], 4)
    assert "got '2'" in caplog.text


def test_cleaner_of_malformed_segments_keeps_them(tmp_path):
    """A segment whose last message is malformed is kept, and the report has the reason."""
    inner = fill(tmp_path, ending=b"half")
    report = cleaner(tmp_path, 10**6).clean(apply=True)
    assert len(names(inner)) == 12
    assert [found.expired for found in report] == [False] * 4
    assert report[0].reason.startswith("invalid message: half a message of 4 bytes")
    assert report[-1].reason is None  # the active segment is being written


def test_cleaner_that_is_disabled_removes_nothing(tmp_path):
    """A stopped loop ends at once, without reading or deleting files."""
    inner = fill(tmp_path)
    off = cleaner(tmp_path, 10**6, replace(POLICY, enabled=False))
    assert off.clean(apply=True) == []
    off.run(threading.Event())
    assert len(names(inner)) == 12


def test_cleaner_in_a_loop_cleans_until_it_is_stopped(tmp_path):
    """The loop runs once per interval; an interval of 0 is an error."""
    inner = fill(tmp_path)
    stop = threading.Event()
    thread = threading.Thread(target=cleaner(tmp_path, 10**6, replace(POLICY, interval=0.01)).run, args=(stop,))
    thread.start()
    while len(names(inner)) > 3:
        assert not stop.wait(0.01)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(InvalidPolicy, match="interval"):
        cleaner(tmp_path, 0, replace(POLICY, interval=0))


def test_cleaner_of_a_missing_folder_removes_nothing(tmp_path):
    """A malformed segment is an error that names it."""
    with pytest.raises(FileNotFoundError, match=r"no folder .*nothing"):
        cleaner(tmp_path / "nothing", 0).clean()


class KilledError(BaseException):
    """Simulates that the process is killed."""


class FailingFiles(OsFiles):
    """Raises an error before or after its nth file operation."""

    def __init__(self, at, after):
        self.left, self.after = at, after

    def _step(self, operation):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KilledError
        result = operation()
        if self.left == 0:
            raise KilledError
        return result

    def walk(self, folder):
        return self._step(lambda: OsFiles.walk(self, folder))

    def open(self, path):
        return self._step(lambda: OsFiles.open(self, path))

    def remove(self, path):
        return self._step(lambda: OsFiles.remove(self, path))

    def sync(self, folder):
        return self._step(lambda: OsFiles.sync(self, folder))


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
def test_cleaner_killed_at_every_operation_leaves_whole_segments(tmp_path, after):
    """Every segment is complete or deleted, no other segment is deleted, and the next run continues."""
    killed = 0
    for at in range(1, 100):
        folder = tmp_path / str(at)
        inner = fill(folder)
        whole = {path.name: path.read_bytes() for path in inner.iterdir()}
        try:
            cleaner(folder, 125, files=FailingFiles(at, after)).clean(apply=True)
        except KilledError:
            killed += 1
        else:
            break
        left = {path.name: path.read_bytes() for path in inner.iterdir()}
        assert left.items() <= whole.items()
        for first in (0, 2, 4, 6):
            parts = {f"{first:020d}{suffix}" for suffix in (".log", *BESIDE)}
            if f"{first:020d}.log" in left or first >= 4:
                assert parts <= left.keys()
        cleaner(folder, 125).clean(apply=True)
        assert {name.split(".")[0] for name in names(inner)} == {f"{first:020d}" for first in (4, 6)}
    assert killed >= 12


def test_cleaner_of_an_index_ahead_of_its_log_keeps_it(tmp_path):
    """The index of a new segment may exist before its log."""
    inner = fill(tmp_path)
    (inner / f"{8:020d}.index").write_bytes(b"")
    (inner / f"{1:020d}.index").write_bytes(b"left behind by a run that was cut short")
    cleaner(tmp_path, 0).clean(apply=True)
    assert f"{8:020d}.index" in names(inner)
    assert f"{1:020d}.index" not in names(inner)
    assert os.path.exists(Path(inner) / f"{0:020d}.log")
