"""A stream reports offsets that are in no segment, because segments were made and deleted between two looks."""

import json
import random
from typing import NamedTuple

import pytest
from helpers.iggy_following import Folder, Opened, Reader, name

from msgid import iggy
from msgid.iggy import _marks, following, parts

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

LIMITS = [{}, {"max_bytes": 1}, {"max_bytes": 400}, {"max_bytes": 3000}, {"max_files": 1}, {"max_files": 3}]


def log(first, count, layout="h64", id=0):
    made = [
        iggy.Message.new(b"x" * (1 + n % 50), id=id or 1 + n, offset=n, timestamp=n, layout=layout)
        for n in range(first, first + count)
    ]
    return iggy.encode_log(made, layout)


def read_of(*segments, **limits):
    """Return a reader that has read segments of ten messages."""
    folder = Folder()
    for first in segments:
        folder.write(name(1, first), log(first, 10))
    return Reader(folder, **limits).to_end()


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("deleted", [(), (0,), (0, 10)])
def test_segments_made_and_deleted_between_two_looks_are_reported_once(limits, deleted):
    """The range goes from the last offset that was read to the name of the next segment, whatever else is deleted."""
    reader = read_of(0, 10, **limits)
    for first in deleted:
        reader.folder.delete(name(1, first))
    for first in (50, 60):
        reader.folder.write(name(1, first), log(first, 10))
    reader.to_end()
    assert reader.missing == [(name(1, 50), 20, 49)]
    assert [offset for _, offset in reader.rows] == [*range(20), *range(50, 70)]
    assert reader.lost == []
    for first in (70, 100):
        reader.folder.write(name(1, first), log(first, 10))
    reader.to_end()
    assert reader.missing[1:] == [(name(1, 100), 80, 99)]


@pytest.mark.parametrize("layout", [name for name, facts in iggy.LAYOUTS.items() if facts.checksum])
def test_end_of_a_segment_of_any_layout_is_known(layout):
    """The last message of a batch counts, as the last message of a segment without batches."""
    folder = Folder({name(1, 0): log(0, 7, layout)})
    reader = Reader(folder).to_end()
    folder.delete(name(1, 0))
    folder.write(name(1, 9), log(9, 3, layout))
    reader.to_end()
    assert reader.missing == [(name(1, 9), 7, 8)]


def test_segment_that_grew_was_closed_and_deleted_unseen_is_reported_from_what_was_read():
    """Nothing tells where the deleted segment ended, and nothing between is left."""
    reader = read_of(0)
    reader.folder.delete(name(1, 0))
    reader.folder.write(name(1, 12), log(12, 1))
    reader.to_end()
    assert reader.missing == [(name(1, 12), 10, 11)]


@pytest.mark.parametrize("limit", [{"max_bytes": 300}, {"max_files": 1}])
def test_unread_bytes_of_a_deleted_segment_are_in_the_range(limit):
    """Messages that were seen and not read, and others that no look saw, are one row."""
    folder = Folder({name(1, 0): log(0, 10), name(1, 10): log(10, 10)})
    reader = Reader(folder, **limit)
    reader.run(reader.plan())
    done = [offset for _, offset in reader.rows]
    folder.files.clear()
    folder.write(name(1, 40), log(40, 1))
    reader.to_end()
    (first,) = {file for file, _, _ in reader.lost} or {name(1, 10)}
    assert reader.missing == [(name(1, 40), 10, 39)]
    assert [offset for _, offset in reader.rows] == [*done, 40]
    assert first == name(1, 0) if len(done) < 10 else first == name(1, 10)


@pytest.mark.parametrize("limits", LIMITS)
def test_segments_without_a_loss_give_no_row(limits):
    """The first look, the next segment, an empty one, a lower name and a topic made anew."""
    folder = Folder({name(1, first): log(first, 5) for first in (100, 200, 300)})
    reader = Reader(folder, **limits).to_end()
    folder.write(name(1, 305), b"")
    reader.to_end()
    folder.delete(name(1, 100))
    folder.write(name(1, 305), log(305, 5))
    folder.write(name(1, 250), log(250, 5))
    folder.write(name(2, 1000), log(1000, 5))
    reader.to_end()
    folder.files.clear()
    for first in (0, 900, 2000):
        folder.write(name(1, first), log(first, 5, id=77))
    reader.to_end()
    assert (reader.missing, reader.lost) == ([], [])
    assert len(reader.rows) == 45


def test_topic_purged_and_written_beyond_its_former_end_gives_no_row():
    """The first segment has the name of the former one, but other first bytes."""
    reader = read_of(0)
    reader.folder.write(name(1, 0), log(0, 3, id=99))
    reader.folder.write(name(1, 300), log(300, 3, id=98))
    reader.to_end()
    assert reader.missing == []


def test_empty_segment_after_a_deleted_one_shows_the_loss_at_once():
    """A server that deletes all it has makes an empty segment, named by the offset that comes next."""
    reader = read_of(0)
    reader.folder.delete(name(1, 0))
    reader.folder.write(name(1, 25), b"")
    reader.to_end()
    assert reader.missing == [(name(1, 25), 10, 24)]
    assert reader.plan() is None


def test_segment_whose_end_is_not_read_yet_is_no_loss():
    """A batch may read a part of a segment; the end of the whole segment counts, when it is read."""
    reader = read_of(0, max_bytes=300)
    reader.folder.write(name(1, 0), log(0, 30))
    reader.folder.write(name(1, 30), log(30, 3))
    reader.to_end()
    assert reader.missing == []
    assert [offset for _, offset in reader.rows] == [*range(33)]


def test_segment_that_a_listing_missed_is_no_loss():
    """A listing may show a segment and not one that was made before it."""
    reader = read_of(0)
    late = log(10, 10)
    reader.folder.files[name(1, 10)] = late
    reader.folder.times[name(1, 10)] = 5
    reader.folder.hidden = {name(1, 10)}
    reader.folder.write(name(1, 20), log(20, 5))
    reader.to_end()
    reader.folder.hidden = set()
    reader.to_end()
    assert reader.missing == []
    assert sorted(offset for _, offset in reader.rows) == [*range(25)]


def test_end_that_a_recovery_cut_is_the_end_that_counts():
    """A restarted server gives the offsets of lost messages again, so the name of its next segment can be lower."""
    whole = log(0, 20)
    folder = Folder({name(1, 0): whole})
    reader = Reader(folder).to_end()
    kept = parts.boundary(lambda p, n: whole[p : p + n], len(whole), len(whole) // 2, layout="h64").place
    count = len(iggy.decode_log(whole[:kept]))
    folder.write(name(1, 0), whole[:kept])
    reader.to_end()
    folder.delete(name(1, 0))
    folder.write(name(1, count + 2), log(count + 2, 3))
    reader.to_end()
    assert reader.missing == [(name(1, count + 2), count, count + 1)]


@pytest.mark.parametrize("given", [17, 18, 20])
def test_superseded_and_torn_messages_at_the_end_are_no_loss(given):
    """A server may go on in a new segment with a lower offset, or with the one after half a message."""
    reader = read_of(10)
    whole = reader.folder.files[name(1, 10)]
    reader.folder.write(name(1, 10), whole + log(20, 1)[:-3])
    reader.folder.write(name(1, given), log(given, 3, id=500))
    reader.folder.write(name(1, given + 3), log(given + 3, 1, id=500))
    reader.to_end()
    assert reader.missing == []


@pytest.mark.parametrize("read_before", [True, False])
def test_broken_end_of_a_segment_is_no_loss(read_before):
    """Broken bytes are reported, and may be all that is missing."""
    reader = read_of(0)
    first = 0 if read_before else 10
    reader.folder.write(name(1, first), log(first, 10) + b"\xff" * 500)
    reader.folder.write(name(1, first + 14), log(first + 14, 3))
    reader.to_end()
    assert reader.missing == []


def test_last_message_with_a_wrong_checksum_tells_no_end():
    """Its offset may be the wrong part."""
    reader, raw = read_of(0), bytearray(log(10, 10))
    (*_, last) = parts.last_starts(lambda place, length: bytes(raw[place : place + length]), len(raw))
    raw[last + 24] = 0
    reader.folder.write(name(1, 10), bytes(raw))
    reader.folder.write(name(1, 20), log(20, 3))
    reader.to_end()
    assert reader.missing == []


def test_segment_that_grew_since_it_was_listed_is_no_loss():
    """On some file systems, a listing has the size of a segment from before the next one was made."""
    reader = read_of(0)
    reader.folder.sizes = {name(1, 0): len(reader.folder.files[name(1, 0)])}
    reader.folder.write(name(1, 0), log(0, 15))
    for first in (15, 20):
        reader.folder.write(name(1, first), log(first, 5))
    reader.to_end()
    reader.folder.sizes = {}
    reader.to_end()
    assert reader.missing == []
    assert sorted(offset for _, offset in reader.rows) == [*range(25)]


@pytest.mark.parametrize("limits", [{"max_bytes": 1}, {"max_files": 1}])
def test_unread_segments_that_go_with_the_one_before_them_are_one_row(limits):
    """They were seen while the one before them was being read, so the offsets before them were not checked yet."""
    reader = read_of(0)
    reader.folder.write(name(1, 0), log(0, 20))
    for first in (30, 40):
        reader.folder.write(name(1, first), log(first, 5))
    reader = Reader.restarted(reader, 1000, **limits)
    reader.run(reader.plan())
    done = len(reader.rows)
    for first in (0, 30, 40):
        reader.folder.delete(name(1, first))
    reader.folder.write(name(1, 60), log(60, 1))
    reader.to_end()
    reported = [*reader.missing, *((file, start) for file, start, _ in reader.lost)]
    if "max_bytes" in limits:
        assert reported == [(name(1, 60), done, 59)]
    else:  # the first one had been read, so that the offsets before the second one were checked
        assert reported == [(name(1, 30), 20, 29), (name(1, 60), 30, 59)]


def test_last_segment_that_is_gone_keeps_its_end():
    """Segments of a lower name are still there, and a new one comes later."""
    reader = read_of(0)
    reader.folder.write(name(1, 10), log(10, 10))
    reader.to_end()
    reader.folder.delete(name(1, 10))
    reader.folder.write(name(2, 0), log(0, 1))
    reader.to_end()
    reader.folder.write(name(1, 20), log(20, 1))
    reader.folder.write(name(1, 30), log(30, 1))
    reader.to_end()
    assert reader.missing == [(name(1, 30), 21, 29)]


def test_segment_that_grows_beside_an_empty_one_is_no_loss():
    """A server may make the next segment before it has written the last messages of one."""
    reader = read_of(0)
    reader.folder.write(name(1, 15), b"")
    reader.folder.write(name(2, 0), log(0, 1))
    reader.to_end()
    reader.folder.write(name(1, 0), log(0, 15))
    reader.folder.write(name(1, 15), log(15, 1))
    reader.to_end()
    assert reader.missing == []


def test_checkpoint_of_a_former_version_goes_on():
    """Marks without offsets are read; from the next messages of a segment on, its end is known."""
    reader = read_of(0)
    reader.offset = {"version": 3, "segments": {file: mark[:6] for file, mark in reader.offset["segments"].items()}}
    unknown = json.loads(json.dumps(reader.offset))
    reader.folder.write(name(1, 0), log(0, 12))
    reader.to_end()
    reader.folder.write(name(1, 15), log(15, 1))
    reader.to_end()
    assert reader.missing == [(name(1, 15), 12, 14)]
    other = Reader(Folder({name(1, 15): log(15, 1)}))
    other.offset = unknown
    other.to_end()
    assert (other.missing, other.lost, len(other.rows)) == ([], [], 1)


@pytest.mark.parametrize(("indexed", "near", "missing"), [(True, 0, 1), (False, 1 << 20, 1), (False, 1000, 0)])
def test_end_of_a_long_segment_without_an_index_is_not_looked_for(monkeypatch, indexed, near, missing):
    """It would be read whole by the driver. With an index, or if little is unread, the last messages are read."""
    monkeypatch.setattr(following, "_NEAR", near)
    monkeypatch.setattr(Opened, "is_indexed", indexed)
    reader = read_of(0)
    for first, count in ((10, 900), (1000, 1)):
        reader.folder.write(name(1, first), log(first, count))
    reader.folder.read_in_all = 0
    reader.plan()
    assert (reader.folder.read_in_all < 2000) != bool(missing)
    reader.to_end()
    assert reader.missing == [(name(1, 1000), 910, 999)][:missing]
    assert len(reader.rows) == 911


def whole(raw):
    """Return the messages of a segment without the half one at its end."""
    end = parts.boundary(lambda place, length: raw[place : place + length], len(raw), len(raw), layout="h64").place
    return iggy.decode_log(raw[:end], "h64") if end else []


class Written(NamedTuple):
    """A message: its life of the topic, its offset and its own number."""

    life: int
    offset: int
    id: int


class Server:
    """A server of two topics as released ones are: offsets go on, and segments are named by the next offset."""

    def __init__(self, chance):
        self.chance, self.folder, self.serial = chance, Folder(), 0
        self.life, self.next, self.current = {1: 0, 2: 0}, {1: 0, 2: 0}, {1: name(1, 0), 2: name(2, 0)}
        self.rest = {1: b"", 2: b""}
        self.messages = {1: {}, 2: {}}
        """The messages of each topic by their own numbers."""
        self.purged = set()
        """The topics that were purged since the last look."""
        self.given = {1: set(), 2: set()}
        """Offsets of a life that were given twice."""

    def files_of(self, topic):
        return sorted(file for file in self.folder.files if f"topics/{topic}/" in file)

    def made(self, topic, count):
        raw = b""
        for _ in range(count):
            self.serial += 1
            offset, body = self.next[topic], b"x" * self.chance.randrange(1, 90)
            raw += iggy.encode_log(
                [iggy.Message.new(body, id=self.serial, offset=offset, timestamp=1, layout="h64")], "h64"
            )
            self.messages[topic][self.serial] = Written(self.life[topic], offset, self.serial)
            self.next[topic] += 1
        return raw

    def write(self, topic):
        raw = self.rest[topic] + self.made(topic, self.chance.randrange(1, 6))
        cut = self.chance.choice([0, 0, 10])
        file = self.current[topic]
        self.folder.write(file, self.folder.files.get(file, b"") + (raw[:-cut] if cut else raw))
        self.rest[topic] = raw[-cut:] if cut else b""

    def finish(self, topic):
        if self.rest[topic]:
            self.folder.write(self.current[topic], self.folder.files[self.current[topic]] + self.rest[topic])
        self.rest[topic] = b""

    def rotate(self, topic):
        self.finish(topic)
        file = name(topic, self.next[topic])
        if self.folder.files.get(self.current[topic]) and file != self.current[topic]:
            self.current[topic] = file
            self.folder.write(file, b"")

    def retain(self, topic):
        closed = [file for file in self.files_of(topic) if file < self.current[topic]]
        for file in closed[: self.chance.randrange(1, 4)]:
            self.folder.delete(file)

    def burst(self, topic):
        """Make and delete whole segments, so that no look sees them."""
        for _ in range(self.chance.randrange(1, 5)):
            self.write(topic)
            self.rotate(topic)
        for file in [file for file in self.files_of(topic) if file < self.current[topic]]:
            self.folder.delete(file)
        self.write(topic)

    def purge(self, topic):
        for file in self.files_of(topic):
            self.folder.delete(file)
        self.rest[topic], self.current[topic], self.next[topic] = b"", name(topic, 0), 0
        self.folder.write(name(topic, 0), b"")
        self.life[topic] += 1
        self.purged.add(topic)

    def crash(self, topic):
        """Lose the half message and up to two before it, and give their offsets again."""
        file, self.rest[topic] = self.current[topic], b""
        raw = self.folder.files.get(file)
        if not raw:
            return
        read = lambda place, length: raw[place : place + length]  # noqa: E731
        end = parts.boundary(read, len(raw), len(raw), layout="h64").place
        starts = [*parts.last_starts(read, end, layout="h64"), end]
        kept = starts[-self.chance.randrange(1, min(4, len(starts) + 1))]
        held = iggy.decode_log(raw[:kept], "h64")
        following = held[-1].offset + 1 if held else int(file[-24:-4])
        self.given[topic] |= {(self.life[topic], offset) for offset in range(following, self.next[topic])}
        self.next[topic] = following
        self.folder.write(file, raw[:kept])

    def step(self):
        topic = self.chance.choice([1, 2])
        actions = [self.write, self.rotate, self.retain, self.burst, self.purge, self.crash]
        self.chance.choices(actions, [10, 4, 2, 2, 0.5, 1])[0](topic)

    def present(self, topic):
        files = (self.folder.files[file] for file in self.files_of(topic))
        return {message.id for raw in files for message in whole(raw)}


@pytest.mark.details
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.volume) for n in range(4, 200))])
def test_stream_of_a_busy_server_reads_or_reports_each_message_once(seed):
    """Each loss after the first look at a topic is in one row, with other limits after each restart; no more is."""
    chance = random.Random(seed)
    server = Server(chance)
    reader, seen = Reader(server.folder), Counted(server)
    while server.serial < 400:
        for _ in range(chance.randrange(1, 5)):
            server.step()
        if chance.random() < 0.4:
            continue
        reader = Reader.restarted(reader, chance.choice([150, 5000]), **chance.choice(LIMITS))
        seen.run(reader, chance.choice([1, 1, 3, 100]))
    for topic in (1, 2):
        server.finish(topic)
    seen.run(reader, 1000)
    seen.check(reader)


class Counted:
    """The messages that a reader has reported, and from which on it must report them."""

    def __init__(self, server):
        self.server = server
        self.reported = {1: set(), 2: set()}
        self.first = {}
        """The first message at the first look, by topic and life."""

    def run(self, reader, most):
        for _ in range(most):
            first = {topic: min(self.server.present(topic), default=self.server.serial + 1) for topic in (1, 2)}
            end = reader.plan()
            if end is None:
                return
            for topic in (1, 2):
                if self.server.files_of(topic):
                    self.first.setdefault((topic, self.server.life[topic]), first[topic])
            before = len(reader.missing), len(reader.lost)
            reader.run(end)
            self.add(reader, *before)
            self.server.purged.clear()

    def add(self, reader, missing, lost):
        """Add the rows of a batch: each names messages that are gone and not read, once."""
        server, ranges = self.server, []
        for file, first, last in reader.missing[missing:]:
            ranges.append((int(file.split("/")[3]), first, last))
        for file, start, stop in reader.lost[lost:]:
            if file in server.folder.files:  # bytes that a crash cut off
                continue
            held = server.folder.deleted[file]
            starts = parts.last_starts(lambda p, n, held=held: held[p : p + n], len(held), layout="h64")
            offsets = [one.offset for place, one in zip(starts, whole(held), strict=True) if start <= place < stop]
            ranges += [(int(file.split("/")[3]), offset, offset) for offset in offsets]
        for topic, first, last in ranges:
            if topic in server.purged:  # nothing tells which messages of the former life were not seen
                continue
            for offset in range(first, last + 1):
                known = (server.life[topic], offset)
                assert known not in self.reported[topic], (topic, known)
                self.reported[topic].add(known)
                same = {id for id, one in server.messages[topic].items() if (one.life, one.offset) == known}
                gone = same - set(reader.ids) - server.present(topic)
                assert same, (topic, known)
                assert gone or known in server.given[topic], (topic, known)

    def check(self, reader):
        read, server = set(reader.ids), self.server
        assert len(read) == len(reader.ids)
        for topic in (1, 2):
            assert server.present(topic) <= read
            for id, message in server.messages[topic].items():
                known = (message.life, message.offset)
                life = (topic, message.life)
                if life[1] < server.life[topic] or id < self.first[life] or known in server.given[topic]:
                    continue
                assert (id in read) != (known in self.reported[topic]), (topic, message)


def test_offsets_stay_in_a_json_of_one_mark_per_segment():
    """The mark of the segment after the gap has the first missing offset, so a replay gives the same row."""
    reader = read_of(0)
    reader.folder.write(name(1, 30), log(30, 2))
    start, end = reader.offset, reader.plan()
    assert [mark[6:] for mark in end["segments"].values()] == [[10, -1], [32, 10]]
    for _ in range(2):
        reader.offset = start
        reader.run(end)
    assert reader.missing == [(name(1, 30), 10, 29)] * 2
    assert _marks.from_json(json.loads(json.dumps(end)), lambda file: file)[name(1, 30)].missing == 10
