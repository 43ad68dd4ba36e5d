"""Make IDs on Spark: from a position, from a parent, or new ones."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from msgid import layout
from msgid.ids.checked_bytes import NOT_AN_ID
from msgid.ids.derived import assigned_node
from msgid.shared.moments import seconds_since_epoch
from spark_ext._arguments import check_dataframe, required_column
from spark_ext._compat import arrow_udf
from spark_ext._private import use_own_python
from spark_ext.columns.building import byte_digits, computed_below, cut, joined, null_text, padded_digits
from spark_ext.columns.column_types import INTEGERS, MOMENTS, column, of_types
from spark_ext.columns.id_text import V0_DIGITS, VERSION_1_DIGITS, has_v1_shape, is_canonical_v0, is_id, is_uuid
from spark_ext.columns.identity import hex_text
from spark_ext.columns.moment_columns import is_within_years, raise_outside_years, unix_seconds_of
from spark_ext.columns.reasons import raise_invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from spark_ext.columns.column_types import ColumnOrName

_SECONDS: Final = "_msgid_seconds"
"""Attribute of a column of `derive_id`: the digits of its time."""
_NO_SECONDS: Final = "0" * 2 * layout.FIELDS["seconds"].width
_IN_STREAMS = "in a streaming query use position_id, derive_id or generate_id"


def position_id(source: ColumnOrName, offset: ColumnOrName, at: ColumnOrName) -> Column:
    """Return the ID of a message at a position of an ordered log, as `msgid.position_id` does.

    The ID depends only on source, offset and time, so rereading a row always gives the same ID. Retries, restarts and
    replays change nothing, in a batch and in a stream.

    Parameters
    ----------
    source : Column or str
        Name of one ordered log, as text or integer; of a single log, ``lit("kafka://orders/3")``.
    offset : Column or str
        The message's place in the log: an integer of 0 to 2**48 - 1.
    at : Column or str
        The message's own time, a timestamp or Unix seconds. Text, a date or a ``timestamp_ntz`` is refused, because its
        meaning depends on the session's time zone: cast it with the zone that it was written in.

    Returns
    -------
    Column
        Text of 34 hex digits with the origin ``position``; NULL if an argument is NULL and the others are valid. The
        query fails with the error condition ``USER_RAISED_EXCEPTION`` if an offset is out of range, or a time is
        outside the years 1 to 9999.

    Raises
    ------
    pyspark.errors.AnalysisException
        If an argument has another type: ``INVALID_EXTRACT_FIELD`` with the argument's name and type, before the query
        runs.

    Examples
    --------
    >>> from pyspark.sql.functions import lit
    >>> df = spark.createDataFrame([(1234, 1648047038)], ["offset", "at"])
    >>> df.select(position_id(lit("kafka://orders/3"), "offset", "at")).show(truncate=False)
    +----------------------------------+
    |position_id                       |
    +----------------------------------+
    |013B0121EF30BE0000024CCDBE000004D2|
    +----------------------------------+
    """
    given = column(offset, "offset")
    whole, fits, shown = _offset(given)
    message = F.concat(F.lit(f"offset must be 0 to {layout.OFFSET_MAX}, got "), shown)
    valid = F.when(fits, whole)
    digest = computed_below(F.sha2(column(source, "source").cast("string"), 256), never="")
    # Pid and seconds are neighbours, so one number writes both.
    start = F.shiftleft(F.shiftright(valid, 32).bitwiseOR(1 << 16), 32)
    pid_and_seconds = cut(F.hex(start.bitwiseOR(_seconds(column(at, "at")))), 2, 12)
    sequence = padded_digits(whole.bitwiseAND(layout.UINT32_MASK), 8)
    id = joined(F.upper(joined(*_synthetic(digest, "position", 0))), pid_and_seconds, sequence)
    wrong = F.when(fits, raise_outside_years("at", column(at, "at"))).when(given.isNotNull(), F.raise_error(message))
    checked = F.coalesce(id, wrong)
    for check in (
        _text_or_integer("position_id", "source", column(source, "source")),
        of_types("position_id", "offset", given, "an integer", INTEGERS),
        _moment("position_id", column(at, "at")),
    ):
        checked = check(checked)
    return checked.alias("position_id")


def derive_id(parent: ColumnOrName, name: ColumnOrName, *names: ColumnOrName, at: ColumnOrName | None = None) -> Column:
    """Return the ID of an output of a message, as `msgid.derive_id` does.

    Processing the message again always gives the same ID.

    Parameters
    ----------
    parent : Column or str
        The message's ID of any version, as text or binary; or a UUID, as text with dashes. For rows with a natural key,
        ``lit(uuid)`` of a UUID of your own that stands for the set of keys, as the namespace of a UUIDv5 does.
    name : Column or str
        Name of the output among those of the message, or the natural key: text, or an integer for its decimal digits.
        If all rows have the same kind of output, ``lit("invoice")``.
    *names : Column or str
        Names of outputs of that output, such as the number of a line of an invoice: the last ID is returned.
    at : Column or str, optional
        A timestamp or Unix seconds. Default: the parent's seconds; 0 for a version-0 parent or a UUID, which have
        none: the ID is then dated 2021-01-01.

    Returns
    -------
    Column
        Text of 34 hex digits with the origin ``derived``; NULL if an argument is NULL and the others are valid. The
        query fails with the error condition ``USER_RAISED_EXCEPTION`` if a parent is neither an ID nor a UUID, or a
        time is outside the years 1 to 9999.

    Raises
    ------
    pyspark.errors.AnalysisException
        If ``name`` or ``at`` has another type, before the query runs.

    Examples
    --------
    >>> from pyspark.sql.functions import lit
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",)], ["id"])
    >>> df.select(derive_id("id", lit("invoice"))).show(truncate=False)
    +----------------------------------+
    |derive_id                         |
    +----------------------------------+
    |01DF8354A8161BB5AE024CCDBE2DFA320C|
    +----------------------------------+
    """
    moment = None if at is None else column(at, "at")
    given = None if moment is None else padded_digits(_seconds(moment), 8)
    wrong_time = null_text() if moment is None else raise_outside_years("at", moment)
    inner = getattr(parent, "__dict__", {}).get(_SECONDS)
    if inner is None:
        derived, when = _derived(hex_text(parent), column(name, "name"), given, wrong_time)
    else:  # a nested call: Spark's planner would copy its expression for each use of a parent
        when = inner if given is None else given
        derived = _derived_again(column(parent, "parent"), column(name, "name"), when)
        derived = derived if given is None else F.coalesce(F.when(given.isNotNull(), derived), wrong_time)
    for level in names:
        derived = _derived_again(derived, column(level, "name"), when)
    for level in (name, *names):
        derived = _text_or_integer("derive_id", "name", column(level, "name"))(derived)
    if moment is not None:
        derived = _moment("derive_id", moment)(derived)
    derived = derived.alias("derive_id")
    derived.__dict__[_SECONDS] = when
    return derived


def _derived(text: Column, name: Column, given: Column | None, wrong_time: Column) -> tuple[Column, Column]:
    """Return the ID of an output of any parent, and the digits of its time: those given, or the parent's."""
    of_uuid = is_uuid(text)
    has_bare_digits = has_v1_shape(text) | F.octet_length(text).isin(*V0_DIGITS)
    bare = (
        F.when(has_bare_digits, text)
        .when(is_canonical_v0(text), F.substring(text, 3, 2 * layout.V0_LENGTHS[1]))
        .when(of_uuid, F.replace(text, F.lit("-")))
    )
    hashed = F.concat(F.unhex(bare), F.unhex(F.lit("00")), name.cast("string").cast("binary"))
    digest = computed_below(F.sha2(hashed, 256), never="")
    seconds = layout.FIELDS["seconds"]
    when = given
    if when is None:
        own = cut(text, 2 * seconds.start + 1, 2 * seconds.width)
        when = F.when(has_v1_shape(text), own).otherwise(F.lit(_NO_SECONDS).cast("binary"))
    # 44 bits to the node, 16 to the pid, 32 to the sequence: digits 1 to 11, 12 to 15, 16 to 23.
    digits = joined(*_synthetic(digest, "derived", 4), when, cut(digest, 16, 8))
    id = F.hex(F.unhex(digits))  # in upper case, in half the time of `upper`
    is_parent = is_id(text) | of_uuid
    return F.coalesce(id, F.when(is_parent, wrong_time).when(text.isNotNull(), raise_invalid(text, NOT_AN_ID))), when


def _derived_again(id: Column, name: Column, seconds: Column) -> Column:
    """Return the ID of an output of a derived ID, which needs no check; ``seconds`` has the digits of its time.

    The ID and the digest are used once each. If an ID was used twice, each level would double the expression.
    """
    digest = F.sha2(F.concat(F.unhex(id), F.unhex(F.lit("00")), name.cast("string").cast("binary")), 256)
    start, pid = layout.FIELDS["node"].start, layout.FIELDS["seconds"].start
    origin = F.lit(f"{layout.ORIGINS['derived']:X}")
    digits = F.overlay(digest, origin, F.lit(2 * start), F.lit(0))
    # With a constant NULL, Spark would leave out the whole expression, and the errors in it. The ID is NULL then.
    when = F.coalesce(seconds.cast("string"), F.lit(_NO_SECONDS))
    digits = F.overlay(digits, when, F.lit(2 * pid - 1), F.lit(0))
    return F.concat(F.lit(VERSION_1_DIGITS), F.upper(F.left(digits, F.lit(layout.ID_DIGITS - 2))))


def _offset(offset: Column) -> tuple[Column, Column, Column]:
    """Return an offset as a bigint, whether it is in range, and its text."""
    whole = offset.cast("bigint")
    return whole, whole.between(0, layout.OFFSET_MAX), whole.cast("string")


def _seconds(at: Column) -> Column:
    """Return the seconds field of a moment: since 2021, rounded down, modulo 2**32; NULL outside the years."""
    return F.when(is_within_years(at), (unix_seconds_of(at) - layout.EPOCH_UNIX).bitwiseAND(layout.UINT32_MASK))


def _moment(function: str, at: Column) -> Callable[[Column], Column]:
    allowed = "a timestamp or Unix seconds (text, a date and timestamp_ntz depend on the session's time zone)"
    return of_types(function, "at", at, allowed, MOMENTS)


def _text_or_integer(function: str, argument: str, col: Column) -> Callable[[Column], Column]:
    return of_types(function, argument, col, "text or an integer", ("string", "char", "varchar", *INTEGERS))


def _synthetic(digest: Column, origin: layout.Origin, more: int) -> tuple[Column, ...]:
    """Return the parts of version and node, from the first 44 bits of a digest, and ``more`` digits of the digest.

    The origin is the second digit of the node.
    """
    start = (F.lit(VERSION_1_DIGITS), cut(digest, 1, 1), F.lit(f"{layout.ORIGINS[origin]:X}"))
    return (*start, cut(digest, 2, layout.SYNTHETIC_BITS // 4 - 1 + more))


def assign_id(run: str | None = None, at: datetime | float | None = None) -> Column:
    """Return a new ID for each row: the run's own node, the partition as pid, the row's number as sequence.

    One Column is for one query. Two queries that use one Column give the same IDs: call the function again for each
    DataFrame, and inside of ``foreachBatch``. `assign_ids` does so, and a Column of `generate_id` may be used again.

    The IDs are unique within a run. A retried task gives a row the same ID if the rows of its partition come in the
    same order. They do before any shuffle, and after a sort within partitions by a unique key (`assign_ids` sorts so).
    After a shuffle without that sort, a stage that runs again numbers its rows anew. Two attempts can then give one ID
    to different rows. Spark sometimes notices this and fails the job. For rows with a place or a key use `position_id`
    or `derive_id`. Assign IDs after a union: the union of a DataFrame with itself has each ID twice. Two calls with one
    ``run`` and one time give the same IDs, also in the branches of a condition: call it once and use its column.

    Parameters
    ----------
    run : str, optional
        Name of the run: the same name, time, partitions and order of rows give the same IDs again. If a later run with
        one name and time divides its rows in another way, as adaptive execution may, **other rows get these IDs**: give
        each run a time of its own. Default: a random node, new at each call of this function.
    at : datetime or float, optional
        Time of the run, an aware datetime or Unix seconds. Default: the time of this call. An ID keeps the seconds
        since 2021 modulo 2**32, so the time of an ID is right for 2021 to 2157 alone.

    Returns
    -------
    Column
        Text of 34 hex digits with the origin ``assigned``. The query fails with more than 65,536 partitions, or 2**32
        rows in one. Spark refuses the column in a streaming query.

    Examples
    --------
    >>> df = spark.range(2, numPartitions=1).select(assign_id("nightly/2026-11-21", at=1795219200))
    >>> df.show(truncate=False)
    +----------------------------------+
    |assign_id                         |
    +----------------------------------+
    |01173DEDD3A85A00000B12790000000000|
    |01173DEDD3A85A00000B12790000000001|
    +----------------------------------+
    """
    moment = datetime.now(timezone.utc) if at is None else at
    seconds = seconds_since_epoch("at", moment) & layout.UINT32_MASK
    head = layout.pack(assigned_node(run), 0, 0, 0)[: layout.FIELDS["pid"].start].hex().upper()
    # Seconds and sequence are written as one number. `hex` omits its leading zeros; their number is known here, so
    # they follow the digits of the pid.
    zeros = "0" * (8 - len(f"{seconds:X}")) if seconds else "0" * 7
    above = (seconds << 32) - (1 << 64 if seconds >> 31 else 0)  # a bigint has a sign, which hex does not mind

    def tail() -> Column:
        return F.hex(_row().bitwiseOR(above)) if seconds else padded_digits(_row(), 9).cast("string")

    return _numbered(tail, before=head, after=zeros).alias("assign_id")


def _row() -> Column:
    """Return the number of a row in its partition.

    Each use of it has a counter of its own, which grows with each row that reaches it.
    """
    return F.monotonically_increasing_id().bitwiseAND(layout.UINT32_MASK)


def _numbered(tail: Callable[[], Column], before: str = "", after: str = "") -> Column:
    """Return the partition's number as four digits, with other text around them, and a tail that numbers the rows.

    All rows of a partition reach one of the two uses of the tail, so the counters in it agree.
    """
    limits = f"at most {layout.PID_MAX + 1} partitions of {layout.UINT32_SPAN} rows each; {_IN_STREAMS}"
    refuse = F.raise_error(F.lit(f"assign_id numbers {limits}"))

    # A partition or row out of range has bit 32, which is 256 here: an index without an entry.
    def full() -> Column:
        return F.shiftright(F.monotonically_increasing_id(), 24).bitwiseAND(256).cast("int")

    # The number is looked up byte by byte.
    partition = F.spark_partition_id()
    few = byte_digits(partition.bitwiseOR(full()), before=f"{before}00", after=after)  # most often one look-up will do
    high = byte_digits(F.shiftright(partition, 8), before=before)
    low = byte_digits(partition.bitwiseAND(0xFF).bitwiseOR(full()), after=after)
    return F.coalesce(
        F.concat(few, tail()), F.when(F.shiftright(partition, 8) > 0, F.concat(high, low, tail())), refuse
    )


def assign_ids(
    df: DataFrame,
    name: str = "id",
    order_by: ColumnOrName | list[ColumnOrName] | None = None,
    run: str | None = None,
    at: datetime | float | None = None,
) -> DataFrame:
    """Return a DataFrame with a column of `assign_id`; for ``df.transform(assign_ids, ...)``.

    Parameters
    ----------
    df : DataFrame
        Rows of a batch query.
    name : str
        Name of the new column.
    order_by : Column, str or a list of them, optional
        Unique key of the rows. Each partition is sorted by it first, so that a stage that runs again gives a row the
        same number.
    run, at
        as for `assign_id`: a run with the same name and time must have the same partitions.

    Returns
    -------
    DataFrame
        The rows with the new column.

    Raises
    ------
    ValueError
        If the DataFrame is a stream, or has a column of that name.

    Examples
    --------
    >>> df = spark.createDataFrame([("b",), ("a",)], ["key"]).coalesce(1)
    >>> df.transform(assign_ids, order_by="key", run="nightly", at=1795219200).show(truncate=False)
    +---+----------------------------------+
    |key|id                                |
    +---+----------------------------------+
    |a  |0127A3B62B53DD00000B12790000000000|
    |b  |0127A3B62B53DD00000B12790000000001|
    +---+----------------------------------+
    """
    check_dataframe(df)
    if df.isStreaming:
        raise ValueError(f"assign_ids numbers the rows of a batch; {_IN_STREAMS}")
    if name.lower() in map(str.lower, df.columns):
        raise ValueError(f"`name` must be the name of a new column, got {name!r}: the DataFrame has that column")
    if order_by is not None:
        keys = order_by if isinstance(order_by, list) else [order_by]
        for key in keys:
            if isinstance(key, str) and "." not in key:
                required_column(df, "`order_by`", key)
        df = df.sortWithinPartitions(*keys)
    return df.withColumn(name, assign_id(run, at))


def generate_id() -> Column:
    """Return a new ID for each row, from a generator of the executor: its node, its process, its clock.

    This is an Arrow UDF, before Spark 4.1 a pandas UDF: it needs a Python worker and makes the IDs of a batch at once.
    The IDs are unique, and a row that is computed again gets a new one. Write the rows before you use their IDs twice.

    Returns
    -------
    Column
        Text of 34 hex digits.

    Examples
    --------
    >>> df = spark.range(1000).select(generate_id())
    >>> df.distinct().count()
    1000
    """
    ids: Column = generator_udf()(F.lit(0)).alias("generate_id")
    return ids


def generator_udf() -> Any:
    """Return the Arrow UDF of `generate_id`. It takes any column and ignores the values."""
    from pyspark.sql import SparkSession

    def generated(rows: Any) -> Any:
        import msgid

        return msgid.generate_batch(len(rows)).to_arrow(hex=True).cast("string")

    use_own_python(SparkSession.getActiveSession())
    # The server of Connect parses a type that is text, which Spark refuses in a query function of a pipeline.
    return arrow_udf(generated, StringType()).asNondeterministic()
