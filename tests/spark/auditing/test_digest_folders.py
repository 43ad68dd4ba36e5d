"""`spark_ext.update_digests`, `audit_batches(digests=)` and the commands: a digest is made once, as in Python."""

import contextlib
import json

import pytest
from click.testing import CliRunner

import msgid.audit
import spark_ext
from spark_ext.auditing import digest_folders
from spark_ext.cli import spark_ext as command
from spark_ext.jobs import audit_job
from spark_ext.jobs._formats import BadInput

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DAYS = ["day=2026-11-23", "day=2026-11-24"]


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_digest_of_a_day_is_made_once_and_is_that_of_python(spark, tmp_path, monkeypatch):
    """The folder is the same as that of Python, byte for byte, and only a new day is read."""
    for n, day in enumerate(DAYS):
        (tmp_path / "landed" / day).mkdir(parents=True)
        pq.write_table(pa.table({"offset": range(5 * n, 5 * n + 5)}), tmp_path / "landed" / day / "a.parquet")
    df = spark.read.parquet(f"{tmp_path}/landed")
    assert spark_ext.update_digests(df, f"{tmp_path}/made", "day", offset="offset") == DAYS
    msgid.audit.update_digests(tmp_path / "python", tmp_path / "landed", offset="offset")
    for path in (tmp_path / "python").glob("*.parquet"):
        assert pq.read_table(tmp_path / "made" / path.name) == pq.read_table(path)
    made, sums_of = [], digest_folders.sums_of

    def counted(*given):
        made.append(1)
        return sums_of(*given)

    monkeypatch.setattr(digest_folders, "sums_of", counted)
    assert spark_ext.update_digests(df, f"{tmp_path}/made", "day", offset="offset") == []
    assert spark_ext.update_digests(df, f"{tmp_path}/made", "day", offset="offset", again=DAYS[:1]) == DAYS[:1]
    assert made == [1]
    both = spark.read.parquet(f"{tmp_path}/made")
    assert spark_ext.compare(df, df, offset="offset", digests=(both, both)).local.sent == 10
    with pytest.raises(ValueError, match="`part` must be a column of the table, got 'no'"):
        spark_ext.update_digests(df, f"{tmp_path}/made", "no")
    with pytest.raises(ValueError, match="`part` must not be NULL"):
        spark_ext.update_digests(df.selectExpr("offset", "nullif(day, day) AS day"), f"{tmp_path}/made", "day")


@pytest.mark.parametrize("most", [pytest.param(2, marks=pytest.mark.details), 1_000])
def test_digests_of_all_missing_parts_are_made_by_one_reading(spark, tmp_path, monkeypatch, most):
    """Rows with hostile IDs and parts; the driver asks for a bounded number of parts at once."""
    monkeypatch.setattr(digest_folders, "_MOST_PARTS", most)
    read = spark.sparkContext.accumulator(0)
    parts = ["a b=ü", "/", "é'\"\\", "..", "%2F", ""]
    ids = [None, "", "x", "0156F7E71C361B21BC024CCDBE00000007", "7F0000010000238F000000000001E240", "é"]
    rows = [(parts[n % 6], ids[n // 6 % 6], None if n % 13 == 0 else n * 3_000) for n in range(600)]
    schema = "part string, id string, offset bigint"
    table = spark.createDataFrame(rows, schema)

    def counting(batches):
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    df = table.mapInArrow(counting, schema)
    names = sorted(f"part={part}" for part in parts)
    assert spark_ext.update_digests(df, f"{tmp_path}/made", "part", offset="offset") == names
    assert read.value == len(rows) * (1 + -(-len(parts) // most))  # once for the names of the parts
    for part in parts:
        own = pa.table({"id": [row[1] for row in rows if row[0] == part],
                        "offset": pa.array([row[2] for row in rows if row[0] == part], pa.int64())})  # fmt: skip
        file = tmp_path / "made" / msgid.audit._digest_folders.file_of(f"part={part}")
        assert pq.read_table(file) == msgid.audit.digest(own, offset="offset")


@pytest.mark.details
def test_digests_after_an_error_at_any_step_are_those_without_one(spark, tmp_path, monkeypatch):
    """A call ends before or after it writes or renames a digest; the next one makes the missing digests."""
    df = spark.range(6).selectExpr("id AS offset", "CAST(id % 2 AS string) AS day")
    store, write = digest_folders._store, pq.write_table
    for step in range(6):
        folder = tmp_path / str(step)
        steps = iter(range(6))

        def stepped(function, steps=steps, step=step):
            def called(*given, **named):
                if next(steps) == step:
                    raise KeyboardInterrupt
                return function(*given, **named)

            return called

        with monkeypatch.context() as patched:
            patched.setattr(digest_folders, "_store", stepped(store))
            patched.setattr(pq, "write_table", stepped(write))
            with contextlib.suppress(KeyboardInterrupt):
                spark_ext.update_digests(df, str(folder), "day", offset="offset")
        made = sorted(path.name for path in folder.glob("day*"))
        again = spark_ext.update_digests(df, str(folder), "day", offset="offset")
        assert sorted([*made, *(f"{name}.parquet" for name in again)]) == ["day=0.parquet", "day=1.parquet"]
        for day in (0, 1):
            found = pq.read_table(folder / f"day={day}.parquet")
            assert found == msgid.audit.digest(pa.table({"offset": [day, day + 2, day + 4]}), offset="offset")


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
        pq.write_table(pa.table({"day": ["d"] * number, "offset": range(number)}), tmp_path / f"{name}.parquet")
        table = spark.read.parquet(str(tmp_path / f"{name}.parquet"))
        assert spark_ext.update_digests(table, str(tmp_path / name), "day", offset="offset") == ["day=d"]
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
    refused = run("audit", tmp_path / "a.html")
    assert refused.exit_code == 1
    assert "are not known; pass the format" in refused.output


@pytest.mark.details
def test_stream_keeps_the_digest_of_each_batch_once(spark, tmp_path):
    """A batch that runs again does not count twice, and `last` keeps all digests."""
    update = spark_ext.audit_batches(
        f"{tmp_path}/state", lambda _: None, app_id="a", id=None, offset="offset", last=1, digests=f"{tmp_path}/digests"
    )
    for number in (0, 1, 1):
        update(spark.range(3 * number, 3 * number + 3).toDF("offset"), number)
    kept = spark_ext.read_table(spark, f"{tmp_path}/digests")
    report = spark_ext.compare(
        spark.range(6).toDF("offset"),
        spark.range(6).toDF("offset"),
        offset="offset",
        digests=(spark_ext.digest(spark.range(6).toDF("offset"), offset="offset"), kept),
    )
    assert (report.local.findings, report.local.sent, report.rows) == ([], 6, 6)


def test_job_refuses_digests_that_are_older_than_the_files(tmp_path):
    """By the rule of `msgid audit`, before Spark reads a row."""
    table, made = tmp_path / "table", tmp_path / "digests"
    table.mkdir()
    pq.write_table(pa.table({"offset": [1, 2]}), table / "day.parquet")
    msgid.audit.update_digests(made, table, offset="offset")
    pq.write_table(pa.table({"offset": [1]}), table / "day.parquet")
    with pytest.raises(BadInput, match="cannot compare the table by digests: the digest of its part 'day' is older"):
        audit_job.run(None, str(table), "sent.csv", digests=(str(tmp_path / "sent"), str(made)), offset="offset")
