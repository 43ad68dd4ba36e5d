"""Tables of jobs: two runs never hide each other's rows, and a job reports only rows that it has written."""

import shutil

import pytest
from helpers.sinks import put
from pyspark.errors import AnalysisException

from msgid import iggy
from spark_ext import read_table
from spark_ext.jobs import _files as files
from spark_ext.jobs import ids_job as job
from spark_ext.jobs import messages_job
from spark_ext.jobs._files import BadInput

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE00000000"
BROKER = "7F0000010000238F000000000001E240"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"


def made(count):
    return [iggy.Message.new(b"p%d" % n, id=n + 1, offset=n, timestamp=n, layout="m45") for n in range(count)]


def segment(folder, messages):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{messages[0].offset:020d}.log").write_bytes(iggy.encode_log(messages, "m45"))


@pytest.mark.details
@pytest.mark.parametrize("table_format", ["parquet", pytest.param("delta", marks=pytest.mark.variants)])
def test_output_of_a_batch_run_and_a_stream_is_shared_or_refused(spark, tmp_path, table_format):
    """Readers see the rows of both runs, or the second run is an error before it writes; in either order."""
    put(tmp_path / "a", "1.csv", f"id,n\n{V1},1\n")
    put(tmp_path / "b", "1.csv", f"id,n\n{V1},2\n")
    both, a, b = {"format": "csv", "table_format": table_format}, str(tmp_path / "a"), str(tmp_path / "b")
    job.run(spark, a, str(tmp_path / "out"), **both)
    if table_format == "delta":
        assert job.run_stream(spark, b, str(tmp_path / "out"), **both).rows == 2
    else:
        with pytest.raises(files.BadInput, match=r"cannot write to .*a batch run, perhaps"):
            job.run_stream(spark, b, str(tmp_path / "out"), **both)
        assert [row.n for row in read_table(spark, str(tmp_path / "out" / "ids")).collect()] == ["1"]
    job.run_stream(spark, a, str(tmp_path / "out2"), **both)
    with pytest.raises((files.BadInput, AnalysisException), match="already"):
        job.run(spark, b, str(tmp_path / "out2"), **both)
    assert job.run(spark, b, str(tmp_path / "out2"), mode="overwrite", **both).rows == 1
    rows = read_table(spark, str(tmp_path / "out2" / "ids")).collect()
    assert [row.n for row in rows] == ["2"]


@pytest.mark.details
@pytest.mark.parametrize("table_format", ["parquet", pytest.param("delta", marks=pytest.mark.variants)])
def test_ids_job_whose_checkpoint_was_lost_is_refused(spark, tmp_path, table_format):
    """A job without its checkpoint would write no rows, or all rows twice, so it is rejected."""
    both = {"format": "csv", "table_format": table_format}
    put(tmp_path / "in", "1.csv", f"id\n{V1}\n")
    job.run_stream(spark, str(tmp_path / "in"), str(tmp_path / "out"), **both)
    shutil.rmtree(tmp_path / "out" / "checkpoint")
    put(tmp_path / "in", "2.csv", f"id\n{CLIENT}\n")
    with pytest.raises(files.BadInput, match=r"cannot write to .*/ids: .* checkpoint"):
        job.run_stream(spark, str(tmp_path / "in"), str(tmp_path / "out"), **both)
    assert read_table(spark, str(tmp_path / "out" / "ids")).count() == 1


@pytest.mark.variants
def test_delta_table_of_a_replayed_stream_has_each_row_once(spark, tmp_path):
    """A Delta table has each row once after several runs and after a replayed batch."""
    source, out = str(tmp_path / "in"), tmp_path / "out"
    both = {"format": "csv", "table_format": "delta"}
    for number, id in enumerate((V1, BROKER, "nonsense")):
        put(tmp_path / "in", f"{number}.csv", f"id,n\n{id},{number}\n")
        found = job.run_stream(spark, source, str(out), **both)
    for name in ("2", ".2.crc"):
        (out / "checkpoint" / "commits" / name).unlink()
    assert job.run_stream(spark, source, str(out), **both) == found
    assert (found.rows, found.malformed) == (3, 1)
    assert sorted(row.n for row in read_table(spark, str(out / "ids")).collect()) == ["0", "1"]


def test_columns_that_a_table_cannot_hold_are_refused_before_a_stream_starts(spark, tmp_path):
    """A column that the table cannot hold raises one line before a row is written."""
    put(tmp_path / "in", "1.csv", f"id,batch\n{V1},1\n")
    with pytest.raises(files.BadInput, match="cannot write a column named 'batch'"):
        job.run_stream(spark, str(tmp_path / "in"), str(tmp_path / "out"), format="csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.variants
@pytest.mark.parametrize("table_format", ["parquet", "delta"])
def test_messages_job_whose_checkpoint_was_lost_is_refused(spark, tmp_path, table_format):
    """The job is rejected, because without its checkpoint it would write the same messages again or none."""
    segment(tmp_path / "in", made(10))
    arguments = (spark, str(tmp_path / "in"), str(tmp_path / "out"), messages_job.Source("iggy", topic="t"))
    messages_job.run_stream(*arguments, table_format=table_format)
    shutil.rmtree(tmp_path / "out" / "checkpoint")
    with pytest.raises(BadInput, match=r"cannot write to .*/messages: .* checkpoint"):
        messages_job.run_stream(*arguments, table_format=table_format)
    assert read_table(spark, str(tmp_path / "out" / "messages")).count() == 10


@pytest.mark.details
def test_messages_job_as_a_stream_by_segment_needs_delta(spark, tmp_path):
    """``--by-segment`` of a stream needs Delta: in Parquet, one segment would be in the folders of several batches."""
    segment(tmp_path / "in", made(10))
    arguments = (spark, str(tmp_path / "in"), str(tmp_path / "out"), messages_job.Source("iggy", topic="t"))
    with pytest.raises(BadInput, match="by_segment of a stream needs table_format='delta'"):
        messages_job.run_stream(*arguments, by_segment=True)
    for count in (10, 15):
        segment(tmp_path / "in", made(count))
        found = messages_job.run_stream(*arguments, by_segment=True, table_format="delta")
        assert found.states == [("available", count)]
    rows = read_table(spark, str(tmp_path / "out" / "messages")).select("topic", "segment", "offset").collect()
    assert sorted(rows) == [("t", 0, n) for n in range(15)]
