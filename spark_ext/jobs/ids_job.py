"""The job ``ids``: parse the IDs in files of messages, or add IDs to their rows.

Its parts can be used alone: `with_position_ids`, `split_malformed`, `with_id_columns`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from msgid import layout
from msgid.audit.inputs import check_joined
from msgid.shared.known_tables import CANONICAL, KIND, QUARANTINE
from msgid.shared.known_tables import IDS as JOB_IDS
from msgid.shared.moments import UNIX_SECONDS_MAX, UNIX_SECONDS_MIN
from spark_ext.columns.column_types import INTEGER_TYPES, has_slash, integer_column, quoted_name
from spark_ext.columns.identity import hex_text
from spark_ext.columns.making import position_id
from spark_ext.columns.moment_columns import within_years, zoned_moment
from spark_ext.columns.reading import try_parse_id
from spark_ext.columns.reasons import CORRUPT, CORRUPT_REASON, misfit_reason, no_id_reason
from spark_ext.columns.v0 import try_parse_v0, try_translate_v0
from spark_ext.jobs._input import BadInput, column_of, format_of, read_rows
from spark_ext.jobs._output import write_table, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

REASON = "reason"
_NO_POSITION = (
    f"no position: source, offset (an integer of 0 to {layout.OFFSET_MAX}) or time is missing or malformed, "
    "or the time does not name its time zone"
)
_LOCAL: Final = r"\A\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?\z"
_OFFSET: Final = re.compile(r"[+-]\d\d:\d\d")
IDS: Final = JOB_IDS.folder


class Count(NamedTuple):
    """The number of rows with IDs of one kind and, for version 1, of one origin."""

    kind: str
    origin: str | None
    rows: int


class Summary(NamedTuple):
    """The numbers of rows in the output folder: by kind and origin of their IDs, and in quarantine."""

    counts: list[Count]
    malformed: int

    @property
    def rows(self) -> int:
        """The number of rows read."""
        return sum(count.rows for count in self.counts) + self.malformed


class Position(NamedTuple):
    """The columns from which the position IDs of rows without IDs are made."""

    source: tuple[str, ...]
    offset: str | None
    at: str | None
    timezone: str | None = None
    """Time zone of times without an offset from UTC. Default: such a time is malformed."""

    def check(self) -> None:
        """Raise BadInput for options that do not fit together, before Spark is asked."""
        if not (self.source and self.offset is not None and self.at is not None):
            raise BadInput("position IDs need --source, --offset and --at: the columns that say where a row stands")
        _check_zone(self.timezone)


def with_position_ids(df: DataFrame, column: str, position: Position) -> DataFrame:
    """Add a column of position IDs; the ID is NULL if the row's source, offset or time is missing or malformed.

    Raises:
        BadInput: if a column is missing or not named, or if the name is taken.
    """
    position.check()
    source, offset, at, timezone = position
    _refuse_names(df, [column], "--column names another for the new ids")
    assert offset is not None
    assert at is not None
    names = [_source_text(df, name) for name in source]
    try:
        check_joined(has_slash(df, source))
    except ValueError as error:
        raise BadInput(f"cannot make position IDs: {error}") from None
    log = F.concat(names[0], *(part for name in names[1:] for part in (F.lit("/"), name)))
    column_of(df, offset)
    try:
        number = integer_column(df, offset)
    except ValueError:
        type = df.schema[offset].dataType.simpleString()
        raise BadInput(
            f"--offset must name a column of integers or of their digits, got {offset!r} of {type}"
        ) from None
    number = F.when(number.between(0, layout.OFFSET_MAX), number)
    read, parts = _with_parts(df, log, number, moment_in(df, at, timezone))
    return read.withColumn(column, position_id(*parts)).drop(*parts)


def _source_text(df: DataFrame, name: str) -> Column:
    """Return a part of the log's name as text: text or an integer, whose text does not depend on the session."""
    column, type = column_of(df, name), df.schema[name].dataType
    if not isinstance(type, (StringType, *INTEGER_TYPES)):
        raise BadInput(f"--source must name columns of text or integers, got {name!r} of {type.simpleString()}")
    return column.cast("string")


def _with_parts(df: DataFrame, *parts: Column) -> tuple[DataFrame, list[Column]]:
    """Add the parts of other columns under new names, and return them.

    In a step of their own they are computed once. Written into each expression that uses them, they would be copied up
    to 24 times, and Spark would spend seconds and hundreds of megabytes on the plan.
    """
    longer = "_" * max(map(len, df.columns))
    names = [f"{longer}_{index}" for index in range(len(parts))]
    return df.withColumns(dict(zip(names, parts, strict=True))), [F.col(name) for name in names]


def moment_in(df: DataFrame, name: str, zone: str | None = None) -> Column:
    """Return a column of times as timestamps or Unix seconds; NULL for other text, and outside the years 1 to 9999.

    Numbers, and text of digits, are Unix seconds. Other text is ISO 8601. Nothing depends on the session.

    Args:
        df: The rows.
        name: Name of the column.
        zone: Time zone of times without an offset from UTC. Default: such text becomes NULL.

    Raises:
        BadInput: if the zone is unknown, if the column is missing or of another type, or if its type does not have a
            time zone and ``zone`` is missing.
    """
    column, type = column_of(df, name), df.schema[name].dataType
    _check_zone(zone)
    if isinstance(type, TimestampType):
        return within_years(column)
    if isinstance(type, NumericType):
        return F.when(column.between(UNIX_SECONDS_MIN, UNIX_SECONDS_MAX), column)
    if isinstance(type, (TimestampNTZType, DateType)) and zone is not None:
        return _in_zone(column.cast("timestamp_ntz"), zone)
    if not isinstance(type, StringType):
        raise BadInput(
            f"--at must name a column of timestamps with time zone, Unix seconds or text, got {name!r} of type "
            f"{type.simpleString()}; --timezone names the time zone of timestamps without one"
        )
    seconds = F.when(column.rlike(r"\A-?\d{1,12}\z"), column.try_cast("bigint"))
    unix = F.when(seconds.between(UNIX_SECONDS_MIN, UNIX_SECONDS_MAX), F.timestamp_seconds(seconds))
    moment = F.coalesce(unix, zoned_moment(column))
    if zone is None:
        return moment
    return F.coalesce(moment, _in_zone(F.when(column.rlike(_LOCAL), column.try_cast("timestamp_ntz")), zone))


def _in_zone(local: Column, zone: str) -> Column:
    utc = F.convert_timezone(F.lit(zone), F.lit("UTC"), local)
    return within_years(F.concat(utc.cast("string"), F.lit("Z")).try_cast("timestamp_ltz"))


def _check_zone(zone: str | None) -> None:
    """Raise BadInput if a text is not a time zone."""
    if zone is None or _OFFSET.fullmatch(zone):
        return
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, LookupError):
        raise BadInput(f"--timezone must be a time zone, such as Europe/Berlin or +02:00, got {zone!r}") from None


def with_id_columns(df: DataFrame, column: str = "id") -> DataFrame:
    """Add one column per field of the IDs in a column, named after the column: ``id_kind``, ``id_time`` ...

    A field that the ID's kind does not have is NULL. All fields are NULL if the text is not an ID.

    Raises:
        BadInput: if the column is missing, or a name is taken.
    """
    id = column_of(df, column)
    parsed, (text, v1, v0, v0_canonical) = _with_parts(
        df, hex_text(id), try_parse_id(id), try_parse_v0(id), try_translate_v0(id)
    )
    parts = {
        KIND: F.when(v1.isNotNull(), F.lit(layout.KIND_V1)).otherwise(v0.kind),
        CANONICAL: F.when(v1.isNotNull(), F.upper(text)).otherwise(v0_canonical),
        "time": v1.time,
        "mac": v1.mac,
        "origin": v1.origin,
        "sequence": v1.sequence,
        "host": v0.host,
        "port": v0.port,
        "offset": v0.offset,
        "pid": F.coalesce(v1.pid, v0.pid),
        "loader_hash": v0.loader_hash,
        "elapsed_ms": v0.elapsed_ms,
        "counter": v0.counter,
    }
    added = {f"{column}_{name}": part for name, part in parts.items()}
    _refuse_names(df, added, "rename it, or the column of ids")
    return parsed.withColumns(added).drop(text, v1, v0, v0_canonical)


def _refuse_names(df: DataFrame, names: Iterable[str], advice: str) -> None:
    """Raise `BadInput` if the input has one of the names in any case: Spark would overwrite that column."""
    taken = {name.lower() for name in names}
    for name in df.columns:
        if name.lower() in taken:
            raise BadInput(f"the input has a column {name!r} already; {advice}")


def split_malformed(df: DataFrame, column: str = "id") -> tuple[DataFrame, DataFrame]:
    """Split rows into those with an ID and those without; add a column ``reason`` to the second part.

    Every row is in one of the two parts, as it was read.
    """
    return _split(df, no_id_reason(hex_text(column_of(df, column))))


def _split(df: DataFrame, why: Column) -> tuple[DataFrame, DataFrame]:
    _refuse_names(df, [REASON], "rename it")
    marked = df.withColumn(REASON, F.coalesce(misfit_reason(df), why))
    good = marked.where(F.col(REASON).isNull()).drop(REASON, CORRUPT, CORRUPT_REASON)
    return good, marked.where(F.col(REASON).isNotNull()).drop(CORRUPT_REASON)


def run(
    spark: SparkSession,
    input: str,
    output: str,
    *,
    column: str = "id",
    format: str | None = None,
    mode: str = "error",
    position: Position | None = None,
    table_format: str = "parquet",
    options: Mapping[str, str] | None = None,
) -> Summary:
    """Read messages, write them to a table with one column per field of their IDs, and quarantine malformed rows.

    Args:
        spark: the session.
        input: a file or folder; any path that Spark can read.
        output: the output folder; its folders ``ids`` and ``quarantine`` are written.
        column: the column of IDs; ``value`` for a text file.
        format: one of `FORMATS`. Default: by the ending of the path.
        mode: Spark's save mode, ``error`` or ``overwrite``.
        position: the columns that position IDs are made from, in the new column ``column``.
        table_format: ``parquet`` or ``delta``: the format of the tables.
        options: options of Spark's reader of CSV.

    Raises:
        BadInput: if the column is missing, or the input has a column of a name that the job adds.
    """
    rows = read_rows(spark, input, format or format_of(input), options)
    good, malformed = _parts(rows, column, position)
    if mode == "error" and written(spark, f"{output}/{IDS}") is not None:
        raise BadInput(f"{output} holds results already; --overwrite replaces them")
    # A file that cannot be read ends the first write. The output is complete if its second table is there.
    write_table(malformed, f"{output}/{QUARANTINE}", "overwrite", table_format)
    write_table(good, f"{output}/{IDS}", mode, table_format)
    return summary(spark, output, column)


def _parts(df: DataFrame, column: str, position: Position | None) -> tuple[DataFrame, DataFrame]:
    if position is None:
        good, malformed = split_malformed(df, column)
    else:
        df = with_position_ids(df, column, position)
        good, malformed = _split(df, F.when(F.col(quoted_name(column)).isNull(), F.lit(_NO_POSITION)))
    return with_id_columns(good, column), malformed


def summary(spark: SparkSession, output: str, column: str = "id") -> Summary:
    """Count the rows that a run has written to its output folder."""
    kind, origin = (F.col(quoted_name(f"{column}_{name}")).alias(name) for name in ("kind", "origin"))
    counted = written(spark, f"{output}/{IDS}")
    counted_rows = [] if counted is None else counted.groupBy(kind, origin).count().collect()
    order: dict[str, int] = {name: index for index, name in enumerate((*layout.KINDS, *layout.ORIGINS))}
    counts = sorted(
        (Count(row["kind"], row["origin"], row["count"]) for row in counted_rows),
        key=lambda count: (order[count.kind], order.get(count.origin or "", -1)),
    )
    aside = written(spark, f"{output}/{QUARANTINE}")
    return Summary(counts, 0 if aside is None else aside.count())


def examples(spark: SparkSession, output: str, column: str, rows: int) -> DataFrame | None:
    """Return some of the written rows; None if the table is empty."""
    names = [column, *(f"{column}_{name}" for name in ("kind", "time", "mac", "host", "pid", "offset", "sequence"))]
    table = written(spark, f"{output}/{IDS}")
    return None if table is None else table.select(*map(quoted_name, names)).limit(rows)
