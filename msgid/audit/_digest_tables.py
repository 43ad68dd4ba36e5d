"""Digests of messages: per log and block of 65,536 offsets, the number and the hashes of the messages.

A digest is a table with one row of 64 bytes per block. Digests of parts merge in any order to the digest of the whole,
and Spark makes the same rows by one aggregation. Two digests of the same messages are equal, so the blocks that differ
show where messages were lost, repeated or changed.
"""

from __future__ import annotations

import os
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msgid._validate import check_installed, quote
from msgid.audit._columns import NEVER, kind_of, plain_column
from msgid.audit._files import Side, dataset_of, read_file, side_of
from msgid.audit._options import columns_in
from msgid.audit._spans import BLOCK_SHIFT
from msgid.audit._tables import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from msgid._known_tables import Columns
    from msgid.audit._options import ColumnNames
    from msgid.audit._tables import Rows

SIZE: Final = 1 << BLOCK_SHIFT
"""The number of offsets of a block. The number of a block is its first offset."""
_JOINED: Final = {
    "rows": "sum", "low": "min", "high": "max", "first_time": "min", "last_time": "max", "lower": "sum", "upper": "sum",
}  # fmt: skip
"""How the values of two digests of one block are joined."""
COLUMNS: Final = ("source", "form", *_JOINED)
SEED: Final = 42
"""The seed of the hash: that of Spark's ``xxhash64``."""
HALF: Final = 0xFFFFFFFF
"""The lower half of a hash. Sums of halves do not exceed 64 bits, which Spark would refuse."""
_SAME: Final = "pass the same columns; content='' leaves the content out"
_STEP: Final = 1 << 20
"""The number of rows that are read at once."""
_HASHED: Final = 1 << 16
"""The number of rows that are Python's values at one time."""


def digest(table: Any, **columns: Unpack[ColumnNames]) -> pa.Table:
    """Return the digest of messages: per log and block, their number and the sums of their hashes.

    A block is 65,536 offsets. The hash of a message is that of its offset, the value of its ID and its content. Equal
    messages give equal digests, so `compare` reads only the blocks whose digests differ. `spark_ext.digest` makes the
    same rows.

    Args:
        table: A path as for `audit_file`, a table as for `audit_table`, or an iterable of IDs or positions as for
            `compare`. A Parquet file is read in parts.
        **columns: The columns, as `ColumnNames` explains. ``timestamp`` is by default the time of the IDs, and
            ``content`` must be text, binary or integers.

    Returns:
        Arrow table with the columns ``source``, ``form``, ``rows``, ``low``, ``high``, ``first_time``, ``last_time``,
        ``lower`` and ``upper``: 64 bytes per row. The last two are the sums of the halves of the hashes. Rows without a
        log or an offset are in a row without ``source``.

    Raises:
        ValueError: if a column is missing or has the wrong type, or the table does not have offsets.

    >>> import msgid.audit
    >>> import pyarrow as pa
    >>> made = digest(pa.table({"offset": [0, 1, 2, 70_000]}), offset="offset")
    >>> made.select(["source", "form", "rows", "low", "high"]).to_pylist()[1]
    {'source': 'log', 'form': 'offset', 'rows': 1, 'low': 70000, 'high': 70000}
    >>> msgid.audit.compare(None, None, digests=(made, made)).findings
    []
    """
    check_installed("a digest in Python", "arrow", "xxhash")
    named = columns_in("digest", columns)
    made = merge_digests([])
    for piece in _pieces(table):
        made = merge_digests([made, _digest_of(side_of("table", piece, lambda _: named))])
    return made


def merge_digests(digests: Iterable[pa.Table]) -> pa.Table:
    """Return the digest of all messages of some digests, in any order.

    Args:
        digests: Digests of parts of a table, such as the digest of each day. They must have one form.

    Raises:
        ValueError: if a table is not a digest, or the forms differ.

    >>> import pyarrow as pa
    >>> parts = [digest(pa.table({"offset": offsets}), offset="offset") for offsets in ([2, 3], [0, 1])]
    >>> merge_digests(parts) == digest(pa.table({"offset": range(4)}), offset="offset")
    True
    """
    blocks = _joined(digests).group_by(["source", "form", "block"]).aggregate([*_JOINED.items()])
    blocks = blocks.sort_by([("source", "ascending"), ("block", "ascending")]).combine_chunks()
    made = pa.table({name: blocks[f"{name}_{_JOINED[name]}" if name in _JOINED else name] for name in COLUMNS})
    made = made.cast(_schema())
    for place, name in enumerate(("source", "form")):
        made = made.set_column(place, name, made[name].combine_chunks().dictionary_encode())
    return made


def _schema() -> pa.Schema:
    moment = pa.timestamp("us", "UTC")
    kinds = dict.fromkeys(COLUMNS, pa.int64()) | {"source": pa.string(), "form": pa.string()}
    return pa.schema([*(kinds | {"first_time": moment, "last_time": moment}).items()])


def _joined(digests: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of digests, of `digest` or of Spark, with their block; NULL for rows without a log or an offset.

    Raises:
        ValueError: if a table is not a digest, or the forms differ.
    """
    tables = [_schema().empty_table()]
    for table in digests:
        missing = [name for name in COLUMNS if name not in table.column_names]
        if missing:
            raise ValueError(f"a digest must have the columns {', '.join(COLUMNS)}; {missing[0]} is missing")
        tables.append(table.select(COLUMNS).cast(_schema()))
    joined = pa.concat_tables(tables)
    forms = joined["form"].unique().to_pylist()
    if len(forms) > 1:
        raise ValueError(f"digests must have one form, got {' and '.join(map(quote, sorted(forms)))}: {_SAME}")
    return joined.append_column("block", _block_of(joined["low"]))


def _block_of(offset: Any) -> Any:
    return pc.bit_wise_and(offset, -SIZE)


def last_time(digest: pa.Table) -> int | None:
    """Return the last time of a message in microseconds, or None."""
    last: int | None = pc.max(digest["last_time"].cast(pa.int64())).as_py()
    return last


def unplaced(digest: pa.Table) -> int:
    """Return the number of rows without a log or an offset."""
    return pc.sum(digest.filter(digest["source"].is_null())["rows"]).as_py() or 0


def offset_of(columns: Columns) -> str:
    """Return the column of offsets.

    Raises:
        ValueError: if the table does not have offsets.
    """
    if columns.offset is None:
        raise ValueError("a digest needs offsets: compare IDs alone without digests")
    return columns.offset


def form_of(columns: Columns) -> str:
    """Return the text that tells which values a digest has; only digests of one form compare."""
    fields = ["offset", *(["id"] if columns.id else [])]
    contents = len(columns.content)
    fields += ["content" if contents == 1 else f"{contents} contents"] if contents else []
    return ", ".join(fields)


def check_content(name: str, kind: str, type: object) -> None:
    """Raise an error if a digest cannot hash a column, which may be a default.

    Args:
        name: The column.
        kind: The kind of its type, of Arrow or of Spark.
        type: The type, for the error.
    """
    if kind not in ("text", "integer", "null"):
        raise ValueError(
            "`content` of a digest must be columns of text, binary or integers, got "
            f"{quote(name)} of type {type}: pass other columns, or an empty list for none"
        )


def _digest_of(side: Side) -> pa.Table:
    """Return the rows of a digest, one per message."""
    columns = side.columns
    contents = [plain_column(side.table[name]) for name in columns.content]
    for name, column in zip(columns.content, contents, strict=True):
        check_content(name, kind_of(column.type), column.type)
    rows = rows_of(side.table, columns._replace(content=()))
    source, offset = places_of(side, rows)
    time = pa.array(rows.times, mask=rows.times == NEVER)
    hashed = _hashes(rows, contents)
    halves = ((hashed & np.uint64(HALF)).astype(np.int64), (hashed >> np.uint64(32)).astype(np.int64))
    form = pa.repeat(form_of(columns), rows.number)
    ones = np.ones(rows.number, np.int64)
    return pa.table(dict(zip(COLUMNS, (source, form, ones, offset, offset, time, time, *halves), strict=True)))


def places_of(side: Side, rows: Rows) -> tuple[pa.Array, pa.Array]:
    """Return the name of the log and the offset of each row; NULL for a row that does not have both."""
    offset_of(side.columns)
    assert rows.places is not None
    log, names, offset = rows.places
    unplaced = (log < 0) | (offset < 0)
    source = pa.array(names, pa.large_string()).take(pa.array(np.maximum(log, 0), mask=unplaced))
    return source, pa.array(offset, mask=unplaced)


def _hashes(rows: Rows, contents: Sequence[pa.ChunkedArray]) -> NDArray[np.uint64]:
    """Return the hash of each row: of its offset, of the identity of its ID, and of its contents.

    Each value has its number of bytes in front, and NULL is a dash. So a value that moves to another column is seen.
    """
    from xxhash import xxh64_intdigest

    assert rows.places is not None
    values: list[Any] = [pa.array(rows.places.offset, mask=rows.places.offset < 0).cast(pa.string())]
    if rows.ids is not None:
        values.append(rows.ids.identities())
    for column in contents:
        kind = column.type
        plain = column.cast(pa.string()) if pa.types.is_integer(kind) or pa.types.is_null(kind) else column
        values.append(plain.cast(pa.binary()) if pa.types.is_fixed_size_binary(kind) else plain)
    binary, parts = pa.large_binary(), []
    for value in values:
        data = value.cast(binary)
        length = pc.binary_length(data).cast(pa.large_string()).cast(binary)
        told = pc.binary_join_element_wise(length, data, pa.scalar(b":", binary))
        parts.append(pc.fill_null(told, pa.scalar(b"-", binary)))
    result = np.empty(rows.number, np.uint64)
    for start in range(0, rows.number, _HASHED):
        step = [part.slice(start, _HASHED) for part in parts]
        joined = pc.binary_join_element_wise(*step, pa.scalar(b"", binary)).to_pylist()
        result[start : start + len(joined)] = [xxh64_intdigest(one, SEED) for one in joined]
    return result


def loaded(value: Any) -> pa.Table:
    """Return a digest of a table, or of the Parquet files of a path, whose rows are merged."""
    return merge_digests([read_file(value) if isinstance(value, str | os.PathLike) else value])


def differing_blocks(sent: pa.Table, landed: pa.Table) -> pa.Table:
    """Return the blocks in which two digests differ: ``source``, ``block``, and the rows ``sent`` and ``landed``."""
    both, is_sent = _joined([sent, landed]), pa.array(np.repeat([True, False], [sent.num_rows, landed.num_rows]))
    keys = {"source": both["source"].cast(pa.large_string()), "block": both["block"]}
    rows = {"sent": pc.if_else(is_sent, both["rows"], 0), "landed": pc.if_else(is_sent, 0, both["rows"])}
    more = {name: pc.multiply(both[name], pc.if_else(is_sent, 1, -1)) for name in ("rows", "lower", "upper")}
    # Rows without a place are not messages of a block, so they are counted alone.
    blocks = pa.table({**keys, **rows, **more}).filter(pc.is_valid(both["source"])).group_by([*keys])
    sums = blocks.aggregate([(name, "sum") for name in (*rows, *more)])
    differs = reduce(pc.or_, (pc.not_equal(sums[f"{name}_sum"], 0) for name in more))
    chosen = sums.filter(differs).sort_by([(key, "ascending") for key in keys])
    return chosen.select([*keys, "sent_sum", "landed_sum"]).rename_columns([*keys, *rows])


def _pieces(table: Any) -> Iterator[Any]:
    """Yield a side in parts: a dataset of Parquet in steps of rows, and anything else whole."""
    dataset = dataset_of(table)
    if dataset is None:
        yield table
        return
    yield dataset.schema.empty_table()
    for batch in dataset.to_batches(batch_size=_STEP):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def rows_in_blocks(which: str, value: Any, named: Callable[[Sequence[str]], dict[str, Any]], blocks: pa.Table) -> Side:
    """Return the rows of a side that are in some blocks.

    Args:
        which: The name of the side.
        value: The side, as `compare` takes it.
        named: Returns the arguments that name columns, of the columns of the side.
        blocks: The blocks that `differing_blocks` returned.
    """
    dataset = dataset_of(value)
    if dataset is not None:
        name, condition = offset_of(side_of(which, dataset.schema.empty_table(), named).columns), None
        if pa.types.is_integer(dataset.schema.field(name).type):
            offset = pc.field(name)
            condition = reduce(or_, ((offset >= low) & (offset <= high) for low, high in ranges_of(blocks["block"])))
        value = dataset.to_table(filter=condition)
    side = side_of(which, value, named)
    source, offset = places_of(side, rows_of(side.table, side.columns._replace(content=())))
    places = pa.table({"source": source, "block": _block_of(offset), "row": pa.array(range(len(offset)), pa.int64())})
    found = places.join(blocks.select(["source", "block"]), ["source", "block"], join_type="left semi")
    return side._replace(table=side.table.take(found["row"].sort()))


def ranges_of(blocks: pa.ChunkedArray, most: int = 200) -> list[tuple[int, int]]:
    """Return ranges of offsets that have some blocks, with the largest gaps between them; neighbors are one range.

    Args:
        blocks: The numbers of the blocks, at least one.
        most: Number of ranges. Arrow takes time with the square of it, and crashes at 20,000.
    """
    numbers = np.unique(blocks.to_numpy())
    step = np.diff(numbers)
    ends = np.flatnonzero(step > SIZE)
    ends = np.sort(ends[np.argsort(-step[ends], kind="stable")[: most - 1]])
    first, last = numbers[np.append(0, ends + 1)], numbers[np.append(ends, len(numbers) - 1)] + (SIZE - 1)
    return list(zip(first.tolist(), last.tolist(), strict=True))
