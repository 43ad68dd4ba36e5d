"""Iggy messages as bytes that tests build: those of the documents, and frames with lengths that can be wrong."""

import json
import struct
import zlib

from helpers import vector_files as vectors

from msgid import iggy
from msgid.iggy import Message

DOCUMENTS = json.loads((vectors.FOLDER / "iggy.json").read_text())
MESSAGES = {row["name"]: row for row in DOCUMENTS["messages"]}
COMMANDS = {row["name"]: row for row in DOCUMENTS["commands"]}
ONE = iggy.encode(Message.new(b"payload", id=1, headers={"key": 5}, layout="m45"), "m45")
HUGE = (1 << 32) - 1


def framed(headers=b"", *, headers_length=None, payload=b"p", payload_length=None, state=1):
    """Return the bytes of a message with these headers; the lengths can be wrong."""
    fixed = struct.pack("<QBQ16sII", 0, state, 0, bytes(16), zlib.crc32(payload), headers_length or len(headers))
    return fixed + headers + struct.pack("<I", payload_length or len(payload)) + payload


def header(key=b"k", kind=2, value=b"v", key_length=None, value_length=None):
    """Return the bytes of a header; the lengths can be wrong."""
    return b"".join(
        (
            struct.pack("<I", len(key) if key_length is None else key_length),
            key,
            bytes([kind]),
            struct.pack("<I", len(value) if value_length is None else value_length),
            value,
        )
    )


BAD_HEADERS = [
    (header(b""), "a header's key must have 1 to 255 bytes, got 0", 41),
    (header(b"k" * 256), "a header's key must have 1 to 255 bytes, got 256", 41),
    (header(key_length=200), "within headers of 11 bytes a header's key needs 200 bytes, and 7 are left", 45),
    (header(b"\xff"), r"a header's key must be UTF-8, got b'\\xff'", 45),
    (header(kind=0), "a header's kind must be 1 to 15, got 0", 46),
    (header(kind=16), "a header's kind must be 1 to 15, got 16", 46),
    (header(value=b""), "a header's value must have 1 to 255 bytes, got 0", 47),
    (header(value_length=HUGE), "a header's value must have 1 to 255 bytes, got 4294967295", 47),
    (header(kind=3, value=b"\x02"), r"a header of kind bool with the value b'\\x02'", 47),
    (header(kind=7), "a header's value of 1 bytes for kind int64", 47),
    (header(value=b"\xff"), r"a header of kind string must be UTF-8, got b'\\xff'", 47),
    (header() + header(), "a second header 'k'", 52),
    (header()[:3], "within headers of 3 bytes the length of a header's key needs 4 bytes, and 3 are left", 41),
]
"""The bytes of headers, the reason why they are malformed, and the place of the error in a message."""
BROKEN = [
    ("", framed(state=7), "state must be 1, 10, 20 or 30, got 7", 8),
    ("", framed(state=0), "state must be 1, 10, 20 or 30, got 0", 8),
    ("truncated", framed() + b"x", "half a message of 1 bytes, which needs 45", 46),
    ("truncated", framed(headers_length=HUGE), "half a message of 46 bytes, which needs 4294967340", 0),
    ("truncated", framed(payload_length=HUGE), "half a message of 46 bytes, which needs 4294967340", 0),
    *(("", framed(block), reason, place) for block, reason, place in BAD_HEADERS),
]


LATE = 253_402_300_800 * 10**6
"""The first microsecond of the year 10000."""


def is_too_large(message):
    """Return whether a column of the table cannot hold a number of a message."""
    return message.offset >= 1 << 63 or max(message.timestamp, message.origin_timestamp or 0) >= LATE


def row(message):
    """Return a message as a row of the table, NULL for times after the year 9999 and offsets from 2**63 on."""

    def moment(micros):
        return None if micros is None or micros >= LATE else micros

    return {
        "offset": message.offset if message.offset < 1 << 63 else None,
        "state": None if message.state is None else str(message.state),
        "timestamp": moment(message.timestamp),
        "id": message.id.to_bytes(16, "little"),
        "checksum": None if message.checksum is None else (message.checksum + 2**63) % 2**64 - 2**63,
        "headers": [(str(key), {"kind": str(kind), "value": raw}) for key, (kind, raw) in message.headers.items()],
        "payload": message.payload,
        "origin_timestamp": moment(message.origin_timestamp),
        "checksum_ok": message.checksum_ok,
        "layout": message.layout,
    }


def rows(table):
    """Return a table's rows; times are microseconds."""
    import pyarrow as pa

    return [
        {**values, "timestamp": micros, "origin_timestamp": origin}
        for values, micros, origin in zip(
            table.drop_columns(["timestamp", "origin_timestamp"]).to_pylist(),
            *(table[name].cast(pa.int64()).to_pylist() for name in ("timestamp", "origin_timestamp")),
            strict=True,
        )
    ]
