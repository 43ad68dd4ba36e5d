"""CSV and TSV files: each file's columns are read by the names in its own header."""

from __future__ import annotations

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spark_ext._filesystem import filesystem, path_of_uri
from spark_ext.columns._expressions import CORRUPT, OTHER_HEADER, quoted_name
from spark_ext.columns._udfs import arrow_column

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SEPARATORS", "read_csv"]

SEPARATORS: Final = {"csv": ",", "tsv": "\t"}
_THREADS: Final = 16
_FILE: Final = "_metadata.file_path"


def read_csv(
    spark: SparkSession,
    files: str | list[str],
    format: str,
    reader: Any,
    reader_now: Callable[[], Any],
    *,
    stream: bool = False,
    schema: StructType | None = None,
) -> DataFrame:
    """Read CSV or TSV files with a header; the columns stay text.

    Spark itself takes the names of one file, and reads all files by position. This function reads a file by name if its
    header has the same names in another order. Rows of a file with other names are kept in ``_corrupt_record``, after
    the header of their file. A line of too few or too many columns is kept there too.

    Args:
        spark: The session.
        files: A file, a folder, or the names of files.
        format: ``csv`` or ``tsv``.
        reader: Reads the rows.
        reader_now: Returns a batch reader of the same files.
        stream: Whether to follow the files of a folder. The columns are taken from the first file.
        schema: The columns. Default: those of the first file.
    """
    separator = SEPARATORS[format]
    options: dict[str, Any] = {"sep": separator, "header": True, "escape": '"', "multiLine": format == "csv"}
    inside = reader_now().text(files)
    folders = inside.columns[1:]  # the partition columns
    uris = sorted(inside.inputFiles())
    with ThreadPoolExecutor(_THREADS) as pool:
        headers = dict(zip(uris, pool.map(lambda uri: _header(uri, separator), uris), strict=True))
    first = next((uri for uri in uris if headers[uri]), None)
    header: list[str] | None
    if schema is not None:
        header = names = [name for name in schema.names if name not in (*folders, CORRUPT)]
    elif first is None:
        every = reader_now().options(**options).csv(files).columns
        header, names = None, [name for name in every if name not in folders]
    else:
        one = spark.read.options(**options).option("__globPaths__", "false")
        header, names = headers[first], one.csv(path_of_uri(first)).columns
    fields = [StructField(name, StringType()) for name in (*names, *folders, CORRUPT)]
    read: DataFrame = reader.options(**options, columnNameOfCorruptRecord=CORRUPT).schema(StructType(fields)).csv(files)
    if header is None or (not stream and all(found in (None, header) for found in headers.values())):
        return read
    return _by_name(read, names, header, separator)


def _by_name(df: DataFrame, names: list[str], header: list[str], separator: str) -> DataFrame:
    """Reorder the columns of each file as in the header of the first file."""
    import pyarrow as pa

    kind = pa.struct([pa.field("places", pa.list_(pa.int32())), pa.field("header", pa.string())])

    def places(uris: Any) -> Any:
        encoded = uris.dictionary_encode()
        known = [_places(_header(uri, separator), header, separator) for uri in encoded.dictionary.to_pylist()]
        return pa.array(known, kind).take(encoded.indices)

    found = arrow_column(places, kind, F.col(_FILE))
    held = F.array(*(F.col(quoted_name(name)) for name in names))
    others = [name for name in df.columns if name not in (*names, CORRUPT)]
    moved = df.select(held.alias("held"), found.alias("found"), *(quoted_name(name) for name in others), F.col(CORRUPT))
    cells = F.struct(*(F.get("held", F.lit(n)).alias(str(n)) for n in range(len(names))))
    line = F.to_csv(cells, {"sep": separator, "escape": '"'})
    misread = F.concat(F.lit(OTHER_HEADER), F.col("found.header"), F.lit("\n"), F.coalesce(F.col(CORRUPT), line))
    fits = F.col("found.places").isNotNull()
    return moved.select(
        *(F.get("held", F.get("found.places", F.lit(n))).alias(name) for n, name in enumerate(names)),
        *(quoted_name(name) for name in others),
        F.when(fits, F.col(CORRUPT)).otherwise(misread).alias(CORRUPT),
    )


def _places(found: list[str] | None, header: list[str], separator: str) -> dict[str, Any]:
    """Return the position of each column in another header; the header itself if its names differ.

    >>> _places(["b", "a"], ["a", "b"], ","), _places(["a", "c"], ["a", "b"], ",")
    ({'places': [1, 0], 'header': None}, {'places': None, 'header': 'a,c'})
    """
    if found == header:
        return {"places": list(range(len(header))), "header": None}
    if found is not None and sorted(found) == sorted(header) and len(set(header)) == len(header):
        return {"places": [found.index(name) for name in header], "header": None}
    return {"places": None, "header": "" if found is None else separator.join(found)}


def _header(uri: str, separator: str) -> list[str] | None:
    """Return the names in the first non-empty line of a file; None if the file is empty or cannot be read."""
    try:
        files, path = filesystem(path_of_uri(uri))
        with files.open_input_stream(path) as file:  # decompresses files by their endings
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
            return next((row for row in csv.reader(text, delimiter=separator) if any(map(str.strip, row))), None)
    except (OSError, ValueError, csv.Error):
        return None
