"""A segment in parts: split points of every layout, from right and wrong indexes and without one."""

import itertools
import json
import random
import struct

import pytest
from helpers import vector_files as vectors
from helpers.iggy_files import CHECKED, messages

from msgid import iggy
from msgid.iggy import index as iggy_index
from msgid.iggy import parts
from msgid.iggy._records.rows import ROW, Row
from msgid.iggy._records.scanning import scan
from msgid.iggy.index import strides_of

pytest.importorskip("pyarrow")

VECTORS = {row["name"]: row for row in json.loads((vectors.FOLDER / "iggy_releases.json").read_text())["vectors"]}
LAYOUTS = pytest.mark.parametrize("layout", CHECKED)
FIRST = 100


class Log:
    """A segment in memory that counts the bytes that are read."""

    def __init__(self, raw):
        self.raw = raw
        self.read_in_all = 0

    def __call__(self, place, length):
        self.read_in_all += len(self.raw[place : place + length])
        return self.raw[place : place + length]


def made_log(layout, count=200, seed=3):
    """Return messages with payloads and their segment; batches have few messages."""
    chance = random.Random(seed)
    made = [message for message in messages(chance, layout, count, FIRST) if message.payload]
    step = 10 if iggy.LAYOUTS[layout].batch else 1
    raw = b"".join(iggy.encode_log(made[n : n + step], layout) for n in range(0, len(made), step))
    return made, raw


def records(raw, layout):
    """Return the rows of a segment."""
    return [Row._make(row) for row in ROW.iter_unpack(scan(raw, iggy.LAYOUTS[layout].code, known=len(raw)).rows)]


def index_of(raw, layout, stride=None):
    """Return the index that a server writes for a segment."""
    rows, entries = records(raw, layout), []
    last_of_batch = {row.batch: row for row in rows}
    first_of_batch = {row.batch: row for row in reversed(rows)}
    if layout == "m45":
        entries = [struct.pack("<I", row.position) for row in rows]
    elif layout == "batch24":
        for batch, row in last_of_batch.items():
            entry = struct.pack("<IIQ", row.offset - FIRST, batch, row.timestamp)
            entries.append(entry[: stride or 16])
    elif layout == "batch256":
        for batch, row in sorted(first_of_batch.items()):
            entries.append(struct.pack("<QQQ", row.offset, row.timestamp, batch))
    else:
        entries = [struct.pack("<IIQ", row.offset - FIRST, row.end, row.timestamp) for row in rows]
    return b"".join(entries)


def read_in_parts(raw, points, layout, chunk=3000):
    """Return the messages' offsets of each part, by a reader of its own."""
    read, edges = Log(raw), [*points, len(raw)]
    found = []
    for start, stop in itertools.pairwise(edges):
        decoded = list(parts.read_part(read, start, stop, len(raw), layout, chunk=chunk))
        assert all(one.error is None for one in decoded)
        found.append([offset for one in decoded for offset in one.table["offset"].to_pylist()])
    return found


def check_split(split, made, raw, every, layout):
    """Check that parts have each message once and are about as large as asked for."""
    assert split.points[0] == 0
    assert all(a < b for a, b in itertools.pairwise(split.points))
    for asked in ("auto", layout):
        found = read_in_parts(raw, split.points, asked)
        assert [offset for part in found for offset in part] == [message.offset for message in made]
        assert all(found)
    gaps = [b - a for a, b in zip(split.points, [*split.points[1:], len(raw)], strict=True)]
    assert all(gap >= every for gap in gaps[:-1])
    assert max(gaps) <= 3 * every


@LAYOUTS
@pytest.mark.parametrize("source", ["index", "walk"])
def test_parts_of_a_segment_have_each_message_once(layout, source):
    """Split points from the index and from a walk divide the segment evenly, and are read with and without a name."""
    made, raw = made_log(layout)
    index = index_of(raw, layout) if source == "index" else None
    for asked in ("auto", layout):
        split = parts.split_points(Log(raw), len(raw), 2000, index=index, layout=asked, first_offset=FIRST)
        assert (split.source, split.dropped, split.layout) == (source, 0, layout)
        check_split(split, made, raw, 2000, layout)


def test_index_of_batch24_has_entries_of_8_or_16_bytes():
    """The stride is the one whose points pass."""
    made, raw = made_log("batch24")
    for stride in strides_of("batch24"):
        index = index_of(raw, "batch24", stride)
        split = parts.split_points(Log(raw), len(raw), 2000, index=index, first_offset=FIRST)
        assert (split.source, split.dropped) == ("index", 0)
        check_split(split, made, raw, 2000, "batch24")


@pytest.mark.details
@LAYOUTS
def test_index_behind_its_log_is_walked_from_its_last_point(layout):
    """An index that ends early, or with half an entry, still divides the segment evenly."""
    made, raw = made_log(layout)
    index = index_of(raw, layout)
    for cut in (len(index) // 3, 30, 3, 0):
        split = parts.split_points(Log(raw), len(raw), 2000, index=index[:cut], first_offset=FIRST)
        check_split(split, made, raw, 2000, layout)


@LAYOUTS
def test_index_ahead_of_its_log_gives_no_points_past_the_end(layout):
    """A log that is cut, as after a crash, is divided up to its end; the half record is an error of the last part."""
    made, raw = made_log(layout)
    index, short = index_of(raw, layout), raw[: len(raw) // 2 + 1]
    split = parts.split_points(Log(short), len(short), 1000, index=index, first_offset=FIRST)
    assert all(point < len(short) for point in split.points)
    edges = [*split.points, len(short)]
    decoded = [
        found
        for start, stop in itertools.pairwise(edges)
        for found in parts.read_part(Log(short), start, stop, len(short))
    ]
    assert decoded[-1].error is not None
    offsets = [offset for found in decoded for offset in found.table["offset"].to_pylist()]
    assert offsets == [message.offset for message in made[: len(offsets)]]


WRONG = {
    "zeros": lambda index, chance: bytes(len(index)),
    "random": lambda index, chance: chance.randbytes(len(index)),
    "shifted by a byte": lambda index, chance: index[1:],
    "again from 0": lambda index, chance: index[: len(index) // 2 // 48 * 48] + index[: len(index) // 2 // 48 * 48],
    "backwards": lambda index, chance: index[::-1],
    "of 1 byte": lambda index, chance: b"\x01",
}


@pytest.mark.details
@LAYOUTS
@pytest.mark.parametrize("how", WRONG)
def test_wrong_index_never_gives_wrong_parts(layout, how):
    """Whatever the index says, each message is in one part; a walk replaces the points that fail."""
    made, raw = made_log(layout)
    index = WRONG[how](index_of(raw, layout), random.Random(5))
    split = parts.split_points(Log(raw), len(raw), 2000, index=index, first_offset=FIRST)
    check_split(split, made, raw, 2000, layout)


@pytest.mark.parametrize("name", ["index-rebuilt-0.5", "index-rebuilt-h56-xxh3"])
def test_rebuilt_index_is_not_used(name):
    """Start positions and negative offsets do not pass: the log is walked."""
    layout = VECTORS[name]["layout"]
    log = bytes.fromhex(VECTORS["log-h56-crc"]["hex"])
    made = [iggy.encode(message, layout) for message in iggy.decode_log(log)]
    raw = b"".join(made)
    index = bytes.fromhex(VECTORS[name]["hex"])
    split = parts.split_points(Log(raw), len(raw), 50, index=index, first_offset=FIRST)
    assert (split.source, split.layout) == ("walk", layout)
    assert split.points == [0, len(made[0]), len(made[0]) + len(made[1])]


@LAYOUTS
def test_rebuilt_index_of_a_long_segment_is_not_used(layout):
    """The same for many messages: minus the offsets, and start positions."""
    if not layout.startswith("h"):
        pytest.skip("no release rebuilt such an index")
    made, raw = made_log(layout)
    index = b"".join(struct.pack("<IIQ", (FIRST - row.offset) % 2**32, row.position, 0) for row in records(raw, layout))
    split = parts.split_points(Log(raw), len(raw), 2000, index=index, first_offset=FIRST)
    assert split.source == "walk"
    check_split(split, made, raw, 2000, layout)


@pytest.mark.parametrize("layout", ["h56-crc", "h56-xxh3", "h64"])
def test_index_of_a_server_that_deduplicates_is_used(layout):
    """Releases 0.5 to 0.8 wrote offset 0 and time 0; the positions are right."""
    made, raw = made_log(layout)
    index = b"".join(struct.pack("<IIQ", 0, row.end, 0) for row in records(raw, layout))
    split = parts.split_points(Log(raw), len(raw), 2000, index=index, first_offset=FIRST)
    assert (split.source, split.dropped) == ("index", 0)
    check_split(split, made, raw, 2000, layout)


@pytest.mark.parametrize("first", ["h56-crc", "h56-xxh3"])
@pytest.mark.parametrize("indexed", [True, False])
def test_parts_of_the_file_of_an_upgraded_server_have_each_message_once(first, indexed):
    """A walk that goes astray where the layout changes is put right by decoding."""
    chance = random.Random(17)
    old = [message for message in messages(chance, first, 300, FIRST) if message.payload]
    new = [message for message in messages(chance, "h64", 300, 2000) if message.payload]
    head, tail = iggy.encode_log(old, first), iggy.encode_log(new, "h64")
    raw = head + tail
    ends = [row.end for row in records(head, first)] + [len(head) + row.end for row in records(tail, "h64")]
    offsets = [message.offset - FIRST for message in old + new]
    index = b"".join(struct.pack("<IIQ", *pair, 0) for pair in zip(offsets, ends, strict=True))
    split = parts.split_points(Log(raw), len(raw), 2000, index=index if indexed else None, first_offset=FIRST)
    assert split.source == ("index" if indexed else "walk")
    check_split(split, old + new, raw, 2000, "auto")
    walked = parts.walk(Log(raw + b"half"), 0, len(raw) + 4)
    assert (walked.end, walked.layout) == (len(raw), "h64")


def test_parts_with_empty_payloads_are_read_with_the_layout_of_the_segment():
    """No checksum tells the layout of a part with an empty payload: the planner's layout does."""
    made = [iggy.Message.new(b"x" * (n % 2), id=n, offset=n, layout="m45") for n in range(9)]
    raw = iggy.encode_log(made, "m45")
    edges = range(0, len(raw) + 1, 91)
    found = [
        [one.error, *one.table["offset"].to_pylist()]
        for place in (0, 45)
        for start in edges
        for one in parts.read_part(Log(raw), start + place, start + (45, 91)[place > 0], len(raw), "m45", upgrade=True)
    ]
    assert sorted(offset for error, offset in found if error is None) == list(range(9))


@LAYOUTS
def test_walk_over_large_messages_reads_their_headers_only(layout):
    """Messages of 100 kB are stepped over."""
    made = [iggy.Message.new(b"x" * 100_000, id=n, offset=n, timestamp=n, layout=layout) for n in range(100)]
    log = Log(b"".join(iggy.encode(message, layout) for message in made) + b"half")
    walked = parts.walk(log, 0, len(log.raw), layout)
    assert (walked.end, walked.points) == (len(log.raw) - 4, [])
    assert log.read_in_all < 600_000


@LAYOUTS
def test_walk_over_a_wrong_checksum_still_finds_points(layout):
    """A corrupt message does not become a point; the next one does."""
    made, raw = made_log(layout)
    row = next(row for row in records(raw, layout) if (row.batch if row.batch >= 0 else row.position) >= 2000)
    broken = bytearray(raw)
    broken[row.payload] ^= 1
    split = parts.split_points(Log(bytes(broken)), len(raw), 2000, first_offset=FIRST)
    check_split(split, made, bytes(broken), 2000, layout)


def test_part_of_unknown_layout_is_one_error():
    """A part that starts with half a record says why it cannot be read."""
    _, raw = made_log("h64")
    (found,) = parts.read_part(Log(raw), 1, len(raw), len(raw))
    assert found.table.num_rows == 0
    assert "cannot tell the layout" in str(found.error)
    assert parts.split_points(Log(raw[1:]), len(raw) - 1, 100).layout is None


def read_between(raw, cuts, layout, index):
    """Return the offsets of parts that start at any byte, each read by a reader that finds its first record."""
    read, found = Log(raw), []
    for start, stop in itertools.pairwise([0, *cuts, len(raw)]):
        first = parts.boundary(read, len(raw), start, index=index, layout=layout, first_offset=FIRST)
        assert first.found or start == 0
        decoded = parts.read_part(read, first.place, stop, len(raw), layout, chunk=700, upgrade=True)
        for one in decoded if first.place < stop else ():
            assert one.error is None
            found += one.table["offset"].to_pylist()
    return found


@LAYOUTS
@pytest.mark.parametrize("indexed", ["no index", "right", *WRONG])
def test_parts_between_any_bytes_have_each_message_once(layout, indexed):
    """Readers that know a byte to start at, and no boundary, agree on where one ends and the next begins."""
    made, raw = made_log(layout)
    chance = random.Random(11)
    index = None if indexed == "no index" else index_of(raw, layout)
    if indexed in WRONG:
        index = WRONG[indexed](index, chance)
    for _ in range(3):
        cuts = sorted(chance.sample(range(1, len(raw)), chance.randrange(1, 12)))
        assert read_between(raw, cuts, layout, index) == [message.offset for message in made]


@pytest.mark.parametrize("first", ["h56-crc", "h56-xxh3"])
@pytest.mark.parametrize("indexed", [True, False])
def test_parts_between_any_bytes_of_an_upgraded_file_have_each_message_once(first, indexed):
    """The steps by lengths go astray where the layout changes; the check of the record tells."""
    chance = random.Random(19)
    old = [message for message in messages(chance, first, 100, FIRST) if message.payload]
    new = [message for message in messages(chance, "h64", 100, 2000) if message.payload]
    raw = iggy.encode_log(old, first) + iggy.encode_log(new, "h64")
    index = index_of(iggy.encode_log(old, first), first) if indexed else None
    for _ in range(8):
        cuts = sorted(chance.sample(range(1, len(raw)), 5))
        assert read_between(raw, cuts, first, index) == [message.offset for message in old + new]
    end = parts.boundary(Log(raw + b"half"), len(raw) + 4, len(raw) + 4, layout=first, index=index)
    assert end == (len(raw), "h64", False)


@LAYOUTS
@pytest.mark.parametrize("ahead", [0, 1, 50])
def test_place_behind_the_end_of_a_file_has_no_layout(layout, ahead):
    """As of a file that was cut off: no byte is read there, and the search ends."""
    raw = iggy.encode_log([iggy.Message.new(b"x", id=1, layout=layout)], layout)

    def bytes_at(place, length):
        assert length == 0  # else the search goes on for ever
        return b""

    assert parts.detect_file(bytes_at, len(raw), place=len(raw) + ahead).layout is None


@LAYOUTS
def test_boundary_with_an_index_reads_little_of_the_log(layout):
    """The last position of the index before the target is where the steps start."""
    made = [iggy.Message.new(b"x" * 100, id=n, offset=FIRST + n, timestamp=n, layout=layout) for n in range(20_000)]
    raw = b"".join(iggy.encode_log(made[n : n + 100], layout) for n in range(0, 20_000, 100))
    index = index_of(raw, layout)
    log, entries = Log(raw), Log(index)
    blocks = iggy_index.Blocks(entries, len(index))
    found = parts.boundary(log, len(raw), len(raw) // 2, index=blocks, first_offset=FIRST)
    without = parts.boundary(Log(raw), len(raw), len(raw) // 2, first_offset=FIRST)
    assert found == without
    assert found.place - len(raw) // 2 < 20_000
    assert log.read_in_all < 700_000
    assert entries.read_in_all <= 1 << 17


@LAYOUTS
def test_boundary_after_a_broken_record_is_not_found(layout):
    """A chain of records that is broken before the target gives the end of the last whole record."""
    made = [iggy.Message.new(b"x" * 9, id=n, offset=FIRST + n, timestamp=1, layout=layout) for n in range(200)]
    good, tail = iggy.encode_log(made[:100], layout), iggy.encode_log(made[100:], layout)
    raw = good + b"\xff" * 300 + tail
    found = parts.boundary(Log(raw), len(raw), len(raw) - 50, layout=layout)
    assert found[0::2] == (len(good), False)
