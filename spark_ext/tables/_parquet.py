"""Micro-batches as folders of a Parquet table: ``writer=NAME/batch=N``. Each folder is complete or missing."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from spark_ext._filesystem import filesystem
from spark_ext._private import FILE_SINK_LOG
from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame

    from spark_ext.tables._writers import Writer

_CLAIM: Final = "_writer.json"
"""File with the query and the partition columns of a writer. Readers skip files that start with ``_``."""
_WRITING: Final = ".writing"
"""Folder of batches that are being written. Readers skip folders that start with a dot."""
RENAMES: Final = ("local", "hdfs")
"""Arrow's names of the file systems that rename a folder in one step."""
_RESERVED: Final = ("writer", "batch")
_FOREIGN: Final = {
    "_delta_log": "it is a Delta table; pass format='delta'",
    FILE_SINK_LOG: "Spark's own file sink manages it",
    "metadata": "it looks like an Iceberg table",
}


def write_batch(
    batch_df: DataFrame, batch_id: int, path: str, writer: Writer, partition_by: tuple[str, ...] = ()
) -> bool:
    """Write a micro-batch as a folder; return False if the folder exists.

    The rows are written to a hidden folder, which is then renamed: of two drivers that write one batch, the first
    rename succeeds and the second fails. A store without a rename of folders (S3) gets the rows in place; the file
    ``_SUCCESS``, written last, marks them as complete. Two drivers must not write one batch there.
    """
    check_columns(batch_df)
    files, base = filesystem(path)
    _claim(files, base, path, writer, partition_by)
    inner = f"writer={writer.name}/batch={batch_id}"
    if _is_complete(files, f"{base}/{inner}"):
        run_without_writing(batch_df)
        return False
    if files.type_name not in RENAMES:
        _write(batch_df, f"{path}/{inner}", "overwrite", partition_by)
        _mark(files, f"{base}/{inner}")
        return True
    # Its own name is hidden too: HDFS moves it into the folder of a batch that another driver wrote at the same moment.
    hidden = f"writer={writer.name}/{_WRITING}/.batch={batch_id}-{uuid4().hex}"
    _write(batch_df, f"{path}/{hidden}", "error", partition_by)
    _mark(files, f"{base}/{hidden}")
    won = _rename(files, f"{base}/{hidden}", f"{base}/{inner}")
    _clean_up(files, f"{base}/writer={writer.name}/{_WRITING}", batch_id)
    return won


def is_written(batch_id: int, path: str, writer: Writer) -> bool:
    """Check whether `write_batch` has written a micro-batch as a whole."""
    files, base = filesystem(path)
    return _is_complete(files, f"{base}/writer={writer.name}/batch={batch_id}")


def run_without_writing(batch_df: DataFrame) -> None:
    """Run the batch without writing: Spark commits state only for a batch that runs completely."""
    batch_df.write.format("noop").mode("overwrite").save()


def check_columns(batch_df: DataFrame) -> None:
    """Check that no column has the name of a folder of the table."""
    for name in batch_df.columns:
        if name.lower() in _RESERVED:
            raise TableConflict(
                f"cannot write a column named {name!r}: the folders of the table have that name, and readers would "
                "see the folder's value instead. Rename the column, or use format='delta'"
            )


def _claim(files: pafs.FileSystem, base: str, path: str, writer: Writer, partition_by: tuple[str, ...]) -> None:
    """Check that this writer may write to the table; with its first batch, record the writer."""
    import pyarrow.fs as pafs

    claim = f"{base}/writer={writer.name}/{_CLAIM}"
    if files.get_file_info(claim).type == pafs.FileType.File:
        _check_claim(files, claim, path, writer, partition_by)
        return
    _check_free(files, base, path, writer)
    files.create_dir(f"{base}/writer={writer.name}/{_WRITING}", recursive=True)
    partial = f"{base}/writer={writer.name}/{_WRITING}/{uuid4().hex}"
    with files.open_output_stream(partial) as out:
        out.write(json.dumps({"query": writer.query, "partition_by": list(partition_by)}).encode())
    with suppress(OSError):  # another driver of the same query was first
        files.move(partial, claim)
    try:
        _check_free(files, base, path, writer)  # another query may have claimed the table at the same moment
    except TableConflict:
        files.delete_file(claim)
        raise
    _check_claim(files, claim, path, writer, partition_by)


def _check_claim(files: pafs.FileSystem, claim: str, path: str, writer: Writer, partition_by: tuple[str, ...]) -> None:
    with files.open_input_file(claim) as file:
        said = json.loads(file.read())
    if None not in (said["query"], writer.query) and said["query"] != writer.query:
        raise TableConflict(
            f"cannot write to {path}: its writer {writer.name!r} is the query {said['query']}, and this is the query "
            f"{writer.query}. Restore that query's checkpoint, or choose another app_id or another folder"
        )
    if said["partition_by"] != list(partition_by):
        raise TableConflict(
            f"cannot write to {path}: partition_by must stay {tuple(said['partition_by'])}, got {partition_by}"
        )


def _check_free(files: pafs.FileSystem, base: str, path: str, writer: Writer) -> None:
    """Check that a folder is empty, or holds only writers that allow this one."""
    import pyarrow.fs as pafs

    for info in files.get_file_info(pafs.FileSelector(base, allow_not_found=True)):
        name = info.base_name
        if name in _FOREIGN:
            raise TableConflict(f"cannot write to {path}: {_FOREIGN[name]}")
        if name.startswith("writer="):
            if name != f"writer={writer.name}" and not writer.chosen:
                raise TableConflict(
                    f"cannot write to {path}: it belongs to the query {name[7:]}, and this is the query "
                    f"{writer.query}. Restore that query's checkpoint, or choose another folder; for a table of "
                    "several writers, pass app_id or use format='delta'"
                )
        elif not name.startswith((".", "_")):
            raise TableConflict(
                f"cannot write to {path}: it holds {name}, which no stream has written (a batch run, perhaps). "
                "Readers would not see all rows. Choose another folder, or use format='delta'"
            )


def _write(batch_df: DataFrame, folder: str, mode: str, partition_by: tuple[str, ...]) -> None:
    writer: Any = batch_df.write.mode(mode)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    # With dynamic partition overwrite, Spark would keep files of an interrupted attempt.
    writer.option("partitionOverwriteMode", "static").parquet(folder)


def _mark(files: pafs.FileSystem, folder: str) -> None:
    """Write ``_SUCCESS``, because a setting can stop Spark from writing it."""
    with files.open_output_stream(f"{folder}/_SUCCESS"):
        pass


def _is_complete(files: pafs.FileSystem, folder: str) -> bool:
    import pyarrow.fs as pafs

    return bool(files.get_file_info(f"{folder}/_SUCCESS").type == pafs.FileType.File)


def _rename(files: pafs.FileSystem, hidden: str, folder: str) -> bool:
    """Rename the hidden folder of a batch; if another driver was first, delete it and return False."""
    import pyarrow.fs as pafs

    nested = f"{folder}/{hidden.rpartition('/')[2]}"  # HDFS moves a folder into an existing one
    for _ in range(3):
        if _is_complete(files, folder):
            break
        with suppress(OSError):
            files.move(hidden, folder)
            if files.get_file_info(nested).type == pafs.FileType.Directory:
                files.delete_dir(nested)
                return False
            return True
        _set_aside(files, folder, f"{hidden}-in-the-way")
    else:
        raise OSError(f"cannot rename {hidden} to {folder}")
    files.delete_dir(hidden)
    return False


def _set_aside(files: pafs.FileSystem, folder: str, aside: str) -> None:
    """Delete an incomplete folder of a batch, which a driver on a store without renames has left.

    The folder is renamed before it is checked. A check before the rename could delete a batch that another driver
    completes between the check and the deletion.
    """
    if _is_complete(files, folder):
        return
    with suppress(OSError):
        files.move(folder, aside)
        if _is_complete(files, aside):
            files.move(aside, folder)
        else:
            files.delete_dir(aside)


def _clean_up(files: pafs.FileSystem, writing: str, batch_id: int) -> None:
    """Delete incomplete files of earlier batches. Those of the current batch may belong to another driver."""
    import pyarrow.fs as pafs

    for info in files.get_file_info(pafs.FileSelector(writing, allow_not_found=True)):
        number = info.base_name.partition("=")[2].partition("-")[0]
        if info.type == pafs.FileType.Directory and number.isdigit() and int(number) < batch_id:
            with suppress(OSError):
                files.delete_dir(info.path)
