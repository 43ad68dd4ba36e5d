"""`spark_ext.compare`: the report of Python, made by aggregations."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import msgid
import msgid.audit
import spark_ext
from msgid import layout
from spark_ext.auditing import _small_table
from spark_ext.cli import spark_ext as command

pytestmark = pytest.mark.spark

PLACES = {"source": "source", "offset": "offset"}
PARTS = ("rows", "sent", "findings", "differences", "notes", "not_checked", "complete_until")


def sides(seed, rows=600):
    """A queue and its landed table with losses, changes, repeats, extra messages and rows without a position."""
    chance = random.Random(seed)
    sent = [
        (f"log {n % 3}", n // 3, layout.pack(7, 1, 100 + n, n).hex().upper() if n % 7 else f"order-{n}", f"body {n}")
        for n in range(rows)
    ]
    landed = [list(row) for row in sent if chance.random() > 0.05]
    for row in chance.sample(landed, 20):
        row[chance.choice((2, 3))] = f"other {chance.random()}"
    landed += chance.sample(landed, 10)
    landed += [["log 9", 5, "extra", "x"], [None, 1, None, None], ["log 1", None, "", ""]]
    landed = [[log, offset, id.lower() if id and id.startswith("01") else id, body] for log, offset, id, body in landed]
    columns = ("source", "offset", "id", "body")
    types = (pa.string(), pa.int64(), pa.string(), pa.string())
    return [
        pa.table([pa.array(values, kind) for values, kind in zip(zip(*side, strict=True), types, strict=True)], columns)
        for side in (sent, landed)
    ]


@pytest.mark.parametrize("most", [pytest.param(50_000, marks=pytest.mark.details), pytest.param(0, id="large")])
def test_comparison_is_that_of_python(spark, monkeypatch, most, tmp_path):
    """By position with IDs and content, by position alone, and by ID; on the driver, and by aggregations."""
    monkeypatch.setattr(_small_table, "SMALL_ROWS", most)
    tables = sides(1)
    for name, table in zip(("sent", "landed"), tables, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    frames = [spark.read.parquet(f"{tmp_path}/{name}.parquet") for name in ("sent", "landed")]
    for columns in ({**PLACES, "content": "body"}, {**PLACES, "id": None}, {"max_messages": 7}):
        local = msgid.audit.compare(*tables, **columns)
        report = spark_ext.compare(*frames, **columns)
        for part in PARTS:
            assert getattr(report.local, part) == getattr(local, part), (columns, part)
        assert local.findings
    if most:
        assert [tuple(row) for row in report.differences.collect()] == local.differences
        assert report.not_checked.collect() == [("changed_messages", "without content on both sides")]


def test_sides_have_columns_of_their_own(spark):
    """The rows of Spark's Kafka source are compared with a table of other names."""
    sent = spark.createDataFrame([("orders", 0, n) for n in range(4)], "topic string, partition int, offset bigint")
    rows = [("kafka:kafka/orders/0", n) for n in (0, 1, 3, 3)]
    landed = spark.createDataFrame(rows, "log string, place bigint")
    report = spark_ext.compare(sent, landed, source="log", offset="place")
    assert [(one.fault, one.offset) for one in report.local.differences] == [("lost", 2), ("duplicate", 3)]
    with pytest.raises(ValueError, match="cannot compare sent"):
        spark_ext.compare(sent, landed, source="log", offset="place", sent_columns={"offset": "x"})
    with pytest.raises(ValueError, match="sent must be a table"):
        spark_ext.compare(spark.readStream.format("rate").load(), landed, source="log", offset="place")


def test_command_compares_tables(spark, tmp_path):
    """`--sent` names a table in any format, and `--fail-on` ends with status 3."""
    ids = msgid.generate_batch(20).hex()
    (tmp_path / "acked.txt").write_text("\n".join(ids), encoding="utf-8")
    pq.write_table(pa.table({"id": [id.lower() for id in ids[1:]]}), tmp_path / "landed.parquet")
    call = ["audit", f"{tmp_path}/landed.parquet", "--sent", f"{tmp_path}/acked.txt", "--fail-on", "error"]
    result = CliRunner().invoke(command, call)
    assert result.exit_code == 3, result.output
    assert result.stdout.splitlines()[-1].split() == ["error", "lost_messages", "table", "1", ids[0]]
