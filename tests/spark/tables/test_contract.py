"""Parquet, Delta without its JAR and a small format pass the tests of `spark_ext.testing`."""

import json
from typing import ClassVar
from uuid import uuid4

import pytest
from pyspark.sql.types import StructType

import msgid
import spark_ext
from spark_ext.jobs import audit_job, ids_job
from spark_ext.tables.table_formats import table_format
from spark_ext.testing import TableFormatTests

pytestmark = pytest.mark.spark


class TestParquet(TableFormatTests):
    """One folder per batch."""

    format = table_format("parquet")
    evolves = True
    options: ClassVar = {"partition_by": ("k",)}


class TestDelta(TableFormatTests):
    """The package `deltalake` commits the files of Spark."""

    format = table_format("delta")
    options: ClassVar = {"partition_by": ("k",)}


class Orc(spark_ext.TableFormat):
    """Each batch is a folder of ORC files, which a rename makes visible."""

    name = "orc"

    def is_table(self, path):
        files, folder = self.filesystem(path)
        return files.get_file_info(f"{folder}/_orc_table").is_file

    def is_written(self, batch_id, path, writer):
        files, folder = self.filesystem(path)
        return files.get_file_info(f"{folder}/{writer.name}-{batch_id}/_SUCCESS").is_file

    def write_batch(self, df, batch_id, path, writer, partition_by, storage_options):
        if self.is_written(batch_id, path, writer):
            return False
        return self.write_part(df, path, f"{writer.name}-{batch_id}")

    def write_rows(self, df, path, mode, partition_by):
        files, folder = self.filesystem(path)
        if mode == "error" and self.is_table(path):
            raise FileExistsError(path)
        if mode == "overwrite" and self.is_table(path):
            files.delete_dir(folder)
        self.write_part(df, path, f"rows-{uuid4().hex}")

    def write_part(self, df, path, part):
        files, folder = self.filesystem(path)
        if self.is_table(path) and self.read(df.sparkSession, path, None).dtypes != df.dtypes:
            raise spark_ext.TableConflict(f"cannot write to {path}: the columns must stay as they are")
        hidden = f".writing-{uuid4().hex}"
        df.write.orc(f"{path}/{hidden}")
        with files.open_output_stream(f"{folder}/_orc_table") as out:
            out.write(df.schema.json().encode())
        try:
            files.move(f"{folder}/{hidden}", f"{folder}/{part}")
        except OSError:  # another driver was first
            files.delete_dir(f"{folder}/{hidden}")
            return False
        return True

    def read(self, spark, path, storage_options):
        files, folder = self.filesystem(path)
        with files.open_input_file(f"{folder}/_orc_table") as file:
            columns = file.read().decode()
        return spark.read.schema(StructType.fromJson(json.loads(columns))).orc(f"{path}/*")


@pytest.mark.details
class TestSmallFormat(TableFormatTests):
    """A format in one class."""

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


def test_format_that_is_unknown_or_no_format_is_refused(spark, tmp_path):
    """The error names the known formats; a name is not a format."""
    says = "format must be one of parquet, delta, iceberg, got 'avro'"
    with pytest.raises(ValueError, match=says):
        spark_ext.write_once(spark.range(1), 0, str(tmp_path / "t"), format="avro", app_id="a")
    with pytest.raises(ValueError, match=says):
        spark_ext.read_table(spark, str(tmp_path / "t"), "avro")
    with pytest.raises(TypeError, match="format must be a TableFormat, got 'delta'"):
        spark_ext.register_table_format("delta")
