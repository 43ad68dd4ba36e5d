"""The compiled scanner and the Python scanner are equal on all bytes and raise only the documented error."""

import io
import random
import tracemalloc
from types import SimpleNamespace

import pytest
from helpers.commands import python
from helpers.iggy_files import messages, mutated

import msgid
from msgid import iggy
from msgid.iggy import records
from msgid.iggy.records import checksums, reference
from msgid.shared.validate import to_install

LAYOUTS = pytest.mark.parametrize("layout", iggy.LAYOUTS)
needs_native = pytest.mark.skipif(checksums.native is None, reason="the scanner is not compiled")


@needs_native
def test_xxh3_of_each_length_is_that_of_the_package():
    """The compiled XXH3 is compared for every length up to the second block, and for some of many blocks."""
    for length in (*range(1100), 2048, 2049, 3000, 100_000):
        data = random.Random(length).randbytes(length)
        assert checksums.native.xxh3(data) == checksums.reference_xxh3(data)


def test_scanner_with_another_number_is_not_used(monkeypatch):
    """A scanner of another version of the source would write rows that Python reads otherwise."""
    monkeypatch.setenv("MSGID_PURE", "")
    for place in range(len(checksums._NUMBERS)):
        for numbers in (checksums._NUMBERS, tuple(n + (at == place) for at, n in enumerate(checksums._NUMBERS))):
            other = SimpleNamespace(NUMBERS=numbers)
            monkeypatch.setattr(records, "_scan", other, raising=False)
            assert checksums._load() is (other if numbers == checksums._NUMBERS else None)


def compare(raw, layout, chance):
    """Check that both scanners return the same for bytes, with all combinations of arguments."""
    code = iggy.LAYOUTS[layout].code
    known = chance.choice([-1, len(raw), len(raw) + 50])
    place = chance.choice([0, 0, chance.randrange(len(raw) + 1)])
    within = chance.choice([0, 0, chance.randrange(len(raw) + 9)])
    arguments = (raw, code, place, known, within, chance.choice([64, 1 << 30]), chance.choice([1, 3, 1 << 60]))
    strict = chance.choice([-1, place, 1 << 60])
    assert tuple(reference.scan(*arguments, strict)) == checksums.native.scan(*arguments, strict)


@needs_native
@LAYOUTS
def test_scan_of_mutated_frames_is_the_same_compiled_and_in_python(layout):
    chance = random.Random(1)
    for _ in range(200):
        frame = iggy.encode_log(messages(chance, layout, chance.randrange(1, 5)), layout)
        raw = mutated(chance, frame) if chance.random() < 0.8 else frame
        compare(raw, chance.choice([layout, layout, *iggy.LAYOUTS]), chance)


@pytest.mark.parametrize(("layout", "place"), [("m45", 8), ("batch24", 24 + 12)])
def test_states_of_a_frame_are_those_of_msgid_and_no_others(layout, place):
    """Each of the other 252 bytes ends the log, compiled and in Python."""
    raw = bytearray(iggy.encode_log([iggy.Message.new(b"x", id=1, layout=layout)], layout))
    assert raw[place] in set(msgid.MessageState)
    arguments = (iggy.LAYOUTS[layout].code, 0, len(raw), 0, 1 << 30, 1 << 60, -1)
    for state in range(256):
        raw[place] = state
        if state in set(msgid.MessageState):
            iggy.decode_log(bytes(raw), layout)
        else:
            with pytest.raises(msgid.InvalidMessage, match="state must be"):
                iggy.decode_log(bytes(raw), layout)
        if checksums.native is not None:
            assert checksums.native.scan(bytes(raw), *arguments) == tuple(reference.scan(bytes(raw), *arguments))


@pytest.mark.parametrize("headers", [0, 1, 19, 20, 21, 60, 61, 65, 66, 1 << 31])
def test_headers_of_a_batch_end_within_their_message(headers):
    """A message of 20 bytes has room for as many bytes of headers, compiled and in Python."""
    raw = bytearray(iggy.encode(iggy.Message.new(bytes(20), id=1, layout="batch24"), "batch24"))
    raw[HEADERS_LENGTH_AT : HEADERS_LENGTH_AT + 4] = headers.to_bytes(4, "little")
    arguments = (bytes(raw), iggy.LAYOUTS["batch24"].code, 0, len(raw), 0, 1 << 30, 1 << 60, -1)
    scans = [tuple(reference.scan(*arguments))]
    if checksums.native is not None:
        scans.append(checksums.native.scan(*arguments))
    assert [bool(rows) for rows, *_ in scans] == [headers <= 20] * len(scans)


HEADERS_LENGTH_AT = 24 + 4 + 37
"""Where the first message of a ``batch24`` batch has the length of its headers."""


class Pipe(io.RawIOBase):
    """A file of valid messages and a broken one that is not seekable; it counts the bytes that are read."""

    def __init__(self, head, size):
        self.head = head
        self.left = size
        self.read_in_all = 0

    def read(self, size=-1):
        size = min(size, self.left)
        self.left -= size
        self.read_in_all += size
        part, self.head = self.head[:size], self.head[size:]
        return part + bytes(size - len(part))


LENGTH_AT = {"m45": 37, "previous": 32, "batch24": 8, "h56-crc": 52, "h56-xxh3": 52, "h64": 52, "batch256": 32}


@LAYOUTS
@pytest.mark.parametrize("claim", [200_000_000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_broken_length_in_600_mb_holds_little_memory(layout, claim):
    """A record above the limit raises an error at once, also for a file of unknown length."""
    made = [iggy.Message.new(b"x" * 1000, id=n, offset=n, timestamp=n, layout=layout) for n in range(10)]
    good, broken = iggy.encode_log(made, layout), bytearray(iggy.encode(made[0], layout))
    broken[LENGTH_AT[layout] : LENGTH_AT[layout] + 4] = claim.to_bytes(4, "little")
    pipe, found = Pipe(good + bytes(broken), 600_000_000), []
    tracemalloc.start()
    with pytest.raises(msgid.InvalidMessage, match="more than the limit") as caught:
        found.extend(iggy.read_log(pipe, layout))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found), type(caught.value), caught.value.offset) == (10, msgid.InvalidMessage, len(good))
    assert pipe.read_in_all < 4_000_000
    assert peak < 16_000_000


def test_message_longer_than_the_limit_is_read_with_another_limit():
    raw = iggy.encode(iggy.Message.new(bytes(5_000_000), id=1, layout="h64"), "h64")
    with pytest.raises(msgid.InvalidMessage, match="more than the limit"):
        list(iggy.read_log(Pipe(raw, len(raw)), "h64", limit=1_000_000))
    (message,) = iggy.read_log(Pipe(raw, len(raw)), "h64")
    assert len(message.payload) == 5_000_000
    for limit in (0, 1 << 40, -1):
        with pytest.raises(ValueError, match="limit must be"):
            list(iggy.read_log(io.BytesIO(raw), limit=limit))


@pytest.mark.parametrize("layout", ["m45", "h64"])
def test_message_with_malformed_headers_does_not_stop_the_others(layout):
    """The table has a row and a reason for the message; the log calls back or raises."""
    pytest.importorskip("pyarrow")
    made = [iggy.Message.new(b"x", id=n, offset=n, headers={"key": "value"}, layout=layout) for n in range(3)]
    parts = [iggy.encode(message, layout) for message in made]
    parts[1] = parts[1].replace(b"key", b"\xff\xff\xff")
    if layout == "h64":  # the checksum covers the headers: compute it again, as a faulty client does
        parts[1] = checksums.xxh3(parts[1][8:]).to_bytes(8, "little") + parts[1][8:]
    raw = b"".join(parts)
    found = iggy.decode_table(raw, layout)
    assert found.table["offset"].to_pylist() == [0, 1, 2]
    assert found.table["headers"].is_null().to_pylist() == [False, True, False]
    ((row, error, original),) = found.malformed
    assert (row, found.error) == (1, None)
    assert original in parts[1]
    errors = []
    read = list(iggy.read_log(io.BytesIO(raw), layout, malformed=errors.append))
    assert [message.offset for message in read] == [0, 2]
    assert [(str(e), e.offset) for e in errors] == [(str(error), error.offset)]
    with pytest.raises(msgid.InvalidMessage, match="must be UTF-8"):
        list(iggy.read_log(io.BytesIO(raw), layout))


def test_reference_runs_where_the_compiled_scanner_is_not_wanted():
    """``MSGID_PURE=1`` reads with the Python scanner, and names the missing package if xxhash is not installed."""
    code = (
        "import sys; from msgid import iggy; from msgid.iggy.records import checksums as c;"
        "raw = iggy.encode(iggy.Message.new(b'a', id=1, layout='h64'), 'h64');"
        "print(c.BACKEND, iggy.decode_log(raw)[0].checksum_ok);"
        "crc = iggy.encode(iggy.Message.new(b'a', id=1, layout='m45'), 'm45');"
        "sys.modules['xxhash'] = None;"
        "print(iggy.decode_log(crc, layout='m45')[0].layout);"
        "iggy.decode_log(raw)"
    )
    done = python(code, MSGID_PURE="1")
    assert done.stdout.split() == ["python", "True", "m45"]
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: cannot check XXH3 checksums without xxhash: {to_install('iggy')}"
    )


def test_log_of_many_messages_takes_constant_memory():
    large = iggy.encode(iggy.Message.new(bytes(8_000), id=1, layout="m45"), "m45")

    class Endless(io.RawIOBase):
        def __init__(self, count):
            self.left = count

        def read(self, size=-1):
            count = min(size // len(large) + 1, self.left)
            self.left -= count
            return large * count

    tracemalloc.start()
    count = sum(1 for _ in iggy.read_log(Endless(8_000), "m45"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 8_000
    assert peak < 8_000_000
