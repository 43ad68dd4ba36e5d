"""Following folders of segments: each record once, or its bytes in a lost part, whatever happens to the files."""

import json
import random

import pytest
from helpers.iggy_files import messages

from msgid import iggy
from msgid.iggy import following, parts

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")


class Folder:
    """Segments in memory, with a clock for their times; the bytes that `latest` reads are counted."""

    def __init__(self, files=()):
        self.files = dict(files)
        self.times = dict.fromkeys(self.files, 1)
        self.clock = 1
        self.read_in_all = 0

    def write(self, name, raw):
        self.clock += 1
        self.files[name] = raw
        self.times[name] = self.clock

    def delete(self, name):
        del self.files[name]

    def seen(self):
        return [following.Seen(name, len(raw), self.times[name]) for name, raw in self.files.items()]

    def opened(self, name):
        return Opened(self, self.files[name]) if name in self.files else None

    def boundary(self, name, place):
        return Opened(self, self.files[name][:place]).boundary(place, 0)


class Opened:
    def __init__(self, folder, raw):
        self.folder, self.raw, self.size = folder, raw, len(raw)

    def bytes_at(self, position, length):
        self.folder.read_in_all += length
        return self.raw[position : position + length]

    def boundary(self, target, first):
        layout = parts.detect_file(self.bytes_at, self.size).layout
        return parts.boundary(self.bytes_at, self.size, target, start=first, layout=layout or "auto").place


def name(topic, first):
    return f"streams/1/topics/{topic}/partitions/1/{first:020d}.log"


def log(count, first=0, layout="h64", seed=1):
    made = messages(random.Random(seed), layout, count, first)
    return b"".join(iggy.encode(message, layout) for message in made if message.payload)


class Reader:
    """A reader that plans, reads and restarts from the JSON of its offset."""

    def __init__(self, folder, every=1000, **limits):
        self.folder, self.every, self.limits = folder, every, limits
        self.offset = following.to_json({})
        self.rows, self.lost, self.sizes = [], [], []

    def marks(self, offset):
        return following.from_json(json.loads(json.dumps(offset)), lambda file: file)

    def plan(self):
        start = self.marks(self.offset)
        end = following.latest(start, self.folder.seen(), self.folder.opened, **self.limits)
        if end is None:
            return None
        return following.to_json(end)

    def run(self, end):
        found = following.parts(self.marks(self.offset), self.marks(end), self.every, self.folder.boundary)
        self.sizes.append(sum(part.stop - part.start for part in found if not part.lost))
        for part in found:
            raw = self.folder.files.get(part.name)
            read = None if raw is None else Opened(self.folder, raw)
            if part.lost or read is None or not following.has_head(part.head, read.bytes_at):
                self.lost.append((part.name, part.start, part.stop))
                continue
            layout = parts.detect_file(read.bytes_at, read.size).layout
            place = parts.boundary(read.bytes_at, part.end, part.start, start=part.first, layout=layout).place
            if place >= part.stop:
                continue
            for found_rows in parts.read_part(read.bytes_at, place, part.stop, part.end, layout, upgrade=True):
                self.rows += [(part.name, offset) for offset in found_rows.table["offset"].to_pylist()]
                if found_rows.error is not None:
                    self.rows.append((part.name, str(found_rows.error)))
        self.offset = end

    def to_end(self, most=1000):
        for _ in range(most):
            end = self.plan()
            if end is None:
                return self
            self.run(end)
        raise AssertionError("the reader does not end")


def offsets_in(folder):
    """Every message of every segment."""
    return sorted(
        (file, message.offset) for file, raw in folder.files.items() for message in iggy.decode_log(raw, "h64")
    )


@pytest.mark.parametrize("limits", [{}, {"max_bytes": 1}, {"max_bytes": 700}, {"max_files": 1}, {"max_files": 2}])
def test_reader_of_any_limits_reads_each_record_once(limits):
    """Every batch gets on by a record at least, and the last one ends."""
    folder = Folder({name(topic, first): log(20, first, seed=first) for topic in (1, 2) for first in (0, 100, 200)})
    reader = Reader(folder, **limits).to_end()
    assert sorted(reader.rows) == offsets_in(folder)
    assert reader.lost == []
    if "max_bytes" in limits:
        assert max(reader.sizes) < limits["max_bytes"] + 400
    if "max_files" in limits:
        assert len(reader.sizes) == 6 // limits["max_files"]


def test_reader_of_several_folders_reads_the_oldest_first():
    """A busy folder does not keep another one waiting."""
    folder = Folder()
    folder.write(name(2, 0), log(5))
    folder.write(name(1, 0), log(5))
    reader = Reader(folder, max_files=1)
    reader.run(reader.plan())
    assert {file for file, _ in reader.rows} == {name(2, 0)}
    folder.write(name(2, 0), log(9))
    reader.run(reader.plan())
    assert {file for file, _ in reader.rows} == {name(1, 0), name(2, 0)}


def test_half_record_waits_for_its_rest_or_for_a_later_segment():
    """An empty later segment shows nothing: a server makes it before it has written the rest."""
    whole = log(5)
    folder = Folder({name(1, 0): whole[:-3]})
    reader = Reader(folder).to_end()
    count = len(reader.rows)
    folder.write(name(1, 50), b"")
    assert reader.plan() is None
    folder.write(name(1, 0), whole)
    reader.to_end()
    assert (len(reader.rows), reader.lost) == (count + 1, [])
    assert sorted(reader.rows) == offsets_in(folder)


def test_half_record_of_a_closed_segment_whose_rest_comes_late_is_read():
    """It is reported as half a record, and read from its start when it is whole."""
    whole = log(5)
    folder = Folder({name(1, 0): whole[:-3], name(1, 50): log(3, 50)})
    reader = Reader(folder).to_end()
    (broken,) = [reason for _, reason in reader.rows if isinstance(reason, str)]
    assert "half a message" in broken
    folder.write(name(1, 0), whole)
    reader.to_end()
    assert sorted(row for row in reader.rows if isinstance(row[1], int)) == offsets_in(folder)


def test_segment_begun_anew_under_its_name_is_read():
    """A purge is seen by the first bytes, whether the new segment is smaller, as large or larger."""
    for count in (1, 10, 30):
        folder = Folder({name(1, 0): log(10)})
        reader = Reader(folder).to_end()
        before = list(reader.rows)
        folder.write(name(1, 0), log(count, seed=99))
        reader.to_end()
        assert sorted(reader.rows) == sorted(before + offsets_in(folder))
        assert reader.lost == []


def test_purged_segment_with_unread_bytes_is_reported():
    """The rest of the old segment is a lost part, and the new one is read from its start."""
    folder = Folder({name(1, 0): log(40)})
    reader = Reader(folder, max_bytes=500)
    reader.run(reader.plan())
    done, size = list(reader.rows), len(folder.files[name(1, 0)])
    place = reader.marks(reader.offset)[name(1, 0)].position
    folder.write(name(1, 0), log(5, seed=77))
    reader.to_end()
    assert reader.lost == [(name(1, 0), place, size)]
    assert sorted(reader.rows) == sorted(done + offsets_in(folder))


def test_segment_deleted_before_it_was_read_is_reported_once():
    """A segment that was seen and is gone is a lost part; so is one that goes between plan and read."""
    folder = Folder({name(1, 0): log(10), name(1, 100): log(10, 100), name(1, 200): log(10, 200)})
    reader = Reader(folder, max_files=1)
    reader.run(reader.plan())
    sizes = {file: len(raw) for file, raw in folder.files.items()}
    folder.delete(name(1, 0))
    folder.delete(name(1, 100))
    end = reader.plan()
    folder.delete(name(1, 200))
    reader.run(end)
    reader.to_end()
    assert sorted(reader.lost) == [(file, 0, sizes[file]) for file in (name(1, 100), name(1, 200))]
    assert reader.plan() is None


def test_segment_purged_between_plan_and_read_is_reported_and_read():
    """A reader that finds other first bytes reads nothing of them; the next batch does."""
    folder = Folder({name(1, 0): log(10)})
    reader = Reader(folder)
    end = reader.plan()
    size = len(folder.files[name(1, 0)])
    folder.write(name(1, 0), log(12, seed=5))
    reader.run(end)
    assert (reader.rows, reader.lost) == ([], [(name(1, 0), 0, size)])
    reader.to_end()
    assert sorted(reader.rows) == offsets_in(folder)


def test_segment_that_a_recovery_cut_is_read_on_from_its_new_end():
    """A server that lost its last records writes on after the ones it kept."""
    whole = log(20)
    folder = Folder({name(1, 0): whole})
    reader = Reader(folder).to_end()
    before = list(reader.rows)
    kept = parts.boundary(lambda p, n: whole[p : p + n], len(whole), len(whole) // 2, layout="h64").place
    folder.write(name(1, 0), whole[:kept])
    reader.to_end()
    more = log(4, 500)
    folder.write(name(1, 0), whole[:kept] + more)
    reader.to_end()
    assert reader.rows == before + [(name(1, 0), message.offset) for message in iggy.decode_log(more, "h64")]


def test_file_of_an_upgraded_server_is_followed_into_the_next_layout():
    """Positions in the middle of a file stay right where its layout changes."""
    old, new = log(30, layout="h56-xxh3"), log(30, 500)
    folder = Folder({name(1, 0): old[:-5]})
    reader = Reader(folder, every=200).to_end()
    folder.write(name(1, 0), old + new[:300])
    reader.to_end()
    folder.write(name(1, 0), old + new)
    reader.to_end()
    expected = [(name(1, 0), message.offset) for message in iggy.decode_log(old + new)]
    assert sorted(reader.rows) == expected


def test_offset_does_not_grow_with_history():
    """Only segments that are there have a mark; looks at unchanged files read none of their bytes."""
    folder, reader = Folder(), None
    for first in range(0, 50_000, 100):
        folder.write(name(1, first), log(2, first, seed=first))
        if first >= 500:
            folder.delete(name(1, first - 500))
        reader = reader or Reader(folder)
        reader.to_end()
    assert len(reader.offset["segments"]) == 5
    folder.read_in_all = 0
    assert reader.plan() is None
    assert folder.read_in_all == 0


def test_closed_segments_are_planned_without_reading_them():
    """A backlog costs the planner the first bytes of each segment."""
    folder = Folder({name(1, first): log(500, first, seed=first) for first in range(0, 10_000, 1000)})
    reader = Reader(folder)
    folder.write(name(1, 10_000), log(1, 10_000))
    folder.read_in_all = 0
    reader.plan()
    assert folder.read_in_all < 11 * following.HEAD + 200_000


def test_offset_of_the_former_form_is_read():
    """A position for each whole path; files elsewhere are refused, as are later forms."""
    folder = Folder({name(1, 0): log(10)})
    raw = folder.files[name(1, 0)]
    place = parts.boundary(lambda p, n: raw[p : p + n], len(raw), len(raw) // 2, layout="h64").place

    def inner(file):
        return file.removeprefix("/logs/") if file.startswith("/logs/") else None

    marks = following.from_json({f"/logs/{name(1, 0)}": place}, inner)
    reader = Reader(folder)
    reader.offset = following.to_json(marks)
    reader.to_end()
    assert reader.rows == [(name(1, 0), message.offset) for message in iggy.decode_log(raw[place:], "h64")]
    with pytest.raises(ValueError, match=r"names '/other/0\.log', which is not in the path"):
        following.from_json({"/other/0.log": 1}, inner)
    with pytest.raises(ValueError, match="must be 2, got 3"):
        following.from_json({"version": 3, "segments": {}}, inner)


@pytest.mark.parametrize("seed", range(20))
def test_reader_of_a_busy_server_reads_each_record_or_reports_it(seed):
    """Writes, half records, rotation, deletion, purges and restarts at random: nothing is read twice or missed."""
    chance = random.Random(seed)
    folder = Folder()
    reader = Reader(folder, every=chance.choice([150, 5000]), max_bytes=chance.choice([None, 300, 2000]))
    written, serial = {}, 0
    current, rest = {1: name(1, 0), 2: name(2, 0)}, {1: b"", 2: b""}
    for _ in range(150):
        topic, what = chance.choice([1, 2]), chance.random()
        file = current[topic]
        if what < 0.5:
            made = [
                iggy.Message.new(
                    b"x" * chance.randrange(1, 90), id=serial + n, offset=serial + n, timestamp=serial, layout="h64"
                )
                for n in range(1, 5)
            ]
            serial += 5
            raw = rest[topic] + iggy.encode_log(made, "h64")
            cut = chance.choice([0, 0, 10])
            written.setdefault(file, []).extend(message.offset for message in made)
            folder.write(file, folder.files.get(file, b"") + (raw[:-cut] if cut else raw))
            rest[topic] = raw[-cut:] if cut else b""
        elif what < 0.6 and file in folder.files:
            folder.write(file, folder.files[file] + rest[topic])
            rest[topic], current[topic] = b"", name(topic, serial)
        elif what < 0.7:
            closed = sorted(one for one in folder.files if f"topics/{topic}/" in one and one != file)
            for one in closed[:1]:
                folder.delete(one)
        elif what < 0.75:
            for one in [one for one in folder.files if f"topics/{topic}/" in one]:
                folder.delete(one)
            rest[topic], current[topic] = b"", name(topic, 0)
        else:
            end = reader.plan()
            if end is not None:
                reader.run(end)
    for topic, file in current.items():
        if rest[topic]:
            folder.write(file, folder.files[file] + rest[topic])
    reader.to_end()
    read = [offset for _, offset in reader.rows]
    assert all(isinstance(offset, int) for offset in read)
    assert len(read) == len(set(read))
    assert set(read) <= {offset for offsets in written.values() for offset in offsets}
    assert {offset for _, offset in offsets_in(folder)} <= set(read)
