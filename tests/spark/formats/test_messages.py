"""`messages`: one table with every message of every source; a malformed message is a row with the reason."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

import spark_ext as ids
from msgid import iggy
from msgid.danube import MessageID, StreamMessage
from msgid.schemas import SchemaRegistry
from spark_ext.formats.iggy_source import IggyDataSource

pytestmark = pytest.mark.spark

GOOD = iggy.Message.new(b"hello", id=7, offset=3, timestamp=1_700_000_000_000_001, headers={"n": 1}, layout="m45")
WRONG_SUM = replace(GOOD, checksum=1)
DANUBE = StreamMessage(
    7, MessageID(9, "/default/events", "b:1", 42), b"5", 1_648_047_038_123, "p", attributes={"a": "1"}
)


def table(spark, values, format, **options):
    """Return the table of some values in their order."""
    type = "string" if format.endswith("json") else "binary"
    df = spark.createDataFrame([(value,) for value in values], f"value {type}").coalesce(1)
    return ids.messages(df, format, **options).withColumn("micros", F.unix_micros("timestamp")).collect()


def test_messages_of_segments_have_their_topic_and_partition(spark, tmp_path):
    """Topic and partition come from Iggy's folders; in other folders, the folder is the source."""
    spark.dataSource.register(IggyDataSource)
    inner = tmp_path / "streams" / "1" / "topics" / "orders" / "partitions" / "3"
    inner.mkdir(parents=True)
    (inner / f"{3:020d}.log").write_bytes(iggy.encode(GOOD, "m45"))
    (row,) = ids.messages(spark.read.format("iggy").load(str(tmp_path))).collect()
    assert (row.source, row.topic, row.partition, row.segment) == ("iggy:1/orders#3", "orders", 3, 3)
    (row,) = ids.messages(spark.read.format("iggy").load(str(inner)), topic="other", partition=8).collect()
    assert (row.source, row.topic, row.partition) == ("iggy:1/other#8", "other", 8)
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "x.log").write_bytes(iggy.encode(GOOD, "m45"))
    (row,) = ids.messages(spark.read.format("iggy").load(str(tmp_path / "bare" / "x.log"))).collect()
    assert (row.source, row.topic, row.partition, row.segment) == (f"iggy:{tmp_path}/bare", None, None, None)


def test_messages_of_rows_without_the_columns_of_the_source_names_those_that_are_missing(spark):
    """A DataFrame of other columns is refused before the query runs."""
    df = spark.createDataFrame([(1, b"x")], "Offset bigint, payload binary")
    with pytest.raises(
        ValueError, match=r"columns of format\('iggy'\), got none of source, stream, topic, .*, original$"
    ):
        ids.messages(df)


def test_messages_of_text_that_is_not_utf8_keep_their_bytes(spark, tmp_path):
    """Text that is not UTF-8 is poisoned with its bytes, and the worker does not crash."""
    (tmp_path / "lines.txt").write_bytes(b'{"a": "\xff\xfe"}\n')
    for format in ("iggy-json", "danube-json"):
        (row,) = ids.messages(spark.read.text(str(tmp_path / "lines.txt")), format).collect()
        assert (row.state, bytes(row.original)) == ("poisoned", b'{"a": "\xff\xfe"}')


def test_messages_that_fail_their_checksum_are_poisoned(spark):
    """A poisoned message keeps all its fields, and ``original`` has the payload."""
    (row,) = table(spark, [iggy.encode(WRONG_SUM, "m45")], "iggy-message", layout="m45")
    assert (row.state, row.reason) == ("poisoned", "checksum must be 907060870, got 1")
    assert (row.id, row.offset, bytes(row.payload), bytes(row.original)) == (GOOD.id_text, 3, b"hello", b"hello")


def test_messages_of_the_layout_without_states_have_none(spark):
    """Messages of this layout are available, and their checksum is NULL."""
    (row,) = table(spark, [iggy.encode(GOOD, "previous")], "iggy-message", layout="previous")
    assert (row.state, row.checksum, row.reason, row.id) == ("available", None, None, GOOD.id_text)


@pytest.mark.details
def test_messages_without_a_log_have_no_id(spark):
    """All messages of a topic without a log have offset 0, whoever made them, and the reason says so."""

    def at(topic, producer, offset):
        place = DANUBE.msg_id._replace(topic_name=topic, producer_id=producer, topic_offset=offset)
        return replace(DANUBE, msg_id=place).encode()

    values = [at("/default/a", 1, 0), at("/default/a", 2, 0), at("/default/b", 1, 0), at("/default/b", 2, 1)]
    rows = table(spark, values, "danube")
    assert [row.id is None for row in sorted(rows, key=lambda row: row.source)] == [True, True, False, False]
    assert {row.reason for row in rows if row.id is None} == {
        "no ID: a topic without a log, so all messages have offset 0"
    }
    assert {row.state for row in rows} == {"available"}
    assert [row.id is None for row in table(spark, values, "danube", logged=True)] == [False] * 4
    assert [row.id is None for row in table(spark, values, "danube", logged=False)] == [True] * 4
    (row,) = table(spark, [at("/default/a", 1, 1 << 48)], "danube")
    assert (row.id, row.reason) == (None, f"no ID: offset {1 << 48} has more than 48 bits")


@pytest.mark.parametrize("policy", [pytest.param("warn", marks=pytest.mark.details), "enforce"])
def test_messages_with_schemas_have_their_verdicts(spark, policy):
    """By policy, a message that does not fit its schema is poisoned, or accepted with the reason."""
    registry = SchemaRegistry()
    registry.register("/default/events", '{"type": "integer"}')
    good = replace(DANUBE, schema_id=1, schema_version=1)
    values = [good, replace(good, payload=b"{}"), replace(good, schema_id=None, schema_version=None)]
    options = {"registry": registry, "policy": policy, "logged": True}
    fits, not_fits, none = table(spark, [message.encode() for message in values], "danube", **options)
    assert (fits.state, fits.reason, fits.schema.asDict()) == ("available", None, {"id": 1, "version": 1})
    assert not_fits.reason.startswith("schema: payload b'{}': {} is not of type \"integer\"")
    assert none.reason == "schema: no schema"
    for row in (not_fits, none):
        assert row.state == {"warn": "available", "enforce": "poisoned"}[policy]
        assert (row.original is None) == (policy == "warn")
    (row,) = table(spark, [good.encode()], "danube", subject="another", **options)
    assert row.reason == "schema: schema 1 must be of the subject 'another', got '/default/events'"


def test_check_schema_of_a_column_is_the_check_of_msgid(spark):
    """The verdicts of the column equal those of `msgid.schemas.check_schema` for all values that a row can hold."""
    from msgid.schemas import check_schema

    registry = SchemaRegistry()
    registry.register("a", '{"type": "integer"}')
    registry.register("b", '"long"', "avro")
    rows = [
        (payload, subject, id, version)
        for payload in (b"1", b"{}", b"\x02", b"")
        for subject in ("a", "b", None)
        for id in (None, 1, 2, 3)
        for version in (None, 1, 2)
    ]
    df = spark.createDataFrame(rows, "p binary, s string, i bigint, v bigint").coalesce(1)
    for policy in ("none", "warn", "enforce"):
        verdict = ids.check_schema("p", "s", "i", "v", registry, policy).alias("c")
        found = [row.c for row in df.select(verdict).collect()]
        assert found == [tuple(check_schema(p, registry, s, i, v, policy=policy)) for p, s, i, v in rows]


def test_check_schema_of_framed_payloads_and_a_lookup_is_the_checks_of_python(spark):
    """Confluent's framing contains the schema ID, and the workers get the schemas from a lookup function."""
    from msgid.schemas import check_schema, frame, from_confluent, from_lookup

    rows = [(payload, id) for payload in (frame(7, b"\x02"), frame(8, b"\x02"), b"\x02", b"") for id in (None, 7)]
    df = spark.createDataFrame(rows, "p binary, i bigint").coalesce(1)
    texts = {7: '"int"'}

    class Client:  # like the client of Confluent's registry, with one schema
        def get_schema(self, id):
            return SimpleNamespace(schema_str=texts[id], schema_type="AVRO", references=[])

    for source in (from_lookup(texts.get, kind="avro"), from_confluent(Client)):
        judged = ids.check_schema("p", F.lit("any"), "i", F.lit(None), source, framing="confluent")
        found = [tuple(row.c) for row in df.select(judged.alias("c")).collect()]
        named = {"policy": "enforce", "framing": "confluent"}
        assert found == [tuple(check_schema(p, source, "any", i, **named)) for p, i in rows]
        assert [verdict for verdict, _ in found] == ["accept", "accept", *["reject"] * 6]
    with pytest.raises(ValueError, match="framing must be one of none, confluent"):
        ids.check_schema("p", "p", "i", "i", source, framing="iggy")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layout": "newest"}, "layout must be one of auto, previous, m45"),
        ({"policy": "strict"}, "policy must be one of none, warn, enforce, got 'strict'"),
        ({"policy": "enforce"}, "policy 'enforce' needs a registry"),
    ],
)
def test_messages_with_bad_arguments_raise(spark, options, says):
    """Wrong arguments raise an error at the call."""
    df = spark.createDataFrame([(b"",)], "value binary")
    with pytest.raises(ValueError, match=says):
        ids.messages(df, **{"format": "iggy-message", **options})


def test_messages_of_a_stream_without_a_log_argument_raise(spark, tmp_path):
    """A stream needs ``logged``, because later offsets are unknown."""
    df = spark.readStream.text(str(tmp_path))
    with pytest.raises(ValueError, match="logged must be True or False"):
        ids.messages(df, "danube-json")
    assert ids.messages(df, "danube-json", logged=True).isStreaming
