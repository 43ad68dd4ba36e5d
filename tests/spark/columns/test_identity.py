"""The column `identity` against its plain-Python twin."""

import pytest
from helpers.strategies import ids, many
from hypothesis import strategies as st

from msgid.ids.carriers import text_in_duck
from msgid.ids.checked_bytes import identity as identity_of
from spark_ext.columns.identity import id_text, identity

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


printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60).map(str.encode)
raw_ids = st.one_of(
    ids.map(bytes),
    ids.map(lambda id: str(id).encode()),
    st.uuids().map(lambda uuid: str(uuid).upper().encode()),
    printable,
    *(st.text("0123456789abcdef-", min_size=n, max_size=n).map(str.encode) for n in (16, 17, 28, 29)),
    st.binary(max_size=30),
)


def test_bytes_in_audits_have_one_identity_in_python_and_on_spark(spark):
    """Bytes of an ID's length are that ID, also if they are printable, as they are for all other functions."""
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    values = many(raw_ids, 300)
    assert any(len(one) in (16, 28) and one.isascii() and one.decode().isprintable() for one in values)
    expected = [identity_of(one) if one else "" for one in values]
    foreign = [text.startswith("0x") and one.decode("latin-1").isascii() and one.decode("latin-1").isprintable()
               for one, text in zip(values, expected, strict=True)]  # fmt: skip
    expected = [one.decode() if is_text else text for one, text, is_text in zip(values, expected, foreign, strict=True)]
    df = spark.createDataFrame([*enumerate(values)], "n int, id binary").sort("n")
    on_spark = [row[0] for row in df.select(id_text(df, "id")).collect()]
    rows = pa.table({"n": range(len(values)), "id": values})  # noqa: F841, DuckDB reads it by its name
    text = text_in_duck("id", "id", "id", "BLOB")
    in_python = [row[0] for row in duckdb.connect().sql(f"SELECT {text} FROM rows ORDER BY n").fetchall()]
    for texts in (on_spark, in_python):
        assert [identity_of(one) if one else "" for one in texts] == expected
