"""The sides of a comparison: paths, tables and iterables of IDs or positions as tables with known columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from msgid import layout
from msgid._known_tables import known_columns
from msgid._validate import in_range, quote
from msgid.audit._columns import audited
from msgid.audit._files import read_file
from msgid.audit._options import COLUMNS, columns_in
from msgid.audit._tables import arrow_table, id_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from msgid._known_tables import Columns


class Read(NamedTuple):
    """A side as a table; positions that were listed take the prefix of the other side's logs."""

    table: pa.Table
    is_listed: bool


class Side(NamedTuple):
    """The rows of a side, which are an Arrow table or a DataFrame of Spark, and their columns."""

    table: Any
    columns: Columns


def names_in_sent(
    names: Sequence[str], named: Mapping[str, Any], sent_columns: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the arguments that name columns for the side of ``sent``.

    Args:
        names: The columns of ``sent``.
        named: The arguments for the table.
        sent_columns: The arguments of the caller for ``sent``, or None.
    """
    if sent_columns is None:

        def kept(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return value if not value or value in names else None
            return [name for name in value if name in names] or None

        found = {argument: kept(value) for argument, value in named.items()}
        known = known_columns(names) if named["offset"] is None else None
        lacks_offset = found["offset"] is None and (known is None or known.offset is None)
        if lacks_offset or (named["source"] is not None and kept(named["source"]) != _plain(named["source"])):
            found["source"] = found["offset"] = None
        return {**found, "id": found["id"] or "id"}
    wrong = sorted(set(sent_columns) - set(COLUMNS))
    if wrong:
        raise ValueError(f"sent_columns must name {', '.join(COLUMNS)}, got {quote(wrong[0])}")
    return columns_in("compare", sent_columns)


def _plain(names: str | Sequence[str]) -> str | list[str]:
    return names if isinstance(names, str) else list(names)


def read_side(which: str, value: Any) -> Read:
    """Return a side as a table: of a path, a table, or an iterable of IDs or positions."""
    if isinstance(value, str | os.PathLike) or hasattr(value, "read"):
        return Read(read_file(value), is_listed=False)
    if isinstance(value, pa.Table | Mapping) or hasattr(value, "__dataframe__"):
        return Read(arrow_table(value), is_listed=False)
    if isinstance(value, bytes | bytearray | memoryview) or not hasattr(value, "__iter__"):
        raise TypeError(f"{which} must be a path, a table or an iterable of IDs or positions, got {quote(value)}")
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return Read(pa.table({"offset" if pa.types.is_integer(value.type) else "value": value}), is_listed=True)
    if type(value).__module__.partition(".")[0] == "numpy" and (value.dtype.kind not in "iu" or value.ndim > 1):
        return Read(pa.table({"value": id_column(value)}), is_listed=True)
    items = list(value)
    if items and all(map(_is_offset, items)):
        return Read(pa.table({"offset": offset_column(items)}), is_listed=True)
    if not items:  # of either kind
        return Read(pa.table({"id": pa.array([], pa.string()), "offset": pa.array([], pa.int64())}), is_listed=True)
    positions = [_position(item) for item in items]
    if not any(positions):
        return Read(pa.table({"value": id_column(items)}), is_listed=True)
    if not all(positions):
        wrong = quote(items[positions.index(None)])
        raise TypeError(f"{which} must have IDs alone or positions alone, got {wrong} among positions")
    columns = list(zip(*(pair for pair in positions if pair is not None), strict=True))
    return Read(pa.table({"source": pa.array(columns[0]), "offset": offset_column(columns[1])}), is_listed=True)


def offset_column(items: Iterable[Any]) -> pa.Array:
    """Return offsets as a column; one that is None or out of range is NULL, as Arrow does not hold every integer."""
    valid = (int(number) if in_range(number, 0, layout.OFFSET_MAX) else None for number in items)
    return pa.array(valid, pa.int64())


def _is_offset(item: object) -> bool:
    return isinstance(item, Integral) and not isinstance(item, bool)


def _position(item: Any) -> tuple[str, int] | None:
    """Return the log and the offset of a position; None for any other value."""
    if all(hasattr(item, name) and not callable(getattr(item, name)) for name in ("topic", "partition", "offset")):
        item = (item.topic, item.partition, item.offset)
    is_pair = isinstance(item, tuple | list) and len(item) > 1 and _is_offset(item[-1])
    return ("/".join(map(str, item[:-1])), int(item[-1])) if is_pair else None


def side_of(which: str, read: Read, named: dict[str, Any]) -> Side:
    """Return a side with its columns."""
    table = read.table
    if read.is_listed:
        named = columns_in(which, {"id": None})
        if "offset" in table.column_names:
            named |= {"offset": "offset", "id": "id", "source": "source" if "source" in table.column_names else None}
    try:
        return Side(*audited(table, named))
    except ValueError as error:
        raise ValueError(f"cannot compare {which}: {error}") from None
