"""The stateful operator of `process`: a group of it is a bucket of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from msgid._known_tables import OUTPUTS
from spark_ext.streaming._bucket_state import BucketState
from spark_ext.streaming._processing.handling import MALFORMED, Handling, Runner, Settings
from spark_ext.streaming._processing.history import LOGS, Bucket
from spark_ext.streaming._processing.packing import nested, slices, time_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgid.processing.context import AsyncHandler, Handler
    from spark_ext.streaming._processing.handling import OutputRow

_COLUMNS: Final = [(name, pa.int32() if type == "int" else pa.string()) for name, type in OUTPUTS.types.items()]


class Slice(NamedTuple):
    """The messages of a bucket that are Python objects at once, and the bytes of their states and outputs."""

    rows: int
    bytes: int


SLICE: Final = Slice(50_000, 16 << 20)


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
        packed = [pair for frame in rows for pair in zip(frame["head"], frame["rows"], strict=True) if pair[0]]
        if packed:
            yield from self._handle(packed, heads or [])
        elif heads is None:
            self._state.set_heads([])

    def close(self) -> None:
        self._runner.close()

    def _handle(self, packed: list[tuple[bytes, bytes]], heads: list[bytes]) -> Iterator[pd.DataFrame]:
        now_ms = time_of(packed[0][0])
        horizon_ms = now_ms - self._settings.retention_ms
        bucket = Bucket(self._state.logs, heads, now_ms, horizon_ms, horizon_ms - self._settings.remember_ms)
        malformed, table = unpacked(rows for _, rows in packed)
        if malformed:
            yield _frame([(None, None, id, None, None, text, MALFORMED, reason) for id, text, reason in malformed])
        handling = Handling(self._runner, self._settings, bucket, nested(table), SLICE.bytes)
        most = max(min(SLICE.rows, SLICE.bytes * table.num_rows // max(table.nbytes, 1)), 1)
        for messages in slices(table, self._settings.names, most):
            first = 0
            while first < len(messages):
                most = max(SLICE.bytes // max(bucket.message_bytes, 1), 1)
                first += handling.handle(messages[first : first + most])
                if handling.is_full:
                    yield _frame(handling.take())
            rest = handling.take()
            if rest:
                yield _frame(rest)
        changed = bucket.commit()
        if changed is not None:
            self._state.set_heads(changed)


def _frame(rows: list[OutputRow]) -> pd.DataFrame:
    columns = zip(*rows, strict=True)
    return pd.DataFrame({name: _series(values, type) for (name, type), values in zip(_COLUMNS, columns, strict=True)})


def _series(values: tuple[Any, ...], type: pa.DataType) -> pd.Series[Any]:
    """Return an Arrow column as pandas values that Spark accepts without a check of each value."""
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, type)))
