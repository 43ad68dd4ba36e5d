"""The job ``process``: a folder's messages to their handler, each once, and its outputs to a table."""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from pyspark import cloudpickle
from pyspark.sql import functions as F

from spark_ext.jobs.files import BadInput, column_of, follow, read_rows, written
from spark_ext.processing import DUPLICATE, MALFORMED, NEW, TOO_LATE, process
from spark_ext.sinks import write_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from msgid.processing.context import Handler

__all__ = ["Summary", "load_handler", "run"]

OUTPUTS = "outputs"


class Summary(NamedTuple):
    """What the output folder holds."""

    outputs: int
    too_late: int
    malformed: int


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
) -> Summary:
    """Handle what has come since the last time, from a checkpoint.

    A message's outputs are written once: those of a duplicate, which are the same, are not written again. What is no
    message, by its format or its id, is written beside them with the reason.

    Args:
        spark: the session, with the RocksDB state store.
        input: a folder, into which files are moved whole.
        handler: a pure function of (state, message, context).
        key: the column of the business key.
        checkpoint: the folder that knows what is done, and the states.
        output: a folder: ``outputs`` in it is written, with the inputs that came too late or are malformed.
        id: the column of message ids.
        timestamp: the column of the messages' own times. Default: those of their ids.
        retention: days that a message is known to have been handled.
        format: of the input. Default: by its ending.
        interval: seconds between looks for new files, without an end. Default: do what is there, and return.

    Raises:
        BadInput: the input has no such columns.
    """
    messages = read_rows(spark, input, format, stream=True)
    for name in (key, id):
        column_of(messages, name)
    if timestamp is not None:
        messages = messages.withColumn(timestamp, column_of(messages, timestamp).cast("timestamp"))
    days = timedelta(days=retention)
    handled = process(messages, key, handler, id=id, timestamp=timestamp, retention=days)

    def write(batch: DataFrame, number: int) -> None:
        # In one write: a second one would run the handler a second time.
        write_once(batch.where(F.col("kind") != DUPLICATE), number, f"{output}/{OUTPUTS}", partition_by=("kind",))

    follow(handled, write, checkpoint, interval)
    table = written(spark, f"{output}/{OUTPUTS}")
    counts = {} if table is None else {row["kind"]: row["count"] for row in table.groupBy("kind").count().collect()}
    return Summary(counts.get(NEW, 0), counts.get(TOO_LATE, 0), counts.get(MALFORMED, 0))
