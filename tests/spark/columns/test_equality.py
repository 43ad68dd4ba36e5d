"""Column = SQL = Python: one property over the functions, the types of input and the settings of a session."""

import itertools
import re
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from hashlib import sha256

import pytest
from helpers.covering import covering
from helpers.strategies import ids, many, names, offsets
from helpers.versions import module_since
from hypothesis import strategies as st
from pyspark.sql import functions as F

import msgid
import spark_ext
from msgid.iggy import id_text
from msgid.retention import is_expired

pytestmark = pytest.mark.spark
sql_functions = module_since("sql_functions", 4, 0)

LONGEST = 58
"""The digits of the longest ID."""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ZONE = "Asia/Kolkata"
CHOICES = ["true", "false"], ["UTC", "Asia/Tokyo", "America/New_York"], ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"]
"""ANSI mode, the time zone and the type of a timestamp in a session."""
SETTINGS = [pytest.param(*values, id="-".join(values)) for values in itertools.product(*CHOICES)]
COLUMNS = {"text": "STRING", "held_varchar": f"VARCHAR({LONGEST})", "held_char": f"CHAR({LONGEST})", "raw": "BINARY"}

spellings = st.one_of(
    ids.map(str),
    ids.map(lambda id: str(id).lower()),
    ids.map(lambda id: str(id).title()),
    ids.map(lambda id: id.canonical),
    ids.map(lambda id: str(id)[:-1]),
    ids.map(lambda id: str(id) + "0"),
    ids.map(lambda id: str(id)[:-1] + "g"),
    ids.map(lambda id: str(id)[:-1] + "_"),
    ids.map(lambda id: "+" + str(id)[1:]),
    ids.map(lambda id: "0x" + str(id)[2:]),
    ids.map(lambda id: "02" + str(id)[2:]),
    ids.map(lambda id: str(id)[:-1] + "\n"),
    ids.map(lambda id: " " + str(id)),
    ids.map(lambda id: str(id)[:-1] + "\uff11"),
    st.uuids().map(str),
    st.uuids().map(lambda uuid: str(uuid).upper()),
    st.uuids().map(lambda uuid: str(uuid)[:-1] + "-"),
    st.text(st.characters(codec="utf-8"), max_size=20),
).filter(lambda text: len(text) <= LONGEST)


def is_told(raw):
    """Return whether a SQL function, which gets bytes as text, recognizes them as the bytes of an ID."""
    return re.search(r"[\x00-\x1F\x7F\uFFFD]", raw.decode("utf-8", "replace")) is not None


binaries = st.one_of(ids.map(bytes), ids.map(lambda id: bytes.fromhex(id.canonical)), st.binary(max_size=30)).filter(
    is_told
)
moments = st.integers(0, 4 * 10**15) | st.integers(-62 * 10**15, 253 * 10**15)


def seconds_of(column):
    return F.unix_seconds(column)


def fields_of_v1(p):
    names = ("version", "mac", "pid", "seconds", "sequence", "origin")
    return F.when(p.isNotNull(), F.struct(*(p[name] for name in names), F.unix_seconds(p["time"])))


def v1_of(value):
    """The version-1 ID of text or bytes; None for any other value."""
    found = msgid.parse(value) if value is not None and msgid.is_valid(value) else None
    return found if isinstance(found, msgid.MessageId) else None


def v0_of(value):
    found = msgid.parse(value) if value is not None and msgid.is_valid(value) else None
    return None if isinstance(found, msgid.MessageId) else found


def fields(id):
    seconds = id.seconds
    return (id.version, id.mac, id.pid, seconds, id.sequence, id.origin, msgid.layout.EPOCH_UNIX + seconds)


def fields_of_v0(id):
    names = ("port", "offset", "pid", "loader_hash", "elapsed_ms", "counter")
    return (id.kind, *(getattr(id, name, None) for name in names))


def without_host(p):
    names = ("kind", "port", "offset", "pid", "loader_hash", "elapsed_ms", "counter")
    return F.when(p.isNotNull(), F.struct(*(p[name] for name in names)))


def when(found, result):
    return None if found is None else result(found)


def of_uuid(value):
    if not isinstance(value, str):
        return None
    groups = value.split("-")
    digits = "".join(groups)
    is_uuid = [len(group) for group in groups] == [8, 4, 4, 4, 12] and set(digits) <= set("0123456789abcdefABCDEF")
    return "01" + digits.upper() if is_uuid else None


def itself(column):
    return column


# SQL name: (the compared part of the result, the result in Python)
OF_ANY = {
    "msgid_is_valid": (itself, lambda value: None if value is None else msgid.is_valid(value)),
    "msgid_kind": (itself, lambda value: when(v1_of(value) or v0_of(value), lambda id: id.kind)),
    "msgid_time": (seconds_of, lambda value: when(v1_of(value), lambda id: msgid.layout.EPOCH_UNIX + id.seconds)),
    "msgid_origin": (itself, lambda value: when(v1_of(value), lambda id: id.origin)),
    "msgid_time_key": (itself, lambda value: when(v1_of(value), lambda id: id.time_key)),
    "msgid_to_uuid": (itself, lambda value: when(v1_of(value), lambda id: str(id.uuid))),
    "msgid_from_uuid": (itself, of_uuid),
    "msgid_to_binary": (F.hex, lambda value: value.hex().upper() if isinstance(value, bytes) else value.upper()),
    "msgid_from_binary": (itself, lambda value: value.hex().upper() if isinstance(value, bytes) else value.upper()),
    "msgid_try_parse": (fields_of_v1, lambda value: when(v1_of(value), fields)),
    "msgid_try_parse_v0": (without_host, lambda value: when(v0_of(value), fields_of_v0)),
    "msgid_try_translate_v0": (itself, lambda value: when(v0_of(value), lambda id: id.canonical)),
}
OF_AN_ID = {"msgid_to_binary", "msgid_from_binary"}
"""The functions whose result in Python is written above for IDs alone."""
SPLIT = {"codegen.fallback": "true"}
"""These queries repeat a struct in a branch for each field: too much code for one method, so Spark splits it."""
READING = {"msgid_time", "msgid_origin", "msgid_try_parse", "msgid_try_parse_v0"}
"""The functions that look up fields in tables of constants."""
# The functions that raise for any other value: compared where the value is an ID of the version.
RAISING = {
    "msgid_parse": (fields_of_v1, v1_of, fields),
    "msgid_parse_v0": (without_host, v0_of, fields_of_v0),
    "msgid_translate_v0": (itself, v0_of, lambda id: id.canonical),
}


@contextmanager
def session_with(spark, **values):
    """The session under some settings, which it then loses."""
    for name, value in values.items():
        spark.conf.set(f"spark.sql.{name}", value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(f"spark.sql.{name}")


@pytest.fixture(scope="module")
def registered(spark):
    """The session with the functions and an empty table of all types."""
    spark_ext.register(spark)
    spark.sql("DROP TABLE IF EXISTS odd_ids")
    declared = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())
    spark.sql(f"CREATE TABLE odd_ids ({declared}) USING parquet")
    yield spark
    spark.sql("DROP TABLE odd_ids")


def compared(df, made):
    """Check that each column of the first half equals its neighbour in the second, and Python's result."""
    names = list(made)
    columns = [part.alias(f"{name} {n}") for name in names for n, part in enumerate(made[name][:2])]
    for row in df.select("*", *columns).collect():
        for name in names:
            expected = made[name][2](row)
            assert (row[f"{name} 0"], row[f"{name} 1"]) == (expected, expected), (name, row)


@contextmanager
def odd_ids(spark, rows, **values):
    """The table with rows of all types, in a session under some settings."""
    rows = [*((text, text, text, raw) for text, raw in rows), (None,) * 4, ("", "", "", b"")]
    spark.createDataFrame(rows, "a string, b string, c string, d binary").write.insertInto("odd_ids", True)
    with session_with(spark, **values):
        yield spark.table("odd_ids")


def check_functions(table, functions, held):
    """Check functions of an ID on one column of the table."""
    made = {}
    for name in functions:
        if name == "msgid_from_uuid" and held == "raw":
            continue
        part, twin = OF_ANY[name]

        def expected(row, twin=twin, name=name):
            value = value_of(row, held)
            return twin(value) if name not in OF_AN_ID or (value and msgid.is_valid(value)) else None

        made[name] = (part(sql_functions.FUNCTIONS[name].function(held)), part(F.expr(f"{name}({held})")), expected)
    compared(table.select(held), made)


@pytest.mark.parametrize(("held", "ansi", "zone", "timestamps"), covering(list(COLUMNS), *CHOICES, strength=1))
def test_functions_of_an_id_in_column_sql_and_python_are_equal(registered, held, ansi, zone, timestamps):
    """Functions of an ID give one result for text, char, varchar, binary, NULL and odd spellings."""
    named = {"ansi.enabled": ansi, "session.timeZone": zone, "timestampType": timestamps}
    with odd_ids(registered, many(st.tuples(spellings, binaries), 150), **named) as table:
        check_functions(table, sorted(OF_ANY.keys() - READING), held)


@pytest.mark.variants
@pytest.mark.parametrize("name", sorted(READING))
@pytest.mark.parametrize(("ansi", "zone", "timestamps"), SETTINGS[::5])
def test_functions_that_read_fields_in_column_sql_and_python_are_equal(registered, ansi, zone, timestamps, name):
    """Functions that read fields, whose plans are large, give one result for every type."""
    named = {"ansi.enabled": ansi, "session.timeZone": zone, "timestampType": timestamps, **SPLIT}
    with odd_ids(registered, many(st.tuples(spellings, binaries), 150), **named) as table:
        for held in COLUMNS:
            check_functions(table, [name], held)


def value_of(row, held):
    """The value as Python has it."""
    value = row[held]
    return bytes(value) if isinstance(value, bytearray) else value


def derived(row, at=None):
    value = value_of(row, "held")
    found = value is not None and (msgid.is_valid(value) or of_uuid(value) is not None)
    return str(msgid.derive_id(value, row["name"], at=at)) if found else None


@pytest.mark.variants
@pytest.mark.parametrize("type", ["string", "binary"])
@pytest.mark.parametrize(("ansi", "zone", "timestamps"), SETTINGS[::5])
def test_functions_that_raise_in_column_sql_and_python_are_equal(registered, ansi, zone, timestamps, type):
    """Functions that accept IDs alone give one result for every ID; with moments and names of every type."""
    spark = registered
    form = (lambda id: str(id).lower()) if type == "string" else bytes
    rows = [
        (form(id), form(id) if v1_of(str(id)) else None, form(id) if v0_of(str(id)) else None, name, offset, us)
        for id, name, offset, us in many(st.tuples(ids, names, offsets, moments), 100)
        if type == "string" or is_told(bytes(id))
    ]
    rows.append((None,) * 6)
    schema = f"held {type}, v1 {type}, v0 {type}, name string, offset bigint, us bigint"
    df = spark.createDataFrame(rows, schema)
    df = df.withColumns({"at": F.timestamp_micros("us"), "unix": F.unix_seconds(F.timestamp_micros("us"))})
    df = df.withColumn("small", F.pmod("offset", F.lit(99)).cast("smallint"))
    df = df.withColumn("exact", F.col("at").cast("decimal(20, 6)"))
    made = {}
    for name, (part, found, twin) in RAISING.items():
        held = "v1" if found is v1_of else "v0"

        def expected(row, held=held, found=found, twin=twin):
            return when(found(value_of(row, held)), twin)

        made[name] = (part(sql_functions.FUNCTIONS[name].function(held)), part(F.expr(f"{name}({held})")), expected)
    made["derive"] = (spark_ext.derive_id("held", "name"), F.expr("msgid_derive(held, name)"), derived)
    for at in ("at", "unix"):
        made[f"derive {at}"] = (
            spark_ext.derive_id("held", "name", at=at),
            F.expr(f"msgid_derive_at(held, name, {at})"),
            lambda row: None if row.us is None else derived(row, moment(row.us // 10**6 * 10**6)),
        )
        for source, offset in itertools.product(("name", "offset"), ("offset", "small")):
            made[f"position {at} {source} {offset}"] = (
                spark_ext.position_id(source, offset, at),
                F.expr(f"msgid_position({source}, {offset}, {at})"),
                lambda row, source=source, offset=offset: positioned(row, source, offset),
            )
    for at in ("at", "exact"):
        made[f"v0_time {at}"] = (
            F.unix_micros(spark_ext.v0_time("v0", at, F.lit(ZONE))),
            F.unix_micros(F.expr(f"msgid_v0_time(v0, {at}, '{ZONE}')")),
            v0_time,
        )
        made[f"expired {at}"] = (
            spark_ext.is_expired(at, "small", "at"),
            F.expr(f"msgid_is_expired({at}, small, at)"),
            lambda row: None if row.us is None else is_expired(row.us, row.small, row.us),
        )
    made["iggy"] = (
        spark_ext.id_from_iggy_id(F.unhex(F.substring(F.sha2("name", 256), 1, 32))),
        F.expr("msgid_from_iggy_id(unhex(substring(sha2(name, 256), 1, 32)))"),
        lambda row: when(row["name"], lambda name: id_text(sha256(name.encode()).digest()[:16])),
    )
    named = {"ansi.enabled": ansi, "session.timeZone": zone, "timestampType": timestamps, **SPLIT}
    with session_with(spark, **named):
        compared(df, made)


def moment(us):
    return EPOCH + timedelta(microseconds=us)


def positioned(row, source, offset):
    if row.us is None:
        return None
    return str(msgid.position_id(str(row[source]), row[offset], moment(row.us)))


def v0_time(row):
    id = v0_of(value_of(row, "v0"))
    if not isinstance(id, msgid.ClientUniqueId):
        return None
    try:
        return (id.time_near(near=moment(row.us), timezone=ZONE) - EPOCH) // timedelta(microseconds=1)
    except ValueError:  # no month has the milliseconds of the ID
        return None
