"""Delta tables without Delta's JAR: Spark writes the data files, and the `deltalake` package commits them."""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import uuid4

from spark_ext._filesystem import filesystem, literal, resolve
from spark_ext._settings import settings
from spark_ext.columns._expressions import quoted_name
from spark_ext.tables._delta_files import add_actions
from spark_ext.tables._delta_schema import (
    WRITE,
    check_fits,
    check_partitions,
    delta_schema,
    partition_column,
    spark_schema,
    with_partition_texts,
)
from spark_ext.tables._parquet import run_without_writing
from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables._writers import Writer

_LOWEST: Final = (1, 6)
"""Earlier versions leave out the number of the batch in every commit but the first, and report no error."""
_ATTEMPTS: Final = 10
_STREAMED: Final = "writer"
"""The key of the writer's name in the history of a table."""
_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_PROPERTIES: Final = {"delta.checkpointInterval": "10"}
"""A reader lists the log from the last checkpoint, so it reads at most ten commits."""
_AS_DELTA_READS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 lacks statistics
    "spark.sql.parquet.writeLegacyFormat": "false",
}
_OURS: Final = re.compile(rf"{WRITE}=[0-9a-f]{{32}}/")


def open_table(path: str, storage_options: dict[str, str] | None = None) -> DeltaTable | None:
    """Return a Delta table, or None if it is missing.

    Raises
    ------
    ImportError
        if the package `deltalake` is missing.
    ValueError
        if the path has a '%' and two hex digits, which the package would decode, or if its scheme is not supported.
    """
    _check_installed()
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return DeltaTable(_uri(path), storage_options=storage_options)
    except TableNotFoundError:
        return None


def _check_installed() -> None:
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


def _uri(path: str) -> str:
    import pyarrow.fs as pafs

    files, inner = filesystem(path)
    uri = inner if isinstance(files, pafs.LocalFileSystem) else resolve(path)
    if unquote(uri) != uri:
        raise ValueError(f"the path of a Delta table must not contain '%' and two hex digits, got {path!r}")
    return uri


def write_batch(
    batch_df: DataFrame,
    batch_id: int,
    path: str,
    writer: Writer,
    partition_by: tuple[str, ...] = (),
    storage_options: dict[str, str] | None = None,
) -> bool:
    """Write a micro-batch and commit it with its number; return False if it or a later batch was committed before."""
    from deltalake.transaction import Transaction

    table = open_table(path, storage_options)
    _check(batch_df, table, partition_by, path)
    transactions = [Transaction(writer.name, batch_id)]
    if writer.chosen and writer.query is not None:
        mark = Transaction(f"{writer.name}#query", int.from_bytes(sha256(writer.query.encode()).digest()[:7], "big"))
        transactions.append(mark)
        if table is not None:
            before = table.transaction_version(mark.app_id)
            if before is not None and before != mark.version:
                raise TableConflict(
                    f"cannot write to {path}: its writer {writer.name!r} is another query than {writer.query}. Restore "
                    "that query's checkpoint, or choose another app_id"
                )
    if table is not None and _committed(table, writer, batch_id):
        run_without_writing(batch_df)
        return False
    if _has_delta(batch_df.sparkSession):
        return _write_with_spark(batch_df, batch_id, path, writer, partition_by, storage_options)
    folder, actions = _write_files(batch_df, path, partition_by)
    while table is None:
        # Drivers that create one table at once can all succeed: each makes a commit. So the rows are not part of it.
        _create(batch_df, path, [], partition_by, storage_options)
        table = open_table(path, storage_options)
        _check(batch_df, table, partition_by, path)
    for _ in range(_ATTEMPTS):
        if _committed(table, writer, batch_id):
            if _holds(table, folder):
                return True  # the commit succeeded, and only its answer was lost
            _delete(path, folder)
            return False
        if _commit(batch_df, table, actions, "append", partition_by, transactions, writer):
            return True
        table.update_incremental()
        _check(batch_df, table, partition_by, path)
    raise OSError(f"cannot commit batch {batch_id} to {path}: {_ATTEMPTS} commits of others came first")


def is_written(batch_id: int, path: str, writer: Writer) -> bool:
    """Check whether `write_batch` has committed a micro-batch."""
    table = open_table(path)
    return table is not None and _committed(table, writer, batch_id)


def check_columns(df: DataFrame) -> None:
    """Check that a Delta table has a type for every column, and that the package is installed."""
    _check_installed()
    delta_schema(df)


def is_streamed(path: str, storage_options: dict[str, str] | None = None) -> bool:
    """Check whether `write_batch` has written to a table."""
    table = open_table(path, storage_options)
    return table is not None and any(_STREAMED in commit for commit in table.history())


def write_rows(
    df: DataFrame,
    path: str,
    mode: str,
    partition_by: tuple[str, ...] = (),
    storage_options: dict[str, str] | None = None,
) -> None:
    """Write the rows of a batch run as one commit; ``mode`` is ``error``, ``append`` or ``overwrite``.

    Raises
    ------
    FileExistsError
        if a table exists and the mode is ``error``.
    """
    table = open_table(path, storage_options)
    if mode == "error" and table is not None:
        raise FileExistsError(f"there is a Delta table at {path}")
    _check(
        df, None if mode == "overwrite" and table is not None else table, partition_by, path, replaces=table is not None
    )
    folder, actions = _write_files(df, path, partition_by)
    if table is None:
        done = _create(df, path, actions, partition_by, storage_options)
    else:
        done = _commit(df, table, actions, mode, partition_by, [])
    if not done:
        _delete(path, folder)
        raise OSError(f"cannot commit to {path}: another commit came first")


def _check(
    df: DataFrame, table: DeltaTable | None, partition_by: tuple[str, ...], path: str, *, replaces: bool = False
) -> None:
    delta_schema(df)
    check_partitions(df, partition_by, path)
    if table is not None:
        check_fits(df, table, partition_by, path)
    elif not replaces:
        _check_empty(path)


def _check_empty(path: str) -> None:
    """Check that the folder of a new table does not hold another table."""
    import pyarrow.fs as pafs

    files, base = filesystem(path)
    for info in files.get_file_info(pafs.FileSelector(base, allow_not_found=True)):
        if not info.base_name.startswith(("_delta_log", "_temporary", ".", f"{WRITE}=")):
            raise TableConflict(
                f"cannot create a Delta table at {path}: the folder holds {info.base_name}, which is not part of one. "
                "Choose another folder"
            )


def _committed(table: DeltaTable, writer: Writer, batch_id: int) -> bool:
    last = table.transaction_version(writer.name)
    return last is not None and last >= batch_id


def _holds(table: DeltaTable, folder: str) -> bool:
    return any(file["path"].startswith(f"{folder}/") for file in _files_of(table))


def _files_of(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the data files of a table, each with its ``path`` in the table's folder and its ``partition`` values."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    return [{**row, "path": unquote(row["path"])} for row in rows]


def _write_files(df: DataFrame, path: str, partition_by: tuple[str, ...]) -> tuple[str, list[AddAction]]:
    """Write data files with Spark that readers do not see before the commit; return their folder and the actions."""
    folder = f"{WRITE}={uuid4().hex}"
    types = {name: df.schema[name].dataType for name in partition_by}
    with settings(df.sparkSession, _AS_DELTA_READS):
        rows: Any = with_partition_texts(df, partition_by).write
        if partition_by:
            rows = rows.partitionBy(*partition_by)
        rows.parquet(f"{path}/{folder}")
    files, base = filesystem(path)
    return folder, add_actions(files, base, folder, types)


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
            _uri(path), delta_schema(df), actions, "error", list(partition_by),
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
    """Commit data files; return False if another commit came first, and the table must be read again."""
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import CommitProperties

    said = None if writer is None else {_STREAMED: writer.name}
    properties = CommitProperties(custom_metadata=said, app_transactions=transactions)
    try:
        table.create_write_transaction(
            [*actions], mode, delta_schema(df), list(partition_by), commit_properties=properties
        )
    except CommitFailedError:
        return False
    return True


def _delete(path: str, folder: str) -> None:
    """Delete the files of a write that was not committed. Errors are ignored: such files are not part of the table."""
    files, base = filesystem(path)
    with suppress(OSError):
        files.delete_dir(f"{base}/{folder}")


def _has_delta(spark: SparkSession) -> bool:
    """Check whether the session has Delta's JAR."""
    return _EXTENSION in str(spark.conf.get("spark.sql.extensions", ""))


def _write_with_spark(
    batch_df: DataFrame,
    batch_id: int,
    path: str,
    writer: Writer,
    partition_by: tuple[str, ...],
    storage_options: dict[str, str] | None,
) -> bool:
    """Write with Delta's own writer, which skips a batch whose number is in its log."""
    rows: Any = batch_df.write.format("delta").mode("append")
    if partition_by:
        rows = rows.partitionBy(*partition_by)
    rows.option("txnAppId", writer.name).option("txnVersion", batch_id).save(path)
    table = open_table(path, storage_options)
    if table is None or not _committed(table, writer, batch_id):
        raise OSError(f"cannot find batch {batch_id} in {path}, which Delta's writer has written")
    return True


def read_files(spark: SparkSession, path: str, storage_options: dict[str, str] | None = None) -> DataFrame:
    """Read a Delta table on Spark, with Delta's JAR if the session has it, otherwise by the files in the log."""
    if _has_delta(spark):
        with_jar: DataFrame = spark.read.format("delta").load(path)
        return with_jar
    table = open_table(path, storage_options)
    if table is None:
        raise FileNotFoundError(f"cannot find a Delta table at {path}")
    _check_readable(table, path)
    schema = spark_schema(table)
    ours: list[str] = []
    others: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for file in _files_of(table):
        if _OURS.match(file["path"]):
            ours.append(file["path"])
        else:
            others.setdefault(tuple((file.get("partition") or {}).items()), []).append(file["path"])
    parts = [_read_ours(spark, path, ours, table)] if ours else []
    parts += [_read_others(spark, path, names, table, dict(values)) for values, names in others.items()]
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
    from pyspark.sql.types import StringType, StructField, StructType

    schema, columns = spark_schema(table), table.metadata().partition_columns
    fields = [field for field in schema if field.name not in columns]
    folders = [StructField(name, StringType()) for name in (WRITE, *columns)]
    reader = spark.read.schema(StructType([*fields, *folders])).option("basePath", path)
    read = reader.parquet(*(literal(f"{path}/{name}") for name in names))
    return read.select(
        *(partition_column(f.name, f.dataType) if f.name in columns else read[quoted_name(f.name)] for f in schema)
    )


def _read_others(
    spark: SparkSession, path: str, names: list[str], table: DeltaTable, values: dict[str, Any]
) -> DataFrame:
    """Read files of other writers in one partition; the log has the partition's values."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    schema, columns = spark_schema(table), table.metadata().partition_columns
    reader = spark.read.schema(StructType([field for field in schema if field.name not in columns]))
    read = reader.option("recursiveFileLookup", "true").parquet(*(literal(f"{path}/{name}") for name in names))
    return read.select(
        *(
            F.lit(values[f.name]).cast(f.dataType).alias(f.name) if f.name in columns else read[quoted_name(f.name)]
            for f in schema
        )
    )
