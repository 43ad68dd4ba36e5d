"""Unreadable input files: the jobs continue without them, list them, and read them after a repair."""

import gzip
import json

import pytest
from click.testing import CliRunner
from helpers.covering import first_by_default
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import msgid
import spark_ext as ids
from spark_ext import cli
from spark_ext._filesystem import filesystem
from spark_ext._private import files_of_batch
from spark_ext.jobs import _job_tables as tables
from spark_ext.jobs import ids_job, messages_job
from spark_ext.jobs._bad_files import Ledger
from spark_ext.jobs._files import follow, read_rows

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE{:08X}"


def ids_of(numbers):
    return [V1.format(number) for number in numbers]


def whole_file(format, numbers):
    """Return the bytes of a file of IDs."""
    if format == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": ids_of(numbers)}), sink)
        return sink.getvalue().to_pybytes()
    lines = [f'{{"id": "{id}"}}' if format == "json" else id for id in ids_of(numbers)]
    text = "\n".join([*(["id"] if format == "csv" else []), *lines, ""])
    return gzip.compress(text.encode())


def put(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}"
    partial.write_bytes(content)
    partial.rename(folder / name)


def name_of(number, format):
    return f"{number}.{format}" + ("" if format == "parquet" else ".gz")


def put_damaged(folder, format, number=1):
    """Write a file that ends in its middle; return its name and its complete content."""
    content = whole_file(format, range(100, 600))
    put(folder, name_of(number, format), content[: len(content) * 2 // 3])
    return name_of(number, format), content


def input_of(folder, format):
    return tables.Input(str(folder / "in"), lambda spark, files, schema: read_rows(spark, files, format, schema=schema))


TABLES = [
    tables.Table("ids", lambda df: df.where(F.col(df.columns[0]).startswith("0156"))),
    tables.Table("quarantine", lambda df: df.where(~F.col(df.columns[0]).startswith("0156"))),
]


def follow_files(spark, folder, format="json", table_format="parquet"):
    """Follow files as a job does, with small tables; return the files that are left out."""
    out, source = str(folder / "out"), input_of(folder, format)
    rows = tables.read_stream(
        spark, source, lambda schema: read_rows(spark, source.path, format, stream=True, schema=schema)
    )
    checkpoint = f"{out}/checkpoint"
    writer = tables.BatchWriter(source, rows.schema, TABLES, out, checkpoint, table_format)
    writer.read_repaired(spark)
    follow(rows, writer.write, checkpoint)
    return tables.unreadable_files(out)


def written(spark, folder, table="ids"):
    """Return the sequence numbers of the IDs in the table, in order."""
    rows = ids.read_table(spark, str(folder / "out" / table))
    return sorted(int(row[0][-8:], 16) for row in rows.select(rows.columns[0]).collect())


@pytest.fixture
def here(connect):
    """Skip a test that changes functions: through Spark Connect, another process writes the batches."""
    if connect:
        pytest.skip("another process writes the batches")


@pytest.mark.parametrize(
    ("format", "table_format", "alone"),
    [
        pytest.param("json", "parquet", False, marks=pytest.mark.variants),
        pytest.param("csv", "parquet", True, marks=pytest.mark.variants),
        ("parquet", "parquet", False),
        pytest.param("text", "parquet", False, marks=pytest.mark.variants),
        pytest.param("json", "delta", True, marks=pytest.mark.variants),
    ],
)
@pytest.mark.details
def test_stream_of_a_damaged_file_goes_on_and_reads_it_when_repaired(spark, tmp_path, format, table_format, alone):
    """The other files are there, the damaged one is listed; repaired, it is read once, and nothing twice.

    A damaged file may be the only one of its batch.
    """
    put(tmp_path / "in", name_of(0, format), whole_file(format, range(3)))
    if alone:
        assert not follow_files(spark, tmp_path, format, table_format)
    name, content = put_damaged(tmp_path / "in", format)
    ((path, reason),) = follow_files(spark, tmp_path, format, table_format)
    assert path.endswith(f"in/{name}")
    assert reason
    assert written(spark, tmp_path) == [0, 1, 2]
    put(tmp_path / "in", name_of(2, format), whole_file(format, range(3, 6)))
    assert len(follow_files(spark, tmp_path, format, table_format)) == 1
    assert written(spark, tmp_path) == list(range(6))
    put(tmp_path / "in", name, content)
    for _ in range(2):
        assert not follow_files(spark, tmp_path, format, table_format)
        assert written(spark, tmp_path) == [*range(6), *range(100, 600)]
    (listed,) = (tmp_path / "out" / "unreadable").glob("*.json")
    assert json.loads(listed.read_text())["read_at"]


@pytest.mark.variants
def test_stream_of_a_file_that_vanishes_goes_on_and_reads_it_when_it_is_back(spark, here, tmp_path, monkeypatch):
    """A file is deleted after Spark has listed it and before a task reads it; its name needs escapes in a URL."""
    for number in (0, 1):
        put(tmp_path / "in", f"{number} %20[a].json", b'{"id": "%s"}\n' % V1.format(number).encode())
    gone = tmp_path / "in" / "1 %20[a].json"
    write = tables.BatchWriter.write

    def vanishes(*arguments):
        gone.rename(tmp_path / "aside")
        write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(tables.BatchWriter, "write", vanishes)
        left_out = follow_files(spark, tmp_path)
    assert [reason for _, reason in left_out] == ["the file does not exist"]
    assert written(spark, tmp_path) == [0]
    (tmp_path / "aside").rename(gone)
    assert not follow_files(spark, tmp_path)
    assert written(spark, tmp_path) == [0, 1]


@pytest.mark.details
def test_stream_that_ends_before_the_others_are_written_reads_each_file_once(spark, here, tmp_path, monkeypatch):
    """The process lists a file and ends, and the file is repaired. The replay leaves it out, a later run reads it."""
    put(tmp_path / "in", "0.json.gz", whole_file("json", range(3)))
    name, content = put_damaged(tmp_path / "in", "json")
    add = Ledger.add

    def ends(*arguments):
        add(*arguments)
        raise RuntimeError("the process ends")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "add", ends)
        with pytest.raises(Exception, match="the process ends"):
            follow_files(spark, tmp_path)
    put(tmp_path / "in", name, content)
    follow_files(spark, tmp_path)
    assert not follow_files(spark, tmp_path)
    assert written(spark, tmp_path) == [*range(3), *range(100, 600)]


@pytest.mark.variants
def test_stream_of_a_file_that_breaks_between_two_tables_reads_it_once_per_table(spark, here, tmp_path, monkeypatch):
    """The first table has the rows of the file, and only the second table gets them later."""
    put(tmp_path / "in", "0.json", b'{"id": "%s"}\n{"id": "bad 00000000"}\n' % V1.format(0).encode())
    put(tmp_path / "in", "1.json", b'{"id": "%s"}\n{"id": "bad 00000001"}\n' % V1.format(1).encode())
    write_once = tables.write_once

    def breaks(*arguments, **options):
        done = write_once(*arguments, **options)
        if (tmp_path / "in" / "1.json").exists():
            (tmp_path / "in" / "1.json").rename(tmp_path / "aside")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write_once", breaks)
        assert len(follow_files(spark, tmp_path)) == 1
    (tmp_path / "aside").rename(tmp_path / "in" / "1.json")
    assert not follow_files(spark, tmp_path)
    assert written(spark, tmp_path) == written(spark, tmp_path, "quarantine") == [0, 1]


@pytest.mark.variants
def test_stream_without_an_end_reads_a_repaired_file_after_a_batch(spark, tmp_path):
    """A listed file is read again without a restart if it has changed, and not otherwise."""
    put(tmp_path / "in", "0.json.gz", whole_file("json", range(3)))
    name, content = put_damaged(tmp_path / "in", "json")
    follow_files(spark, tmp_path)
    tried = []
    source = input_of(tmp_path, "json")
    writer = tables.BatchWriter(
        source, None, [], str(tmp_path / "out"), str(tmp_path / "out" / "checkpoint"), "parquet"
    )
    writer._read_again = lambda spark, entry, batch: tried.append(entry.path)
    writer.read_repaired(spark, changed=True)
    assert tried == []
    put(tmp_path / "in", name, content)
    writer.read_repaired(spark, changed=True)
    assert [path.rpartition("/")[2] for path in tried] == [name]


@pytest.mark.details
def test_run_of_a_damaged_file_leaves_it_out_until_a_run_that_replaces_the_output(spark, tmp_path):
    """Partition folders stay columns; the file is listed until a run replaces the output."""
    put(tmp_path / "in" / "day=1", "0.parquet", whole_file("parquet", range(3)))
    name, content = put_damaged(tmp_path / "in" / "day=2", "parquet")
    source, out = input_of(tmp_path, "parquet"), str(tmp_path / "out")
    tables.write_run(spark, source, TABLES, out, "error", "parquet")
    assert [path.rpartition("/")[2] for path, _ in tables.unreadable_files(out)] == [name]
    assert [row.day for row in ids.read_table(spark, f"{out}/ids").collect()] == [1, 1, 1]
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        tables.write_run(spark, source, TABLES, out, "error", "parquet")
    put(tmp_path / "in" / "day=2", name, content)
    tables.write_run(spark, source, TABLES, out, "overwrite", "parquet")
    assert not tables.unreadable_files(out)
    assert written(spark, tmp_path) == [*range(3), *range(100, 600)]


@pytest.mark.details
def test_run_of_a_file_with_columns_of_other_types_leaves_it_out(spark, tmp_path):
    """Each file can be read alone; the columns of the first file decide."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    put(tmp_path / "in", "0.parquet", whole_file("parquet", range(3)))
    pq.write_table(pa.table({"id": [1.5]}), tmp_path / "in" / "1.parquet")
    tables.write_run(spark, input_of(tmp_path, "parquet"), TABLES, str(tmp_path / "out"), "error", "parquet")
    ((path, _),) = tables.unreadable_files(str(tmp_path / "out"))
    assert path.endswith("1.parquet")
    assert written(spark, tmp_path) == [0, 1, 2]


@pytest.mark.details
def test_ids_job_on_a_parquet_file_of_a_type_that_spark_refuses_lists_it(spark, tmp_path):
    """The other files are read, although Spark takes the columns from this file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder, out = tmp_path / "in", str(tmp_path / "out")
    put(folder, "1.parquet", whole_file("parquet", range(3)))
    pq.write_table(pa.table({"id": [V1.format(9)], "at": pa.array([9], pa.timestamp("ns"))}), folder / "0.parquet")
    assert ids_job.run(spark, str(folder), out).rows == 3
    ((path, reason),) = tables.unreadable_files(out)
    assert path.endswith("/0.parquet")
    assert "Illegal Parquet type: INT64 (TIMESTAMP(NANOS,false))" in reason


def test_ids_run_without_any_readable_file_is_refused(spark, tmp_path):
    """One line names a file and the reason, and no output is written."""
    put_damaged(tmp_path / "in", "csv")
    with pytest.raises(ids_job.BadInput, match=r"cannot read any file of .*1.csv.gz: EOFException: Unexpected end"):
        ids_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), format="csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.variants
def test_messages_stream_of_a_damaged_file_goes_on_and_reads_it_when_repaired(spark, tmp_path):
    """A stream of JSON lines continues after a damaged gzip file, which Python workers read after its repair."""
    source = messages_job.Source("danube-json", logged=False)
    put(tmp_path / "in", "0.json", b"not a message\n")
    content = gzip.compress(b"not a message\n" * 100)
    put(tmp_path / "in", "1.json.gz", content[: len(content) - 9])
    arguments = (spark, str(tmp_path / "in"), str(tmp_path / "out"), source)
    summary = messages_job.run_stream(*arguments)
    assert (summary.rows, len(summary.unreadable)) == (1, 1)
    put(tmp_path / "in", "1.json.gz", content)
    summary = messages_job.run_stream(*arguments)
    assert (summary.rows, len(summary.unreadable)) == (101, 0)


@pytest.mark.details
def test_messages_run_of_a_damaged_file_leaves_it_out(spark, tmp_path):
    """A run leaves out a damaged Parquet file with a column of messages."""
    put(tmp_path / "in", "0.parquet", whole_file("parquet", range(3)))
    put_damaged(tmp_path / "in", "parquet")
    source = messages_job.Source("danube", column="id", logged=False)
    summary = messages_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), source)
    assert (summary.rows, len(summary.unreadable)) == (3, 1)


@pytest.mark.details
def test_cli_of_a_damaged_file_ends_with_status_3(spark, tmp_path, monkeypatch):
    """The output names the file, the reason and the list."""
    monkeypatch.setattr(cli, "session", lambda **_: spark)
    put(tmp_path / "in", "0.json.gz", whole_file("json", range(3)))
    name, _ = put_damaged(tmp_path / "in", "json")
    arguments = ["ids", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "-f", "json", "--stream"]
    result = CliRunner().invoke(cli.spark_ext, arguments)
    assert result.exit_code == 3, result.output
    assert f"{name}: EOFException: Unexpected end of input stream" in result.output
    assert f"Files left out: 1, listed in {tmp_path}/out/unreadable" in result.output


def test_files_of_batch_finds_them_in_a_compacted_log(tmp_path):
    """A batch may have several entries in the log; a compacted log repeats the earlier entries."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "sources" / "0").mkdir(parents=True)
    for batch, offset in ((0, 0), (1, 2)):
        (tmp_path / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"logOffset":{offset}}}')
    entries = [json.dumps({"path": f"file:///in/a%20{n}", "timestamp": 1, "batchId": n}) for n in range(3)]
    (tmp_path / "sources" / "0" / "0").write_text("v1\n" + entries[0])
    (tmp_path / "sources" / "0" / "1.compact").write_text("\n".join(["v1", *entries[:2]]))
    (tmp_path / "sources" / "0" / "2").write_text("v1\n" + entries[2])
    assert files_of_batch(*filesystem(str(tmp_path)), 0) == ["file:///in/a 0"]
    assert files_of_batch(*filesystem(str(tmp_path)), 1) == ["file:///in/a 1", "file:///in/a 2"]


@pytest.mark.variants
def test_ids_job_with_a_setting_that_skips_damaged_files_lists_them(spark, tmp_path):
    """A setting of the session, such as a cluster may have, does not hide that rows are missing."""
    put(tmp_path / "in", name_of(0, "csv"), whole_file("csv", range(3)))
    put_damaged(tmp_path / "in", "csv")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        summary = ids_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"))
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert (summary.rows, len(summary.unreadable)) == (3, 1)


@pytest.mark.details
@pytest.mark.parametrize("at", first_by_default(["bigint", "double", "timestamp"], 1))
def test_ids_job_with_milliseconds_as_the_time_quarantines_them(spark, tmp_path, at):
    """A time outside the years 1 to 9999 is not one, and does not stop the job."""
    times = spark.createDataFrame([(7, 1_795_219_200), (8, 1_795_219_200_000)], "offset bigint, seconds bigint")
    time = "timestamp_seconds(seconds)" if at == "timestamp" else f"CAST(seconds AS {at})"
    times.selectExpr("'orders' AS topic", "offset", f"{time} AS at").write.parquet(str(tmp_path / "in"))
    assign = ids_job.Assignment("position", ("topic",), "offset", "at")
    summary = ids_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), assign=assign)
    assert summary == ids_job.Summary([ids_job.Count("v1", "position", 1)], 1)
    rows = spark.read.parquet(str(tmp_path / "out" / "ids")).collect()
    assert [row.id for row in rows] == [str(msgid.position_id("orders", 7, 1_795_219_200))]
