"""Segments with torn bytes: every byte is in a row, and all messages after the torn ones are read."""

import io
import random
import struct
import sys

import pytest
from helpers.iggy_files import CHECKED, messages

import msgid
from msgid import iggy
from msgid.iggy.records import decoding
from msgid.iggy.records.scanning import scan

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from spark_ext.formats.iggy_source import IggyReader

FIRST = 700
SEGMENT = f"streams/1/topics/1/partitions/1/{FIRST:020d}.log"
TORN = ["h56-crc", "h56-xxh3", "h64"]
"""The layouts of the servers that append behind a torn message, and their neighbour."""
LENGTH_AT = {"m45": 37, "batch24": 8, "h56-crc": 48, "h56-xxh3": 48, "h64": 48, "batch256": 32}
"""Where a record has a length that other fields do not confirm."""
SEEDS = [*range(10), 22, 23, 41, 109, 134, 180, 225, 279, 381, 684, 762, 865, 1118]
"""The last ones had findings."""
FRAME_LENGTHS = (32, 36)
"""Where a message of a ``batch256`` batch has the lengths of its headers and payload."""


def records(layout, seed, count=40, first=FIRST):
    """Return the bytes of each record, and the offsets in it."""
    made = [one for one in messages(random.Random(seed), layout, count, first) if one.payload]
    return [iggy.encode(one, layout) for one in made], [one.offset for one in made]


def index_of(frames, layout):
    """Return the index of records: a server's of the layout."""
    places = [sum(map(len, frames[:number])) for number in range(len(frames) + 1)]
    if layout == "m45":
        return b"".join(struct.pack("<I", place) for place in places[:-1])
    if layout == "batch256":
        return b"".join(struct.pack("<QQQ", 0, 0, place) for place in places[:-1])
    ends = places[:-1] if layout == "batch24" else places[1:]
    return b"".join(struct.pack("<IIQ", 0, place, 0) for place in ends)


def read(path, **options):
    reader = IggyReader({"path": str(path), **options})
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def check_covers(rows, raw, layout):
    """Check that the rows have all bytes: each one ends where the next one starts."""
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
    """Return where the message ends at a place; in a batch, a message has less in front of its fields."""
    if layout == "batch24":
        return place + 4 + int.from_bytes(raw[place : place + 4], "little")
    if layout == "batch256":
        headers, length = (int.from_bytes(raw[place + at : place + at + 4], "little") for at in FRAME_LENGTHS)
        return place + 48 + headers + length
    return scan(raw, iggy.LAYOUTS[layout].code, place, known=len(raw), most=1).position


def written(folder, raw):
    path = folder / SEGMENT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("split", [1000, 1 << 20])
@pytest.mark.parametrize("layout", CHECKED)
def test_messages_after_torn_ones_are_read(layout, split, tmp_path):
    """A length above the limit, or bytes of 255, end no segment, with its layout and without, also in parts."""
    frames, offsets = records(layout, seed=split)
    index = index_of(frames, layout)
    chance = random.Random(layout)
    broken = sorted({0, len(frames) - 1, *chance.sample(range(len(frames)), 4)})
    for number in broken:
        frame, at = bytearray(frames[number]), LENGTH_AT[layout]
        frame[at : at + 4] = b"\xff\xff\xff\xff" if number % 2 else (1 << 27 | 1).to_bytes(4, "little")
        frames[number] = bytes(frame)
    raw = b"".join(frames)
    written(tmp_path, raw).with_suffix(".index").write_bytes(index)
    for asked in ("auto", layout):
        rows = read(tmp_path, splitBytes=str(split), layout=asked)
        good = [offset for number, offset in enumerate(offsets) if number not in broken]
        assert [row["offset"] for row in rows if row["reason"] is None] == good
        assert all(row["checksum_ok"] for row in rows if row["reason"] is None)
        check_covers(rows, raw, layout)
        torn = b"".join(row["original"] for row in rows if row["reason"] is not None)
        assert torn == b"".join(frames[number] for number in broken)


@pytest.mark.parametrize("layout", CHECKED)
def test_parts_of_a_segment_have_each_message_once(layout, tmp_path):
    """With an index that is right, cut, ahead of its log, empty, of places between records, or of other bytes."""
    frames, offsets = records(layout, seed=1)
    raw, right = b"".join(frames), index_of(frames, layout)
    path = written(tmp_path, raw)
    noise, between = random.Random(2).randbytes(500), index_of([b"abc", *frames], layout)
    for index in (right, right[: len(right) // 3], index_of([*frames, raw], layout), b"", bytes(64), noise, between):
        path.with_suffix(".index").write_bytes(index)
        for split in ("200", "900"):
            reader = IggyReader({"path": str(tmp_path), "splitBytes": split})
            parts = reader.partitions()
            assert len(parts) > 2 or index is not right
            rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
            assert [(row["offset"], row["reason"]) for row in rows] == [(offset, None) for offset in offsets]


@pytest.mark.parametrize(
    "layout", [*CHECKED[-2:], *(pytest.param(layout, marks=pytest.mark.details) for layout in CHECKED[:-2])]
)
def test_any_damage_leaves_every_byte_in_a_row(layout, tmp_path):
    """Bytes changed, left out and added at random: no byte is in no row, and no reader fails."""
    for seed in SEEDS:
        chance = random.Random(seed)
        frames = records(layout, seed)[0]
        raw = bytearray(b"".join(frames))
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(len(raw))
            raw[place : place + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
        path = written(tmp_path, bytes(raw))
        path.with_suffix(".index").write_bytes(index_of(frames, layout))
        rows = read(tmp_path, splitBytes=str(chance.choice([200, 3000, 1 << 20])))
        check_covers(rows, bytes(raw), layout)


def test_many_torn_bytes_are_in_several_rows(tmp_path, monkeypatch):
    """Every byte is kept, with the one reason."""
    monkeypatch.setattr(decoding, "_TORN_MAX", 1000)
    frames, offsets = records("m45", seed=3)
    noise = random.Random(1).randbytes(3500)
    written(tmp_path, b"".join(frames[:9]) + noise + b"".join(frames[9:]))
    rows = read(tmp_path)
    torn = [row for row in rows if row["reason"] is not None]
    start = sum(map(len, frames[:9]))
    assert b"".join(row["original"] for row in torn) == noise
    assert [row["position"] for row in torn] == [start, start + 1000, start + 2000, start + 3000]
    assert len({row["reason"] for row in torn}) == 1
    assert [row["offset"] for row in rows if row["reason"] is None] == offsets


def test_zeros_after_a_crash_are_passed(tmp_path):
    """A file system may leave zeros of a file that was extended before a crash."""
    frames, offsets = records("m45", seed=4)
    written(tmp_path, b"".join(frames[:9]) + bytes(20 << 20) + b"".join(frames[9:]))
    rows = read(tmp_path)
    assert [row["offset"] for row in rows if row["reason"] is None] == offsets
    assert sum(len(row["original"]) for row in rows if row["reason"] is not None) == 20 << 20


@pytest.mark.parametrize("layout", ["h56-crc", "h56-xxh3"])
def test_cost_of_a_search_is_linear_in_the_torn_bytes(layout, monkeypatch):
    """Each 8 bytes claim a long record of a fitting offset; the bytes that are checked are a multiple of all bytes."""
    checked = []
    probe, detect = decoding.probe, decoding.detect

    def uncounted(*arguments, **named):
        before, detection = len(checked), detect(*arguments, **named)
        del checked[before:]
        return detection

    def counted(data, *arguments):
        found = probe(data, *arguments)
        checked.append(len(data) if not found.needed else 0)
        return found

    monkeypatch.setattr("msgid.iggy.records.searching.probe", counted)
    monkeypatch.setattr(decoding, "detect", uncounted)
    monkeypatch.setattr(decoding, "_FIRST_CREDIT", 1 << 16)
    frames, offsets = records(layout, seed=5, count=9)
    for count in (5_000, 10_000):
        claims = struct.pack("<Q", 20_000) * count
        raw = b"".join(frames) + b"\xff" * 60 + claims + b"".join(frames)
        checked.clear()
        read_offsets = [one.offset for one in iggy.read_log(io.BytesIO(raw), malformed=lambda _: None)]
        assert read_offsets == offsets * 2
        assert 0 < sum(size for size in checked if size > 4096) < 8 * len(raw) + (1 << 16)


def test_file_of_another_name_is_read_by_its_own_path(tmp_path):
    """Only 20 digits are a first offset: a file named after a day is read, also after a torn message."""
    frames, offsets = records("m45", seed=5, first=3_000_000)
    frames[7] = frames[7][:8] + b"\xff" + frames[7][9:]
    path = tmp_path / "20240101.log"
    path.write_bytes(b"".join(frames))
    assert [row["offset"] for row in read(path)] == [*offsets[:7], None, *offsets[8:]]


def test_folder_of_a_server_has_other_files_than_segments(tmp_path):
    """A server keeps its own logs, its state and indexes beside the segments."""
    frames, offsets = records("h64", seed=5)
    written(tmp_path, b"".join(frames))
    for name in ("logs/iggy-server.log", "state/log", "metadata/journal.wal", "streams/1/20240101.log", "offsets/1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"2026-11-23 INFO started\n")
    (tmp_path / SEGMENT).with_suffix(".index").write_bytes(bytes(16))
    assert [row["offset"] for row in read(tmp_path)] == offsets


def test_file_that_shrinks_or_is_deleted_between_plan_and_read_is_an_error(tmp_path):
    """The error names the file: its messages were planned, and nobody can read them."""
    path = written(tmp_path, b"".join(records("m45", seed=6)[0]))
    reader = IggyReader({"path": str(tmp_path)})
    (part,) = reader.partitions()
    path.write_bytes(b"less")
    with pytest.raises(OSError, match=f"{path} has 4 bytes, and had .* when the query was planned"):
        list(reader.read(part))
    path.unlink()
    with pytest.raises(FileNotFoundError, match=str(path)):
        list(reader.read(part))


@pytest.mark.parametrize("layout", TORN)
@pytest.mark.parametrize("pure", [False, True])
def test_read_log_goes_on_after_a_torn_message(layout, pure, monkeypatch):
    """With and without NumPy, with the layout and without, for each size of a read."""
    if pure:
        monkeypatch.setitem(sys.modules, "numpy", None)
    frames, offsets = records(layout, seed=8)
    more, again = records(layout, seed=9, first=offsets[-1] - 3)
    start, cut = len(b"".join(frames)), len(frames[0]) - 3
    raw = b"".join(frames) + frames[0][:cut] + b"".join(more)
    for asked in ("auto", layout):
        for chunk in (50, 700, 1 << 20):
            errors = []
            read_offsets = [
                one.offset for one in iggy.read_log(io.BytesIO(raw), asked, chunk=chunk, malformed=errors.append)
            ]
            assert read_offsets == [*offsets, *again]
            (error,) = errors
            assert (error.offset, error.reason) == (start, f"a torn message of {cut} bytes before the next one")
        with pytest.raises(msgid.InvalidMessage, match="a torn message"):
            list(iggy.read_log(io.BytesIO(raw), asked))


def test_read_log_with_malformed_reports_the_torn_end_and_does_not_raise():
    """The end is torn bytes as any other."""
    frames, offsets = records("h64", seed=8)
    raw, errors = b"".join(frames), []
    found = [one.offset for one in iggy.read_log(io.BytesIO(raw[:-1]), "h64", malformed=errors.append)]
    assert found == offsets[:-1]
    assert [(type(error), error.offset) for error in errors] == [(msgid.TruncatedMessage, len(raw) - len(frames[-1]))]


def test_message_with_wrong_bytes_that_holds_another_one_is_not_torn():
    """The other one is its payload, because a message follows at its end."""
    inner = iggy.encode(iggy.Message.new(b"inner", id=1, offset=FIRST, timestamp=1, layout="h64"), "h64")
    frames, _ = records("h64", seed=2)
    outer = bytearray(iggy.encode(iggy.Message.new(inner, id=2, offset=FIRST, timestamp=1, layout="h64"), "h64"))
    outer[40] ^= 1
    for layout in ("auto", "h64"):
        found = iggy.decode_log(frames[0] + outer + frames[1], layout)
        assert [message.checksum_ok for message in found] == [True, False, True]
