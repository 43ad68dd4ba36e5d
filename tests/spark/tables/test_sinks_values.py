"""Every sink over every type of Spark with its edge values, through a crash and a replay in another time zone.

`process` is among them: its handler gets every value, and its rows hold them.
"""

from datetime import date, datetime, timedelta, timezone

import psycopg
import pyarrow.parquet as pq
import pytest
from helpers.edges import CASES, NUL, ZONES, edge_rows, plain_rows, session_zone
from helpers.servers import running_postgres
from helpers.streams import run_to_end
from psycopg import sql
from pyspark.sql import functions as F

import spark_ext as ids
from msgid.processing import loads
from spark_ext import upsert_postgres
from spark_ext._settings import settings
from spark_ext.tables import delta, parquet
from spark_ext.tables.upsert import Upserted, _column_types

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def edges(spark):
    """One row per edge value, and their exact values by ID."""
    rows = edge_rows(spark)
    return rows, plain_rows(rows.toArrow())


OTHERWISE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
}
"""Settings that change values in the files of Spark's own writer."""


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_write_once_keeps_every_value(spark, tmp_path, monkeypatch, edges, format):
    """Each row is in the table once and unchanged, after a crash before the commit and a replay in another zone."""
    path, (rows, expected) = str(tmp_path / "table"), edges
    home, commit = {"parquet": (parquet, "_rename"), "delta": (delta._Table, "commit")}[format]
    for zone, crashes in ((ZONES[0], True), (ZONES[1], False), (ZONES[2], False)):
        with session_zone(spark, zone), settings(spark, OTHERWISE), monkeypatch.context() as patch:
            if crashes:
                patch.setattr(home, commit, lambda *_: (_ for _ in ()).throw(OSError("the driver is killed")))
                with pytest.raises(OSError, match="is killed"):
                    ids.write_once(rows, 0, path, format=format, app_id="a")
            else:
                assert ids.write_once(rows, 0, path, format=format, app_id="a") is (zone == ZONES[1])
    read = ids.read_table(spark, path).select(*(f"`{name.replace('`', '``')}`" for name in rows.columns))
    found = plain_rows(read.toArrow())
    assert found.keys() == expected.keys() == {case.id for case in CASES}
    for id in expected:  # as text, because NaN does not equal itself
        assert repr(found[id]) == repr(expected[id])
    for file in (tmp_path / "table").rglob("*.parquet"):
        assert not [key for key in pq.read_schema(file).metadata if b"legacy" in key]  # other readers know no rebase


_FOLDERS = ("string", "tinyint", "smallint", "int", "bigint", "boolean", "date")
"""The types by which a table can be parted."""
LOST = ("''", "'__HIVE_DEFAULT_PARTITION__'")
"""Text that the name of a folder loses."""


def is_partition(case):
    """Return whether a table can be parted by a value: it fits into a folder's name."""
    type = case.column.type
    return type in _FOLDERS and "repeat(" not in case.sql and not case.is_odd and case.sql not in LOST


@pytest.mark.details
@pytest.mark.parametrize("format", ["parquet", pytest.param("delta", marks=pytest.mark.variants)])
def test_write_once_keeps_every_value_of_a_partition(spark, tmp_path, edges, format):
    """Parted by a column of each plain type, a table has each row once and unchanged, in every zone."""
    cases = [case for case in CASES if is_partition(case)]
    names = list(dict.fromkeys(case.column.name for case in cases))
    columns = [F.col(f"`{name.replace('`', '``')}`") for name in names]
    rows = edges[0].where(F.col("id").isin([case.id for case in cases])).select("id", *columns)
    path = str(tmp_path / "table")
    with session_zone(spark, ZONES[0]):
        assert ids.write_once(rows, 0, path, format=format, app_id="a", partition_by=names)
    found = plain_rows(ids.read_table(spark, path).select("id", *columns).toArrow())
    assert found.keys() == {case.id for case in cases}
    for case in cases:
        assert repr(found[case.id]) == repr([{name: edges[1][case.id][0][name] for name in names}]), case


_UNREADABLE = {case.id for case in CASES if case.is_odd and NUL not in case.sql}
"""The values that Python cannot represent."""


def echo(state, message, context):
    """Publish the body."""
    context.publish(message.body)


def exact(value, type):
    """Return a value of a body as `plain_rows` does: times as numbers, and text as bytes."""
    if isinstance(value, dict) and type.typeName() == "map":
        value = [*value.items()]  # that of a row that is malformed has pairs
    if isinstance(value, list) and type.typeName() == "map":
        return [(exact(key, type.keyType), exact(held, type.valueType)) for key, held in value]
    if isinstance(value, dict):
        return {field.name: exact(value[field.name], field.dataType) for field in type}
    if isinstance(value, list):
        return [exact(part, type.elementType) for part in value]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime):
        return (value.replace(tzinfo=timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(
            microseconds=1
        )
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


@pytest.mark.details
def test_process_keeps_every_value(spark, rocksdb, tmp_path, edges):
    """The handler gets each value unchanged, at each delivery; a row that Python lacks is malformed, with its values.

    A struct that may be NULL has fields that may not. A VARIANT and a map with keys of structs are refused at the call.
    """
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    rows, expected = edges
    is_even = F.octet_length("id") % 2 == 0
    pair = F.when(is_even, F.struct(F.lit(1).alias("a"), F.lit(2).alias("b")))
    rows.union(rows).coalesce(1).write.parquet(str(tmp_path / "in"))
    with session_zone(spark, ZONES[0]):
        stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
        stream = stream.select("*", pair.alias("pair"), F.col("id").alias("key"))
        for refused in (stream, stream.drop("by struct").withColumn("json", F.parse_json(F.lit("1")))):
            with pytest.raises(ValueError, match=r"the body must have columns .*, got '(by struct|json)'"):
                ids.process(refused, "key", echo)
        run_to_end(ids.process(stream.drop("by struct"), "key", echo, buckets=1), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert len(found) == 2 * len(CASES)
    assert {row.input_id for row in found if row.kind == "malformed"} == _UNREADABLE
    assert all(sum(row.kind == kind for row in found) == len(CASES) - len(_UNREADABLE) for kind in ("new", "duplicate"))
    for row in found:
        body = loads(row.body.encode())
        assert (body.pop("pair") is None) is bool(len(row.input_id.encode()) % 2)
        kept = [name for name in rows.columns[1:] if name != "by struct"]
        values = {name: exact(body[name], rows.schema[name].dataType) for name in kept}
        sent = {name: value for name, value in expected[row.input_id][0].items() if name != "by struct"}
        for held in (values, sent):  # a map does not order its entries
            held.update({name: held[name] and sorted(held[name], key=repr) for name in held if name.startswith("by ")})
        assert repr(values) == repr(sent), row


_EXACT = {
    "timestamp with time zone": "(extract(epoch FROM {}) * 1000000)::bigint",
    "timestamp without time zone": "(extract(epoch FROM {}) * 1000000)::bigint",
    "date": "{} - DATE '1970-01-01'",
    "text": "convert_to({}, 'UTF8')",
    "real": "{}::double precision",
    "jsonb": "{}::text",
}
"""How PostgreSQL writes values exactly, where Python's values are not exact."""
_JSON = {
    "texts 2": "[]",
    "times 1": '["2026-01-02T03:04:05.123456Z", null]',
    "clocks 1": '["2026-03-08T02:30:00.123456"]',
    "numbers 1": '["NaN",-0,0,"Infinity","-Infinity",5e-324]',
    "Struct 1": '{"%s\\"": [{"at": "0001-01-01T00:00:00.000001Z"}], "a.b": 1}',
    "Struct 2": '{"%s\\"": null, "a.b": null}',
    "by text 1": '{"": null, "a": 1}',
    "by time 1": '{"1767323045123456": 1}',
}
"""Nested values in PostgreSQL; arrays of plain values are arrays."""


@pytest.fixture(scope="module")
def server():
    with running_postgres() as conninfo:
        yield conninfo


@pytest.mark.details
@pytest.mark.parametrize("encoding", ["UTF8", "SQL_ASCII", "LATIN1"])
def test_upsert_postgres_keeps_every_value(spark, server, encoding):
    """Each row is in the table unchanged, also after a replay in another time zone."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {encoding} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
    conninfo = server.replace("dbname=postgres", f"dbname={encoding.lower()}")
    lacks = {"€", "\U0001f600"} if encoding == "LATIN1" else set()
    cases = [case for case in CASES if not (case.is_odd or lacks & set(case.column.name + case.sql))]
    cases = [case for case in cases if case.column.name not in ("by bytes", "by struct")]
    rows, kept = edge_rows(spark, cases), len(cases)
    for zone, (inserted, present) in ((ZONES[0], (kept, 0)), ("GMT+08:00", (0, kept))):
        with session_zone(spark, zone):
            counts = upsert_postgres(rows, conninfo, "edges", key_is_id=False)
        assert counts == Upserted(inserted, present, 0)
    types = _column_types(rows.schema)
    with psycopg.connect(conninfo, client_encoding="utf8") as connection:
        cells = [
            sql.SQL(_EXACT.get(type, "array_to_json({})::text" if type.endswith("[]") else "{}")).format(
                sql.Identifier(name)
            )
            for name, type in types.items()
        ]
        query = sql.SQL("SELECT {} FROM edges").format(sql.SQL(", ").join(cells))
        stored = {id.decode(): dict(zip(rows.columns[1:], r, strict=True)) for id, *r in connection.execute(query)}
    assert stored.keys() == {case.id for case in cases}
    expected = plain_rows(rows.toArrow())
    for case in cases:
        if types[case.column.name] != "jsonb" and not types[case.column.name].endswith("[]"):
            assert repr(stored[case.id]) == repr(expected[case.id][0]), case
        elif case.id in _JSON:
            assert stored[case.id][case.column.name] == _JSON[case.id]
