"""`deduplicate` in a batch: every row has a label, and every run gives the same labels."""

import random
from collections import Counter

import pytest
from helpers.covering import first_by_default
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import spark_ext as ids
from spark_ext import _compat
from spark_ext.columns.identity import canonical

pytestmark = pytest.mark.spark

V0 = "7F0000010000238F000000000001E240"
UUID = "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"


def labels(df, **options):
    """The labels by the column ``n``."""
    return {row.n: row.delivery for row in ids.deduplicate(df, **options).collect()}


def counts(df, **options):
    return Counter(row.delivery for row in ids.deduplicate(df, **options).collect())


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(st.sampled_from(["a", "b", V0, None, ""]), st.integers(0, 2)), min_size=1, max_size=40))
def test_labels_of_any_rows_equal_those_of_a_dictionary(spark, rows):
    """One row of each ID is new; of the others those with its content are duplicates; the rows without an ID say so."""
    first: dict = {}
    expected = {}
    for n, (id, amount) in enumerate(rows):
        known = "new" if id not in first else "duplicate" if first[id] == amount else "conflict"
        expected[n] = known if id else "no id"
        first.setdefault(id, amount)
    rows = [(random.choice([id, id and id.lower()]) if id == V0 else id, cost, n) for n, (id, cost) in enumerate(rows)]
    df = spark.createDataFrame(rows, "id string, amount int, n int").repartition(3)
    assert labels(df, order_by="n") == expected


def test_binary_ids_have_the_labels_of_text(spark):
    """A version-0 ID with or without a zero byte in front is one ID."""
    df = spark.createDataFrame([(V0, 1), (V0, 2), ("00" + V0, 3)], "id string, n int").withColumn("id", F.unhex("id"))
    assert labels(df, order_by="n") == {1: "new", 2: "duplicate", 3: "duplicate"}


NAMED = {
    "text": lambda df: "offset",
    "text in a list": lambda df: ["offset"],
    "another case": lambda df: ["OFFSET"],
    "backticks": lambda df: ["`offset`"],
    "dotted": lambda df: ["part.no", "offset"],
}


@pytest.mark.parametrize("how", first_by_default(NAMED, 1))
def test_a_column_that_order_by_names_is_not_compared(spark, how):
    """A redelivered message has another offset; however `order_by` names the offset, the message is a duplicate."""
    df = spark.createDataFrame([("a", 1, 7, 1), ("a", 1, 7, 2)], "id string, amount int, `part.no` int, offset int")
    assert counts(df, order_by=NAMED[how](df)) == {"new": 1, "duplicate": 1}


def test_order_by_of_a_column_needs_the_content(spark):
    """Neither a Column nor a field of a struct is left out of the content, so the caller names the content."""
    df = spark.createDataFrame(
        [("a", "x", 1, (1,)), ("a", "x", 2, (2,))], "id string, body string, n int, m struct<n: int>"
    )
    for order_by in (F.col("n"), [F.col("n").desc()], ["n", F.length("body")], "m.n"):
        with pytest.raises(ValueError, match="`content` must name the compared columns if `order_by` does not name a"):
            ids.deduplicate(df, order_by=order_by)
        assert counts(df, order_by=order_by, content=["body"]) == {"new": 1, "duplicate": 1}


def test_content_names_the_columns_that_are_compared(spark):
    """`content` overrides the default, also for a column that `order_by` names."""
    df = spark.createDataFrame([("a", 1, "x"), ("a", 2, "x"), ("a", 1, "y")], "id string, n int, body string")
    assert counts(df) == {"new": 1, "conflict": 2}
    assert counts(df, content=["BODY"]) == {"new": 1, "duplicate": 1, "conflict": 1}
    assert counts(df, order_by="n", content=["n"]) == {"new": 1, "duplicate": 1, "conflict": 1}
    assert counts(df, content=[]) == {"new": 1, "duplicate": 2}
    with pytest.raises(ValueError, match="`content` must be a column of the DataFrame, got 'none'"):
        ids.deduplicate(df, content=["none"])


def test_labels_of_tied_rows_do_not_depend_on_the_partitions(spark):
    """Rows that `order_by` does not tell apart are taken by their content, so `new` is the same row in every run."""
    rows = [(id, n, body) for id in "abcde" for n, body in [(1, "x"), (1, "y"), (1, "z"), (2, "x")]]
    found = set()
    for seed, partitions in [(1, 1), (2, 3)]:
        random.Random(seed).shuffle(rows)
        df = spark.createDataFrame(rows, "id string, n int, body string").repartition(partitions)
        found.add(frozenset(map(tuple, ids.deduplicate(df, order_by="n").collect())))
    assert len(found) == 1


@pytest.mark.skipif(_compat.version() < (4, 0), reason="Spark 3.5 does not have collations")
@pytest.mark.parametrize("collation", first_by_default(["UTF8_LCASE", "UNICODE_CI_AI", "UTF8_BINARY_RTRIM"], 1))
def test_collation_of_the_ids_does_not_change_their_labels(spark, collation):
    """IDs are compared by value: the case of the digits does not matter, and `a` and `A` are two IDs.

    Spaces at the end count, unless the collation itself ignores them.
    """
    ids = [V0, V0.lower(), f"00{V0}", "a", "A", "a ", UUID, UUID.lower(), ""]
    df = spark.createDataFrame([*enumerate(ids, 1)], "n int, id string")
    collated = df.withColumn("id", F.expr(f"id COLLATE {collation}"))
    if collation.endswith("RTRIM"):
        assert collated.select("id").distinct().count() == len({id.rstrip() for id in ids})
        df = df.withColumn("id", F.rtrim("id"))
    expected = labels(df, order_by="n")
    assert labels(collated, order_by="n") == expected
    assert [expected[n] for n in (1, 2, 3, 4, 5, 7, 8)] == ["new", *["duplicate"] * 2, *["new"] * 3, "duplicate"]
    assert expected[6] == ("duplicate" if collation.endswith("RTRIM") else "new")
    keys = [row.id for row in collated.select(canonical(collated, "id").alias("id")).collect()]
    assert keys == [row.id for row in df.select(canonical(df, "id").alias("id")).collect()]


def test_columns_of_any_name_are_kept(spark):
    """Dots, backticks, and names like those that `deduplicate` uses itself."""
    names = ["Message.Id", "a`b", "__msgid_key", "__MSGID_PLACE", "n"]
    df = spark.createDataFrame([("a", 1, 2, 3, 1), ("a", 1, 2, 4, 2)], [f"c{n}" for n in range(5)]).toDF(*names)
    out = ids.deduplicate(df, "message.id", order_by="n", content=["__msgid_place"], name="what.is")
    assert out.columns == [*names, "what.is"]
    assert sorted(tuple(row) for row in out.collect()) == [("a", 1, 2, 3, 1, "new"), ("a", 1, 2, 4, 2, "conflict")]
    assert counts(df, id="`Message.Id`", order_by="n", content=["a`b"]) == {"new": 1, "duplicate": 1}


def test_a_name_that_a_column_has_in_any_case_is_refused(spark):
    """Spark does not tell cases apart, so `Delivery` would be lost."""
    df = spark.createDataFrame([("a", 1)], "id string, Delivery int")
    with pytest.raises(ValueError, match="`name` must be a name that no column has, got 'delivery'"):
        ids.deduplicate(df)
    assert ids.deduplicate(df, name="kind").first().kind == "new"
    with pytest.raises(ValueError, match="`id` must be a column of the DataFrame, got 'key'"):
        ids.deduplicate(df, "key", name="kind")
