"""The world of Parquet tables: two drivers of one query, each with its batches and replays, and a reader.

A driver writes its batches in order and begins again at an earlier one after a kill. On a store without a rename of
folders there is one driver at a time, as the documentation asks.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from unittest import mock

from pyspark.errors import AnalysisException
from pyspark.sql.types import LongType, StructField, StructType

from simulation.disk import Disk, TableFiles
from simulation.processes import Process
from simulation.scheduler import Operation, Violation
from spark_ext.tables import parquet
from spark_ext.tables._writers import TableConflict, Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulation.scheduler import Scheduler

TABLE = "/lake/orders"
BATCHES = 4
PARTS = 3
ATTEMPTS = 100
OLD = "part-old"
"""A file of the incomplete folder of a batch, which a store without renames has left."""
WRITER = Writer("orders", "the query", chosen=False)


class _Batch:
    """A batch as the sink takes it: a DataFrame whose rows are the numbers of its parts."""

    columns = ("id",)
    schema = StructType([StructField("id", LongType())])

    def __init__(self, number: int) -> None:
        self.number = number
        self.sparkSession = mock.Mock()
        missing = AnalysisException("no files")
        missing.getCondition = lambda: "PATH_NOT_FOUND"
        self.sparkSession.read.parquet.side_effect = missing


class Sinks:
    """Drivers, and the rows that a reader of the table has seen."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.disk = Disk()
        self.disk.add_folder("/lake")
        self.kind = scheduler.random.choice(["local", "hdfs", "s3"])
        faults = 0.01 if scheduler.chance(0.5) else 0.0
        count = 1 if self.kind == "s3" else 2
        self.drivers = [Process(f"driver {number}", scheduler) for number in range(count)]
        self._files = [TableFiles(self.disk, process, scheduler, faults, self.kind) for process in self.drivers]
        self.fast: Process | None = None
        """The driver that does many steps while the other one does hardly any."""
        self.next = [0] * count
        """The next batch of each driver."""
        self.done: set[int] = set()
        """The batches whose writing was confirmed to a driver."""
        self.left: int | None = None
        """The batch with the incomplete folder."""
        if self.kind != "s3" and scheduler.chance(0.5):
            self.left = scheduler.random.randrange(BATCHES)
            self.disk.create(f"{TABLE}/writer={WRITER.name}/batch={self.left}/{OLD}", b"0")
        self._patches = [
            mock.patch.object(parquet, "filesystem", self._filesystem),
            mock.patch.object(parquet, "_write", self._write),
        ]
        for patch in self._patches:
            patch.start()

    def operations(self) -> Sequence[Operation]:
        """Return the operations that are possible now."""
        if self.scheduler.chance(0.1):
            self.fast = self.scheduler.random.choice([None, *self.drivers])
        found: list[Operation] = []
        for place, driver in enumerate(self.drivers):
            factor = 20 if driver is self.fast else 1
            for operation in driver.operations(lambda place=place: self._begin(place)):
                found.append(operation._replace(weight=factor * operation.weight))
        return found

    def check(self) -> None:
        """A batch that readers see is whole, has each part once, and stays unless its driver is at work."""
        at_work = any(driver.is_running for driver in self.drivers)
        for batch, seen in self._visible().items():
            if len(seen) != len(set(seen)):
                raise Violation(f"batch {batch} has parts twice: {seen}")
            if self.kind != "s3" and seen and len(seen) < PARTS:
                raise Violation(f"batch {batch} is seen in part: {seen}")
            if batch in self.done and len(seen) < PARTS and not at_work:
                raise Violation(f"batch {batch} was written, and a reader sees {seen}")

    def finish(self) -> None:
        """Each batch is in the table once."""
        for place, driver in enumerate(self.drivers):
            driver.finish()
            self.next[place] = 0
            for _ in range(ATTEMPTS):
                if self.next[place] < BATCHES:
                    self._begin(place)
                    driver.finish()
            if self.next[place] < BATCHES:
                raise Violation(f"batch {self.next[place]} must be written within {ATTEMPTS} attempts, and is not")
        for batch, seen in self._visible().items():
            if sorted(seen) != list(range(PARTS)):
                raise Violation(f"batch {batch} must have the parts {list(range(PARTS))}, got {seen}")
        self.check()

    def close(self) -> None:
        """End the processes and the patches."""
        for driver in self.drivers:
            if driver.is_running:
                driver.kill()
        for patch in self._patches:
            patch.stop()

    def _begin(self, place: int) -> None:
        # A driver begins again at a batch that it or another driver has written, never at one after a missing batch.
        if self.scheduler.fault(0.3) or self.next[place] == BATCHES:
            first_missing = min(set(range(BATCHES)) - self.done, default=BATCHES - 1)
            self.next[place] = self.scheduler.random.randrange(first_missing + 1)
        batch = self.next[place]

        def call() -> Any:
            try:
                result = parquet.FORMAT.write_batch(_Batch(batch), batch, TABLE, WRITER, (), None)
            except OSError as error:
                return error
            except TableConflict as error:
                if batch != self.left:
                    raise Violation(f"batch {batch} is refused: {error}") from None
                folder = f"{TABLE}/writer={WRITER.name}/batch={batch}"
                if f"{folder}/{OLD}" in self.disk.files:
                    self.disk.remove_tree(folder)  # what the error asks for
                return error
            self.done.add(batch)
            self.next[place] = batch + 1
            return result

        self.drivers[place].start(call)

    def _filesystem(self, path: str) -> tuple[TableFiles, str]:
        return self._current(), path

    def _current(self) -> TableFiles:
        """Return the file system of the process that runs now."""
        for files, driver in zip(self._files, self.drivers, strict=True):
            if driver.is_thread(threading.current_thread()):
                return files
        raise AssertionError("called outside a driver")

    def _write(self, batch: Any, path: str, inner: str, mode: str, partition_by: tuple[str, ...]) -> None:
        """Write as Spark does: an existing folder is an error or is emptied, and then tasks write their parts."""
        files, folder = self._current(), f"{path}/{inner}"
        if folder in self.disk.folders:
            if mode == "error":
                raise AssertionError(f"{folder} exists")
            files.delete_dir(folder)
        files.create_dir(folder)
        for part in self.scheduler.random.sample(range(PARTS), PARTS):
            files.write_part(f"{folder}/part-{part}", b"%d" % part)

    def _visible(self) -> dict[int, list[int]]:
        """Return the parts of each batch that a reader sees: it skips names that begin with a dot or an underscore."""
        parts: dict[int, list[int]] = {batch: [] for batch in range(BATCHES)}
        for path, content in self.disk.files.items():
            names = path[len(TABLE) + 1 :].split("/")
            batch = int(names[1].removeprefix("batch=")) if names[1].startswith("batch=") else -1
            # The rows of an incomplete folder are seen until the batch is written.
            if names[-1] == OLD and batch not in self.done:
                continue
            if not any(name.startswith((".", "_")) for name in names):
                parts[batch].append(int(content))
        return parts
