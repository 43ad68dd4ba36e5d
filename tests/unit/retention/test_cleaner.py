"""The cleaner of segment files never deletes too much, and does not stop at a file that it cannot handle."""

import io
import os
import shutil
import threading
import time

import pytest

from msgid import iggy
from msgid.retention import InvalidPolicy, RetentionPolicy
from msgid.retention.cleaner import Cleaner, OsFiles

NOW = 1_700_000_000_000_000
POLICY = RetentionPolicy(default_expiry=60)
LATE = 10**6
"""Time in seconds at which every message has expired."""


def log(first, count=2, layout="m45", at=NOW):
    made = [iggy.Message.new(b"payload", id=1, offset=first + k, timestamp=at + k, layout=layout) for k in range(count)]
    return iggy.encode_log(made, layout)


def put(folder, first, content=None):
    path = folder / f"{first:020d}.log"
    path.write_bytes(log(first) if content is None else content)
    return path


@pytest.fixture
def partition(tmp_path):
    """Create three segments of two messages each; the last segment is active."""
    inner = tmp_path / "streams" / "1" / "topics" / "orders" / "partitions" / "1"
    inner.mkdir(parents=True)
    for first in (0, 2, 4):
        put(inner, first)
    return inner


def cleaner(folder, seconds=LATE, policy=POLICY, **options):
    return Cleaner(folder, policy, clock=lambda: NOW + seconds * 1_000_000, **options)


def left(folder):
    return sorted(int(path.name[:20]) for path in folder.glob("[0-9]*.log"))


def removed(report):
    return [found.segment.first_offset for found in report if found.removed]


@pytest.mark.parametrize(
    ("number", "content"),
    [
        (99, b""),
        (99, b"not a message"),
        (99, log(4)),  # a copy of the active segment under another name
        (99, log(99)),  # another partition's segment
        (5, log(5)),  # within the active segment
        (6, b"not a message"),
        (10**20 - 1, b""),
    ],
)
def test_cleaner_with_a_stray_file_of_a_higher_number_keeps_the_active_segment(partition, number, content):
    """The active segment is closed only by the segment that begins after its last message."""
    put(partition, number, content)
    report = cleaner(partition.parents[5]).clean(apply=True)
    assert removed(report) == [0, 2]
    assert left(partition) == [4, number]
    assert not report[2].segment.closed


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink(os.devnull, path)])
def test_cleaner_with_a_stray_entry_that_is_no_file_keeps_the_active_segment(partition, make):
    """A folder, a pipe and a link close no segment; a pipe is not waited for."""
    make(partition / f"{6:020d}.log")
    report = cleaner(partition).clean(apply=True)
    assert removed(report) == [0, 2]
    assert (partition / f"{4:020d}.log").exists()
    assert {found.reason for found in report[3:]} <= {"not a regular file"}


@pytest.mark.parametrize("content", [b"", None])
def test_cleaner_with_the_successor_of_a_segment_removes_it(partition, content):
    """A server that has begun the next segment, even an empty one, no longer writes to the previous segment."""
    put(partition, 6, content)
    assert removed(cleaner(partition).clean(apply=True)) == [0, 2, 4]


def test_cleaner_with_missing_offsets_between_segments_keeps_the_first_with_the_reason(partition):
    """The next segment may be a stray copy; with `allow_gaps` it closes the segment."""
    (partition / f"{2:020d}.log").unlink()
    report = cleaner(partition).clean(apply=True)
    assert (removed(report), report[0].segment.closed) == ([], False)
    assert (
        report[0].reason == "the next segment starts at offset 4, not at 2: offsets are missing, or it is a stray file"
    )
    assert removed(cleaner(partition, allow_gaps=True).clean(apply=True)) == [0]


@pytest.mark.parametrize(
    "folders",
    [
        "streams/1/topics/topics/partitions/1",
        "streams/topics/topics/topics/partitions/2",
        "topics/streams/1/topics/topics/partitions/1",
        "topics/topics",
        "topics/topics/1",
    ],
)
def test_cleaner_of_a_topic_called_topics_uses_its_policy(tmp_path, folders):
    """The expiry of a topic with the name ``topics`` is used."""
    inner = tmp_path / folders
    inner.mkdir(parents=True)
    for first in (0, 2):
        put(inner, first)
    policy = RetentionPolicy(default_expiry=60, topics={"topics": 0})
    (found, _) = cleaner(tmp_path, policy=policy).clean(apply=True)
    assert (found.topic, found.expired, left(inner)) == ("topics", False, [0, 2])


def test_cleaner_of_a_relative_or_linked_folder_uses_the_policy_of_its_topic(partition, tmp_path, monkeypatch):
    """The topic is found even if the passed path does not contain its name."""
    policy = RetentionPolicy(default_expiry=60, topics={"orders": 0})
    os.symlink(partition, tmp_path / "link")
    monkeypatch.chdir(partition)
    for folder in (".", "../1", tmp_path / "link"):
        report = cleaner(folder, policy=policy).clean(apply=True)
        assert {(found.topic, found.expired) for found in report} == {("orders", False)}


class Disturbed(OsFiles):
    """Calls a function before the nth operation on a file of a given name."""

    def __init__(self, operation, name, disturb, nth=1):
        self.operation, self.name, self.disturb, self.left = operation, name, disturb, nth

    def _before(self, operation, path):
        if operation == self.operation and os.path.basename(path) == self.name:
            self.left -= 1
            if self.left == 0:
                self.disturb(path)

    def state(self, path):
        self._before("state", path)
        return OsFiles.state(self, path)

    def open(self, path):
        self._before("open", path)
        return OsFiles.open(self, path)

    def remove(self, path):
        self._before("remove", path)
        OsFiles.remove(self, path)


@pytest.mark.parametrize("operation", ["state", "open", "remove"])
def test_cleaner_of_a_segment_that_vanishes_removes_the_others(partition, operation):
    """Another process may delete a segment at any time."""
    files = Disturbed(operation, f"{0:020d}.log", os.unlink)
    assert removed(cleaner(partition, _files=files).clean(apply=True)) == [2]
    assert left(partition) == [4]


def test_cleaner_of_a_segment_that_cannot_be_read_keeps_it_with_the_reason(partition):
    """A segment that cannot be read is kept with the reason, and the other segments are deleted."""

    def fail(path):
        raise PermissionError(13, "Permission denied", path)

    report = cleaner(partition, _files=Disturbed("open", f"{0:020d}.log", fail)).clean(apply=True)
    assert removed(report) == [2]
    assert report[0].reason.startswith("cannot read it: [Errno 13] Permission denied")
    report = cleaner(partition).clean(apply=True)
    assert (removed(report), report[0].expired) == ([], False)  # segment 2, its successor, is missing now


def test_cleaner_of_a_segment_that_cannot_be_removed_keeps_it_with_the_reason(partition):
    """A folder without write permission does not stop the cleaner."""

    def fail(path):
        raise PermissionError(13, "Permission denied", path)

    report = cleaner(partition, _files=Disturbed("remove", f"{2:020d}.log", fail)).clean(apply=True)
    assert (removed(report), left(partition)) == ([0], [2, 4])
    assert report[1].reason.startswith("cannot remove it: [Errno 13]")


def replace_with(content):
    def replace(path):
        os.unlink(path)
        with open(path, "wb") as file:
            file.write(content)

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
        with open(path, "rb") as file:
            contents.append(file.read())

    report = cleaner(partition, _files=Disturbed("state", f"{0:020d}.log", change, nth=3)).clean(apply=True)
    assert removed(report) == [2]
    assert report[0].reason == "the file has changed since it was read"
    assert [(partition / f"{0:020d}.log").read_bytes()] == contents
    assert sorted(path.suffix for path in partition.iterdir()) == [".log", ".log"]


def test_two_cleaners_at_once_remove_each_segment_once(tmp_path):
    """Neither cleaner fails, and each deleted segment is in the report of one of them."""
    count = 40
    for topic in range(3):
        inner = tmp_path / "topics" / str(topic) / "partitions" / "1"
        inner.mkdir(parents=True)
        for first in range(0, 2 * count, 2):
            put(inner, first)
    reports, start = [], threading.Barrier(3)

    def work():
        start.wait()
        reports.append(cleaner(tmp_path).clean(apply=True))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    gone = [found.path for report in reports for found in report if found.removed]
    assert len(reports) == 3
    assert len(gone) == len(set(gone)) == 3 * (count - 1)


@pytest.mark.parametrize("trouble", [FileNotFoundError, PermissionError, OSError])
def test_cleaner_in_a_loop_goes_on_after_a_round_that_failed(partition, trouble, caplog):
    """A folder that is missing for some time, as on a network, does not end the loop."""
    rounds, stop = [], threading.Event()

    class Failing(OsFiles):
        def walk(self, folder):
            rounds.append(folder)
            if len(rounds) < 3:
                raise trouble(f"{folder} is not there")
            return OsFiles.walk(self, folder)

    policy = RetentionPolicy(default_expiry=60, interval=0.001)
    reports = []

    def report(found):
        reports.append(found)
        stop.set()

    cleaner(partition, policy=policy, _files=Failing()).run(stop, report=report)
    assert (len(rounds), [removed(found) for found in reports]) == (3, [[0, 2]])
    assert [record.name for record in caplog.records] == ["msgid.retention"] * 2


def test_cleaner_in_a_loop_with_an_endless_interval_waits(partition):
    """An interval longer than the system allows becomes the longest allowed one."""
    stop = threading.Event()
    policy = RetentionPolicy(default_expiry=60, interval=float("inf"))
    thread = threading.Thread(target=cleaner(partition, policy=policy).run, args=(stop,))
    thread.start()
    while left(partition) != [4]:
        time.sleep(0.01)
    assert thread.is_alive()
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


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


def test_cleaner_of_a_segment_with_wrong_checksums_keeps_it(partition):
    """A segment with wrong checksums is kept, because its timestamps may be damaged too."""
    for first, layout in ((0, "h64"), (2, "h64"), (4, "h64")):
        put(partition, first, log(first, layout=layout))
    damaged = bytearray((partition / f"{2:020d}.log").read_bytes())
    damaged[-1] ^= 1
    put(partition, 2, bytes(damaged))
    report = cleaner(partition).clean(apply=True)
    assert removed(report) == [0]
    assert report[1].reason == "wrong checksums of 1 messages"


@pytest.mark.parametrize("layout", [name for name, facts in iggy.LAYOUTS.items() if facts.checksum])
def test_cleaner_of_every_layout_finds_it_by_checksum(tmp_path, layout):
    """The cleaner detects each layout by checksum, also several in one folder after an upgrade of the server."""
    put(tmp_path, 0, log(0))
    put(tmp_path, 2, log(2, layout=layout))
    put(tmp_path, 4, log(4, layout=layout))
    assert removed(cleaner(tmp_path).clean(apply=True)) == [0, 2]


def test_cleaner_of_read_only_files_and_odd_names_removes_whole_segments(tmp_path):
    """Read-only files, and folders whose names are not valid text, are cleaned."""
    odd = os.fsdecode(b"topics/ \xff\n'%2F=*?[a] /partitions/1")
    inner = tmp_path / odd
    inner.mkdir(parents=True)
    for first in (0, 2):
        put(inner, first).chmod(0o400)
    report = cleaner(tmp_path).clean(apply=True)
    assert (removed(report), left(inner)) == ([0], [2])
    assert report[0].topic == os.fsdecode(b" \xff\n'%2F=*?[a] ")


def test_cleaner_with_a_link_to_a_folder_does_not_follow_it(partition, tmp_path):
    """Links to folders are not followed, neither a circle nor a link to other segments."""
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
    """The indexes of the active segment, of kept segments and of future segments stay."""
    put(partition, 99, b"stray")
    for number in (0, 2, 4, 6):
        (partition / f"{number:020d}.index").write_bytes(b"index")
    cleaner(partition).clean(apply=True)
    assert sorted(int(path.stem) for path in partition.glob("*.index")) == [4, 6]


class Counted(OsFiles):
    """Counts the bytes of logs and indexes that are read."""

    def __init__(self):
        self.read = 0

    def open(self, path):
        counted, file = self, OsFiles.open(self, path)
        inner = file.read

        class Reading(io.RawIOBase):
            def read(self, size=-1):
                found = inner(size)
                counted.read += len(found)
                return found

            def seek(self, *to):
                return file.seek(*to)

            def tell(self):
                return file.tell()

            def close(self):
                file.close()

        return Reading()

    def round(self, cleaner, **options):
        before = self.read
        return cleaner.clean(**options), self.read - before


def test_cleaner_of_segments_that_do_not_change_reads_them_once(tmp_path):
    """Closed segments are read in the first round alone; of the newest one, only the beginning is read."""
    size = sum(put(tmp_path, first, log(first, 1000)).stat().st_size for first in range(0, 10_000, 1000))
    files = Counted()
    careful = cleaner(tmp_path, 0, _files=files)
    rounds = [files.round(careful, apply=apply) for apply in (False, True, True)]
    assert [read > 0 for _, read in rounds] == [True, False, False]
    assert rounds[0][1] <= size
    assert [found.segment.closed for found in rounds[2][0]] == [True] * 9 + [False]


@pytest.mark.parametrize("trouble", ["a later message", "a broken message"])
def test_cleaner_reads_every_message_of_a_segment_before_it_deletes_it(tmp_path, trouble):
    """The last message does not tell that the others have expired, or that they are whole."""
    content = bytearray(log(0, 2000, "h64"))
    if trouble == "a later message":  # the clock was set back after it
        late = log(1000, 1, "h64", NOW + LATE * 10**6)
        content[1000 * len(late) : 1001 * len(late)] = late
    else:
        content[len(content) // 2] ^= 1
    put(tmp_path, 0, bytes(content))
    put(tmp_path, 2000, log(2000, 2, "h64"))
    (found, _) = cleaner(tmp_path).clean(apply=True)
    assert not found.removed
    put(tmp_path, 0, log(0, 2000, "h64"))
    (found, _) = cleaner(tmp_path).clean(apply=True)
    assert found.removed


WRONG_TIMES = {
    "milliseconds": (NOW // 1000, "before the year 2000: milliseconds?"),
    "seconds": (NOW // 1_000_000, "before the year 2000: seconds?"),
    "0": (0, "the time of a message is 0, before the year 2000"),
    "the future": (NOW + 2 * LATE * 1_000_000, "in the future"),
    "nanoseconds": (NOW * 1000, "in the future"),
}


@pytest.mark.parametrize("case", WRONG_TIMES)
def test_cleaner_keeps_a_segment_whose_times_do_not_tell_its_age(tmp_path, case):
    """One message with a time of another unit, or of the future, keeps its segment, and the report says why."""
    time_of_one, reason = WRONG_TIMES[case]
    times = [NOW, time_of_one, NOW]
    made = [iggy.Message.new(b"x", id=1, offset=k, timestamp=at) for k, at in enumerate(times)]
    put(tmp_path, 0, iggy.encode_log(made, "h64"))
    put(tmp_path, 3, log(3, 1, "h64"))
    (found, _) = cleaner(tmp_path).clean(apply=True)
    assert (found.removed, left(tmp_path)) == (False, [0, 3])
    assert reason in found.reason


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
