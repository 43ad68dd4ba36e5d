"""How operations grow: the shuffles, sorts and Python workers in Spark's plans, as the page on growth states them."""

import re
from datetime import datetime, timezone

import pytest
from pyspark.sql import functions as F

import spark_ext as ids
from msgid.audit.options import Rules
from msgid.audit.reduction import Reduction
from msgid.retention import RetentionPolicy
from msgid.shared.known_tables import Columns
from spark_ext._private import is_classic
from spark_ext.auditing._engine import SparkEngine
from spark_ext.auditing._roles import Roles

pytestmark = pytest.mark.spark

PLACED = Columns(id="id", source=("source",), offset="offset")
DETAILED = PLACED._replace(timestamp="timestamp", content=("payload",))
ROW = (
    "'0156F7E71C361B21BC024CCDBE00000000' AS id", "'log' AS source", "id AS offset",
    "timestamp_seconds(id) AS timestamp", "'x' AS payload", "'t' AS topic", "0 AS partition", "0L AS segment",
)  # fmt: skip


def audited(df, statement, columns=PLACED):
    """The rows of a statement of an audit."""
    engine = SparkEngine(df.sparkSession, 10)
    relations = Roles(df, columns, Rules()).relations(engine)
    names = {name: getattr(relations, name) for name in ("placed", "contents", "ids", "id_contents")}
    return engine.frame(Reduction(engine, **names, **relations.words).text(statement))


def count(state, message, context):
    return None


# The operation, its shuffles, its sorts, and whether it has a Python worker.
OPERATIONS = {
    "position_id": (lambda df: df.select(ids.position_id("source", "offset", "timestamp")), 0, 0, False),
    "derive_id": (lambda df: df.select(ids.derive_id("id", F.lit("a"))), 0, 0, False),
    "generate_id": (lambda df: df.select(ids.generate_id()), 0, 0, True),
    "assign_id": (lambda df: df.select(ids.assign_id()), 0, 0, False),
    "assign_ids": (lambda df: ids.assign_ids(df, name="x", order_by="offset"), 0, 1, False),
    "deduplicate": (lambda df: ids.deduplicate(df, content=["payload"], order_by="offset"), 1, 2, False),
    "digest": (lambda df: ids.digest(df, source="source", offset="offset", timestamp="timestamp"), 1, 0, False),
    "audit of IDs": (lambda df: audited(df, "words"), 1, 0, False),
    "audit of offsets": (lambda df: audited(df, "log_words"), 1, 0, False),
    "audit of offsets and times": (lambda df: audited(df, "backwards", DETAILED), 1, 1, False),
}


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """Return the path of a table of two files."""
    path = str(tmp_path_factory.mktemp("growth") / "table")
    spark.range(2, numPartitions=2).selectExpr(*ROW).write.parquet(path)
    return path


def plan_of(df, capsys):
    """Return the physical plan."""
    capsys.readouterr()
    df.explain()
    return capsys.readouterr().out


@pytest.mark.details
def test_shuffles_sorts_and_workers_are_those_of_the_page(spark, table, capsys):
    """Each operation, in a plan of rows that are read from files."""
    df, found = spark.read.parquet(table), {}
    for name, (operation, *_) in OPERATIONS.items():
        plan = plan_of(operation(df), capsys)
        workers = re.search("Arrow|Python|Pandas", plan) is not None
        found[name] = (len(re.findall("Exchange ", plan)), len(re.findall(r"Sort \[", plan)), workers)
    assert found == {name: tuple(expected) for name, (_, *expected) in OPERATIONS.items()}


def test_streams_with_state_have_one_shuffle(spark, table, rocksdb, capsys):
    """The rows of a micro-batch are packed before they go to their bucket."""
    stream = spark.readStream.schema(spark.read.parquet(table).schema).parquet(table)
    for result in (
        ids.process(stream, "topic", count),
        ids.deduplicate(stream, timestamp="timestamp", within="1 day"),
    ):
        plan = plan_of(result, capsys)
        assert len(re.findall("Exchange ", plan)) == 1
        assert plan.rindex("MapInArrow") > plan.index("Exchange ")


def test_report_of_segments_shuffles_segments_alone(spark, table, capsys):
    """The rows are aggregated before each shuffle."""
    report = ids.segment_report(spark.read.parquet(table), RetentionPolicy(), datetime.now(timezone.utc))
    lines = plan_of(report, capsys).splitlines()
    scans = [number for number, line in enumerate(lines) if "Scan parquet" in line]
    for scan in scans:
        above = [line for line in lines[:scan] if re.search("Exchange hash|HashAggregate", line)]
        assert "HashAggregate" in above[-1]


@pytest.mark.details
def test_relations_of_an_audit_have_a_row_per_word(spark):
    """A table without gaps has one word per 32 IDs or offsets; without times, no row is sorted."""
    made = "concat('0156F7E71C361B21BC024CCDBE', lpad(hex(id), 8, '0')) AS id"
    rows = spark.range(1 << 17).selectExpr(made, "'log' AS source", "id AS offset")
    assert audited(rows, "words").count() == (1 << 17) // 32
    assert audited(rows, "log_words").count() == (1 << 17) // 32
    plan = audited(rows, "backwards")._jdf.queryExecution().optimizedPlan().toString() if is_classic(spark) else ""
    assert not re.search("Sort|Window", plan)
