"""The job ``process``: pass each message of a folder to a handler, and write the outputs to a table."""

from __future__ import annotations

import importlib
import re
import sys
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from msgid._known_tables import KIND, NEW
from msgid._known_tables import OUTPUTS as JOB_OUTPUTS
from spark_ext._filesystem import filesystem
from spark_ext._private import files_of_batch, last_batch, python_error_in
from spark_ext.jobs._bad_files import BadFile, Ledger, is_unreadable
from spark_ext.jobs._files import check_interval, check_output, column_of, follow, read_rows, written
from spark_ext.jobs._formats import DEFAULT_LIMIT, BadInput, BatchLimit, format_of
from spark_ext.jobs._job_tables import Input, read_stream
from spark_ext.jobs._progress import Progress
from spark_ext.streaming._bucket_state import OTHER_FORMAT
from spark_ext.streaming._buckets import MAX_BUCKETS
from spark_ext.streaming._processing.handling import CHANGED, DUPLICATE, FAILED, MALFORMED, TOO_LATE
from spark_ext.streaming.checkpoint import OldCheckpoint, check_checkpoint
from spark_ext.streaming.process import ATTEMPTS, BUCKETS, process
from spark_ext.tables.sinks import write_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from msgid.processing.context import Handler

OUTPUTS: Final = JOB_OUTPUTS.folder
_OTHER_BUCKETS: Final = r"ValueError: (`buckets` must be .*)"


class Summary(NamedTuple):
    """The numbers of rows in the output folder."""

    outputs: int
    too_late: int
    malformed: int
    failed: int
    changed: int
    unreadable: Sequence[BadFile] = ()
    """The files that this run could not read to their end."""


def load_handler(name: str) -> Handler:
    """Import a handler by ``module:function``, also from the working folder, and send its code to Spark's workers.

    Raises:
        BadInput: if the handler is missing or not callable.
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
        raise BadInput(f"handler {name!r} must be a function, got {type(handler).__name__}")
    cloudpickle.register_pickle_by_value(found)  # type: ignore[no-untyped-call]  # workers may not have the module
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
    limit: BatchLimit = DEFAULT_LIMIT,
) -> Summary:
    """Handle the new messages of a folder, from a checkpoint.

    A message's outputs are written once. A duplicate has the same outputs, which are not written again. A message that
    is too late, malformed, failed or changed is written to the same table with the reason. On a terminal, the job shows
    its progress.

    A file that cannot be read to its end is listed in the folder ``unreadable`` of the output, and the job goes on. Put
    the repaired file into the input folder under another name: messages that were handled before are duplicates.

    Args:
        spark: the session, with the RocksDB state store.
        input: a folder; files must be moved into it whole.
        handler: a pure function of (state, message, context).
        key: the column of the business key.
        checkpoint: the checkpoint folder, with the progress and the states.
        output: the output folder; its folder ``outputs`` is written, which also holds messages that were not handled.
        id: the column of message IDs.
        timestamp: the column of the messages' times. Default: the times in their IDs.
        retention: retention period in days, in which a redelivered message gets its first outputs.
        format: format of the input. Default: by its ending.
        interval: seconds between two looks for new files. Default: handle the new files, and return.
        attempts: maximum number of calls of a handler that raises; then its message is written as failed.
        keep_outputs: store the outputs of each message, and return them for a redelivered message.
        buckets: number of groups of keys; it cannot change for a checkpoint.
        table_format: ``parquet`` or ``delta``: the format of the outputs' table.
        limit: the size of a micro-batch.

    Raises:
        BadInput: if a column is missing, if an argument is out of range, if the checkpoint belongs to another number of
            buckets or to an earlier version, or if the outputs belong to another query or another format.
    """
    check(retention, interval, buckets)
    limit.checked()
    period = _period(retention)
    read = partial(read_rows, format=format or format_of(input), prefer=[key, id, *filter(None, (timestamp,))])
    source = Input(input, lambda spark, files, schema: read(spark, files, schema=schema))
    table = f"{output}/{OUTPUTS}"
    ledger = Ledger(output)
    before = ledger.entries()

    def list_unreadable(spark: SparkSession, number: int) -> None:
        left_out = ledger.left_out(number, OUTPUTS)
        files = [file for file in files_of_batch(*filesystem(checkpoint), number) if file not in left_out]
        ledger.add(source.split(spark, files)[1], number, [OUTPUTS])

    def run_query(progress: Progress, *, tolerant: bool) -> None:
        messages = read_stream(
            spark, source, lambda schema: read(spark, input, stream=True, schema=schema, tolerant=tolerant, limit=limit)
        )
        for name in (key, id, *([] if timestamp is None else [timestamp])):
            column_of(messages, name)
        try:
            handled = process(
                messages,
                key,
                handler,
                id=id,
                timestamp=timestamp,
                retention=period,
                attempts=attempts,
                keep_outputs=keep_outputs,
                buckets=buckets,
            )
        except ValueError as error:
            raise BadInput(str(error)) from None
        check_output({table: handled}, table_format, checkpoint)

        def write(batch: DataFrame, number: int) -> None:
            rows = progress.observed(batch).where(F.col(KIND) != DUPLICATE)
            # One write for all kinds: a second write would run the handler a second time.
            write_once(rows, number, table, format=table_format, partition_by=(KIND,))
            progress.written()
            if tolerant:
                list_unreadable(batch.sparkSession, number)

        follow(handled, write, checkpoint, interval)

    try:
        check_checkpoint(spark, checkpoint)
    except OldCheckpoint as error:
        raise BadInput(str(error)) from None
    with Progress(spark) as progress:
        try:
            try:
                run_query(progress, tolerant=False)
            except StreamingQueryException as error:
                if not is_unreadable(error):
                    raise
                list_unreadable(spark, last_batch(*filesystem(checkpoint)))
                if not ledger.left_out(last_batch(*filesystem(checkpoint)), OUTPUTS):
                    raise
                run_query(progress, tolerant=True)
        except StreamingQueryException as error:
            raise _explained(error, checkpoint) from None
    rows = written(spark, table)
    counts = {} if rows is None else {row["kind"]: row["count"] for row in rows.groupBy("kind").count().collect()}
    new, too_late, malformed, failed, changed = (
        counts.get(kind, 0) for kind in (NEW, TOO_LATE, MALFORMED, FAILED, CHANGED)
    )
    found = [BadFile(entry.path, entry.reason) for entry in ledger.entries() if entry not in before]
    return Summary(new, too_late, malformed, failed, changed, found)


def check(retention: float, interval: float | None, buckets: int) -> None:
    """Raise BadInput for an option that is out of range, before Spark is asked."""
    _period(retention)
    check_interval(interval)
    if buckets > MAX_BUCKETS:
        raise BadInput(f"buckets must be at most {MAX_BUCKETS}, got {buckets}")


def _period(days: float) -> timedelta:
    try:
        period = timedelta(days=days)
    except (ValueError, OverflowError):  # NaN, or too many days
        period = timedelta(0)
    if period <= timedelta(0):
        raise BadInput(f"retention must be a number of days above 0 and below a billion, got {days}")
    return period


def _explained(error: StreamingQueryException, checkpoint: str) -> Exception:
    """Return what a user can do about an error, or the error itself."""
    if python_error_in(error, f"({re.escape(OTHER_FORMAT)})"):
        return BadInput(f"cannot continue from {checkpoint}: an earlier version wrote it. Start with a new checkpoint")
    buckets = python_error_in(error, _OTHER_BUCKETS)
    return error if buckets is None else BadInput(buckets)
