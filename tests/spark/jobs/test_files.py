"""Input files of the jobs: their format is found by their endings, or asked for in one error."""

import pytest
from click.testing import CliRunner
from helpers.covering import first_by_default
from helpers.sinks import put

from spark_ext.cli import spark_ext as command
from spark_ext.jobs import audit_job, ids_job, messages_job
from spark_ext.jobs._files import BadInput, read_rows
from spark_ext.jobs._formats import format_of, holds_table

pytestmark = pytest.mark.spark

KAFKA = "id string, value string, topic string, partition int, offset long, timestamp timestamp"
V1 = "0156F7E71C361B21BC024CCDBE00000000"


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


def test_read_rows_of_json_without_an_object_is_refused(spark, tmp_path):
    """A file without any JSON object does not show columns."""
    (tmp_path / "in.json").write_text("a\n[1]\n")
    with pytest.raises(BadInput, match=r"cannot read .*in.json: a line with a JSON object is missing"):
        read_rows(spark, str(tmp_path / "in.json"))


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


def test_audit_job_on_a_folder_that_is_not_a_table_is_refused(spark, tmp_path):
    """The error says that the folder is not a table of the format."""
    put(tmp_path / "in", "1.json", "{}")
    with pytest.raises(BadInput, match=r"cannot read .*/in: it is not a table of the format 'delta'"):
        audit_job.read_input(spark, str(tmp_path / "in"), "delta")


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


def test_format_of_a_store_that_only_spark_can_reach_is_that_of_the_path(spark):
    """A scheme without a file system of Arrow or fsspec is left to Spark."""
    assert format_of("unknown://host/in") == "text"
    assert format_of("unknown://host/in.json") == "json"
    assert not holds_table("unknown://host/in")
