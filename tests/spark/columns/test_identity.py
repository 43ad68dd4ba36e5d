"""The column `identity` against its plain-Python twin."""

import pytest
from helpers.strategies import ids, many
from hypothesis import strategies as st

from msgid.ids._bytes import identity as identity_of
from spark_ext.columns._identity import identity

pytestmark = pytest.mark.spark

V0 = "7F0000010000238F000000000001E240"
UUID = "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"

spellings = st.one_of(
    ids.map(str),
    ids.map(lambda id: str(id).lower()),
    ids.map(lambda id: str(id)[2:]),
    ids.map(lambda id: str(id)[:-1] + "g"),
    ids.map(lambda id: str(id) + "\n"),
    st.uuids().map(str),
    st.uuids().map(lambda uuid: str(uuid).upper()),
    st.uuids().map(lambda uuid: f"{{{uuid}}}"),
    st.uuids().map(lambda uuid: str(uuid)[:-1] + "\u0661"),
    st.uuids().map(lambda uuid: uuid.hex),
    st.text(st.characters(codec="utf-8"), max_size=60),
)


def columns(spark, values, type):
    df = spark.createDataFrame([(value,) for value in values], f"id {type}")
    return [row[0] for row in df.select(identity("id")).collect()]


def test_identity_of_any_text_equals_the_python_function(spark, ansi):
    """Text of every kind and spelling has the identity that Python gives it; for NULL and empty text it is NULL."""
    texts = [*many(spellings.filter(bool), 500), None, ""]
    assert columns(spark, texts, "string") == [identity_of(text) if text else None for text in texts]


def test_identity_of_any_bytes_equals_the_python_function(spark, ansi):
    """Bytes of an ID and any other bytes have the identity that Python gives them."""
    values = many(ids.map(bytes) | st.binary(min_size=1, max_size=30), 500)
    values += [*(value[1:] for value in values if len(value) > 1), None, b""]
    assert columns(spark, values, "binary") == [identity_of(value) if value else None for value in values]


def test_identity_of_a_number_is_its_text(spark):
    """A column of another type is compared as text."""
    assert columns(spark, [42, None], "bigint") == ["42", None]
