"""Iceberg as a table format: tables with names in a catalog of the session, any number of writers and readers.

Spark stages the rows of a batch in a branch of the table, which readers do not see. ``cherrypick_snapshot`` publishes
them in one commit, and refuses the ID of a batch that the table's history has. Properties of the table keep what its
snapshots forget when they expire. Their text stands in the key, because Spark hides values whose key looks like a
password:

- ``msgid.batch/WRITER/BATCH/QUERY`` is set after a batch is published: the last one of a writer counts.
- ``msgid.publishing/WRITER/BATCH/SNAPSHOT`` is set before, with the table's snapshot at that time. So a batch that was
  published, and not recorded because its process ended, is found.

Behind the query and the snapshot, each key has ``_`` and a digest of what the batch has read, if that is known.

The branch is dropped before the rows are published. So if a driver is paused until the snapshots of another driver,
with the same batch, have expired, the rows that it staged before have expired too, and it cannot publish them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid.shared.retrying import retry
from spark_ext._compat import type_named
from spark_ext._private import cause_of, is_java_error, is_lost_commit
from spark_ext._settings import settings
from spark_ext.columns.column_types import quoted_name
from spark_ext.tables._column_rules import check_columns, check_fits, evolved, lacks_type, plain, widened
from spark_ext.tables.table_formats import TableFormat
from spark_ext.tables.writers import TableConflict, check_batch, check_query, check_read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from spark_ext.tables.writers import Writer

_PART: Final = r"(?:\w+|`[^`'\"\\/\x00-\x1f\x7f]+`)"
_NAME: Final = re.compile(rf"(?:{_PART}\.)+(?!`?(?i:branch_|tag_|at_timestamp_|snapshot_id_|changelog)){_PART}")
"""Iceberg takes a last part that begins so for a version of the table that the other parts name."""
_STAGING: Final = ("spark.wap.id", "spark.wap.branch")
"""Settings with which Spark stages a write for a later check, in tables with ``write.wap.enabled``."""
_DELAYS: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds between attempts to commit while others commit. Each attempt of Iceberg is four attempts of its own."""
_LTZ: Final = {"spark.sql.timestampType": "TIMESTAMP_LTZ"}
"""A timestamp in DDL has a time zone."""
_KEPT: Final = 16
"""Number of records of a writer that are removed in one commit when they are no longer needed."""
_NO_SNAPSHOT: Final = "none"
"""The value of the property ``current-snapshot-id`` of a table that has never had rows."""
_RECORDED: Final = -1
"""The batch is recorded, so its snapshot does not matter."""


class Snapshot(NamedTuple):
    """A snapshot of a table."""

    parent: int | None
    id: str | None
    """The ID of the batch whose rows it adds: as it was staged, or as it was published."""
    source: int | None
    """The staged snapshot from which it was published."""


class _Iceberg(TableFormat):
    name = "iceberg"
    has_names = True

    def is_table(self, path: str) -> bool:
        spark = SparkSession.getActiveSession()
        return bool(spark and _NAME.fullmatch(path) and _has_catalog(spark, parts_of(path)[0]))

    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        table = _Table(df.sparkSession, path)
        rows, won = table.prepare(df, partition_by), False
        published = table.find(writer, batch_id)
        if published is None:
            staged = table.stage(rows, writer, batch_id)
            table.refresh()
            published = table.find(writer, batch_id)
            won = published is None and table.publish(staged, writer, batch_id)
        table.finish(published, writer, batch_id)
        return won

    def evolve(self, df: DataFrame, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        table = _Table(df.sparkSession, path)
        # Another driver may be first, so the table is read again after each error.
        evolve = partial(table.evolve, plain(df.schema, _widened))
        return widened(df, retry(evolve, lambda error: not isinstance(error, TableConflict), _DELAYS[:3]))

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        table = _Table(spark, path)
        if not table.exists():
            raise FileNotFoundError(f"cannot find an Iceberg table {path}")
        return spark.table(table.sql_name)

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        rows = _with_types(df, plain(df.schema, _widened))
        _Table(df.sparkSession, path).create(rows, partition_by, replaces=mode == "overwrite")


FORMAT: Final = _Iceberg()
FORMATS: Final = (FORMAT,)


class _Table:
    """A table in a catalog of a session. Statements in SQL reach it, so Spark Connect has it too."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark, self._name = spark, name
        self.properties: dict[str, str] = {}
        """The properties of the table when `refresh` was called."""
        parts = parts_of(name)
        if not _has_catalog(spark, parts[0]):
            raise ValueError(
                f"cannot use {name}: the session lacks a catalog {parts[0]!r} of Iceberg; set spark.sql.catalog."
                f"{parts[0]} to org.apache.iceberg.spark.SparkCatalog, with the settings of the catalog"
            )
        self._catalog: Final = f"`{parts[0]}`"
        self.sql_name: Final = ".".join(f"`{part}`" for part in parts)

    def exists(self) -> bool:
        """Return whether the catalog has the table, as it is now.

        Raises
        ------
        TableConflict
            if it is not an Iceberg table, or if the catalog cannot be used.
        """
        try:
            exists = bool(self._spark.catalog.tableExists(self.sql_name))
        except Exception as error:
            raise self._refusal(error) from None
        if exists:
            self.refresh()
        return exists

    def refresh(self) -> None:
        """Read the table as it is now: a catalog of Iceberg keeps the table that it has loaded."""
        self._spark.sql(f"REFRESH TABLE {self.sql_name}")
        self.properties = {row[0]: row[1] for row in self._spark.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect()}
        if not self.properties.get("format", "").startswith("iceberg/"):
            raise TableConflict(f"cannot use {self._name}: it is not an Iceberg table")

    def head(self) -> int | None:
        """Return the table's snapshot; None if it has never had rows."""
        head = self.properties["current-snapshot-id"]
        return None if head == _NO_SNAPSHOT else int(head)

    def prepare(self, df: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
        """Return the rows with all columns of the table, NULL where they lack one; create a missing table."""
        check_columns(df.schema)
        plain(df.schema, _refuse_variant)
        if not self.exists():
            with suppress(FileExistsError):  # another driver has created it
                self.create(self._spark.createDataFrame([], plain(df.schema, _widened)), partition_by)
            self.refresh()
        columns = self._spark.table(self.sql_name).schema
        check_fits(plain(df.schema, _widened), columns, self._name)
        return _with_types(df, columns)

    def create(self, df: DataFrame, partition_by: tuple[str, ...], *, replaces: bool = False) -> None:
        """Create the table with rows.

        Raises
        ------
        FileExistsError
            if the table exists.
        TableConflict
            if the catalog cannot create it.
        """
        creation = df.writeTo(self.sql_name).using(FORMAT.name)
        if partition_by:
            creation = creation.partitionedBy(*(F.col(quoted_name(name)) for name in partition_by))
        try:
            (creation.createOrReplace if replaces else creation.create)()
        except Exception as error:
            if not replaces and self.exists():
                raise FileExistsError(f"there is an Iceberg table {self._name}") from None
            raise self._refusal(error) from None

    def evolve(self, rows: T.StructType) -> T.StructType:
        """Add the columns that the table lacks, and widen types; return the columns that it then has."""
        if not self.exists():
            return rows
        columns = self._spark.table(self.sql_name).schema
        wanted = evolved(columns, rows)
        for field in wanted:
            if field.name not in columns.names:
                with settings(self._spark, _LTZ):
                    self._run(f"ALTER TABLE {self.sql_name} ADD COLUMN {T.StructType([field]).toDDL()}")
            elif field.dataType != columns[field.name].dataType:
                name, type = quoted_name(field.name), field.dataType.simpleString()
                self._run(f"ALTER TABLE {self.sql_name} ALTER COLUMN {name} TYPE {type}")
        return wanted

    def find(self, writer: Writer, batch_id: int) -> int | None:
        """Return the staged snapshot with the rows of a batch, or `_RECORDED`; None if it is not in the table.

        Raises
        ------
        TableConflict
            if the writer has written a later batch, another query has written this one, or that is no longer known.
        """
        recorded = keys_of("batch", self.properties, writer)
        self._check_reads(recorded, writer, batch_id)
        last = max((number for number, _ in recorded.values()), default=-1)
        check_batch(writer, self._name, batch_id, last)
        if batch_id == last:
            queries = (detail.partition("_")[0] for number, detail in recorded.values() if number == last)
            check_query(writer, self._name, *queries)
            return _RECORDED
        attempts = keys_of("publishing", self.properties, writer)
        bases = {detail.partition("_")[0] for number, detail in attempts.values() if number == batch_id}
        if not bases:
            return None
        is_known, staged, query = publication(self._snapshots(), self.head(), f"msgid/{writer.name}/{batch_id}/", bases)
        if not is_known:
            raise TableConflict(
                f"cannot tell whether batch {batch_id} of {writer.name!r} is in {self._name}: an attempt ended before "
                "it recorded the batch, and the table's snapshots since then have expired. If its rows are missing, "
                f"unset the table properties that begin with 'msgid.publishing/{writer.name}/{batch_id}/'; otherwise "
                f"set '{key_of('batch', writer, batch_id, writer.query)}' = ''"
            )
        if staged is not None:
            check_query(writer, self._name, query)
            self._check_reads(attempts, writer, batch_id)
        return staged

    def _check_reads(self, keys: dict[str, tuple[int, str]], writer: Writer, batch_id: int) -> None:
        reads = [detail.partition("_")[2] for number, detail in keys.values() if number == batch_id]
        if reads:
            check_read(writer, self._name, batch_id, *reads)

    def _refs(self) -> dict[str, int]:
        return {row[0]: row[1] for row in self._metadata("refs", "name", "snapshot_id")}

    def _snapshots(self) -> dict[int, Snapshot]:
        rows = self._metadata(
            "snapshots",
            "snapshot_id",
            "parent_id",
            "coalesce(summary['published-wap-id'], summary['wap.id'])",
            "CAST(summary['source-snapshot-id'] AS BIGINT)",
        )
        return {row[0]: Snapshot(row[1], row[2], row[3]) for row in rows}

    def _metadata(self, table: str, *columns: str) -> list[Any]:
        return self._spark.table(f"{self.sql_name}.{table}").selectExpr(*columns).collect()

    def stage(self, rows: DataFrame, writer: Writer, batch_id: int) -> int:
        """Write rows to the table in a snapshot that readers do not see; return the snapshot."""
        for key in _STAGING if self.properties.get("write.wap.enabled") == "true" else ():
            if self._spark.conf.get(key, None) is not None:
                raise TableConflict(f"cannot write to {self._name}: {key} is set, so Spark would stage the rows")
        # Spark asks a REST catalog for the branch as a table, in a URL, and servers refuse an escaped slash in it.
        branch, base = f"msgid-{writer.name}-{batch_id}-{uuid4().hex}", self.head()
        self._create_branch(branch, base)
        try:
            before = self._refs()[branch] if base is None else base
            self._append(rows, branch, f"msgid/{writer.name}/{batch_id}/{writer.query or ''}")
            self.refresh()  # another thread of the session may have put an older state into the catalog's cache
            refs = self._refs()
        finally:
            self._drop(branch)
        if refs[branch] == before:
            raise OSError(f"cannot find the rows that Spark has written to the branch {branch} of {self._name}")
        return refs[branch]

    def publish(self, staged: int, writer: Writer, batch_id: int) -> bool:
        """Add the rows of a staged snapshot to the table; return False if another driver has published the batch."""
        # The table was read after the rows were staged, so its snapshot does not expire before they are published.
        base = self.head()
        self._set(key_of("publishing", writer, batch_id, _NO_SNAPSHOT if base is None else base))

        def publish() -> bool:
            try:
                self._cherrypick(staged)
            except Exception:
                # The batch may be published all the same: by another driver, or the answer to this one was lost.
                self.refresh()
                published = self.find(writer, batch_id)
                if published is None:
                    raise
                return published == staged
            return True

        return retry(publish, is_lost_commit, _DELAYS)

    def finish(self, published: int | None, writer: Writer, batch_id: int) -> None:
        """Record a batch that is in the table, and remove old records."""
        if published != _RECORDED:
            self._set(key_of("batch", writer, batch_id, writer.query))
        old = [key for key, (number, _) in keys_of("batch", self.properties, writer).items() if number < batch_id]
        old += [
            key for key, (number, _) in keys_of("publishing", self.properties, writer).items() if number <= batch_id
        ]
        if len(old) >= _KEPT:
            self._run(f"ALTER TABLE {self.sql_name} UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(repr, old))})")

    def _create_branch(self, branch: str, base: int | None) -> None:
        version = "" if base is None else f" AS OF VERSION {base}"
        # `expire_snapshots` drops the branch of a driver that was killed.
        self._run(f"ALTER TABLE {self.sql_name} CREATE BRANCH IF NOT EXISTS `{branch}`{version} RETAIN 7 DAYS")

    def _append(self, rows: DataFrame, branch: str, id: str) -> None:
        # Not with the option "branch": Iceberg 1.11 ignores it in a write, and writes to the table itself. The other
        # option names the ID of a batch in its snapshot, where `cherrypick_snapshot` looks for it.
        writer = rows.writeTo(f"{self.sql_name}.`branch_{branch}`").option("snapshot-property.wap.id", id)
        try:
            retry(writer.append, is_lost_commit, _DELAYS)
        except AnalysisException as error:
            raise self._refusal(error) from None

    def _cherrypick(self, staged: int) -> None:
        arguments = f"table => '{self.sql_name}', snapshot_id => {staged}"
        self._spark.sql(f"CALL {self._catalog}.system.cherrypick_snapshot({arguments})")

    def _drop(self, branch: str) -> None:
        self._run(f"ALTER TABLE {self.sql_name} DROP BRANCH IF EXISTS `{branch}`")

    def _set(self, key: str) -> None:
        self._run(f"ALTER TABLE {self.sql_name} SET TBLPROPERTIES ('{key}' = '')")

    def _run(self, statement: str) -> None:
        retry(lambda: self._spark.sql(statement), is_lost_commit, _DELAYS)

    def _refusal(self, error: Exception) -> Exception:
        """Return an error of Spark or Iceberg in one line."""
        is_theirs = isinstance(error, PySparkException) or is_java_error(error)
        return TableConflict(f"cannot write to {self._name}: {cause_of(error)}") if is_theirs else error


def parts_of(name: str) -> list[str]:
    """Return the parts of a table's name, without their quotes.

    Raises
    ------
    ValueError
        if it is not a name of at least two parts, or if it names a branch, a tag or a version of a table.

    Examples
    --------
    >>> parts_of("lake.db.`a b`")
    ['lake', 'db', 'a b']
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            "an Iceberg table must have a name such as 'catalog.db.table', which does not select a version, got "
            f"{name!r}; put a part with other signs than letters, digits and '_' between '`'"
        )
    return [part.strip("`") for part in re.findall(_PART, name)]


def key_of(kind: str, writer: Writer, batch_id: int, detail: object) -> str:
    """Return the key of a property that records a batch: ``batch`` with its query, ``publishing`` with a snapshot."""
    read = "" if writer.read is None else f"_{writer.read}"
    return f"msgid.{kind}/{writer.name}/{batch_id}/{'' if detail is None else detail}{read}"


def keys_of(kind: str, properties: Iterable[str], writer: Writer) -> dict[str, tuple[int, str]]:
    """Return the keys of `key_of` in the properties of a table, with the batch and what else each has.

    Examples
    --------
    >>> from spark_ext.tables.writers import Writer
    >>> keys_of("publishing", ["msgid.publishing/a/7/123", "msgid.publishing/b/8/none"], Writer("a", None, True))
    {'msgid.publishing/a/7/123': (7, '123')}
    """
    pattern = re.compile(rf"msgid\.{kind}/{re.escape(writer.name)}/(\d+)/([\w-]*)")
    return {key: (int(match[1]), match[2]) for key in properties if (match := pattern.fullmatch(key))}


def publication(
    snapshots: Mapping[int, Snapshot], head: int | None, prefix: str, bases: Iterable[str]
) -> tuple[bool, int | None, str]:
    """Return whether the history of a table tells if a batch is published, its staged snapshot, and its query.

    The history goes from the last snapshot back to the first one, or to one that has expired. A batch is published
    after the snapshot that its ``publishing`` record names, so a history that goes back to it is long enough.

    Parameters
    ----------
    snapshots : dict of int to Snapshot
        the snapshots that have not expired.
    head : int, optional
        the last snapshot of the table; None if it is empty.
    prefix : str
        the ID of the batch, before its query.
    bases : iterable of str
        the snapshots that the records of the attempts name.
    """
    missing = set(bases)
    while head is not None:
        missing.discard(str(head))
        snapshot = snapshots.get(head)
        if snapshot is None:
            return not missing, None, ""
        if snapshot.id is not None and snapshot.id.startswith(prefix):
            return True, head if snapshot.source is None else snapshot.source, snapshot.id.removeprefix(prefix)
        head = snapshot.parent
    return True, None, ""


def _has_catalog(spark: SparkSession, name: str) -> bool:
    """Return whether a catalog may hold Iceberg tables; Spark's own one does so only if it is Iceberg's."""
    catalog = spark.conf.get(f"spark.sql.catalog.{name}", None)
    return catalog is not None and (name != "spark_catalog" or "iceberg" in catalog.lower())


def _widened(type: Any, path: tuple[str, ...]) -> Any:
    """Return the type in which Iceberg holds values: its integers have at least 32 bits."""
    return T.IntegerType() if isinstance(type, (T.ByteType, T.ShortType)) else type


def _refuse_variant(type: Any, path: tuple[str, ...]) -> Any:
    """Refuse a VARIANT, which tables of version 2 of the format lack."""
    if type_named(type, "variant"):
        raise lacks_type(path, "an Iceberg table", type)
    return type


def _with_types(df: DataFrame, columns: T.StructType) -> DataFrame:
    """Return the rows with the columns of a table, in its order and with its types."""
    fields = [field for field in columns if field.nullable or field.name in df.columns]  # Spark refuses the others
    cells = [F.col(quoted_name(field.name)) if field.name in df.columns else F.lit(None) for field in fields]
    typed = zip(cells, fields, strict=True)
    return df.select(*(cell.cast(plain(field.dataType)).alias(field.name) for cell, field in typed))
