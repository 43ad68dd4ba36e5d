"""Reduce, on a cluster: the columns of a table as the roles that the statements know: log, offset, ID and times."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DecimalType, IntegralType, NullType, StringType, StructField

from msgid import layout
from msgid.audit.definitions import AHEAD_S
from msgid.audit.inputs import LOG
from msgid.audit.reduction import FIELDS, Relations
from msgid.shared.moments import check_unit
from msgid.shared.validate import quote
from spark_ext._compat import try_cast
from spark_ext.columns.column_types import integer_column, quoted_name, text_column, type_of
from spark_ext.columns.crc import look_up, octet, word
from spark_ext.columns.fingerprint import fingerprint_of
from spark_ext.columns.id_text import v1_bytes
from spark_ext.columns.identity import hex_text, id_identity, id_text, identity, without_padding
from spark_ext.columns.moment_columns import micros_column, zoned_moment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid.audit.options import Rules
    from msgid.shared.known_tables import Columns
    from spark_ext.auditing._engine import SparkEngine

_DATE_TIME: Final = r"\A\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?\z"
_DIGITS: Final = r"\A-?\d{1,19}\z"
_BYTE: Final = [str(value) for value in range(256)]
_BITS_OF_WORD: Final = 5


def _number(first: int, length: int) -> str:
    """Return a part of a key, from 1, as a number in SQL."""
    return f"CAST(conv(hex(substr(key, {first}, {length})), 16, 10) AS BIGINT)"


def _bytes(first: int, length: int) -> str:
    return f"substr(CAST({{id}} AS BINARY), {first}, {length})"


_DASHES: Final = " AND ".join(f"{_bytes(index, 1)} = X'2D'" for index in (9, 14, 19, 24))
_HEX: Final = ", ".join(_bytes(*part) for part in ((1, 8), (10, 4), (15, 4), (20, 4), (25, 12)))
_IS_UUID: Final = (
    f"(octet_length({{id}}) = 36 AND {_DASHES} AND octet_length(unhex(CAST(concat({_HEX}) AS STRING))) = 16)"
)
"""Whether a text is a UUID with dashes, in SQL: a regular expression of Spark takes three times as long."""

WORDS: Final = {
    "node": _number(2, 6),
    "pid": _number(8, 2),
    "seconds": f"({_number(10, 4)} + {layout.EPOCH_UNIX})",
    "word": f"({_number(14, 3)} * 8 + part)",
    "identity": "value",
}
"""The fields of a key, which are the first 16 bytes of an ID, and of a part; and the identity of a value.

The last byte of an ID is a part of 3 bits and a place of 5.
"""


class Roles:
    """The columns of a table as roles.

    Parameters
    ----------
    df : DataFrame
        The table.
    columns : Columns
        Its columns.
    rules : Rules
        The rules of the audit.
    """

    def __init__(self, df: DataFrame, columns: Columns, rules: Rules) -> None:
        self._df, self._columns, self._rules = df, columns, rules
        self._times = {
            "sent": micros_of(df, columns.timestamp, rules.timezone),
            "landed": micros_of(df, columns.landed, rules.timezone),
        }

    @property
    def has_offsets(self) -> bool:
        """Whether the table has offsets; else IDs may be the positions."""
        return self._columns.offset is not None

    def relations(self, engine: SparkEngine) -> Relations:
        """Return the relations of the table."""
        columns, df = self._columns, self._df
        base = engine.add("base", df.select(*(moment.alias(name) for name, moment in self._times.items())))
        placed = contents = ids = id_contents = children = identities = None
        content = {"content": content_of(df, columns)} if columns.content else {}
        if columns.offset is not None:
            placed = engine.add("placed", self.placed())
            contents = engine.add("placed_contents", self.placed(**content)) if content else placed
        if columns.id is not None:
            ids = engine.add("ids", self.ids())
            id_contents = engine.add("id_contents", self.ids(**content)) if content else ids
        if columns.id is not None and columns.parent is not None:
            of_parents = engine.add("parents", self.ids(parent=self.parent()))
            fields = ", ".join(f"{WORDS[name]} AS {name}" for name in FIELDS)
            text = f"SELECT key, part, place, {fields}, parent FROM {of_parents} WHERE key IS NOT NULL"
            children = engine.add("children", engine.frame(text))
            identities = engine.add("identities", df.select(id_identity(df, columns.id).alias("identity")))
        group = "count(DISTINCT content)" if content else "CAST(1 AS BIGINT)"
        return Relations(base, placed, contents, ids, id_contents, children, identities, _same, group, WORDS)

    def parent(self) -> Column:
        """Return the identity of the parent of each row."""
        assert self._columns.parent is not None
        return id_identity(self._df, self._columns.parent)

    def placed(self, **others: Column) -> DataFrame:
        """Return the rows by their places: the log and the offset are both NULL if one of them is."""
        log, off = placed_columns(self._df, self._columns)
        time, by_id = self._times["sent"], self._columns.timestamp is None and self._columns.id is not None
        if self._columns.id is not None and by_id:
            time = id_text(self._df, self._columns.id)
        values = {"log": log, "off": off, **self._times, "time": time, **others}
        rows = self._df.select(*(value.alias(name) for name, value in values.items()))
        return rows.withColumn("time", seconds_of(F.col("time")) * 1_000_000) if by_id else rows

    def ids(self, **others: Column) -> DataFrame:
        """Return the rows by their IDs: key, part and place of version 1, and the identity of any other value."""
        assert self._columns.id is not None
        near = self._times["landed" if self._columns.landed else "sent"]
        values = {"id": id_text(self._df, self._columns.id), "near": near, **others}
        rows = self._df.select(*(value.alias(name) for name, value in values.items()))
        # Spark keeps the bytes in a projection of their own, because several columns need them.
        rows = rows.select("*", v1_bytes(F.col("id")).alias("raw"))
        id, raw = F.col("id"), F.col("raw")
        last = look_up(octet(F.substring(raw, layout.ID_LENGTH, 1)), _BYTE).cast("int")
        # Python workers get no text that is not UTF-8; it has the identity of its bytes.
        valid = F.when(F.is_valid_utf8(id), identity(id)).otherwise(F.concat(F.lit("0x"), F.hex(id)))
        other = F.coalesce(valid, F.when(id.isNotNull(), F.lit("")))
        is_uuid = F.expr(_IS_UUID.format(id="id"))
        future = [(seconds_of(id) - AHEAD_S) * 1_000_000 > F.col("near")] if self._columns.landed else []
        future += [] if self._rules.earliest is None else [seconds_of(id) < self._rules.earliest]
        is_future = reduce(or_, future) if future else F.lit(False)
        return rows.select(
            F.substring(raw, 1, layout.BODY_LENGTH).alias("key"),
            F.shiftright(last, _BITS_OF_WORD).alias("part"),
            last.bitwiseAND((1 << _BITS_OF_WORD) - 1).alias("place"),
            F.when(is_uuid, F.lower(id)).when(raw.isNull(), other).alias("value"),
            is_uuid.alias("is_uuid"),
            "near",
            F.when(is_future, F.lit(1)).otherwise(F.lit(0)).alias("future"),
            *others,
        )


def _same(logs: list[Any]) -> dict[Any, str]:
    """Return the names of logs, which are their names here."""
    return {log: log for log in logs}


# --- Logs and offsets ---


def kind_of(df: DataFrame, name: str) -> str:
    """Return the kind of a column's type, as `msgid.audit` names it."""
    type = df.schema[name].dataType
    kinds = {IntegralType: "integer", StringType | BinaryType: "text", DecimalType: "decimal", NullType: "null"}
    return next((kind for one, kind in kinds.items() if isinstance(type, one)), type.simpleString())


def offset_column(df: DataFrame, name: str) -> Column:
    """Return the offsets of a column as bigint; NULL for a value that is not an offset."""
    value, type = F.col(quoted_name(name)), type_of(df, name)
    if isinstance(type, NullType):
        return F.lit(None).cast("bigint")
    if isinstance(type, DecimalType):
        offset = F.when(value == F.floor(value), value).try_cast("bigint")
    else:
        offset = integer_column(df, name)
    return F.when(offset.between(0, layout.OFFSET_MAX), offset)


def source_column(df: DataFrame, columns: Columns) -> Column:
    """Return the name of each row's log and its incarnation; NULL if a part of it is NULL."""
    names = [text_column(df, name) for name in columns.source] or [F.lit(LOG)]
    log = reduce(lambda parts, name: F.concat(parts, F.lit("/"), name), names)
    log = F.concat(F.lit(columns.prefix), log) if columns.prefix else log
    if columns.incarnation is None:
        return log
    return F.coalesce(F.concat(log, F.lit("@"), text_column(df, columns.incarnation)), log)


def placed_columns(df: DataFrame, columns: Columns) -> tuple[Column, Column]:
    """Return the log and the offset of each row; NULL for a row that does not have both."""
    assert columns.offset is not None
    log, offset = source_column(df, columns), offset_column(df, columns.offset)
    # The text of the log is not needed to know whether there is one.
    placed = reduce(and_, (F.col(quoted_name(name)).isNotNull() for name in columns.source), offset.isNotNull())
    return F.when(placed, log), F.when(placed, offset)


# --- Moments ---


def micros_of(df: DataFrame, name: str | None, timezone: str | None) -> Column:
    """Return the moments of a column as microseconds since 1970; text without an offset from UTC has the given one."""
    micros = micros_column(df, name)
    if name is None or timezone is None or not isinstance(type_of(df, name), StringType):
        return micros
    text = text_column(df, name)
    zoned = F.when(text.rlike(_DATE_TIME), F.concat(text, F.lit(timezone)))
    return F.coalesce(F.unix_micros(zoned_moment(zoned)), micros)


def check_moments(df: DataFrame, argument: str, name: str, last: int | None, unread: bool) -> None:
    """Raise ValueError if numbers are of another unit, or if no time of a column is read though there are some.

    Parameters
    ----------
    df : DataFrame
        The table.
    argument : str
        The argument that names the column.
    name : str
        The column.
    last : int or None
        The last moment of the column in microseconds since 1970.
    unread : bool
        Whether no row has a moment.
    """
    type = type_of(df, name)
    if not isinstance(type, IntegralType | StringType):
        return
    seconds = last is not None and 10**9 <= last // 1_000 < 3 * 10**9
    if not unread and not (seconds and argument == "timestamp"):
        return
    text = text_column(df, name)
    number = F.when(text.rlike(_DIGITS), try_cast(text, "decimal(20, 0)"))
    ((greatest, least),) = df.agg(F.max(number), F.min(text)).collect()
    if greatest is not None:
        check_unit(f"`{argument}`", int(greatest), 1_000)
    if unread and isinstance(type, StringType) and least is not None:
        is_local = df.where(text.rlike(_DATE_TIME) & (text == F.lit(least))).limit(1).count()
        if is_local:
            raise ValueError(
                f"`{argument}` must have times that name their offset from UTC, got {quote(least)}: "
                "pass timezone='UTC' if the times are in UTC, or another offset"
            )


# --- IDs and contents ---


def seconds_of(id: Column) -> Column:
    """Return the Unix seconds of version-1 IDs; NULL for any other value."""
    raw = v1_bytes(hex_text(id))
    return word(F.substring(raw, layout.FIELDS["seconds"].start + 1, 4)) + layout.EPOCH_UNIX


def content_of(df: DataFrame, columns: Columns) -> Column:
    """Return the fingerprint of the content.

    The columns have the names of their places, because two sides of a comparison have other names. Text has the
    fingerprint of its bytes.
    """
    values = []
    for index, name in enumerate(columns.content):
        field, value = df.schema[name], F.col(quoted_name(name))
        is_text = isinstance(field.dataType, StringType)
        if is_text:
            value = without_padding(value, field).cast("binary")
        values.append((value, StructField(f"{index:04}", BinaryType() if is_text else field.dataType)))
    return fingerprint_of(values)
