"""The cleaner of segment files never deletes too much, and does not stop at a file that it cannot handle."""

import itertools
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from msgid import iggy
from msgid.retention import InvalidPolicy, RetentionPolicy, Segment
from msgid.retention.cleaner import Cleaner, OsFiles

NOW = 1_700_000_000_000_000
POLICY = RetentionPolicy(default_expiry=60)
LATE = 10**6
"""Time in seconds at which every message has expired."""
BESIDE = (".index", ".timeindex")


def log(first, count=2, layout="m45", at=NOW):
    made = [iggy.Message.new(b"payload", id=1, offset=first + k, timestamp=at + k, layout=layout) for k in range(count)]
    return iggy.encode_log(made, layout)


def put(folder, first, content=None):
    path = folder / f"{first:020d}.log"
    path.write_bytes(log(first) if content is None else content)
    return path


def fill(folder, topic="orders", stream="1", *, segments=3, beside=()):
    """Create segments of two messages each, a minute apart; the last one is active. Return their folder."""
    inner = folder / "streams" / stream / "topics" / topic / "partitions" / "1"
    inner.mkdir(parents=True)
    for number in range(segments):
        path = put(inner, 2 * number, log(2 * number, at=NOW + number * 60_000_000))
        for suffix in beside:
            path.with_suffix(suffix).write_bytes(b"index")
    return inner


@pytest.fixture
def partition(tmp_path):
    """Create three segments; all of their messages are as old as the first one."""
    inner = fill(tmp_path)
    for first in (0, 2, 4):
        put(inner, first)
    return inner


def cleaner(folder, seconds=LATE, policy=POLICY, **options):
    return Cleaner(folder, policy, clock=lambda: NOW + seconds * 1_000_000, **options)


def left(folder):
    return sorted(int(path.name[:20]) for path in folder.glob("[0-9]*.log"))


def kept_forever(*entries):
    return RetentionPolicy(default_expiry=60, topics=dict.fromkeys(entries, 0))


def removed(report):
    return [found.segment.first_offset for found in report if found.removed]


def test_cleaner_on_a_dry_run_reports_what_it_would_delete(tmp_path):
    inner = fill(tmp_path, segments=4)
    report = cleaner(tmp_path, 121).clean()
    found = [(found.topic, found.segment.closed, found.expired) for found in report[1:]]
    assert found == [("orders", True, True), ("orders", True, False), ("orders", False, False)]
    assert report[0].segment == Segment(0, 1, 104, True, NOW, NOW + 1)
    assert left(inner) == [0, 2, 4, 6]


def test_cleaner_deletes_expired_segments_with_their_indexes(tmp_path):
    """Segments expire to the microsecond of their last message; other files stay."""
    inner = fill(tmp_path, beside=BESIDE)
    (inner / "notes.txt").write_text("mine")
    just_not = Cleaner(tmp_path, POLICY, clock=lambda: NOW + 60_000_001 - 1)
    assert not any(found.expired for found in just_not.clean(apply=True))
    steps = []
    files = Disturbed(lambda operation, path: steps.append((operation, os.path.splitext(path)[1])))
    cleaner(tmp_path, 61, _files=files).clean(apply=True)
    assert steps[-4:] == [("remove", ".log"), ("sync", ""), ("remove", ".index"), ("remove", ".timeindex")]
    assert {path.stem for path in inner.iterdir()} == {f"{first:020d}" for first in (2, 4)} | {"notes"}


@pytest.mark.parametrize(
    ("number", "content", "kept"),
    [
        (99, b"", [4, 99]),
        (99, b"not a message", [4, 99]),
        (99, log(4), [4, 99]),  # a copy of the active segment under another name
        (99, log(99), [4, 99]),  # another partition's segment
        (5, log(5), [4, 5]),  # within the active segment
        (6, b"not a message", [4, 6]),
        (6, log(6, 1)[:-1] + b"?", [4, 6]),  # a wrong checksum
        (10**20 - 1, b"", [4, 10**20 - 1]),
        (6, b"", [6]),  # the server has begun the next segment
        (6, log(6), [6]),
    ],
)
def test_cleaner_deletes_the_active_segment_only_behind_its_successor(partition, number, content, kept):
    careful = cleaner(partition.parents[5], layout="m45")
    careful.clean()  # an earlier round, in which 4 is the newest
    put(partition, number, content)
    report = careful.clean(apply=True)
    assert removed(report) == [first for first in (0, 2, 4) if first not in kept]
    assert left(partition) == kept
    assert report[2].segment.closed == (4 not in kept)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink(os.devnull, path)])
def test_cleaner_with_a_stray_entry_that_is_no_file_keeps_the_active_segment(partition, make):
    """A folder, a pipe and a link close no segment; a pipe is not waited for."""
    make(partition / f"{6:020d}.log")
    report = cleaner(partition).clean(apply=True)
    assert removed(report) == [0, 2]
    assert (partition / f"{4:020d}.log").exists()
    assert {found.reason for found in report[3:]} <= {"not a regular file"}


def test_cleaner_with_missing_offsets_between_segments_keeps_the_first_with_the_reason(partition):
    """The next segment may be a stray copy; with `allow_gaps` it closes the segment."""
    (partition / f"{2:020d}.log").unlink()
    report = cleaner(partition).clean(apply=True)
    assert (removed(report), report[0].segment.closed) == ([], False)
    assert (
        report[0].reason == "the next segment starts at offset 4, not at 2: offsets are missing, or it is a stray file"
    )
    assert removed(cleaner(partition, allow_gaps=True).clean(apply=True)) == [0]


@pytest.mark.parametrize("folders", ["streams/1/topics/7/partitions/1", "topics/7/partitions/2"])
def test_cleaner_of_a_folder_uses_the_policy_of_its_topic(tmp_path, folders):
    inner = tmp_path / "topics" / "streams" / folders  # words of a server's folders above them mean nothing
    inner.mkdir(parents=True)
    for first in (0, 2):
        put(inner, first)
    (found, _) = cleaner(tmp_path, policy=kept_forever("7")).clean(apply=True)
    assert (found.topic, found.expired, left(inner)) == ("7", False, [0, 2])


def test_cleaner_of_a_relative_or_linked_folder_uses_the_policy_of_its_topic(partition, tmp_path, monkeypatch):
    """The topic is found even if the passed path does not contain its name."""
    os.symlink(partition, tmp_path / "link")
    monkeypatch.chdir(partition)
    for folder in (".", "../1", tmp_path / "link"):
        report = cleaner(folder, policy=kept_forever("orders")).clean(apply=True)
        assert {(found.topic, found.expired) for found in report} == {("orders", False)}


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
    folders = [fill(tmp_path, "2"), fill(tmp_path, "3"), fill(tmp_path, "2", "2")]
    careful = cleaner(tmp_path, policy=kept_forever(*entries))
    for apply in (False, True):
        with pytest.raises(InvalidPolicy, match=says):
            careful.clean(apply=apply)
    with pytest.raises(InvalidPolicy, match=says):
        careful.run(threading.Event())
    assert list(map(left, folders)) == [[0, 2, 4]] * 3


def test_cleaner_in_a_loop_goes_on_when_a_topic_of_its_policy_is_deleted(tmp_path, caplog):
    """The first round refuses a wrong name; later a server may delete the topic, and the rounds delete nothing."""
    kept, other = fill(tmp_path, "2"), fill(tmp_path, "3")
    policy, stop, rounds = replace(kept_forever("2"), interval=0.001), threading.Event(), []

    def walk(operation, path):
        if operation != "walk":
            return
        rounds.append(left(other))
        if len(rounds) == 2:
            shutil.rmtree(kept)
            kept.parents[1].rename(tmp_path / "elsewhere")
            fill(tmp_path, "4")
        if len(rounds) == 4:
            stop.set()

    cleaner(tmp_path, policy=policy, _files=Disturbed(before=walk)).run(stop)
    assert (rounds, len(list(tmp_path.rglob("4/**/*.log")))) == ([[0, 2, 4], [4], [4], [4]], 3)
    assert "got '2'" in caplog.text


class Disturbed:
    """Calls a function with the name and the path of each operation, before it or after it."""

    def __init__(self, before=lambda *_: None, after=lambda *_: None):
        self.before, self.after = before, after

    def __getattr__(self, operation):
        def step(path):
            self.before(operation, path)
            result = getattr(OsFiles(), operation)(path)
            self.after(operation, path)
            return result

        return step


def disturbed(operation, disturb, nth=1):
    """Return files that call a function before the nth such operation on the first segment."""
    calls = itertools.count(1)

    def before(called, path):
        if (called, os.path.basename(path)) == (operation, f"{0:020d}.log") and next(calls) == nth:
            disturb(path)

    return Disturbed(before)


@pytest.mark.parametrize("operation", ["state", "open", "remove"])
def test_cleaner_of_a_segment_that_vanishes_removes_the_others(partition, operation):
    """Another process may delete a segment at any time."""
    assert removed(cleaner(partition, _files=disturbed(operation, os.unlink)).clean(apply=True)) == [2]
    assert left(partition) == [4]


@pytest.mark.parametrize("operation", ["open", "remove"])
def test_cleaner_of_a_segment_that_cannot_be_read_or_removed_keeps_it_with_the_reason(partition, operation):
    """A folder without permissions does not stop the cleaner."""

    def fail(path):
        raise PermissionError(13, "Permission denied", path)

    report = cleaner(partition, _files=disturbed(operation, fail)).clean(apply=True)
    assert (removed(report), left(partition)) == ([2], [0, 4])
    words = {"open": "read", "remove": "remove"}[operation]
    assert report[0].reason.startswith(f"cannot {words} it: [Errno 13] Permission denied")


def replace_with(content):
    def replace(path):
        os.unlink(path)
        Path(path).write_bytes(content)

    return replace


def append(path):
    with open(path, "ab") as file:
        file.write(b"more")


@pytest.mark.parametrize("disturb", [append, replace_with(b""), replace_with(log(0, at=NOW + LATE * 10**6))])
def test_cleaner_of_a_segment_that_changed_after_it_was_judged_keeps_it(partition, disturb):
    """A topic may be deleted and created again under the same name; the new messages stay."""
    contents = []

    def change(path):
        disturb(path)
        contents.append(Path(path).read_bytes())

    report = cleaner(partition, _files=disturbed("state", change, nth=3)).clean(apply=True)
    assert removed(report) == [2]
    assert report[0].reason == "the file has changed since it was read"
    assert [(partition / f"{0:020d}.log").read_bytes()] == contents
    assert sorted(path.suffix for path in partition.iterdir()) == [".log", ".log"]


class KilledError(BaseException):
    """Simulates that the process is killed."""


@pytest.mark.parametrize("error", [KilledError, OSError])
@pytest.mark.parametrize("when", ["before", "after"])
def test_cleaner_killed_at_every_operation_leaves_whole_segments(tmp_path, when, error):
    """Also if each operation fails: every segment is whole or deleted, none but the expired; the next run goes on."""
    for at in range(1, 100):
        folder = tmp_path / str(at)
        inner = fill(folder, segments=4, beside=BESIDE)
        whole = {path.name: path.read_bytes() for path in inner.iterdir()}
        steps = []

        def fail(*step, at=at, steps=steps):
            steps.append(step)
            if len(steps) == at:
                raise error

        with suppress(KilledError, OSError):
            cleaner(folder, 125, _files=Disturbed(**{when: fail})).clean(apply=True)
        if len(steps) < at:
            break
        kept = {path.name: path.read_bytes() for path in inner.iterdir()}
        assert kept.items() <= whole.items()
        for first in (0, 2, 4, 6):
            if f"{first:020d}.log" in kept or first >= 4:
                assert {f"{first:020d}{suffix}" for suffix in (".log", *BESIDE)} <= kept.keys()
        cleaner(folder, 125).clean(apply=True)
        # A segment whose successor was deleted, while it could not be read itself, stays.
        stems = {int(path.stem) for path in inner.iterdir()}
        assert {4, 6} <= stems <= ({0, 4, 6} if error is OSError else {4, 6})
    assert at > 12


@pytest.mark.parametrize("trouble", [FileNotFoundError, PermissionError, OSError])
def test_cleaner_in_a_loop_goes_on_after_a_round_that_failed(partition, trouble, caplog):
    """A folder that is missing for some time does not end the loop; a segment that stays is logged once."""
    rounds, stop, reports = [], threading.Event(), []
    put(partition, 99)

    def walk(operation, folder):
        if operation == "walk":
            rounds.append(folder)
            if len(rounds) < 3:
                raise trouble(f"{folder} is not there")
            if len(rounds) == 5:
                stop.set()

    policy = RetentionPolicy(default_expiry=60, interval=0.001)
    cleaner(partition, policy=policy, _files=Disturbed(before=walk)).run(stop, report=reports.append)
    assert (len(rounds), [removed(found) for found in reports]) == (5, [[0, 2], [], []])
    logged = [(record.name, record.levelname) for record in caplog.records]
    assert logged == [("msgid.retention", level) for level in ("ERROR", "ERROR", "WARNING")]


def test_cleaner_that_is_disabled_removes_nothing(partition):
    """Its loop ends at once, without reading or deleting files."""
    off = cleaner(partition, policy=RetentionPolicy(default_expiry=60, enabled=False))
    assert off.clean(apply=True) == []
    off.run(threading.Event())
    assert left(partition) == [0, 2, 4]


@pytest.mark.parametrize("unit", [10**9, -1])
def test_cleaner_with_a_clock_of_another_unit_raises(partition, unit):
    """A clock in nanoseconds is rejected, because every message would expire."""
    with pytest.raises(ValueError, match="the clock's time in microseconds must be 0 to"):
        Cleaner(partition, POLICY, clock=lambda: 1_700_000_000 * unit).clean(apply=True)
    assert left(partition) == [0, 2, 4]


def test_cleaner_with_a_changed_policy_raises(partition):
    """The topics of a policy are a dict that can change, so they are checked when they are used."""
    policy = RetentionPolicy(default_expiry=60)
    busy = cleaner(partition, seconds=0, policy=policy)
    policy.topics["orders"] = -(10**6)
    for attempt in (busy.clean, lambda **options: cleaner(partition, policy=policy)):
        with pytest.raises(InvalidPolicy, match="the expiry of 'orders' must be an integer of 0 to 4294967295 seconds"):
            attempt(apply=True)
    with pytest.raises(TypeError, match="policy must be a RetentionPolicy"):
        cleaner(partition, policy={"default_expiry": -1})
    assert left(partition) == [0, 2, 4]


def test_cleaner_with_a_link_to_a_folder_does_not_follow_it(partition, tmp_path):
    other = shutil.copytree(partition, tmp_path / "other" / "topics" / "audit" / "partitions" / "1")
    os.symlink(partition.parents[3], partition / "circle")
    os.symlink(other, partition.parent / "2")
    cleaner(tmp_path / "streams").clean(apply=True)
    assert (left(partition), left(other)) == ([4], [0, 2, 4])


def test_cleaner_with_a_linked_segment_keeps_it(partition, tmp_path):
    """A linked segment is kept: deleting the link would keep the data and lose its name."""
    target = tmp_path / "elsewhere.log"
    (partition / f"{0:020d}.log").rename(target)
    os.symlink(target, partition / f"{0:020d}.log")
    report = cleaner(partition).clean(apply=True)
    assert (removed(report), left(partition), report[0].reason) == ([2], [0, 4], "not a regular file")


def test_cleaner_removes_no_index_of_a_segment_that_stays(partition):
    """Indexes of active, kept and future segments stay; one that a run left behind goes."""
    put(partition, 99, b"stray")
    for number in (0, 1, 2, 4, 6):
        (partition / f"{number:020d}.index").write_bytes(b"index")
    Cleaner(partition, RetentionPolicy()).clean(apply=True)  # messages are kept for ever
    assert len(list(partition.glob("*.index"))) == 5
    cleaner(partition).clean(apply=True)
    assert sorted(int(path.stem) for path in partition.glob("*.index")) == [4, 6]


def test_cleaner_of_segments_that_do_not_change_reads_them_once(tmp_path):
    """All segments are read in the first round alone, the newest one too."""
    paths = [str(put(tmp_path, first, log(first, 1000))) for first in range(0, 10_000, 1000)]
    opened = []
    files = Disturbed(before=lambda operation, path: opened.append(path) if operation == "open" else None)
    careful = cleaner(tmp_path, 0, _files=files)
    rounds = [careful.clean(apply=apply) for apply in (False, True, True)]
    assert sorted(opened) == paths
    assert [found.segment.closed for found in rounds[2]] == [True] * 9 + [False]


def of_times(*times):
    """Return the bytes of messages with these times."""
    made = [iggy.Message.new(b"x", id=1, offset=k, timestamp=at) for k, at in enumerate(times)]
    return iggy.encode_log(made, "h64")


def test_cleaner_reads_every_message_of_a_segment_before_it_deletes_it(tmp_path):
    """The last message does not tell that the others have expired: the clock was set back after one of them."""
    put(tmp_path, 2000, log(2000, 2, "h64"))
    for later, expected in ((NOW + LATE * 10**6, []), (NOW, [0])):
        put(tmp_path, 0, of_times(*[NOW] * 1000, later, *[NOW] * 999))
        assert removed(cleaner(tmp_path).clean(apply=True)) == expected


WHOLE = of_times(*[NOW] * 2000)
PAYLOAD_AT = len(WHOLE) // 2 - 1
UNCERTAIN = {
    "half a message": (WHOLE + b"half", "invalid message: half a message of 4 bytes"),
    "a changed byte": (WHOLE[:PAYLOAD_AT] + b"y" + WHOLE[PAYLOAD_AT + 1 :], "wrong checksums of 1 messages"),
    "milliseconds": (of_times(NOW, NOW // 1000, NOW), "before the year 2000: milliseconds?"),
    "seconds": (of_times(NOW, NOW // 1_000_000, NOW), "before the year 2000: seconds?"),
    "0": (of_times(NOW, 0, NOW), "the time of a message is 0, before the year 2000"),
    "the future": (of_times(NOW, NOW + 2 * LATE * 1_000_000, NOW), "in the future"),
    "nanoseconds": (of_times(NOW, NOW * 1000, NOW), "in the future"),
}


@pytest.mark.parametrize("case", UNCERTAIN)
def test_cleaner_keeps_a_segment_whose_messages_do_not_tell_its_age(tmp_path, case):
    """One message is enough, and the report says why; the active segment may be malformed: it is being written."""
    content, reason = UNCERTAIN[case]
    after = 2000 if len(content) > 10_000 else 3
    put(tmp_path, 0, content)
    put(tmp_path, after, log(after, 1, "h64") + b"half")
    (found, active) = cleaner(tmp_path).clean(apply=True)
    assert (found.removed, left(tmp_path), active.reason) == (False, [0, after], None)
    assert reason in found.reason


def test_cleaner_keeps_the_last_segment_of_an_idle_partition_with_the_reason(partition):
    """A server may still write it. While it writes, or without an expiry, the report names nothing."""
    path = partition / f"{4:020d}.log"
    for age, policy, is_idle in [(LATE + 1, POLICY, True), (1, POLICY, False), (LATE + 1, RetentionPolicy(), False)]:
        modified = NOW // 1_000_000 + LATE - age
        os.utime(path, (modified, modified))
        report = cleaner(partition, policy=policy).clean()
        assert [bool(one.reason and "the server may still write it" in one.reason) for one in report[2:]] == [is_idle]
    assert left(partition) == [0, 2, 4]


def test_cleaner_of_a_segment_that_was_begun_anew_reads_it_again(tmp_path):
    """A topic that is deleted and created again has other files of the same names and sizes."""
    for first in (0, 2):
        put(tmp_path, first)
    careful = cleaner(tmp_path)
    assert [found.expired for found in careful.clean()] == [True, False]
    for first in (0, 2):
        (tmp_path / f"{first:020d}.log").unlink()
        put(tmp_path, first, log(first, at=NOW + LATE * 10**6))
    assert [found.expired for found in careful.clean(apply=True)] == [False, False]
