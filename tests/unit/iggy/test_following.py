"""Following folders of segments: each record once, or its bytes in a lost part, whatever happens to the files."""

import random

import pytest
from helpers.iggy_following import Folder, Reader, log, name

from msgid import iggy
from msgid.iggy import _marks, following, parts

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")


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


@pytest.mark.parametrize("layout", ["m45", "batch24", "h64", "batch256"])
@pytest.mark.parametrize("grown", [1, 12, 40])
def test_segment_that_was_cut_and_has_grown_since_is_read_from_the_cut(layout, grown):
    """A server lost its last records and wrote others before the next look, whether fewer bytes or more."""
    whole = log(40, layout=layout)
    starts = parts.last_starts(lambda p, n: whole[p : p + n], len(whole), layout=layout)
    for lost in (1, 2, min(6, len(starts) - 1)):
        folder = Folder({name(1, 0): whole})
        reader = Reader(folder).to_end()
        kept = whole[: starts[-lost]]
        assert len(kept) < len(whole)
        before = list(reader.rows)
        folder.write(name(1, 0), kept + log(grown, 500, layout, seed=2))
        reader.to_end()
        after = [(name(1, 0), message.offset) for message in iggy.decode_log(log(grown, 500, layout, seed=2), layout)]
        assert reader.rows == before + after, lost


def test_deep_cut_repeats_records_and_misses_none():
    """Far from the end, a mark knows fewer records: those after the last one that is still there come twice."""
    whole = log(3000)
    folder = Folder({name(1, 0): whole})
    reader = Reader(folder, max_bytes=len(whole) // 7).to_end()
    assert len(reader.offset["segments"][name(1, 0)][5]) < 30
    before = list(reader.rows)
    kept = parts.boundary(lambda p, n: whole[p : p + n], len(whole), len(whole) // 2, layout="h64").place
    folder.write(name(1, 0), whole[:kept] + log(9, 5000, seed=2))
    reader.to_end()
    repeated = reader.rows[len(before) : -len(iggy.decode_log(log(9, 5000, seed=2), "h64"))]
    assert sorted(set(reader.rows)) == sorted({*before, *offsets_in(folder)})
    assert len(set(repeated)) == len(repeated) < len(before) / 2


def test_folder_that_is_missing_at_a_look_is_read_on_when_it_is_back():
    """A mount that is gone for a moment costs no message and repeats none."""
    folder = Folder({name(1, 0): log(10), name(1, 100): log(10, 100), name(2, 0): log(10)})
    reader = Reader(folder).to_end()
    before, away = list(reader.rows), {}
    for file in (name(1, 0), name(1, 100)):
        away[file] = folder.files[file]
        folder.delete(file)
    folder.write(name(2, 0), log(10) + log(4, 500))
    reader.to_end()
    for file, raw in away.items():
        folder.write(file, raw)
    folder.write(name(1, 100), away[name(1, 100)] + log(3, 500))
    reader.to_end()
    more = [(name(2, 0), log(4, 500)), (name(1, 100), log(3, 500))]
    assert reader.rows == before + [(file, one.offset) for file, raw in more for one in iggy.decode_log(raw, "h64")]
    assert reader.lost == []


def test_folder_that_goes_with_unread_bytes_is_reported_once():
    """Bytes that were seen and not read are a lost part, although the folder may come back."""
    folder = Folder({name(1, 0): log(10)})
    reader = Reader(folder, max_bytes=300)
    reader.run(reader.plan())
    position, size, *_ = reader.offset["segments"][name(1, 0)]
    away = folder.files.copy()
    folder.files.clear()
    reader.to_end()
    assert position < size
    assert reader.lost == [(name(1, 0), position, size)]
    folder.files.update(away)
    reader.to_end()
    assert reader.rows == offsets_in(folder)
    assert len(reader.lost) == 1


def test_marks_of_folders_that_are_gone_are_limited(monkeypatch):
    """Those of the segments written to last are kept."""
    monkeypatch.setattr(following, "_MOST_MISSING", 2)
    folder = Folder()
    for topic in range(1, 6):
        folder.write(name(topic, 0), log(3, seed=topic))
    reader = Reader(folder).to_end()
    for topic in range(1, 5):
        folder.delete(name(topic, 0))
    folder.write(name(5, 0), log(3, seed=5) + log(2, 100))
    reader.to_end()
    assert sorted(reader.offset["segments"]) == [name(3, 0), name(4, 0), name(5, 0)]


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
    assert folder.read_in_all < 11 * _marks.HEAD + 200_000


def test_offset_of_the_former_form_is_read():
    """A position for each whole path; files elsewhere are refused, as are later forms."""
    folder = Folder({name(1, 0): log(10)})
    raw = folder.files[name(1, 0)]
    place = parts.boundary(lambda p, n: raw[p : p + n], len(raw), len(raw) // 2, layout="h64").place

    def inner(file):
        return file.removeprefix("/logs/") if file.startswith("/logs/") else None

    marks = _marks.from_json({f"/logs/{name(1, 0)}": place}, inner)
    reader = Reader(folder)
    reader.offset = _marks.to_json(marks)
    reader.to_end()
    assert reader.rows == [(name(1, 0), message.offset) for message in iggy.decode_log(raw[place:], "h64")]
    with pytest.raises(ValueError, match=r"names '/other/0\.log', which is not in the path"):
        _marks.from_json({"/other/0.log": 1}, inner)
    with pytest.raises(ValueError, match="must be 4, got 5"):
        _marks.from_json({"version": 5, "segments": {}}, inner)


class Server:
    """A server of two topics that writes, rotates, deletes, purges and crashes at random; a mount that goes and comes.

    It numbers its messages, so that each has an offset of its own.
    """

    def __init__(self, chance):
        self.chance, self.folder = chance, Folder()
        self.serial, self.written = 0, set()
        self.current, self.rest = {1: name(1, 0), 2: name(2, 0)}, {1: b"", 2: b""}
        self.away = {}

    def messages(self):
        made = []
        for _ in range(4):
            self.serial += 1
            body = b"x" * self.chance.randrange(1, 90)
            made.append(iggy.Message.new(body, id=self.serial, offset=self.serial, timestamp=self.serial, layout="h64"))
            self.written.add(self.serial)
        self.serial += 1
        return iggy.encode_log(made, "h64")

    def files_of(self, topic):
        return sorted(file for file in self.folder.files if f"topics/{topic}/" in file)

    def write(self, topic):
        raw = self.rest[topic] + self.messages()
        cut = self.chance.choice([0, 0, 10])
        file = self.current[topic]
        self.folder.write(file, self.folder.files.get(file, b"") + (raw[:-cut] if cut else raw))
        self.rest[topic] = raw[-cut:] if cut else b""

    def rotate(self, topic):
        self.finish(topic)
        if self.current[topic] in self.folder.files:
            self.current[topic] = name(topic, self.serial)

    def finish(self, topic):
        file = self.current[topic]
        if self.rest[topic]:
            self.folder.write(file, self.folder.files[file] + self.rest[topic])
        self.rest[topic] = b""

    def delete(self, topic):
        for file in [file for file in self.files_of(topic) if file != self.current[topic]][:1]:
            self.folder.delete(file)

    def purge(self, topic):
        for file in self.files_of(topic):
            self.folder.delete(file)
        self.rest[topic], self.current[topic] = b"", name(topic, 0)

    def crash(self, topic):
        """Lose the half record and up to three records before it, and write on."""
        file = self.current[topic]
        raw = self.folder.files.get(file)
        if raw is None:
            return
        self.rest[topic] = b""
        end = parts.boundary(lambda p, n: raw[p : p + n], len(raw), len(raw), layout="h64").place
        starts = parts.last_starts(lambda p, n: raw[p : p + n], end, layout="h64")
        kept = [*starts[1:], end][-self.chance.randrange(1, 4) :][0]
        self.folder.write(file, raw[:kept] + (self.messages() if self.chance.random() < 0.7 else b""))

    def hide(self, topic):
        if topic not in self.away:
            self.away[topic] = {file: self.folder.files.pop(file) for file in self.files_of(topic)}

    def show(self, topic):
        self.folder.files.update(self.away.pop(topic, {}))

    def step(self):
        topic = self.chance.choice([1, 2])
        if topic in self.away:
            return self.show(topic)
        actions = [self.write, self.rotate, self.delete, self.purge, self.crash, self.hide]
        return self.chance.choices(actions, [10, 2, 2, 1, 2, 1])[0](topic)

    def settle(self):
        for topic in (1, 2):
            self.show(topic)
            self.finish(topic)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.volume) for n in range(8, 100))])
def test_reader_of_a_busy_server_reads_each_record_once(seed):
    """Whatever happens to the files between its batches, nothing is read twice or missed."""
    chance = random.Random(seed)
    server = Server(chance)
    reader = Reader(server.folder, every=chance.choice([150, 5000]), max_bytes=chance.choice([None, 300, 2000]))
    for _ in range(200):
        server.step()
        end = reader.plan() if chance.random() < 0.4 else None
        if end is not None:
            reader.run(end)
    server.settle()
    reader.to_end()
    read = [offset for _, offset in reader.rows]
    assert all(isinstance(offset, int) for offset in read)
    assert len(read) == len(set(read))
    assert set(read) <= server.written
    assert {offset for _, offset in offsets_in(server.folder)} <= set(read)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.volume) for n in range(8, 100))])
def test_reader_whose_batches_wait_reads_or_reports_each_record(seed):
    """Files change between plan and read, too. Then records may come twice, or as bytes that are half a record."""
    chance = random.Random(seed)
    server = Server(chance)
    reader = Reader(server.folder, every=chance.choice([150, 5000]), max_bytes=chance.choice([None, 300, 2000]))
    for _ in range(60):
        for _ in range(chance.randrange(4)):
            server.step()
        end = reader.plan()
        for _ in range(chance.randrange(4)):
            server.step()
        if end is not None:
            reader.run(end)
    server.settle()
    reader.to_end()
    read = {offset for _, offset in reader.rows}
    for file, raw in server.folder.files.items():
        starts = parts.last_starts(lambda p, n, raw=raw: raw[p : p + n], len(raw), layout="h64")
        for message, start in zip(iggy.decode_log(raw, "h64"), starts, strict=True):
            reported = any(file == lost and begin <= start < end for lost, begin, end in reader.lost)
            assert message.offset in read or reported, (file, start)
