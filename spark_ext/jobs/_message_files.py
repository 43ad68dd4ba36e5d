"""The input of the job ``messages``: the ways in which a message format may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from spark_ext._filesystem import resolve
from spark_ext._settings import settings
from spark_ext.jobs._files import column_of, read_logged_table, read_rows
from spark_ext.jobs._formats import EVERY_FILE, BadInput, formats_in, holds_table, pattern_of, warn_of_folders
from spark_ext.jobs._json_lines import rows_of_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.datasource import DataSource

_FOLDERS_AS_TEXT: Final = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}
"""The values in names of folders are text: a topic ``007`` is not the topic ``7``."""
FILE_FORMATS: Final = ("parquet", "json")
"""The formats of files of exported rows."""
_PAIR: Final = StructType([StructField("key", StringType()), StructField("value", StringType())])


class JobFiles(NamedTuple):
    """The input of a job; `spark_ext.formats.message_formats.MessageFiles` for a format."""

    spark: SparkSession
    path: str
    """The path that the job was given."""
    files: str | None = None
    """The format of files of exported rows, one of `FILE_FORMATS`. Default: by their endings."""

    def _reader(self) -> DataFrameReader:
        return self.spark.read.options(**EVERY_FILE)

    def source(self, source: type[DataSource], **options: str) -> DataFrame:
        """Read with a data source in Python."""
        self.spark.dataSource.register(source)
        place = resolve(self.path)  # the source's workers do not see the session's default file system
        names = place if "://" in place else self.path
        return self._reader().format(source.name()).options(**options).load(names)

    def lines(self) -> DataFrame:
        """Read text files: each line is a ``value``."""
        warn_of_folders(self.path)
        return self._reader().text(pattern_of(self.path))

    def values(self, column: str | None) -> DataFrame:
        """Read Parquet files with a column of encoded messages, or other files as one ``value`` each."""
        endings = formats_in(self.path)
        if column is None and len(endings) > 1 and "parquet" in endings:
            raise BadInput(f"cannot read Parquet files and other files in one folder, got {self.path}")
        if column is not None or endings == {"parquet"}:
            rows = read_rows(self.spark, self.path, "parquet")
            column_of(rows, column or "value")
            return rows
        # Each file is one message, or one poll response.
        reader = self._reader().format("binaryFile").option("recursiveFileLookup", "true")
        return reader.load(pattern_of(self.path)).select(F.col("content").alias("value"))

    def rows(self, columns: tuple[str, ...], pairs: tuple[str, ...] = ()) -> DataFrame:
        """Read exported rows: Parquet files, or JSON lines with these columns.

        All columns of JSON but lists of pairs are text, so that a line of another type does not change the type of a
        column. A line that cannot be read is in the column ``_corrupt_record``.

        Raises:
            BadInput: if the format of the files is unknown.
        """
        files = self.files or _guess_files(self.path)
        warn_of_folders(self.path)
        names = pattern_of(self.path)
        if files == "json":
            texts = [StructField(name, ArrayType(_PAIR) if name in pairs else StringType()) for name in columns]
            with settings(self.spark, _FOLDERS_AS_TEXT):
                return rows_of_lines(self._reader().format("text").load(names), StructType(texts))
        if holds_table(self.path):
            return read_logged_table(self.spark, self.path)
        try:
            with settings(self.spark, _FOLDERS_AS_TEXT):
                return self._reader().parquet(names)
        except AnalysisException as error:
            if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
                raise BadInput(f"cannot read {self.path}: a Parquet file that shows the columns is missing") from None
            raise


def _guess_files(path: str) -> str:
    found = formats_in(path)
    if len(found) != 1 or not found <= set(FILE_FORMATS):
        raise BadInput(f"cannot tell whether the files of {path} are Parquet or JSON: pass --files parquet or json")
    return found.pop()
