"""Delta as a table format: any number of writers and readers, and one commit per change.

If the session has Delta's catalog, Delta's own writer writes (`_delta_catalog`). Without it, Spark writes the data
files, and the package `deltalake` of the driver commits them. Both ways have one rule for what a table's log records.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid._retrying import retry
from spark_ext._filesystem import filesystem, literal
from spark_ext._settings import settings
from spark_ext.columns._expressions import quoted_name
from spark_ext.tables import _delta_catalog
from spark_ext.tables._delta_columns import WRITE, check_new, check_partitions, check_table, check_types, delta_schema
from spark_ext.tables._delta_files import add_actions, partition_column, with_partition_texts
from spark_ext.tables._delta_log import (
    AS_DELTA_READS,
    WRITER,
    Overtaken,
    check_installed,
    check_marks,
    claims_of,
    committed,
    existing,
    files_of,
    is_overtaken,
    is_streamed,
    marks_of,
    open_table,
    series_of,
    spark_schema,
    table_uri,
)
from spark_ext.tables._row_counts import CountedRows, MissingRows
from spark_ext.tables._writers import TableConflict
from spark_ext.tables.table_formats import TableFormat, TableName

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables._writers import Writer

_OURS: Final = re.compile(rf"{WRITE}=[0-9a-f]{{32}}/")
_ATTEMPTS: Final = 10
_PROPERTIES: Final = {"delta.checkpointInterval": "10"}
"""A reader lists the log from the last checkpoint, so it reads at most ten commits."""


class _Delta(TableFormat):
    name = "delta"
    has_names = True

    def is_table(self, path: str) -> bool:
        import pyarrow.fs as pafs

        files, base = filesystem(path)
        return bool(files.get_file_info(f"{base}/_delta_log").type == pafs.FileType.Directory)

    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        if isinstance(path, TableName) or _delta_catalog.has_catalog(df.sparkSession):
            return _delta_catalog.write_batch(df, batch_id, path, writer, partition_by, storage_options)
        from deltalake.transaction import Transaction

        table = open_table(path, storage_options)
        _check(df, table, partition_by, path)
        marks = marks_of(writer)
        check_marks(table, marks, writer, path)
        if table is not None and committed(table, writer, batch_id, path):
            return False
        folder, actions = _write_files(df, path, partition_by)
        if table is None:
            # Drivers that create one table at once can all succeed: each makes a commit. So it does not have rows.
            _create(df, path, [], partition_by, storage_options)
            table = existing(path, storage_options)
            _check(df, table, partition_by, path)

        def commit() -> bool:
            if committed(table, writer, batch_id, path):
                if _holds(table, folder):
                    return True  # the commit succeeded, and only its answer was lost
                _delete(path, folder)
                return False
            check_marks(table, marks, writer, path)
            claims = [claim for claim, _ in claims_of(table, marks)]
            transactions = [Transaction(writer.name, batch_id), *series_of(table, writer, batch_id), *marks, *claims]
            if not _commit(df, table, actions, "append", partition_by, transactions, writer):
                _check(df, table, partition_by, path)
                raise Overtaken
            return True

        try:
            return retry(commit, is_overtaken, [0] * (_ATTEMPTS - 1))
        except Overtaken:
            raise OSError(
                f"cannot commit batch {batch_id} to {path}: {_ATTEMPTS} commits of others came first"
            ) from None

    def is_written(self, batch_id: int, path: str, writer: Writer) -> bool:
        from pyspark.sql import SparkSession

        folder = _delta_catalog.location_of(SparkSession.active(), path) if isinstance(path, TableName) else path
        table = None if folder is None else open_table(folder)
        return table is not None and committed(table, writer, batch_id, path)

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        if isinstance(path, TableName):
            return spark.table(path)
        if _delta_catalog.has_catalog(spark):
            return spark.read.format("delta").load(path)
        return _read(spark, path, existing(path, storage_options))

    def check_columns(self, df: DataFrame, path: str) -> None:
        check_installed()
        if _delta_catalog.has_catalog(df.sparkSession):
            check_types(df, *_delta_catalog.MORE_TYPES)
        else:
            delta_schema(df)

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        table = open_table(path)
        if mode == "error" and table is not None:
            raise FileExistsError(f"there is a Delta table at {path}")
        replaced = mode == "overwrite" and table is not None
        if _delta_catalog.has_catalog(df.sparkSession):
            _delta_catalog.write_rows(df, None if replaced else table, path, mode, partition_by)
            return
        _check(df, None if replaced else table, partition_by, path, replaces=replaced)
        folder, actions = _write_files(df, path, partition_by)
        if table is None:
            done = _create(df, path, actions, partition_by, None)
        else:
            done = _commit(df, table, actions, mode, partition_by, [])
        if not done:
            _delete(path, folder)
            raise OSError(f"cannot commit to {path}: another commit came first")

    def is_streamed(self, path: str) -> bool:
        table = open_table(path)
        return table is not None and is_streamed(table)


FORMAT: Final = _Delta()
FORMATS: Final = (FORMAT,)


def _check(
    df: DataFrame, table: DeltaTable | None, partition_by: tuple[str, ...], path: str, *, replaces: bool = False
) -> None:
    delta_schema(df)
    check_partitions(df, partition_by, path)
    if table is not None:
        check_table(df, table, partition_by, path)
    elif not replaces:
        check_new(df, partition_by, path)


def _holds(table: DeltaTable, folder: str) -> bool:
    return any(file.startswith(f"{folder}/") for file, _ in files_of(table))


def _write_files(df: DataFrame, path: str, partition_by: tuple[str, ...]) -> tuple[str, list[AddAction]]:
    """Write data files with Spark that readers do not see before the commit; return their folder and the actions."""
    folder = f"{WRITE}={uuid4().hex}"
    types = {name: df.schema[name].dataType for name in partition_by}
    counted = CountedRows(df)
    with settings(df.sparkSession, AS_DELTA_READS):
        rows: Any = with_partition_texts(counted.df, partition_by).write
        if partition_by:
            rows = rows.partitionBy(*partition_by)
        rows.parquet(f"{path}/{folder}")
    files, base = filesystem(path)
    try:
        actions = add_actions(files, base, folder, types)
        counted.check(sum(json.loads(action.stats)["numRecords"] for action in actions), len(actions), path)
    except (TableConflict, MissingRows):
        _delete(path, folder)
        raise
    return folder, actions


def _create(
    df: DataFrame,
    path: str,
    actions: list[AddAction],
    partition_by: tuple[str, ...],
    storage_options: dict[str, str] | None,
) -> bool:
    """Create a table with data files; return False if another driver has created it."""
    from deltalake.exceptions import CommitFailedError, DeltaError
    from deltalake.transaction import create_table_with_add_actions

    try:
        create_table_with_add_actions(
            table_uri(path), delta_schema(df), actions, "error", list(partition_by),
            configuration=_PROPERTIES, storage_options=storage_options,
        )  # fmt: skip
    except (CommitFailedError, DeltaError):
        if open_table(path, storage_options) is None:
            raise
        return False
    return True


def _commit(
    df: DataFrame,
    table: DeltaTable,
    actions: list[AddAction],
    mode: str,
    partition_by: tuple[str, ...],
    transactions: list[Any],
    writer: Writer | None = None,
) -> bool:
    """Commit data files; return False if another commit came first. The table is then read again."""
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import CommitProperties

    said = None if writer is None else {WRITER: writer.name}
    properties = CommitProperties(custom_metadata=said, app_transactions=transactions)
    try:
        table.create_write_transaction(
            [*actions], mode, delta_schema(df), list(partition_by), commit_properties=properties
        )
    except CommitFailedError as error:
        _check_overtaken(table, error)
        return False
    return True


def _check_overtaken(table: DeltaTable, error: Exception) -> None:
    """Read a table again after a commit failed; raise `TableConflict` if another commit was not the reason."""
    before = table.version()
    table.update_incremental()
    if table.version() == before:
        raise TableConflict(f"cannot commit to {table.table_uri}: {error}") from None


def _delete(path: str, folder: str) -> None:
    """Delete the files of a write that was not committed. Errors are ignored: such files are not part of the table."""
    files, base = filesystem(path)
    with suppress(OSError):
        files.delete_dir(f"{base}/{folder}")


def _read(spark: SparkSession, path: str, table: DeltaTable) -> DataFrame:
    """Read the files in the log of a table."""
    _check_readable(table, path)
    schema = spark_schema(table)
    ours: list[str] = []
    others: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for file, values in files_of(table):
        if _OURS.match(file):
            ours.append(file)
        else:
            others.setdefault(tuple(values.items()), []).append(file)
    parts = [_read_ours(spark, path, ours, table)] if ours else []
    parts += [_read_others(spark, path, names, table, dict(pairs)) for pairs, names in others.items()]
    if not parts:
        return spark.createDataFrame([], schema)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    return whole


def _check_readable(table: DeltaTable, path: str) -> None:
    features = set(table.protocol().reader_features or ())
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    if mapped or ("deletionVectors" in features and _has_deletion_vectors(table)):
        raise TableConflict(f"cannot read {path} without Delta's JAR: it has mapped columns or deletion vectors")


def _has_deletion_vectors(table: DeltaTable) -> bool:
    return any(True for batch in table.deletion_vectors() for _ in range(batch.num_rows))


def _read_ours(spark: SparkSession, path: str, names: list[str], table: DeltaTable) -> DataFrame:
    """Read files whose folders name the partition values, so that Spark skips partitions."""
    schema, columns = spark_schema(table), table.metadata().partition_columns
    fields = [field for field in schema if field.name not in columns]
    folders = [T.StructField(name, T.StringType()) for name in (WRITE, *columns)]
    reader = spark.read.schema(T.StructType([*fields, *folders])).option("basePath", path)
    read = reader.parquet(*(literal(f"{path}/{name}") for name in names))
    return read.select(
        *(partition_column(f.name, f.dataType) if f.name in columns else read[quoted_name(f.name)] for f in schema)
    )


def _read_others(
    spark: SparkSession, path: str, names: list[str], table: DeltaTable, values: dict[str, Any]
) -> DataFrame:
    """Read files of other writers in one partition; the log has the partition's values."""
    schema, columns = spark_schema(table), table.metadata().partition_columns
    reader = spark.read.schema(T.StructType([field for field in schema if field.name not in columns]))
    read = reader.option("recursiveFileLookup", "true").parquet(*(literal(f"{path}/{name}") for name in names))
    return read.select(
        *(
            F.lit(values[f.name]).cast(f.dataType).alias(f.name) if f.name in columns else read[quoted_name(f.name)]
            for f in schema
        )
    )
