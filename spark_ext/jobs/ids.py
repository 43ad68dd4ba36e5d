"""The job ``ids``: take the ids in a file of messages apart.

The parts are usable by themselves: `read_messages`, `with_id_columns`, `split_malformed`.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from msgid import layout
from spark_ext.expressions import hex_text, is_v1, reason
from spark_ext.reading import try_parse_id
from spark_ext.v0 import try_parse_v0, try_translate_v0

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["FORMATS", "BadInput", "Summary", "read_messages", "run", "split_malformed", "with_id_columns"]

FORMATS = ("csv", "tsv", "json", "parquet", "text")
REASON = "reason"

_CORRUPT = "_corrupt_record"
_ENDINGS = {"csv": "csv", "tsv": "tsv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}


class BadInput(ValueError):
    """What was asked for does not go together with the input; the message says what and what would."""


class Summary(NamedTuple):
    """What a run has written: how many rows of each kind, and how many were kept aside."""

    kinds: dict[str, int]
    malformed: int

    @property
    def rows(self) -> int:
        """All rows read."""
        return sum(self.kinds.values()) + self.malformed


def guess_format(path: str) -> str:
    """Guess a format by a path's ending, looking through compression; ``text`` where it says nothing.

    >>> guess_format("logs/ids.tsv.gz"), guess_format("ids.txt")
    ('tsv', 'text')
    """
    endings = [
        suffix[1:].lower() for suffix in PurePath(path).suffixes if suffix.lower() not in (".gz", ".bz2", ".zst")
    ]
    return _ENDINGS.get(endings[-1], "text") if endings else "text"


def read_messages(spark: SparkSession, path: str, format: str | None = None) -> DataFrame:
    """Read a file or folder of messages.

    CSV and TSV have a header, and their columns stay text; each line of a text file is a ``value``. A line that does
    not fit its header or is no JSON is in the column ``_corrupt_record``, as Spark has it, with what could be read.
    """
    format = format or guess_format(path)
    if format not in ("csv", "tsv"):
        return spark.read.format(format).load(path)
    options = {"sep": "\t" if format == "tsv" else ",", "header": True, "escape": '"', "multiLine": format == "csv"}
    names = spark.read.options(**options).csv(path).columns
    # With a schema that has the column for it, Spark keeps a line of too few or too many columns whole.
    fields = [StructField(name, StringType()) for name in (*names, _CORRUPT)]
    return spark.read.options(**options, columnNameOfCorruptRecord=_CORRUPT).schema(StructType(fields)).csv(path)


def with_id_columns(df: DataFrame, column: str = "id") -> DataFrame:
    """Add what the ids in a column say, one column a field, each named after the column: ``id_kind``, ``id_time`` ...

    Fields that an id's kind does not have are NULL; all are, and ``id_kind`` too, where it is no id.

    Raises:
        BadInput: there is no such column, or a name is taken already.
    """
    id = _ids_of(df, column)
    text = hex_text(id)
    v1, v0 = try_parse_id(id), try_parse_v0(id)
    parts = {
        "kind": F.when(is_v1(text), F.lit(layout.KIND_V1)).otherwise(v0.kind),
        "canonical": F.when(is_v1(text), F.upper(text)).otherwise(try_translate_v0(id)),
        "time": v1.time,
        "mac": v1.mac,
        "origin": v1.origin,
        "sequence": v1.sequence,
        "host": v0.host,
        "port": v0.port,
        "offset": v0.offset,
        "pid": F.coalesce(v1.pid, v0.pid),
        "loader_hash": v0.loader_hash,
        "elapsed_ms": v0.elapsed_ms,
        "counter": v0.counter,
    }
    added = {f"{column}_{name}": part for name, part in parts.items()}
    taken = sorted(set(added) & set(df.columns))
    if taken:
        raise BadInput(f"the input has a column {taken[0]!r} already; rename it, or the column of ids")
    return df.withColumns(added)


def _ids_of(df: DataFrame, column: str) -> Column:
    if column not in df.columns or column == _CORRUPT:
        raise BadInput(f"no column {column!r}; there are: {', '.join(name for name in df.columns if name != _CORRUPT)}")
    return df[quoted(column)]


def quoted(name: str) -> str:
    """Quote a column's name, in which Spark would take a dot for a struct's field."""
    return "`" + name.replace("`", "``") + "`"


def split_malformed(df: DataFrame, column: str = "id") -> tuple[DataFrame, DataFrame]:
    """Part the rows that hold an id from those that do not; the latter get a column ``reason``.

    Every row is in one of the two, as it was read.
    """
    text = hex_text(_ids_of(df, column))
    why = F.when(text.isNull(), F.lit("no id")).otherwise(reason(text))
    if _CORRUPT in df.columns:
        why = F.when(F.col(_CORRUPT).isNotNull(), F.lit("the line does not fit the format")).otherwise(why)
    if REASON in df.columns:
        raise BadInput(f"the input has a column {REASON!r} already; rename it")
    marked = df.withColumn(REASON, why)
    good = marked.where(F.col(REASON).isNull()).drop(REASON, _CORRUPT)
    return good, marked.where(F.col(REASON).isNotNull())


def run(
    spark: SparkSession, input: str, output: str, *, column: str = "id", format: str | None = None, mode: str = "error"
) -> Summary:
    """Read messages, write them as Parquet with their ids taken apart, and keep malformed rows aside.

    Args:
        spark: the session.
        input: a file or folder; what Spark can read.
        output: a folder: ``ids`` and ``malformed`` in it are written.
        column: the column of ids; ``value`` for a text file.
        format: one of `FORMATS`; default: by the path's ending.
        mode: Spark's save mode, ``error`` or ``overwrite``.

    Raises:
        BadInput: the input has no such column, or columns of names that the job adds.
    """
    messages = read_messages(spark, input, format)
    good, malformed = split_malformed(messages, column)
    ids_path, malformed_path = f"{output}/ids", f"{output}/malformed"
    with_id_columns(good, column).write.mode(mode).parquet(ids_path)
    malformed.write.mode(mode).parquet(malformed_path)
    counted = spark.read.parquet(ids_path).groupBy(F.col(quoted(f"{column}_kind")).alias("kind")).count().collect()
    found = {row["kind"]: row["count"] for row in counted}
    kinds: dict[str, int] = {kind: found[kind] for kind in layout.KINDS if kind in found}
    return Summary(kinds, spark.read.parquet(malformed_path).count())
