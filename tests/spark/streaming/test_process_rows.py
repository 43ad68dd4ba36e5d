"""`process` on rows of every kind: spellings, names, binary, times, failing handlers, changed code, checkpoints."""

import json
from datetime import timedelta

import pytest
from helpers.streams import run_to_end
from helpers.versions import since

import spark_ext
from msgid.processing import dumps, loads
from spark_ext._settings import settings
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE00000000"
V0 = "7F0000010000238F000000000001E240"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
SCHEMA = "id string, `order` string, when string, amount int, raw binary, `__key` string, `__id` string, `a.b` int"
SCHEMA += ", `c``d` int, items array<int>"


def line(id, order="1", when=None, amount=1, **others):
    """Return a row of `SCHEMA`."""
    usual = {"raw": "/w==", "__key": "k", "__id": "i", "a.b": 1, "c`d": 2, "items": [1, 2]}
    return {"id": id, "order": order, "when": when, "amount": amount, **usual, **others}


def echo(state, message, context):
    """Publish the count and the body; then change all that it was given, and raise on a negative amount."""
    count = (state or [0])[0]
    context.publish({"count": count, "body": message.body})
    message.body["items"].append(3)
    message.body["amount"] -= 1
    if message.body["amount"] < -1:
        raise ValueError(f"bad amount after {count}")
    return [count + 1]


async def later(state, message, context):
    """Do what `echo` does, as a coroutine."""
    return echo(state, message, context)


def other(state, message, context):
    """Publish what `echo` does not: the code after a change."""
    context.publish("changed")
    return state


def run(spark, folder, handler, *batches, **options):
    """Run a query on new files, one per micro-batch, from the checkpoint; return the rows of this run."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    (folder / "in").mkdir(exist_ok=True)
    before = len(list((folder / "in").iterdir()))
    for number, lines in enumerate(batches, before):
        (folder / "in" / f"{number}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    out = spark.read.parquet(str(folder / "out")).count() if (folder / "out").exists() else 0
    run_to_end(spark_ext.process(df, "`Order`", handler, **options), folder)
    rows = spark.read.parquet(str(folder / "out")).collect()
    assert len(rows) >= out
    return rows


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    """The rows of one query over messages of every kind."""
    messages = [
        line(V1), line(V1.lower()), line(V0, "v0"), line(f"00{V0.lower()}", "v0"), line(UUID, "u"),
        line(UUID.upper(), "u"), line("orders-0-42", "o"), line("orders-0-43", "f", amount=-5),
        line("orders-0-44", "t", "yesterday"), line("orders-0-45", "t", "2024-01-01 00:00:00"),
    ]  # fmt: skip
    named = {"id": "ID", "timestamp": "When"}
    with settings(spark, {PROVIDER: ROCKSDB}):
        return run(spark, tmp_path_factory.mktemp("rows"), echo, messages, [line(V1)], attempts=2, **named)


def test_process_other_spelling_is_a_duplicate(rows):
    """Lower case, a zero byte in front and a UUID in upper case name the same message: equal outputs, one change."""
    for id, order, count in ((V1, "1", 3), (f"00{V0}", "v0", 2), (UUID, "u", 2)):
        same = [row for row in rows if row.input_id == id]
        assert sorted(row.kind for row in same) == ["duplicate"] * (count - 1) + ["new"]
        assert len({(row.id, row.body, row.key) for row in same}) == 1
        assert same[0].key == order
        assert json.loads(same[0].body)["count"] == 0


def test_process_columns_of_any_name_reach_the_handler(rows):
    """Names with dots, backticks and two underscores; the body is what the row has, and binary stays binary."""
    (row,) = [row for row in rows if row.input_id == "orders-0-42"]
    body = loads(row.body.encode())["body"]
    assert body == {
        "amount": 1, "raw": b"\xff", "__key": "k", "__id": "i", "a.b": 1, "c`d": 2, "items": [1, 2]
    }  # fmt: skip
    assert dumps(loads(row.body.encode())).decode() == row.body


def test_process_handler_that_raises_is_a_failed_row(rows):
    """The row has the error and the input as it came; each attempt got its own copy; the others are handled."""
    (row,) = [row for row in rows if row.kind == "failed"]
    assert (row.input_id, row.key, row.id, row.reason) == ("orders-0-43", "f", None, "ValueError: bad amount after 0")
    assert loads(row.body.encode())["items"] == [1, 2]
    assert loads(row.body.encode())["amount"] == -5


def test_process_malformed_time_under_ansi_is_a_malformed_row(rows):
    """Text that is not a timestamp does not end the query."""
    (row,) = [row for row in rows if row.kind == "malformed"]
    assert (row.input_id, row.reason) == ("orders-0-44", "not a timestamp: yesterday")
    assert json.loads(row.body)["when"] == "yesterday"
    assert [row.kind for row in rows if row.input_id == "orders-0-45"] == ["new"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"attempts": 0}, "attempts must be 1 to 2147483647, got 0"),
        ({"buckets": 65_537}, "buckets must be 1 to 65536, got 65537"),
        ({"retention": timedelta(0)}, "retention must be a timedelta or text such as '1 day', above 0"),
    ],
)
def test_process_option_out_of_range_is_refused(spark, rocksdb, tmp_path, option, message):
    """At once, with the name of the option and its limits."""
    df = spark.readStream.schema(SCHEMA).json(str(tmp_path))
    with pytest.raises(ValueError, match=message):
        spark_ext.process(df, "order", echo, **option)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("timestamp", "key must be a column whose values have one text each.* of type timestamp"),
        ("array<string>", "key must be .* of type array<string>"),
        ("double", "key must be .* of type double; cast it, for example to text"),
        ("float", "key must be .* of type float"),
        ("decimal(20,7)", r"key must be .* of type decimal\(20,7\)"),
        ("map<int,int>", "key must be .* of type map<int,int>"),
        ("struct<a:int>", "key must be .* of type struct<a:int>"),
        ("variant", "key must be .* of type variant"),
    ],
)
def test_process_type_that_cannot_work_is_refused(spark, rocksdb, key, message):
    """At once: two keys would be one, or a key would depend on the session or Java."""
    df = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    df = df.selectExpr("'a' AS id", f"CAST(NULL AS {key}) AS key")
    with pytest.raises(ValueError, match=message):
        spark_ext.process(df, "key", echo)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            "CAST(1 AS decimal(38,0)) AS id",
            r"`id` must be a column of text or binary, got 'id' of decimal",
        ),
        ("1.5D AS id", "got 'id' of double: if this column was text before an engine read it as a number"),
        ("now() AS id", "got 'id' of timestamp: cast it to text"),
        (
            "'a' AS id, CAST('1' AS variant) AS v",
            "the body must have columns that Python reads, got 'v' with",
        ),
        ("'a' AS id, array(CAST('1' AS variant)) AS v", "got 'v' with a value of type variant; cast it"),
        ("'a' AS id, map(array(1), 2) AS v", "got 'v' with a map whose keys are of type array<int>; cast it"),
        ("'a' AS id, make_ym_interval(1) AS v", "got 'v' with a value of type interval year to month; cast it"),
    ],
)
def test_process_refuses_columns_that_are_no_ids_and_no_bodies(spark, rocksdb, column, message):
    """At the call, and not in a worker."""
    df = spark.sql(f"SELECT 'k' AS key, {column}")
    with pytest.raises(ValueError, match=message):
        spark_ext.process(df, "key", echo)


@pytest.mark.parametrize("key", [pytest.param("geometry(0)", marks=since(4, 2)), "interval year to month"])
def test_process_refuses_a_key_that_a_worker_cannot_read(spark, rocksdb, key):
    """A malformed row is published with its key."""
    df = spark.sql(f"SELECT 'a' AS id, CAST(NULL AS {key}) AS key")
    with pytest.raises(ValueError, match="got 'key' with a value of type"):
        spark_ext.process(df, "key", echo)


@pytest.mark.parametrize("type", ["interval day to second", "binary", "variant", "array<int>", "boolean"])
def test_process_refuses_a_timestamp_that_is_no_moment(spark, rocksdb, type):
    """A time without a date would be that of the current date, and another one in a replay on the next day."""
    df = spark.sql(f"SELECT 'a' AS id, 'k' AS key, CAST(NULL AS {type}) AS at")
    with pytest.raises(ValueError, match="timestamp must be a column of times, text or Unix seconds, got 'at' of type"):
        spark_ext.process(df, "key", echo, timestamp="at")


def published_body(state, message, context):
    """Publish a value of each map, by its key."""
    body = message.body
    context.publish([body["m"]["n"], body["s"]["m"][1], body["a"][0]["x"], body["none"]])


def test_maps_in_a_body_are_dicts_as_in_pyspark(spark, rocksdb):
    """Also inside of structs and arrays; a key may be a number."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    body = ("map('n', 1) AS m", "named_struct('m', map(1, 'one')) AS s", "array(map('x', map('y', 2))) AS a")
    rows = spark.range(1).selectExpr("'a' AS id", "'k' AS key", *body, "CAST(NULL AS map<string, int>) AS none")
    (row,) = spark_ext.process(rows, "key", published_body, buckets=1).collect()
    assert (row.kind, json.loads(row.body)) == ("new", [1, "one", {"y": 2}, None])


def count(state, message, context):
    """Publish the number of messages of a key."""
    context.publish((state or 0) + 1)
    return (state or 0) + 1


@pytest.mark.details
def test_process_compares_numbers_as_keys_by_value(spark, rocksdb, tmp_path):
    """Integers are keys; a reason with text that is not UTF-8 does not end the query."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    cases = "('a', 7, NULL), ('b', 7, NULL), ('c', -7, NULL), ('e', 1, X'FF')"
    rows = spark.sql(f"SELECT * FROM VALUES {cases} AS (id, key, when)")
    rows.write.parquet(str(tmp_path / "in"))
    df = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    run_to_end(
        spark_ext.process(df.selectExpr("id", "key", "CAST(when AS STRING) when"), "key", count, timestamp="when"),
        tmp_path,
    )
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("input_id").collect()
    assert [(row.key, row.body) for row in rows[:3]] == [("7", "1"), ("7", "2"), ("-7", "1")]
    assert [(row.kind, row.reason) for row in rows[3:]] == [("malformed", "not a timestamp: \ufffd")]
