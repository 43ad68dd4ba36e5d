"""The stateful operator of `process`: a group of it is a bucket of keys."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from spark_ext.streaming._processing.codec import Runner
from spark_ext.streaming._processing.handling import MALFORMED, Handling, Settings
from spark_ext.streaming._processing.packing import unpack
from spark_ext.streaming._processing.pages import FORMAT, OTHER_FORMAT, Bucket, Meta, dump, load
from spark_ext.streaming._processing.runs import forget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgid.processing.context import AsyncHandler, Handler
    from spark_ext.streaming._processing.handling import Arrival
    from spark_ext.streaming._processing.packing import Rows

OUTPUTS: Final = (
    "id string, number int, input_id string, key string, topic string, body string, kind string, reason string"
)
_COLUMNS: Final = [
    (column.split()[0], pa.int32() if column.endswith(" int") else pa.string()) for column in OUTPUTS.split(", ")
]
_SWEEPS: Final = 4
"""The most rounds per retention period in which a bucket forgets the old entries of all its keys."""


class SparkValues:
    """The values of a bucket in Spark's state."""

    def __init__(self, handle: Any) -> None:
        self._pages = handle.getMapState("pages", "number int", "value binary")
        self._parts = handle.getMapState("parts", "name string, number int", "value binary")

    def get(self, name: str, number: int) -> bytes | None:
        found = self._parts.getValue((name, number)) if name else self._pages.getValue((number,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, number: int, value: bytes) -> None:
        if name:
            self._parts.updateValue((name, number), (value,))
        else:
            self._pages.updateValue((number,), (value,))

    def remove(self, name: str, number: int) -> None:
        self._parts.removeKey((name, number))

    def pages(self) -> Iterator[tuple[int, bytes]]:
        for (number,), (value,) in self._pages.iterator():
            yield number, bytes(value)


class Operator(StatefulProcessor):
    """Runs a handler on the rows of a bucket."""

    def __init__(self, handler: Handler | AsyncHandler, settings: Settings, buckets: int) -> None:
        self._runner = Runner(handler)
        self._settings = settings
        self._buckets = buckets

    def init(self, handle: Any) -> None:
        self._meta = handle.getValueState("meta", "value binary")
        self._values = SparkValues(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        meta, is_new = self._read_meta()
        packed = [raw for frame in rows for raw in frame.iloc[:, -1] if len(raw)]
        bucket = Bucket(self._values, meta)
        if packed:
            arrived = unpack(packed)
            yield from self._handle_rows(bucket, arrived)
            self._sweep(bucket, arrived.now_ms)
            bucket.commit()
        if is_new or bucket.meta != meta:
            self._write_meta(bucket.meta)

    def close(self) -> None:
        self._runner.close()

    def _handle_rows(self, bucket: Bucket, rows: Rows) -> Iterator[pd.DataFrame]:
        bodies = zip(*rows.body, strict=True) if rows.body else itertools.repeat((), len(rows.keys))
        keys: defaultdict[str, list[Arrival]] = defaultdict(list)
        for name, arrival in zip(rows.keys, zip(rows.times, rows.ids, bodies, strict=True), strict=True):
            keys[name].append(arrival)
        handling = Handling(self._runner, self._settings, self._values, bucket, rows.now_ms, rows.nested)
        for id, text, reason in rows.malformed:
            handling.rows.append((None, None, id, None, None, text, MALFORMED, reason))
        bucket.read(keys)
        for name, arrivals in keys.items():
            handling.handle(name, arrivals)
        if handling.rows:
            columns = zip(*handling.rows, strict=True)
            yield pd.DataFrame(
                {name: _series(values, type) for (name, type), values in zip(_COLUMNS, columns, strict=True)}
            )

    def _sweep(self, bucket: Bucket, now_ms: int) -> None:
        """Forget the old entries of keys without new messages, on one page of the bucket."""
        horizon = now_ms - self._settings.retention_ms
        for name in bucket.sweep(now_ms, self._settings.retention_ms // _SWEEPS):
            state = bucket.key(name)
            if forget(self._values, name, state, horizon, horizon - self._settings.remember_ms):
                bucket.changed(name, state)

    def _read_meta(self) -> tuple[Meta, bool]:
        if not self._meta.exists():
            return Meta(self._buckets), True
        version, *fields = load(bytes(self._meta.get()[0]))
        if version != FORMAT:
            raise ValueError(f"{OTHER_FORMAT}{version}, this version reads {FORMAT}")
        meta = Meta(*fields)
        if meta.buckets != self._buckets:
            raise ValueError(f"buckets must be {meta.buckets}, as when the checkpoint was created, got {self._buckets}")
        return meta, False

    def _write_meta(self, meta: Meta) -> None:
        self._meta.update((dump((FORMAT, *meta)),))


def _series(values: tuple[Any, ...], type: pa.DataType) -> pd.Series[Any]:
    """Return an Arrow column as pandas values that Spark accepts without a check of each value."""
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, type)))
