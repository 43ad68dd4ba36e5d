"""Handlers with state on Structured Streaming: the handlers of `msgid.processing`, with Spark's state store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid.processing.processor import check_parameters
from msgid.shared.known_tables import OUTPUTS
from msgid.shared.moments import micros_in
from msgid.shared.validate import INT32_MAX, integer, quote
from spark_ext._arguments import check_dataframe, named_column, required_column
from spark_ext._compat import type_named
from spark_ext._private import use_own_python
from spark_ext._shipping import check_workers, shipped, shipped_processor
from spark_ext.columns.column_types import column, quoted_name, text_column
from spark_ext.columns.identity import has_bytes, id_column, unpadded
from spark_ext.columns.moment_columns import moment_in_utc
from spark_ext.columns.reasons import CORRUPT, misfit_reason
from spark_ext.streaming._processing.handling import Settings
from spark_ext.streaming._processing.history import LOGS
from spark_ext.streaming._processing.operator import Operator
from spark_ext.streaming._processing.packing import preparer
from spark_ext.streaming._state.bucket_state import states
from spark_ext.streaming._state.buckets import DEFAULT_BUCKETS, MAX_BUCKETS, bucket_keys
from spark_ext.streaming._state.packed_rows import PACKED, packer
from spark_ext.streaming._state_store import check_state_store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid.processing.context import AsyncHandler, Handler
    from spark_ext.columns.column_types import ColumnOrName

ATTEMPTS: Final = 3
"""The default number of attempts."""
_NO_KEY: Final = (T.TimestampType, T.FloatType, T.DoubleType, T.ArrayType, T.MapType, T.StructType)
"""Types whose values lack a text of their own: it depends on the session or on Java, or two values share it."""
_TIMES: Final = (T.TimestampType, T.TimestampNTZType, T.DateType, T.StringType, T.NumericType, T.NullType)
"""Types that Spark casts to the same moment on each day; a time without a date gets the current date."""
_OF_THE_JVM: Final = ("variant", "geometry", "geography")
"""Types whose values a worker gets as bytes of Spark's own format; it gets no interval of months at all."""
_PLAIN_SCALE: Final = 6
"""Without ANSI mode, Spark writes an exponent in the text of small decimals with a larger scale."""


def process(
    df: DataFrame,
    key: str,
    handler: Handler | AsyncHandler,
    *,
    id: str = "id",
    timestamp: str | None = None,
    reason: ColumnOrName | None = None,
    retention: timedelta | str = timedelta(days=7),
    remember: timedelta | str = timedelta(days=90),
    attempts: int = ATTEMPTS,
    keep_outputs: bool = False,
    buckets: int = DEFAULT_BUCKETS,
) -> DataFrame:
    """Run a handler with state on a stream; a redelivered message changes nothing, as in `msgid.processing.Processor`.

    IDs are compared by value, in any spelling. Any other text is an ID too, compared character by character. The
    messages of a key in one micro-batch are handled in the order of their times and IDs. After a failed message, the
    later ones of its key in that micro-batch are not tried, so no message overtakes another one there. The next
    micro-batch goes on with the key. A Python worker has the rows of a bucket in memory, and up to 50,000 of them as
    Python objects.

    A bucket has a log of states and one of messages. An entry is written once when it comes, and once for each level
    of the log, of eight times as many entries. Logs whose time has passed are deleted without timers. A checkpoint of
    an earlier version is rejected: start with a new checkpoint.

    Real-time mode lacks this operator, so a query with ``trigger(realTime=...)`` ends with an error of Spark. It blames
    the checkpoint (``STDS_FAILED_TO_READ_OPERATOR_METADATA``), whose files are intact: take another trigger.

    Parameters
    ----------
    df : DataFrame
        A stream with one message per row. A batch works too: its handlers start without state, and none is kept.
    key : str
        Column of the business key, whose state a message changes: text, binary or a plain type whose values have one
        text each. Cast a timestamp, a float, a decimal of more than 6 decimal places, an array, a map, a struct or a
        VARIANT first. The stored states belong to the values of this column, so another column needs a new checkpoint.
    handler : msgid.processing.Handler
        Pure function of (state, message, context) that returns the new state, which must be JSON; it may be ``async``.
        The message's body is a dict of the row's other columns; a map is a dict. Each attempt gets its own copy of
        state and message.
    id : str
        Column of message IDs, as text or binary.
    timestamp : str, optional
        Column of the messages' times; times without a time zone are in UTC. Default: the times in their IDs. The column
        is not in the body. After a restart with another column, redelivered messages differ from the first ones, so
        they may be ``changed``.
    reason : Column or str, optional
        The reason why a row is malformed; NULL for other rows. The table of `messages` has such a column.
    retention : datetime.timedelta or str
        Time, such as ``"7 days"``, after its storage in which a redelivered message is a ``duplicate``, by the clock.
        The current value applies to all entries, including those of earlier runs.
    remember : datetime.timedelta or str
        Time after the retention in which a hash of the message's ID is kept. A message whose hash is kept is ``too
        late``. Every other message is new, for any timestamp. If this value or the retention is increased, hashes that
        are still stored count again.
    attempts : int
        Maximum number of calls of a handler that raises; then its message becomes a ``failed`` row. `SystemExit` and
        other exceptions that are not an `Exception` count as errors of the handler here, because they would end the
        query again after each restart.
    keep_outputs : bool
        Whether to store the outputs of each message. Stored outputs are returned for a redelivered message, even if
        this is False by then. Default: store the state before the message and a fingerprint of the outputs, run the
        handler again, and compare.
    buckets : int
        Number of groups into which the keys are divided; 1 to 65,536. It bounds the number of parallel tasks and is
        part of the checkpoint: another number raises an error.

    Returns
    -------
    DataFrame
        A stream of outputs: ``id`` (derived from the ID of the input, so a sink with this key has each output once),
        ``number``, ``input_id``, ``key``, ``topic``, ``body`` (JSON; that of an output has sorted names), ``kind``
        and ``reason``. The kinds are:

        - ``new``: an output of a message that was handled for the first time;
        - ``duplicate``: an output of a redelivered message, equal to the output of the first time;
        - ``too late``: a redelivered message whose entry is forgotten, so it is not handled; the body is the input's;
        - ``failed``: a message on which the handler raised in each attempt; the body is the input's, the state is not
          changed, and the message is handled again when it is redelivered;
        - ``not tried``: a message after a failed one of its key in the same micro-batch; the body is the input's, and
          nothing has changed. Redeliver the failed message and those that were not tried together;
        - ``changed``: a redelivered message whose outputs are not those of the first time, because the handler or the
          body has changed; the body is the input's, and nothing is published;
        - ``malformed``: a row without an ID or key, with a time that is not a timestamp, that Spark could not read, or
          that Python cannot represent: text that is not UTF-8, or a time outside the years 1 to 9999. The body is the
          whole row. Such text is bytes there, and such a time is the number of days or microseconds since 1970.

    Raises
    ------
    ValueError
        If the session's state store is not RocksDB, if an argument is out of range, or if the key has another type.
        Also if ``id`` is not text or binary, if ``timestamp`` has another type than times, text and numbers, or if a
        column has a VARIANT, a geometry, an interval of months or a map with nested keys: cast it.

    Examples
    --------
    >>> def count(state, message, context):
    ...     seen = (state or 0) + 1
    ...     context.publish({"number": seen})
    ...     return seen
    >>> spark.conf.set("spark.sql.streaming.stateStore.providerClass",
    ...     "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    >>> rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    >>> rows = rows.selectExpr("'0156F7E71C361B21BC024CCDBE00000000' AS id", "'a' AS customer", "value")
    >>> process(rows, "customer", count).columns
    ['id', 'number', 'input_id', 'key', 'topic', 'body', 'kind', 'reason']
    """
    check_dataframe(df)
    key, id = required_column(df, "key", key), required_column(df, "id", id)
    timestamp = None if timestamp is None else required_column(df, "timestamp", timestamp)
    named = named_column(df, reason) if isinstance(reason, str) else None
    reason = reason if named is None else F.col(quoted_name(named))
    if not callable(handler):
        raise TypeError(f"handler must be a function of (state, message, context), got {quote(handler)}")
    check_parameters("handler", handler, "state, message, context")
    integer("attempts", attempts, 1, INT32_MAX)
    integer("buckets", buckets, 1, MAX_BUCKETS)
    retention_ms = max(micros_in("retention", retention, positive=True) // 1000, 1)
    remember_ms = micros_in("remember", remember) // 1000
    key_type = df.schema[key].dataType
    is_small = isinstance(key_type, T.DecimalType) and not 0 <= key_type.scale <= _PLAIN_SCALE
    if isinstance(key_type, _NO_KEY) or is_small or type_named(key_type, "variant"):
        raise ValueError(
            f"key must be a column whose values have one text each, in every session, got {key!r} of type "
            f"{key_type.simpleString()}; cast it, for example to text"
        )
    if timestamp is not None and not isinstance(df.schema[timestamp].dataType, _TIMES):
        raise ValueError(
            f"timestamp must be a column of times, text or Unix seconds, got {timestamp!r} of type "
            f"{df.schema[timestamp].dataType.simpleString()}; cast it to a timestamp"
        )
    for field in df.schema:  # a malformed row is published with all of its columns
        if (odd := _odd_body(field.dataType)) is not None:
            raise ValueError(
                f"the body must have columns that Python reads, got {field.name!r} with {odd}; cast it, for example to "
                "text by to_json, or drop it"
            )
    known = {id, key, timestamp, named, CORRUPT}
    check_state_store(df.sparkSession)
    use_own_python(df.sparkSession)
    check_workers(df.sparkSession, stateful=True)
    body = tuple(index for index, name in enumerate(df.columns) if name not in known)
    names = tuple(df.columns[index] for index in body)
    settings = Settings(names, retention_ms, remember_ms, attempts, keep_outputs)
    operator = shipped_processor(Operator(handler, settings, buckets), states(*LOGS))
    control = _control(df, key, id, timestamp, reason, buckets)
    # Columns are named by numbers: a user's column may have any name, and two names may differ only in case.
    numbered = df.select(*control, *unpadded(df)).toDF(*(str(index) for index in range(len(control) + len(df.columns))))
    pack = shipped(packer(preparer(tuple(df.columns), body), bucket_keys(buckets)))
    # One value for a micro-batch, which the checkpoint keeps. Spark's generated code contains it, so each micro-batch
    # compiles that code again: it is not in the code for each message, which is large.
    now = F.unix_millis(F.current_timestamp()).alias("now_ms")
    packed = numbered.mapInArrow(pack, PACKED).select("bucket", now, "rows")
    outputs = ", ".join(f"{name} {type}" for name, type in OUTPUTS.types.items())
    return packed.groupBy("bucket").transformWithStateInPandas(operator, outputs, "append", "None")


def _odd_body(type: T.DataType) -> str | None:
    """Return the part of a type that a Python worker gets in another form; None without one."""
    name = type.typeName()
    if name in _OF_THE_JVM or isinstance(type, T.YearMonthIntervalType):
        return f"a value of type {type.simpleString()}"
    if isinstance(type, T.MapType):
        if isinstance(type.keyType, T.StructType | T.ArrayType | T.MapType):
            return f"a map whose keys are of type {type.keyType.simpleString()}"
        return _odd_body(type.keyType) or _odd_body(type.valueType)
    if isinstance(type, T.ArrayType):
        return _odd_body(type.elementType)
    inner = [field.dataType for field in type] if isinstance(type, T.StructType) else []
    return next((odd for one in inner if (odd := _odd_body(one)) is not None), None)


def _control(
    df: DataFrame, key: str, id: str, timestamp: str | None, reason: ColumnOrName | None, buckets: int
) -> list[Column]:
    """Return the columns that `preparer` needs: bucket, key, ID, time, and the reason of a malformed row.

    The ID stays as it is, and a missing time stays NULL: Spark plans and runs the expressions for them more slowly than
    Python reads a column of IDs.
    """
    same, business = id_column(df, "id", id), text_column(df, key)
    is_text = not has_bytes(df, id)
    reasons = [] if reason is None else [column(reason)]
    reasons.append(misfit_reason(df))
    reasons.append(F.when(same.isNull() | (F.octet_length(same) == 0), F.lit("no id")))
    reasons.append(F.when(business.isNull(), F.lit("no key")))
    if is_text:
        reasons.append(F.when(~F.is_valid_utf8(same), F.lit("the id is not UTF-8")))
        same = F.make_valid_utf8(same)
    reasons.append(F.when(~F.is_valid_utf8(business), F.lit("the key is not UTF-8")))
    time = F.lit(None).cast("timestamp_ltz")
    if timestamp is not None:
        given = F.col(quoted_name(timestamp))
        time = moment_in_utc(given, df.select(given).schema[0].dataType)
        shown = F.coalesce(given.cast("string"), F.lit(""))
        reasons.append(F.when(given.isNotNull() & time.isNull(), F.concat(F.lit("not a timestamp: "), shown)))
    bucket = F.pmod(F.xxhash64(business), F.lit(buckets)).cast("int")
    why = F.make_valid_utf8(F.coalesce(*reasons))  # a reason may quote text that is not UTF-8
    return [bucket, F.make_valid_utf8(business), same, F.unix_micros(time), why]
