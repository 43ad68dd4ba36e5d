"""The progress of the job ``process`` on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from spark_ext.streaming._processing.handling import CHANGED, FAILED, MALFORMED, TOO_LATE

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

_LETTERS: Final = (TOO_LATE, FAILED, CHANGED, MALFORMED)
_STATE_SIZE: Final = "rocksdbSstFileSize"
_KIB: Final = 1024


def describe(messages: int, rate: float, state_bytes: int, letters: dict[str, int]) -> str:
    """Return one line on the progress.

    >>> describe(120_000, 41_200.4, 5 << 20, {"too late": 3, "failed": 1})
    '120,000 messages, 41,200 per second, 5.0 MiB of state, 3 too late, 1 failed'
    """
    size, unit = float(state_bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < _KIB:
            break
        size, unit = size / _KIB, larger
    state = f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
    parts = [f"{messages:,} messages", f"{rate:,.0f} per second", f"{state} of state"]
    return ", ".join(parts + [f"{count:,} {kind}" for kind, count in letters.items()])


class Progress:
    """Shows the progress of the streaming queries of a session on standard error, if that is a terminal.

    Args:
        spark: The session.
        shown: Whether to show anything. Default: if standard error is a terminal.
    """

    def __init__(self, spark: SparkSession, *, shown: bool | None = None) -> None:
        self._spark = spark
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._letters = dict.fromkeys(_LETTERS, 0)
        self._messages = 0
        self._observation: Observation | None = None
        self._listener: _Listener | None = None
        self._status: Any = None
        self._started = time.monotonic()

    def __enter__(self) -> Progress:
        if self._shown:
            from rich.console import Console

            self._status = Console(stderr=True).status("starting")
            self._status.start()
            self._listener = _Listener(self)
            self._spark.streams.addListener(self._listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._spark.streams.removeListener(self._listener)
            self._status.stop()

    def observed(self, batch: DataFrame) -> DataFrame:
        """Return the rows of a micro-batch, whose kinds are counted when they are written."""
        if not self._shown:
            return batch
        self._observation = Observation()
        counts = [F.count_if(F.col("kind") == kind).alias(kind) for kind in _LETTERS]
        return batch.observe(self._observation, *counts)

    def written(self) -> None:
        """Add the counts of the micro-batch that was written."""
        if self._observation is not None:
            for kind, count in self._observation.get.items():
                self._letters[kind] += count

    def add(self, messages: int, state_bytes: int) -> None:
        """Show the progress after a micro-batch."""
        self._messages += messages
        rate = self._messages / max(time.monotonic() - self._started, 1e-3)
        self._status.update(describe(self._messages, rate, state_bytes, self._letters))


class _Listener(StreamingQueryListener):
    """Passes the progress of each micro-batch to a `Progress`."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        state = sum(
            operator.customMetrics.get(_STATE_SIZE, operator.memoryUsedBytes)
            for operator in event.progress.stateOperators
        )
        self._progress.add(event.progress.numInputRows, state)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass
