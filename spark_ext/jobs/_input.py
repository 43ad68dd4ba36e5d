"""The input of a job: files of CSV, TSV, JSON lines, text and Parquet, read by Spark, and tables with a log.

Columns of CSV, TSV and JSON are text. A line that Spark cannot read is a row with the line in ``_corrupt_record`` and
the reason in ``_corrupt_reason``. Spark 4.3 accepts lines that it reads wrongly: a cell whose quotation
mark is not closed, bytes that are not UTF-8, a key twice, a second JSON object. They are checked here.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from msgid.audit.parts import Unreadable
from msgid.audit.paths import format_of as format_of_ending
from msgid.shared.known_tables import is_hidden
from spark_ext._filesystem import PathError, filesystem, literal, path_of_uri, resolve
from spark_ext._private import conditions_of, words_of
from spark_ext._settings import settings
from spark_ext.columns.column_types import quoted_name
from spark_ext.columns.json_text import is_changed, is_one_value, marked, unmarked
from spark_ext.columns.reasons import CORRUPT, CORRUPT_REASON
from spark_ext.tables.parquet_uuids import UnreadParquet, read_parquet
from spark_ext.tables.sinks import read_table
from spark_ext.tables.table_formats import format_of_table, table_format, table_format_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.datasource import DataSource

FORMATS: Final = ("csv", "tsv", "json", "parquet", "text")
_ENDINGS: Final = {"csv": "csv", "tsv": "tsv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4")
_SEPARATORS: Final = {"csv": ",", "tsv": "\t"}
_BOOKS: Final = re.compile(r"_SUCCESS|_metadata|_common_metadata|_columns\.json|_writer\.json|\..*\.crc")
"""Files that belong to a table and do not hold rows."""
_PATTERN: Final = re.compile(r"[*?\[{]")
_EVERY_FILE: Final = {"ignoreCorruptFiles": False, "ignoreMissingFiles": False}
"""Options that override settings of the session which skip files in silence."""
_FOLDERS_AS_TEXT: Final = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}
"""The values in names of folders are text: a topic ``007`` is not the topic ``7``."""
_BYTES: Final = "ISO-8859-1"
"""The encoding in which each byte is a character."""
_MOST_KEYS: Final = 2000
_OPEN: Final = (
    "a cell is not closed, or has a quotation mark or a line break inside; multiLine=true reads cells of many lines"
)
_PAIRS: Final = "array<struct<key: string, value: string>>"


class BadInput(ValueError):
    """The options of a job do not fit its input. The message names the option and the values that are allowed."""


class InputWarning(UserWarning):
    """A job does not read all files of its input."""


def guess_format(path: str) -> str:
    """Guess a format by the ending of a path, without the ending of a compression; ``text`` if it is unknown.

    >>> guess_format("logs/ids.tsv.gz"), guess_format("ids.txt")
    ('tsv', 'text')
    """
    endings = [end[1:].lower() for end in PurePath(path).suffixes if end.lower() not in _COMPRESSED]
    return _ENDINGS.get(endings[-1], "text") if endings else "text"


def formats_in(path: str) -> set[str]:
    """Return the formats of a file, or of the files of a folder that Spark reads, by their endings.

    If the folder itself has an ending, it is the format.
    """
    guessed = guess_format(path)
    names = files_in(path) if guessed == "text" else None
    return {guessed} if names is None else {guess_format(name) for name in names if not _is_skipped(name)}


def format_of(path: str) -> str:
    """Return the format of a file, or of all files in a folder, by their endings; ``text`` for unknown endings.

    Raises:
        BadInput: if the files have several formats, or the folder does not have files.
    """
    formats = formats_in(path)
    is_open = _PATTERN.search(path) and not PurePath(path).suffix and literal_path(path) == path
    if len(formats) != 1 or is_open:
        raise BadInput(f"cannot tell the format of {path}: pass --format {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    return formats.pop()


def check_ending(path: str) -> None:
    """Check that the ending of a file is known, or that it does not have one.

    Raises:
        BadInput: if it is unknown, such as that of a page or a spreadsheet.
    """
    with suppress(Unreadable):
        if format_of_ending(PurePath(path).name) in (None, *FORMATS):
            return
    if files_in(path) is None and not _PATTERN.search(path):
        ending = [end for end in PurePath(path).suffixes if end.lower() not in _COMPRESSED][-1]
        formats = ", ".join(FORMATS)
        raise BadInput(f"cannot read {path}: files that end with {ending!a} are not known; pass the format: {formats}")


def literal_path(path: str) -> str:
    """Return the pattern of an existing file or folder with this name; any other path is a pattern itself."""
    import pyarrow.fs as pafs

    try:
        files, inner = filesystem(path)
        exists = files.get_file_info(inner).type != pafs.FileType.NotFound
    except (PathError, OSError):
        return path
    return literal(path) if exists else path


def files_in(folder: str) -> list[str] | None:
    """Return the paths of the files in a folder; None for any other path, and for a store that only Spark can reach."""
    import pyarrow.fs as pafs

    try:
        files, inner = filesystem(folder)
        if files.get_file_info(inner).type != pafs.FileType.Directory:
            return None
        inside = files.get_file_info(pafs.FileSelector(inner, recursive=True))
    except (PathError, OSError):
        return None
    return sorted(info.path[len(inner) :].strip("/") for info in inside if info.type == pafs.FileType.File)


def _is_skipped(name: str, *, nested: bool = False) -> bool:
    """Check whether Spark skips a file of a folder: it is hidden, or not in the folder or in folders of values."""
    *folders, file = name.split("/")
    if is_hidden(*folders, file):
        return True
    return not nested and not all("=" in folder for folder in folders)


def check_files(path: str, *, nested: bool = False) -> None:
    """Warn of files in a folder that Spark would skip in silence.

    Args:
        path: The path of the input.
        nested: Whether Spark reads the files of all folders.

    Raises:
        BadInput: if Spark would skip all files, or cannot read folders of values beside other folders.
    """
    names = files_in(path)
    if names is None:
        if is_hidden(PurePath(path).name):
            raise BadInput(f"cannot read {path}: Spark skips names that begin with '_' or '.'; rename the file")
        return
    skipped = [name for name in names if _is_skipped(name, nested=nested)]
    skipped = [name for name in skipped if not _BOOKS.fullmatch(PurePath(name).name)]
    values = [name for name in names if "/" in name and not _is_skipped(name)]
    others = [name for name in skipped if not _is_skipped(name, nested=True)]
    if values and others:
        raise BadInput(
            f"cannot read {path}: it has folders of values, such as {values[0].split('/')[0]}, and other folders, "
            f"such as {others[0].split('/')[0]}. Pass one of the folders, or a pattern such as {path}/*=*"
        )
    hint = f"; {path}/* reads them too" if others else " (names that begin with '_' or '.')"
    if skipped:
        text = f"files of {path} that are not read: {len(skipped):,}, such as {(others or skipped)[0]}{hint}"
        warnings.warn(text, InputWarning, stacklevel=2)


def holds_table(path: str) -> bool:
    """Check whether an input is a table with a log; False for a store that only Spark can reach."""
    try:
        return table_format(format_of_table(path)).has_log
    except (PathError, OSError):
        return False


def is_table(path: str) -> bool:
    """Check whether a folder holds a table of any table format."""
    return holds_table(path) or formats_in(path) == {"parquet"}


def read_rows(
    spark: SparkSession, path: str, format: str | None = None, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Read the rows of a file, a folder, or a table with a log.

    Args:
        spark: The session.
        path: The path, or a pattern.
        format: One of `FORMATS`, or the name of a table format. Default: found by the path.
        options: Options of Spark's reader of CSV.

    Raises:
        BadInput: if the files do not show the format or the columns.
    """
    has_log = None if format not in table_format_names() else table_format(str(format)).has_log
    if has_log or (format in (None, "parquet") and holds_table(path)):
        return read_logged_table(spark, path, format if has_log else None)
    format = format or format_of(path)
    if options and format not in _SEPARATORS:
        raise BadInput(f"--option is for CSV and TSV, got {path} of the format {format!r}")
    check_files(path)
    with settings(spark, _FOLDERS_AS_TEXT):
        if format in _SEPARATORS:
            return _read_csv(spark, path, _csv_options(_SEPARATORS[format], options or {}))
        if format == "json":
            return read_json(spark, path)
        return _read_parquet(spark, path) if format == "parquet" else _lines(spark, path)


def read_logged_table(spark: SparkSession, folder: str, format: str | None = None) -> DataFrame:
    """Read a table that has a log: without the log, rows that were deleted would be read too.

    Raises:
        BadInput: if the folder is not such a table.
    """
    table_format = format_of_table(folder) if holds_table(folder) else None
    if table_format is None or format not in {None, table_format}:
        kind = "a table with a log" if format is None else f"a table of the format {format!r}"
        raise BadInput(f"cannot read {folder}: it is not {kind}")
    return read_table(spark, folder)


def column_of(df: DataFrame, column: str) -> Column:
    """Return a column by its name; `BadInput` lists the names if it is missing."""
    names = [name for name in df.columns if name not in (CORRUPT, CORRUPT_REASON)]
    if column not in names:
        raise BadInput(f"no column {column!r}; there are: {', '.join(names)}")
    return F.col(quoted_name(column))


def _reader(spark: SparkSession) -> DataFrameReader:
    return spark.read.options(**_EVERY_FILE)


def _lines(spark: SparkSession, path: str) -> DataFrame:
    return _reader(spark).text(literal_path(path))


def _read_parquet(spark: SparkSession, path: str) -> DataFrame:
    """Read Parquet files with the columns of all of them: Spark's default are the columns of one file."""
    try:
        return read_parquet(_reader(spark).option("mergeSchema", True), _reader(spark), literal_path(path))
    except UnreadParquet as error:
        raise BadInput(f"cannot read {path}: {error}") from None
    except Exception as error:
        conditions = conditions_of(error)
        if "UNABLE_TO_INFER_SCHEMA" in conditions:
            raise BadInput(f"cannot read {path}: a Parquet file that shows the columns is missing") from None
        if "CANNOT_MERGE_SCHEMAS" in conditions:
            words = words_of(error, "CANNOT_MERGE_SCHEMAS")
            raise BadInput(f"cannot read {path}: a column has several types in its files: {words}") from None
        raise


class _Csv(NamedTuple):
    """The options of Spark's reader of CSV."""

    sep: str
    escape: str = '"'
    nullValue: str = ""
    multiLine: str = "false"

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Parse lines as Python does, which raises an error where Spark reads an open cell to the end of its file."""
        is_quote = self.escape == '"'
        escape = None if is_quote else self.escape
        return csv.reader(lines, delimiter=self.sep, escapechar=escape, doublequote=is_quote, strict=True)


def _csv_options(separator: str, given: Mapping[str, str]) -> _Csv:
    names = {name.lower(): name for name in _Csv._fields} | {"delimiter": "sep"}
    unknown = [name for name in given if name.lower() not in names]
    if unknown:
        raise BadInput(f"--option must name one of {', '.join(_Csv._fields)}, got {unknown[0]!r}")
    options = _Csv(**{"sep": separator, **{names[name.lower()]: value for name, value in given.items()}})
    for name, value in (("sep", options.sep), ("escape", options.escape)):
        if not re.fullmatch(r"[^\w\s\0]|\t", value) or (name == "sep" and value in ('"', options.escape)):
            raise BadInput(
                f"--option {name} must be one character that no cell begins with, such as ';', got {value!r}"
            )
    return options


def _read_csv(spark: SparkSession, path: str, chosen: _Csv) -> DataFrame:
    """Read CSV or TSV files, which must have one header.

    Without ``multiLine``, Spark's reader finds the lines, drops each header and compares it with the first one. Then
    `from_csv` reads each line, so that the whole line is known of every row.
    """
    has_breaks = chosen.multiLine.lower() == "true"
    # Without lineSep, Spark also ends a line at a carriage return, and half a row can look like a whole one.
    lines = _reader(spark).options(**{} if has_breaks else {"lineSep": "\n"}).text(literal_path(path))
    header, names = _header(path, lines, chosen)
    folders = lines.columns[1:]
    options: dict[str, Any] = {"header": True, "enforceSchema": False, "columnPruning": False}
    quoting = {**chosen._asdict(), "columnNameOfCorruptRecord": CORRUPT}
    cells = [f"c{index}" for index in range(len(names))]
    if has_breaks:
        _check_quotes(lines.inputFiles(), chosen)
        options |= {**quoting, "unescapedQuoteHandling": "RAISE_ERROR"}
        read = _reader(spark).options(**options).schema(_texts(names)).csv(literal_path(path))
        parsed = read.withColumnsRenamed(dict(zip(names, cells, strict=True))).withColumn("line", F.col(CORRUPT))
        is_open = F.lit(False)
    else:
        whole = header.encode().decode(_BYTES)
        options |= {
            "encoding": _BYTES,
            "lineSep": "\n",
            "columnNameOfCorruptRecord": CORRUPT,
            "sep": "\1",
            "quote": "\2",
            "escape": "\2",
        }
        read = _reader(spark).options(**options).schema(_texts([whole])).csv(literal_path(path))
        # Spark would replace bytes that are not UTF-8: they are read as characters.
        line = F.encode(F.regexp_replace(F.coalesce(CORRUPT, quoted_name(whole)), r"\r\z", ""), _BYTES).cast("string")
        schema = ", ".join(f"{name} string" for name in (*cells, CORRUPT))
        parsed = read.select(line.alias("line"), *map(quoted_name, folders))
        parsed = parsed.withColumn("row", F.from_csv("line", schema, quoting)).select("*", "row.*")
        is_open = _is_misquoted(F.col("line"), chosen) | F.contains("line", F.lit("\r"))
    reason = (
        F.when(~F.is_valid_utf8("line"), "the line is not UTF-8")
        .when(is_open, _OPEN)
        .when(F.col(CORRUPT).isNotNull(), "the line has another number of cells than the header")
    )
    return parsed.select(
        *(F.col(cell).alias(name) for cell, name in zip(cells, names, strict=True)),
        *map(quoted_name, folders),
        F.when(reason.isNotNull(), F.col("line")).alias(CORRUPT),
        reason.alias(CORRUPT_REASON),
    )


def _texts(names: Iterable[str]) -> StructType:
    return StructType([StructField(name, StringType()) for name in (*names, CORRUPT)])


def _header(path: str, lines: DataFrame, chosen: _Csv) -> tuple[str, list[str]]:
    """Return the first line of the files, and the names of the columns in it.

    Raises:
        BadInput: if the files are empty, or if the line cannot name columns.
    """
    first = lines.where(F.col("value").rlike(r"\S")).select("value").head()
    if first is None:
        raise BadInput(f"cannot read {path}: a file with a header is missing, which shows the columns")
    header: str = first[0]
    if "\0" in header or "\ufffd" in header:
        raise BadInput(f"the header of {path} is not UTF-8; convert the file, such as from UTF-16")
    try:
        cells = next(chosen.rows([header]))
    except csv.Error as error:
        raise BadInput(f"cannot read the header of {path}: {error}, got {header!r}") from None
    names = [name or f"_c{index}" for index, name in enumerate(cells)]
    _check_names(path, [*names, *lines.columns[1:]])
    return header, names


def _check_names(path: str, names: Iterable[str]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        if name.lower() in (CORRUPT, CORRUPT_REASON):
            raise BadInput(f"the input has a column {name!r} already; rename it")
        if name.lower() in taken:
            both = f"{taken[name.lower()]!r} and {name!r}"
            raise BadInput(f"cannot read {path}: it has the columns {both}, and Spark compares names without case")
        taken[name.lower()] = name


def _is_misquoted(line: Column, chosen: _Csv) -> Column:
    """Return whether a line has a cell that begins with a quotation mark and does not end with one."""
    separator, escape = re.escape(chosen.sep), re.escape(chosen.escape)
    pairs = F.regexp_replace(line, f'{escape}["{escape}]', "")
    cells = F.regexp_replace(pairs, rf'(^|{separator})"[^"]*"(?={separator}|$)', "$1")
    return cells.rlike(rf'(?:^|{separator})"')


def _check_quotes(uris: list[str], chosen: _Csv) -> None:
    """Check that files are UTF-8, that each of their quoted cells ends, and that all rows end alike.

    Spark reads a cell that is not closed to the end of its file as a valid one.

    Raises:
        BadInput: if a file is otherwise.
    """
    csv.field_size_limit((1 << 31) - 1)
    for uri in uris:
        path, last, ends = path_of_uri(uri), [""], set()

        def remembered(lines: Iterable[str], last: list[str] = last) -> Iterator[str]:
            for line in lines:
                last[0] = line
                yield line

        files, inner = filesystem(path)
        with files.open_input_stream(inner) as file:  # decompresses files by their endings
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            try:
                for _ in chosen.rows(remembered(text)):
                    ends.add(last[0][len(last[0].rstrip("\r\n")) :])
            except (csv.Error, UnicodeDecodeError) as error:
                raise BadInput(f"cannot read {path}: {error}") from None
        ends.discard("")  # of the last row
        if len(ends) > 1:
            raise BadInput(f"cannot read {path}: its rows must end alike, got {', '.join(sorted(map(repr, ends)))}")


def read_json(spark: SparkSession, path: str, columns: tuple[str, ...] = (), pairs: tuple[str, ...] = ()) -> DataFrame:
    """Read files with a JSON object per line. Values are text; those of other types are their JSON.

    Args:
        spark: The session.
        path: The path, or a pattern.
        columns: Columns that the result has in any case. Names are compared without regard to case.
        pairs: Columns that are lists of pairs of ``key`` and ``value``.

    Raises:
        BadInput: if an object is missing, or if the objects have more than 2,000 different keys.
    """
    lines = _lines(spark, path).where(F.col("value").rlike(r"\S"))
    folders = lines.columns[1:]
    counted = lines.select(F.explode(F.json_object_keys("value")).alias("key")).groupBy("key").count()
    keys = [row.key for row in counted.orderBy(F.desc("count"), "key").limit(_MOST_KEYS + 1).collect()]
    if len(keys) > _MOST_KEYS:
        raise BadInput(f"cannot read {path}: its objects have more than {_MOST_KEYS:,} different keys")
    if not keys and not columns:
        raise BadInput(f"cannot read {path}: a line with a JSON object is missing, which shows the columns")
    spellings: dict[str, str] = {}  # of spellings that differ in case, the most frequent one is the column
    missing = (name for name in columns if name.lower() not in map(str.lower, folders))
    for key in (*filter(None, keys), *missing):
        spellings.setdefault(key.lower(), key)
    names = [*spellings.values()]
    _check_names(path, [*names, *folders])
    known = F.array(*map(F.lit, names))
    parsing = {"columnNameOfCorruptRecord": CORRUPT, "allowNonNumericNumbers": "false"}
    read = lines.select(
        "value",
        F.json_object_keys("value").alias("keys"),
        F.from_json(marked(F.col("value")), _texts(names), parsing).alias("row"),
        *map(quoted_name, folders),
    )
    cells = {name: F.col("row").getField(name) for name in names}
    listed = {
        name: F.transform(F.from_json(cell, _PAIRS), _unmarked_pair)
        for name, cell in cells.items()
        if name.lower() in pairs
    }
    lacks_key = [cells[name].isNotNull() & _lacks_key(list) for name, list in listed.items()]
    reason = (
        F.when(~F.is_valid_utf8("value"), "the line is not UTF-8")
        .when(F.col("keys").isNull() | F.col("row")[CORRUPT].isNotNull(), "the line is not a JSON object")
        .when(F.size(F.array_distinct("keys")) < F.size("keys"), "the line has a key twice")
        .when(~is_one_value(F.col("value")), "the line has more text after its JSON object")
        .when(F.size(F.array_except("keys", known)) > 0, "the line has an empty key, or a key in another case")
        .when(is_changed(F.col("value")), "the line has half of a surrogate pair, or the noncharacter U+FDD0")
        .when(_any(lacks_key), "the line has a list that is not of pairs with a key")
    )
    return read.select(
        *(listed.get(name, unmarked(cell)).alias(name) for name, cell in cells.items()),
        *map(quoted_name, folders),
        F.when(reason.isNotNull(), F.col("value")).alias(CORRUPT),
        reason.alias(CORRUPT_REASON),
    )


def _unmarked_pair(pair: Column) -> Column:
    return F.struct(*(unmarked(pair[name]).alias(name) for name in ("key", "value")))


def _any(conditions: Iterable[Column]) -> Column:
    return F.exists(F.array(F.lit(False), *conditions), lambda is_true: F.coalesce(is_true, F.lit(False)))


def _lacks_key(pairs: Column) -> Column:
    return pairs.isNull() | F.exists(pairs, lambda pair: pair["key"].isNull())


class JobFiles(NamedTuple):
    """The input of the job ``messages``; `spark_ext.formats.message_formats.MessageFiles` for a format."""

    spark: SparkSession
    path: str
    """The path that the job was given."""
    files: str | None = None
    """The format of files of exported rows, ``parquet`` or ``json``. Default: by their endings."""

    def source(self, source: type[DataSource], **options: str) -> DataFrame:
        """Read with a data source in Python."""
        self.spark.dataSource.register(source)
        resolved = resolve(self.path)  # the source's workers do not see the session's default file system
        path = resolved if "://" in resolved else self.path
        return self.spark.read.format(source.name()).options(**options).load(path)

    def lines(self) -> DataFrame:
        """Read text files: each line is a ``value``."""
        check_files(self.path)
        return _lines(self.spark, self.path)

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
        check_files(self.path, nested=True)
        reader = _reader(self.spark).format("binaryFile").option("recursiveFileLookup", "true")
        return reader.load(literal_path(self.path)).select(F.col("content").alias("value"))

    def rows(self, columns: tuple[str, ...], pairs: tuple[str, ...] = ()) -> DataFrame:
        """Read exported rows: Parquet files, or JSON lines with these columns.

        Raises:
            BadInput: if the format of the files is unknown.
        """
        formats = {self.files} if self.files else formats_in(self.path)
        if len(formats) != 1 or not formats <= {"parquet", "json"}:
            raise BadInput(
                f"cannot tell whether the files of {self.path} are Parquet or JSON: pass --files parquet or json"
            )
        if formats == {"parquet"}:
            return read_rows(self.spark, self.path, "parquet")
        check_files(self.path)
        with settings(self.spark, _FOLDERS_AS_TEXT):
            return read_json(self.spark, self.path, columns, pairs)
