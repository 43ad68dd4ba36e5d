"""Parquet, Delta without its JAR and a small format pass the tests of `spark_ext.testing`."""

import inspect
import json
from typing import ClassVar
from uuid import uuid4

import pytest
from helpers import markdown
from pyspark.sql.types import StructType

import msgid
import spark_ext
from spark_ext.jobs import audit_job, ids_job
from spark_ext.tables import table_formats
from spark_ext.testing import TableFormatTests

pytestmark = pytest.mark.spark


class TestParquet(TableFormatTests):
    """One folder per batch."""

    format = table_formats.table_format("parquet")
    evolves = True
    options: ClassVar = {"partition_by": ("k",)}


@pytest.mark.details
class TestDelta(TableFormatTests):
    """The package `deltalake` commits the files of Spark."""

    format = table_formats.table_format("delta")
    options: ClassVar = {"partition_by": ("k",)}


Orc = markdown.class_of(
    "guides/table-formats.md", "Orc", spark_ext=spark_ext, json=json, uuid4=uuid4, StructType=StructType
)


@pytest.mark.details
class TestSmallFormat(TableFormatTests):
    """The format of the guide."""

    format = Orc()

    def test_jobs_and_audits_use_it(self, spark, tmp_path):
        """The job `ids` writes it, and the job `audit` reads it."""
        made = [str(msgid.position_id("log", n, 1_700_000_000)) for n in range(5)]
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.csv").write_text("id\n" + "\n".join([*made, "wrong"]) + "\n")
        ids_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), table_format="orc")
        table = spark_ext.read_table(spark, str(tmp_path / "out" / "ids"))
        assert {row.id for row in table.collect()} == set(made)
        assert (tmp_path / "out" / "ids" / "_orc_table").exists()
        assert "in 5 rows" in str(audit_job.run(spark, str(tmp_path / "out" / "ids"), id="id"))

    def test_a_name_is_passed_to_a_format_that_takes_names(self, spark, table, monkeypatch):
        """A name takes the place of `path`; `read_table` leaves a name without a format to the catalog."""
        one = {"format": "orc", "app_id": "a"}
        with pytest.raises(ValueError, match="`table` must be None for format='orc', whose tables have paths"):
            spark_ext.write_once(spark.range(1), 0, table="db.t", **one)
        for wrong in ({}, {"path": table, "table": "db.t"}):
            with pytest.raises(ValueError, match="one of `path` and `table` must be given, got path="):
                spark_ext.write_once(spark.range(1), 0, **wrong, **one)
        monkeypatch.setattr(Orc, "has_names", True)
        assert spark_ext.write_once(spark.range(3), 0, table=table, **one)
        assert spark_ext.read_table(spark, table=table, format="orc").count() == 3
        spark.range(4).createOrReplaceTempView("four")
        assert spark_ext.read_table(spark, table="four").count() == 4


FAULTS = {
    "none": {},
    "a replay writes again": {"write_batch": lambda self, df, number, path, *_: self.write_part(df, path, uuid4().hex)},
    "writers share a batch": {"write_batch": lambda self, df, number, path, *_: self.write_part(df, path, str(number))},
    "a replay is new": {"write_batch": lambda self, *batch: Orc.write_batch(self, *batch) or True},
    "tables are not recognized": {"is_table": lambda self, path: False},
    "rows are never replaced": {"write_rows": lambda self, df, path, mode, _: self.write_part(df, path, uuid4().hex)},
    "a row is not read": {"read": lambda self, *given: Orc.read(self, *given).where("id > 0")},
    "tasks write to the table": {
        "write_part": lambda self, df, path, part: df.write.mode("append").orc(f"{path}/{part}") or True
    },
}


@pytest.mark.details
@pytest.mark.parametrize("fault", FAULTS)
def test_contract_notices_a_faulty_format(spark, tmp_path, monkeypatch, fault):
    monkeypatch.setattr(table_formats._FORMATS, "loaded", dict(table_formats._FORMATS.loaded))
    tests, noticed = TableFormatTests(), False
    tests.format = type("Faulty", (Orc,), FAULTS[fault])()
    spark_ext.register_table_format(tests.format)
    for name in (name for name in dir(tests) if name.startswith("test_") and not noticed):
        values, test = {"spark": spark, "table": str(tmp_path / name), "first": True}, getattr(tests, name)
        try:
            test(**{name: values[name] for name in inspect.signature(test).parameters})
        except (Exception, pytest.fail.Exception):
            noticed = True
    assert noticed == bool(FAULTS[fault])


def test_format_that_is_unknown_or_no_format_is_refused(spark, tmp_path):
    """The error names the known formats; a name is not a format."""
    says = "format must be one of parquet, delta, iceberg, got 'avro'"
    with pytest.raises(ValueError, match=says):
        spark_ext.write_once(spark.range(1), 0, str(tmp_path / "t"), format="avro", app_id="a")
    with pytest.raises(ValueError, match=says):
        spark_ext.read_table(spark, str(tmp_path / "t"), "avro")
    with pytest.raises(TypeError, match="format must be a TableFormat, got 'delta'"):
        spark_ext.register_table_format("delta")
