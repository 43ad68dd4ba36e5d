"""Consistent processing on Structured Streaming: the handlers of `msgid.processing`, a key's state in Spark's store."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from msgid.processing.context import Handler, Message, Output
from msgid.processing.processor import Processor, TooLate
from msgid.processing.store import NOTHING_FORGOTTEN, Entry, Reading, Version
from spark_ext.expressions import CORRUPT, column, hex_text, misfit_reason, no_id_reason, quoted_name
from spark_ext.state import check_state_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, Row

    from spark_ext.expressions import ColumnOrName

__all__ = ["DUPLICATE", "MALFORMED", "NEW", "OUTPUTS", "TOO_LATE", "process"]

OUTPUTS: Final = (
    "id string, number int, input_id string, key string, topic string, body string, kind string, reason string"
)
NEW: Final = "new"
DUPLICATE: Final = "duplicate"
TOO_LATE: Final = "too late"
MALFORMED: Final = "malformed"
_ID: Final = "__id"
_KEY: Final = "__key"
_AT: Final = "__at"
_REASON: Final = "__reason"


def process(
    df: DataFrame,
    key: str,
    handler: Handler,
    *,
    id: str = "id",
    timestamp: str | None = None,
    reason: ColumnOrName | None = None,
    retention: timedelta = timedelta(days=7),
) -> DataFrame:
    """Handle a stream's messages so that handling one again changes nothing, as `msgid.processing.Processor` does.

    With the trigger ``availableNow`` set ``spark.sql.streaming.noDataMicroBatches.enabled`` to false: else the query
    waits for the time when there is something to forget.

    Parameters
    ----------
    df : DataFrame
        a stream: a message a row.
    key : str
        the column of the business key, whose state a message changes.
    handler : msgid.processing.Handler
        a pure function of (state, message, context) that gives the new state, which JSON holds. The message's body is a
        dict of the row's other columns.
    id : str
        the column of message ids, as text or binary.
    timestamp : str, optional
        the column of the messages' own times. Default: those of their ids.
    reason : Column or str, optional
        why a row is no message, and NULL where it is one: such as the table of `messages` has.
    retention : datetime.timedelta
        how long a message is known to have been handled, by the clock. One that is not newer than what is forgotten of
        its key is reported as ``too late``.

    Returns
    -------
    DataFrame
        a stream of outputs: ``id`` (derived from the input's: a sink that is keyed by it has each output once),
        ``number``, ``input_id``, ``key``, ``topic``, ``body`` (JSON) and ``kind``: ``new``, ``duplicate`` (the same
        outputs again), ``too late`` (no output: the input's body, and the ``reason``) or ``malformed`` (no good id, no
        key, or a line that Spark could not read: the whole row, as JSON, and the ``reason``).

    Raises
    ------
    ValueError
        the session's state store is not RocksDB.

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
    check_state_store(df.sparkSession)
    own = F.lit(None).cast("bigint") if timestamp is None else F.unix_micros(F.col(quoted_name(timestamp)))
    text, business = hex_text(quoted_name(id)), F.col(quoted_name(key)).cast("string")
    told = [] if reason is None else [column(reason)]
    why = F.coalesce(*told, misfit_reason(df), no_id_reason(text), F.when(business.isNull(), F.lit("no key")))
    added = {_ID: text, _KEY: F.coalesce(business, F.lit("")), _AT: own, _REASON: why}
    known = {id, key, timestamp, CORRUPT, *(name for name in (reason,) if isinstance(name, str))}
    body = [name for name in df.columns if name not in known]
    handling = _Handling(handler, df.columns, body, retention // timedelta(milliseconds=1))
    return df.withColumns(added).groupBy(_KEY).transformWithState(handling, OUTPUTS, "append", "ProcessingTime")


class _SparkStore:
    """A key's versions in Spark's state: the newest state, and of each message that is not forgotten the one before."""

    def __init__(self, handle: Any) -> None:
        self._newest = handle.getValueState("newest", "version bigint, state binary, forgotten_before bigint")
        self._entries = handle.getMapState(
            "entries", "id string", "version bigint, before binary, at bigint, stored_ms bigint"
        )
        self.now_ms = 0

    def read(self, key: str, id: str) -> Reading:
        version, state, forgotten_before = self._newest.get() if self._newest.exists() else (0, None, NOTHING_FORGOTTEN)
        if self._entries.containsKey((id,)):
            handled, before, _, _ = self._entries.getValue((id,))
            return Reading(version, handled, None if before is None else bytes(before), forgotten_before)
        return Reading(version, None, None if state is None else bytes(state), forgotten_before)

    def append(self, key: str, version: int, entry: Entry) -> bool:
        newest, state, forgotten_before = self._newest.get() if self._newest.exists() else (0, None, NOTHING_FORGOTTEN)
        if newest != version:
            return False
        self._entries.updateValue((entry.id,), (version + 1, state, entry.at, self.now_ms))
        self._newest.update((version + 1, entry.state, forgotten_before))
        return True

    def history(self, key: str) -> list[Version]:
        raise NotImplementedError("a key's history is not kept in Spark's state")

    def forget(self, before: int) -> int:
        """Forget the messages that were stored before a moment, milliseconds; say how many are left."""
        version, state, forgotten_before = self._newest.get()
        left = 0
        for (id,), (_, _, at, stored_ms) in list(self._entries.iterator()):
            if stored_ms <= before:
                self._entries.removeKey((id,))
                forgotten_before = max(forgotten_before, at + 1)
            else:
                left += 1
        self._newest.update((version, state, forgotten_before))
        return left


class _Handling(StatefulProcessor):
    """Runs the handler on the rows of a key, with its state in Spark's store."""

    def __init__(self, handler: Handler, columns: list[str], body: list[str], retention_ms: int) -> None:
        self._handler = handler
        self._columns = columns
        self._body = body
        self._retention_ms = retention_ms

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._store = _SparkStore(handle)
        self._processor = Processor(self._store, self._handler, lambda outputs: None)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        # The batch's time, which a replay has too.
        self._store.now_ms = timerValues.getCurrentProcessingTimeInMs()
        messages = []
        for row in rows:
            held = row.asDict(recursive=True)
            if row[_REASON] is not None:
                whole = {name: held[name] for name in self._columns}
                yield _row(Output(None, None, row[_ID], whole), None, MALFORMED, row[_REASON])  # type: ignore[arg-type]
                continue
            messages.append(Message(row[_ID], key[0], {name: held[name] for name in self._body}, row[_AT]))
        # Rows of a batch come in any order: this one is the same each time.
        for message in sorted(messages, key=lambda message: (message.at, message.id)):
            try:
                outcome = self._processor.handle(message)
            except TooLate as error:
                yield _row(Output(None, None, message.id, message.body), key[0], TOO_LATE, str(error))  # type: ignore[arg-type]
                continue
            for output in outcome.outputs:
                yield _row(output, key[0], outcome.kind)
        if messages:
            self._handle.registerTimer(self._store.now_ms + self._retention_ms)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        self._store.forget(expiredTimerInfo.getExpiryTimeInMs() - self._retention_ms)
        return iter(())

    def close(self) -> None:
        pass


def _row(output: Output, key: str | None, kind: str, reason: str | None = None) -> Row:
    from pyspark.sql import Row

    body = json.dumps(output.body, ensure_ascii=False, default=str)
    return Row(
        id=output.id,
        number=output.number,
        input_id=output.input_id,
        key=key,
        topic=output.topic,
        body=body,
        kind=kind,
        reason=reason,
    )
