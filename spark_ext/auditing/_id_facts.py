"""The facts of single IDs on Spark: kinds, malformed values, duplicates, and an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid import layout
from msgid.audit.definitions import LONGEST_MONTH_MS, MALFORMED, TABLE, UUID
from msgid.audit.facts import Counted
from spark_ext.auditing._bits import WORD_BITS, bits_in, is_set
from spark_ext.auditing.summaries import EMPTY, NULL, OTHER, id_key
from spark_ext.columns._expressions import is_canonical_v0, is_hex, quoted_name
from spark_ext.columns._identity import identity, is_uuid
from spark_ext.columns.reading import id_origin
from spark_ext.columns.v0 import try_parse_v0

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid._known_tables import Columns

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
    part, old = F.col("part"), F.col("key").cast("string")
    words = _kinds(words, is_binary=is_binary)
    is_client = F.col("kind") == layout.KIND_CLIENT_UNIQUE
    words = words.withColumns(
        {
            "is_wrapped": F.when(is_client, _is_wrapped()),
            "is_odd": (part == OTHER) & F.col("kind").isin(_MALFORMED, layout.KIND_AMBIGUOUS),
            "is_repeated": (part < EMPTY) & (F.col("n") > bits_in(F.col("mask"))),
        }
    )

    def first(mask: str) -> Column:
        return F.min(F.when(F.col(mask) > 0, _text(F.col("key"), part, _lowest_bit(F.col(mask)))))

    def of_id(name: str) -> Column:
        return F.sum(F.when(part < EMPTY, F.col(name)))

    rows = (
        words.groupBy("kind", "origin")
        .agg(
            F.sum("n").alias("n"), F.sum("future").alias("future"),
            F.sum(F.when(F.col("is_wrapped"), F.col("n"))).alias("wrapped"),
            of_id("duplicates").alias("duplicates"), of_id("conflicts").alias("conflicts"),
            F.min(F.when(F.col("is_odd"), old)).alias("odd"),
            F.min(F.when(F.col("is_wrapped"), old)).alias("first_wrapped"),
            first("future_mask").alias("first_future"), first("conflict_mask").alias("first_conflict"),
            first("duplicate_mask").alias("first_duplicate"),
            F.min(F.when(F.col("is_repeated"), _text(F.col("key"), part, F.lit(0)))).alias("first_repeated"),
        )
        .collect()
    )  # fmt: skip
    kinds = sorted(
        ((row["kind"], row["origin"], row["n"]) for row in rows), key=lambda kind: (-kind[2], kind[0], kind[1] or "")
    )

    def total(name: str) -> int:
        return sum(row[name] or 0 for row in rows)

    def least(name: str, kind: str | None = None) -> str | None:
        found = (row[name] for row in rows if kind in (None, row["kind"]))
        return min((text for text in found if text is not None), default=None)

    def rows_of(kind: str) -> int:
        return sum(n for name, _, n in kinds if name == kind)

    duplicate = least("first_duplicate")
    if not columns.content and df is not None and total("duplicates"):
        new = least("first_repeated", layout.KIND_V1)
        others = [row["first_repeated"] for row in rows if row["kind"] != layout.KIND_V1 and row["first_repeated"]]
        duplicate = min([*others, *([] if new is None else [_repeated(new, df, columns)])])
    ambiguous = layout.KIND_AMBIGUOUS
    found = (
        ("missing_ids", rows_of("null"), None),
        ("malformed_ids", rows_of(_MALFORMED), least("odd", _MALFORMED)),
        ("ambiguous_ids", rows_of(ambiguous), least("odd", ambiguous)),
        ("v0_month_wrap", total("wrapped"), least("first_wrapped")),
        ("future_ids", total("future"), least("first_future")),
        ("conflicting_ids", total("conflicts"), least("first_conflict")),
        ("duplicate_ids", total("duplicates"), duplicate),
    )
    return kinds, [Counted(check, TABLE, count, text=text) for check, count, text in found if count]


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


def orphans(words: DataFrame, parents: DataFrame) -> list[Counted]:
    """Return the derived IDs whose parent is not in the table.

    Args:
        words: The summary of all IDs of the table.
        parents: The rows that `parents_of` returned.
    """
    joined = parents.join(words.select("key", "part", "mask"), ["key", "part"], "left")
    lost = joined.where(F.col("mask").isNull() | ~is_set(F.col("mask"), F.col("bit")))
    (row,) = lost.agg(F.count(F.lit(1)).alias("count"), F.min("text").alias("text")).collect()
    return [Counted("orphan_ids", TABLE, row["count"], text=row["text"])] if row["count"] else []
