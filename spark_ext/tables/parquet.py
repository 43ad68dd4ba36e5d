"""Parquet as a table format: one writer, and folders that appear and disappear as a whole.

A micro-batch is a folder ``writer=NAME/batch=N``, and a segment of messages is a folder, each complete or missing.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import types as T

from msgid.shared.retrying import retry
from spark_ext._filesystem import PathError, filesystem, literal
from spark_ext._private import FILE_SINK_LOG
from spark_ext.tables._column_rules import check_columns, check_fits, check_partitions, evolved, plain, united, widened
from spark_ext.tables._written_files import entries, write_files
from spark_ext.tables.parquet_uuids import read_parquet
from spark_ext.tables.table_formats import TableFormat, format_of_table
from spark_ext.tables.writers import TableConflict, check_batch, check_query, check_read

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables.writers import Writer

_RENAMES: Final = ("local", "hdfs")
"""Arrow's names of the file systems that rename a folder in one step."""
_CLAIM: Final = "_writer.json"
"""File with the query, the partition columns and the columns of a writer. Readers skip files that start with ``_``."""
_COLUMNS: Final = "_columns.json"
"""File with the columns of a batch run. The names of folders do not show the types of their values."""
_EVOLVED: Final = "_evolved"
"""Folder with the columns of the table after each change by ``evolve=True``."""
_WRITING: Final = ".writing"
"""Folder of batches that are being written. Readers skip folders that start with a dot."""
_READ: Final = "_read.json"
"""File in the folder of a batch with the digest of what the batch has read."""
_MARK: Final = "_SUCCESS"
"""File that marks a batch as complete."""
_BATCH: Final = re.compile("batch=(0|[1-9][0-9]*)")
_LAST: Final[dict[tuple[str, str], int]] = {}
"""The last number that this process has compared with a writer's folder, per table and writer: the next one needs no
listing."""
_RESERVED: Final = {"writer": T.StringType(), "batch": T.LongType()}
"""The columns of the folders of micro-batches."""


class _Parquet(TableFormat):
    name = "parquet"
    has_log = False

    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        # The rows are written to a hidden folder, which is then renamed: of two drivers that write one batch, the first
        # rename succeeds and the second fails.
        check_columns(df.schema)
        for name in df.columns:
            if name.lower() in _RESERVED:
                raise TableConflict(
                    f"cannot write a column named {name!r}: the folders of the table have that name, and readers would "
                    "see the folder's value instead. Rename the column, or use format='delta'"
                )
        check_partitions(df, partition_by)
        files, base = filesystem(path)
        if files.type_name not in _RENAMES:
            raise TableConflict(f"cannot write to {path}: its store does not rename folders; use format='delta'")
        is_claimed = _check(files, base, path, writer, partition_by, df)
        inner = f"writer={writer.name}/batch={batch_id}"
        is_written = _is_complete(files, f"{base}/{inner}")
        if is_written or _LAST.get((path, writer.name)) != batch_id - 1:
            check_batch(writer, path, batch_id, _later_batch(files, f"{base}/writer={writer.name}", batch_id))
        _LAST[path, writer.name] = batch_id
        if is_written:
            _check_read(files, f"{base}/{inner}", path, writer, batch_id)
            return False
        # Its own name is hidden too: HDFS moves it into the folder of a batch that another driver has just written.
        hidden = f"writer={writer.name}/{_WRITING}/.batch={batch_id}-{uuid4().hex}"
        write_files(df, path, hidden, partition_by)
        if writer.read is not None:
            with files.open_output_stream(f"{base}/{hidden}/{_READ}") as out:
                out.write(json.dumps({"read": writer.read}).encode())
        _mark(files, f"{base}/{hidden}")
        if not is_claimed:
            _claim(files, base, path, writer, partition_by, df)
        is_first = _rename(files, f"{base}/{hidden}", f"{base}/{inner}")
        if not is_first:
            _check_read(files, f"{base}/{inner}", path, writer, batch_id)
        return is_first

    def evolve(self, df: DataFrame, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        columns = _recorded(path)
        if columns is None:
            return df
        wanted = evolved(columns, df.schema)
        if wanted != columns:
            files, base = filesystem(path)
            _put_json(files, f"{base}/{_EVOLVED}/{uuid4().hex}.json", wanted.jsonValue())
        return widened(df, wanted)

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        # With the recorded types: Spark itself guesses the type of values in the names of folders.
        recorded = None
        with suppress(PathError, OSError):  # a pattern, or a store that only Spark can reach
            recorded = _recorded(path)
        if recorded is None:
            return read_parquet(spark.read, spark.read, path)
        rows = spark.read.schema(recorded).parquet(literal(path))
        _ = rows.schema  # over Connect, Spark looks for the files only now
        return rows

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        _check_own(path)
        check_columns(df.schema)
        check_partitions(df, partition_by)
        write_files(df, path, "", partition_by, mode)
        files, base = filesystem(path)
        with files.open_output_stream(f"{base}/{_COLUMNS}") as out:
            out.write(json.dumps(plain(df.schema).jsonValue()).encode())


FORMAT: Final = _Parquet()
FORMATS: Final = (FORMAT,)


def _check(
    files: pafs.FileSystem, base: str, path: str, writer: Writer, partition_by: tuple[str, ...], df: DataFrame
) -> bool:
    """Check that this writer may write these columns to the table; return whether the writer is recorded there."""
    said = _read_json(files, f"{base}/writer={writer.name}/{_CLAIM}")
    if said is None:
        _check_free(files, base, path, writer)
    else:
        check_query(writer, path, said["query"])
        if said["partition_by"] != list(partition_by):
            raise TableConflict(
                f"cannot write to {path}: partition_by must stay {tuple(said['partition_by'])}, got {partition_by}"
            )
    columns = _recorded(path)
    if columns:
        check_fits(df.schema, columns, path)
    return said is not None


def _claim(
    files: pafs.FileSystem, base: str, path: str, writer: Writer, partition_by: tuple[str, ...], df: DataFrame
) -> None:
    """Record the writer, after the rows of its first batch are written: a batch that fails binds no later one."""
    claim = f"{base}/writer={writer.name}/{_CLAIM}"
    columns = plain(df.schema).jsonValue()
    _put_json(files, claim, {"query": writer.query, "partition_by": list(partition_by), "columns": columns})
    try:
        _check_free(files, base, path, writer)  # another query may have claimed the table at the same moment
    except TableConflict:
        files.delete_file(claim)
        raise
    if not _check(files, base, path, writer, partition_by, df):
        raise OSError(f"cannot create {claim}")


def _check_read(files: pafs.FileSystem, folder: str, path: str, writer: Writer, batch_id: int) -> None:
    """Check that the batch in a folder has read what this one has read."""
    said = _read_json(files, f"{folder}/{_READ}")
    check_read(writer, path, batch_id, None if said is None else said["read"])


def _put_json(files: pafs.FileSystem, path: str, value: object) -> None:
    """Write a file that appears as a whole; a file of another driver may stay, or is replaced."""
    partial = f"{path.rpartition('/')[0]}/{_WRITING}/{uuid4().hex}"
    files.create_dir(partial.rpartition("/")[0], recursive=True)
    with files.open_output_stream(partial) as out:
        out.write(json.dumps(value).encode())
    with suppress(OSError):
        files.move(partial, path)


def _read_json(files: pafs.FileSystem, path: str) -> dict[str, Any] | None:
    """Return the object in a file, or None if the file is missing."""
    try:
        with files.open_input_file(path) as file:
            content: dict[str, Any] = json.loads(file.read())
    except FileNotFoundError:
        return None
    return content


def _recorded(path: str) -> T.StructType | None:
    """Return the columns that a batch run or the writers of a table have recorded."""
    files, base = filesystem(path)
    rows = _read_json(files, f"{base}/{_COLUMNS}")
    if rows is not None:
        return T.StructType.fromJson(rows)
    names = sorted(info.base_name for info in entries(files, base) if info.base_name.startswith("writer="))
    claims = [_read_json(files, f"{base}/{name}/{_CLAIM}") for name in names]
    evolved = entries(files, f"{base}/{_EVOLVED}")
    later = [_read_json(files, info.path) for info in evolved if info.path.endswith(".json")]
    tables = [T.StructType.fromJson(columns) for columns in [*(said["columns"] for said in claims if said), *later]]
    folders = T.StructType([T.StructField(name, type) for name, type in _RESERVED.items()])
    return united(*tables, folders) if tables else None


def _check_own(path: str) -> None:
    """Check that a folder is not a table of another format."""
    other = format_of_table(path)
    if other != FORMAT.name:
        raise TableConflict(f"cannot write to {path}: it is a table of the format {other!r}; pass format={other!r}")


def _check_free(files: pafs.FileSystem, base: str, path: str, writer: Writer) -> None:
    """Check that a folder is empty, or holds only writers that allow this one."""
    _check_own(path)
    for info in entries(files, base):
        name = info.base_name
        if name.startswith("writer="):
            if not writer.chosen and name[7:] != writer.query:
                raise TableConflict(
                    f"cannot write to {path}: it belongs to the query {name[7:]}, and this is the query "
                    f"{writer.query}. Restore that query's checkpoint, or choose another folder. If several "
                    "queries write to the table, pass app_id"
                )
        elif name == FILE_SINK_LOG or not name.startswith((".", "_")):
            raise TableConflict(
                f"cannot write to {path}: it holds {name}, which `write_once` has not written. Readers would not see "
                "all rows. Choose another folder, or use format='delta'"
            )


def _mark(files: pafs.FileSystem, folder: str) -> None:
    """Write ``_SUCCESS``, because a setting can stop Spark from writing it."""
    files.open_output_stream(f"{folder}/{_MARK}").close()


def _is_complete(files: pafs.FileSystem, folder: str) -> bool:
    return bool(files.get_file_info(f"{folder}/{_MARK}").is_file)


def _later_batch(files: pafs.FileSystem, batches: str, batch_id: int) -> int:
    """Return the greatest number of a complete batch in a writer's folder, or the given number if that is greater."""
    names = (_BATCH.fullmatch(info.base_name) for info in entries(files, batches))
    later = sorted((n for name in names if name and (n := int(name[1])) > batch_id), reverse=True)
    return next((n for n in later if _is_complete(files, f"{batches}/batch={n}")), batch_id)


def _is_folder(files: pafs.FileSystem, path: str) -> bool:
    return bool(files.get_file_info(path).type.name == "Directory")


def _rename(files: pafs.FileSystem, hidden: str, folder: str) -> bool:
    """Rename the hidden folder of a batch; return False if another driver was first. Its hidden folder then stays.

    Raises
    ------
    TableConflict
        if the folder exists and is incomplete. Another driver may complete it at any moment, so it is not replaced.
    """
    nested = f"{folder}/{hidden.rpartition('/')[2]}"  # HDFS moves a folder into an existing one

    def rename() -> bool:
        if not _is_folder(files, folder):
            files.move(hidden, folder)
            if not _is_folder(files, nested):
                return True
        if not _is_complete(files, folder):
            raise TableConflict(
                f"cannot write {folder}: the folder exists and is incomplete, because the file {_MARK} is missing. "
                "Delete the folder to write the batch again"
            )
        return False

    return retry(rename, lambda error: isinstance(error, OSError), [0, 0])
