"""`write_once` and `read_table` with tables of Iceberg's JAR."""

import signal
from typing import ClassVar

import pytest
from helpers.sinks import numbers
from lakehouse.drivers import DRIVER_SECONDS, start

import spark_ext as ids
from spark_ext import TableConflict
from spark_ext.tables import iceberg
from spark_ext.tables.table_formats import TableName, table_format
from spark_ext.testing import TableFormatTests

pytestmark = [pytest.mark.systems, pytest.mark.spark]


def write(df, number, table, app_id="a", **options):
    return ids.write_once(df, number, table=table, format="iceberg", app_id=app_id, **options)


def read(spark, table):
    return ids.read_table(spark, table=table, format="iceberg")


def refs(spark, table):
    """Return the references of a table that do not end by themselves."""
    return [row.name for row in spark.table(f"{table}.refs").collect() if row.max_reference_age_in_ms is None]


def settings_of(spark, namespace):
    """Return the settings of a namespace's catalog."""
    catalog = namespace.split(".")[0]
    return {key: value for key, value in spark.conf.getAll.items() if f".{catalog}" in key}


class TestIceberg(TableFormatTests):
    """Each batch is a commit of a table in a catalog whose commits are transactions."""

    format = table_format("iceberg")
    evolves = True
    options: ClassVar = {"partition_by": ("k",)}

    @pytest.fixture
    def table(self, jdbc):
        return TableName(f"{jdbc}.t")


def test_every_type_is_read_as_it_was(spark, db):
    """Integers below 32 bits are `int`, which Iceberg has in place of them; each partition keeps its value."""
    df = spark.sql("""
        SELECT CAST(id AS BYTE) b, CAST(id AS SHORT) s, CAST(id AS INT) i, id AS l, CAST(id AS FLOAT) f,
        CAST(id AS DOUBLE) d, CAST(id AS DECIMAL(10, 2)) AS dec, id = 1 AS bool, CAST('x' AS BINARY) AS bin,
        DATE'2026-01-02' AS day, TIMESTAMP'2026-11-01 05:30:00Z' AS at, TIMESTAMP_NTZ'2026-01-02 03:04:05.5' AS ntz,
        IF(id = 0, NULL, '%2F ä=[*]?{x}#:') AS `text.of`, ARRAY(1S, NULL) AS list, MAP('k', id) AS map,
        NAMED_STRUCT('x', CAST(id AS BYTE), 'y', ARRAY('q')) AS struct FROM RANGE(3)""")
    expected = sorted(map(repr, df.toArrow().to_pylist()))
    for number, columns in enumerate([(), ("text.of",), ("at", "b"), ("day", "ntz", "bool")]):
        t = f"{db}.t{number}"
        assert write(df, 0, t, partition_by=columns)
        assert write(df, 1, t)  # the table keeps its partitions
        found = read(spark, t)
        assert sorted(map(repr, found.toArrow().to_pylist())) == sorted(expected * 2)
        assert [type for _, type in found.dtypes][:3] == ["int"] * 3


def test_rows_that_do_not_fit_the_table_are_refused(spark, db):
    """Columns may be missing, which readers see as NULL; no row of a refused batch is written."""
    t = f"{db}.t"
    assert write(spark.range(1).selectExpr("id", "1 AS n"), 0, t, partition_by=("n",))
    refused = [
        ("id, 1L AS n", "'n' .* must be int, got bigint"),
        ("id, 1 AS n, 2 AS m", "column 'm' to .*: the table has id, n"),
        ("id, 1 AS n, 2 AS N", "Spark compares names without case"),
    ]
    for columns, says in refused:
        with pytest.raises(TableConflict, match=says):
            write(spark.range(1).selectExpr(*columns.split(",")), 1, t)
    for columns, partition_by, says in [
        ("INTERVAL '1' DAY AS span", (), "to .*: .*interval day"),
        ("NAMED_STRUCT('n', NULL) AS s", (), "column 's.n': its type is void; cast it"),
        ("ARRAY(1) AS x", ("x",), "to .*: .*x"),
        ("1 AS n", ("x",), "to .*: .*x"),
    ]:
        with pytest.raises(TableConflict, match=f"cannot write {says}") as refusal:
            write(spark.range(1).selectExpr(columns), 0, f"{db}.new", partition_by=partition_by)
        assert "\n" not in str(refusal.value)
    assert not spark.catalog.tableExists(f"{db}.new")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN late string")
    assert write(spark.sql("SELECT 1 AS n, 5L AS id"), 1, t)
    assert sorted(map(tuple, read(spark, t).collect())) == [(0, 1, None), (5, 1, None)]
    spark.sql(f"CREATE TABLE {db}.strict (id bigint NOT NULL, n int) USING iceberg")
    with pytest.raises(TableConflict, match=rf"cannot write to {db}.strict: .*`id`") as refusal:
        write(spark.range(1).selectExpr("1 AS n"), 0, f"{db}.strict")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "properties",
    ["'format-version' = '3'", "'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true'"],
)
def test_table_that_a_user_has_made_keeps_its_form(spark, db, properties):
    """Versions, hidden partitions and other properties are those of the user."""
    t = f"{db}.t"
    spark.sql(
        f"CREATE TABLE {t} (id bigint, at timestamp) USING iceberg PARTITIONED BY (days(at), bucket(4, id)) "
        f"TBLPROPERTIES ({properties})"
    )
    df = spark.range(9).selectExpr("id", "timestamp_seconds(id * 40000) AS at")
    assert write(df, 0, t)
    df.writeTo(t).append()
    assert write(df, 1, t)
    assert not write(df, 1, t)
    assert numbers(read(spark, t)) == sorted([*range(9)] * 3)


def test_session_that_cannot_use_the_table_says_why(spark, db):
    """A missing catalog, JAR or table gives one line."""
    spark.conf.set("spark.sql.catalog.broken", "org.apache.iceberg.spark.Missing")
    refused = [
        ("nolake.db.t", "the session lacks a catalog 'nolake' of Iceberg; set spark.sql.catalog.nolake to org.apache"),
        ("db.t", "the session lacks a catalog 'db' of Iceberg"),
        ("broken.db.t", "cannot write to broken.db.t: .*org.apache.iceberg.spark.Missing"),
        ("/data/t", "an Iceberg table must have a name such as 'catalog.db.table', .* got '/data/t'"),
        (f"{db}.t.branch_b", "which does not select a version, got"),
    ]
    for table, says in refused:
        with pytest.raises(ValueError, match=says) as raised:
            write(spark.range(1), 0, table)
        assert "\n" not in str(raised.value)
    with pytest.raises(FileNotFoundError, match="cannot find an Iceberg table"):
        read(spark, f"{db}.t")


def test_writes_of_others_are_never_staged(spark, db, monkeypatch):
    """`write_once` sets neither `spark.wap.id` nor `write.wap.enabled`; and its rows are not staged by them."""
    t = f"{db}.t"
    assert ids.write_once(spark.range(1), 0, t, format="iceberg", app_id="a")  # the name in place of the path
    assert "write.wap.enabled" not in {row.key for row in spark.sql(f"SHOW TBLPROPERTIES {t}").collect()}
    append = iceberg._Table._append

    def appended(*arguments):
        spark.range(10, 11).writeTo(t).append()  # while the rows are staged
        append(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(iceberg._Table, "_append", appended)
        assert write(spark.range(1, 2), 1, t)
    assert numbers(read(spark, t)) == [0, 1, 10]
    spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    assert write(spark.range(2, 3), 2, t)  # without the setting, nothing is staged
    for key in ("spark.wap.id", "spark.wap.branch"):
        spark.conf.set(key, "audit")
        try:
            with pytest.raises(TableConflict, match=f"{key} is set, so Spark would stage the rows"):
                write(spark.range(3, 4), 3, t)
        finally:
            spark.conf.unset(key)
    assert write(spark.range(3, 4), 3, t)
    assert numbers(read(spark, t)) == [0, 1, 2, 3, 10]


def maintain(spark, table, expire=True):
    """Compact a table, and delete its old snapshots and the files that it does not name."""
    catalog = table.split(".")[0]
    spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
    if expire:
        now = spark.sql("SELECT CAST(current_timestamp() AS STRING)").first()[0]
        spark.sql(f"CALL {catalog}.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '{now}')")
        spark.sql(f"CALL {catalog}.system.remove_orphan_files(table => '{table}')")


def stop(step):
    """Return a function that fails once at a step of a table, as a process that ends there."""

    class Ended(BaseException):
        pass

    def end(*arguments):
        raise Ended

    return Ended, end


@pytest.mark.parametrize("step", ["_append", "_cherrypick", "finish"])
def test_batch_whose_driver_ended_is_known_after_a_compaction(spark, db, monkeypatch, step):
    """Between staging, publishing and recording: the batch is written once, and a branch that stays expires."""
    t, (ended, end) = f"{db}.t", stop(step)
    assert write(spark.range(2), 0, t)
    with monkeypatch.context() as patch:
        patch.setattr(iceberg._Table, step, end)
        patch.setattr(iceberg._Table, "_drop", lambda *_: None)
        with pytest.raises(ended):
            write(spark.range(2, 4), 1, t)
    maintain(spark, t, expire=False)
    assert write(spark.range(2, 4), 1, t) is (step != "finish")
    assert write(spark.range(4, 6), 2, t)
    assert numbers(read(spark, t)) == list(range(6))
    assert refs(spark, t) == ["main"]


def test_batch_of_a_killed_driver_is_written_once_through_a_rest_catalog(spark, rest, tmp_path):
    """A driver is killed between staging and publishing; the next one writes that batch and the one after it."""
    told = tmp_path / "told"
    plan = {"way": "iceberg", "settings": settings_of(spark, rest), "place": f"{rest}.t", "told": str(told), "batch": 1}
    for run, (step, code) in enumerate([("staged", -signal.SIGKILL), (None, 0)]):
        log = tmp_path / f"log-{run}"
        driver = start(log, {**plan, "batches": 2 + run, "step": step})
        assert driver.wait(DRIVER_SECONDS) == code, log.read_text()[-3000:]
        assert numbers(read(spark, f"{rest}.t")) == list(range(30 if run else 10))
    assert told.read_text().splitlines() == ["0 True", "0 False", "1 True", "2 True"]
    assert refs(spark, f"{rest}.t") == ["main"]


def test_batches_are_known_after_their_snapshots_have_expired(spark, db, monkeypatch):
    """Recorded batches are; one that was published and not recorded is an error, and its cure works."""
    t, (ended, end) = f"{db}.t", stop("finish")
    for number in range(3):
        assert write(spark.range(number, number + 1), number, t)
    maintain(spark, t)
    assert spark.table(f"{t}.snapshots").count() == 1
    assert not write(spark.range(2, 3), 2, t)
    with monkeypatch.context() as patch:
        patch.setattr(iceberg._Table, "finish", end)
        with pytest.raises(ended):
            write(spark.range(3, 4), 3, t)
    maintain(spark, t)
    with pytest.raises(TableConflict, match=r"cannot tell whether batch 3 of 'a' is in .*: an attempt ended") as raised:
        write(spark.range(3, 4), 3, t)
    spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ({str(raised.value).rpartition('otherwise set ')[2]})")
    assert not write(spark.range(3, 4), 3, t)
    assert write(spark.range(4, 5), 4, t)
    assert numbers(read(spark, t)) == list(range(5))


def test_stream_is_continued_with_other_settings(spark, db, tmp_path):
    """`foreachBatch` has the settings of the session that starts the query, and a restart continues it."""
    t, source = f"{db}.t", str(tmp_path / "in")
    seen = []

    def sink(batch_df, batch_id):
        seen.append(ids.write_once(batch_df, batch_id, table=t, format="iceberg"))
        seen.append(ids.write_once(batch_df, batch_id, table=t, format="iceberg"))

    for run in range(2):
        spark.range(3 * run, 3 * run + 3).write.mode("append").parquet(source)
        spark.conf.set("spark.sql.ansi.enabled", str(run == 0).lower())
        query = spark.readStream.schema("id bigint").parquet(source).writeStream.foreachBatch(sink)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination(200)
        assert query.exception() is None
    spark.conf.unset("spark.sql.ansi.enabled")
    assert seen == [True, False] * 2
    assert numbers(read(spark, t)) == list(range(6))
