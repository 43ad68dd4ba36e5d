"""The user headers of many messages as Arrow arrays: the nth headers of all messages are read at once.

Each check here has its twin in `msgid.iggy.headers`. The headers of a message that fails a check are read again there,
one by one, for the exact error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.errors import InvalidMessage
from msgid.iggy.headers import WIDTHS, HeaderKind, decode_key
from msgid.iggy.records.decoding import headers_of_row
from msgid.iggy.records.rows import ROW, Row
from msgid.iggy.wire import HEADER_KEY_MAX, HEADER_VALUE_MAX, TYPED_KEYS, Reader
from msgid.shared.validate import quote

if TYPE_CHECKING:
    import pyarrow as pa

_MOST: Final = 64
"""A message with more headers is read alone: each step over all messages would be for few of them."""
_LENGTH: Final = 4
_KINDS: Final = ["", *map(str, HeaderKind)]
_WIDTHS: Final = [WIDTHS.get(HeaderKind(kind), 0) if kind else 0 for kind in range(len(_KINDS))]
"""The length of a value by its kind; 0 for any."""


class HeaderColumns(NamedTuple):
    """The headers of all messages, one after the other."""

    offsets: Any
    """int32: the first header of each message, and the number of all headers."""
    keys: pa.Array
    kinds: pa.Array
    values: pa.Array
    malformed: dict[int, InvalidMessage]
    """The error of each message with malformed headers, by its row. Such a message has 0 headers here."""


class _Entries(NamedTuple):
    """The positions of headers in the bytes: an int64 array each."""

    row: Any
    start: Any
    """Where the key starts; with its kind, in a layout with typed keys, and its length."""
    typed: Any
    kind: Any
    value: Any
    end: Any

    def where(self, kept: Any) -> _Entries:
        return _Entries(*(column[kept] for column in self))


def header_columns(data: bytes | memoryview, packed: bytes, rows: Any, base: int) -> HeaderColumns:
    """Decode the headers of all messages.

    Args:
        data: The bytes that were scanned.
        packed: The rows of the scan.
        rows: As many of the rows as are wanted, as a NumPy array.
        base: Position of the first byte in its file, which is added to positions in errors.
    """
    import numpy as np
    import pyarrow as pa

    counts = np.zeros(len(rows), np.int32)
    if not rows["headers_length"].any():
        empty = pa.array([], pa.string())
        return HeaderColumns(np.zeros(len(rows) + 1, np.int32), empty, empty, pa.array([], pa.binary()), {})
    entries, alone = _walked(data, rows)
    keys, kinds, values = _arrays(data, entries, alone)
    kept = ~alone[entries.row]
    if not kept.all():
        entries = entries.where(kept)
        keys, kinds, values = (column.filter(pa.array(kept)) for column in (keys, kinds, values))
    owners = entries.row
    malformed: dict[int, InvalidMessage] = {}
    if alone.any():
        more, malformed = _one_by_one(data, packed, np.flatnonzero(alone).tolist(), base)
        owners = np.concatenate([owners, np.array(more[0], np.int64)])
        order = pa.array(np.argsort(owners, kind="stable"))
        types = (pa.string(), pa.string(), pa.binary())
        keys, kinds, values = (
            pa.concat_arrays([column, pa.array(added, type)]).take(order)
            for column, added, type in zip((keys, kinds, values), more[1:], types, strict=True)
        )
    counts += np.bincount(owners, minlength=len(rows)).astype(np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return HeaderColumns(offsets, keys, kinds, values, malformed)


def _walked(data: bytes | memoryview, rows: Any) -> tuple[_Entries, Any]:
    """Return the positions of all headers, in the order of messages, and which messages must be read alone."""
    import numpy as np

    raw = np.frombuffer(data, np.uint8)
    # A view with an integer at every byte, so that one index reads a length wherever it stands.
    numbers = np.ndarray((max(0, len(raw) - _LENGTH + 1),), np.dtype("<u4"), memoryview(data), 0, (1,))
    alone = np.zeros(len(rows), bool)
    row = np.flatnonzero(rows["headers_length"])
    position = rows["headers"][row].astype(np.int64)
    ends = position + rows["headers_length"][row]
    typed = np.array(TYPED_KEYS, np.int64)[rows["layout"][row]]
    steps: list[_Entries] = []
    while len(row):
        if len(steps) == _MOST:
            alone[row] = True
            break
        good = position + typed + _LENGTH <= ends
        key = position + typed + _LENGTH
        lengths = numbers[np.where(good, position + typed, 0)].astype(np.int64)
        kind = key + lengths
        good &= (lengths >= 1) & (lengths <= HEADER_KEY_MAX) & (kind + 1 + _LENGTH <= ends)
        value = kind + 1 + _LENGTH
        lengths = numbers[np.where(good, kind + 1, 0)].astype(np.int64)
        end = value + lengths
        good &= (lengths >= 1) & (lengths <= HEADER_VALUE_MAX) & (end <= ends)
        kinds = raw[np.where(good, kind, 0)]
        step = _Entries(row, position, typed, kinds, value, end)
        if not good.all():
            alone[row[~good]] = True
            step, ends = step.where(good), ends[good]
        steps.append(step)
        more = step.end < ends
        row, position, typed, ends = step.row[more], step.end[more], step.typed[more], ends[more]
    if len(steps) == 1:
        return steps[0], alone
    every = _Entries(*(np.concatenate(columns) for columns in zip(*steps, strict=True)))
    return every.where(np.argsort(every.row, kind="stable")), alone


def _arrays(data: bytes | memoryview, entries: _Entries, alone: Any) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return keys, kinds and values, and mark the messages that have a wrong one."""
    import numpy as np
    import pyarrow as pa

    values = _slices(data, entries.value, entries.end)
    known = np.where(entries.kind < len(_KINDS), entries.kind, 0)
    widths = np.array(_WIDTHS)[known]
    wrong = (known == 0) | ((widths > 0) & (entries.end - entries.value != widths))
    bools = np.flatnonzero(known == HeaderKind.BOOL)
    wrong[bools] |= np.frombuffer(data, np.uint8)[entries.value[bools]] > 1
    texts = np.flatnonzero(known == HeaderKind.STRING)
    wrong[texts] |= _not_text(values.take(pa.array(texts)))
    distinct = _slices(data, entries.start, entries.value - 1 - _LENGTH).dictionary_encode()
    codes = distinct.indices.to_numpy().astype(np.int64) * 2 + entries.typed
    names, numbers, unreadable = _keys(distinct.dictionary.to_pylist(), codes)
    wrong |= unreadable[numbers]
    alone[entries.row[wrong]] = True
    alone[_repeated(entries.row, numbers)] = True
    keys = pa.array(names, pa.string()).take(pa.array(numbers))
    return keys, pa.array(_KINDS).take(pa.array(known)), values


def _slices(data: bytes | memoryview, starts: Any, ends: Any) -> pa.Array:
    """Return parts of bytes as a binary array, copied at once."""
    import numpy as np
    import pyarrow as pa

    edges = np.zeros(2 * len(starts) + 1, np.int32)
    edges[1::2] = starts
    edges[2::2] = ends
    every = pa.Array.from_buffers(pa.binary(), 2 * len(starts), [None, pa.py_buffer(edges), pa.py_buffer(data)])
    return every.take(pa.array(np.arange(1, 2 * len(starts), 2, dtype=np.int32)))


def _not_text(values: pa.Array) -> Any:
    """Return which values are not UTF-8."""
    import numpy as np
    import pyarrow as pa

    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return np.array([not _is_text(value) for value in values.to_pylist()], bool)
    return np.zeros(len(values), bool)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _keys(distinct: list[bytes], codes: Any) -> tuple[list[str | None], Any, Any]:
    """Return the texts of distinct keys, the number of the text of each code, and which texts are malformed."""
    import numpy as np

    used = np.flatnonzero(np.bincount(codes))
    index_of = np.zeros(2 * len(distinct), np.int64)
    names: dict[str | None, int] = {}
    for code in used.tolist():
        try:
            name: str | None = str(decode_key(Reader(distinct[code // 2]), typed=bool(code % 2)))
        except InvalidMessage:
            name = None
        index_of[code] = names.setdefault(name, len(names))
    return list(names), index_of[codes], np.array([name is None for name in names], bool)


def _repeated(row: Any, numbers: Any) -> Any:
    """Return the rows that have a key with the same text twice."""
    import numpy as np

    repeated = [row[:0]]
    for back in range(1, _MOST):
        near = row[back:] == row[:-back]
        if not near.any():
            break
        repeated.append(row[back:][near & (numbers[back:] == numbers[:-back])])
    return np.concatenate(repeated)


def _one_by_one(
    data: bytes | memoryview, packed: bytes, alone: list[int], base: int
) -> tuple[tuple[list[int], list[str], list[str], list[bytes]], dict[int, InvalidMessage]]:
    """Return row, key, kind and value of the headers of messages, and the errors of malformed ones."""
    owners: list[int] = []
    keys: list[str] = []
    kinds: list[str] = []
    values: list[bytes] = []
    malformed: dict[int, InvalidMessage] = {}
    for number in alone:
        row = Row._make(ROW.unpack_from(packed, number * ROW.size))
        try:
            read = headers_of_row(data, row, base)
        except InvalidMessage as error:
            malformed[number] = error
            continue
        texts = [str(key) for key in read]
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            reason = f"two headers whose keys are the text {quote(twice)} in a table"
            malformed[number] = InvalidMessage(reason, base + row.headers)
            continue
        owners += [number] * len(read)
        keys += texts
        kinds += [str(header.kind) for header in read.values()]
        values += [header.raw for header in read.values()]
    return (owners, keys, kinds, values), malformed
