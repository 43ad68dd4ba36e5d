"""Iceberg as a table format: tables with names in a catalog of the session, any number of writers and readers.

Spark stages the rows of a batch in a branch of the table, which readers do not see. ``cherrypick_snapshot`` publishes
them in one commit, and refuses the ID of a batch that the table's history has. A property of the table keeps the number
of the last batch, because snapshots expire. No setting of the session and no property changes the writes of others.

The branch is dropped before the rows are published. So if a driver is paused until the snapshots of another driver,
with the same batch, have expired, the rows that it staged before have expired too, and it cannot publish them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid._retrying import retry
from spark_ext._private import cause_of, is_java_error, is_lost_commit
from spark_ext.columns._expressions import quoted_name
from spark_ext.tables import _iceberg_records as records
from spark_ext.tables._batches import check_fits, check_names, plain
from spark_ext.tables._writers import TableConflict
from spark_ext.tables.table_formats import TableFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from spark_ext.tables._writers import Writer

_PLAIN: Final = (
    T.BooleanType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType, T.BinaryType, T.DateType,
    T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_STAGING: Final = ("spark.wap.id", "spark.wap.branch")
"""Settings with which Spark stages a write for a later check, in tables with ``write.wap.enabled``."""
_BATCH_ID: Final = "snapshot-property.wap.id"
"""The option that names the ID of a batch in its snapshot, where ``cherrypick_snapshot`` looks for it."""
_DELAYS: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds between attempts to commit while others commit. Each attempt of Iceberg is four attempts of its own."""
_KEPT: Final = 16
"""Number of records of a writer that are removed in one commit when they are no longer needed."""


class _Found(NamedTuple):
    """The records of a writer's batch in a table."""

    recorded: list[records.Series]
    """All records of the writer, the last one first."""
    is_recorded: bool
    published: int | None
    """The staged snapshot with the rows of the batch, if it is published and not recorded yet."""

    @property
    def is_written(self) -> bool:
        return self.is_recorded or self.published is not None


class _Iceberg(TableFormat):
    name = "iceberg"
    has_names = True

    def is_table(self, path: str) -> bool:
        try:
            catalog = records.parts_of(path)[0]
        except ValueError:
            return False
        spark = SparkSession.getActiveSession()
        return spark is not None and _catalog_class(spark, catalog) is not None

    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        table = _Table(df.sparkSession, path, writes=True)
        rows = table.prepare(df, partition_by)
        table.claim(writer)
        found = table.find(writer, batch_id)
        if found.is_written:
            table.finish(found, writer, batch_id)
            return False
        try:
            staged = table.stage(rows, writer, batch_id)
        except Exception:
            if not table.is_written_now(writer, batch_id):  # by another driver, which has dropped the branch
                raise
            return False
        table.refresh()
        found = table.find(writer, batch_id)
        won = not found.is_written and table.publish(staged, writer, batch_id)
        table.finish(found, writer, batch_id)
        return won

    def is_written(self, batch_id: int, path: str, writer: Writer) -> bool:
        table = _Table(SparkSession.active(), path)
        return table.exists() and table.find(writer, batch_id).is_written

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        table = _Table(spark, path)
        if not table.exists():
            raise FileNotFoundError(f"cannot find an Iceberg table {path}")
        head = table.head()
        reader = spark.read if head == records.NO_SNAPSHOT else spark.read.option("versionAsOf", head)
        return reader.table(table.sql_name)

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        table = _Table(df.sparkSession, path, writes=True)
        if table.exists() and mode == "append":
            table.prepare(df, partition_by).writeTo(table.sql_name).append()
        else:
            table.create(_with_types(df, iceberg_schema(df)), partition_by, replaces=mode == "overwrite")


FORMAT: Final = _Iceberg()
FORMATS: Final = (FORMAT,)


class _Table:
    """A table in a catalog of a session. Statements in SQL reach it, so Spark Connect has it too."""

    def __init__(self, spark: SparkSession, name: str, *, writes: bool = False) -> None:
        self._spark, self._name, self._writes = spark, name, writes
        self.properties: dict[str, str] = {}
        """The properties of the table when `refresh` was called."""
        self._branches: list[str] = []
        """The branches of the table when rows were staged."""
        parts = records.parts_of(name)
        if _catalog_class(spark, parts[0]) is None:
            current = spark.catalog.currentCatalog()
            if _catalog_class(spark, current) is None:
                raise ValueError(
                    f"cannot use {name}: the session lacks a catalog {parts[0]!r} of Iceberg; set spark.sql.catalog."
                    f"{parts[0]} to org.apache.iceberg.spark.SparkCatalog, with the settings of the catalog"
                )
            parts = [current, *parts]
        if writes and _EXTENSIONS not in str(spark.conf.get("spark.sql.extensions", "")):
            raise ValueError(f"cannot write to {name}: the session lacks {_EXTENSIONS} in spark.sql.extensions")
        self._catalog: Final = records.quoted(parts[:1])
        self.sql_name: Final = records.quoted(parts)

    def exists(self) -> bool:
        """Return whether the catalog has the table, as it is now.

        Raises
        ------
        TableConflict
            if it is not an Iceberg table.
        ValueError
            if the catalog cannot be used, for example because Iceberg's JAR is missing.
        """
        try:
            found = bool(self._spark.catalog.tableExists(self.sql_name))
        except Exception as error:
            if not (isinstance(error, PySparkException) or is_java_error(error)):
                raise
            raise ValueError(f"cannot use {self._name}: {cause_of(error)}") from None
        if found:
            self.refresh()
        return found

    def refresh(self) -> None:
        """Read the table as it is now: a catalog of Iceberg keeps the table that it has loaded."""
        self._spark.sql(f"REFRESH TABLE {self.sql_name}")
        self.properties = {row[0]: row[1] for row in self._spark.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect()}
        if not self.properties.get("format", "").startswith("iceberg/"):
            raise TableConflict(f"cannot use {self._name}: it is not an Iceberg table")
        for key in _STAGING if self._writes and self.properties.get("write.wap.enabled") == "true" else ():
            if self._spark.conf.get(key, None) is not None:
                raise ValueError(f"cannot write to {self._name}: {key} is set, so Spark would stage the rows")

    def head(self) -> str:
        """Return the table's snapshot, or `NO_SNAPSHOT`."""
        return self.properties["current-snapshot-id"]

    def prepare(self, df: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
        """Return the rows as the table holds them; create the table if it is missing."""
        if not self.exists():
            with suppress(FileExistsError):  # another driver has created it
                self.create(self._spark.createDataFrame([], iceberg_schema(df)), partition_by)
            self.refresh()
        _check_partitions(df, partition_by, self._name)
        rows = self.fitting(df)
        if partition_by and (columns := self._partition_columns()) != partition_by:
            raise TableConflict(
                f"cannot write to {self._name}: partition_by must be the table's {columns}, got {partition_by}"
            )
        return rows

    def create(self, df: DataFrame, partition_by: tuple[str, ...], *, replaces: bool = False) -> None:
        """Create the table with rows.

        Raises
        ------
        FileExistsError
            if the table exists.
        TableConflict
            if the catalog cannot create it.
        """
        _check_partitions(df, partition_by, self._name)
        creation = df.writeTo(self.sql_name).using(FORMAT.name)
        if partition_by:
            creation = creation.partitionedBy(*(F.col(quoted_name(name)) for name in partition_by))
        try:
            if replaces:
                creation.createOrReplace()
            else:
                creation.create()
        except Exception as error:
            if not (isinstance(error, PySparkException) or is_java_error(error)):
                raise
            if not replaces and self.exists():
                raise FileExistsError(f"there is an Iceberg table {self._name}") from None
            raise TableConflict(f"cannot create {self._name}: {cause_of(error)}") from None

    def fitting(self, df: DataFrame) -> DataFrame:
        """Return the rows with all columns of the table, which are NULL where the rows lack them."""
        check_names(df.schema)
        columns = self._spark.table(self.sql_name).schema
        check_fits(plain(df.schema, _widened), columns, self._name)
        for field in columns:
            if field.name not in df.columns and not field.nullable:
                raise TableConflict(
                    f"cannot write to {self._name}: its column {field.name!r} is NOT NULL, and the rows lack it"
                )
        return _with_types(df, columns)

    def _partition_columns(self) -> tuple[str, ...]:
        """Return the columns and functions by which the table is partitioned."""
        rows = self._spark.sql(f"DESCRIBE TABLE {self.sql_name}").collect()
        return records.partitions_of([(row[0], row[1]) for row in rows])

    def claim(self, writer: Writer) -> None:
        """Record the query of a writer.

        The record is set before it is checked. So of two queries at once, at least one finds the record of the other.
        """
        records.check_queries(self.properties, writer, self._name)
        new = [key for key in records.query_keys(writer) if key not in self.properties]
        if new:
            self._set(new)
            self.refresh()
            try:
                records.check_queries(self.properties, writer, self._name)
            except TableConflict:
                self._unset(new)
                raise

    def find(self, writer: Writer, batch_id: int) -> _Found:
        """Return what the table has recorded of a batch.

        Raises
        ------
        TableConflict
            if that is no longer known.
        """
        records.check_queries(self.properties, writer, self._name)
        recorded = records.series_of(self.properties, writer)
        is_recorded = records.is_recorded(recorded, batch_id, writer, self._name)
        attempts = records.publishing_keys(self.properties, writer).values()
        bases = {snapshot for number, snapshot in attempts if number == batch_id}
        if is_recorded or not bases:
            return _Found(recorded, is_recorded, None)
        head = None if self.head() == records.NO_SNAPSHOT else int(self.head())
        is_known, published = records.publication(self._snapshots(), head, records.batch_of(writer, batch_id), bases)
        if not is_known:
            raise records.unknown_batch(recorded, writer, batch_id, self._name)
        return _Found(recorded, is_recorded, published)

    def is_written_now(self, writer: Writer, batch_id: int) -> bool:
        """Return whether a batch is written after an error."""
        self.refresh()
        return self.find(writer, batch_id).is_written

    def _refs(self) -> dict[str, int]:
        return {row[0]: row[1] for row in self._metadata("refs", "name", "snapshot_id")}

    def _snapshots(self) -> dict[int, records.Snapshot]:
        rows = self._metadata(
            "snapshots",
            "snapshot_id",
            "parent_id",
            "coalesce(summary['published-wap-id'], summary['wap.id'])",
            "CAST(summary['source-snapshot-id'] AS BIGINT)",
        )
        return {row[0]: records.Snapshot(row[1], row[2], row[3]) for row in rows}

    def _metadata(self, table: str, *columns: str) -> list[Any]:
        return self._spark.table(f"{self.sql_name}.{table}").selectExpr(*columns).collect()

    def stage(self, rows: DataFrame, writer: Writer, batch_id: int) -> int:
        """Write rows to the table in a snapshot that readers do not see; return the snapshot."""
        branch, base = records.branch_of(writer, batch_id, uuid4().hex), self.head()
        self._create_branch(branch, base)
        try:
            before = self._refs()[branch] if base == records.NO_SNAPSHOT else int(base)
            self._append(rows, branch, records.batch_of(writer, batch_id))
            refs = self._refs()
            if refs[branch] == before:
                raise OSError(f"cannot find the rows that Spark has written to the branch {branch} of {self._name}")
        finally:
            self._drop(branch)
        self._branches = list(refs)
        return refs[branch]

    def publish(self, staged: int, writer: Writer, batch_id: int) -> bool:
        """Add the rows of a staged snapshot to the table; return False if another driver has published the batch."""
        # The table was read after the rows were staged, so its snapshot does not expire before they are published.
        self._set([records.publishing_key(writer, batch_id, self.head())])

        def publish() -> bool:
            try:
                self._cherrypick(staged)
            except Exception:
                # The batch may be published all the same: by another driver, or the answer to this one was lost.
                self.refresh()
                found = self.find(writer, batch_id)
                if not found.is_written:
                    raise
                return found.published == staged
            return True

        return retry(publish, is_lost_commit, _DELAYS)

    def finish(self, found: _Found, writer: Writer, batch_id: int) -> None:
        """Record a batch that is in the table; remove old records, and the branches of recorded batches."""
        old = [records.key_of(one, writer) for one in found.recorded]
        if found.is_recorded:
            del old[0]
        else:
            self._set([records.key_of(records.extended(found.recorded, batch_id), writer)])
        last = max(batch_id, *(one.last for one in found.recorded), -1)
        old += [key for key, (number, _) in records.publishing_keys(self.properties, writer).items() if number <= last]
        if len(old) >= _KEPT:
            self._unset(old)
        for branch in self._branches:
            number = records.staged_batch(branch, writer)
            if number is not None and number <= last:
                self._drop(branch)

    def _create_branch(self, branch: str, base: str) -> None:
        version = "" if base == records.NO_SNAPSHOT else f" AS OF VERSION {base}"
        self._run(f"ALTER TABLE {self.sql_name} CREATE BRANCH IF NOT EXISTS `{branch}`{version}")

    def _append(self, rows: DataFrame, branch: str, id: str) -> None:
        # Not with the option "branch": Iceberg 1.11 ignores it in a write, and writes to the table itself.
        writer = rows.writeTo(f"{self.sql_name}.`branch_{branch}`").option(_BATCH_ID, id)
        retry(writer.append, is_lost_commit, _DELAYS)

    def _cherrypick(self, staged: int) -> None:
        arguments = f"table => '{self.sql_name}', snapshot_id => {staged}"
        self._spark.sql(f"CALL {self._catalog}.system.cherrypick_snapshot({arguments})")

    def _drop(self, branch: str) -> None:
        # Another driver may drop the branch between Iceberg's look for it and the commit, which then raises.
        def may_pass(error: Exception) -> bool:
            return is_lost_commit(error) or isinstance(error, IllegalArgumentException)

        self._run(f"ALTER TABLE {self.sql_name} DROP BRANCH IF EXISTS `{branch}`", may_pass)

    def _set(self, keys: list[str]) -> None:
        pairs = ", ".join(f"'{key}' = ''" for key in keys)
        self._run(f"ALTER TABLE {self.sql_name} SET TBLPROPERTIES ({pairs})")

    def _unset(self, keys: list[str]) -> None:
        names = ", ".join(f"'{key}'" for key in keys)
        self._run(f"ALTER TABLE {self.sql_name} UNSET TBLPROPERTIES IF EXISTS ({names})")

    def _run(self, statement: str, again: Callable[[Exception], bool] = is_lost_commit) -> None:
        retry(lambda: self._spark.sql(statement), again, _DELAYS)


def _catalog_class(spark: SparkSession, name: str) -> str | None:
    """Return the class of a catalog that may hold Iceberg tables; None if the session lacks it."""
    found = spark.conf.get(f"spark.sql.catalog.{name}", None)
    # Spark's own catalog holds Iceberg tables only if it is replaced by Iceberg's.
    return None if name == "spark_catalog" and "iceberg" not in str(found).lower() else found


def iceberg_schema(df: DataFrame) -> T.StructType:
    """Return the columns of an Iceberg table for a DataFrame's rows; every column may be NULL.

    Raises
    ------
    TableConflict
        if an Iceberg table lacks such a type, or two names differ only in case.
    """
    check_names(df.schema)
    schema: T.StructType = plain(df.schema, _iceberg_type)
    return schema


def _widened(type: Any, place: tuple[str, ...]) -> Any:
    """Return the type in which Iceberg holds values: its integers have at least 32 bits."""
    return T.IntegerType() if isinstance(type, (T.ByteType, T.ShortType)) else type


def _iceberg_type(type: Any, place: tuple[str, ...]) -> Any:
    type = _widened(type, place)
    if (isinstance(type, T.StringType) and type == T.StringType()) or isinstance(type, _PLAIN):
        return type
    raise TableConflict(
        f"cannot write column {'.'.join(place)!r} to an Iceberg table: it lacks the type {type.simpleString()}; cast "
        "it, for example to string"
    )


def _with_types(df: DataFrame, columns: T.StructType) -> DataFrame:
    """Return the rows with the columns of a table, in its order and with its types."""
    types = {field.name: plain(field.dataType) for field in df.schema}
    return df.select(
        *(
            F.col(quoted_name(name)).cast(type).alias(name)
            if types.get(name) != type and name in types
            else F.col(quoted_name(name))
            if name in types
            else F.lit(None).cast(type).alias(name)
            for name, type in ((field.name, plain(field.dataType)) for field in columns)
        )
    )


def _check_partitions(df: DataFrame, partition_by: tuple[str, ...], table: str) -> None:
    for name in partition_by:
        if name not in df.columns:
            raise TableConflict(f"partition_by must name columns of the rows for {table}, got {name!r}")
        if isinstance(df.schema[name].dataType, (T.ArrayType, T.MapType, T.StructType)):
            kind = df.schema[name].dataType.simpleString()
            raise TableConflict(f"partition_by must name columns of a plain type, got {name!r} of type {kind}")
