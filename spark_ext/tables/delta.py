"""Delta as a table format: any number of writers and readers, and one commit per batch.

If the session has Delta's catalog, Delta's own writer commits, with ``txnAppId`` and ``txnVersion``. Without it, Spark
writes the data files, and the package `deltalake` of the driver commits them; a table then has columns and partitions,
and no other feature. `deltalake` reads the log on both ways, so each way finds the batches of the other one.

The log keeps the number of a writer's last batch. Spark replays no other batch, so a lower number is a conflict. The
commit says which query wrote the batch, and what the batch has read. So another query with the same name, or another
batch with the same number, does not count as written.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import unquote
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid.shared.retrying import retry
from msgid.shared.validate import to_install
from spark_ext._filesystem import filesystem, literal, resolve
from spark_ext._private import cause_of, conditions_of, words_of
from spark_ext._settings import settings
from spark_ext.columns.column_types import quoted_name
from spark_ext.tables._column_rules import (
    EXACT,
    NO_VALUE,
    check_columns,
    check_fits,
    check_partitions,
    evolved,
    lacks_type,
    plain,
    united,
    widened,
)
from spark_ext.tables._written_files import entries, write_files
from spark_ext.tables.parquet_uuids import with_uuids
from spark_ext.tables.table_formats import TableFormat, TableName
from spark_ext.tables.writers import TableConflict, check_batch, check_query, check_read

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.fs as pafs
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables.writers import Writer

_T = TypeVar("_T")
_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_NEEDED: Final = f"a Delta table needs deltalake 1.6 or later: {to_install('delta')}"
"""Earlier versions leave out the number of the batch in every commit but the first, and report no error."""
_PLAIN: Final = (
    T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType, T.BooleanType,
    T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_PROPERTIES: Final = {"delta.checkpointInterval": "10"}
"""A reader lists the log from the last checkpoint, so it reads at most ten commits."""
_FORGETS: Final = "delta.setTransactionRetentionDuration"
WRITE: Final = "msgid_write"
"""Each write has a folder ``msgid_write=UUID`` in the table, so that two writes never touch the same files."""
_ATTEMPTS: Final = 10
_COMMITS: Final = (16, 1000)
"""Numbers of commits among which the last one of a writer is searched."""
_OTHERS_CAME_FIRST: Final = (
    "DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)  # fmt: skip
_NO_TYPE: Final = "DELTA_UNSUPPORTED_DATA_TYPES"
"""Its words advise a setting that creates tables which Delta does not support, and not a cast."""


class _LookAgain(Exception):
    """The table must be read again."""


class _Delta(TableFormat):
    name = "delta"
    has_names = True

    def is_table(self, path: str) -> bool:
        files, base = filesystem(path)
        return bool(files.get_file_info(f"{base}/_delta_log").type.name == "Directory")

    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        table = _Table(df.sparkSession, path, storage_options)
        said = {"writer": writer.name, "query": writer.query, "read": writer.read, "write": uuid4().hex}
        log = table.open()
        table.check(df, log, partition_by)
        if log is not None and table.find(log, writer, batch_id) is not None:
            return False
        actions = [] if table.has_jar else table.write_files(df, partition_by)

        def commit() -> bool:
            log = table.open()
            if log is None:
                # Drivers that create one table at once can all succeed: each makes a commit. So it does not have rows.
                table.create(df, [], partition_by, "ignore")
                raise _LookAgain
            last = table.find(log, writer, batch_id)
            if last is not None:
                return bool(last.get("write") == said["write"])
            table.check(df, log, partition_by)
            if table.has_jar:
                # Delta's own writer skips a batch that another driver has written, without an error.
                transaction = {"txnAppId": writer.name, "txnVersion": str(batch_id), "userMetadata": json.dumps(said)}
                table.save(df, "append", (), **transaction)
                commits = table.existing().history(_COMMITS[0])
                is_written = any(_said_in(commit).get("write") == said["write"] for commit in commits)
            else:
                is_written = table.commit(df, log, actions, partition_by, said, batch_id)
            if not is_written:
                raise _LookAgain
            return True

        return _looking_again(commit, f"cannot commit batch {batch_id} to {path}")

    def evolve(self, df: DataFrame, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        table = _Table(df.sparkSession, path, storage_options)
        return _looking_again(lambda: table.evolve(df), f"cannot add columns to {path}")

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        if isinstance(path, TableName):
            return with_uuids(spark.table(path))
        if has_catalog(spark):
            return with_uuids(spark.read.format("delta").load(path))
        return with_uuids(_read(spark, path, _Table(spark, path, storage_options).existing()))

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        table = _Table(df.sparkSession, path)
        log = table.open()
        if mode == "error" and log is not None:
            raise FileExistsError(f"there is a Delta table at {path}")
        table.check(df, log, partition_by, replaces=True)
        if not table.has_jar:
            written = table.write_files(df, partition_by)
            table.create(df, written, partition_by, "error" if mode == "error" else "overwrite")
            return
        try:
            table.save(df, mode, partition_by, **{"overwriteSchema": "true"} if log is not None else {})
        except _LookAgain:
            raise OSError(f"cannot commit to {path}: another commit came first") from None


FORMAT: Final = _Delta()
FORMATS: Final = (FORMAT,)


def _looking_again(work: Callable[[], _T], failure: str) -> _T:
    """Repeat work on a table while other commits come first; raise OSError if they always do."""
    try:
        return retry(work, lambda error: isinstance(error, _LookAgain), [0] * (_ATTEMPTS - 1))
    except _LookAgain:
        raise OSError(f"{failure}: other commits came first") from None


def has_catalog(spark: SparkSession) -> bool:
    """Return whether a session has Delta's JAR: its extension, and its catalog."""
    is_extended = _EXTENSION in str(spark.conf.get("spark.sql.extensions", ""))
    return is_extended and spark.conf.get("spark.sql.catalog.spark_catalog", None) == _CATALOG


class _Table:
    """A table with a path, or with a name in the session's catalog."""

    def __init__(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None = None) -> None:
        self._spark, self._path, self._storage_options = spark, path, storage_options
        self._is_named: Final = isinstance(path, TableName)
        self.has_jar: Final = has_catalog(spark)

    def open(self) -> DeltaTable | None:
        """Return the log of the table as it is now; None if the table is missing.

        Raises
        ------
        ImportError
            if the package `deltalake` is missing or too old.
        ValueError
            if the path has a '%' and two hex digits, which the package would decode, or if its scheme is not supported.
        """
        try:
            import deltalake
        except ImportError:
            raise ImportError(_NEEDED, name="deltalake") from None
        if tuple(int(part) for part in deltalake.__version__.split(".")[:2]) < (1, 6):
            raise ImportError(f"{_NEEDED}, got {deltalake.__version__}", name="deltalake")
        folder = self._location() if self._is_named else self._path
        if folder is None:
            return None
        try:
            return deltalake.DeltaTable(_uri(folder), storage_options=self._storage_options)
        except deltalake.exceptions.TableNotFoundError:
            return None

    def existing(self) -> DeltaTable:
        """Return the log of the table, or raise FileNotFoundError."""
        log = self.open()
        if log is None:
            raise FileNotFoundError(f"cannot find a Delta table at {self._path}")
        return log

    def _location(self) -> str | None:
        """Return the folder of a table in the session's catalog; None if it is missing."""
        name, spark = self._path, self._spark
        if not self.has_jar:
            raise ValueError(
                f"`table` must be None without Delta's catalog, got {str(name)!r}: set spark.sql.extensions to "
                f"{_EXTENSION} and spark.sql.catalog.spark_catalog to {_CATALOG}, or pass the table's path"
            )
        try:
            if not spark.catalog.tableExists(name):
                return None
            format, location = spark.sql(f"DESCRIBE DETAIL {name}").select("format", "location").collect()[0]
        except AnalysisException as error:  # a view, or text that is not a name
            raise TableConflict(f"cannot use {name} as a Delta table: {cause_of(error)}") from None
        if format != FORMAT.name:
            raise TableConflict(f"cannot use {name} as a Delta table: its format is {format!r}")
        return str(location)

    def find(self, log: DeltaTable, writer: Writer, batch_id: int) -> dict[str, Any] | None:
        """Return what the commit of a batch says of itself; None if the batch is not in the table.

        Raises
        ------
        TableConflict
            if the writer has written a later batch, or if another query has written this one, or other rows.
        """
        last = log.transaction_version(writer.name)
        if last is None or batch_id > last:
            return None
        check_batch(writer, self._path, batch_id, last)
        commits = (_said_in(commit) for count in _COMMITS for commit in log.history(count))
        said = next((said for said in commits if said.get("writer") == writer.name), {})
        check_query(writer, self._path, said.get("query"))
        check_read(writer, self._path, batch_id, said.get("read"))
        return said

    def check(
        self, df: DataFrame, log: DeltaTable | None, partition_by: tuple[str, ...], *, replaces: bool = False
    ) -> None:
        """Check that rows may be written to the table; Delta's own writer checks the rest.

        Raises
        ------
        TableConflict
            if not.
        """
        check_columns(df.schema)
        if not self.has_jar:
            _schema(df)
            check_partitions(df, partition_by)
        if WRITE in map(str.lower, df.columns):
            raise TableConflict(f"cannot write a column named {WRITE!r}: the table's folders have that name")
        if log is None and not self._is_named:
            self._check_free()
        if log is None or replaces:
            return
        metadata, columns = log.metadata(), _spark_schema(log)
        parts = tuple(metadata.partition_columns)
        if partition_by != parts:
            raise TableConflict(
                f"cannot write to {self._path}: partition_by must be the table's {parts}, got {partition_by}"
            )
        check_fits(df.schema, columns, self._path)
        if _FORGETS in metadata.configuration:
            raise TableConflict(f"cannot write to {self._path}: the table forgets batches, because it has {_FORGETS}")
        features = [key for key in metadata.configuration if key.startswith("delta.constraints.")]
        features += [f"NOT NULL of {field.name!r}" for field in columns if not field.nullable]
        features += [f"{key} of {f.name!r}" for f in columns for key in f.metadata if key.startswith("delta.")]
        if features and not self.has_jar:
            raise TableConflict(f"cannot write to {self._path}: it needs Delta's JAR, because it has {features[0]}")

    def _check_free(self) -> None:
        """Check that the folder of a new table does not hold another table."""
        files, base = filesystem(self._path)
        for info in entries(files, base):
            if not info.base_name.startswith(("_delta_log", "_temporary", ".", f"{WRITE}=")):
                raise TableConflict(
                    f"cannot create a Delta table at {self._path}: the folder holds {info.base_name}, which is not "
                    "part of one. Choose another folder"
                )

    def create(
        self,
        df: DataFrame,
        actions: list[AddAction],
        partition_by: tuple[str, ...],
        mode: Literal["error", "overwrite", "ignore"],
    ) -> None:
        """Create the table with data files, or with Delta's own writer without rows."""
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import create_table_with_add_actions

        if self.has_jar:
            self.save(self._spark.createDataFrame([], df.schema), "append", partition_by)
            return
        try:
            create_table_with_add_actions(
                _uri(self._path), _delta_schema(df), actions, mode, list(partition_by),
                configuration=_PROPERTIES, storage_options=self._storage_options,
            )  # fmt: skip
        except DeltaError:
            if mode != "ignore" or self.open() is None:  # otherwise another driver was first
                raise

    def save(self, df: DataFrame, mode: str, partition_by: tuple[str, ...], **options: str) -> None:
        """Write rows with Delta's own writer.

        Raises
        ------
        _LookAgain
            if another commit came first.
        TableConflict
            if Delta refuses the rows.
        """
        rows: Any = df.write.format("delta").mode(mode).options(**options)
        if partition_by:
            rows = rows.partitionBy(*partition_by)
        try:
            with settings(self._spark, EXACT):
                (rows.saveAsTable if self._is_named else rows.save)(self._path)
        except Exception as error:
            conditions = sorted(conditions_of(error))
            if any(condition.startswith(_OTHERS_CAME_FIRST) for condition in conditions):
                raise _LookAgain from None
            if _NO_TYPE in conditions:
                _schema(df)
            for condition in conditions:
                if condition.startswith("DELTA_"):
                    raise TableConflict(f"cannot write to {self._path}: {words_of(error, condition)}") from None
            raise

    def evolve(self, df: DataFrame) -> DataFrame:
        """Add the columns that the table lacks, and widen types; return the rows with the types of the table.

        Raises
        ------
        _LookAgain
            if another commit came first.
        TableConflict
            if Delta refuses the columns.
        """
        log = self.open()
        if log is None:
            return df
        columns = _spark_schema(log)
        wanted = evolved(columns, df.schema)
        if wanted == united(columns):
            return widened(df, columns)
        if not self.has_jar:
            raise TableConflict(f"cannot add columns to {self._path}, or widen them: it needs Delta's JAR")
        rows = self._spark.createDataFrame([], T.StructType([wanted[name] for name in df.columns]))
        self.save(rows, "append", (), mergeSchema="true")
        return widened(df, _spark_schema(self.existing()))

    def write_files(self, df: DataFrame, partition_by: tuple[str, ...]) -> list[AddAction]:
        """Write data files that readers do not see before the commit; VACUUM deletes those that are not committed."""
        written = write_files(df, self._path, f"{WRITE}={uuid4().hex}", partition_by)
        base = filesystem(self._path)[1]
        return [_add_action(base, info, rows) for info, rows in written]

    def commit(
        self,
        df: DataFrame,
        log: DeltaTable,
        actions: list[AddAction],
        partition_by: tuple[str, ...],
        said: dict[str, Any],
        batch_id: int,
    ) -> bool:
        """Commit the data files of a batch; return False if another commit came first.

        Raises
        ------
        TableConflict
            if `deltalake` refuses the table.
        """
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import CommitProperties, Transaction

        properties = CommitProperties(
            custom_metadata={"userMetadata": json.dumps(said)},
            app_transactions=[Transaction(said["writer"], batch_id)],
        )
        before = log.version()
        try:
            log.create_write_transaction(
                [*actions], "append", _delta_schema(df), list(partition_by), commit_properties=properties
            )
        except CommitFailedError as error:
            log.update_incremental()
            if log.version() == before:
                raise TableConflict(f"cannot write to {self._path}: {error}") from None
            return False
        return True


def _uri(path: str) -> str:
    """Return the path of a table as `deltalake` takes it."""
    import pyarrow.fs as pafs

    files, inner = filesystem(path)
    uri = inner if isinstance(files, pafs.LocalFileSystem) else resolve(path)
    if unquote(uri) != uri:
        raise ValueError(f"the path of a Delta table must not contain '%' and two hex digits, got {path!r}")
    return uri


def _said_in(commit: dict[str, Any]) -> dict[str, Any]:
    """Return what a writer said in a commit; other programs have their own text there.

    Examples
    --------
    >>> _said_in({"operation": "WRITE", "userMetadata": '{"writer": "orders"}'})
    {'writer': 'orders'}
    >>> _said_in({"operation": "WRITE", "userMetadata": "7"}), _said_in({"userMetadata": "by hand"}), _said_in({})
    ({}, {}, {})
    """
    with suppress(ValueError):
        said = json.loads(commit.get("userMetadata") or "{}")
        return said if isinstance(said, dict) else {}
    return {}


def _schema(df: DataFrame) -> T.StructType:
    """Return the columns of a Delta table for a DataFrame's rows; every column may be NULL."""

    def checked(type: Any, path: tuple[str, ...]) -> Any:
        if type == T.StringType() or isinstance(type, _PLAIN):
            return type
        raise lacks_type(path, "a Delta table", type)

    schema: T.StructType = plain(df.schema, checked)
    return schema


def _delta_schema(df: DataFrame) -> Schema:
    from deltalake import Schema

    return Schema.from_json(json.dumps(_schema(df).jsonValue()))


def _spark_schema(table: DeltaTable) -> T.StructType:
    return T.StructType.fromJson(json.loads(table.schema().to_json()))


def _add_action(base: str, info: pafs.FileInfo, rows: int) -> AddAction:
    from deltalake.transaction import AddAction

    inner = info.path[len(base.rstrip("/")) + 1 :]
    pairs = [map(unquote, folder.split("=", 1)) for folder in inner.split("/")[1:-1]]
    values = {name: None if text == NO_VALUE else text for name, text in pairs}
    changed = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
    # The path is not encoded here: the package encodes it for the log.
    return AddAction(inner, info.size, values, changed, True, json.dumps({"numRecords": rows}))


def _read(spark: SparkSession, path: str, table: DeltaTable) -> DataFrame:
    """Read the files in the log of a table; the names of folders have the values of partitions."""
    metadata, schema = table.metadata(), _spark_schema(table)
    vectors = "deletionVectors" in (table.protocol().reader_features or ()) and any(
        batch.num_rows for batch in table.deletion_vectors()
    )
    if vectors or metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        raise TableConflict(f"cannot read {path} without Delta's JAR: it has mapped columns or deletion vectors")
    names, types = list(metadata.partition_columns), {field.name: field.dataType for field in schema}
    cells = [F.col(quoted_name(field.name)).cast(field.dataType).alias(field.name) for field in schema]
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in map(unquote, table.get_add_actions()["path"].to_pylist()):
        groups.setdefault(tuple(unquote(part.partition("=")[0]) for part in file.split("/")[:-1]), []).append(file)
    rows = spark.createDataFrame([], schema)
    for folders, files in groups.items():
        # Each file of ours is in a folder of its write. Spark would read a time in the session's zone.
        if list(folders) not in ([WRITE, *names], names) or any(types[name] == T.TimestampType() for name in names):
            raise TableConflict(f"cannot read {path} without Delta's JAR, because of the partition of {files[0]}")
        columns = [field for field in schema if field.name not in names]
        columns += [T.StructField(name, T.StringType()) for name in folders]
        reader = spark.read.schema(T.StructType(columns)).option("basePath", path)
        rows = rows.unionAll(reader.parquet(*(literal(f"{path}/{file}") for file in files)).select(*cells))
    return rows
