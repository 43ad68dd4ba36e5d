"""Reduce, on a cluster: Spark runs the statements of `msgid.audit`, and Python in its tasks reads what SQL cannot."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F

from msgid.audit.duck import Duck
from msgid.audit.facts import Counted, Facts, Gap, GeneratorRow, KindRow, LogRow, NodeRow, merged
from spark_ext._private import is_classic
from spark_ext._settings import settings
from spark_ext._shipping import shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

FEW: Final = 100_000
"""The most rows of a relation that the driver reads, so that the statements about it need no plan of Spark."""
_NAME: Final = re.compile(r"\{(\w+)\}")
_JOINED: Final = re.compile(r"(?:JOIN|EXISTS \(SELECT 1 FROM|IN \(SELECT off FROM) \{(\w+)\}")
_ROWS: Final[dict[str, type[Any]]] = {
    "kinds": KindRow, "found": Counted, "gaps": Gap, "logs": LogRow, "generators": GeneratorRow, "nodes": NodeRow,
}  # fmt: skip


class SparkEngine:
    """A session of Spark, and DuckDB on its driver for the statements that read few rows alone.

    A relation is a DataFrame, or a table of DuckDB, or both. Its name stands in braces in the text of a statement, so
    the session gets no name.
    """

    def __init__(self, spark: SparkSession, max_gaps: int) -> None:
        self.spark, self._max_gaps = spark, max_gaps
        self._duck = Duck()
        self._frames: dict[str, DataFrame] = {}
        self._few: set[str] = set()

    def add(self, name: str, df: DataFrame) -> str:
        """Return the name of a relation with the rows of a DataFrame."""
        name = self._duck.new_name(name)
        self._frames[name] = df
        return f"{{{name}}}"

    def frame(self, text: str) -> DataFrame:
        """Return the rows of a query as a DataFrame."""
        frames: dict[str, Any] = {name: self._frame(name) for name in _NAME.findall(text)}
        for name in self._few.intersection(_JOINED.findall(text)):
            frames[name] = F.broadcast(frames[name])
        return self.spark.sql(text, **frames)

    def _frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            rows = self._duck.table(f"SELECT * FROM {name}")
            if len(rows):
                self._frames[name] = self.spark.createDataFrame(rows)
            else:  # Spark Connect refuses a table without rows
                null = pa.Table.from_pylist([{}], schema=rows.schema)
                self._frames[name] = self.spark.createDataFrame(null).limit(0)
        return self._frames[name]

    def _of_few(self, text: str) -> str | None:
        """Return a query as DuckDB reads it, if each of its relations has few rows, or None."""
        if not self._few.issuperset(_NAME.findall(text)):
            return None
        return _NAME.sub(r"\1", text)

    def kept(self, name: str, text: str) -> str:
        """Return the name of a relation with the rows of a query, which is run once.

        If the query reads few rows alone, DuckDB runs it.
        """
        of_few = self._of_few(text)
        if of_few is not None:
            table = self._duck.kept(name, of_few)
            self._few.add(table)
            return f"{{{table}}}"
        df = kept(self.frame(text))
        relation = self.add(name, df)
        if df.count() <= FEW:
            table, rows = relation.strip("{}"), df.toArrow()
            # Spark holds text that is not UTF-8, and DuckDB does not: the statements about it are Spark's.
            with suppress(pa.ArrowInvalid):
                rows.validate(full=True)
                self._duck.register(table, rows)
                self._few.add(table)
        return relation

    def rows(self, text: str) -> list[Any]:
        """Return the rows of a query."""
        of_few = self._of_few(text)
        return self.frame(text).collect() if of_few is None else self._duck.rows(of_few)

    def facts(self, text: str, function: Callable[..., Facts], group: str | None = None) -> Iterable[Facts]:
        """Return the facts of the rows of a query, which tasks compute.

        Parameters
        ----------
        text : str
            The query.
        function : callable
            Returns the facts of some rows, as one array of NumPy per column, or one list of text.
        group : str, optional
            The column whose equal values are in one task, all of whose rows are passed together. Default: the rows of a
            batch are.
        """
        of_few = self._of_few(text)
        if of_few is not None:
            return self._duck.facts(of_few, function, group)
        df, max_gaps = self.frame(text), self._max_gaps
        if group is not None:
            df = df.repartition(group)

        def reduced(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            if group is None:
                parts = [function(*(column.to_pylist() for column in batch.columns)) for batch in batches]
            else:
                filled = [batch for batch in batches if batch.num_rows]
                columns = pa.Table.from_batches(filled).columns if filled else []
                parts = [function(*(column.to_numpy() for column in columns))] if filled else []
            if parts:
                yield pa.RecordBatch.from_arrays([pa.array([as_json(merged(parts, max_gaps))])], ["facts"])

        # With long offsets, Spark refuses the text that a function returns.
        with settings(self.spark, {"spark.sql.execution.arrow.useLargeVarTypes": "false"}):
            return [of_json(row["facts"]) for row in df.mapInArrow(shipped(reduced), "facts string").collect()]


def as_json(facts: Facts) -> str:
    """Return facts as JSON."""
    return json.dumps(facts, default=lambda value: value.isoformat() if isinstance(value, datetime) else int(value))


def of_json(text: str) -> Facts:
    """Return the facts that a text of JSON has."""
    values = dict(zip(Facts._fields, json.loads(text), strict=True))
    for name, row in _ROWS.items():
        moments = [index for index, hint in enumerate(row.__annotations__.values()) if "datetime" in str(hint)]
        for one in values[name]:
            for index in moments:
                one[index] = one[index] and datetime.fromisoformat(one[index])
        values[name] = [row(*one) for one in values[name]]
    return Facts(**values)


def kept(df: DataFrame) -> DataFrame:
    """Return a DataFrame with the same rows, which are computed once and not planned again.

    If the session has a checkpoint folder, the rows are there, and survive the loss of an executor. Else they are a
    local checkpoint: if an executor is lost, the audit ends with Spark's error.
    """
    spark = df.sparkSession
    if is_classic(spark):
        has_folder = spark.sparkContext.getCheckpointDir() is not None
    else:
        has_folder = spark.conf.get("spark.checkpoint.dir", None) is not None
    return df.checkpoint() if has_folder else df.localCheckpoint(eager=False)
