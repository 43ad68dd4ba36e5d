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
from spark_ext.streaming._processing.handling import MALFORMED, Handling, Settings
from spark_ext.streaming._processing.packing import HEAD_BYTES, time_of
from spark_ext.streaming._processing.pages import Bucket
from spark_ext.streaming._processing.runs import forget
from spark_ext.streaming._processing.slices import SLICE, slices
from spark_ext.streaming._slices import Arrived

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgid.processing.context import AsyncHandler, Handler
    from spark_ext.streaming._processing.handling import Arrival, OutputRow
    from spark_ext.streaming._processing.packing import Rows

_COLUMNS: Final = [(name, pa.int32() if type == "int" else pa.string()) for name, type in OUTPUTS.types.items()]
_SWEEPS: Final = 4
"""How often each page of keys is swept within the retention period, if there are enough micro-batches."""


class Operator(StatefulProcessor):
    """Runs a handler on the rows of a bucket."""

    def __init__(self, handler: Handler | AsyncHandler, settings: Settings, buckets: int) -> None:
        self._runner = Runner(handler)
        self._settings = settings
        self._buckets = buckets

    def init(self, handle: Any) -> None:
        self._state = BucketState(handle, self._buckets, has_parts=True)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        directory = self._state.directory()
        with closing(Arrived(rows, HEAD_BYTES, SLICE)) as arrived:
            if arrived.rows:
                yield from self._handle(arrived, directory or b"")
            elif directory is None:
                self._state.set_directory(b"")

    def close(self) -> None:
        self._runner.close()

    def _handle(self, arrived: Arrived, directory: bytes) -> Iterator[pd.DataFrame]:
        now_ms = time_of(next(arrived.heads()))
        bucket = Bucket(self._state, directory, now_ms)
        for malformed, messages in slices(arrived, [self._settings.columns[place] for place in self._settings.body]):
            if malformed:
                yield _frame([(None, None, id, None, None, text, MALFORMED, reason) for id, text, reason in malformed])
            if messages is not None:
                yield from self._handle_rows(bucket, messages, now_ms)
                self._sweep(bucket, now_ms)
                bucket.commit()
        if bucket.directory is not None:
            self._state.set_directory(bucket.directory)

    def _handle_rows(self, bucket: Bucket, rows: Rows, now_ms: int) -> Iterator[pd.DataFrame]:
        bodies = zip(*rows.body, strict=True) if rows.body else itertools.repeat((), len(rows.keys))
        keys: defaultdict[str, list[Arrival]] = defaultdict(list)
        for name, arrival in zip(rows.keys, zip(rows.times, rows.ids, bodies, strict=True), strict=True):
            keys[name].append(arrival)
        handling = Handling(self._runner, self._settings, self._state, bucket, now_ms, rows.nested, SLICE.bytes)
        for name in bucket.read(keys, SLICE.bytes):
            for made in handling.handle(name, keys[name]):
                yield _frame(made)
            if bucket.size >= SLICE.bytes:
                bucket.commit()
        rest = handling.take()
        if rest:
            yield _frame(rest)

    def _sweep(self, bucket: Bucket, now_ms: int) -> None:
        """Forget the old entries of keys without new messages, on some pages of the bucket."""
        horizon = now_ms - self._settings.retention_ms
        for name in bucket.sweep(max(self._settings.retention_ms // _SWEEPS, 1)):
            state = bucket.key(name)
            if forget(self._state, name, state, horizon, horizon - self._settings.remember_ms):
                bucket.changed(name, state)


def _frame(rows: list[OutputRow]) -> pd.DataFrame:
    columns = zip(*rows, strict=True)
    return pd.DataFrame({name: _series(values, type) for (name, type), values in zip(_COLUMNS, columns, strict=True)})


def _series(values: tuple[Any, ...], type: pa.DataType) -> pd.Series[Any]:
    """Return an Arrow column as pandas values that Spark accepts without a check of each value."""
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, type)))
