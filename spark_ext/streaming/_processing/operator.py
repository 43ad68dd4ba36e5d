"""The stateful operator of `process`: a group of it is a bucket of keys."""

from __future__ import annotations

import functools
import gc
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from msgid.shared.known_tables import OUTPUTS
from spark_ext.streaming._processing.handling import MALFORMED, Handling, Runner, Settings
from spark_ext.streaming._processing.history import LOGS, Bucket
from spark_ext.streaming._processing.packing import slices, unpacked
from spark_ext.streaming._state.bucket_state import CHECK_BUCKET, BucketState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgid.processing.context import AsyncHandler, Handler
    from spark_ext.streaming._processing.handling import OutputRow

_COLUMNS: Final = pa.schema(
    [(name, pa.int32() if type == "int" else pa.string()) for name, type in OUTPUTS.types.items()]
)
SLICE_ROWS: Final = 50_000
"""The messages of a bucket that are Python objects at once."""
SLICE_BYTES: Final = 16 << 20
"""The bytes of these messages, of their states, and of their outputs."""


class Operator(StatefulProcessor):
    """Runs a handler on the rows of a bucket."""

    def __init__(self, handler: Handler | AsyncHandler, settings: Settings, buckets: int) -> None:
        self._runner = Runner(handler)
        self._settings = settings
        self._buckets = buckets

    def init(self, handle: Any) -> None:
        self._state = BucketState(handle, *LOGS)
        _freeze_modules()

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        if key[0] == CHECK_BUCKET:
            self._state.check(self._buckets)
            return
        packed = [pair for frame in rows for pair in zip(frame["now_ms"], frame["rows"], strict=True)]
        now_ms = int(packed[0][0])  # the time of the micro-batch, which a replay has too
        horizon_ms = now_ms - self._settings.retention_ms
        bucket = Bucket(self._state.logs, now_ms, horizon_ms, horizon_ms - self._settings.remember_ms)
        malformed, table = unpacked(rows for _, rows in packed)
        if malformed:
            yield _frame([(None, None, id, None, None, text, MALFORMED, reason) for id, text, reason in malformed])
        handling = Handling(self._runner, self._settings, bucket, SLICE_BYTES)
        most = max(min(SLICE_ROWS, SLICE_BYTES * table.num_rows // max(table.nbytes, 1)), 1)
        for messages in slices(table, self._settings.names, most):
            for rows_of_result in handling.handle(messages):
                yield _frame(rows_of_result)
        bucket.commit()

    def close(self) -> None:
        self._runner.close()


@functools.cache
def _freeze_modules() -> None:
    """Leave the modules of a worker out of all collections, which would visit them while messages are handled.

    It is done once per process. `gc.get_freeze_count` would tell, but it visits each object that is frozen.
    """
    gc.freeze()


def _frame(rows: list[OutputRow]) -> pd.DataFrame:
    """Return rows as columns of Arrow, which Spark accepts without a check of each value."""
    columns = list(map(pa.array, zip(*rows, strict=True), _COLUMNS.types))
    return pa.Table.from_arrays(columns, schema=_COLUMNS).to_pandas(types_mapper=pd.ArrowDtype)
