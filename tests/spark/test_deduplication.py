"""`deduplicate`: every row is told what it is, in a batch and in a stream, and what comes too late is counted."""

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from streams import run_to_end

import spark_ext as ids

pytestmark = pytest.mark.spark


def told(df):
    return sorted((row.id or "", row.amount, row.delivery) for row in df.collect())


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_row_is_told(spark, partitions):
    """The first of an id is new, the others are what they are beside it; none is missing."""
    rows = [("a", 1, 0), ("a", 1, 1), ("a", 2, 2), ("b", 5, 3), (None, 1, 4), (None, 1, 5)]
    df = spark.createDataFrame(rows, "id string, amount int, place int").repartition(partitions)
    assert told(ids.deduplicate(df, order_by=["place"])) == [
        ("", 1, "new"),
        ("", 1, "new"),
        ("a", 1, "duplicate"),
        ("a", 1, "new"),
        ("a", 2, "conflict"),
        ("b", 5, "new"),
    ]


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=30))
def test_it_is_what_a_dictionary_says(spark, rows):
    """One new row an id; of the others those with its content are duplicates."""
    df = spark.createDataFrame([(id, amount, n) for n, (id, amount) in enumerate(rows)], "id string, amount int, n int")
    first: dict = {}
    expected = []
    for id, amount in rows:
        kind = "new" if id not in first else "duplicate" if first[id] == amount else "conflict"
        first.setdefault(id, amount)
        expected.append((id, amount, kind))
    found = sorted(ids.deduplicate(df, order_by=["n"]).collect(), key=lambda row: row.n)
    assert [(row.id, row.amount, row.delivery) for row in found] == expected


def test_content_is_what_the_fingerprint_says(spark):
    """A column of its own, maps in any order, and NULL as a content like others."""
    df = spark.createDataFrame([("a", 1, "x"), ("a", 2, "x"), ("a", 1, "y")], "id string, amount int, body string")
    kinds = Counter(row.delivery for row in ids.deduplicate(df, fingerprint="body", order_by=["body"]).collect())
    assert kinds == {"new": 1, "duplicate": 1, "conflict": 1}
    maps = spark.sql("SELECT 'a' AS id, map('x', 1, 'y', 2) AS m UNION ALL SELECT 'a', map('y', 2, 'x', 1)")
    assert sorted(row.delivery for row in ids.deduplicate(maps).collect()) == ["duplicate", "new"]
    nulls = spark.sql("SELECT 'a' AS id, CAST(NULL AS INT) AS v UNION ALL SELECT 'a', NULL UNION ALL SELECT 'a', 1")
    kinds = Counter(row.delivery for row in ids.deduplicate(nulls, fingerprint="v").collect())
    assert kinds == {"new": 1, "duplicate": 1, "conflict": 1}


def test_a_name_that_is_taken(spark):
    """Is an error that says so."""
    df = spark.createDataFrame([("a", 1)], "id string, delivery int")
    with pytest.raises(ValueError, match="there is a column 'delivery' already"):
        ids.deduplicate(df)
    assert ids.deduplicate(df, name="kind").first().kind == "new"


SCHEMA = "id string, amount int, at timestamp"


def batch(spark, folder, name, rows):
    """A file of rows, and all that has come so far through the stream."""
    (folder / "in").mkdir(exist_ok=True)
    lines = [json.dumps({"id": id, "amount": amount, "at": at}) for id, amount, at in rows]
    (folder / "in" / f"{name}.json").write_text("\n".join(lines))
    df = spark.readStream.schema(SCHEMA).json(str(folder / "in"))
    out = ids.deduplicate(df, timestamp="at", within="1 minute")
    return run_to_end(out, folder), spark.read.parquet(str(folder / "out"))


def test_a_stream(spark, rocksdb, tmp_path):
    """Over batches and a restart the same; what is later than the bound is left out and counted."""
    rows = [("a", 1, "2026-01-01 00:00:00"), ("a", 1, "2026-01-01 00:00:00"), ("b", 1, "2026-01-01 00:00:10")]
    batch(spark, tmp_path, "1", [*rows, (None, 1, "2026-01-01 00:00:00")])
    second = [rows[0], ("b", 2, "2026-01-01 00:00:10"), ("c", 1, "2026-01-01 01:00:00")]
    query, found = batch(spark, tmp_path, "2", second)
    assert told(found) == [
        ("", 1, "new"),
        ("a", 1, "duplicate"),
        ("a", 1, "duplicate"),
        ("a", 1, "new"),
        ("b", 1, "new"),
        ("b", 2, "conflict"),
        ("c", 1, "new"),
    ]
    assert ids.rows_too_late(query) == 0
    query, found = batch(spark, tmp_path, "3", [rows[0], ("c", 1, "2026-01-01 01:00:00")])
    assert ids.rows_too_late(query) == 1
    assert Counter(row.delivery for row in found.where("id = 'c'").collect()) == {"new": 1, "duplicate": 1}
    assert found.where("id = 'a'").count() == 3


def test_a_row_of_a_later_time_is_told_while_the_times_are_within_the_bound(spark, rocksdb, tmp_path):
    """Sent again with a time of its own: the id is remembered for the bound after the first one's, not until then."""
    batch(spark, tmp_path, "1", [("a", 1, "2026-01-01 00:00:00"), ("b", 1, "2026-01-01 00:01:30")])
    _, found = batch(spark, tmp_path, "2", [("a", 1, "2026-01-01 00:00:50"), ("c", 1, "2026-01-01 00:03:00")])
    assert [row.delivery for row in found.where("id = 'a'").sort("at").collect()] == ["new", "duplicate"]
    _, found = batch(spark, tmp_path, "3", [("a", 1, "2026-01-01 00:02:30")])
    assert Counter(row.delivery for row in found.where("id = 'a'").collect()) == {"new": 2, "duplicate": 1}


def test_awkward_rows_of_a_stream(spark, rocksdb, tmp_path):
    """No id, no content, no time; an id in binary: none stops the stream."""
    (tmp_path / "in").mkdir()
    lines = [{"id": None, "amount": None, "at": None}, {"id": "a", "amount": None, "at": None}]
    (tmp_path / "in" / "1.json").write_text("\n".join(json.dumps(line) for line in lines * 2))
    df = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    df = df.withColumn("id", F.expr("CAST(id AS BINARY) || x'FF'"))
    run_to_end(ids.deduplicate(df, fingerprint="amount", timestamp="at", within="1 minute"), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter((row.id and bytes(row.id), row.delivery) for row in found) == {
        (None, "new"): 2,
        (b"a\xff", "new"): 1,
        (b"a\xff", "duplicate"): 1,
    }


def test_what_a_stream_needs(spark, default_state_store, tmp_path):
    """A time and a bound, and the state store that holds it: said at once."""
    df = spark.readStream.schema(SCHEMA).json(str(tmp_path))
    with pytest.raises(ValueError, match="a stream needs a timestamp"):
        ids.deduplicate(df)
    with pytest.raises(ValueError, match=r"needs the RocksDB state store: spark\.conf\.set"):
        ids.deduplicate(df, timestamp="at", within="1 minute")
