"""The stateful operator of `process`: a group of it is a bucket of keys."""

from __future__ import annotations

import itertools
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from msgid._known_tables import OUTPUTS
from spark_ext.streaming._bucket_state import BucketState
from spark_ext.streaming._processing.codec import Runner
from spark_ext.streaming._processing.handling import MALFORMED, Handling, Settings, in_order
from spark_ext.streaming._processing.history import LOGS, Bucket
from spark_ext.streaming._processing.packing import HEAD_BYTES, time_of
from spark_ext.streaming._processing.slices import SLICE, slices
from spark_ext.streaming._slices import Arrived

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgid.processing.context import AsyncHandler, Handler
    from spark_ext.streaming._processing.handling import Arrival, OutputRow
    from spark_ext.streaming._processing.packing import Rows

_COLUMNS: Final = [(name, pa.int32() if type == "int" else pa.string()) for name, type in OUTPUTS.types.items()]


class Operator(StatefulProcessor):
    """Runs a handler on the rows of a bucket."""

    def __init__(self, handler: Handler | AsyncHandler, settings: Settings, buckets: int) -> None:
        self._runner = Runner(handler)
        self._settings = settings
        self._buckets = buckets

    def init(self, handle: Any) -> None:
        self._state = BucketState(handle, self._buckets, *LOGS)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        heads = self._state.heads()
        with closing(Arrived(rows, HEAD_BYTES, SLICE)) as arrived:
            if arrived.rows:
                yield from self._handle(arrived, heads or [])
            elif heads is None:
                self._state.set_heads([])

    def close(self) -> None:
        self._runner.close()

    def _handle(self, arrived: Arrived, heads: list[bytes]) -> Iterator[pd.DataFrame]:
        now_ms = time_of(next(arrived.heads()))
        horizon_ms = now_ms - self._settings.retention_ms
        bucket = Bucket(self._state.logs, heads, now_ms, horizon_ms, horizon_ms - self._settings.remember_ms)
        for malformed, messages in slices(arrived, self._settings.names):
            if malformed:
                yield _frame([(None, None, id, None, None, text, MALFORMED, reason) for id, text, reason in malformed])
            if messages is not None:
                yield from self._handle_rows(bucket, messages)
        changed = bucket.commit()
        if changed is not None:
            self._state.set_heads(changed)

    def _handle_rows(self, bucket: Bucket, rows: Rows) -> Iterator[pd.DataFrame]:
        bodies = zip(*rows.body, strict=True) if rows.body else itertools.repeat((), len(rows.keys))
        keys: defaultdict[str, list[Arrival]] = defaultdict(list)
        for name, arrival in zip(rows.keys, zip(rows.times, rows.ids, bodies, strict=True), strict=True):
            keys[name].append(arrival)
        names = self._settings.names
        waiting = [(name, arrival) for name, arrivals in keys.items() for arrival in in_order(arrivals, names)]
        handling = Handling(self._runner, self._settings, bucket, rows.nested, SLICE.bytes)
        first = 0
        while first < len(waiting):
            most = max(SLICE.bytes // max(bucket.message_bytes, 1), 1)
            first += handling.handle(waiting[first : first + most])
            if handling.is_full:
                yield _frame(handling.take())
        rest = handling.take()
        if rest:
            yield _frame(rest)


def _frame(rows: list[OutputRow]) -> pd.DataFrame:
    columns = zip(*rows, strict=True)
    return pd.DataFrame({name: _series(values, type) for (name, type), values in zip(_COLUMNS, columns, strict=True)})


def _series(values: tuple[Any, ...], type: pa.DataType) -> pd.Series[Any]:
    """Return an Arrow column as pandas values that Spark accepts without a check of each value."""
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, type)))
