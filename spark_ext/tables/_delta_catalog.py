"""Delta tables through the session's catalog: Delta's own writer, which records the number of the batch in its commit.

It supports what `deltalake` refuses: mapped columns, constraints, NOT NULL, generated and identity columns. `deltalake`
reads the log all the same, because no statement of Spark returns the number of the last batch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NoReturn
from uuid import uuid4

from pyspark.errors import ParseException
from pyspark.sql import types as T

from msgid._retrying import retry
from spark_ext._private import conditions_of, words_of
from spark_ext._settings import settings
from spark_ext.tables._delta_columns import check_layout, check_new, check_types
from spark_ext.tables._delta_log import (
    AS_DELTA_READS,
    QUERY,
    WRITER,
    Overtaken,
    check_marks,
    claims_of,
    committed,
    is_overtaken,
    marks_of,
    open_table,
    series_of,
)
from spark_ext.tables._writers import TableConflict
from spark_ext.tables.table_formats import TableName

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables._writers import Writer

_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
MORE_TYPES: Final = (T.VariantType,)
"""The types that Delta's own writer supports besides those of `deltalake`."""
_ATTEMPTS: Final = 10
_DETAILS: Final = "# Detailed Table Information"
_OTHERS_CAME_FIRST: Final = (
    "DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "DELTA_TABLE_ALREADY_EXISTS",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
)  # fmt: skip
_REFUSED: Final = (
    "DELTA_VIOLATE_", "DELTA_NOT_NULL_", "DELTA_MISSING_NOT_NULL_", "DELTA_NESTED_NOT_NULL_", "DELTA_EXCEED_",
    "DELTA_IDENTITY_COLUMNS_", "DELTA_GENERATED_COLUMNS_", "DELTA_FAILED_TO_MERGE_FIELDS", "DELTA_UNSUPPORTED_",
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_INVALID_CHARACTERS_IN_COLUMN", "EXCEED_LIMIT_LENGTH",
)  # fmt: skip
"""The rows do not fit the table; an earlier error of a list is reported first."""


def has_catalog(spark: SparkSession) -> bool:
    """Return whether a session has Delta's JAR: its extension, and its catalog."""
    if _EXTENSION not in str(spark.conf.get("spark.sql.extensions", "")):
        return False
    return spark.conf.get("spark.sql.catalog.spark_catalog", None) == _CATALOG


def location_of(spark: SparkSession, name: str) -> str | None:
    """Return the folder of a table in the session's catalog; None if it is missing.

    Raises
    ------
    TableConflict
        if it is a view, or a table of another format.
    ValueError
        if the session lacks Delta's catalog, or the text is not a name.
    """
    if not has_catalog(spark):
        raise ValueError(
            f"`table` must be None without Delta's catalog, got {str(name)!r}: set spark.sql.extensions to "
            f"{_EXTENSION} and spark.sql.catalog.spark_catalog to {_CATALOG}, or pass the table's path"
        )
    try:
        if not spark.catalog.tableExists(name):
            return None
    except ParseException:
        raise ValueError(f"`table` must be the name of a table, got {str(name)!r}") from None
    rows = [(row[0], row[1]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()]
    details = dict(rows[rows.index((_DETAILS, "")) + 1 :]) if (_DETAILS, "") in rows else {}
    if str(details.get("Provider")).lower() != "delta" or "Location" not in details:
        raise TableConflict(f"cannot use {name} as a Delta table: it is a view or a table of another format")
    return str(details["Location"])


def save(df: DataFrame, place: str, mode: str, partition_by: tuple[str, ...], **options: str) -> None:
    """Write rows with Delta's own writer to a path or a named table."""
    rows: Any = df.write.format("delta").mode(mode).options(**options)
    if partition_by:
        rows = rows.partitionBy(*partition_by)
    with settings(df.sparkSession, AS_DELTA_READS):
        (rows.saveAsTable if isinstance(place, TableName) else rows.save)(place)


def check_rows(df: DataFrame, table: DeltaTable | None, partition_by: tuple[str, ...], place: str) -> None:
    """Check the columns of rows; Delta's own writer checks the rest.

    Raises
    ------
    TableConflict
        if they do not fit the table.
    """
    check_types(df, *MORE_TYPES)
    if table is not None:
        check_layout(df, table, partition_by, place)
    else:
        check_new(df, partition_by, place, is_named=isinstance(place, TableName))


def write_rows(df: DataFrame, table: DeltaTable | None, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
    """Write the rows of a batch run in one commit; ``table`` is None if it is missing or replaced."""
    if mode == "overwrite":
        check_types(df, *MORE_TYPES)
        save(df, path, mode, partition_by, overwriteSchema="true")
        return
    check_rows(df, table, partition_by, path)
    try:
        save(df, path, mode, partition_by)
    except Exception as error:
        try:
            _raise(error, path)
        except Overtaken:
            raise OSError(f"cannot commit to {path}: another commit came first") from None


def write_batch(
    df: DataFrame,
    batch_id: int,
    place: str,
    writer: Writer,
    partition_by: tuple[str, ...],
    storage_options: dict[str, str] | None,
) -> bool:
    """Write a micro-batch exactly once to a path or a named table; return False if it was written before."""
    target, marks = _Target(df.sparkSession, place, storage_options), marks_of(writer)

    def attempt() -> bool:
        table = target.open()
        check_rows(df, table, partition_by, place)
        check_marks(table, marks, writer, place)
        if table is not None and committed(table, writer, batch_id, place):
            return False
        nothing = df.sparkSession.createDataFrame([], df.schema)
        if table is None and isinstance(place, TableName):
            target.create(nothing, partition_by)
            table = target.open()
        # Delta's own writer writes one record per commit, so the others have commits without rows, before the batch.
        for claim, mark in claims_of(table, marks):
            target.commit(nothing, claim.version, claim.app_id, partition_by, **{QUERY: mark.version})
            check_marks(target.open(), marks, writer, place)
            target.commit(nothing, mark.version, mark.app_id, partition_by)
        for first in series_of(table, writer, batch_id):
            target.commit(nothing, first.version, first.app_id, partition_by)
        if target.commit(df, batch_id, writer.name, partition_by):
            return True
        table = target.open()
        if table is None or not committed(table, writer, batch_id, place):
            raise OSError(f"cannot find batch {batch_id} in {place}, which Delta's writer has written")
        return False

    try:
        return retry(attempt, is_overtaken, [0] * (_ATTEMPTS - 1))
    except Overtaken:
        raise OSError(f"cannot commit batch {batch_id} to {place}: {_ATTEMPTS} commits of others came first") from None


class _Target:
    """A table to which Delta's own writer commits."""

    def __init__(self, spark: SparkSession, place: str, storage_options: dict[str, str] | None) -> None:
        self._spark, self._place, self._storage_options = spark, place, storage_options
        self._location: str | None = None if isinstance(place, TableName) else place

    def open(self) -> DeltaTable | None:
        """Return the table's log as it is now; None if the table is missing."""
        if self._location is None:
            self._location = location_of(self._spark, self._place)
        return None if self._location is None else open_table(self._location, self._storage_options)

    def create(self, nothing: DataFrame, partition_by: tuple[str, ...]) -> None:
        """Create a named table. Spark leaves out the texts of its user in such a commit, so it does not have rows.

        Raises
        ------
        Overtaken
            if another driver has created it.
        """
        try:
            save(nothing, self._place, "append", partition_by)
        except Exception as error:
            _raise(error, self._place)

    def commit(self, df: DataFrame, number: int, app_id: str, partition_by: tuple[str, ...], **said: int) -> bool:
        """Commit rows and a record; return False if the table has that number of the record or a higher one.

        Delta's own writer skips such a commit without an error, and a commit can succeed although its answer is lost.
        So the history tells whether this commit is in the table.

        Raises
        ------
        Overtaken
            if another commit came first.
        TableConflict
            if the table refuses a row.
        """
        before = self.open()
        text = json.dumps({WRITER: app_id, "write": uuid4().hex, **said})
        options = {"txnAppId": app_id, "txnVersion": str(number), "userMetadata": text}
        failed = None
        try:
            save(df, self._place, "append", () if before is not None else partition_by, **options)
        except Exception as error:
            failed = error
        after = self.open()
        if after is not None and _has_commit(after, -1 if before is None else before.version(), text):
            return True
        if failed is not None:
            _raise(failed, self._place)
        return False


def _has_commit(table: DeltaTable, after: int, text: str) -> bool:
    """Return whether a commit after a version has a text of its user."""
    count = table.version() - after
    return count > 0 and any(commit.get("userMetadata") == text for commit in table.history(count))


def _raise(error: Exception, place: str) -> NoReturn:
    """Raise the error of a commit that failed: again, or as one of this package."""
    conditions = conditions_of(error)
    if any(condition.startswith(_OTHERS_CAME_FIRST) for condition in conditions):
        raise Overtaken from None
    for prefix in _REFUSED:
        for condition in sorted(conditions):
            if condition.startswith(prefix):
                raise TableConflict(f"cannot write to {place}: {words_of(error, condition)}") from None
    raise error
