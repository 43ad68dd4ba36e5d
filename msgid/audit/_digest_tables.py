"""Digests as tables: `digest` makes one, and `merge_digests` joins several."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any, Final

from msgid._validate import check_installed
from msgid.audit._block_sums import (
    Digest,
    by_of,
    check_content,
    checked_by,
    digest_of_table,
    form_of,
    merged_sums,
    places_of,
    sums_of_rows,
    table_of,
)
from msgid.audit._columns import plain_column
from msgid.audit._files import dataset_of, read_file
from msgid.audit._sides import ARGUMENTS, Read, Side, read_side, side_of
from msgid.audit._tables import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa

    from msgid.audit._block_sums import Blocks, By

_STEP: Final = 1 << 20
"""The number of rows that are read at once."""
_MOST_PARTS: Final = 64


def digest(
    table: Any,
    *,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    content: str | Sequence[str] | None = None,
    life: str | datetime | Sequence[datetime] | None = None,
    by: By | None = None,
) -> pa.Table:
    """Return the digest of messages: per log and block, their number and the sum and XOR of their hashes.

    The hash of a message is that of its offset, the value of its ID and its content. Equal messages give equal digests,
    so `compare` reads only the blocks whose digests differ. `spark_ext.digest` makes the same rows.

    Args:
        table: A path as for `audit_file`, a table as for `audit_table`, or an iterable of IDs or positions as for
            `compare`. A Parquet file is read in parts.
        id: Column of IDs, as for `audit_table`.
        source: Columns whose values, joined by ``/``, name the log.
        offset: Column of offsets in the log.
        timestamp: Column of the messages' own times. Default: the times of the IDs.
        content: Columns of text, binary or integers that are hashed too. Default: those of a known table, as for
            `audit_table`; an empty list for none.
        life: The life of a log, as for `audit_table`.
        by: ``offset`` for blocks of 65,536 offsets, ``minute`` for blocks of a minute. Default: ``offset`` if the table
            has offsets.

    Returns:
        Arrow table with the columns ``source``, ``form``, ``rows``, ``low``, ``high``, ``first_time``, ``last_time``,
        ``sum`` and ``xor``: 64 bytes per row. Rows without a log, an offset or a time are in a row without ``source``
        or without ``low``.

    Raises:
        ValueError: if a column is missing or has the wrong type.

    >>> import msgid.audit
    >>> import pyarrow as pa
    >>> made = digest(pa.table({"offset": [0, 1, 2, 70_000]}), offset="offset")
    >>> made.select(["source", "form", "rows", "low", "high"]).to_pylist()[1]
    {'source': 'log', 'form': 'offset by 65,536 offsets', 'rows': 1, 'low': 70000, 'high': 70000}
    >>> msgid.audit.compare(None, None, digests=(made, made)).findings
    []
    """
    check_installed("a digest in Python", "arrow", "numpy", "pyarrow")
    named = dict(zip(ARGUMENTS, (id, source, offset, timestamp, content, life), strict=True))
    parts: list[Digest] = []
    for piece in _pieces(table):
        parts.append(_digest_of(side_of("table", piece, dict(named)), by))
        if len(parts) == _MOST_PARTS:
            parts = [merged_sums(parts)]
    return table_of(merged_sums(parts))


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
    check_installed("a digest in Python", "arrow", "numpy", "pyarrow")
    return table_of(merged_sums(digest_of_table(one) for one in digests))


def _pieces(table: Any) -> Iterator[Read]:
    """Yield a side in parts: a dataset of Parquet in steps of rows, and anything else whole."""
    import pyarrow as pa

    dataset = dataset_of(table)
    if dataset is None:
        yield read_side("table", table)
        return
    yield Read(dataset.schema.empty_table(), is_listed=False)
    for batch in dataset.to_batches(batch_size=_STEP):
        if batch.num_rows:
            yield Read(pa.Table.from_batches([batch]), is_listed=False)


def _digest_of(side: Side, by: str | None) -> Digest:
    columns = side.columns
    chosen = checked_by(by, columns)
    contents = [plain_column(side.table[name]) for name in columns.content]
    for name, column in zip(columns.content, contents, strict=True):
        check_content(name, column.type)
    names, sums = sums_of_rows(rows_of(side.table, columns._replace(content=())), contents, chosen)
    return Digest(names, form_of(columns, chosen), sums)


def loaded(value: Any) -> Digest:
    """Return a digest of a table, or of the Parquet files of a path, whose rows are merged."""
    if isinstance(value, str | os.PathLike):
        value = read_file(value)
    return digest_of_table(value)


def rows_in_blocks(
    which: str, value: Any, named: Callable[[Sequence[str]], dict[str, Any]], blocks: Blocks, form: str
) -> tuple[Side, int]:
    """Return the rows of a side that are in some blocks, and the number of rows that were read for them.

    Args:
        which: The name of the side.
        value: The side, as `compare` takes it.
        named: Returns the arguments that name columns, of the columns of the side.
        blocks: The blocks.
        form: The form of the digests.
    """
    import numpy as np
    import pyarrow as pa

    dataset = dataset_of(value)
    if dataset is None:
        read = read_side(which, value)
        number = read.table.num_rows
    else:
        columns = side_of(
            which, Read(dataset.schema.empty_table(), is_listed=False), named(dataset.schema.names)
        ).columns
        table, number = _filtered(dataset, columns, blocks, form)
        read = Read(table, is_listed=False)
    side = side_of(which, read, named(read.table.column_names))
    names, sums = _blocks_of_rows(side, form)
    wanted = {*zip(blocks.source, blocks.block, strict=True)}
    chosen = [(names[log], block) in wanted for log, block in zip(*sums, strict=True)]
    return side._replace(table=side.table.filter(pa.array(np.array(chosen, bool)))), number


def _blocks_of_rows(side: Side, form: str) -> tuple[list[str | None], Any]:
    """Return the names of logs, and the log and the block of each row."""
    rows = rows_of(side.table, side.columns._replace(content=()))
    names, log, _, _, block = places_of(rows, by_of(form))
    return names, (log.tolist(), block.tolist())


def _filtered(dataset: Any, columns: Any, blocks: Blocks, form: str) -> tuple[pa.Table, int]:
    """Return the rows of a dataset in the ranges of blocks, and the number of rows in the row groups that have some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def is_in(name: str, unit: Callable[[int], Any]) -> Any:
        field = pc.field(name)
        return [(field >= unit(low)) & (field <= unit(high)) for low, high in _ranges(blocks)]

    parts: list[Any] = []
    if by_of(form) == "offset" and pa.types.is_integer(dataset.schema.field(columns.offset).type):
        parts = is_in(columns.offset, pa.scalar)
    elif by_of(form) == "minute" and columns.timestamp is not None:
        kind = dataset.schema.field(columns.timestamp).type
        if pa.types.is_timestamp(kind):
            parts = is_in(columns.timestamp, lambda micros: pa.scalar(micros, pa.timestamp("us", kind.tz)))
    if not parts:
        table = dataset.to_table()
        return table, table.num_rows
    condition = parts[0]
    for part in parts[1:]:
        condition = condition | part
    fragments = dataset.get_fragments(filter=condition)
    groups = itertools.chain.from_iterable(fragment.split_by_row_group(condition) for fragment in fragments)
    number = sum(group.row_groups[0].num_rows for group in groups)
    return dataset.to_table(filter=condition), number


def _ranges(blocks: Blocks) -> list[tuple[int, int]]:
    """Return the ranges of offsets or times of blocks; neighbours are merged."""
    ranges: list[tuple[int, int]] = []
    for low, high in sorted({*zip(blocks.low, blocks.high, strict=True)}):
        if ranges and low <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(high, ranges[-1][1]))
        else:
            ranges.append((low, high))
    return ranges
