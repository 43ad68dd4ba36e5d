"""The input of the job ``messages``: the ways in which a message format may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from spark_ext._filesystem import resolve
from spark_ext._settings import settings
from spark_ext.jobs._files import column_of, read_logged_table, read_rows, reader_of
from spark_ext.jobs._formats import (
    DEFAULT_LIMIT,
    BadInput,
    BatchLimit,
    Files,
    formats_in,
    holds_table,
    input_of,
    names_of,
    warn_of_folders,
)
from spark_ext.jobs._json_lines import rows_of_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

_FOLDERS_AS_TEXT: Final = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}
"""The values in names of folders are text: a topic ``007`` is not the topic ``7``."""
FILE_FORMATS: Final = ("parquet", "json")
"""The formats of files of exported rows."""
_PAIR: Final = StructType([StructField("key", StringType()), StructField("value", StringType())])
_BINARY_FILE: Final = "path string, modificationTime timestamp, length bigint, content binary"
"""The columns of Spark's format ``binaryFile``, which a stream must be given."""


class JobFiles(NamedTuple):
    """The input of a job, or some of its files; `spark_ext.formats.message_formats.MessageFiles` for a format."""

    spark: SparkSession
    input: str | Files
    files: str | None = None
    """The format of files of exported rows, one of `FILE_FORMATS`. Default: by their endings."""
    stream: bool = False
    """Whether to follow the files of a folder."""
    schema: StructType | None = None
    """The columns of Parquet files. Default: read from the files."""
    limit: BatchLimit = DEFAULT_LIMIT
    """The size of a stream's micro-batches."""

    @property
    def path(self) -> str:
        """The path that the job was given."""
        return input_of(self.input)

    def _reader(self) -> Any:
        return reader_of(self.spark, self.input, stream=self.stream, limit=self.limit)

    def source(self, source: type[DataSource], **options: str) -> DataFrame:
        """Read with a data source in Python."""
        self.spark.dataSource.register(source)
        place = resolve(self.path)  # the source's workers do not see the session's default file system
        names = place if "://" in place else self.input if isinstance(self.input, str) else self.input.names
        read: DataFrame = self._reader().format(source.name()).options(**options).load(names)
        return read

    def lines(self) -> DataFrame:
        """Read text files: each line is a ``value``."""
        warn_of_folders(self.input)
        return self._reader().text(names_of(self.input))  # type: ignore[no-any-return]

    def values(self, column: str | None) -> DataFrame:
        """Read Parquet files with a column of encoded messages, or other files as one ``value`` each."""
        endings = formats_in(self.path)
        if column is None and len(endings) > 1 and "parquet" in endings:
            raise BadInput(f"cannot read Parquet files and other files in one folder, got {self.path}")
        if column is not None or endings == {"parquet"}:
            rows = read_rows(
                self.spark, self.input, "parquet", stream=self.stream, schema=self.schema, limit=self.limit
            )
            column_of(rows, column or "value")
            return rows
        # Each file is one message, or one poll response.
        reader = self._reader().format("binaryFile").schema(_BINARY_FILE).option("recursiveFileLookup", "true")
        return reader.load(names_of(self.input)).select(F.col("content").alias("value"))  # type: ignore[no-any-return]

    def rows(self, columns: tuple[str, ...], pairs: tuple[str, ...] = ()) -> DataFrame:
        """Read exported rows: Parquet files, or JSON lines with these columns.

        All columns of JSON but lists of pairs are text, so that a line of another type does not change the type of a
        column. A line that cannot be read is in the column ``_corrupt_record``.

        Raises:
            BadInput: if the format of the files is unknown.
        """
        files = self.files or _guess_files(self.path)
        warn_of_folders(self.input)
        names, schema = names_of(self.input), self.schema
        if files == "json":
            texts = [StructField(name, ArrayType(_PAIR) if name in pairs else StringType()) for name in columns]
            with settings(self.spark, _FOLDERS_AS_TEXT):
                return rows_of_lines(self._reader().format("text").load(names), StructType(texts))
        if holds_table(self.path):
            return read_logged_table(self.spark, self.input, stream=self.stream)
        try:
            if schema is None:
                with settings(self.spark, _FOLDERS_AS_TEXT):
                    schema = reader_of(self.spark, self.input).format("parquet").load(names).schema
        except AnalysisException as error:
            if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
                raise BadInput(f"cannot read {self.path}: a Parquet file that shows the columns is missing") from None
            raise
        rows: DataFrame = self._reader().schema(schema).format("parquet").load(names)
        return rows


def _guess_files(path: str) -> str:
    found = formats_in(path)
    if len(found) != 1 or not found <= set(FILE_FORMATS):
        raise BadInput(f"cannot tell whether the files of {path} are Parquet or JSON: pass --files parquet or json")
    return found.pop()
