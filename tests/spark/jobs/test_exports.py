"""``python -m spark_ext messages`` on exports of Kafka and RocketMQ, and on payloads in Confluent's framing."""

import json
from datetime import datetime, timezone

import pytest
from helpers.covering import first_by_default

from msgid import kafka, rocketmq
from msgid.schemas import SchemaRegistry, frame
from spark_ext._settings import settings
from spark_ext.jobs import messages_job as job
from spark_ext.jobs._input import BadInput

pytestmark = pytest.mark.spark

MOMENT = datetime(2022, 3, 23, 14, 50, 38, 123000, tzinfo=timezone.utc)
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int,"
    " headers array<struct<key: string, value: binary>>"
)
KAFKA_ROWS = [
    {"key": b"k", "value": b"\xff", "topic": "orders", "partition": 3, "offset": offset, "timestamp": MOMENT}
    for offset in range(3)
]


def written(spark, out):
    """Return the rows of the table in the order of their offsets, malformed rows first."""
    rows = spark.read.parquet(f"{out}/messages").collect()
    return sorted(rows, key=lambda row: -1 if row.offset is None else row.offset)


def kafka_frame(spark):
    """Return rows like those of Spark's Kafka source: one has an ID in a header, one is a tombstone."""
    rows = [{**row, "timestampType": 0, "headers": None} for row in KAFKA_ROWS]
    rows[1] |= {"headers": [{"key": "message_id", "value": UUID.encode()}]}
    rows[2] |= {"value": None}
    return rows, spark.createDataFrame([tuple(row.values()) for row in rows], KAFKA)


@pytest.mark.details
def test_messages_job_on_a_kafka_export_keeps_every_line(spark, tmp_path):
    """A JSON line of other types does not change the other rows, and is in the table with its text."""
    good = {"topic": "orders", "partition": 3, "offset": 7, "timestamp": 1648047038000, "value": "v"}
    lines = [
        json.dumps(good),
        json.dumps({**good, "offset": 8, "timestamp": "2022-03-23T23:50:38+09:00", "headers": []}),
        json.dumps({**good, "offset": "9", "timestamp": "1648047038000"}),
        json.dumps({**good, "offset": 10, "headers": {"message_id": UUID}}),
        json.dumps({**good, "offset": 10.5}),
        json.dumps({**good, "timestamp": "2022-03-23 14:50:38"}),
        '{"topic": "ord',
    ]
    (tmp_path / "export.jsonl").write_text("\n".join(lines))
    found = job.run(spark, str(tmp_path / "export.jsonl"), str(tmp_path / "out"), job.Source("kafka"))
    assert found.states == [("available", 3), ("poisoned", 4)]
    table = written(spark, tmp_path / "out")
    good_rows = [row for row in table if row.state == "available"]
    places = [{**json.loads(line), "offset": offset} for offset, line in enumerate(lines[:2], 7)]
    places.append({**good, "offset": 9})
    assert [row.id for row in good_rows] == [kafka.Record.of(place).message_id() for place in places]
    poisoned = {row.reason: row for row in table if row.state == "poisoned"}
    misfits = {row.reason: bytes(row.original).decode() for row in table if "the line " in (row.reason or "")}
    assert misfits == {
        "invalid message: the line has a list that is not of pairs with a key": lines[3],
        "invalid message: the line is not a JSON object": lines[6],
    }
    assert {"invalid message: no offset of 0 to 281474976710655", "invalid message: no valid timestamp"} < set(poisoned)
    assert all(row.id is None for row in poisoned.values())


COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
    "spark.sql.codegen.fallback": "false",
}
"""Spark raises its error if it cannot compile its code. By default it logs the error, and interprets the plan."""


@pytest.mark.details
def test_spark_compiles_the_plan_of_each_json_export(spark, tmp_path):
    """An ERROR in the log of a valid input leads astray."""
    headers = [{"key": "message_id", "value": UUID}]
    at = {"topic": "orders", "key": "shop", "partition": 0, "offset": 0, "timestamp": 1795219200000}
    place = {"topic": "orders", "brokerName": "a", "queueId": 2, "queueOffset": 0, "storeTimestamp": 0}
    lines = {
        "kafka": {**at, "value": "5", "headers": headers},
        "rocketmq": {**place, "body": "5", "properties": {"UNIQ_KEY": UUID}},
    }
    with settings(spark, COMPILED):
        for name, line in lines.items():
            (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
            found = job.run(spark, str(tmp_path / f"{name}.jsonl"), str(tmp_path / name), job.Source(name))
            assert found.states == [("available", 1)]
            assert [row.id for row in written(spark, tmp_path / name)] == [UUID]


@pytest.mark.details
@pytest.mark.parametrize("how", first_by_default(["json", "parquet"], 1))
def test_messages_job_on_an_export_in_folders_keeps_names_of_digits(spark, tmp_path, how):
    """A topic 007 in the name of a folder is not the topic 7, and its messages have the IDs of plain Python."""
    rows = [{**KAFKA_ROWS[0], "topic": topic, "value": "v", "key": None} for topic in ("007", "008")]
    columns = "key string, value string, topic string, partition int, offset long, timestamp timestamp"
    df = spark.createDataFrame([tuple(row.values()) for row in rows], columns)
    df.write.partitionBy("topic", "partition").format(how).save(str(tmp_path / "export"))
    found = job.run(spark, str(tmp_path / "export"), str(tmp_path / "out"), job.Source("kafka"))
    assert found.states == [("available", 2)]
    table = written(spark, tmp_path / "out")
    assert {row.topic: row.id for row in table} == {row["topic"]: kafka.Record.of(row).message_id() for row in rows}


@pytest.mark.details
def test_messages_job_on_properties_in_json_reads_an_object_and_its_text(spark, tmp_path):
    """The properties of a line are a JSON object, or the text of a JSON object."""
    row = {"topic": "orders", "brokerName": "a", "queueId": 2, "queueOffset": 0, "storeTimestamp": 0, "body": ""}
    lines = [
        {**row, "properties": {"UNIQ_KEY": UUID}},
        {**row, "queueOffset": 1, "properties": json.dumps({"UNIQ_KEY": UUID})},
    ]
    (tmp_path / "export.json").write_text("\n".join(map(json.dumps, lines)))
    job.run(spark, str(tmp_path / "export.json"), str(tmp_path / "out"), job.Source("rocketmq"))
    expected = [rocketmq.Record.of(line).message_id() for line in lines]
    assert [row.id for row in written(spark, tmp_path / "out")] == expected == [UUID, UUID]


@pytest.mark.details
def test_messages_job_with_framed_payloads_checks_what_is_framed(spark, tmp_path):
    """The schema ID of Confluent's framing is in the table; a payload without the framing is poisoned."""
    registry = SchemaRegistry(tmp_path / "registry.json")
    schema = registry.register("orders", '{"type": "integer"}')
    payloads = [frame(schema.id, b"1"), frame(schema.id, b"{}"), frame(900, b"1"), b"1", None]
    rows = [{**KAFKA_ROWS[0], "offset": n, "value": held} for n, held in enumerate(payloads)]
    columns = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
    df = spark.createDataFrame([tuple(row.values()) for row in rows], columns)
    df.write.parquet(str(tmp_path / "export"))
    source = job.Source("kafka", registry=str(tmp_path / "registry.json"), policy="enforce", framing="confluent")
    found = job.run(spark, str(tmp_path / "export"), str(tmp_path / "out"), source)
    assert (found.states, found.reasons) == ([("available", 2), ("poisoned", 3)], [("schema", 3)])
    table = written(spark, tmp_path / "out")
    assert [row.schema and row.schema.id for row in table] == [schema.id, schema.id, 900, None, None]
    assert table[0].payload == payloads[0]
    assert table[2].reason == "schema: unknown schema 900"


def test_messages_job_with_an_unknown_framing_is_refused(spark, tmp_path):
    """The error lists the known framings."""
    (tmp_path / "export.json").write_text("")
    with pytest.raises(BadInput, match="framing must be one of none, confluent, got 'iggy'"):
        job.run(spark, str(tmp_path / "export.json"), str(tmp_path / "out"), job.Source("kafka", framing="iggy"))


@pytest.mark.parametrize("names", [[], ["a.csv"], ["a.json", "b.parquet"]])
def test_messages_job_on_files_of_unknown_format_is_refused(spark, tmp_path, names):
    """Files without a known ending are rejected unless --files names their format."""
    (tmp_path / "export").mkdir()
    for name in names:
        (tmp_path / "export" / name).write_text("")
    with pytest.raises(BadInput, match=r"cannot tell whether the files of .* are Parquet or JSON"):
        job.run(spark, str(tmp_path / "export"), str(tmp_path / "out"), job.Source("kafka"))
    assert not (tmp_path / "out").exists()


@pytest.mark.details
@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_messages_job_on_parquet_columns_in_another_case_reads_them_by_name(spark, tmp_path, sensitive):
    """The headers hold the IDs, so a column that is spelled otherwise is not left out."""
    rows, df = kafka_frame(spark)
    df.toDF(*(name.upper() for name in df.columns)).write.parquet(str(tmp_path / "export"))
    with settings(spark, {"spark.sql.caseSensitive": sensitive}):
        job.run(spark, str(tmp_path / "export"), str(tmp_path / "out"), job.Source("kafka", cluster="eu"))
    assert [row.id for row in written(spark, tmp_path / "out")] == [kafka.Record.of(r).message_id("eu") for r in rows]
