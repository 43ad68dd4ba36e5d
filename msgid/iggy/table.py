"""Iggy messages as an Arrow table: the boundaries are found one by one, all else is done a column at a time."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy.headers import decode_headers
from msgid.iggy.wire import U32, Layout, Reader, shape_of
from msgid.state import CODES, MessageState

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa

__all__ = ["Decoded", "decode_table", "read_tables", "schema"]

CHUNK: Final = 1 << 20
_PAIR: Final = struct.Struct("<II")
_LENGTH_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1
_TIMESTAMP_MAX: Final = 253_402_300_799_999_999
"""The last microsecond of the year 9999: more no database's timestamp holds."""


class Decoded(NamedTuple):
    """What `decode_table` found."""

    table: pa.RecordBatch
    """The messages before the first that is none."""
    positions: np.ndarray[Any, Any]
    """The byte at which each begins, int64."""
    length: int
    """How many bytes they take."""
    error: InvalidMessage | None
    """Why there are no more; None where the bytes ended with a message."""


def schema() -> pa.Schema:
    """Give the columns of a table of messages.

    offset int64; state text, NULL in the layout ``previous``; timestamp in microseconds, UTC; id of 16 bytes as on the
    wire; checksum int64; headers, a map of key to (kind, value); payload.
    """
    import pyarrow as pa

    header = pa.struct([pa.field("kind", pa.string()), pa.field("value", pa.binary())])
    return pa.schema(
        [
            pa.field("offset", pa.int64()),
            pa.field("state", pa.string()),
            pa.field("timestamp", pa.timestamp("us", "UTC")),
            pa.field("id", pa.binary()),
            pa.field("checksum", pa.int64()),
            pa.field("headers", pa.map_(pa.string(), header)),
            pa.field("payload", pa.binary()),
        ]
    )


def decode_table(data: bytes | memoryview, layout: Layout = "current", *, base: int = 0) -> Decoded:
    """Read messages one after the other, up to the end of the bytes or the first that is no message.

    Args:
        data: messages, as a segment's ``.log`` file holds them.
        layout: ``current`` or ``previous``.
        base: where the bytes start in their file; it is added to the place that an error has.

    Raises:
        ValueError: there are 2 GB or more.

    Returns:
        the messages of `schema`, where they begin, how many bytes they take, and what is wrong after them. An offset of
        2**63 or more and a timestamp after the year 9999 do not fit the columns, and are wrong.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)])
    >>> found = decode_table(log + b"?")
    >>> found.table["payload"].to_pylist(), found.length, str(found.error)
    ([b'a', b'b'], 92, 'invalid message: half a message of 1 bytes, at byte 92')
    """
    import numpy as np

    if len(data) > _LENGTH_MAX:
        raise ValueError(f"{len(data)} bytes, more than the {_LENGTH_MAX} of a table: read_tables makes several")
    fixed_size, fields = shape_of(layout).fixed.size, shape_of(layout).fields
    starts, payloads, error = _boundaries(data, fixed_size, fields["headers_length"][0], base)
    ends = [*starts[1:], payloads.pop() if payloads else 0]
    at = np.asarray(starts, dtype=np.int64)
    every = np.frombuffer(data, dtype=np.uint8)
    rows = every[at[:, None] + np.arange(fixed_size)] if starts else np.empty((0, fixed_size), np.uint8)
    dtype = np.dtype(
        {
            "names": list(fields),
            "formats": [type for _, type in fields.values()],
            "offsets": [offset for offset, _ in fields.values()],
            "itemsize": fixed_size,
        }
    )
    fixed = np.ascontiguousarray(rows).view(dtype).reshape(-1)
    good, wrong = _first_wrong(fixed, at, fields, base)
    headers, good, wrong = _headers(data, fixed["headers_length"], starts, fixed_size, good, wrong, base)
    length = (ends[good - 1] if good else 0) if wrong or good < len(starts) else (ends[-1] if starts else 0)
    table = _batch(data, fixed[:good], headers, starts, payloads[:good], ends[:good], layout)
    return Decoded(table, at[:good] + base, length, wrong or error)


def read_tables(
    file: BinaryIO, layout: Layout = "current", *, chunk: int = CHUNK, base: int = 0, length: int | None = None
) -> Iterator[Decoded]:
    """Read a file of messages of any size, a table for every so many bytes.

    Args:
        file: open for reading bytes.
        layout: ``current`` or ``previous``.
        chunk: how many bytes are read at once; more are held only for a message that is longer.
        base: where the file stands, for the places that are given.
        length: how many bytes there are to read. Default: to the end; then a length that is broken, and larger than
            what is there, is known at the end alone, with the bytes up to there in memory.

    Yields:
        what `decode_table` gives, without empty ones; only the last has an error, and nothing is read after it.

    >>> import io
    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)])
    >>> [(found.table.num_rows, str(found.error)) for found in read_tables(io.BytesIO(log + b"?"), chunk=50)]
    [(1, 'None'), (1, 'None'), (0, 'invalid message: half a message of 1 bytes, at byte 92')]
    """
    held, wanted = b"", chunk
    while True:
        more = file.read(wanted if length is None else min(wanted, length))
        length = None if length is None else length - len(more)
        held += more
        found = decode_table(held, layout, base=base)
        if more and isinstance(found.error, TruncatedMessage):
            needed = _needed(memoryview(held)[found.length :], layout)
            if length is None or needed <= len(held) - found.length + length:
                found = found._replace(error=None)
        if found.table.num_rows or found.error is not None:
            yield found
        if found.error is not None or not more:
            return
        held = held[found.length :]
        base += found.length
        wanted = max(chunk, len(held))  # a long message is held once, not decoded again for every chunk of it


def _needed(data: memoryview, layout: Layout) -> int:
    """Say how many bytes the message that starts here takes, as far as it says so by now."""
    shape = shape_of(layout)
    if len(data) < shape.fixed.size:
        return shape.least
    least = shape.least + int(U32.unpack_from(data, shape.fields["headers_length"][0])[0])
    return least if len(data) < least else least + int(U32.unpack_from(data, least - U32.size)[0])


def _boundaries(
    data: bytes | memoryview, fixed_size: int, headers_length_at: int, base: int
) -> tuple[list[int], list[int], InvalidMessage | None]:
    """Find where messages start and where their payloads do; the last of the latter is where the last message ends."""
    pair, one = _PAIR.unpack_from, U32.unpack_from
    starts: list[int] = []
    payloads: list[int] = []
    least = fixed_size + U32.size
    place, end, last = 0, len(data), len(data) - least
    while place <= last:
        # The headers' length is the last that is fixed: without headers the payload's length is what comes next.
        headers, length = pair(data, place + headers_length_at)
        payload = place + least
        if headers:
            payload += headers
            if payload > end:
                break
            (length,) = one(data, payload - U32.size)
        following = payload + length
        if following > end:
            break
        starts.append(place)
        payloads.append(payload)
        place = following
    payloads.append(place)
    if place == end:
        return starts, payloads, None
    return starts, payloads, TruncatedMessage(f"half a message of {end - place} bytes", base + place)


def _first_wrong(
    fixed: np.ndarray[Any, Any], at: np.ndarray[Any, Any], fields: dict[str, tuple[int, str]], base: int
) -> tuple[int, InvalidMessage | None]:
    """Find the first row with a value that its column cannot have: how many are before it, and what is wrong."""
    import numpy as np

    wrong: tuple[int, InvalidMessage | None] = (len(fixed), None)
    allowed: dict[str, Any] = {
        "offset": lambda column: column <= _INT64_MAX,
        "timestamp": lambda column: column <= _TIMESTAMP_MAX,
        "state": lambda column: np.isin(column, [int(state) for state in MessageState]),
    }
    most = {"offset": f"more than {_INT64_MAX}", "timestamp": "after the year 9999", "state": f"not {CODES}"}
    for name in ("offset", "state", "timestamp"):
        if name in fields:
            bad = np.flatnonzero(~allowed[name](fixed[name]))
            if len(bad) and bad[0] < wrong[0]:
                place = base + int(at[bad[0]]) + fields[name][0]
                wrong = int(bad[0]), InvalidMessage(f"{name} {fixed[name][bad[0]]}, {most[name]}", place)
    return wrong


def _headers(
    data: bytes | memoryview,
    lengths: np.ndarray[Any, Any],
    starts: list[int],
    fixed_size: int,
    good: int,
    wrong: InvalidMessage | None,
    base: int,
) -> tuple[tuple[Any, list[str], list[str], list[bytes]], int, InvalidMessage | None]:
    """Read the headers of the messages that have some; where that fails, that is the first wrong one."""
    import numpy as np

    counts = np.zeros(len(starts), dtype=np.int32)
    keys: list[str] = []
    kinds: list[str] = []
    values: list[bytes] = []
    for row in np.flatnonzero(lengths[:good]):
        start = starts[row] + fixed_size
        length = int(lengths[row])
        try:
            read = decode_headers(Reader(data, start, start + length, base))
        except TruncatedMessage as error:
            good, wrong = int(row), InvalidMessage(f"within headers of {length} bytes {error.reason}", error.offset)
            break
        except InvalidMessage as error:
            good, wrong = int(row), error
            break
        counts[row] = len(read)
        keys += read
        kinds += [str(header.kind) for header in read.values()]
        values += [header.raw for header in read.values()]
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts[:good], dtype=np.int32)])
    return (offsets, keys, kinds, values), good, wrong


def _batch(
    data: bytes | memoryview,
    fixed: np.ndarray[Any, Any],
    headers: tuple[Any, list[str], list[str], list[bytes]],
    starts: list[int],
    payloads: list[int],
    ends: list[int],
    layout: Layout,
) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    def binary(held: bytes | memoryview, offsets: Any) -> pa.Array:
        return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(held)])

    rows, columns = len(fixed), schema()
    # What lies before a payload and the payload, in turns, are one array over the bytes as they are: every second
    # value of it is a payload, and those are copied by Arrow at once.
    edges = np.empty(2 * rows + 1, np.int32)
    edges[0:-1:2], edges[1::2], edges[-1] = starts[:rows], payloads, ends[-1] if rows else 0
    bodies = binary(data, edges).take(pa.array(np.arange(1, 2 * rows, 2, dtype=np.int32)))
    offsets, keys, kinds, values = headers
    items = pa.StructArray.from_arrays([pa.array(kinds, pa.string()), pa.array(values, pa.binary())], ["kind", "value"])
    current = layout == "current"
    if current:
        names = pa.array([str(state) for state in MessageState], pa.string())
        codes = np.searchsorted([int(state) for state in MessageState], fixed["state"]).astype(np.int32)
        states = names.take(pa.array(codes))
        checksums = pa.array(fixed["checksum"].astype(np.int64))
    else:
        states, checksums = pa.nulls(rows, pa.string()), pa.nulls(rows, pa.int64())
    return pa.RecordBatch.from_arrays(
        [
            pa.array(fixed["offset"].astype(np.int64)),
            states,
            pa.array(fixed["timestamp"].astype(np.int64)).cast(columns.field("timestamp").type),
            binary(np.ascontiguousarray(fixed["id"]).tobytes(), np.arange(rows + 1, dtype=np.int32) * np.int32(16)),
            checksums,
            pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(keys, pa.string()), items),
            bodies,
        ],
        schema=columns,
    )
