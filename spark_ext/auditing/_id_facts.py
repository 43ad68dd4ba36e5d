"""The facts of single IDs on Spark: kinds, malformed values, duplicates, and an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid import layout
from msgid.audit.definitions import LONGEST_MONTH_MS, MALFORMED, TABLE, UUID
from msgid.audit.facts import Counted
from spark_ext.auditing._bits import bits_in, is_set
from spark_ext.auditing.summaries import EMPTY, NULL, OTHER, id_key
from spark_ext.columns._expressions import is_canonical_v0, is_hex, quoted_name
from spark_ext.columns._identity import identity, is_uuid
from spark_ext.columns.reading import id_origin
from spark_ext.columns.v0 import try_parse_v0

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid.audit._columns import Columns

__all__ = ["id_facts", "orphans"]

_MALFORMED: Final = "malformed"
_ORIGINS: Final = [layout.origin_of(bits << 40) for bits in range(16)]
"""The origins by the low four bits of a node's first byte."""


def _kinds(words: DataFrame, *, is_binary: bool) -> DataFrame:
    """Add the kind and the origin of each row of a summary: of malformed values, the reason."""
    text, part = F.col("key").cast("string"), F.col("part")
    empty, length, not_hex, version = MALFORMED
    is_v0 = is_canonical_v0(text) & is_hex(text)
    digits = F.when(F.lit(is_binary), F.substring(text, 3, 1 << 30)).otherwise(text)
    known = F.length(digits).isin(*(2 * n for n in (*layout.V0_LENGTHS, *(1 + n for n in layout.V0_LENGTHS))))
    reason = F.when(~known, F.lit(length)).when(F.unhex(digits).isNull(), F.lit(not_hex)).otherwise(F.lit(version))
    kind = (
        F.when(part < OTHER, F.lit(layout.KIND_V1))
        .when(part == NULL, F.lit("null"))
        .when(part == EMPTY, F.lit(_MALFORMED))
        .when(is_v0, try_parse_v0(text).getField("kind"))
        .when(is_uuid(text), F.lit(UUID))
        .otherwise(F.lit(_MALFORMED))
    )
    origin = (
        F.when(part < OTHER, F.get(F.array(*map(F.lit, _ORIGINS)), F.shiftright("node", 40).bitwiseAND(15).cast("int")))
        .when(part == EMPTY, F.lit(empty))
        .when((part == OTHER) & ~is_v0 & ~is_uuid(text), reason)
    )
    return words.withColumns({"kind": kind, "origin": origin})


def _is_wrapped() -> Column:
    """Return whether a version-0 client ID was made in the month before its row's time."""
    elapsed = try_parse_v0(F.col("key").cast("string")).getField("elapsed_ms") * 1_000
    near = F.timestamp_micros("near")
    # In UTC, whatever the session's time zone is.
    day = F.floor(F.unix_seconds(near) / 86_400).cast("int")
    date = F.date_add(F.lit("1970-01-01").cast("date"), day)
    month = F.unix_date(F.trunc(date, "month")).cast("bigint") * 86_400_000_000
    return elapsed >= F.coalesce(F.col("near") - month, F.lit(LONGEST_MONTH_MS * 1_000))


def _text(key: Column, part: Column, bit: Column) -> Column:
    """Return the identity of a key, part and bit."""
    last = F.hex((part * 32 + bit).bitwiseOR(256))
    return F.when(part < OTHER, F.concat(F.hex(key), F.substring(last, 2, 2))).otherwise(key.cast("string"))


def _lowest_bit(mask: Column) -> Column:
    return F.bit_count(mask.bitwiseAND(-mask) - 1)


def id_facts(
    words: DataFrame, df: DataFrame | None, columns: Columns, *, is_binary: bool
) -> tuple[list[tuple[str, str | None, int]], list[Counted]]:
    """Return the rows by kind and origin, and the findings about IDs of the whole table.

    Args:
        words: The summary that `spark_ext.auditing.summaries.merged_ids` returned.
        df: The rows, in which examples of duplicates are looked for; None if they are gone.
        columns: The columns of the rows.
        is_binary: Whether the IDs are binary.
    """
    words = _kinds(words, is_binary=is_binary)
    is_client = F.col("kind") == layout.KIND_CLIENT_UNIQUE
    wrapped = F.when(is_client, F.when(_is_wrapped(), F.col("n")))
    sums = {"n": F.col("n"), "future": F.col("future"), "wrapped": wrapped}
    for name in ("duplicates", "conflicts"):
        sums[name] = F.when(F.col("part") < EMPTY, F.col(name))
    rows = words.groupBy("kind", "origin").agg(*(F.sum(value).alias(name) for name, value in sums.items())).collect()
    kinds = sorted(
        ((row["kind"], row["origin"], row["n"]) for row in rows), key=lambda kind: (-kind[2], kind[0], kind[1] or "")
    )
    total = {name: sum(row[name] or 0 for row in rows) for name in sums}
    by_kind = {
        kind: sum(n for name, _, n in kinds if name == kind) for kind in ("null", _MALFORMED, layout.KIND_AMBIGUOUS)
    }
    found = {
        "missing_ids": (by_kind["null"], None, None),
        "malformed_ids": (by_kind[_MALFORMED], (F.col("kind") == _MALFORMED) & (F.col("part") == OTHER), F.col("mask")),
        "ambiguous_ids": (by_kind[layout.KIND_AMBIGUOUS], F.col("kind") == layout.KIND_AMBIGUOUS, F.col("mask")),
        "v0_month_wrap": (total["wrapped"], is_client & _is_wrapped(), F.col("mask")),
        "future_ids": (total["future"], F.col("future") > 0, F.col("future_mask")),
        "conflicting_ids": (total["conflicts"], F.col("conflict_mask") > 0, F.col("conflict_mask")),
        "duplicate_ids": (total["duplicates"], F.col("duplicate_mask") > 0, F.col("duplicate_mask")),
    }
    if not columns.content and total["duplicates"]:
        example = None if df is None else _repeated(words, df, columns)
        found["duplicate_ids"] = (total["duplicates"], None, None)
    counted = []
    for check, (count, condition, mask) in found.items():
        if not count:
            continue
        text = None
        if condition is not None and mask is not None:
            value = _text(F.col("key"), F.col("part"), _lowest_bit(mask))
            text = words.where(condition).agg(F.min(value).alias("text")).collect()[0]["text"]
        elif check == "duplicate_ids":
            text = example
        counted.append(Counted(check, TABLE, count, text=text))
    return kinds, counted


def _repeated(words: DataFrame, df: DataFrame, columns: Columns) -> str | None:
    """Return the first ID that several rows have: the first word that repeats one, and then its rows."""
    assert columns.id is not None
    start = _text(F.col("key"), F.col("part"), F.lit(0))
    held = words.where((F.col("n") > bits_in(F.col("mask"))) & (F.col("part") < EMPTY))
    old: str | None = held.where(F.col("part") == OTHER).agg(F.min(start).alias("text")).collect()[0]["text"]
    first = held.where(F.col("part") < OTHER).orderBy(start).limit(1).collect()
    if not first:
        return old
    key, part, bit = id_key(columns.id)
    same = (key == F.lit(bytes(first[0]["key"]))) & (part == F.lit(first[0]["part"]))
    bits = df.where(same).groupBy(bit.alias("bit")).count().where("count > 1").agg(F.min("bit").alias("bit"))
    place = bits.collect()[0]["bit"]
    new = f"{bytes(first[0]['key']).hex().upper()}{first[0]['part'] * 32 + place:02X}"
    return new if old is None else min(old, new)


def orphans(words: DataFrame, df: DataFrame, columns: Columns) -> list[Counted]:
    """Return the derived IDs whose parent is not in the table."""
    assert columns.id is not None
    assert columns.parent is not None
    key, part, bit = id_key(columns.parent)
    id = F.col(quoted_name(columns.id))
    rows = df.where((id_origin(id) == "derived") & F.col(quoted_name(columns.parent)).isNotNull())
    rows = rows.select(identity(id).alias("text"), key.alias("key"), part.alias("part"), bit.alias("bit"))
    rows = rows.where(F.col("part") <= OTHER)
    joined = rows.join(words.select("key", "part", "mask"), ["key", "part"], "left")
    lost = joined.where(F.col("mask").isNull() | ~is_set(F.col("mask"), F.col("bit")))
    (row,) = lost.agg(F.count(F.lit(1)).alias("count"), F.min("text").alias("text")).collect()
    return [Counted("orphan_ids", TABLE, row["count"], text=row["text"])]
