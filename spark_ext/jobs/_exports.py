"""Exports of a queue's rows: Parquet or JSON files with the columns of a message format, such as Kafka's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from spark_ext._settings import settings
from spark_ext.formats.message_formats import message_format
from spark_ext.jobs._files import read_logged_table, reader_of
from spark_ext.jobs._formats import BadInput, Files, formats_in, holds_table, input_of, names_of, warn_of_folders
from spark_ext.jobs._json_lines import rows_of_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDERS_AS_TEXT: Final = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}
"""The values in names of folders are text: a topic ``007`` is not the topic ``7``."""
FILE_FORMATS: Final = ("parquet", "json")
_PAIR: Final = StructType([StructField("key", StringType()), StructField("value", StringType())])


def columns_of_lines(format: str) -> StructType:
    """Return the columns of JSON lines of a format.

    All but lists of pairs are text, so that a line of another type does not change the type of a column.
    """
    known = message_format(format)
    return StructType(
        [StructField(name, ArrayType(_PAIR) if name in known.pairs else StringType()) for name in known.columns]
    )


def read_export(
    spark: SparkSession,
    path: str | Files,
    format: str,
    files: str | None = None,
    *,
    stream: bool = False,
    schema: StructType | None = None,
) -> DataFrame:
    """Read the rows of an export.

    Args:
        spark: The session.
        path: A file or folder, or some of its files.
        format: A format with one message per row, such as ``kafka``.
        files: ``parquet`` or ``json``. Default: by the ending of the path, or of the files in the folder.
        stream: Whether to follow the files of a folder.
        schema: The columns of Parquet files. Default: read from the files.

    Returns:
        The rows; a JSON line that cannot be read is in the column ``_corrupt_record``.

    Raises:
        BadInput: if the format of the files is unknown.
    """
    files = files or _guess_files(input_of(path))
    warn_of_folders(path)
    reader, names = reader_of(spark, path, stream=stream), names_of(path)
    if files == "json":
        with settings(spark, _FOLDERS_AS_TEXT):
            return rows_of_lines(reader.format("text").load(names), columns_of_lines(format))
    if holds_table(input_of(path)):
        return read_logged_table(spark, path, stream=stream)
    try:
        if schema is None:
            with settings(spark, _FOLDERS_AS_TEXT):
                schema = reader_of(spark, path).format("parquet").load(names).schema
    except AnalysisException as error:
        if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
            raise BadInput(f"cannot read {input_of(path)}: a Parquet file that shows the columns is missing") from None
        raise
    rows: DataFrame = reader.schema(schema).format("parquet").load(names)
    return rows


def _guess_files(path: str) -> str:
    found = formats_in(path)
    if len(found) != 1 or not found <= set(FILE_FORMATS):
        raise BadInput(f"cannot tell whether the files of {path} are Parquet or JSON: pass --files parquet or json")
    return found.pop()
