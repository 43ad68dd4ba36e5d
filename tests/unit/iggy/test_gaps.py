"""Segments with broken bytes: every byte is in a row, and all messages after the broken ones are read."""

import io
import random
import struct
import sys

import pytest
from helpers.iggy_files import messages

import msgid
from msgid import iggy
from msgid.iggy._records.scanning import scan
from msgid.iggy._records.stepping import RecordFile

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from spark_ext.formats._iggy_stream import IggyStreamReader
from spark_ext.formats.iggy_source import IggyReader

FIRST = 700
NAME = f"{FIRST:020d}.log"
SEGMENT = f"streams/1/topics/1/partitions/1/{NAME}"
SURE = ["m45", "batch24", "h56-crc", "h56-xxh3", "h64", "batch256"]
LENGTH_AT = {"m45": 37, "batch24": 8, "h56-crc": 48, "h56-xxh3": 48, "h64": 48, "batch256": 32}
"""Where a record has a length that other fields do not confirm."""
SEEDS = [*range(10), 22, 23, 41, 109, 134, 180, 225, 279, 381, 684, 762, 865, 1118]
"""The last ones had findings."""
FRAME_LENGTHS = (32, 36)
"""Where a message of a ``batch256`` batch has the lengths of its headers and payload."""


def records(layout, seed, count=40, first=FIRST):
    """The bytes of each record, and the offsets in it."""
    made = [one for one in messages(random.Random(seed), layout, count, first) if one.payload]
    return [iggy.encode(one, layout) for one in made], [one.offset for one in made]


def read(reader):
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def check_covers(rows, raw, layout):
    """Check that the rows have all bytes: each gap, message or head of a batch ends where the next one starts."""
    original = {row["position"]: row["original"] for row in rows if row["original"] is not None}
    facts = iggy.LAYOUTS[layout]
    places = sorted(row["position"] for row in rows)
    assert places[0] in (0, facts.batch)
    for place, after in zip(places, [*places[1:], len(raw)], strict=True):
        if place in original:
            assert raw[place : place + len(original[place])] == original[place]
            end = place + len(original[place])
        else:
            end = end_of_message(raw, place, layout)
        heads = after - end  # an empty batch of the layout batch24 is a head alone
        assert heads == 0 or (heads > 0 and facts.batch and heads % facts.batch == 0), (place, end, after)


def end_of_message(raw, place, layout):
    """Where the message ends at a place, by its lengths; in a batch, a message has less in front of its fields."""
    if layout == "batch24":
        return place + 4 + int.from_bytes(raw[place : place + 4], "little")
    if layout == "batch256":
        headers, length = (int.from_bytes(raw[place + at : place + at + 4], "little") for at in FRAME_LENGTHS)
        return place + 48 + headers + length
    return scan(raw, iggy.LAYOUTS[layout].code, place, known=len(raw), most=1).place


def written(folder, raw):
    path = folder / SEGMENT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("split", [150, 1000, 1 << 20])
@pytest.mark.parametrize("layout", SURE)
def test_messages_after_broken_ones_are_read(layout, split, tmp_path):
    """A length above the limit, or bytes of 255, end no segment: neither in the first record nor within it."""
    frames, offsets = records(layout, seed=split)
    chance = random.Random(layout)
    broken = sorted({0, len(frames) - 1, *chance.sample(range(len(frames)), 4)})
    for number in broken:
        frame = bytearray(frames[number])
        at = LENGTH_AT[layout]
        frame[at : at + 4] = b"\xff\xff\xff\xff" if number % 2 else (1 << 27 | 1).to_bytes(4, "little")
        frames[number] = bytes(frame)
    raw = b"".join(frames)
    written(tmp_path, raw)
    rows = read(IggyReader({"path": str(tmp_path), "splitBytes": str(split)}))
    good = [offset for number, offset in enumerate(offsets) if number not in broken]
    assert [row["offset"] for row in rows if row["reason"] is None] == good
    assert all(row["checksum_ok"] for row in rows if row["reason"] is None)
    check_covers(rows, raw, layout)
    lost = b"".join(row["original"] for row in rows if row["reason"] is not None)
    assert lost == b"".join(frames[number] for number in broken)


@pytest.mark.parametrize("layout", SURE)
def test_stream_reads_on_after_a_broken_message_of_the_active_segment(layout, tmp_path):
    """A broken message is a row once the next one is there, and half a message still waits for its rest."""
    frames, offsets = records(layout, seed=1)
    at = LENGTH_AT[layout]
    frames[5] = frames[5][:at] + b"\xff\xff\xff\xff" + frames[5][at + 4 :]
    path = written(tmp_path, b"".join(frames[:6]))
    reader = IggyStreamReader({"path": str(tmp_path)})
    start, batches = reader.initialOffset(), []
    for raw in (b"".join(frames[:6]), b"".join(frames[:9]) + frames[9][:-3], b"".join(frames)):
        path.write_bytes(raw)
        end = reader.latestOffset(start, ReadAllAvailable())
        parts = reader.partitions(start, end)
        batches.append([row for part in parts for batch in reader.read(part) for row in batch.to_pylist()])
        start = end
    first, second, third = batches
    assert [row["offset"] for row in first] == offsets[:5]
    assert [row["offset"] for row in second] == [None, *offsets[6:9]]
    assert second[0]["original"] == frames[5]
    assert [row["offset"] for row in third] == offsets[9:]


@pytest.mark.parametrize("layout", SURE)
@pytest.mark.parametrize("number", [0, 5])
def test_half_message_of_the_active_segment_waits_whatever_is_in_it(layout, number, tmp_path):
    """A payload may hold a copy of another message, which does not belong to this segment."""
    frames, offsets = records(layout, seed=1)
    copy = iggy.encode(iggy.Message.new(b"copied", id=1, offset=FIRST + 20, timestamp=1, layout=layout), layout)
    outer = iggy.Message.new(copy + b"x" * 50, id=1, offset=offsets[number], timestamp=1, layout=layout)
    frames[number] = iggy.encode(outer, layout)
    path = written(tmp_path, b"".join(frames[: number + 1])[:-9])
    reader = IggyStreamReader({"path": str(tmp_path)})
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    path.write_bytes(b"".join(frames))
    end = reader.latestOffset(start, ReadAllAvailable())
    parts = [*reader.partitions(reader.initialOffset(), start), *reader.partitions(start, end)]
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == offsets


@pytest.mark.parametrize("ahead", [1, 50])
@pytest.mark.parametrize("layout", SURE)
def test_index_that_points_behind_the_end_of_its_log_does_not_stop_a_reader(layout, ahead, tmp_path):
    """As of a log whose last messages a crash took, or an index that is read after the size of its log."""
    frames, offsets = records(layout, 1)
    raw = b"".join(frames)

    def bytes_at(place, length):
        assert length > 0  # else the reader waits for ever
        return raw[place : place + length]

    codes = (iggy.LAYOUTS[layout].code,)
    assert RecordFile(bytes_at, len(raw), 1 << 20).code_at(len(raw) + ahead, codes, 0) is None
    entries = [struct.pack("<IIQ", n, len(raw) + ahead + 100 * n, 1) for n in range(5)]
    written(tmp_path, raw).with_suffix(".index").write_bytes(b"".join(entries))
    rows = read(IggyReader({"path": str(tmp_path)}))
    assert [row["offset"] for row in rows] == offsets
    assert {row["reason"] for row in rows} == {None}


@pytest.mark.parametrize(
    "layout", [*SURE[-2:], *(pytest.param(layout, marks=pytest.mark.details) for layout in SURE[:-2])]
)
def test_any_damage_leaves_every_byte_in_a_row(layout, tmp_path):
    """Bytes changed, left out and added at random: no byte is in no row, and no reader fails."""
    for seed in SEEDS:
        chance = random.Random(seed)
        raw = bytearray(b"".join(records(layout, seed)[0]))
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(len(raw))
            raw[place : place + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
        path = written(tmp_path, bytes(raw))
        rows = read(IggyReader({"path": str(tmp_path), "splitBytes": str(chance.choice([200, 3000, 1 << 20]))}))
        check_covers(rows, bytes(raw), layout)
        path.unlink()


def test_a_large_gap_is_in_several_rows(tmp_path, monkeypatch):
    """Every byte is kept, and each row says which bytes it has."""
    monkeypatch.setattr("spark_ext.formats._iggy_reading._ORIGINAL_MAX", 1000)
    frames, offsets = records("m45", seed=3)
    noise = random.Random(1).randbytes(3500)
    raw = b"".join(frames[:9]) + noise + b"".join(frames[9:])
    written(tmp_path, raw)
    rows = read(IggyReader({"path": str(tmp_path)}))
    gap = [row for row in rows if row["reason"] is not None]
    assert b"".join(row["original"] for row in gap) == noise
    start = sum(map(len, frames[:9]))
    assert f"(bytes {start} to {start + 1000} of {start} to {start + 3500})" in gap[0]["reason"]
    assert [row["offset"] for row in rows if row["reason"] is None] == offsets


def test_zeros_after_a_crash_are_passed_in_a_moment(tmp_path):
    """A file system may leave zeros of a file that was extended before a crash."""
    frames, offsets = records("m45", seed=4)
    raw = b"".join(frames[:9]) + bytes(20 << 20) + b"".join(frames[9:])
    written(tmp_path, raw)
    rows = read(IggyReader({"path": str(tmp_path)}))
    assert [row["offset"] for row in rows if row["reason"] is None] == offsets
    assert sum(len(row["original"]) for row in rows if row["reason"] is not None) == 20 << 20


def test_file_of_another_name_is_read_by_its_own_path(tmp_path):
    """Only 20 digits are a first offset: a file named after a day is read, also after a broken message."""
    frames, offsets = records("m45", seed=5, first=3_000_000)
    frames[7] = frames[7][:8] + b"\xff" + frames[7][9:]
    path = tmp_path / "20240101.log"
    path.write_bytes(b"".join(frames))
    rows = read(IggyReader({"path": str(path)}))
    assert [row["offset"] for row in rows] == [*offsets[:7], None, *offsets[8:]]


def test_folder_of_a_server_has_other_files_than_segments(tmp_path):
    """A server keeps its own logs, its state and indexes beside the segments."""
    frames, offsets = records("h64", seed=5)
    written(tmp_path, b"".join(frames))
    for name in ("logs/iggy-server.log", "state/log", "metadata/journal.wal", "streams/1/20240101.log", "offsets/1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"2026-11-23 INFO started\n")
    (tmp_path / SEGMENT).with_suffix(".index").write_bytes(bytes(16))
    assert [row["offset"] for row in read(IggyReader({"path": str(tmp_path)}))] == offsets


def test_file_that_shrinks_between_plan_and_read_has_a_row_that_says_so(tmp_path):
    """The bytes that are gone are reported, also if none is left."""
    frames, offsets = records("m45", seed=6)
    path = written(tmp_path, b"".join(frames))
    reader = IggyReader({"path": str(tmp_path), "splitBytes": "1000"})
    planned, size = reader.partitions(), len(b"".join(frames))
    for kept in (b"".join(frames[:5]), b""):
        path.write_bytes(kept)
        rows = [row for part in planned for batch in reader.read(part) for row in batch.to_pylist()]
        assert [row["offset"] for row in rows if row["reason"] is None] == offsets[: len(rows) - len(planned)][:5]
        gone = [row["reason"] for row in rows if row["reason"] is not None]
        assert gone[-1].endswith(f"to {size} of the segment, which was cut off before they were read")
        assert sum(map(lost_bytes, gone)) == size - len(kept)


def lost_bytes(reason):
    words = reason.split()
    return int(words[4]) - int(words[2])


TORN = ["h56-crc", "h56-xxh3", "h64"]
"""The layouts of the servers that append behind a torn message, and their neighbour."""


def torn_log(layout, chance):
    """Bytes of a log with torn messages, offsets and ends of the whole ones, and the places of the torn ones."""
    raw, offsets, ends, torn, first = b"", [], [], [], FIRST
    for _ in range(chance.randrange(2, 5)):
        frames, given = records(layout, chance.randrange(1 << 30), count=chance.randrange(4, 9), first=first)
        if raw and frames:
            torn.append(len(raw))
            raw += frames[0][: chance.randrange(1, len(frames[0]))]
            first = max(FIRST, given[0] - chance.randrange(5))
            frames, given = records(layout, chance.randrange(1 << 30), count=5, first=first)
        for frame in frames:
            raw += frame
            ends.append(len(raw))
        offsets += given
        first = max([first, *offsets[-1:]]) + 1
    return raw, offsets, ends, torn


def index_of(offsets, ends):
    """The index of a server, which lacks the messages that it does not serve."""
    entries = zip(offsets, ends, served(offsets), strict=True)
    return b"".join(struct.pack("<IIQ", offset - FIRST, end, 0) for offset, end, is_served in entries if is_served)


def served(offsets):
    """Whether a server gives each message: no later one has its offset or a lower one."""
    return [offset < min(offsets[place + 1 :], default=1 << 62) for place, offset in enumerate(offsets)]


@pytest.mark.parametrize("layout", TORN)
def test_messages_that_a_restarted_server_appends_behind_others_are_read(layout, tmp_path):
    """Torn and superseded messages have a reason, however the file is split, with and without its index."""
    for seed in range(3):
        raw, offsets, ends, torn = torn_log(layout, random.Random(f"{layout} {seed}"))
        path = written(tmp_path, raw)
        index = path.with_suffix(".index")
        foreign = b"".join(struct.pack("<QQQ", n, n, n * 90) for n in range(60))  # that of another release
        for held in (None, index_of(offsets, ends), foreign):
            index.unlink(missing_ok=True)
            if held is not None:
                index.write_bytes(held)
            for size in (90, 300, 1 << 20):
                rows = read(IggyReader({"path": str(tmp_path), "splitBytes": str(size)}))
                whole = [row for row in rows if row["checksum_ok"]]
                assert [row["offset"] for row in whole] == offsets, seed
                assert [row["reason"] is None for row in whole] == served(offsets), (seed, size, held)
                assert {row["state"] for row in whole} <= {None, "unavailable"}
                assert {row["position"] for row in rows if not row["checksum_ok"]} >= set(torn), seed
                check_covers(rows, raw, layout)


@pytest.mark.parametrize("layout", TORN)
def test_offset_stands_once_among_good_messages_wherever_the_index_ends(layout, tmp_path):
    """A server that is killed again and again may leave messages of several lives behind the end of its index."""
    chance, raw, offsets, ends, first = random.Random(3), b"", [], [], FIRST
    for life in range(3):
        frames, given = records(layout, life, count=6, first=first)
        for frame in frames:
            raw += frame
            ends.append(len(raw))
        offsets += given
        first = given[-1] - chance.randrange(4)
    index = index_of(offsets, ends)
    path = written(tmp_path, raw)
    for entries in range(len(index) // 16 + 1):
        path.with_suffix(".index").write_bytes(index[: 16 * entries])
        for size in (300, 1 << 20):
            rows = read(IggyReader({"path": str(tmp_path), "splitBytes": str(size)}))
            assert [row["offset"] for row in rows] == offsets
            assert [row["reason"] is None for row in rows] == served(offsets), (entries, size)


@pytest.mark.parametrize("layout", TORN)
@pytest.mark.parametrize("pure", [False, True])
def test_read_log_goes_on_after_a_torn_message(layout, pure, monkeypatch):
    """With and without NumPy, and for each size of a read."""
    if pure:
        monkeypatch.setitem(sys.modules, "numpy", None)
    frames, offsets = records(layout, seed=8)
    more, again = records(layout, seed=9, first=offsets[-1] - 3)
    start, cut = len(b"".join(frames)), len(frames[0]) - 3
    raw = b"".join(frames) + frames[0][:cut] + b"".join(more)
    for chunk in (50, 700, 1 << 20):
        errors = []
        read_offsets = [one.offset for one in iggy.read_log(io.BytesIO(raw), chunk=chunk, malformed=errors.append)]
        assert read_offsets == [*offsets, *again]
        (error,) = errors
        assert (error.offset, error.reason) == (start, f"a torn message of {cut} bytes before the next one")
    with pytest.raises(msgid.InvalidMessage, match="a torn message"):
        list(iggy.read_log(io.BytesIO(raw)))


def test_message_with_wrong_bytes_that_holds_another_one_is_not_torn():
    """The other one is its payload, because a message follows at its end."""
    inner = iggy.encode(iggy.Message.new(b"inner", id=1, offset=FIRST, timestamp=1, layout="h64"), "h64")
    frames, _ = records("h64", seed=2)
    outer = bytearray(iggy.encode(iggy.Message.new(inner, id=2, offset=FIRST, timestamp=1, layout="h64"), "h64"))
    outer[40] ^= 1
    found = iggy.decode_log(frames[0] + outer + frames[1])
    assert [message.checksum_ok for message in found] == [True, False, True]


@pytest.mark.details
@pytest.mark.parametrize("layout", TORN)
def test_stream_reads_a_segment_with_torn_messages_at_every_stage_of_its_growth(layout, tmp_path):
    """Each message comes once, and each torn one is in a row, wherever a micro-batch ends."""
    for seed in range(5):
        chance = random.Random(f"{layout} {seed}")
        raw, offsets, ends, torn = torn_log(layout, chance)
        path = written(tmp_path, b"")
        reader = IggyStreamReader({"path": str(tmp_path), "splitBytes": "400"})
        start, rows = reader.initialOffset(), []
        for size in sorted({*chance.choices(range(len(raw)), k=6), len(raw)}):
            path.write_bytes(raw[:size])
            count = sum(place <= size for place in ends)
            path.with_suffix(".index").write_bytes(index_of(offsets[:count], ends[:count]))
            end = reader.latestOffset(start, ReadAllAvailable())
            parts = reader.partitions(start, end)
            rows += [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
            start = end
        assert [row["offset"] for row in rows if row["checksum_ok"]] == offsets, seed
        assert {row["position"] for row in rows if not row["checksum_ok"]} >= set(torn), seed
        check_covers(rows, raw, layout)
        path.unlink()


def test_torn_message_that_claims_more_than_the_segment_has_is_passed_once_the_index_goes_on(tmp_path):
    """Its length comes from the next message. Without the index, it could be half a message whose rest will come."""
    frames, offsets = records("h56-xxh3", seed=3, count=4)
    for id in range(1 << 12):
        new = iggy.Message.new(b"next", id=id, offset=offsets[-1] + 1, timestamp=1, layout="h56-xxh3")
        behind = iggy.encode(new, "h56-xxh3")
        if 1 << 16 < int.from_bytes(behind[:4], "little") < 1 << 27:
            break
    raw = b"".join(frames)
    ends = [sum(map(len, frames[: n + 1])) for n in range(len(frames))]
    raw += behind[:52] + behind
    path = written(tmp_path, raw)
    path.with_suffix(".index").write_bytes(index_of(offsets, ends))
    reader = IggyStreamReader({"path": str(tmp_path)})
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    path.with_suffix(".index").write_bytes(index_of([*offsets, new.offset], [*ends, len(raw)]))
    end = reader.latestOffset(start, ReadAllAvailable())
    read_offsets = []
    for first, last in ((reader.initialOffset(), start), (start, end)):
        rows = [
            row for part in reader.partitions(first, last) for batch in reader.read(part) for row in batch.to_pylist()
        ]
        read_offsets.append([row["offset"] for row in rows])
    assert read_offsets == [offsets, [None, new.offset]]
