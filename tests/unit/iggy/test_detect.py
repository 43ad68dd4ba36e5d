"""Which layout a file has: told by checksums, never guessed, with a reason where it cannot be told."""

import io
import random

import pytest
from helpers.iggy_files import CHECKED, contents, messages

import msgid
from msgid import iggy
from msgid.iggy.records.searching import detect

LAYOUTS = pytest.mark.parametrize("layout", CHECKED)


class Pipe(io.BytesIO):
    """A file that cannot seek."""

    def seek(self, *_):
        raise OSError("not seekable")


def found_in(chance, layout):
    """Make a file and read it without naming its layout, whole and in chunks; return whether the layout was found."""
    first = chance.choice([0, 100, 2**40])
    made = messages(chance, layout, chance.randrange(1, 8), first)
    raw = iggy.encode_log(made, layout)
    detection = detect(raw, first_offset=first)
    if detection.layout is None:
        # Only the checksum of an empty payload says nothing.
        assert layout in ("m45", "batch24")
        assert not any(message.payload for message in made)
        assert "no message with a payload" in detection.failures[layout]
        return False
    assert detection.layout == layout
    assert set(detection.failures) == {*iggy.LAYOUTS} - {layout}
    assert contents(iggy.decode_log(raw, first_offset=first)) == contents(made)
    for file in (io.BytesIO(raw), Pipe(raw)):
        read = iggy.read_log(file, chunk=chance.choice([10, 100, 10_000]), first_offset=first)
        assert contents(read) == contents(made)
    return True


@pytest.mark.parametrize(("count", "least"), [(30, 20), pytest.param(1000, 900, marks=pytest.mark.volume)])
@LAYOUTS
def test_layout_of_many_files_is_found(layout, count, least):
    """The found layout is never another one, and where it cannot be told the reason says why."""
    chance = random.Random(20260923)
    told = sum(found_in(chance, layout) for _ in range(count))
    assert told == count if layout not in ("m45", "batch24") else told >= least


@pytest.mark.parametrize("first", ["h56-crc", "h56-xxh3"])
@pytest.mark.parametrize("second", ["h56-xxh3", "h64"])
@pytest.mark.parametrize("chunk", [100, 100_000])
def test_file_of_an_upgraded_server_is_read_in_both_layouts(first, second, chunk):
    """The layout changes at the record from which on the old checksum fails."""
    chance = random.Random(11)
    old, new = messages(chance, first, 30), messages(chance, second, 30, first=1000)
    newest = messages(chance, "h64", 5, first=2000)
    raw = iggy.encode_log(old, first) + iggy.encode_log(new, second) + iggy.encode_log(newest, "h64")
    read = list(iggy.read_log(io.BytesIO(raw), chunk=chunk))
    assert read == old + new + newest
    assert [message.layout for message in read] == [first] * 30 + [second] * 30 + ["h64"] * 5
    assert all(message.checksum_ok for message in read)
    pytest.importorskip("pyarrow")
    expected = list(dict.fromkeys([first, second, "h64"]))
    assert iggy.decode_table(raw).layouts == expected


def test_file_of_an_upgraded_server_with_a_wrong_checksum_at_the_boundary_is_read():
    """The last old message is corrupt: it alone has a wrong checksum, and the new layout is found after it."""
    chance = random.Random(13)
    old, new = messages(chance, "h56-crc", 5), messages(chance, "h64", 5, first=1000)
    before = bytearray(iggy.encode_log(old, "h56-crc"))
    before[-len(iggy.encode(old[-1], "h56-crc")) + 30] ^= 1
    read = iggy.decode_log(bytes(before) + iggy.encode_log(new, "h64"))
    assert [message.checksum_ok for message in read] == [True] * 4 + [False] + [True] * 5


@pytest.mark.parametrize(
    ("raw", "error", "reason"),
    [
        (b"no messages, but text that is long enough to be a record of every layout" * 9, "InvalidMessage", "h64: "),
        (bytes(504), "InvalidMessage", "m45: state must be 1, 10, 20 or 30, got 0"),
        (
            iggy.encode(iggy.Message.new(b"", id=1, layout="m45"), "m45") * 2,
            "TruncatedMessage",
            "m45: no message with a payload",
        ),
        (iggy.encode(iggy.Message.new(b"hello", id=1), "h64")[:-1], "TruncatedMessage", "h64: the record needs 69"),
        (iggy.encode(iggy.Message.new(b"hello", id=1), "h64")[:7], "TruncatedMessage", "batch256: the record needs"),
    ],
)
def test_bytes_of_no_known_layout_are_one_error_with_a_reason_for_each(raw, error, reason):
    with pytest.raises(getattr(msgid, error), match=f"cannot tell the layout: .*{reason}") as caught:
        iggy.decode_log(raw)
    assert type(caught.value).__name__ == error
    assert caught.value.offset == 0
    assert all(f"{layout}: " in str(caught.value) for layout in iggy.LAYOUTS)
    pytest.importorskip("pyarrow")
    assert str(iggy.decode_table(raw).error) == str(caught.value)


@LAYOUTS
def test_layout_of_a_file_whose_first_offset_is_below_its_name_is_not_found(layout):
    """The number in the file's name is the lowest offset."""
    raw = iggy.encode(iggy.Message.new(b"hello", id=1, offset=99, layout=layout), layout)
    assert detect(raw, first_offset=99).layout == layout
    with pytest.raises(msgid.InvalidMessage, match=f"{layout}: offset 99 is below 100"):
        iggy.decode_log(raw, first_offset=100)


def test_first_record_with_a_wrong_checksum_needs_a_named_layout():
    """Nothing is guessed: the caller may name the layout, and then the message has a wrong checksum."""
    raw = bytearray(iggy.encode_log([iggy.Message.new(b"hello", id=n, offset=n) for n in range(3)], "h64"))
    raw[66] ^= 1
    with pytest.raises(msgid.InvalidMessage, match="h64: wrong checksum"):
        iggy.decode_log(bytes(raw))
    assert [message.checksum_ok for message in iggy.decode_log(bytes(raw), "h64")] == [False, True, True]


@pytest.mark.parametrize("layout", ["x", None, 7, ["h64"]])
def test_layout_that_does_not_exist_is_refused(layout):
    for call in (iggy.decode_log, iggy.decode_table, iggy.decode_poll, iggy.decode):
        with pytest.raises(ValueError, match=r"layout must be one of auto, previous, m45, .*, batch256, got"):
            call(b"", layout)
    with pytest.raises(ValueError, match="layout must be one of previous"):
        iggy.encode_log([], "auto")
