"""CSV and TSV files: each file's columns are read by the names in its own header.

Spark's reader finds lines with too few or too many columns. This module adds checks, because in its mode PERMISSIVE,
Spark 4.3:

- reads 1,001 lines with an unclosed quotation mark as one valid row. Without the option ``multiLine``, it splits valid
  cells with a line break, and the first part is a valid row;
- reads all files by position, so that columns in another order give wrong values;
- accepts a line with bytes that are not UTF-8 as a valid row.
"""

from __future__ import annotations

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spark_ext._filesystem import filesystem, literal, path_of_uri
from spark_ext.columns._expressions import CORRUPT, OTHER_HEADER, quoted_name
from spark_ext.columns._udfs import arrow_column
from spark_ext.jobs._formats import EVERY_FILE, BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

SEPARATORS: Final = {"csv": ",", "tsv": "\t"}
_THREADS: Final = 16
_FILE: Final = "_metadata.file_path"
_BYTES: Final = "ISO-8859-1"
"""The encoding in which each byte is a character."""
_ANY_SIZE: Final = (1 << 31) - 1
_MISREAD: Final = "_misread_record"
_NOT_TEXT: Final = "not UTF-8"


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
    the header of their file. A line of too few or too many columns, or that is not UTF-8, is kept there too. So are
    cells with line breaks in a file with an unclosed quotation mark: such a cell may contain lines of its own.

    Args:
        spark: The session.
        files: A file, a folder, or the names of files.
        format: ``csv`` or ``tsv``.
        reader: Reads the rows.
        reader_now: Returns a batch reader of the same files.
        stream: Whether to follow the files of a folder. The columns are taken from the first file.
        schema: The columns. Default: those of the first file.

    Raises:
        BadInput: if no header is in UTF-8, or if the first one has the name ``_corrupt_record``.
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
        foreign = next((uri for uri in uris if headers[uri] is not None), None)
        if foreign is not None:
            raise BadInput(f"the header of {path_of_uri(foreign)} is not UTF-8; convert the file, such as from UTF-16")
        every = reader_now().options(**options).csv(files).columns
        header, names = None, [name for name in every if name not in folders]
    else:
        header, place = headers[first], path_of_uri(first)
        # To find the names in a file of several lines per row, Spark reads its path as a pattern again.
        is_plain = literal(place) == place
        one = spark.read.options(**{**options, "multiLine": is_plain and options["multiLine"]}, **EVERY_FILE)
        names = one.csv(literal(place)).columns
    taken = next((name for name in names if name.lower() == CORRUPT), None)
    if taken is not None:
        raise BadInput(f"the input has a column {taken!r} already; rename it")
    fields = [StructField(name, StringType()) for name in (*names, *folders, CORRUPT)]
    options |= {"encoding": _BYTES, "columnNameOfCorruptRecord": CORRUPT}
    read: DataFrame = reader.options(**options).schema(StructType(fields)).csv(files)
    if format == "csv" and names:
        read = _without_merged_lines(read, names, separator)
    if header is None or (not stream and all(found in (None, header) for found in headers.values())):
        return _as_text(read, names, separator)
    return _by_name(read, names, header, separator)


def _without_merged_lines(df: DataFrame, names: list[str], separator: str) -> DataFrame:
    """Keep a row with a line break in a cell as a corrupt record, if the quotation marks of its file do not match."""
    import pyarrow as pa

    def closed(uris: Any) -> Any:
        encoded = uris.dictionary_encode()
        known = [_has_closed_cells(uri, separator, _state(uri)) for uri in encoded.dictionary.to_pylist()]
        return pa.array(known, pa.bool_()).take(encoded.indices)

    cells = [F.col(quoted_name(name)) for name in names]
    has_break = F.coalesce(reduce(lambda some, other: some | other, (_has_break(cell) for cell in cells)), F.lit(False))
    # Only files with such cells are read a second time.
    is_whole = arrow_column(closed, pa.bool_(), F.when(has_break, F.col(_FILE)))
    merged = F.when(~is_whole, _line(cells, separator))
    return df.withColumn(CORRUPT, F.coalesce(F.col(CORRUPT), merged))


def _has_break(cell: Column) -> Column:
    return F.coalesce(cell.contains("\n") | cell.contains("\r"), F.lit(False))


def _state(uri: str) -> tuple[int, int]:
    """Return the size and the modification time of a file."""
    files, path = filesystem(path_of_uri(uri))
    info = files.get_file_info(path)
    return info.size, info.mtime_ns


@lru_cache(maxsize=64)
def _has_closed_cells(uri: str, separator: str, state: tuple[int, int]) -> bool:
    """Check that each quoted cell of a file ends at a separator; ``state`` is new if the file has changed."""
    csv.field_size_limit(_ANY_SIZE)
    try:
        files, path = filesystem(path_of_uri(uri))
        with files.open_input_stream(path) as file:  # decompresses files by their endings
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
            for _ in csv.reader(text, delimiter=separator, strict=True):
                pass
    except (OSError, csv.Error):
        return False
    return True


def _as_text(df: DataFrame, names: list[str], separator: str) -> DataFrame:
    """Return the columns of bytes as text; a row that is not UTF-8 is kept as a line too."""
    held = [_text(F.col(quoted_name(name))) for name in names]
    is_text = reduce(lambda some, other: some & other, (_is_utf8(text) for text in held), F.lit(True))
    line = F.when(~is_text, _text(_line([F.col(quoted_name(name)) for name in names], separator)))
    others = [quoted_name(name) for name in df.columns if name not in (*names, CORRUPT)]
    texts = (text.alias(name) for name, text in zip(names, held, strict=True))
    return df.select(*texts, *others, F.coalesce(_text(F.col(CORRUPT)), line).alias(CORRUPT))


def _text(bytes: Column) -> Column:
    """Return the text of bytes that were read as characters of ISO 8859-1: Spark replaces bytes that are not UTF-8."""
    return F.encode(bytes, _BYTES).cast("string")


def _is_utf8(text: Column) -> Column:
    return F.coalesce(F.is_valid_utf8(text), F.lit(True))


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
    line = _line([F.get("held", F.lit(n)) for n in range(len(names))], separator)
    misread = F.concat(F.lit(OTHER_HEADER), F.col("found.header"), F.lit("\n"), _text(F.coalesce(F.col(CORRUPT), line)))
    fits = F.col("found.places").isNotNull()
    # The bytes of a misread line stay in its text.
    named = moved.select(
        *(F.get("held", F.get("found.places", F.lit(n))).alias(name) for n, name in enumerate(names)),
        *(quoted_name(name) for name in others),
        F.when(fits, F.col(CORRUPT)).alias(CORRUPT),
        F.when(~fits, misread).alias(_MISREAD),
    )
    read = _as_text(named, names, separator)
    return read.withColumn(CORRUPT, F.coalesce(_MISREAD, CORRUPT)).drop(_MISREAD)


def _line(cells: list[Column], separator: str) -> Column:
    """Return cells as a line of the file."""
    numbered = (cell.alias(str(place)) for place, cell in enumerate(cells))
    return F.to_csv(F.struct(*numbered), {"sep": separator, "escape": '"'})


def _places(found: list[str] | None, header: list[str], separator: str) -> dict[str, Any]:
    """Return the position of each column in another header; the header itself if its names differ.

    >>> _places(["b", "a"], ["a", "b"], ","), _places(["a", "c"], ["a", "b"], ",")
    ({'places': [1, 0], 'header': None}, {'places': None, 'header': 'a,c'})
    """
    if found == header:
        return {"places": list(range(len(header))), "header": None}
    if found is not None and sorted(found) == sorted(header) and len(set(header)) == len(header):
        return {"places": [found.index(name) for name in header], "header": None}
    return {"places": None, "header": separator.join(found) if found else _NOT_TEXT}


def _header(uri: str, separator: str) -> list[str] | None:
    """Return the names in the first non-empty line of a file; None if the file is empty or cannot be read.

    The list is empty if the line has a NUL character: the file is in UTF-16 or UTF-32.
    """
    try:
        files, path = filesystem(path_of_uri(uri))
        with files.open_input_stream(path) as file:  # decompresses files by their endings
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
            header = next((row for row in csv.reader(text, delimiter=separator) if any(map(str.strip, row))), None)
    except (OSError, ValueError, csv.Error):
        return None
    return [] if header is not None and "\0" in "".join(header) else header
