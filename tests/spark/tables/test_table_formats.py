"""A table format of one's own, in one file: sinks, jobs, the clean-up and the audit use it by its name."""

import pytest
from helpers.message_tables import POLICY, now

import msgid
import spark_ext as ids
from spark_ext.jobs import audit_job, ids_job
from spark_ext.tables import table_formats

pytestmark = pytest.mark.spark


class JsonTables(ids.TableFormat):
    """Each micro-batch is a folder of JSON files; a file marks the table."""

    name = "json-lines"

    def is_table(self, path):
        from spark_ext._filesystem import filesystem

        files, base = filesystem(path)
        return files.get_file_info(f"{base}/_json_table").is_file

    def write_batch(self, df, batch_id, path, writer, partition_by, storage_options):
        if self.is_written(batch_id, path, writer):
            df.write.format("noop").mode("overwrite").save()
            return False
        self.write_rows(df, path, "append", partition_by, f"{writer.name}-{batch_id}")
        return True

    def is_written(self, batch_id, path, writer):
        from spark_ext._filesystem import filesystem

        files, base = filesystem(path)
        return files.get_file_info(f"{base}/{writer.name}-{batch_id}/_SUCCESS").is_file

    def read(self, spark, path, storage_options):
        return spark.read.json(f"{path}/*")

    def write_rows(self, df, path, mode, partition_by, folder="rows"):
        from spark_ext._filesystem import filesystem

        df.write.mode(mode).json(f"{path}/{folder}")
        files, base = filesystem(path)
        files.open_output_stream(f"{base}/_json_table").close()


@pytest.fixture
def json_tables(monkeypatch):
    monkeypatch.setattr(table_formats, "_known", dict(table_formats._known))
    ids.register_table_format(JsonTables())


def test_own_table_format_writes_each_batch_once_and_is_recognized(spark, tmp_path, json_tables):
    """`read_table` finds the format of the folder; Parquet does not write into it, and it cannot be cleaned."""
    path = str(tmp_path / "t")
    assert [ids.write_once(spark.range(3), n, path, format="json-lines", app_id="a") for n in (0, 1, 0)] == [
        True,
        True,
        False,
    ]
    assert ids.read_table(spark, path).count() == 6
    with pytest.raises(ids.TableConflict, match="it is a Json-lines table; pass format='json-lines'"):
        table_formats.table_format("parquet").write_rows(spark.range(1), path, "append", ())
    with pytest.raises(ValueError, match="a table of the format 'json-lines' cannot be cleaned"):
        ids.clean(path, POLICY, now(0), spark=spark, format="json-lines")


def test_jobs_and_audits_use_an_own_table_format(spark, tmp_path, json_tables):
    """The job `ids` writes it, in a batch run and as a stream, and the job `audit` reads it."""
    made = [str(msgid.position_id("log", n, 1_700_000_000)) for n in range(5)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n" + "\n".join([*made, "wrong"]) + "\n")
    for run, out in ((ids_job.run, "batch"), (ids_job.run_stream, "stream")):
        run(spark, str(tmp_path / "in"), str(tmp_path / out), table_format="json-lines")
        table = ids.read_table(spark, str(tmp_path / out / "ids"))
        assert {row.id for row in table.collect()} == set(made)
        assert (tmp_path / out / "ids" / "_json_table").exists()
        found = audit_job.run(spark, str(tmp_path / out / "ids"), id="id")
        assert "in 5 rows" in str(found)


@pytest.mark.parametrize("call", [
    lambda spark, path: ids.write_once(spark.range(1), 0, path, format="orc", app_id="a"),
    lambda spark, path: ids.read_table(spark, path, "orc"),
    lambda spark, path: ids.clean(path, POLICY, now(0), spark=spark, format="orc"),
])  # fmt: skip
def test_unknown_table_format_is_refused_with_the_known_ones(spark, tmp_path, call):
    """The error names the formats."""
    with pytest.raises(ValueError, match="format must be 'parquet' or 'delta', got 'orc'"):
        call(spark, str(tmp_path / "t"))


def test_table_format_of_another_type_is_refused():
    """A class or a name is not a format."""
    with pytest.raises(TypeError, match="format must be a TableFormat, got 'delta'"):
        ids.register_table_format("delta")
