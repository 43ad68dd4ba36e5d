"""The job ``ids`` writes the fields of the IDs in a file, and loses no row."""

import csv
import os
import re
import subprocess
import sys
from datetime import datetime, timezone

import pytest
from helpers import vector_files as vectors
from helpers.covering import first_by_default
from pyspark.sql import functions as F

import msgid
from msgid.shared.validate import to_install
from spark_ext._settings import settings
from spark_ext.jobs import ids_job as job
from spark_ext.jobs._input import BadInput

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE00000000"
BROKER = "7F0000010000238F000000000001E240"


def good(spark, folder):
    return spark.read.parquet(f"{folder}/ids").collect()


def malformed(spark, folder):
    return spark.read.parquet(f"{folder}/quarantine").collect()


MALFORMED = {
    "nonsense": "must have 32, 34, 56 or 58 hex digits, got 8 characters",
    V1 + " ": "must have 32, 34, 56 or 58 hex digits, got 35 characters",
    None: "no id",
}
"""The cells that are not IDs, and why."""


def test_ids_job_takes_real_ids_apart_and_puts_malformed_rows_aside(spark, tmp_path):
    """Every row of the real IDs keeps its columns, and gets the kind and fields of its ID; no other row is lost."""
    lines = vectors.REAL_IDS_FILE.read_text(encoding="utf-8")
    names, gap = lines.splitlines()[0].split("\t"), "\t"
    bad = "".join(f"{gap.join((id or '') if name == 'id' else 'x' for name in names)}\n" for id in MALFORMED)
    (tmp_path / "in.tsv").write_text(lines + bad, encoding="utf-8")
    summary = job.run(spark, str(tmp_path / "in.tsv"), str(tmp_path / "out"))
    kinds = [row.kind for row in vectors.REAL_IDS]
    assert sum(count.rows for count in summary.counts if count.kind == "v1") == kinds.count("v1")
    assert [count for count in summary.counts if count.kind != "v1"] == [
        job.Count(kind, None, kinds.count(kind)) for kind in msgid.layout.KINDS[1:]
    ]
    assert (summary.malformed, summary.rows) == (3, len(vectors.REAL_IDS) + 3)
    assert {row.id: row.reason for row in malformed(spark, tmp_path / "out")} == MALFORMED
    with open(vectors.REAL_IDS_FILE, encoding="utf-8", newline="") as file:
        read = {row["id"]: row for row in csv.DictReader(file, delimiter="\t")}
    rows = good(spark, tmp_path / "out")
    assert {row.id for row in rows} == set(read)
    for row in rows:
        id = msgid.parse(row.id)
        assert {name: row[name] or "" for name in read[row.id]} == read[row.id]
        assert (row.id_kind, row.id_canonical, row.id_pid) == (id.kind, id.canonical, getattr(id, "pid", None))
        assert row.id_mac == getattr(id, "mac", None)
        assert row.id_offset == getattr(id, "offset", None)


@pytest.mark.details
def test_ids_job_on_lines_of_text_has_the_column_value(spark, tmp_path):
    """Each line is an ID; an empty line is malformed."""
    (tmp_path / "in.txt").write_text(f"{V1}\n{BROKER.lower()}\n\n")
    assert job.run(spark, str(tmp_path / "in.txt"), str(tmp_path / "out"), column="value").malformed == 1
    kinds = {row.value: row.value_kind for row in good(spark, tmp_path / "out")}
    assert kinds == {V1: "v1", BROKER.lower(): "v0-broker-offset"}


@pytest.mark.details
def test_ids_job_on_binary_ids_reads_them(spark, tmp_path):
    """The job reads IDs in a binary column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [bytes.fromhex(V1), b"x"]}), tmp_path / "in.parquet")
    summary = job.run(spark, str(tmp_path / "in.parquet"), str(tmp_path / "out"))
    assert summary == job.Summary([job.Count("v1", "mac", 1)], 1)
    assert good(spark, tmp_path / "out")[0].id_canonical == V1


@pytest.mark.parametrize("name", first_by_default(["ID_Kind", "reason"], 1))
def test_ids_job_on_names_that_clash_is_refused(spark, tmp_path, name):
    """A column of the input with the name of an added column, in any case, is an error: Spark would overwrite it."""
    (tmp_path / "in.csv").write_text(f"id,{name}\n{V1},mine\n")
    with pytest.raises(BadInput, match=f"has a column '{name}' already"):
        job.run(spark, str(tmp_path / "in.csv"), str(tmp_path / "out"))


@pytest.mark.details
def test_ids_job_on_a_missing_column_names_the_columns(spark, tmp_path):
    """The error lists the columns of the input."""
    (tmp_path / "in.csv").write_text(f"message id,b\n{V1},1\n")
    with pytest.raises(BadInput, match="no column 'id'; there are: message id, b"):
        job.run(spark, str(tmp_path / "in.csv"), str(tmp_path / "out"))
    (tmp_path / "in.csv").write_text(f"message `id`.x,b\n{V1},1\n")
    summary = job.run(spark, str(tmp_path / "in.csv"), str(tmp_path / "out"), column="message `id`.x")
    assert summary == job.Summary([job.Count("v1", "mac", 1)], 0)


POSITIONS = [
    ("orders", "1", "7", "1795219200", True),
    ("orders", "1", "8", "2026-11-21T00:00:00Z", True),
    ("orders", "1", "008", "2026-11-21 09:00:00.9+09:00", True),
    ("orders", "", "9", "1795219200", False),
    ("orders", "1", "-1", "1795219200", False),
    ("orders", "1", str(1 << 48), "1795219200", False),
    ("orders", "1", "x", "1795219200", False),
    ("orders", "1", "7.0", "1795219200", False),
    ("orders", "1", "7.9", "1795219200", False),
    ("orders", "1", "1e1", "1795219200", False),
    ("orders", "1", "true", "1795219200", False),
    ("orders", "1", " 7", "1795219200", False),
    ("orders", "1", "10", "yesterday", False),
    ("orders", "1", "10", "now", False),
    ("orders", "1", "10", "2026-11-21 00:00:00", False),
    ("orders", "1", "10", "2026-11-21", False),
    ("orders", "1", "11", str(1 << 62), False),
]


OTHER = {
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.parser.quotedRegexColumnNames": "true",
}


def test_ids_job_with_positions_quarantines_rows_without_one(spark, tmp_path):
    """The source joins the columns with ``/``. An offset is an integer, a time has a zone; nothing else is guessed."""
    lines = [",".join(row[:4]) + "\n" for row in POSITIONS]
    (tmp_path / "in.csv").write_text("topic,partition,offset,at\n" + "".join(lines))
    position = job.Position(("topic", "partition"), "offset", "at")
    with settings(spark, OTHER):
        summary = job.run(spark, str(tmp_path / "in.csv"), str(tmp_path / "out"), position=position)
    assert summary == job.Summary([job.Count("v1", "position", 3)], len(POSITIONS) - 3)
    assert {row.offset: row.id for row in good(spark, tmp_path / "out")} == {
        n: str(msgid.position_id("orders/1", int(n), 1_795_219_200)) for n in ("7", "8", "008")
    }
    aside = malformed(spark, tmp_path / "out")
    assert all(row.reason.startswith("no position: ") for row in aside)
    assert sorted(row.offset for row in aside) == sorted(row[2] for row in POSITIONS if not row[4])


REFUSED_TYPES = [
    ("offset", "double", "--offset must name a column of integers or of their digits, got 'offset' of double"),
    ("offset", "decimal(10,0)", r"got 'offset' of decimal\(10,0\)"),
    ("offset", "boolean", "got 'offset' of boolean"),
    ("topic", "double", "--source must name columns of text or integers, got 'topic' of double"),
    ("topic", "boolean", "got 'topic' of boolean"),
    ("at", "timestamp_ntz", "--at must name a column of timestamps with time zone.* of type timestamp_ntz"),
    ("at", "date", "of type date"),
    ("at", "boolean", "of type boolean"),
]


@pytest.mark.parametrize(("column", "type", "says"), REFUSED_TYPES)
def test_ids_job_with_positions_of_another_type_is_refused(spark, column, type, says):
    """7.2, 7.9 and 7.0 would have one ID; the text of a double depends on the version of Java."""
    types = {"topic": "string", "offset": "bigint", "at": "bigint", column: type}
    df = spark.createDataFrame([], ", ".join(f"{name} {type}" for name, type in types.items()))
    with pytest.raises(BadInput, match=says):
        job.with_position_ids(df, "id", job.Position(("topic",), "offset", "at"))


def test_ids_job_with_positions_of_logs_of_one_name_is_refused(spark):
    """Rows of two logs would have one ID."""
    df = spark.createDataFrame([("a/b", "c", 0, 0), ("a", "b/c", 0, 0)], "x string, y string, offset int, at int")
    with pytest.raises(BadInput, match="at most one column of the source may have a '/' in its values"):
        job.with_position_ids(df, "id", job.Position(("x", "y"), "offset", "at"))


def test_moment_in_with_a_zone_reads_local_times_there(spark):
    """The passed zone applies to text, dates and timestamps without a zone; a UTC offset in the text has priority."""
    moments = {
        "2022-03-23 14:50:38.5": datetime(2022, 3, 23, 13, 50, 38, 500_000, tzinfo=timezone.utc),
        "2022-07-01": datetime(2022, 6, 30, 22, tzinfo=timezone.utc),
        "2022-03-23T14:50:38Z": datetime(2022, 3, 23, 14, 50, 38, tzinfo=timezone.utc),
        "24:00": None,
    }
    with settings(spark, OTHER):
        df = spark.createDataFrame([(text,) for text in moments], "at string")
        micros = [row[0] for row in df.select(F.unix_micros(job.moment_in(df, "at", "Europe/Berlin"))).collect()]
        typed = df.limit(1).select(F.lit("2022-03-23 14:50:38").cast("timestamp_ntz").alias("at"))
        assert typed.select(F.unix_seconds(job.moment_in(typed, "at", "+01:00"))).first()[0] == 1_648_043_438
    assert micros == [at and round(at.timestamp() * 1_000_000) for at in moments.values()]
    with pytest.raises(BadInput, match="--timezone must be a time zone"):
        job.moment_in(df, "at", "Mars/Olympus")


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "spark_ext", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.programs
def test_command_line_of_ids_prints_the_summary(connect, tmp_path):
    """``python -m spark_ext ids`` prints a summary, and replaces an output folder only with --overwrite."""
    if connect:
        pytest.skip("starts its own session")
    result = command("ids", vectors.REAL_IDS_FILE, "--output", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"107 rows of {vectors.REAL_IDS_FILE}",
        " 11 v1 mac",
        " 42 v0-broker-offset",
        " 53 v0-client-unique",
        "  1 v0-ambiguous",
        "  0 malformed",
        f"written to {tmp_path}/out/ids",
    ]
    shown = command("ids", vectors.REAL_IDS_FILE, "--output", tmp_path / "out", "--overwrite", "--show", 4)
    assert re.search(r"^\|id +\|id_kind +\|id_time", shown.stdout, re.MULTILINE)
    again = command("ids", vectors.REAL_IDS_FILE, "--output", tmp_path / "out")
    assert again.returncode == 1
    assert again.stderr.splitlines()[-1] == f"Error: {tmp_path}/out holds results already; --overwrite replaces them"
    missing = command("ids", tmp_path / "none.csv", "--output", tmp_path / "out2")
    assert missing.returncode == 1
    assert "none.csv" in missing.stderr.splitlines()[-1]


def test_command_line_without_java_says_what_to_install(tmp_path):
    """Without Java, the command prints one clear line and no traceback."""
    environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_REMOTE")}
    result = subprocess.run(
        [sys.executable, "-m", "spark_ext", "ids", "x", "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PATH": str(tmp_path)},
    )
    assert result.returncode == 1
    assert result.stderr.startswith("Error: Spark needs Java 17 or 21, and Java was not found: install it")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("missing", ["click", "pyspark"])
def test_command_line_without_an_extra_says_what_to_install(missing):
    """The last line names the package and the extras."""
    says = f"python -m spark_ext: the command line needs {missing}: {to_install('spark,cli')}"
    program = f"import sys; sys.modules['{missing}'] = None; "
    program += "import runpy; runpy.run_module('spark_ext', run_name='__main__')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == says
