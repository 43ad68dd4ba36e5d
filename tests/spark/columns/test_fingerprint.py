"""The fingerprint of a row: equal if and only if the values are equal, for every type of Spark."""

import datetime
import decimal
import itertools
import math

import pytest
from helpers.strategies import many
from helpers.versions import since
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql import types as T

from msgid.shared import contents
from spark_ext import _compat
from spark_ext.columns.fingerprint import fingerprint_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("other_settings")]

EQUAL = [
    ("CAST('NaN' AS DOUBLE)", "CAST('NaN' AS DOUBLE) * -1"),
    ("0.0D", "-0.0D"),
    ("CAST(0.0 AS FLOAT)", "CAST(-0.0D AS FLOAT)"),
    ("map('x', 1, 'y', 2)", "map('y', 2, 'x', 1)"),
    ("array(map('x', 1, 'y', 2))", "array(map('y', 2, 'x', 1))"),
    ("map('k', map('x', 1, 'y', 2))", "map('k', map('y', 2, 'x', 1))"),
    ("map(array(1), 'a', array(2), 'b')", "map(array(2), 'b', array(1), 'a')"),
    ("array(-0.0D)", "array(0.0D)"),
    ("TIMESTAMP'2026-01-01 00:00:00Z'", "TIMESTAMP'2026-01-01 01:00:00+01:00'"),
    ("void", "void"),
    ("1.5BD", "1.5000BD"),
    ("CAST(7 AS DECIMAL(10, 0))", "7.00BD"),
    ("CAST(-100 AS DECIMAL(38, 0))", "CAST(-100 AS DECIMAL(12, 4))"),
    ("CAST(0 AS DECIMAL(10, 0))", "CAST(0 AS DECIMAL(38, 38))"),
    ("array(1.5BD)", "array(1.50BD)"),
]

DIFFERENT = [
    ("CAST(NULL AS STRING)", "''"),
    ("CAST(NULL AS STRING)", "'-'"),
    ("CAST(NULL AS INT)", "0"),
    ("CAST(NULL AS BINARY)", "X''"),
    ("CAST(NULL AS DOUBLE)", "0.0D"),
    ("0.0D", "CAST('NaN' AS DOUBLE)"),
    ("0.1D", "0.1D + 1e-17D + 1e-16D"),
    ("CAST(NULL AS ARRAY<INT>)", "CAST(array() AS ARRAY<INT>)"),
    ("array(1, NULL)", "array(1)"),
    ("array(CAST(NULL AS INT))", "CAST(array() AS ARRAY<INT>)"),
    ("array('a, b')", "array('a', 'b')"),
    ("array('1:a')", "array('1:', 'a')"),
    ("named_struct('x', '1', 'y', 'aaaaaaaaa0')", "named_struct('x', '10aaaaaaaaa', 'y', '')"),
    ("array(array('x', 'y'), array('z'))", "array(array('x'), array('y', 'z'))"),
    ("array(CAST(NULL AS ARRAY<STRING>))", "array(CAST(array() AS ARRAY<STRING>))"),
    ("map('x', 1)", "map('x', CAST(NULL AS INT))"),
    ("map('x', 1)", "map('x', 1, 'y', 2)"),
    ("map('x', 1, 'y', 2)", "map('x', 2, 'y', 1)"),
    ("named_struct('x', 1, 'y', CAST(NULL AS INT))", "named_struct('x', CAST(NULL AS INT), 'y', 1)"),
    ("CAST(NULL AS STRUCT<x: INT>)", "named_struct('x', CAST(NULL AS INT))"),
    ("X'FF'", "X'FE'"),
    ("X'FF'", "X'EFBFBD'"),
    ("array(X'FF')", "array(X'FE')"),
    ("DATE'2026-01-01'", "DATE'2026-01-02'"),
    ("TIMESTAMP'2026-11-01 01:30:00-04:00'", "TIMESTAMP'2026-11-01 01:30:00-05:00'"),
    ("TIMESTAMP_NTZ'2026-03-08 02:30:00'", "TIMESTAMP_NTZ'2026-03-08 03:30:00'"),
    ("TIMESTAMP_NTZ'2026-01-01 00:00:00.000001'", "TIMESTAMP_NTZ'2026-01-01 00:00:00.000002'"),
    ("1.10BD", "1.11BD"),
    ("1.5BD", "-1.50BD"),
    ("CAST(1 AS DECIMAL(10, 0))", "CAST(10 AS DECIMAL(12, 2))"),
    ("0.1BD", "0.01BD"),
    ("INTERVAL '1' DAY", "INTERVAL '2' DAY"),
    ("INTERVAL '1' MONTH", "INTERVAL '1' YEAR"),
    ("make_interval(0, 0, 0, 1)", "make_interval(0, 0, 0, 0, 24)"),
    ("TRUE", "FALSE"),
]


def fingerprint(expression, spark):
    column = F.expr("NULL" if expression == "void" else expression)
    return fingerprint_of([(column, spark.range(1).select(column.alias("x")).schema[0])])


def test_fingerprints_of_values_are_equal_only_for_equal_values(spark, ansi):
    """The fingerprints of two values are equal if the values are: NULL, empty, nested, NaN, maps."""
    pairs = [(pair, True) for pair in EQUAL] + [(pair, False) for pair in DIFFERENT]
    if _compat.version() < (4, 0):  # PySpark 3.5 does not have a type for such an interval
        pairs = [(pair, is_equal) for pair, is_equal in pairs if "make_interval" not in pair[0]]
    columns = [fingerprint(side, spark) for pair, _ in pairs for side in pair]
    row = list(spark.range(1).select(*(F.hex(column).alias(f"c{n}") for n, column in enumerate(columns))).first())
    assert {len(text) for text in row} == {32}
    found = [(pair, left == right) for (pair, _), left, right in zip(pairs, row[::2], row[1::2], strict=True)]
    assert found == pairs


def test_fingerprints_of_rows_tell_columns_apart(spark):
    """NULL in another column, text at another border: other content, also beside binary columns."""
    df = spark.sql(
        "SELECT * FROM VALUES (1, 'ab', 'c', X'01', X''), (2, 'a', 'bc', X'01', X''), (3, 'abc', NULL, X'01', X''),"
        " (4, NULL, 'abc', X'01', X''), (5, 'ab', 'c', X'', X'01'), (6, 'ab', 'c', NULL, X'01') AS t(n, a, b, x, y)"
    )
    told = fingerprint_of([(F.col(field.name), field) for field in df.schema if field.name != "n"])
    assert df.select(told.alias("f")).distinct().count() == 6


def test_fingerprints_of_numbers_beside_null_differ(spark):
    """NULL before a positive number differs from a negative number, in each type that writes its sign."""
    df = spark.createDataFrame([*itertools.product((None, -1, 1), repeat=4)], "a int, b int, c int, d int")
    for form in ("{}", "{} * 1.5BD", "DATE'1970-01-01' + {}", "array({0}, {0})", "struct({0})"):
        rows = df.selectExpr(*(f"{form.format(name)} AS {name}" for name in df.columns))
        told = fingerprint_of([(F.col(field.name), field) for field in rows.schema])
        assert rows.select(told).distinct().count() == len(rows.collect()), form


def test_fingerprints_of_floats_do_not_depend_on_java(spark):
    """Java 19 writes 2.0E-3 and 1e23 as other text than Java 17. These are the fingerprints of every version."""
    values = {
        "1e23D": "02F8CD03042E3A6FA00C7D78DDE3685F",
        "2.0E-3D": "1360F0C092B6BEEBCBDAF29C2DEB0E54",
        "CAST(1.1E-23 AS FLOAT)": "5548CA66078173F0E3FF7FDEF148D769",
        "CAST('NaN' AS DOUBLE)": "6383131CBEF62EB4456CB04E98D87E65",
    }
    columns = [F.hex(fingerprint(text, spark)).alias(f"c{n}") for n, text in enumerate(values)]
    assert list(spark.range(1).select(*columns).first()) == list(values.values())


NUMBERS = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.BinaryType())])
TYPES = {
    "d": T.DoubleType(), "f": T.FloatType(), "s": T.StringType(), "b": T.BinaryType(), "n": T.DecimalType(38, 18),
    "i": T.LongType(), "l": T.BooleanType(), "t": T.DateType(), "z": T.TimestampType(), "w": T.TimestampNTZType(),
    "e": T.DayTimeIntervalType(), "a": T.ArrayType(T.ArrayType(T.StringType())),
    "m": T.MapType(T.StringType(), T.ArrayType(T.DoubleType())), "k": T.MapType(T.LongType(), NUMBERS),
    "r": T.ArrayType(NUMBERS),
}  # fmt: skip
SCHEMA = T.StructType([T.StructField(name, type) for name, type in TYPES.items()])
UTC = datetime.timezone.utc
texts = st.sampled_from(["", "-", "a", "b", "1:a", ";", "\u00e9", "e\u0301", "\0"])
doubles = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 1e300, 5e-324])
raws = st.sampled_from([b"", b"\xff", b"\xfe", b"-", b"\0"])
structs = st.none() | st.tuples(st.none() | doubles, st.none() | raws)
moments = [datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=n) for n in (0, -1, 1, 10**15)]
EDGES = {
    "d": doubles,
    "f": st.sampled_from([0.0, -0.0, math.nan, 1.5, -math.inf]),
    "s": texts,
    "b": raws,
    "n": st.sampled_from([decimal.Decimal(text) for text in ("1.10", "1.1", "0.11", "-0", "0", "1E-18", "9" * 20)]),
    "i": st.sampled_from([0, 1, -1, (1 << 63) - 1, -(1 << 63)]),
    "l": st.booleans(),
    "t": st.sampled_from([datetime.date(1582, 10, 4), datetime.date(2026, 1, 1), datetime.date(1, 1, 1)]),
    "z": st.sampled_from([moment.replace(tzinfo=UTC) for moment in moments]),
    "w": st.sampled_from(moments),
    "e": st.sampled_from([datetime.timedelta(), datetime.timedelta(days=-1), datetime.timedelta(microseconds=1)]),
    "a": st.lists(st.none() | st.lists(st.none() | texts, max_size=2), max_size=2),
    "m": st.dictionaries(texts, st.none() | st.lists(st.none() | doubles, max_size=2), max_size=2),
    "k": st.dictionaries(st.integers(0, 1), structs, max_size=2),
    "r": st.lists(structs, max_size=2),
}
VALUES = st.tuples(*(st.none() | EDGES[name] for name in TYPES))


def test_fingerprints_of_any_rows_are_equal_only_for_rows_that_are_equal_in_python(spark):
    """Two rows share a fingerprint of columns if and only if `msgid.shared.contents` gives them one, over all types."""
    rows = many(st.tuples(st.integers(0, len(SCHEMA) - 1), VALUES), 300)
    # A row that has one column alone is more often equal to another one than a row that has all of them.
    rows = [tuple(v if only == n else None for n, v in enumerate(values)) for only, values in rows] + [
        values for _, values in rows
    ]
    told = fingerprint_of([(F.col(field.name), field) for field in SCHEMA])
    found = spark.createDataFrame(rows, SCHEMA).select(F.hex(told)).collect()
    pairs = {(text, contents.fingerprint(row)) for row, (text,) in zip(rows, found, strict=True)}
    assert len(pairs) == len({text for text, _ in pairs}) == len({raw for _, raw in pairs})


def test_a_type_without_canonical_form_is_refused(spark):
    """A type that cannot be compared is an error that names the column."""
    with pytest.raises(TypeError, match="cannot compare column 'x'"):
        fingerprint_of([(F.lit(1), T.StructField("x", T.DataType()))])


@since(4, 0)
def test_a_variant_is_refused_by_its_name(spark):
    """Its text is that of Java."""
    with pytest.raises(TypeError, match="cannot compare column 'x': values of type variant"):
        fingerprint("array(parse_json('1e23'))", spark)


@since(4, 1)
@pytest.mark.parametrize("name", ["GeometryType", "GeographyType"])
def test_shapes_are_refused_by_their_names(name):
    """Spark has neither an order nor equality for them."""
    type = getattr(T, name)(4326)
    with pytest.raises(TypeError, match=f"cannot compare column 'x': values of type {type.simpleString()[:5]}"):
        fingerprint_of([(F.lit(1), T.StructField("x", T.ArrayType(type)))])


@since(4, 3)
def test_times_of_day_are_compared_as_values(spark):
    """Also where Spark's setting does not allow their cast to text."""
    one, same, other = "TIME'10:00:00'", "TIME'10:00:00.000000'", "TIME'10:00:00.000001'"
    columns = [fingerprint(value, spark).alias(f"c{n}") for n, value in enumerate((one, same, other))]
    found = spark.range(1).select(columns).first()
    assert found[0] == found[1] != found[2]
