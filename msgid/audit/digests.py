"""Digests of messages: per log and block of 65,536 offsets, the number and the hashes of the messages.

A digest is a table with one row of 64 bytes per block. Digests of parts merge in any order to the digest of the whole,
and Spark makes the same rows by the same statement. Two digests of the same messages are equal, so the blocks that
differ show where messages were lost, repeated or changed.
"""

from __future__ import annotations

import os
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from msgid.audit._roles import check_moments, kind_of
from msgid.audit._sources import open_file, open_frame, read_error
from msgid.audit.reduction import statements
from msgid.audit.sides import Side, opened, settings_in
from msgid.shared.validate import check_installed, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Unpack

    from msgid.audit.duck import Duck
    from msgid.audit.sides import SideOptions
    from msgid.shared.known_tables import Columns

SIZE: Final = 1 << 16
"""The number of offsets of a block. The number of a block is its first offset."""
_JOINED: Final = {
    "rows": "sum", "low": "min", "high": "max", "first_time": "min", "last_time": "max", "lower": "sum", "upper": "sum",
}  # fmt: skip
"""How the values of two digests of one block are joined."""
COLUMNS: Final = ("source", "form", *_JOINED)
HALVES: Final = {"lower_half": "hash & 4294967295", "upper_half": "hash >> 32"}
"""The halves of a hash in DuckDB's SQL. Sums of halves do not exceed 64 bits, which Spark would refuse."""
_SAME: Final = "pass the same columns; content='' leaves the content out"


def digest(table: Any, **options: Unpack[SideOptions]) -> pa.Table:
    """Return the digest of messages: per log and block, their number and the sums of their hashes.

    A block is 65,536 offsets. The hash of a message is that of its offset, the value of its ID and its content. Equal
    messages give equal digests, so `compare` reads only the blocks whose digests differ. `spark_ext.digest` makes the
    same rows.

    Args:
        table: A path as for `audit_file`, a table as for `audit_table`, or an iterable of IDs or positions as for
            `compare`. It may be larger than the memory.
        **options: The columns, as `ColumnNames` explains, ``timezone``, ``memory`` and ``temp_dir``, as
            `AuditOptions` explains, and ``format``, ``delimiter`` and ``header`` of files, as `audit_file` explains.
            ``timestamp`` is by default the time of the IDs, and ``content`` must be text,
            binary or integers.

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
    named, rules, duck, reading = settings_in("digest", options)
    side = opened(duck, "table", table, lambda _: named, reading)
    columns = side.columns
    offset_of(columns)
    for name in columns.content:
        type = side.source.columns[name]
        check_content(name, kind_of(type), type.lower())
    try:
        rows = Side(duck, side, rules)
        text = statements("compare.sql")["digest"].format(div="//", side=f"({rows.hashed(columns.content)})", **HALVES)
        blocks = duck.kept("digest", text)
        if columns.timestamp is not None:
            ((last, number),) = duck.rows(f"SELECT max(last_time), sum(n) FROM {blocks}")
            check_moments(duck, rows.source, "timestamp", columns.timestamp, last, unread=bool(number) and last is None)
    except duckdb.Error as error:
        raise read_error(side.source, error) from None
    named_blocks = duck.table(
        f"SELECT names.name AS source, n AS rows, low, high, first_time, last_time, lower, upper FROM {blocks} AS d "
        f"LEFT JOIN (SELECT DISTINCT log, name FROM {rows.logs}) AS names ON names.log = d.log"
    )
    return merge_digests([named_blocks.append_column("form", pa.repeat(form_of(columns), named_blocks.num_rows))])


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
    merged = pa.table({name: blocks[f"{name}_{_JOINED[name]}" if name in _JOINED else name] for name in COLUMNS})
    merged = merged.cast(_schema())
    for index, name in enumerate(("source", "form")):
        merged = merged.set_column(index, name, merged[name].combine_chunks().dictionary_encode())
    return merged


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
    return joined.append_column("block", pc.bit_wise_and(joined["low"], -SIZE))


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
        kind: The kind of its type, of DuckDB or of Spark.
        type: The type, for the error.
    """
    if kind not in ("text", "integer", "null"):
        raise ValueError(
            "`content` of a digest must be columns of text, binary or integers, got "
            f"{quote(name)} of type {type}: pass other columns, or an empty list for none"
        )


def loaded(duck: Duck, value: Any) -> pa.Table:
    """Return a digest of a table, or of the files of a path, whose rows are merged."""
    if not isinstance(value, pa.Table):
        is_path = isinstance(value, str | os.PathLike)
        source = open_file(duck, value) if is_path else open_frame(duck, value)
        value = duck.table(source.scan(source.columns))
    return merge_digests([value])


def differing_blocks(sent: pa.Table, landed: pa.Table) -> pa.Table:
    """Return the blocks in which two digests differ: ``source``, ``block``, and the rows ``sent`` and ``landed``."""
    both = _joined([sent, landed])
    is_sent = pa.array([True] * sent.num_rows + [False] * landed.num_rows, pa.bool_())
    keys = {"source": both["source"].cast(pa.large_string()), "block": both["block"]}
    rows = {"sent": pc.if_else(is_sent, both["rows"], 0), "landed": pc.if_else(is_sent, 0, both["rows"])}
    more = {name: pc.multiply(both[name], pc.if_else(is_sent, 1, -1)) for name in ("rows", "lower", "upper")}
    # Rows without a place are not messages of a block, so they are counted alone.
    blocks = pa.table({**keys, **rows, **more}).filter(pc.is_valid(both["source"])).group_by([*keys])
    sums = blocks.aggregate([(name, "sum") for name in (*rows, *more)])
    differs = reduce(pc.or_, (pc.not_equal(sums[f"{name}_sum"], 0) for name in more))
    chosen = sums.filter(differs).sort_by([(key, "ascending") for key in keys])
    return chosen.select([*keys, "sent_sum", "landed_sum"]).rename_columns([*keys, *rows])


def ranges_of(blocks: pa.ChunkedArray, most: int = 200) -> list[tuple[int, int]]:
    """Return ranges of offsets that have some blocks, with the largest gaps between them; neighbors are one range.

    Args:
        blocks: The numbers of the blocks, at least one.
        most: Number of ranges, because each is a condition of a query.
    """
    numbers = sorted(set(blocks.to_pylist()))
    gaps = [index for index in range(1, len(numbers)) if numbers[index] - numbers[index - 1] > SIZE]
    gaps = sorted(sorted(gaps, key=lambda index: numbers[index - 1] - numbers[index])[: most - 1])
    firsts, lasts = [0, *gaps], [*gaps, len(numbers)]
    return [(numbers[first], numbers[last - 1] + SIZE - 1) for first, last in zip(firsts, lasts, strict=True)]
