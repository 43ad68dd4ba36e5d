"""Report, on a cluster: the rows of a check, as a DataFrame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F

from msgid import layout
from msgid.audit.definitions import MALFORMED_KIND
from msgid.audit.odd_values import is_of_month_before, kind_of_text
from msgid.audit.reduction import COUNTED_STARTS
from msgid.audit.runs import facts_of_words
from spark_ext._shipping import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from msgid.audit.facts import Finding
    from msgid.audit.options import Rules
    from msgid.audit.reduction import Reduction
    from spark_ext.auditing._engine import SparkEngine
    from spark_ext.auditing._roles import Roles

_OF_LOGS: Final = {
    "duplicate_messages": None,
    "conflicting_messages": None,
    "late_messages": "seconds_late",
    "time_backwards": "seconds_back",
}
"""The checks of messages in logs, and the name of the seconds by which a message is wrong."""
_OF_IDS: Final = {"duplicate_ids": "n > contents", "conflicting_ids": "contents > 1"}
_OF_KINDS: Final = {"malformed_ids": MALFORMED_KIND, "ambiguous_ids": layout.KIND_AMBIGUOUS}
_KEY: Final = ["key", "part", "place"]
_EVERY: Final = 1 << 40


class Lists:
    """The rows of each check of an audit. The relations of the statements live as long."""

    def __init__(
        self, engine: SparkEngine, roles: Roles, reduction: Reduction, rules: Rules, findings: list[Finding]
    ) -> None:
        self._engine, self._roles, self._reduction, self._rules = engine, roles, reduction, rules
        self._findings = findings

    def __call__(self, check: str) -> DataFrame:
        """Return the rows of a check, in the order of their logs, offsets or IDs."""
        if check == "missing_offsets":
            ranges = self._faults(check).select("log", "low", "high", "n")
            return ranges.toDF("log", "first", "last", "count").orderBy("log", "first")
        if check in _OF_LOGS:
            return self._of_logs(check)
        if check == "missing_sequences":
            return self._sequences()
        if check in _OF_IDS:
            return self._repeated_ids(_OF_IDS[check]).select("whole.*")
        if check in ("missing_ids", "future_ids", "orphan_ids", "v0_month_wrap", *_OF_KINDS):
            return self._of_ids(check).select("whole.*")
        rows = [(one.scope, one.count, one.example, one.meaning) for one in self._findings if one.check == check]
        schema = "scope string, count bigint, example string, meaning string"
        return self._engine.spark.createDataFrame(rows, schema)

    def _relation(self, name: str) -> DataFrame:
        return self._engine.frame(f"SELECT * FROM {self._reduction.relation(name)}")

    def _faults(self, check: str) -> DataFrame:
        """Return the faults of messages, with the name of the log."""
        faults = self._relation("faults").where(F.col("fault") == check)
        return faults if self._roles.has_offsets else faults.withColumn("log", _mac_address(F.col("log")))

    def _of_logs(self, check: str) -> DataFrame:
        faults = self._faults(check).select("log", F.col("low").alias("off"), "wrong")
        if not self._roles.has_offsets:  # the IDs are the positions
            rows = self._relation("positions").withColumn("log", _mac_address(F.col("log")))
            numbers = rows.join(faults, ["log", "off"]).groupBy("log", "off").agg(F.count("*").alias("rows"))
            return numbers.withColumnRenamed("off", "offset").orderBy("log", "offset")
        rows = self._roles.placed(whole=F.struct("*")).select("log", "off", "whole")
        seconds = _OF_LOGS[check]
        wrong = [] if seconds is None else [(F.col("wrong") / 1_000_000).alias(seconds)]
        position = [F.col("log").alias("msgid_log"), F.col("off").alias("msgid_offset")]
        return rows.join(faults, ["log", "off"]).orderBy("log", "off").select(*position, *wrong, "whole.*")

    def _with_ids(self) -> DataFrame:
        return self._roles.ids(whole=F.struct("*"))

    def _repeated_ids(self, condition: str) -> DataFrame:
        rows, parts = self._with_ids(), []
        columns = ["value", *_KEY, "whole"]
        if self._reduction.has("repeated_ids"):
            keys = self._relation("repeated_ids").where(condition).select(*_KEY)
            parts.append(rows.join(keys, _KEY, "left_semi").select(*columns))
        if self._reduction.has("repeated_others"):
            values = self._relation("repeated_others").where(condition).select(F.col("identity").alias("value"))
            parts.append(rows.join(values, "value", "left_semi").select(*columns))
        repeated = parts[0] if parts else rows.where("false").select(*columns)
        return (repeated.unionByName(parts[1]) if len(parts) > 1 else repeated).orderBy(*columns[:-1])

    def _of_ids(self, check: str) -> DataFrame:
        rows, value = self._with_ids(), F.col("value")
        if check == "missing_ids":
            return rows.where(F.col("key").isNull() & value.isNull())
        if check == "future_ids":
            return rows.where("future = 1")
        if check == "orphan_ids":
            of_parents = self._roles.ids(parent=self._roles.parent(), whole=F.struct("*"))
            return of_parents.join(self._relation("orphans"), [*_KEY, "parent"], "left_semi")
        empty = (value == "") if check == "malformed_ids" else F.lit(False)
        if not self._reduction.has("odd"):
            return rows.where(empty)
        odd = self._relation("odd").mapInArrow(shipped(_kinds), "value string, kind string, wraps boolean")
        wanted = F.col("wraps") if check == "v0_month_wrap" else F.col("kind") == _OF_KINDS[check]
        listed = rows.join(odd.where(wanted).select("value"), "value", "left_semi")
        return listed.unionByName(rows.where(empty)) if check == "malformed_ids" else listed

    def _sequences(self) -> DataFrame:
        """Return the missing ranges of sequence numbers, all of them."""
        rules = replace(self._rules, max_gaps=_EVERY)

        def gaps(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            filled = [batch for batch in batches if batch.num_rows]
            columns = pa.Table.from_batches(filled).columns if filled else []
            gaps = facts_of_words([column.to_numpy() for column in columns], rules).gaps if filled else []
            rows = [(gap.scope, gap.first, gap.last, gap.count) for gap in gaps]
            names = ("generator", "first", "last", "count")
            types = (pa.string(), pa.int64(), pa.int64(), pa.int64())
            values = [*zip(*rows, strict=True)] or [()] * len(names)
            arrays = [pa.array(column, kind) for column, kind in zip(values, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names)

        spans = self._engine.frame(self._reduction.text("spans", counted=COUNTED_STARTS)).repartition("node")
        schema = "generator string, first bigint, last bigint, count bigint"
        return spans.mapInArrow(shipped(gaps), schema).orderBy("generator", "first")


def _kinds(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the kinds of odd values, and whether each is of a month before its rows."""
    for batch in batches:
        values, near = batch["identity"].to_pylist(), batch["near"].to_pylist()
        kinds = [kind_of_text(value) for value in values]
        wraps = [
            kind.elapsed_ms is not None and is_of_month_before(kind.elapsed_ms, moment)
            for kind, moment in zip(kinds, near, strict=True)
        ]
        arrays = [pa.array(values, pa.string()), pa.array([kind.kind for kind in kinds]), pa.array(wraps, pa.bool_())]
        yield pa.RecordBatch.from_arrays(arrays, ["value", "kind", "wraps"])


def _mac_address(node: Column) -> Column:
    """Return a node written as a MAC address."""
    digits = F.lower(F.substring(F.hex(node.bitwiseOR(1 << 48)), 2, 12))
    return F.concat_ws(":", *(F.substring(digits, start, 2) for start in range(1, 13, 2)))
