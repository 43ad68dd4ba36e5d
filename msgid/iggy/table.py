"""Decode Iggy messages into an Arrow table: one scan finds the messages, then each column is built at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from msgid.errors import InvalidMessage
from msgid.iggy.log import reader_of
from msgid.iggy.records.decoding import CHUNK, NAMES, LogDecoder
from msgid.iggy.records.header_columns import header_columns
from msgid.iggy.records.rows import NO_SUM, SUM_RIGHT, SUM_WRONG, row_type
from msgid.iggy.records.searching import LONGEST
from msgid.iggy.wire import HAS_ORIGIN, LAYOUTS, Layout, name_of
from msgid.messages import MessageState
from msgid.shared.known_tables import Columns, KnownTable
from msgid.shared.moments import last_moment
from msgid.shared.validate import INT32_MAX, INT64_MAX, check_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa

    from msgid.iggy.records.header_columns import HeaderColumns

_LENGTH_MAX: Final = INT32_MAX
_TIMESTAMP_MAX: Final = last_moment(1_000_000)
"""The last microsecond of the year 9999, which is the maximum of timestamps in most databases."""
_LIMITS: Final = {
    "offset": ("offset", INT64_MAX, f"more than {INT64_MAX}"),
    "timestamp": ("timestamp", _TIMESTAMP_MAX, "after the year 9999"),
    "origin_timestamp": ("origin", _TIMESTAMP_MAX, "after the year 9999"),
}
"""For columns of numbers: the field of a row, the largest number that the column holds, and the reason for the rest."""
ROWS: Final = KnownTable(
    Columns("id_text", ("source",), offset="offset", timestamp="timestamp", content=("payload",)),
    ("id", "id_text", "source", "offset", "state", "timestamp", "payload"),
)
"""The columns that an audit reads of the rows of Iggy's data source on Spark, whose IDs are text in ``id_text``."""


class Malformed(NamedTuple):
    """A message of the table with a malformed part."""

    row: int
    error: InvalidMessage
    original: bytes
    """The bytes of the message."""


class Decoded(NamedTuple):
    """The result of `decode_table`, and a part of the result of `read_tables`."""

    table: pa.RecordBatch
    """The messages before the first error."""
    positions: np.ndarray[Any, Any]
    """The position of the first byte of each message, int64."""
    length: int
    """The number of bytes of all messages."""
    error: InvalidMessage | None
    """The error after the messages; None if the bytes end after a complete message."""
    malformed: list[Malformed]
    """Messages with malformed headers, an offset of 2**63 or more, or a time after the year 9999; that cell is NULL."""
    layouts: list[str]
    """The layouts of the messages, in the order of the bytes."""
    position: int = 0
    """The position of the first byte."""
    torn: bytes = b""
    """Bytes that are not messages, for the reason in ``error``. Such a result of `read_tables` has 0 messages."""


def schema() -> pa.Schema:
    """Return the schema of a table of messages.

    ``offset`` is int64. ``state`` is text, NULL in layouts without it. ``timestamp`` is in microseconds, UTC. ``id``
    has the 16 bytes of the ID. ``checksum`` is int64 and holds the 64 bits of an XXH3 checksum as a signed number.
    ``headers`` is a map of key to (kind, value); a `HeaderKey` of another kind is a text. ``origin_timestamp`` is NULL
    in layouts without it, and ``checksum_ok`` is NULL in the layout ``previous``. The other columns are ``payload`` and
    ``layout``.
    """
    _check_packages()
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
            pa.field("origin_timestamp", pa.timestamp("us", "UTC")),
            pa.field("checksum_ok", pa.bool_()),
            pa.field("layout", pa.string()),
        ]
    )


def decode_table(data: bytes | memoryview, layout: Layout = "auto", *, base: int = 0, first_offset: int = 0) -> Decoded:
    """Decode consecutive messages, up to the end of the bytes or the first error.

    Args:
        data: Bytes of the ``.log`` file of a segment.
        layout: Name of a layout. Default: detected by the checksum of the first record. A later layout of an upgraded
            server is detected within the file.
        base: Position of the first byte in its file, which is added to positions in errors.
        first_offset: Number in the file's name; the first message has this offset or a later one.

    Returns:
        The messages with the columns of `schema`, their positions, their total size, and the error after them. A
        wrong checksum is not an error: ``checksum_ok`` is False. Malformed headers, and offsets and times that their
        column cannot hold, are listed in ``malformed``.

    Raises:
        ValueError: if the data has 2 GB or more.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)], "h64")
    >>> found = decode_table(log + b"?")
    >>> found.table["payload"].to_pylist(), found.length, str(found.error)
    ([b'a', b'b'], 130, 'invalid message: half a message of 1 bytes, which needs 64, at byte 130')
    """
    if len(data) > _LENGTH_MAX:
        raise ValueError(f"{len(data)} bytes, more than the {_LENGTH_MAX} of a table: read_tables makes several")
    decoder = LogDecoder(name_of(layout, auto=True), first_offset=first_offset, limit=len(data))
    _check_packages()
    decoded = decoder.decode(data, len(data), base)
    return _table_of(data, decoded.rows, decoded.position, base)._replace(error=decoded.error)


def read_tables(
    file: BinaryIO,
    layout: Layout = "auto",
    *,
    chunk: int = CHUNK,
    base: int = 0,
    length: int | None = None,
    first_offset: int = 0,
    limit: int = LONGEST,
    upgrade: bool = False,
) -> Iterator[Decoded]:
    """Read a file of messages of any size as several tables, and go on behind torn bytes.

    Args:
        file: File opened for reading bytes.
        layout: Layout as for `decode_table`.
        chunk: Bytes per read; a longer record needs more memory.
        base: Current position of the file, which is added to all returned positions.
        length: Number of bytes to read. Default: to the end of the file.
        first_offset: First offset as for `decode_table`.
        limit: Maximum length of a record in bytes; a length field above it is an error.

        upgrade: Whether a later layout can follow the named one, as it can with ``auto``.

    Yields:
        Results of `decode_table`: messages without an ``error``, or torn bytes with one, at most 16 MiB. The next
        messages are those of the next record whose checksum is correct.

    >>> import io
    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)], "h64")
    >>> [(found.table.num_rows, found.torn) for found in read_tables(io.BytesIO(log + b"?"), chunk=50)]
    [(1, b''), (1, b''), (0, b'?')]
    """
    reader = reader_of(
        file, layout, chunk=chunk, first_offset=first_offset, length=length, limit=limit, base=base, upgrade=upgrade
    )
    _check_packages()
    for part in reader.chunks():
        decoded = _table_of(part.data, part.rows, part.end, part.base)
        yield decoded if part.error is None else decoded._replace(error=part.error, torn=bytes(part.data))


def _check_packages() -> None:
    check_installed("a table of Iggy's messages", "arrow", "numpy", "pyarrow")


def _table_of(data: bytes | memoryview, packed: bytes, end: int, base: int) -> Decoded:
    """Return the table of the messages of rows."""
    import numpy as np

    rows = np.frombuffer(packed, dtype=row_type())
    headers = header_columns(data, packed, rows, base)
    numbers = {name: _numbers(rows, name, base) for name in _LIMITS}
    wrong = headers.malformed
    for _, large in numbers.values():
        wrong = large | wrong
    malformed = [
        Malformed(row, reason, bytes(data[int(rows["position"][row]) : int(rows["end"][row])]))
        for row, reason in sorted(wrong.items())
    ]
    table = _batch(data, rows, headers, {name: column for name, (column, _) in numbers.items()})
    codes = rows["layout"]
    firsts = np.sort(np.unique(codes, return_index=True)[1])
    layouts = [NAMES[code] for code in codes[firsts]]
    return Decoded(table, rows["position"] + base, end, None, malformed, layouts, base)


def _numbers(rows: Any, name: str, base: int) -> tuple[pa.Array, dict[int, InvalidMessage]]:
    """Return a column of numbers, NULL for those that it cannot hold, and an error for each of these."""
    import numpy as np
    import pyarrow as pa

    field, most, reason = _LIMITS[name]
    values, type = rows[field], schema().field(name).type
    large = values > most
    errors = {
        int(row): InvalidMessage(f"{name} {values[row]}, {reason}", base + int(rows["position"][row]))
        for row in np.flatnonzero(large)
    }
    missing = large | ~np.array(HAS_ORIGIN)[rows["layout"]] if name == "origin_timestamp" else large
    return pa.array(values.astype(np.int64), mask=missing if missing.any() else None).cast(type), errors


def _column(codes: Any, names: dict[int, str | None]) -> pa.Array:
    """Return a column with the text of each code."""
    import numpy as np
    import pyarrow as pa

    if len(codes) and (codes == codes[0]).all():
        return pa.repeat(pa.scalar(names[int(codes[0])], pa.string()), len(codes))
    known = sorted(names)
    indexes = np.searchsorted(known, codes).astype(np.int32)
    return pa.array([names[code] for code in known], pa.string()).take(pa.array(indexes))


def _batch(
    data: bytes | memoryview,
    rows: Any,
    headers: HeaderColumns,
    numbers: dict[str, pa.Array],
) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    def binary(data: bytes | memoryview, offsets: Any) -> pa.Array:
        return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])

    count, columns = len(rows), schema()
    # One Arrow array over the original bytes has a slice before each payload and the payload, in turns. Every second
    # value is a payload, and Arrow copies those values in one operation.
    edges = np.zeros(2 * count + 1, np.int32)
    edges[1::2] = rows["payload"]
    edges[2::2] = rows["payload"] + rows["payload_length"]
    bodies = binary(data, edges).take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32) + 1))
    items = pa.StructArray.from_arrays([headers.kinds, headers.values], ["kind", "value"])
    missing = _mask(set(headers.malformed), count + 1) if headers.malformed else None
    starts = pa.array(headers.offsets, pa.int32(), mask=missing)
    states: dict[int, str | None] = {0: None, **{int(state): str(state) for state in MessageState}}
    sums, has_none = (rows["sum"] == SUM_RIGHT) & (rows["batch_sum"] != SUM_WRONG), rows["sum"] == NO_SUM
    without = has_none if has_none.any() else None
    return pa.RecordBatch.from_arrays(
        [
            numbers["offset"],
            _column(rows["state"], states),
            numbers["timestamp"],
            binary(np.ascontiguousarray(rows["id"]).tobytes(), np.arange(count + 1, dtype=np.int32) * np.int32(16)),
            pa.array(rows["checksum"].astype(np.int64), mask=without),
            pa.MapArray.from_arrays(starts, headers.keys, items),
            bodies,
            numbers["origin_timestamp"],
            pa.array(sums, mask=without),
            _column(rows["layout"], {facts.code: name for name, facts in LAYOUTS.items()}),
        ],
        schema=columns,
    )


def _mask(missing: set[int], length: int) -> Any:
    import numpy as np

    mask = np.zeros(length, bool)
    mask[list(missing)] = True
    return mask
