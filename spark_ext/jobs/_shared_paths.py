"""Check, before the work of a job starts, that the machines of a cluster share its folders."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from spark_ext._filesystem import filesystem
from spark_ext._private import place_of_workers
from spark_ext.jobs._formats import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

_MARK: Final = ".shared-"
_MAX_TASKS: Final = 32


def check_shared(spark: SparkSession, input: str, output: str) -> None:
    """Check that the executors see a job's local input, and a file that the driver creates in its local output.

    A job of at most 32 tasks looks. A local master, and a store that is not a local disk, are not checked. If the tasks
    cannot run, because their Python lacks `pyarrow`, nothing is checked.

    Raises
    ------
    BadInput
        if an executor does not see one of them.
    """
    place = place_of_workers(spark)
    if place is None:
        return
    wanted: dict[str, str] = {}
    files, inner = filesystem(input)
    if files.type_name == "local" and not set(inner) & set("*?[{"):
        wanted[inner] = f"cannot read {input}: it is missing"
    files, folder = filesystem(output)
    mark = f"{folder}/{_MARK}{uuid4().hex}"
    if files.type_name == "local":
        files.create_dir(folder, recursive=True)
        with files.open_output_stream(mark):
            pass
        wanted[mark] = f"cannot write to {output}: the driver's folder is not the one"
    if not wanted:
        return
    tasks = min(max(place.tasks, 1), _MAX_TASKS)
    try:
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(_looking(list(wanted)), "path string, host string").collect()
    except Exception:  # the job itself tells what the workers lack, if it needs them
        return
    finally:
        if mark in wanted:
            with suppress(OSError):
                files.delete_file(mark)
    for path, host in sorted(tuple(row) for row in rows):
        raise BadInput(f"{wanted[path]} on {host}. All machines must share the folder: use a common store or mount")


def _looking(paths: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function, without this package, that yields the paths that are missing where it runs."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import platform

        import pyarrow as pa

        for _ in batches:
            missing = [path for path in paths if not os.path.exists(path)]
            hosts = pa.array([platform.node()] * len(missing), pa.string())
            yield pa.RecordBatch.from_arrays([pa.array(missing, pa.string()), hosts], names=["path", "host"])

    return look
