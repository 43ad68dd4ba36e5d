"""The edge values of Spark's types, for tests of every sink: a row per value, in a column of its type."""

from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa

ZONE = "spark.sql.session.timeZone"
ZONES = ("Etc/GMT+12", "America/New_York", "Pacific/Kiritimati")
"""Zones from -12 to +14 hours."""
TEXTS = (
    "''", "' '", "'NULL'", r"'\\N'", r"'\\.'", "'a\"b,c'", r"'it\'s'", r"'\n\r\t'", "'a/b'", "'%2F %s'", "'007'",
    "'__HIVE_DEFAULT_PARTITION__'", "'é'", "'€'", "'\U0001f600'", r"'\\u0000'", "repeat('x', 10000)",
)  # fmt: skip
BROKEN = ("CAST(X'EDA080' AS STRING)", "CAST(X'FF61' AS STRING)")
"""Half a pair of surrogates, and other bytes that are not UTF-8."""
NUL = "concat('a', char(0))"
DAYS = ("0001-01-01", "0999-12-31", "1582-10-04", "1582-10-15", "1969-12-31", "2026-03-08", "9999-12-31")
FAR_DAYS = ("-0001-12-31", "0000-12-31", "+10000-01-01")
"""Days that Python, Delta's partitions and some readers of PostgreSQL do not know."""
CLOCKS = ("00:00:00", "02:30:00.5", "23:59:59.999999")
OFFSETS = ("-12:00", "Z", "+14:00")


class Column(NamedTuple):
    """A column of one type."""

    name: str
    type: str
    values: tuple[str, ...]
    """The values in SQL."""
    odd: tuple[str, ...] = ()
    """Values that some stores lack: text that is not UTF-8 or has a NUL character, and years outside 1 to 9999."""


_NAN = ("'NaN'", "'-0.0'", "'0.0'", "'Infinity'", "'-Infinity'")
COLUMNS = (
    Column("byte", "tinyint", ("-128Y", "127Y")),
    Column("Short", "smallint", ("-32768S", "32767S")),
    Column("a.b", "int", ("-2147483648", "2147483647")),
    Column("100% %s", "bigint", ("-9223372036854775808", "9223372036854775807")),
    Column("it's", "float", (*(f"float({x})" for x in _NAN), "float(1.4E-45D)", "float(3.4028235E38D)", "float(0.1D)")),
    Column('"quoted"', "double", (*(f"double({x})" for x in _NAN), "4.9E-324D", "1.7976931348623157E308D", "0.1D")),
    Column("`tick`", "decimal(38,0)", ("9" * 38 + "BD", "-" + "9" * 38 + "BD", "0BD")),
    Column("ü €", "decimal(38,38)", ("CAST('0." + "0" * 37 + "1' AS DECIMAL(38,38))", "CAST(0 AS DECIMAL(38,38))")),
    Column("money", "decimal(10,2)", ("CAST(-0.01 AS DECIMAL(10,2))", "CAST(0.10 AS DECIMAL(10,2))")),
    Column("select", "boolean", ("true", "false")),
    Column("text", "string", TEXTS, (*BROKEN, NUL)),
    Column("bytes", "binary", ("X''", "X'00FF'", "X'5C78'", "CAST(repeat('x', 10000) AS BINARY)")),
    Column(
        "day",
        "date",
        tuple(f"DATE'{day}'" for day in DAYS),
        (*(f"DATE'{day}'" for day in FAR_DAYS), "DATE'+5881580-07-11'"),
    ),
    Column(
        "at",
        "timestamp",
        (
            *(f"TIMESTAMP'{day} {clock}{offset}'" for day in DAYS[1:-1] for clock in CLOCKS for offset in OFFSETS),
            "TIMESTAMP'0001-01-01 00:00:00Z'",
            "TIMESTAMP'9999-12-31 23:59:59.999999Z'",
            "TIMESTAMP'0000-12-31 12:00:00-12:00'",
            "TIMESTAMP'+10000-01-01 13:59:59.999999+14:00'",
        ),
        (
            "TIMESTAMP'9999-12-31 12:00:00-12:00'",
            "TIMESTAMP'0001-01-01 13:59:59.999999+14:00'",
            "timestamp_micros(9223372036854775807)",
            "timestamp_micros(-9223372036854775807)",
        ),
    ),
    Column(
        "no zone",
        "timestamp_ntz",
        tuple(f"TIMESTAMP_NTZ'{day} {clock}'" for day in DAYS for clock in CLOCKS),
        tuple(f"TIMESTAMP_NTZ'{day} {CLOCKS[-1]}'" for day in FAR_DAYS),
    ),
    Column(
        "texts",
        "array<string>",
        (f"array({', '.join(TEXTS)}, NULL)", "CAST(array() AS array<string>)"),
        tuple(f"array({text})" for text in (*BROKEN, NUL)),
    ),
    Column("times", "array<timestamp>", ("array(TIMESTAMP'2026-01-02 03:04:05.123456Z', NULL)",)),
    Column("clocks", "array<timestamp_ntz>", ("array(TIMESTAMP_NTZ'2026-03-08 02:30:00.123456')",)),
    Column("numbers", "array<double>", (f"array({', '.join(f'double({x})' for x in _NAN)}, 4.9E-324D)",)),
    Column(
        "Struct",
        'struct<`a.b`:int,`%s"`:array<struct<at:timestamp>>>',
        (
            "named_struct('a.b', 1, '%s\"', array(named_struct('at', TIMESTAMP'0001-01-01 00:00:00.000001Z')))",
            "named_struct('a.b', CAST(NULL AS INT), '%s\"', CAST(NULL AS array<struct<at:timestamp>>))",
        ),
    ),
    Column("by text", "map<string,int>", ("map('a', 1, '', NULL)",), tuple(f"map({text}, 1)" for text in BROKEN)),
    Column("by bytes", "map<binary,int>", ("map(X'00FF', 1, X'', 2)",)),
    Column("by time", "map<timestamp,int>", ("map(TIMESTAMP'2026-01-02 03:04:05.123456Z', 1)",)),
    Column("by struct", "map<struct<a:int,b:string>,int>", ("map(named_struct('a', 1, 'b', 'x,y'), 1)",)),
)


class Case(NamedTuple):
    """A value in its column."""

    id: str
    column: Column
    sql: str

    @property
    def is_odd(self):
        """Whether some stores lack the value."""
        return self.sql in self.column.odd


CASES = tuple(
    Case(f"{column.name} {place}", column, sql)
    for column in COLUMNS
    for place, sql in enumerate(("NULL", *column.values, *column.odd))
)


def edge_rows(spark, cases=CASES):
    """Return one row per value: its ID, and all columns; the other columns are NULL."""
    columns = list(dict.fromkeys(case.column for case in cases))
    rows = []
    for case in cases:
        cells = [f"CAST({case.sql if column is case.column else 'NULL'} AS {column.type})" for column in columns]
        rows.append(f"SELECT {quoted_text(case.id)} AS id, {', '.join(cells)}")
    names = ["id", *(column.name for column in columns)]
    return spark.sql(" UNION ALL ".join(rows)).toDF(*names).coalesce(1).localCheckpoint()


def quoted_text(text):
    """Return text as SQL writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def plain_rows(table):
    """Return the rows of an Arrow table by their IDs, as exact values: times as numbers, and text as bytes."""
    columns = [column.cast(_plain(column.type)).to_pylist() for column in table.drop_columns("id").columns]
    found = {}
    for id, *values in zip(table["id"].to_pylist(), *columns, strict=True):
        found.setdefault(id, []).append(dict(zip(table.column_names[1:], values, strict=True)))
    return found


def _plain(type):
    """Return the type whose Python values are exact: Python lacks some times, and text can have any bytes."""
    if pa.types.is_timestamp(type):
        return pa.int64()
    if pa.types.is_date(type):
        return pa.int32()
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return pa.binary()
    if pa.types.is_map(type):
        return pa.map_(_plain(type.key_type), _plain(type.item_type))
    if pa.types.is_list(type):
        return pa.list_(_plain(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in type])
    return type


@contextmanager
def session_zone(spark, zone):
    """Set the time zone of a session."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, zone)
    try:
        yield
    finally:
        spark.conf.set(ZONE, before)
