"""The rows of one message in a DataFrame, by filters that its files can skip by."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from msgid.audit.inputs import check_named_by, checked_columns
from msgid.audit.options import columns_in
from msgid.audit.story import CHILD, MAIN
from msgid.audit.tracing import Wanted
from msgid.shared.validate import quote
from spark_ext.auditing._roles import kind_of, offset_column, source_column
from spark_ext.columns.column_types import quoted_name, text_column
from spark_ext.columns.identity import check_ids, has_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from msgid.audit.options import ColumnNames


def trace(id: Any, df: DataFrame, /, **columns: Unpack[ColumnNames]) -> DataFrame:
    """Return the rows of one message and of the outputs that its handlers derived from it.

    The filters compare a column with the stored forms of the ID, so Parquet skips files and row groups by their
    statistics. Text is found in upper case, in lower case, as given, and with its last 16 digits in lower case.

    Parameters
    ----------
    id : str, bytes or uuid.UUID
        ID of any version, or a position such as ``"orders/1:700"``.
    df : DataFrame
        The table. Its columns of IDs are text or binary.
    **columns
        The columns, as `msgid.audit.ColumnNames` explains. Known columns need no argument.

    Returns
    -------
    DataFrame
        The rows of ``df``, and the column ``trace``: ``message``, the name of an output such as ``output 0``, or
        ``made from it`` for a row whose ``input_id`` is the message.

    Raises
    ------
    ValueError
        If the ID is empty, or the table has neither a column of IDs nor offsets that can be searched.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156f7e71c361b21bc024ccdbe00000007", 5), ("other", 6)], ["id", "amount"])
    >>> trace("0156F7E71C361B21BC024CCDBE00000007", df).select("amount", "trace").show()
    +------+-------+
    |amount|  trace|
    +------+-------+
    |     5|message|
    +------+-------+
    """
    wanted = Wanted(id)
    chosen = checked_columns(df.columns, columns_in("trace", columns))
    parent = chosen.parent or ("input_id" if "input_id" in df.columns else None)
    roles: dict[str, Column] = {}
    if chosen.id is not None and wanted.ids:
        roles = {role: _is_any(df, "id", chosen.id, forms) for role, forms in wanted.by_role().items()}
    offsets = sorted(wanted.offsets())
    if chosen.offset is not None and offsets:
        # Spark skips files by the column itself, and not by its text.
        is_integer = isinstance(df.schema[chosen.offset].dataType, IntegralType)
        offset = F.col(quoted_name(chosen.offset)) if is_integer else offset_column(df, chosen.offset)
        for name in filter(None, (*chosen.source, chosen.incarnation)):
            check_named_by(name, kind_of(df, name), df.schema[name].dataType.simpleString())
        at = [offset.isin(offsets) & _is_of(wanted, source_column(df, chosen))]
        roles[MAIN] = reduce(or_, [roles[MAIN], *at] if MAIN in roles else at)
    if parent is not None and wanted.ids:
        roles[CHILD] = _is_any(df, "parent", parent, wanted.by_role()[MAIN])
    if not roles:
        raise ValueError(f"cannot search the table for {quote(id)}: it must have a column of IDs, got {df.columns}")
    named = F.coalesce(*(F.when(test, F.lit(name)) for name, test in roles.items()))
    return df.where(reduce(or_, roles.values())).withColumn("trace", named)


def _is_any(df: DataFrame, argument: str, name: str, forms: Mapping[str, Sequence[Any]]) -> Column:
    """Return whether a column has one of the stored forms of an ID; files are skipped by this comparison."""
    check_ids(df, argument, name)
    if has_bytes(df, name):
        return F.col(quoted_name(name)).isin([*forms["BLOB"]])
    return text_column(df, name).isin([*forms["VARCHAR"]])


def _is_of(wanted: Wanted, log: Column) -> Column:
    """Return whether a log is that of a position, or of an ID that holds one."""
    named = [(log == name) | log.endswith(f"/{name}") for name, _ in wanted.places]
    nodes = wanted.log_bits()
    bits = F.substring(F.sha2(log.cast("binary"), 256), 1, 11)
    return reduce(or_, [*named, *([bits.isin(nodes)] if nodes else [])])
