"""A table format of one's own, in one file: sinks, jobs and the audit use it by its name."""

import pytest

import msgid
import spark_ext as ids
from spark_ext.jobs import audit_job, ids_job
from spark_ext.tables import sinks, table_formats

pytestmark = pytest.mark.spark


class JsonTables(ids.TableFormat):
    """Each micro-batch is a folder of JSON files; a file names the columns of the table."""

    name = "json-lines"

    def is_table(self, path):
        files, base = self.filesystem(path)
        return files.get_file_info(f"{base}/_columns").is_file

    def write_batch(self, df, batch_id, path, writer, partition_by, storage_options):
        if self.is_written(batch_id, path, writer):
            return False
        self._write(df, path, f"{writer.name}-{batch_id}", "overwrite")
        return True

    def is_written(self, batch_id, path, writer):
        files, base = self.filesystem(path)
        return files.get_file_info(f"{base}/{writer.name}-{batch_id}/_SUCCESS").is_file

    def read(self, spark, path, storage_options):
        files, base = self.filesystem(path)
        with files.open_input_file(f"{base}/_columns") as file:
            columns = file.read().decode()
        return spark.read.schema(columns).json(f"{path}/*")

    def write_rows(self, df, path, mode, partition_by):
        self._write(df, path, "rows", mode)

    def _write(self, df, path, folder, mode):
        files, base = self.filesystem(path)
        df.write.mode(mode).json(f"{path}/{folder}")
        with files.open_output_stream(f"{base}/_columns") as out:
            out.write(", ".join(f"`{name}` {type}" for name, type in df.dtypes).encode())


@pytest.fixture
def json_tables(monkeypatch):
    monkeypatch.setattr(table_formats._FORMATS, "loaded", dict(table_formats._FORMATS.loaded))
    ids.register_table_format(JsonTables())


def test_own_table_format_writes_each_batch_once_and_is_recognized(spark, tmp_path, json_tables):
    """`read_table` finds the format of the folder, and Parquet does not write into it."""
    path = str(tmp_path / "t")
    assert [ids.write_once(spark.range(3), n, path, format="json-lines", app_id="a") for n in (0, 1, 0)] == [
        True,
        True,
        False,
    ]
    assert ids.read_table(spark, path).count() == 6
    with pytest.raises(ids.TableConflict, match="it is a table of the format 'json-lines'; pass format='json-lines'"):
        table_formats.table_format("parquet").write_rows(spark.range(1), path, "overwrite", ())
    with pytest.raises(ids.TableConflict, match="it is a table of the format 'json-lines'; pass"):
        ids.write_once(spark.range(1), 2, path, app_id="a")


@pytest.mark.details
def test_jobs_and_audits_use_an_own_table_format(spark, tmp_path, json_tables):
    """The job `ids` writes it, and the job `audit` reads it."""
    made = [str(msgid.position_id("log", n, 1_700_000_000)) for n in range(5)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n" + "\n".join([*made, "wrong"]) + "\n")
    ids_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), table_format="json-lines")
    table = ids.read_table(spark, str(tmp_path / "out" / "ids"))
    assert {row.id for row in table.collect()} == set(made)
    assert (tmp_path / "out" / "ids" / "_columns").exists()
    found = audit_job.run(spark, str(tmp_path / "out" / "ids"), id="id")
    assert "in 5 rows" in str(found)


@pytest.mark.parametrize("call", [
    lambda spark, path: ids.write_once(spark.range(1), 0, path, format="orc", app_id="a"),
    lambda spark, path: ids.read_table(spark, path, "orc"),
])  # fmt: skip
def test_unknown_table_format_is_refused_with_the_known_ones(spark, tmp_path, call):
    """The error names the formats."""
    with pytest.raises(ValueError, match="format must be one of parquet, delta, iceberg, got 'orc'"):
        call(spark, str(tmp_path / "t"))


def test_table_format_of_another_type_is_refused():
    """A class or a name is not a format."""
    with pytest.raises(TypeError, match="format must be a TableFormat, got 'delta'"):
        ids.register_table_format("delta")


def test_name_of_a_table_is_passed_to_a_format_that_takes_names(spark, tmp_path, json_tables, monkeypatch):
    """`table` takes the place of `path`; `read_table` leaves a name without a format to the catalog."""
    path = str(tmp_path / "t")
    one = {"format": "json-lines", "app_id": "a"}
    with pytest.raises(ValueError, match="`table` must be None for format='json-lines', whose tables have paths"):
        ids.write_once(spark.range(1), 0, table="db.t", **one)
    for wrong in ({}, {"path": path, "table": "db.t"}):
        with pytest.raises(ValueError, match="one of `path` and `table` must be given, got path="):
            ids.write_once(spark.range(1), 0, **wrong, **one)
    monkeypatch.setattr(JsonTables, "has_names", True, raising=False)
    assert ids.write_once(spark.range(3), 0, table=path, **one)
    assert sinks.is_written(spark.range(3), 0, table=path, **one)
    assert ids.read_table(spark, table=path, format="json-lines").count() == 3
    spark.range(4).createOrReplaceTempView("four")
    assert ids.read_table(spark, table="four").count() == 4
