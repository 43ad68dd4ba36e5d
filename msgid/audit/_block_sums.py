"""Digests of messages: per log and block of offsets, or per log and minute, the number and the hashes of the messages.

A digest has one row of 64 bytes per block. Digests of parts merge in any order to the digest of the whole, and Spark
makes the same rows by one aggregation. Two digests of the same messages are equal, so the blocks that differ show where
messages were lost, repeated or changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from msgid._validate import quote
from msgid.audit._digests import BLOCK_SHIFT, starts_of
from msgid.audit._xxh64 import SEED, hash_binary, hash_integers, hash_rows
from msgid.audit.definitions import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from msgid._known_tables import Columns
    from msgid.audit._ids import Ids
    from msgid.audit._rows import Rows

By = Literal["offset", "minute"]
"""The unit of a block: 65,536 offsets, or a minute of the messages' time."""
BY: Final[dict[str, str]] = {"offset": f"{1 << BLOCK_SHIFT:,} offsets", "minute": "1 minute"}
MINUTE: Final = 60_000_000
COLUMNS: Final = ("source", "form", "rows", "low", "high", "first_time", "last_time", "sum", "xor")
_SAME: Final = "pass the same columns; content='' leaves the content out"
_STRANGE: Final = -(1 << 63)
"""The block of rows without a log, an offset or a time."""


class Sums(NamedTuple):
    """Blocks as columns, ordered by log and block. Times are microseconds, and `_STRANGE` is an unknown number."""

    source: NDArray[np.int64]
    block: NDArray[np.int64]
    rows: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    first_time: NDArray[np.int64]
    last_time: NDArray[np.int64]
    sum: NDArray[np.int64]
    xor: NDArray[np.int64]

    def take(self, rows: Any) -> Sums:
        """Return some of the blocks, by their places or by a mask."""
        return Sums(*(column[rows] for column in self))


class Digest(NamedTuple):
    """A digest in memory: the names of its logs in their order, its form and its blocks."""

    names: list[str | None]
    form: str
    sums: Sums

    def last_time(self) -> int | None:
        """Return the last time of a message in microseconds, or None."""
        last = int(self.sums.last_time.max(initial=_STRANGE))
        return None if last == _STRANGE else last

    def unplaced(self) -> int:
        """Return the number of rows without a log, an offset or a time."""
        return int(self.sums.rows[self.sums.block == _STRANGE].sum())


def form_of(columns: Columns, by: str) -> str:
    """Return the text that tells which values a digest has, and which blocks; only digests of one form compare."""
    fields = [name for name in ("offset", "id") if getattr(columns, name) is not None]
    contents = len(columns.content)
    fields += ["content" if contents == 1 else f"{contents} contents"] if contents else []
    return f"{', '.join(fields)} by {BY[by]}"


def by_of(form: str) -> By:
    """Return what the blocks of a form are."""
    return "minute" if form.endswith(BY["minute"]) else "offset"


def checked_by(by: str | None, columns: Columns) -> By:
    """Return what a block is: the caller's choice, or blocks of offsets if there are offsets.

    Raises:
        ValueError: if the choice is not allowed, or the columns for it are missing.
    """
    if by is None:
        by = "minute" if columns.offset is None else "offset"
    if by not in BY:
        raise ValueError(f"by must be offset or minute, got {quote(by)}")
    if by == "offset" and columns.offset is None:
        raise ValueError("cannot make a digest by offset: the table must have offsets, got none")
    if by == "minute" and columns.timestamp is None and columns.id is None:
        raise ValueError("cannot make a digest by minute: the table must have a timestamp or IDs, got neither")
    return by  # type: ignore[return-value]


def hashes(rows: Rows, contents: Sequence[pa.ChunkedArray]) -> NDArray[np.int64]:
    """Return the hash of each row: of its offset, of the value of its ID, and of its contents."""
    import numpy as np

    result = np.full(rows.number, SEED, np.uint64)
    if rows.places is not None:
        valid = rows.places.valid
        result[valid] = hash_integers(rows.places.offset[valid], result[valid])
    if rows.ids is not None:
        result = _hash_ids(rows.ids, result)
    for column in contents:
        result = hash_binary(_as_bytes(column), result)
    return result.view(np.int64)


def _hash_ids(ids: Ids, seed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of the 17 bytes of version-1 IDs, and of the text of any other identity."""
    import numpy as np
    import pyarrow as pa

    result: NDArray[np.uint64] = seed.copy()
    a, b, _ = ids.keys
    v1 = np.flatnonzero(ids.is_v1)
    if len(v1):
        raw = np.empty((len(v1), 17), np.uint8)
        raw[:, 0] = 1
        raw[:, 1:9] = a[v1].astype(">u8").view(np.uint8).reshape(-1, 8)
        raw[:, 9:] = b[v1].astype(">u8").view(np.uint8).reshape(-1, 8)
        result[v1] = hash_rows(raw, seed[v1])
    rest = np.flatnonzero(~ids.is_v1)
    if len(rest):
        texts = [None if one.identity is None else one.identity.encode("utf-8", "surrogatepass") for one in ids.others]
        values = pa.array(texts, pa.large_binary()).take(pa.array(ids.other[rest]))
        result[rest] = hash_binary(values, seed[rest])
    return result


def content_error(name: str, kind: object) -> ValueError:
    """Return the error of a column that a digest cannot hash; ``name`` may be a default."""
    return ValueError(
        "`content` of a digest must be columns of text, binary or integers, got "
        f"{quote(name)} of type {kind}: pass other columns, or an empty list for none"
    )


def check_content(name: str, kind: pa.DataType) -> None:
    """Raise an error if a column without its encoding is not one that a digest can hash."""
    import pyarrow as pa

    types = pa.types
    allowed = (
        types.is_integer, types.is_string, types.is_large_string, types.is_binary, types.is_large_binary,
        types.is_fixed_size_binary, types.is_null,
    )  # fmt: skip
    if not any(test(kind) for test in allowed):
        raise content_error(name, kind)


def _as_bytes(column: pa.ChunkedArray) -> pa.Array:
    """Return contents as bytes: those of text in UTF-8, and of the digits of integers."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind):
        column = column.cast(pa.large_string())
    if pa.types.is_fixed_size_binary(kind):
        column = column.cast(pa.binary())
    joined = column.cast(pa.large_binary()).combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def sums_of_rows(rows: Rows, contents: Sequence[pa.ChunkedArray], by: By) -> tuple[list[str | None], Sums]:
    """Return the blocks of rows, and the names of their logs."""
    import numpy as np

    names, log, offset, time, block = places_of(rows, by)
    hashed, ones = hashes(rows, contents), np.ones(rows.number, np.int64)
    return names, _grouped(Sums(log, block, ones, offset, offset, time, time, hashed, hashed))


def places_of(rows: Rows, by: By) -> tuple[list[str | None], Any, Any, Any, Any]:
    """Return the names of logs, and the log, the offset, the time in microseconds and the block of each row."""
    import numpy as np

    number = rows.number
    names: list[str | None] = [TABLE]
    log, offset = np.zeros(number, np.int64), np.full(number, _STRANGE)
    if rows.places is not None:
        names = [*rows.places.names, None]
        valid = rows.places.valid & (rows.places.log >= 0)
        log = np.where(valid, rows.places.log, len(names) - 1)
        offset = np.where(valid, rows.places.offset, _STRANGE)
    moments = rows.timestamp
    if moments is None and rows.ids is not None:
        moments = (rows.ids.unix * 1_000_000, rows.ids.is_v1)
    time = np.full(number, _STRANGE) if moments is None else np.where(moments[1], moments[0], _STRANGE)
    return names, log, offset, time, _block_of(offset, time, by)


def _block_of(offset: Any, time: Any, by: By) -> NDArray[np.int64]:
    import numpy as np

    value, known = (offset >> BLOCK_SHIFT, offset) if by == "offset" else (time // MINUTE, time)
    return np.where(known == _STRANGE, _STRANGE, value)


def _grouped(sums: Sums) -> Sums:
    """Return one row per log and block. Sums wrap at 64 bits."""
    import numpy as np

    if not len(sums.rows):
        return sums
    sums = sums.take(np.lexsort((sums.block, sums.source)))
    first = np.flatnonzero(starts_of(sums.source, sums.block))

    def least(values: NDArray[np.int64]) -> NDArray[np.int64]:
        found = np.minimum.reduceat(np.where(values == _STRANGE, _LARGEST, values), first)
        return np.where(found == _LARGEST, _STRANGE, found)

    return Sums(
        sums.source[first], sums.block[first], np.add.reduceat(sums.rows, first), least(sums.low),
        np.maximum.reduceat(sums.high, first), least(sums.first_time), np.maximum.reduceat(sums.last_time, first),
        np.add.reduceat(sums.sum, first), np.bitwise_xor.reduceat(sums.xor, first),
    )  # fmt: skip


_LARGEST: Final = (1 << 63) - 1


def merged_sums(parts: Iterable[Digest]) -> Digest:
    """Return the digest of all messages of some digests, which have one form."""
    import numpy as np

    digests = list(parts)
    forms = sorted({one.form for one in digests if len(one.sums.rows)})
    if len(forms) > 1:
        raise ValueError(f"digests must have one form, got {' and '.join(map(quote, forms))}: {_SAME}")
    names: list[str | None] = [*sorted({name for one in digests for name in one.names if name is not None}), None]
    places = {name: place for place, name in enumerate(names)}
    columns = []
    for one in digests:
        at = np.array([places[name] for name in one.names], np.int64)
        columns.append(one.sums._replace(source=at[one.sums.source]))
    joined = (
        [np.concatenate(column) for column in zip(*columns, strict=True)] if columns else [np.zeros(0, np.int64)] * 9
    )
    return Digest(names, forms[0] if forms else digests[0].form if digests else "", _grouped(Sums(*joined)))


def table_of(digest: Digest) -> pa.Table:
    """Return a digest as an Arrow table: the logs by name, the blocks of a log in their order."""
    import numpy as np
    import pyarrow as pa

    sums = digest.sums
    used = [name for place, name in enumerate(digest.names) if name is not None and (sums.source == place).any()]
    at = {name: place for place, name in enumerate(used)}
    codes = np.array([at.get(name, -1) if name is not None else -1 for name in digest.names] or [-1], np.int32)
    source = codes[sums.source] if len(sums.source) else np.zeros(0, np.int32)
    moment = pa.timestamp("us", "UTC")

    def column(name: str, kind: Any) -> pa.Array:
        values = getattr(sums, name)
        return pa.array(values, pa.int64(), mask=values == _STRANGE).cast(kind)

    kinds = {**dict.fromkeys(("rows", "low", "high"), pa.int64()), "first_time": moment, "last_time": moment}
    return pa.table(
        {
            "source": pa.DictionaryArray.from_arrays(
                pa.array(source, pa.int32(), mask=source < 0), pa.array(used, pa.string())
            ),
            "form": pa.DictionaryArray.from_arrays(np.zeros(len(source), np.int32), pa.array([digest.form])),
            **{name: column(name, kind) for name, kind in kinds.items()},
            "sum": pa.array(sums.sum, pa.int64()),
            "xor": pa.array(sums.xor, pa.int64()),
        }
    )


def digest_of_table(table: pa.Table) -> Digest:
    """Return the digest that `table_of` or Spark has written.

    Raises:
        ValueError: if the table is not a digest.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise ValueError(f"a digest must have the columns {', '.join(COLUMNS)}; {missing[0]} is missing")
    forms = pc.unique(table["form"].cast(pa.string())).to_pylist()
    if len(forms) > 1:
        raise ValueError(f"digests must have one form, got {' and '.join(map(quote, forms))}: {_SAME}")
    form = forms[0] if forms else ""
    texts = table["source"].cast(pa.string()).to_pylist()
    names: list[str | None] = [*sorted({text for text in texts if text is not None}), None]
    at = {name: place for place, name in enumerate(names)}

    def numbers(name: str) -> NDArray[np.int64]:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        filled: NDArray[np.int64] = pc.fill_null(column.cast(pa.int64()), _STRANGE).to_numpy()
        return filled

    source = np.array([at[text] for text in texts], np.int64)
    values = {name: numbers(name) for name in COLUMNS[2:]}
    block = _block_of(values["low"], values["first_time"], by_of(form))
    return merged_sums([Digest(names, form, Sums(source, block, **values))])


class Blocks(NamedTuple):
    """The blocks in which two digests differ: their logs and numbers, and the rows of each side.

    Of a block by offset, `low` and `high` are its least and greatest offset; of a minute, its ends in microseconds.
    """

    source: list[str | None]
    block: list[int]
    sent: list[int]
    landed: list[int]
    low: list[int]
    high: list[int]


def differing_blocks(sent: Digest, landed: Digest) -> Blocks:
    """Return the blocks whose rows, offsets or hashes are not the same in two digests."""
    import numpy as np

    if len(sent.sums.rows) and len(landed.sums.rows) and sent.form != landed.form:
        raise ValueError(f"digests must have one form, got {quote(sent.form)} and {quote(landed.form)}: {_SAME}")
    form = sent.form or landed.form
    names = sorted({name for one in (sent, landed) for name in one.names if name is not None})
    at: dict[str | None, int] = {name: place for place, name in enumerate(names)} | {None: len(names)}
    parts = [
        one.sums._replace(source=np.array([at[name] for name in one.names], np.int64)[one.sums.source])
        for one in (sent, landed)
    ]
    side = np.repeat([0, 1], [len(part.rows) for part in parts])
    both = Sums(*(np.concatenate(pair) for pair in zip(*parts, strict=True)))
    order = np.lexsort((side, both.block, both.source))
    both, side = both.take(order), side[order]
    first = starts_of(both.source, both.block)
    of = np.cumsum(first) - 1
    differs = np.bincount(of) == 1 if len(of) else np.zeros(0, bool)
    pair = np.flatnonzero(~first)
    same = np.logical_and.reduce(
        [column[pair] == column[pair - 1] for column in (both.rows, both.low, both.high, both.sum, both.xor)]
    )
    differs[of[pair[~same]]] = True
    # Rows without a place are not messages of a block, so they are counted alone.
    chosen = np.flatnonzero(differs & (both.block[first] != _STRANGE))
    rows = np.zeros((2, len(differs)), np.int64)
    rows[side, of] = both.rows
    start = both.take(np.flatnonzero(first)[chosen])
    low = start.block << BLOCK_SHIFT if by_of(form) == "offset" else start.block * MINUTE
    size = (1 << BLOCK_SHIFT) if by_of(form) == "offset" else MINUTE
    texts: list[str | None] = [*names, None]
    return Blocks(
        [texts[place] for place in start.source.tolist()], start.block.tolist(), rows[0, chosen].tolist(),
        rows[1, chosen].tolist(), low.tolist(), (low + size - 1).tolist(),
    )  # fmt: skip
