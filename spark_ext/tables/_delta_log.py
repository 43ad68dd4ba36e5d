"""The log of a Delta table: its batches with their queries, and its data files.

`deltalake` reads the log on both ways of writing, so that each way sees the batches of the other one.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql import types as T

from spark_ext._filesystem import filesystem, resolve
from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import Transaction

    from spark_ext.tables._writers import Writer

AS_DELTA_READS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 lacks statistics
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""Settings for the data files, which readers other than Spark read too."""
WRITER: Final = "writer"
"""The key of the writer's name in the history of a table."""
QUERY: Final = "query"
"""The key of a query's number in the history, where a commit claims the table for it."""
_LOWEST: Final = (1, 6)
"""Earlier versions leave out the number of the batch in every commit but the first, and report no error."""
_SOLE: Final = "#query"
"""The record of the one query that writes to a job's table; no name of a writer is empty."""


class Overtaken(Exception):
    """Another commit came first, so the table must be read again."""


def is_overtaken(error: Exception) -> bool:
    """Return whether a commit can be tried again."""
    return isinstance(error, Overtaken)


def open_table(path: str, storage_options: dict[str, str] | None = None) -> DeltaTable | None:
    """Return a Delta table, or None if it is missing.

    Raises
    ------
    ImportError
        if the package `deltalake` is missing.
    ValueError
        if the path has a '%' and two hex digits, which the package would decode, or if its scheme is not supported.
    """
    check_installed()
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return DeltaTable(table_uri(path), storage_options=storage_options)
    except TableNotFoundError:
        return None


def existing(path: str, storage_options: dict[str, str] | None) -> DeltaTable:
    """Return a Delta table, or raise FileNotFoundError."""
    table = open_table(path, storage_options)
    if table is None:
        raise FileNotFoundError(f"cannot find a Delta table at {path}")
    return table


def check_installed() -> None:
    """Raise ImportError if the package `deltalake` is missing or too old."""
    try:
        import deltalake
    except ImportError:
        raise ImportError("a Delta table needs deltalake: pip install 'msgid[delta]'", name="deltalake") from None
    version = tuple(int(part) for part in deltalake.__version__.split(".")[:2])
    if version < _LOWEST:
        raise ImportError(
            f"a Delta table needs deltalake {'.'.join(map(str, _LOWEST))} or later, got {deltalake.__version__}: "
            "pip install 'msgid[delta]'",
            name="deltalake",
        )


def table_uri(path: str) -> str:
    """Return the path of a table as `deltalake` takes it."""
    import pyarrow.fs as pafs

    files, inner = filesystem(path)
    uri = inner if isinstance(files, pafs.LocalFileSystem) else resolve(path)
    if unquote(uri) != uri:
        raise ValueError(f"the path of a Delta table must not contain '%' and two hex digits, got {path!r}")
    return uri


def spark_schema(table: DeltaTable) -> T.StructType:
    """Return the columns of a Delta table as a Spark schema."""
    schema: T.StructType = T.StructType.fromJson(json.loads(table.schema().to_json()))
    return schema


def files_of(table: DeltaTable) -> list[tuple[str, dict[str, Any]]]:
    """Return the data files of a table, each as its path in the table's folder and its partition values.

    Dates and times are text: as Python's values, some are out of range, and Spark reads others in Python's time zone.
    """
    import pyarrow as pa

    rows = pa.table(table.get_add_actions(flatten=False))
    values: list[dict[str, Any]] = [{}] * rows.num_rows
    if "partition" in rows.column_names:
        columns = pa.Table.from_struct_array(rows["partition"])
        texts = [column.cast(pa.string()) if pa.types.is_temporal(column.type) else column for column in columns]
        values = pa.table(texts, columns.column_names).to_pylist()
    return [(unquote(path), found) for path, found in zip(rows["path"].to_pylist(), values, strict=True)]


def committed(table: DeltaTable, writer: Writer, batch_id: int, path: str) -> bool:
    """Return whether a writer has written a batch.

    The log has the number of the writer's last batch, and of the first batch of the series without a gap that ends with
    it. Two numbers do not tell which batches before the series were written.

    Raises
    ------
    TableConflict
        if the batch is before the series.
    """
    last, first = table.transaction_version(writer.name), table.transaction_version(_first(writer)) or 0
    if last is None or batch_id > last:
        return False
    if batch_id < first and batch_id != last:
        raise TableConflict(
            f"cannot tell whether batch {batch_id} of {writer.name!r} is in {path}: the table's log knows the batches "
            f"{first} to {last}. If its rows are missing, write it with another app_id; otherwise skip it"
        )
    return True


def _first(writer: Writer) -> str:
    """Return the name of the first batch of a series in the log. It is missing for a series that begins at 0."""
    return f"{writer.name}#first"


def marks_of(writer: Writer) -> list[Transaction]:
    """Return the records that name the query of a chosen writer name, and the one query of a job's table."""
    from deltalake.transaction import Transaction

    if writer.query is None:
        return []
    number = int.from_bytes(sha256(writer.query.encode()).digest()[:7], "big")
    names = [f"{writer.name}#query"] * writer.chosen + [_SOLE] * writer.sole
    return [Transaction(name, number) for name in names]


def check_marks(table: DeltaTable | None, marks: list[Transaction], writer: Writer, path: str) -> None:
    """Check that a table does not have a record of another query."""
    if table is None:
        return
    for mark in marks:
        before = table.transaction_version(mark.app_id)
        if before is None:
            before = _claimed_by(table, mark)
        if before is None or before == mark.version:
            continue
        if mark.app_id == _SOLE:
            raise TableConflict(
                f"cannot write to {path}: it has the rows of another query than {writer.query}. Two jobs must not "
                "share an output: restore that query's checkpoint, or choose another output folder"
            )
        raise TableConflict(
            f"cannot write to {path}: its writer {writer.name!r} is another query than {writer.query}. "
            "Restore that query's checkpoint, or choose another app_id"
        )


def claims_of(table: DeltaTable | None, marks: list[Transaction]) -> list[tuple[Transaction, Transaction]]:
    """Return the records that a table lacks, each with the claim that goes before it.

    Delta's own writer writes one record per commit, and replaces a lower number. So it cannot write a record unless
    another query has written one. But it writes the number 0 once, and of two queries, one succeeds: that is the claim.
    """
    from deltalake.transaction import Transaction

    missing = [mark for mark in marks if table is None or table.transaction_version(mark.app_id) is None]
    return [(Transaction(f"{mark.app_id}#claim", 0), mark) for mark in missing]


def _claimed_by(table: DeltaTable, mark: Transaction) -> int | None:
    """Return the number of the query that has claimed a record and has not written it yet; None if it is unknown."""
    ((claim, _),) = claims_of(None, [mark])
    if table.transaction_version(claim.app_id) is None:
        return None
    said = (said_in(commit) for commit in table.history())
    return next((each[QUERY] for each in said if each.get(WRITER) == claim.app_id and QUERY in each), None)


def said_in(commit: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a commit in the history of a table; Delta's own writer has those of its user as text.

    Examples
    --------
    >>> said_in({"operation": "WRITE", "userMetadata": '{"writer": "orders"}'})["writer"]
    'orders'
    """
    try:
        own = json.loads(commit.get("userMetadata") or "{}")
    except ValueError:
        own = None
    return {**commit, **own} if isinstance(own, dict) else commit


def is_streamed(table: DeltaTable) -> bool:
    """Return whether `write_once` has written to a table, as far as its history reaches."""
    return any(WRITER in said_in(commit) for commit in table.history())


def series_of(table: DeltaTable | None, writer: Writer, batch_id: int) -> list[Transaction]:
    """Return the record of a new series if a batch does not follow the last one."""
    from deltalake.transaction import Transaction

    last = None if table is None else table.transaction_version(writer.name)
    return [] if batch_id == (0 if last is None else last + 1) else [Transaction(_first(writer), batch_id)]
