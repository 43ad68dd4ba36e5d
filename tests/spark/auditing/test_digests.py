"""Digests on Spark in streams and commands, and their default content."""

import json

import pytest
from click.testing import CliRunner

import msgid.audit
import spark_ext
from spark_ext.cli import spark_ext as command

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_default_content_of_another_type_is_the_error_of_python(spark):
    """An empty list leaves it out."""
    df = spark.createDataFrame([(7, 0.5)], "offset bigint, content double")
    with pytest.raises(ValueError, match="got 'content' of type double: pass other columns, or an empty list for none"):
        spark_ext.digest(df)
    made = spark_ext.digest(df, content=[]).toArrow()
    assert msgid.audit.merge_digests([made]) == msgid.audit.digest([7])


@pytest.mark.details
def test_command_compares_digests_and_reads_columns_and_files_as_that_of_python(spark, tmp_path):
    """`audit --digests`, `--allow` and `--openmetrics`; known columns, and unknown files."""
    for name, number in (("queue", 8), ("landed", 7)):
        table = pa.table({"offset": range(number)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        (tmp_path / name).mkdir()
        pq.write_table(msgid.audit.digest(table, offset="offset"), tmp_path / name / "d.parquet")
    sides = ["audit", tmp_path / "landed.parquet", "--sent", tmp_path / "queue.parquet"]
    sides += ["--digests", tmp_path / "queue", tmp_path / "landed", "--fail-on", "error"]
    done = run(*sides, "--openmetrics", tmp_path / "a.prom")
    assert done.exit_code == 3
    assert 'msgid_audit_messages{check="lost_messages",severity="error"} 1' in (tmp_path / "a.prom").read_text()
    assert run(*sides, "--allow", "lost_messages=1").exit_code == 0
    (tmp_path / "a.csv").write_text("source,offset,content\na,0,x\na,0,y\na,3,z\n")
    found = json.loads(run("audit", tmp_path / "a.csv", "--json").output)["findings"]
    assert [one["check"] for one in found] == ["missing_offsets", "conflicting_messages"]
    (tmp_path / "a.html").write_text("<html>")
    (tmp_path / "topics" / "messages").mkdir(parents=True)
    for name in ("messages/0.parquet", "orders.parquet"):
        pq.write_table(pa.table({"offset": [1]}), tmp_path / "topics" / name)
    refused = run("audit", tmp_path / "topics", "--offset", "offset")
    assert refused.exit_code == 1
    assert "it has the table 'messages' of a job and 'orders.parquet': pass one of them" in refused.output
    refused = run("audit", tmp_path / "a.html")
    assert refused.exit_code == 1
    assert "are not known; pass the format" in refused.output
