"""The column functions: each against its plain-Python twin."""

from decimal import Decimal

import pytest
from helpers import vector_files as vectors
from helpers.sessions import collected
from helpers.spark_errors import query_fails
from helpers.strategies import ids, many
from hypothesis import strategies as st
from pyspark.sql import functions as F

import msgid
import spark_ext
from msgid.ids.checked_bytes import is_uuid
from spark_ext import _compat
from spark_ext.columns.identity import hex_text
from spark_ext.columns.reasons import no_id_reason

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE00000000"
V0 = "7F0000010000238F000000000001E240"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"

# The functions of one column of ids.
OF_AN_ID = [
    "id_from_binary", "id_from_uuid", "id_kind", "id_origin", "id_time", "id_to_binary", "id_to_uuid",
    "is_valid_id", "parse_id", "parse_v0", "time_key", "translate_v0", "try_parse_id", "try_parse_v0",
    "try_translate_v0",
]  # fmt: skip


def frame(spark, values, type="string"):
    return spark.createDataFrame([(value,) for value in values], f"id {type}")


def column(df, *columns):
    return [tuple(row) if len(columns) > 1 else row[0] for row in df.select(*columns).collect()]


def twin_of_parse_id(text):
    """Return in plain Python the expected result of `try_parse_id`."""
    try:
        id = msgid.MessageId(text)
    except msgid.InvalidMessageId:
        return None
    # PySpark gives timestamps in the local zone, naive: compare as seconds.
    return (id.version, id.mac, id.pid, id.seconds, id.sequence, id.origin, msgid.layout.EPOCH_UNIX + id.seconds)


def twin_of_parse_v0(text):
    """Return in plain Python the expected result of `try_parse_v0`."""
    try:
        id = msgid.parse(text)
    except msgid.InvalidMessageId:
        return None
    if id.version != 0:
        return None
    names = ("port", "offset", "pid", "loader_hash", "elapsed_ms", "counter")
    return (id.kind, host_text(id.host), *(getattr(id, name, None) for name in names))


def host_text(host):
    """RFC 5952's text, without the dotted form that newer Pythons give IPv4-mapped addresses."""
    mapped = getattr(host, "ipv4_mapped", None)
    return (
        f"::ffff:{host.packed[12:14].hex().lstrip('0') or '0'}:{host.packed[14:].hex().lstrip('0') or '0'}"
        if mapped
        else str(host)
    )


def flat_parse_id(col):
    p = spark_ext.try_parse_id(col)
    time = F.unix_timestamp(p.time)
    names = ("version", "mac", "pid", "seconds", "sequence", "origin")
    return F.when(p.isNotNull(), F.struct(*(p[name].alias(name) for name in names), time.alias("time")))


def check_all(spark, connect, values, type="string"):
    """Check each function of text or bytes against Python, and that no function needs a Python worker."""
    made = frame(spark, [*values, None], type).select(
        "id",
        flat_parse_id("id").alias("v1"),
        spark_ext.try_parse_v0("id").alias("v0"),
        spark_ext.try_translate_v0("id").alias("canonical"),
        spark_ext.is_valid_id("id").alias("valid"),
        spark_ext.id_kind("id").alias("kind"),
        F.unix_timestamp(spark_ext.id_time("id")).alias("time"),
        spark_ext.id_origin("id").alias("origin"),
        spark_ext.time_key("id").alias("key"),
        spark_ext.id_to_binary("id").alias("binary"),
        spark_ext.id_from_binary(spark_ext.id_to_binary("id")).alias("text"),
        spark_ext.id_to_uuid("id").alias("uuid"),
        spark_ext.id_from_uuid(spark_ext.id_to_uuid("id")).alias("of_uuid"),
        spark_ext.id_from_uuid("id").alias("from_uuid"),
        no_id_reason(hex_text("id")).alias("reason"),
    )
    *rows, null = collected(made, connect)
    assert tuple(null) == (*[None] * (len(null) - 1), "no id")
    assert len(rows) == len(values)
    for row in rows:
        text = row.id if type == "string" else row.id.hex()
        v0 = twin_of_parse_v0(text)
        assert (row.v1 and tuple(row.v1)) == twin_of_parse_id(text)
        assert (row.v0 and tuple(row.v0)) == v0
        assert row.canonical == (msgid.translate_v0(text) if v0 else None)
        assert row.valid == msgid.is_valid(text)
        id = msgid.parse(text) if row.valid else None
        v1 = id if isinstance(id, msgid.MessageId) else None
        assert row.kind == (id and id.kind)
        assert row.time == (v1 and msgid.layout.EPOCH_UNIX + v1.seconds)
        assert row.origin == (v1 and v1.origin)
        assert row.key == (v1 and v1.time_key)
        assert row.binary == (bytes.fromhex(text) if id else None)
        assert row.text == (text.upper() if id else None)
        assert (row.uuid, row.of_uuid) == ((str(v1.uuid), str(v1)) if v1 else (None, None))
        assert row.from_uuid == (f"01{text.replace('-', '').upper()}" if is_uuid(text) else None)
        assert row.reason == (None if id else reason_of(text))


def reason_of(text):
    """Return why text is not an ID, as Python says it."""
    with pytest.raises(msgid.InvalidMessageId) as caught:
        msgid.parse(text)
    return caught.value.reason


FORMS = [str, lambda id: str(id).lower(), lambda id: id.canonical]
invalid = st.text(max_size=60) | st.text("0123456789abcdefABCDEF", min_size=30, max_size=60)


def test_columns_of_any_text_agree_with_msgid(spark, connect, ansi):
    """Spark reads and refuses the same values as Python, for the same reasons, and a value of NULL is NULL.

    Every kind of ID, in either case, bare or canonical; all real IDs from public logs; any text, hex of about the right
    length, and hostile text.
    """
    spelled = [FORMS[n % 3](id) for n, id in enumerate(many(ids, 150))]
    readable = [text.encode("utf-8", "replace").decode() for text in many(invalid, 150)]
    check_all(spark, connect, [*spelled, *readable, *(row.id for row in vectors.REAL_IDS), *HOSTILE.values()])


@pytest.mark.details
def test_columns_of_any_bytes_agree_with_msgid(spark, connect, ansi):
    """Bytes of any ID, bare or canonical, and other bytes."""
    raws = many(ids.map(bytes) | ids.map(lambda id: bytes.fromhex(id.canonical)) | st.binary(max_size=30), 300)
    check_all(spark, connect, raws, "binary")


HOSTILE = {
    "empty": "",
    "33 digits": V1[:-1],
    "35 digits": V1 + "0",
    "no hex": V1[:-1] + "G",
    "trailing newline": V1 + "\n",
    "newline for a digit": V1[:-1] + "\n",
    "space for a digit": V1[:-1] + " ",
    "underscore": V1[:5] + "_" + V1[6:],
    "full-width digit": "０" + V1[1:],
    "all full-width": "０１" * 17,
    "plus": "+" + V1[1:],
    "nul": V1[:-1] + "\0",
    "version 2": "02" + V1[2:],
    "uuid": "56f7e71c-361b-21bc-024c-cdbe00000000",
    "uuid with a moved dash": "56f7e71c-361b-21bc-024cc-dbe00000000",
    "10 kB": "A" * 10_000,
    "58 digits of version 1": "01" * 29,
}


def derived(column):
    return spark_ext.derive_id(column, F.lit(1))


RAISING = (spark_ext.parse_id, spark_ext.parse_v0, spark_ext.translate_v0, derived)


@pytest.mark.parametrize(("kind", "function"), [*zip(("10 kB", "no hex", "uuid", "version 2"), RAISING, strict=True)])
def test_columns_of_hostile_input_raise_one_error(spark, kind, function):
    """Without ``try_``, the query fails with the words of Python's own error."""
    text = HOSTILE[kind]
    with query_fails(by_user=True) as caught:
        frame(spark, [text]).select(function("id")).collect()
    assert f": {reason_of(text)}" in str(caught.value)
    assert "invalid message id '" in str(caught.value)
    assert ("... (10000 in all)" in str(caught.value)) == (len(text) > 64)


def test_columns_of_a_uuid_are_a_parent(spark):
    """A UUID is a parent like any ID."""
    text = HOSTILE["uuid"]
    assert column(frame(spark, [text]), derived("id")) == [str(msgid.derive_id(text, 1))]


def test_columns_of_the_other_version_raise_and_say_so(spark):
    """Version 0 where version 1 is asked for, and the other way round."""
    for function, text, reason in (
        (spark_ext.parse_id, V0, "must be of version 1"),
        (spark_ext.parse_id, "00" + V0, "must be of version 1"),
        (spark_ext.parse_v0, V1, "must be of version 0, got version 1"),
        (spark_ext.translate_v0, V1, "must be of version 0, got version 1"),
    ):
        with query_fails(reason):
            frame(spark, [text]).select(function("id")).collect()


def test_columns_of_null_are_null(spark):
    """NULL is NULL, never an error; a struct is NULL itself, not a struct of NULLs."""
    raising = (spark_ext.parse_id, spark_ext.parse_v0, spark_ext.translate_v0)
    assert column(frame(spark, [None]), *(function("id") for function in raising)) == [(None,) * 3]
    structs = (spark_ext.try_parse_id, spark_ext.try_parse_v0)
    assert column(frame(spark, [None, "x"]), *(function("id").isNull() for function in structs)) == [(True, True)] * 2


def test_columns_of_numbers_are_null(spark):
    """A number is not an ID, although its digits may be the text of one."""
    digits = Decimal("1234567890" * 3 + "12")
    df = spark.createDataFrame([(1, digits, digits)], "a bigint, b decimal(38, 0), c decimal(32, 0)")
    functions = (spark_ext.try_parse_id, spark_ext.is_valid_id, spark_ext.id_kind)
    assert column(df, *(function(name) for name in "abc" for function in functions)) == [(None, False, None) * 3]


@pytest.mark.details
@pytest.mark.skipif(_compat.version() < (4, 0), reason="Spark 3.5 has neither type")
def test_text_of_any_collation_is_read_and_a_variant_is_not(spark, ansi):
    """A collation does not change the digits of an ID. The text or number in a variant is an ID in SQL alone."""
    values = {
        f"'{V1}' COLLATE UTF8_LCASE": "v1",
        f"'{V1}' COLLATE UNICODE_CI": "v1",
        f"parse_json('{'1234567890' * 3}12')": None,
        f"""parse_json('"{V1}"')""": None,
    }
    df = spark.range(1).select(*(F.expr(value).alias(f"c{n}") for n, value in enumerate(values)))
    (row,) = column(df, *(f(name) for name in df.columns for f in (spark_ext.id_kind, spark_ext.is_valid_id)))
    assert row == tuple(part for kind in values.values() for part in (kind, kind is not None))
    spark_ext.register(spark)  # its parameters are text, to which Spark casts a variant
    assert df.select(F.expr("msgid_kind(c3)")).collect() == [("v1",)]


def test_field_selected_alone_is_computed_alone(spark, connect):
    """``parse_id(x).pid`` has in its plan nothing of the other fields, nor has a field of a struct made before."""
    if connect:
        pytest.skip("the plan is the server's")
    looks = 4 if _compat.version() >= (4, 0) else 8  # Spark 3.5 writes the first argument of `nullif` twice
    df = frame(spark, [V1])
    for one in (
        df.select(spark_ext.parse_id("id").pid.alias("x")),
        df.select(spark_ext.try_parse_id("id").alias("p")).select("p.pid"),
    ):
        plan = one._jdf.queryExecution().optimizedPlan().toString()
        assert plan.count("crc32(") == looks  # one look at the pid, which takes four bytes of the checksum
        assert "timestamp" not in plan
        assert "0a:" not in plan
    parsed = spark_ext.try_parse_id("id")
    two = df.select(parsed.pid.alias("x"), parsed.time.alias("y"))._jdf.queryExecution().optimizedPlan().toString()
    assert (two.count("crc32("), "0a:" in two) == (2 * looks, False)
    whole = df.select(spark_ext.try_parse_id("id").alias("x"))._jdf.queryExecution().optimizedPlan().toString()
    assert "timestamp" in whole
    assert "0a:" in whole


def test_assign_id_of_rows_numbers_partitions_and_rows(spark, ansi):
    """The lease is the node, the partition the pid, the row the sequence, the run's time the seconds."""
    run, at = "nightly", 1_795_219_200
    df = spark.range(0, 1000, numPartitions=4).select(
        "id", F.spark_partition_id().alias("p"), spark_ext.assign_id(run, at)
    )
    rows = {row.id: row for row in df.collect()}
    assigned = {n: msgid.MessageId(row.assign_id) for n, row in rows.items()}
    assert len(set(assigned.values())) == 1000
    for n, id in assigned.items():
        assert (id.origin, id.pid, id.sequence) == ("assigned", rows[n].p, n % 250)
        assert id.seconds == at - msgid.layout.EPOCH_UNIX
        assert id.node == msgid.ids.derived.assigned_node(run)


@pytest.mark.details
def test_assign_id_of_many_partitions(spark):
    """Those after the 256th are numbered as those before it."""
    df = spark.range(0, 3 * 600, numPartitions=600).select("id", spark_ext.assign_id("run", 0).alias("new"))
    df = df.where("id < 6 OR id BETWEEN 762 AND 773 OR id > 1790")
    found = {row.id: msgid.MessageId(row.new) for row in df.collect()}
    assert {n: (id.pid, id.sequence) for n, id in found.items()} == {n: divmod(n, 3) for n in found}
    assert len(found) == 27


def test_assign_id_is_the_same_for_the_same_run(spark):
    """A named run gives the same rows the same ids again; without a name each call is a run of its own."""
    df = spark.range(100, numPartitions=2)
    named = [column(df, spark_ext.assign_id("run", 0)) for _ in range(2)]
    assert named[0] == named[1]
    assert not set(column(df, spark_ext.assign_id())) & set(column(df, spark_ext.assign_id()))
    once = df.withColumn("new", spark_ext.assign_id())
    assert once.collect() == once.collect()


def test_assign_id_at_any_time_has_its_seconds(spark):
    """A time before 2021 or after 2157 is taken modulo 2**32, and no digit is lost where a field is small."""
    times = [-(10**9), 0, 1_609_459_200, 1_609_459_200 + 2**32 + 5]
    (made,) = column(spark.range(1), *(spark_ext.assign_id("run", at) for at in times))
    assert [msgid.MessageId(id).seconds for id in made] == [(at - 1_609_459_200) % 2**32 for at in times]


@pytest.mark.volume
def test_assign_id_of_too_many_partitions_raises(spark, connect):
    """Partition 65,536 is past the limit: the query fails, and the error names the limit."""
    if connect:
        pytest.skip("the same plan as in classic, at minutes a run")
    df = spark.range(65_537, numPartitions=65_537).where("id = 65536")
    with query_fails("at most 65536 partitions of 4294967296 rows each"):
        df.select(spark_ext.assign_id()).collect()


def test_assign_id_with_bad_arguments_raises(spark):
    """A run has a name, and a time of a kind."""
    with pytest.raises(TypeError, match="run must be text, got 7"):
        spark_ext.assign_id(7)
    with pytest.raises(TypeError, match="at must be an aware datetime or Unix seconds"):
        spark_ext.assign_id("x", "today")


@pytest.mark.details
def test_columns_of_functions_are_named_after_them(spark):
    """As Spark's own are; and a column may be given by name or as itself."""
    functions = [getattr(spark_ext, name) for name in OF_AN_ID]
    df = frame(spark, [None])
    for argument in ("id", F.col("id")):
        assert df.select(*(function(argument) for function in functions)).columns == OF_AN_ID
    assert spark.range(1).select(spark_ext.assign_id()).columns == ["assign_id"]
