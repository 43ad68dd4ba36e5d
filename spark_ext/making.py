"""Making ids on Spark: `assign_id`."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from msgid import layout
from msgid.derived import assigned_node
from msgid.strict import seconds_since_epoch

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["assign_id"]

_ROW_BITS = 33
"""`monotonically_increasing_id` counts rows in its low 33 bits and has the partition above them."""


def assign_id(run: str | None = None, at: datetime | float | None = None) -> Column:
    """Give each row a new id: the run's lease as node, the partition as pid, the row in it as sequence.

    The ids are unique within a run. A task that is retried gives a row the same id as long as the rows of its
    partition come in the same order: that is so before any shuffle, and after a sort within partitions by a unique
    key. After a shuffle it is not, and a stage that is run again renumbers its rows: give rows that have a place or a
    key their id from that instead. Assign after a union: a DataFrame in union with itself repeats its numbers.

    Parameters
    ----------
    run : str, optional
        the run's name: the same name, time and rows give the same ids again. Default: a random lease, new at each
        call of this function.
    at : datetime or float, optional
        the run's time, an aware datetime or Unix seconds. Default: now, when this function is called.

    Returns
    -------
    Column
        text of 34 hex digits, of the origin ``assigned``. Fails a query with more than 65 536 partitions, or 2**32
        rows in one. For batch queries: Spark refuses it in streaming ones.

    Examples
    --------
    >>> df = spark.range(2, numPartitions=1).select(assign_id("nightly/2026-11-21", at=1795219200))
    >>> df.show(truncate=False)
    +----------------------------------+
    |assign_id                         |
    +----------------------------------+
    |01173DEDD3A85A00000B12790000000000|
    |01173DEDD3A85A00000B12790000000001|
    +----------------------------------+
    """
    seconds = seconds_since_epoch("at", datetime.now(timezone.utc) if at is None else at) & layout.UINT32_MASK
    first = layout.pack(assigned_node(run), 0, seconds, 0)
    pid, sequence = layout.FIELDS["pid"], layout.FIELDS["sequence"]
    before = first[: pid.start].hex().upper()
    between = first[pid.stop : sequence.start].hex().upper()

    # Each use of the numbering counts for itself, one up a row. All are used on every row, so they agree.
    def partition() -> Column:
        return F.shiftright(F.monotonically_increasing_id(), _ROW_BITS)

    def row() -> Column:
        return F.monotonically_increasing_id().bitwiseAND((1 << _ROW_BITS) - 1)

    too_many = (partition() > layout.PID_MAX) | (row() > layout.UINT32_MASK)
    message = f"assign_id numbers at most {layout.PID_MAX + 1} partitions of {layout.UINT32_SPAN} rows each"
    id = F.concat(F.lit(before), _padded(partition(), pid.width), F.lit(between), _padded(row(), sequence.width))
    return F.when(too_many, F.raise_error(F.lit(message))).otherwise(id).alias("assign_id")


def _padded(number: Column, width: int) -> Column:
    """Write a number as so many bytes of hex digits: with a bit above them all set, no digit is left out."""
    return F.substring(F.hex(number.bitwiseOR(1 << 8 * width)), 2, 2 * width)
