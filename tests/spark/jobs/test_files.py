"""Input files of the jobs: their format is found by their endings, or asked for in one error."""

import json
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from helpers.covering import covering, first_by_default
from helpers.sinks import put

from spark_ext.cli import spark_ext as command
from spark_ext.jobs import audit_job, ids_job, messages_job
from spark_ext.jobs._files import BadInput, read_rows, reader_of
from spark_ext.jobs._formats import BatchLimit, format_of, holds_table
from spark_ext.tables.table_formats import table_format

pytestmark = pytest.mark.spark

KAFKA = "id string, value string, topic string, partition int, offset long, timestamp timestamp"
V1 = "0156F7E71C361B21BC024CCDBE00000000"


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        (BatchLimit(), {"maxBytesPerTrigger": 256 << 20}),
        (BatchLimit(max_bytes=9), {"maxBytesPerTrigger": 9}),
        (BatchLimit(max_files=2), {"maxFilesPerTrigger": 2}),
    ],
)
def test_streams_of_the_jobs_have_a_limit(limit, options):
    """A first run over a history is many micro-batches; Spark accepts one limit, so there is never another."""
    given = {}
    spark = SimpleNamespace(readStream=SimpleNamespace(options=lambda **named: given.update(named)))
    reader_of(spark, "in", stream=True, limit=limit.checked())
    assert {name: value for name, value in given.items() if name.endswith("PerTrigger")} == options


@pytest.mark.parametrize(
    ("names", "format"),
    [
        (["a.json", "b.jsonl.gz", "_SUCCESS", ".a.json.crc", "_old/c.csv"], "json"),
        (["_k=1/a.tsv", "_k=2/b.tsv"], "tsv"),
        (["a.txt", "b", "c.log"], "text"),
        (["part-0.snappy.parquet", "_delta_log/0.json"], "parquet"),
        (["a.json", "out/ids/part-0.parquet"], "json"),
        (["out/a.json"], None),
        (["a.json", "b.csv"], None),
        (["a.json", "b.txt"], None),
        (["_SUCCESS"], None),
        ([], None),
    ],
)
def test_format_of_a_folder_is_that_of_its_files(spark, tmp_path, names, format):
    """All files must have endings of one format; files that Spark skips do not count."""
    (tmp_path / "in").mkdir()
    for name in names:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("")
    if format is not None:
        assert format_of(str(tmp_path / "in")) == format
        return
    with pytest.raises(BadInput, match=r"cannot tell the format of .*/in: pass --format csv, .* or text$"):
        format_of(str(tmp_path / "in"))


@pytest.mark.parametrize("name", first_by_default(["a[1].csv", "b{x,y}.csv", "c?*.csv", "d\\e.csv"], 1))
@pytest.mark.details
def test_ids_command_on_a_file_named_like_a_pattern_reads_this_file(spark, tmp_path, name):
    """A file or folder that exists is read by its name, and not as a pattern."""
    (tmp_path / "in [1]").mkdir()
    (tmp_path / "in [1]" / name).write_text(f"id,n\n{V1},1\n")
    for number, path in enumerate((tmp_path / "in [1]" / name, tmp_path / "in [1]")):
        done = CliRunner().invoke(command, ["ids", str(path), "-o", str(tmp_path / f"out{number}")])
        assert done.exit_code == 0, done.output
        assert [row.n for row in spark.read.parquet(str(tmp_path / f"out{number}" / "ids")).collect()] == ["1"]


def test_ids_command_on_folders_of_values_and_others_is_one_error(spark, tmp_path):
    """Spark cannot tell the columns of such a folder."""
    for folder in ("k=1", "sub"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "a.csv").write_text(f"id,n\n{V1},1\n")
    done = CliRunner().invoke(command, ["ids", str(tmp_path / "in"), "-o", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "it has folders of values, such as k=1, and other folders, such as sub. Pass one" in done.output


def test_format_of_a_pattern_without_an_ending_is_asked_for(spark, tmp_path):
    """The ending of a pattern counts; a pattern without one may match files of any format."""
    assert format_of(str(tmp_path / "*.csv.gz")) == "csv"
    assert format_of(str(tmp_path / "x.d" / "day")) == "text"
    with pytest.raises(BadInput, match="cannot tell the format"):
        format_of(str(tmp_path / "2026-*"))


@pytest.mark.details
@pytest.mark.parametrize("job", ["ids", "audit"])
def test_command_on_a_folder_reads_its_files_by_their_endings(spark, tmp_path, job):
    """A folder of JSON files is not read as lines of text."""
    put(tmp_path / "in", "1.json", f'{{"id": "{V1}"}}\n')
    arguments = [job, str(tmp_path / "in"), *(["-o", str(tmp_path / "out")] if job == "ids" else [])]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    expected = "1 v1 mac\n0 malformed" if job == "ids" else "0 errors, 0 warnings, 0 infos in 1 row\n"
    assert expected in done.output


@pytest.mark.parametrize(
    ("format", "stream", "name"), covering(["csv", "tsv", "json", "parquet"], [False, True], [None, "0"], strength=1)
)
def test_read_rows_of_an_empty_folder_names_the_folder(spark, tmp_path, format, stream, name):
    """Without a file that shows the columns, one error names the folder and the missing file."""
    (tmp_path / "in").mkdir()
    if name is not None and format != "parquet":
        (tmp_path / "in" / name).write_text("")
    with pytest.raises(BadInput, match=r"^cannot read \S+/in: .* is missing, which shows the columns$"):
        read_rows(spark, str(tmp_path / "in"), format, stream=stream)


def test_read_rows_of_json_without_an_object_is_refused(spark, tmp_path):
    """A file without any JSON object does not show columns."""
    (tmp_path / "in.json").write_text("a\n[1]\n")
    with pytest.raises(BadInput, match=r"cannot read .*in.json: a line with a JSON object is missing"):
        read_rows(spark, str(tmp_path / "in.json"))


def test_command_on_an_empty_folder_prints_one_line(spark, tmp_path):
    """The error of each job names the folder."""
    (tmp_path / "in").mkdir()
    process = ["--key", "k", "--handler", "shooting_range:shoot", "--checkpoint", str(tmp_path / "checkpoint")]
    for arguments in (["ids"], ["ids", "--stream"], ["process", *process]):
        whole = [arguments[0], str(tmp_path / "in"), "-o", str(tmp_path / "out"), *arguments[1:]]
        for format in ([], ["--format", "json"]):
            done = CliRunner().invoke(command, [*whole, *format])
            assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
            assert f"{tmp_path}/in: " in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.details
def test_messages_job_on_a_folder_of_parquet_files_reads_their_column(spark, tmp_path):
    """The files are not messages themselves; beside other files, they are refused."""
    spark.createDataFrame([(b"?",), (b"!",)], "value binary").coalesce(1).write.parquet(str(tmp_path / "in"))
    source = messages_job.Source("iggy-message")
    messages_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), source)
    rows = spark.read.parquet(str(tmp_path / "out" / "messages")).collect()
    assert sorted(bytes(row.original) for row in rows) == [b"!", b"?"]
    (tmp_path / "in" / "other").write_bytes(b"?")
    with pytest.raises(BadInput, match="cannot read Parquet files and other files in one folder"):
        messages_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out2"), source)


@pytest.mark.details
def test_ids_job_on_a_folder_of_text_reads_lines(spark, tmp_path):
    """Files without a known ending are lines of text."""
    put(tmp_path / "in", "ids.log", f"{V1}\n")
    assert ids_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), column="value").rows == 1


@pytest.mark.details
@pytest.mark.parametrize("job", ["ids", pytest.param("messages", marks=pytest.mark.details), "audit"])
def test_job_on_a_delta_table_does_not_read_deleted_rows(spark, tmp_path, job):
    """The files of deleted rows are still in the folder, so it is read by its log; a stream is refused."""
    path, out = str(tmp_path / "in"), str(tmp_path / "out")
    for id, mode in ((V1, "error"), (V1[:-1] + "1", "overwrite")):
        rows = spark.createDataFrame([(id, "v", "orders", 0, 7, datetime.now(timezone.utc))], KAFKA)
        table_format("delta").write_rows(rows, path, mode, ())
    if job == "audit":
        assert audit_job.read_input(spark, path).count() == audit_job.read_input(spark, path, "delta").count() == 1
        return
    options = ["messages", "--format", "kafka"] if job == "messages" else ["ids"]
    for stream in ([], ["--stream"]):
        done = CliRunner().invoke(command, [options[0], path, "-o", out, *options[1:], *stream])
        if stream:
            assert (done.exit_code, "a table of the format 'delta' has a log" in done.output) == (1, True), done.output
        else:
            assert (done.exit_code, done.output.split()[0]) == (0, "1"), done.output


def test_audit_job_on_a_folder_that_is_not_a_table_is_refused(spark, tmp_path):
    """The error says that the folder is not a table of the format."""
    put(tmp_path / "in", "1.json", "{}")
    with pytest.raises(BadInput, match=r"cannot read .*/in: it is not a table of the format 'delta'"):
        audit_job.read_input(spark, str(tmp_path / "in"), "delta")


@pytest.mark.details
@pytest.mark.parametrize(
    ("table_format", "later", "name"),
    [
        ("parquet", {"n": "text"}, "n"),
        pytest.param("parquet", {"n": 1, "new": 2}, "new", marks=pytest.mark.variants),
        pytest.param("delta", {"n": "text"}, "n", marks=pytest.mark.variants),
        pytest.param("delta", {"n": 1, "new": 2}, "new", marks=pytest.mark.variants),
    ],
)
def test_stream_restarted_on_other_columns_is_refused(spark, tmp_path, table_format, later, name):
    """Readers of the table would not see the values, so no row is written, and the table is as before."""
    out = str(tmp_path / "out")
    put(tmp_path / "in", "1.json", json.dumps({"id": V1, "n": 1}))
    before = ids_job.run_stream(spark, str(tmp_path / "in"), out, table_format=table_format)
    assert ids_job.run_stream(spark, str(tmp_path / "in"), out, table_format=table_format) == before
    put(tmp_path / "in", "2.json", json.dumps({"id": V1, **later}))
    with pytest.raises(BadInput, match=f"cannot write column '{name}' to .*/out/ids: "):
        ids_job.run_stream(spark, str(tmp_path / "in"), out, table_format=table_format)
    assert ids_job.summary(spark, out) == before


@pytest.mark.details
@pytest.mark.parametrize("job", first_by_default(["kafka", "ids", "iggy-json"], 1))
def test_job_on_files_in_inner_folders_warns_of_them(spark, tmp_path, job):
    """Spark reads folders of values only, and leaves out others in silence; a pattern reads them."""
    for folder in ("", "day=1/", "inner/", "inner/more/"):
        (tmp_path / "in" / folder).mkdir(exist_ok=True)
    for folder in ("inner", "inner/more") if job == "ids" else ("inner",):
        (tmp_path / "in" / folder / "a.json").write_text(f'{{"id": "{V1}"}}\n')
    options = ["ids"] if job == "ids" else ["messages", "--files", "json", "--format", job]
    (tmp_path / "in" / "b.json").write_text(f'{{"id": "{V1}"}}\n')
    done = CliRunner().invoke(command, [options[0], str(tmp_path / "in"), "-o", str(tmp_path / "o1"), *options[1:]])
    assert done.exit_code == 0, done.output
    count = 2 if job == "ids" else 1
    expected = f"Warning: {count} files in folders of {tmp_path}/in are not read, such as inner/a.json; {tmp_path}/in/*"
    assert expected in done.output
    (tmp_path / "in" / "inner" / "more" / "a.json").unlink(missing_ok=True)
    options += ["--format", "json"] if job == "ids" else []
    done = CliRunner().invoke(command, [options[0], f"{tmp_path}/in/*", "-o", str(tmp_path / "o2"), *options[1:]])
    assert (done.exit_code, "Warning" in done.output) == (0, False), done.output
    assert done.output.startswith("2 ")


@pytest.mark.parametrize(
    "job",
    [
        ["ids"],
        *(
            pytest.param(job, marks=pytest.mark.details)
            for job in (["ids", "--stream"], ["messages", "-f", "kafka"], ["process"])
        ),
    ],
    ids=" ".join,
)
def test_command_on_an_output_that_cannot_be_written_prints_one_line(spark, rocksdb, tmp_path, job):
    """The error names the place; no traceback."""
    put(tmp_path / "in", "1.json", f'{{"id": "{V1}", "k": "a"}}\n')
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    options = ["--key", "k", "--handler", "shooting_range:shoot", "--checkpoint", str(out / "checkpoint")]
    arguments = [job[0], str(tmp_path / "in"), "-o", str(out), *job[1:], *(options if job == ["process"] else [])]
    done = CliRunner().invoke(command, arguments)
    assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
    assert f"{tmp_path}/file" in done.output


def test_format_of_a_store_that_only_spark_can_reach_is_that_of_the_path(spark):
    """A scheme without a file system of Arrow or fsspec is left to Spark."""
    assert format_of("unknown://host/in") == "text"
    assert format_of("unknown://host/in.json") == "json"
    assert not holds_table("unknown://host/in")
