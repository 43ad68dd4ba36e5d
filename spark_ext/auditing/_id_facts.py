"""The facts of single IDs on Spark: those of version 1 by aggregations, those of other values by `msgid.audit._ids`."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from msgid import layout
from msgid.audit._ids import Values, joined_ids, other_of, value_facts
from msgid.audit._logs import NEVER
from msgid.audit.definitions import TABLE
from msgid.audit.facts import Counted, Facts, part_of
from spark_ext._shipping import shipped
from spark_ext.auditing.summaries import NULL, OTHER, WORD_BITS, bits_in, id_key, is_set
from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._identity import identity
from spark_ext.columns.reading import id_origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from msgid._known_tables import Columns

MOST: Final = {"values": 100_000}
"""The number of values that are not version-1 IDs up to which a table is one task."""


def id_facts(words: DataFrame, df: DataFrame, columns: Columns) -> Facts:
    """Return the kinds of the IDs of a table, and the findings about single IDs.

    Args:
        words: The summary that `spark_ext.auditing.summaries.id_words` returned.
        df: The rows, in which examples of duplicates are looked for.
        columns: The columns of the rows.
    """
    v1, others = _v1_facts(words, df, columns)
    return joined_ids([v1, *(_value_facts(words, others) if others else ())])


def _v1_facts(words: DataFrame, df: DataFrame, columns: Columns) -> tuple[Facts, int]:
    """Return the facts of version-1 IDs, and the number of rows in the summary of other values."""
    key, part, mask = F.col("key"), F.col("part"), F.col("mask")

    def first(name: str) -> Column:
        return F.min(F.when(F.col(name) > 0, _text(key, part, F.bit_count(F.col(name).bitwiseAND(-F.col(name)) - 1))))

    faults = {"duplicate_ids": "duplicate", "conflicting_ids": "conflict", "future_ids": "future"}
    counts = {"duplicate": "duplicates", "conflict": "conflicts", "future": "future"}
    node = F.when(part < OTHER, F.shiftright("node", 40).bitwiseAND(15)).alias("node")
    rows = words.groupBy(node).agg(
        F.count(F.lit(1)).alias("values"), F.sum("n").alias("n"),
        *(F.sum(counts[name]).alias(check) for check, name in faults.items()),
        *(first(f"{name}_mask").alias(f"{check}_text") for check, name in faults.items()),
        F.min(F.when((part < OTHER) & (F.col("n") > bits_in(mask)), _text(key, part, F.lit(0)))).alias("repeated"),
    ).collect()  # fmt: skip
    held = [row for row in rows if row["node"] is not None]
    found = []
    for check in faults:
        text = min((row[f"{check}_text"] for row in held if row[f"{check}_text"]), default=None)
        found.append(Counted(check, TABLE, sum(row[check] for row in held), text=text))
    word = min((row["repeated"] for row in held if row["repeated"]), default=None)
    if not columns.content and word is not None:
        found[0] = found[0]._replace(text=_repeated(word, df, columns))
    kinds = [(layout.KIND_V1, layout.origin_of(row["node"] << 40), row["n"]) for row in held]
    return part_of(found, kinds=kinds), sum(row["values"] for row in rows if row["node"] is None)


def _value_facts(words: DataFrame, count: int) -> list[Facts]:
    """Return the facts of values that are not version-1 IDs: on the driver, or in tasks if there are many."""
    others = words.where(F.col("part") >= OTHER).select("key", "part", "n", "duplicates", "conflicts", "near")
    if count <= MOST["values"]:
        return [_facts(others.toArrow())]
    parts = others.mapInArrow(shipped(_pickled), "facts binary").collect()
    return [pickle.loads(part["facts"]) for part in parts]


def _pickled(tables: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:

    for batch in tables:
        yield pa.record_batch({"facts": [pickle.dumps(_facts(pa.table(batch)))]})


def _facts(rows: pa.Table) -> Facts:
    """Return the facts of rows of a summary whose keys are the identities of values."""

    def value(key: bytes | None, part: int) -> str | None:
        if key is None:
            return None if part == NULL else ""
        return key.decode("utf-8", "replace")

    others = [other_of(value(*row)) for row in zip(rows["key"].to_pylist(), rows["part"].to_pylist(), strict=True)]
    n, duplicates, conflicts = (rows[name].to_numpy() for name in ("n", "duplicates", "conflicts"))
    return value_facts(Values(others, n, duplicates, conflicts, pc.fill_null(rows["near"], NEVER).to_numpy()))


def _text(key: Column, part: Column, bit: Column) -> Column:
    """Return the version-1 ID of a key, part and bit."""
    last = F.hex((part * 32 + bit).bitwiseOR(256))
    return F.when(part < OTHER, F.concat(F.hex(key), F.substring(last, 2, 2)))


def _repeated(word: str, df: DataFrame, columns: Columns) -> str:
    """Return the first version-1 ID that several rows have, by the first ID of the first word that repeats one."""
    assert columns.id is not None
    key, part, bit = id_key(columns.id)
    raw = bytes.fromhex(word)
    same = (key == F.lit(raw[:-1])) & (part == F.lit(raw[-1] // WORD_BITS))
    bits = df.where(same).groupBy(bit.alias("bit")).count().where("count > 1").agg(F.min("bit").alias("bit"))
    return f"{word[:-2]}{raw[-1] + bits.collect()[0]['bit']:02X}"


def parents_of(df: DataFrame, columns: Columns) -> DataFrame:
    """Return one row per derived ID that has a parent: its ``text``, and the parent's ``key``, ``part`` and ``bit``."""
    assert columns.id is not None
    assert columns.parent is not None
    key, part, bit = id_key(columns.parent)
    id = F.col(quoted_name(columns.id))
    rows = df.where((id_origin(id) == "derived") & F.col(quoted_name(columns.parent)).isNotNull())
    rows = rows.select(identity(id).alias("text"), key.alias("key"), part.alias("part"), bit.alias("bit"))
    return rows.where(F.col("part") <= OTHER)


def orphans(words: DataFrame, parents: DataFrame, foreign: DataFrame | None) -> list[Counted]:
    """Return the derived IDs whose parent is not in the table.

    Args:
        words: The summary of all IDs of the table.
        parents: The rows that `parents_of` returned.
        foreign: ``node`` and ``pid`` of generators whose node declares ``derived``, or None.
    """
    if foreign is not None:
        code = F.call_function("shiftleft", F.col("node"), F.lit(16)).bitwiseOR(F.col("pid"))
        made = foreign.select(F.lpad(F.hex(code), 16, "0").alias("generator"))
        generator = F.substring("text", 3, 16).alias("generator")
        parents = parents.withColumn("generator", generator).join(made, "generator", "left_anti")
    joined = parents.join(words.select("key", "part", "mask"), ["key", "part"], "left")
    lost = joined.where(F.col("mask").isNull() | ~is_set(F.col("mask"), F.col("bit")))
    (row,) = lost.agg(F.count(F.lit(1)).alias("count"), F.min("text").alias("text")).collect()
    return [Counted("orphan_ids", TABLE, row["count"], text=row["text"])] if row["count"] else []
