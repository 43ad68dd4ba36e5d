"""The column of Iggy's IDs equals Python's results, and is NULL for a malformed value."""

import pytest
from helpers.strategies import many
from hypothesis import strategies as st

import spark_ext as ids
from msgid import iggy

pytestmark = pytest.mark.spark


def column(spark, values, type, made):
    """Apply a column function to values; give the results in their order."""
    df = spark.createDataFrame(list(enumerate(values)), f"n int, x {type}")
    return [row.y for row in sorted(df.select("n", made.alias("y")).collect(), key=lambda row: row.n)]


def test_iggy_id_of_a_column_is_the_one_of_msgid(spark):
    """The text is Python's, of a UUID and of a version-1 ID."""
    raws = many(st.uuids(version=4).map(lambda uuid: uuid.bytes) | st.binary(min_size=16, max_size=16), 200)
    texts = column(spark, raws, "binary", ids.id_from_iggy_id("x"))
    assert texts == [iggy.id_text(raw) for raw in raws]
    whole = [b"\x01" + raw for raw in raws]
    of_version_1 = [iggy.id_text(raw) for raw in whole]
    assert column(spark, whole, "binary", ids.id_from_iggy_id("x")) == of_version_1
    assert column(spark, raws, "binary", ids.id_from_iggy_id("x", version_1=True)) == of_version_1
    numbers = column(spark, raws, "binary", ids.id_from_iggy_id("x", uuid="number"))
    assert numbers == [iggy.id_text(raw, uuid="number") for raw in raws]
    with pytest.raises(ValueError, match="uuid must be 'bytes' with version_1=True, got 'number'"):
        ids.id_from_iggy_id("x", version_1=True, uuid="number")


def test_iggy_id_that_is_invalid_is_null(spark):
    """Bytes of another length, or 17 bytes of another version, are NULL."""
    assert column(spark, [b"", bytes(15), bytes(17), None], "binary", ids.id_from_iggy_id("x")) == [None] * 4
