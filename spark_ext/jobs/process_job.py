"""The job ``process``: a folder's messages to their handler, each once, and its outputs to a table."""

from __future__ import annotations

import importlib
import re
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from spark_ext.jobs._files import BadInput, check_output, column_of, follow, read_rows, written
from spark_ext.jobs._progress import Progress
from spark_ext.streaming.process import (
    ATTEMPTS,
    BUCKETS,
    CHANGED,
    DUPLICATE,
    FAILED,
    MALFORMED,
    NEW,
    TOO_LATE,
    process,
)
from spark_ext.tables.sinks import write_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from msgid.processing.context import Handler

__all__ = ["Summary", "load_handler", "run"]

OUTPUTS = "outputs"
_OTHER_BUCKETS: Final = re.compile(r"ValueError: (buckets must be .*)")
_OTHER_OPERATOR: Final = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"


class Summary(NamedTuple):
    """What the output folder holds."""

    outputs: int
    too_late: int
    malformed: int
    failed: int
    changed: int


def load_handler(name: str) -> Handler:
    """Find a handler by ``module:function``, also in the working folder, and have it travel to Spark's workers.

    Raises:
        BadInput: there is none.
    """
    module, _, function = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
        handler: Handler = getattr(found, function)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(f"no handler {name!r} (module:function): {error}") from None
    if not callable(handler):
        raise BadInput(f"handler {name!r} is no function")
    cloudpickle.register_pickle_by_value(found)  # type: ignore[no-untyped-call]  # the workers need not find it
    return handler


def run(
    spark: SparkSession,
    input: str,
    handler: Handler,
    *,
    key: str,
    checkpoint: str,
    output: str,
    id: str = "id",
    timestamp: str | None = None,
    retention: float = 7,
    format: str | None = None,
    interval: float | None = None,
    attempts: int = ATTEMPTS,
    keep_outputs: bool = False,
    buckets: int = BUCKETS,
    table_format: str = "parquet",
) -> Summary:
    """Handle what has come since the last time, from a checkpoint.

    A message's outputs are written once: those of a duplicate, which are the same, are not written again. A message
    that is too late, malformed, failed or changed is written beside them with the reason. On a terminal the progress is
    shown.

    Args:
        spark: the session, with the RocksDB state store.
        input: a folder, into which files are moved whole.
        handler: a pure function of (state, message, context).
        key: the column of the business key.
        checkpoint: the folder that knows what is done, and the states.
        output: a folder: ``outputs`` in it is written, with the inputs that came too late or are malformed.
        id: the column of message ids.
        timestamp: the column of the messages' own times. Default: those of their ids.
        retention: days that a redelivered message is answered with its outputs.
        format: of the input. Default: by its ending.
        interval: seconds between looks for new files, without an end. Default: do what is there, and return.
        attempts: how often a handler that raises is run before its message is written as failed.
        keep_outputs: store the outputs of each message, and answer a redelivered message from them.
        buckets: number of groups of keys; part of the checkpoint.
        table_format: ``parquet`` or ``delta``: the format of the outputs' table.

    Raises:
        BadInput: if a column is missing, if the checkpoint belongs to another number of buckets or to an earlier
            version, or if the outputs belong to another query or another format.
    """
    messages = read_rows(spark, input, format, stream=True)
    for name in (key, id):
        column_of(messages, name)
    if timestamp is not None:
        column_of(messages, timestamp)
    handled = process(
        messages,
        key,
        handler,
        id=id,
        timestamp=timestamp,
        retention=timedelta(days=retention),
        attempts=attempts,
        keep_outputs=keep_outputs,
        buckets=buckets,
    )
    table = f"{output}/{OUTPUTS}"
    check_output({table: handled}, table_format, checkpoint)
    with Progress(spark) as progress:

        def write(batch: DataFrame, number: int) -> None:
            rows = progress.observed(batch).where(F.col("kind") != DUPLICATE)
            # In one write: a second one would run the handler a second time.
            write_once(rows, number, table, format=table_format, partition_by=("kind",))
            progress.written()

        try:
            follow(handled, write, checkpoint, interval)
        except StreamingQueryException as error:
            raise _explained(error, checkpoint) from None
    rows = written(spark, table)
    counts = {} if rows is None else {row["kind"]: row["count"] for row in rows.groupBy("kind").count().collect()}
    return Summary(*(counts.get(kind, 0) for kind in (NEW, TOO_LATE, MALFORMED, FAILED, CHANGED)))


def _explained(error: StreamingQueryException, checkpoint: str) -> Exception:
    """Return what a user can do about an error, or the error itself."""
    if _OTHER_OPERATOR in str(error):
        return BadInput(f"cannot continue from {checkpoint}: an earlier version wrote it. Start with a new checkpoint")
    found = _OTHER_BUCKETS.search(str(error))
    return error if found is None else BadInput(found[1].strip())
