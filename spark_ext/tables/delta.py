"""Delta as a table format: any number of writers and readers, and one commit per change.

Delta's JAR is not needed: Spark writes the data files, and the package `deltalake` of the driver commits them.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, datetime, timedelta
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import uuid4

from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid._retrying import retry
from spark_ext._filesystem import filesystem, literal, resolve
from spark_ext._settings import settings
from spark_ext.columns._expressions import quoted_name
from spark_ext.tables._folder_values import NO_VALUE, bytes_of_folder, is_text, value_of_folder, with_folder_texts
from spark_ext.tables._row_counts import CountedRows, MissingRows
from spark_ext.tables._table_columns import check_fits, check_names, plain
from spark_ext.tables._writers import TableConflict
from spark_ext.tables.table_formats import MARKED, JudgedSegment, TableBusy, TableFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow.fs as pafs
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, Transaction
    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_ext.tables._writers import Writer

WRITE: Final = "msgid_write"
"""Each write has a folder ``msgid_write=UUID`` in the table, so that two writes never touch the same files."""
_PLAIN: Final = (
    T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType, T.BooleanType,
    T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_NO_PARTITION: Final = (
    T.FloatType, T.DoubleType, T.BinaryType, T.ArrayType, T.MapType, T.StructType,
)  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1)
_OURS: Final = re.compile(rf"{WRITE}=[0-9a-f]{{32}}/")
_LOWEST: Final = (1, 6)
"""Earlier versions leave out the number of the batch in every commit but the first, and report no error."""
_ATTEMPTS: Final = 10
_STREAMED: Final = "writer"
"""The key of the writer's name in the history of a table."""
_SOLE: Final = "#query"
"""The record of the one query that writes to a job's table; no name of a writer is empty."""
_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_PROPERTIES: Final = {"delta.checkpointInterval": "10"}
"""A reader lists the log from the last checkpoint, so it reads at most ten commits."""
_AS_DELTA_READS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 lacks statistics
    "spark.sql.parquet.writeLegacyFormat": "false",
}
_CLEANING_ATTEMPTS: Final = 5
_THREADS: Final = 8
_COLUMNS: Final = 32
"""Number of columns with statistics; other writers of Delta tables use the same number."""
_CHARACTERS: Final = 32
_LAST: Final = "\U0010ffff"


class _Overtaken(Exception):
    """Another commit came first, so the table must be read again."""


def _is_overtaken(error: Exception) -> bool:
    return isinstance(error, _Overtaken)


class _Delta(TableFormat):
    name = "delta"
    batches_share_segments = True

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
        from deltalake.transaction import Transaction

        table = open_table(path, storage_options)
        _check(df, table, partition_by, path)
        marks = _marks(writer)
        _check_marks(table, marks, writer, path)
        if table is not None and _committed(table, writer, batch_id, path):
            return False
        if _has_delta(df.sparkSession):
            return _write_with_spark(df, table, batch_id, path, writer, partition_by, storage_options)
        folder, actions = _write_files(df, path, partition_by)
        if table is None:
            # Drivers that create one table at once can all succeed: each makes a commit. So it does not have rows.
            _create(df, path, [], partition_by, storage_options)
            table = _existing(path, storage_options)
            _check(df, table, partition_by, path)

        def commit() -> bool:
            if _committed(table, writer, batch_id, path):
                if _holds(table, folder):
                    return True  # the commit succeeded, and only its answer was lost
                _delete(path, folder)
                return False
            _check_marks(table, marks, writer, path)
            transactions = [Transaction(writer.name, batch_id), *_series(table, writer, batch_id), *marks]
            if not _commit(df, table, actions, "append", partition_by, transactions, writer):
                _check(df, table, partition_by, path)
                raise _Overtaken
            return True

        try:
            return retry(commit, _is_overtaken, [0] * (_ATTEMPTS - 1))
        except _Overtaken:
            raise OSError(
                f"cannot commit batch {batch_id} to {path}: {_ATTEMPTS} commits of others came first"
            ) from None

    def is_written(self, batch_id: int, path: str, writer: Writer) -> bool:
        table = open_table(path)
        return table is not None and _committed(table, writer, batch_id, path)

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        if _has_delta(spark):
            with_jar: DataFrame = spark.read.format("delta").load(path)
            return with_jar
        return _read(spark, path, _existing(path, storage_options))

    def check_columns(self, df: DataFrame, path: str) -> None:
        _check_installed()
        delta_schema(df)

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        table = open_table(path)
        if mode == "error" and table is not None:
            raise FileExistsError(f"there is a Delta table at {path}")
        replaced = mode == "overwrite" and table is not None
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
        return table is not None and any(_STREAMED in commit for commit in table.history())

    def clean(
        self,
        spark: SparkSession,
        path: str,
        judge: Callable[[DataFrame], list[dict[str, Any]]],
        *,
        dry_run: bool,
        mark: bool,
        storage_options: dict[str, str] | None,
    ) -> list[JudgedSegment]:
        from deltalake.exceptions import CommitFailedError

        def judged() -> list[JudgedSegment]:
            table = _existing(path, storage_options)
            rows = judge(self.read(spark, path, storage_options))
            expired = [row for row in rows if row["expired"]]
            if expired and not dry_run:
                latest = _existing(path, storage_options)
                if latest.version() != table.version():
                    raise _Overtaken  # the version that was checked is unknown
                predicate = _predicate(expired)
                try:
                    if mark:
                        unmarked = f"({predicate}) AND (state IS NULL OR state <> {_literal(MARKED)})"
                        table.update(updates={"state": _literal(MARKED)}, predicate=unmarked)
                    else:
                        table.delete(predicate)
                except CommitFailedError as error:
                    _check_overtaken(table, error)
                    raise _Overtaken from None
            return [JudgedSegment(row) for row in rows]

        try:
            return retry(judged, _is_overtaken, [0] * (_CLEANING_ATTEMPTS - 1))
        except _Overtaken:
            raise TableBusy(f"{path} is being written to: {_CLEANING_ATTEMPTS} commits of others came first") from None


FORMAT: Final = _Delta()


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


def _existing(path: str, storage_options: dict[str, str] | None) -> DeltaTable:
    """Return a Delta table, or raise FileNotFoundError."""
    table = open_table(path, storage_options)
    if table is None:
        raise FileNotFoundError(f"cannot find a Delta table at {path}")
    return table


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


def _check(
    df: DataFrame, table: DeltaTable | None, partition_by: tuple[str, ...], path: str, *, replaces: bool = False
) -> None:
    delta_schema(df)
    check_partitions(df, partition_by, path)
    if table is not None:
        _check_table(df, table, partition_by, path)
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


def _committed(table: DeltaTable, writer: Writer, batch_id: int, path: str) -> bool:
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


def _marks(writer: Writer) -> list[Transaction]:
    """Return the records that name the query of a chosen writer name, and the one query of a job's table."""
    from deltalake.transaction import Transaction

    if writer.query is None:
        return []
    number = int.from_bytes(sha256(writer.query.encode()).digest()[:7], "big")
    names = [f"{writer.name}#query"] * writer.chosen + [_SOLE] * writer.sole
    return [Transaction(name, number) for name in names]


def _check_marks(table: DeltaTable | None, marks: list[Transaction], writer: Writer, path: str) -> None:
    """Check that a table does not have a record of another query."""
    if table is None:
        return
    for mark in marks:
        before = table.transaction_version(mark.app_id)
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


def _series(table: DeltaTable | None, writer: Writer, batch_id: int) -> list[Transaction]:
    """Return the record of a new series if a batch does not follow the last one."""
    from deltalake.transaction import Transaction

    last = None if table is None else table.transaction_version(writer.name)
    return [] if batch_id == (0 if last is None else last + 1) else [Transaction(_first(writer), batch_id)]


def _holds(table: DeltaTable, folder: str) -> bool:
    return any(file.startswith(f"{folder}/") for file, _ in _files_of(table))


def _files_of(table: DeltaTable) -> list[tuple[str, dict[str, Any]]]:
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


def _write_files(df: DataFrame, path: str, partition_by: tuple[str, ...]) -> tuple[str, list[AddAction]]:
    """Write data files with Spark that readers do not see before the commit; return their folder and the actions."""
    folder = f"{WRITE}={uuid4().hex}"
    types = {name: df.schema[name].dataType for name in partition_by}
    counted = CountedRows(df)
    with settings(df.sparkSession, _AS_DELTA_READS):
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
    """Commit data files; return False if another commit came first. The table is then read again."""
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import CommitProperties

    said = None if writer is None else {_STREAMED: writer.name}
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


def _has_delta(spark: SparkSession) -> bool:
    """Check whether the session has Delta's JAR."""
    return _EXTENSION in str(spark.conf.get("spark.sql.extensions", ""))


def _write_with_spark(
    batch_df: DataFrame,
    table: DeltaTable | None,
    batch_id: int,
    path: str,
    writer: Writer,
    partition_by: tuple[str, ...],
    storage_options: dict[str, str] | None,
) -> bool:
    """Write with Delta's own writer, which skips a batch that is not above the last one.

    It cannot write two records in one commit, so the record of a series has a commit without rows. Until the batch is
    written, the record only makes earlier batches unknown.
    """
    if _series(table, writer, batch_id):
        _save_with_spark(batch_df.limit(0), batch_id, path, _first(writer), partition_by)
    _save_with_spark(batch_df, batch_id, path, writer.name, partition_by)
    table = open_table(path, storage_options)
    if table is None or not _committed(table, writer, batch_id, path):
        raise OSError(f"cannot find batch {batch_id} in {path}, which Delta's writer has written")
    return True


def _save_with_spark(df: DataFrame, batch_id: int, path: str, app_id: str, partition_by: tuple[str, ...]) -> None:
    rows: Any = df.write.format("delta").mode("append")
    if partition_by:
        rows = rows.partitionBy(*partition_by)
    rows.option("txnAppId", app_id).option("txnVersion", batch_id).save(path)


def _read(spark: SparkSession, path: str, table: DeltaTable) -> DataFrame:
    """Read the files in the log of a table."""
    _check_readable(table, path)
    schema = spark_schema(table)
    ours: list[str] = []
    others: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for file, values in _files_of(table):
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


def delta_schema(df: DataFrame) -> Schema:
    """Return the schema of a Delta table for a DataFrame's rows; every column may be NULL.

    Raises
    ------
    TableConflict
        if a Delta table lacks such a type, or two names differ only in case.
    """
    from deltalake import Schema

    check_names(df.schema)
    for field in df.schema:
        if field.name.lower() == WRITE:
            raise TableConflict(f"cannot write a column named {field.name!r}: the table's folders have that name")
    return Schema.from_json(json.dumps(plain(df.schema, _delta_type).jsonValue()))


def _delta_type(type: Any, place: tuple[str, ...]) -> Any:
    if (isinstance(type, T.StringType) and type == T.StringType()) or isinstance(type, _PLAIN):
        return type
    raise TableConflict(
        f"cannot write column {'.'.join(place)!r} to a Delta table: it lacks the type {type.simpleString()}; cast it, "
        "for example to string"
    )


def spark_schema(table: DeltaTable) -> T.StructType:
    """Return the columns of a Delta table as a Spark schema."""
    schema: T.StructType = T.StructType.fromJson(json.loads(table.schema().to_json()))
    return schema


def check_partitions(df: DataFrame, partition_by: tuple[str, ...], path: str) -> None:
    """Check that the partition columns exist, and that their values can be written as text.

    Raises
    ------
    TableConflict
        if not.
    """
    for name in partition_by:
        if name not in df.columns:
            raise TableConflict(f"partition_by must name columns of the rows for {path}, got {name!r}")
        type = df.schema[name].dataType
        # deltalake reads and writes the decimal -0.25 as the text "0.-25".
        if isinstance(type, _NO_PARTITION) or (isinstance(type, T.DecimalType) and type.scale > 0):
            kind = type.simpleString()
            raise TableConflict(f"partition_by must name columns of a plain type, got {name!r} of type {kind}")
    if partition_by and len(partition_by) == len(df.columns):
        raise TableConflict("partition_by must leave at least one column, got all of them")


def _check_table(df: DataFrame, table: DeltaTable, partition_by: tuple[str, ...], path: str) -> None:
    """Check that rows may be appended to a table unchanged.

    Raises
    ------
    TableConflict
        if a column or its type differs, or the table has features that only a Delta engine supports.
    """
    metadata = table.metadata()
    if list(partition_by) != list(metadata.partition_columns):
        now = tuple(metadata.partition_columns)
        raise TableConflict(f"cannot write to {path}: partition_by must be the table's {now}, got {partition_by}")
    held = spark_schema(table)
    check_fits(df.schema, held, path)
    for name in (field.name for field in held if not field.nullable):
        raise TableConflict(
            f"cannot write to {path}: its column {name!r} is NOT NULL, which only a Delta engine checks"
        )
    mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    if mapped or any(name.startswith("delta.constraints.") for name in metadata.configuration):
        raise TableConflict(
            f"cannot write to {path}: it has constraints or mapped columns, which a Delta engine handles"
        )
    if any(key.startswith("delta.") for field in held for key in field.metadata):
        raise TableConflict(
            f"cannot write to {path}: it has generated columns or invariants, which a Delta engine handles"
        )


def with_partition_texts(df: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
    """Replace a timestamp by its microseconds, which do not depend on a time zone, and text as folders keep it."""
    df = with_folder_texts(df, partition_by)
    for name in partition_by:
        if isinstance(df.schema[name].dataType, T.TimestampType):
            df = df.withColumn(name, F.unix_micros(quoted_name(name)))
    return df


def partition_column(name: str, type: T.DataType) -> Column:
    """Return the values of a partition column, read as text, that `with_partition_texts` has written."""
    text = F.col(quoted_name(name))
    if isinstance(type, T.TimestampType):
        return F.timestamp_micros(text.cast("bigint")).alias(name)
    if is_text(type):
        return value_of_folder(text, type).alias(name)
    return text.cast(type).alias(name)


def partition_values(folders: list[str], types: dict[str, T.DataType]) -> dict[str, str | None]:
    """Return the partition values in the names of a file's folders, in the format of a Delta log.

    Raises
    ------
    TableConflict
        if a date or time is outside the years 1 to 9999: other readers of the table would fail. Also if text is not
        UTF-8, which a log cannot hold.

    Examples
    --------
    >>> partition_values(["at=1500000", "k=a%2Fb"], {"at": T.TimestampType(), "k": T.StringType()})
    {'at': '1970-01-01 00:00:01.500000', 'k': 'a/b'}
    """
    values: dict[str, str | None] = {}
    for folder in folders:
        name, _, text = folder.partition("=")
        name, value = unquote(name), None if text == NO_VALUE else unquote(text)
        try:
            if value is not None and isinstance(types[name], T.TimestampType):
                value = (_EPOCH + timedelta(microseconds=int(value))).isoformat(" ", "microseconds")
            elif value is not None and isinstance(types[name], (T.DateType, T.TimestampNTZType)):
                date.fromisoformat(value[:10])
            elif value is not None and is_text(types[name]):
                value = bytes_of_folder(value).decode()
                # `deltalake` compacts the files of this text and those of NULL to one partition, of either value.
                value = None if value == NO_VALUE else value
        except UnicodeDecodeError:
            raise TableConflict(f"cannot write the partition {unquote(folder)}: its text must be UTF-8") from None
        except (OverflowError, ValueError):
            raise TableConflict(
                f"cannot write the partition {unquote(folder)}: its date or time must be in the years 1 to 9999"
            ) from None
        values[name] = value
    return values


def add_actions(files: pafs.FileSystem, base: str, folder: str, types: dict[str, T.DataType]) -> list[AddAction]:
    """Return one action per data file in a write's folder; the footers are read in parallel.

    Parameters
    ----------
    files : pyarrow.fs.FileSystem
        the file system of the table.
    base : str
        the table's folder.
    folder : str
        the write's folder in it.
    types : dict of str to DataType
        the partition columns.
    """
    import pyarrow.fs as pafs

    found = [
        info
        for info in files.get_file_info(pafs.FileSelector(f"{base}/{folder}", recursive=True, allow_not_found=True))
        if info.type == pafs.FileType.File and info.base_name.endswith(".parquet") and info.base_name[0] not in "._"
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        made = list(pool.map(lambda info: _add_action(files, base, info, types), found))
    return [action for action in made if action is not None]


def _add_action(
    files: pafs.FileSystem, base: str, info: pafs.FileInfo, types: dict[str, T.DataType]
) -> AddAction | None:
    import pyarrow.parquet as pq
    from deltalake.transaction import AddAction

    with files.open_input_file(info.path) as file:
        footer = pq.ParquetFile(file).metadata
    if footer.num_rows == 0:
        return None
    inner = info.path[len(base.rstrip("/")) + 1 :]
    values = partition_values(inner.split("/")[1:-1], types)
    changed = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
    # The path is not encoded here: the package encodes it for the log.
    return AddAction(inner, info.size, values, changed, True, json.dumps(_statistics(footer)))


def _statistics(footer: Any) -> dict[str, Any]:
    """Return the number of rows and, per column, the least and greatest value and the number of NULLs."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for place in range(min(footer.num_columns, _COLUMNS)):
        column = footer.schema.column(place)
        if column.max_repetition_level or column.path != column.name:
            continue
        parts = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
        if any(part is None or part.null_count is None for part in parts):
            continue
        nulls[column.name] = sum(part.null_count for part in parts)
        valued = [part for part in parts if part.num_values]
        if not valued or not all(part.has_min_max for part in valued):
            continue
        try:
            low, high = min(part.min for part in valued), max(part.max for part in valued)
        except (OverflowError, ValueError):
            continue  # a date or time that Python cannot hold, or text that is not UTF-8
        low, high = _bound(low, last=False), _bound(high, last=True)
        if low is not None and high is not None:
            least[column.name], greatest[column.name] = low, high
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _bound(value: Any, *, last: bool) -> Any:
    """Return a bound as a JSON value, or None. A long text is cut; an upper bound gets a greater last character."""
    if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        if len(value) <= _CHARACTERS:
            return value
        return None if last and _LAST in value else value[:_CHARACTERS] + (_LAST if last else "")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat("T", "microseconds") + ("Z" if value.tzinfo else "")
    return value.isoformat() if isinstance(value, date) else None


def _predicate(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the condition that a row is in one of these segments; its depth is logarithmic in their number."""
    numbers: dict[tuple[Any, ...], list[int]] = {}
    names = [name for name in ("source", "topic", "partition") if name in rows[0]]
    for row in rows:
        numbers.setdefault(tuple(row[name] for name in names), []).append(int(row["segment"]))
    terms = [
        " AND ".join([*map(_equals, names, key), f"segment IN ({', '.join(map(str, found))})"])
        for key, found in numbers.items()
    ]
    while len(terms) > 1:
        pairs = [terms[place : place + 2] for place in range(0, len(terms), 2)]
        terms = [" OR ".join(f"({term})" for term in pair) for pair in pairs]
    return terms[0]


def _equals(name: str, value: Any) -> str:
    return f"{name} IS NULL" if value is None else f"{name} = {_literal(value)}"


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
