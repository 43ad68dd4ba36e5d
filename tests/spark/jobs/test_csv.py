"""CSV and TSV files of one folder are read by name, and times in text never depend on the session."""

from datetime import datetime, timezone

import pytest
from helpers.covering import covering, first_by_default
from helpers.sinks import put
from pyspark.sql import functions as F

import msgid
from spark_ext.columns._expressions import misfit_reason
from spark_ext.jobs import ids_job as job
from spark_ext.jobs._files import BadInput, read_rows
from spark_ext.jobs._times import moment_in

pytestmark = pytest.mark.spark

V1 = [f"0156F7E71C361B21BC024CCDBE0000000{n}" for n in range(8)]


def table(spark, out, name):
    """Return the rows of an output table as sorted tuples of the files' columns."""
    return spark.read.parquet(f"{out}/{name}")


def test_read_rows_of_tsv_in_folders_of_values_keeps_the_folders_columns(spark, tmp_path):
    """Files are read compressed or not, with names that need quotes, and in partition folders."""
    import gzip

    (tmp_path / "day=1 a%20b").mkdir()
    (tmp_path / "day=2").mkdir()
    (tmp_path / "day=1 a%20b" / "a b.tsv").write_text('"the ""id"".x"\tn\n1\t2\n')
    (tmp_path / "day=2" / "c%20d.tsv.gz").write_bytes(gzip.compress('\ufeffn\tthe "id".x\n4\t3\n'.encode()))
    df = read_rows(spark, str(tmp_path), "tsv")
    assert df.columns == ['the "id".x', "n", "day", "_corrupt_record"]
    assert sorted(tuple(row) for row in df.collect()) == [("1", "2", "1 a b", None), ("3", "4", "2", None)]


POSITION = job.Assignment("position", ("topic",), "offset", "at")
TIMES = [
    ("2022-03-23T14:50:38Z", 1_648_047_038),
    ("2022-03-23 23:50:38.999+09:00", 1_648_047_038),
    ("1648047038", 1_648_047_038),
    ("2022-03-23 14:50:38", None),
    ("2022-03-23", None),
    ("14:50", None),
    ("now", None),
]


@pytest.mark.details
@pytest.mark.parametrize(
    ("zone", "ansi"),
    covering(["Asia/Tokyo", "UTC", "America/New_York"], ["true", "false"], strength=0),
    indirect=["ansi"],
)
def test_ids_job_with_times_in_text_gives_the_same_ids_in_every_zone(spark, ansi, tmp_path, zone):
    """A row whose time lacks a UTC offset is quarantined: the IDs do not depend on the session's time zone."""
    lines = "".join(f"orders,{n},{text}\n" for n, (text, _) in enumerate(TIMES))
    put(tmp_path / "in", "1.csv", f"topic,offset,at\n{lines}")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), format="csv", assign=POSITION)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    found = {int(row.offset): row.id for row in table(spark, tmp_path / "out", "ids").collect()}
    expected = {n: str(msgid.position_id("orders", n, at)) for n, (_, at) in enumerate(TIMES) if at is not None}
    assert found == expected
    assert table(spark, tmp_path / "out", "quarantine").count() == len(TIMES) - len(expected)


@pytest.mark.parametrize("session", ["UTC", "America/New_York"])
def test_moment_in_with_a_zone_reads_local_times_there(spark, ansi, session):
    """The passed zone applies to text, dates and timestamps without a zone; a UTC offset in the text has priority."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", session)
    try:
        rows = [(text,) for text in ("2022-03-23 14:50:38.5", "2022-07-01", "2022-03-23T14:50:38Z", "24:00")]
        df = spark.createDataFrame(rows, "at string")
        micros = [row[0] for row in df.select(F.unix_micros(moment_in(df, "at", "Europe/Berlin"))).collect()]
        assert micros == [
            round(moment.timestamp() * 1_000_000) if moment else None
            for moment in (
                datetime(2022, 3, 23, 13, 50, 38, 500_000, tzinfo=timezone.utc),
                datetime(2022, 6, 30, 22, tzinfo=timezone.utc),
                datetime(2022, 3, 23, 14, 50, 38, tzinfo=timezone.utc),
                None,
            )
        ]
        typed = df.limit(1).select(F.lit("2022-03-23 14:50:38").cast("timestamp_ntz").alias("at"))
        assert typed.select(F.unix_seconds(moment_in(typed, "at", "+01:00"))).first()[0] == 1_648_043_438
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(
    ("kind", "zone", "says"),
    [
        ("timestamp_ntz", None, "--at must name a column of timestamps with time zone.* of type timestamp_ntz"),
        ("date", None, "of type date"),
        ("boolean", "UTC", "of type boolean"),
        ("string", "Mars/Olympus", "--timezone must be a time zone"),
    ],
)
def test_moment_in_of_a_column_without_a_zone_is_refused(spark, kind, zone, says):
    """The error names the column's type before the query runs."""
    with pytest.raises(BadInput, match=says):
        moment_in(spark.createDataFrame([], f"at {kind}"), "at", zone)


@pytest.mark.parametrize("header", first_by_default(["note,id", None, "note,name"], 1))
@pytest.mark.details
def test_ids_job_on_bytes_that_are_not_utf_8_keeps_the_line(spark, tmp_path, header):
    """A byte is never replaced by another character: its row is in quarantine with the line of the file."""
    source, out = tmp_path / "in", str(tmp_path / "out")
    put(source, "1.csv", f"id,note\n{V1[0]},für 5 €\n")
    line = f"{V1[1]},a\xe9" if header is None else f"a\xe9,{V1[1]}"
    (source / "2.csv").write_bytes(f"{header or 'id,note'}\n{line}\n".encode("latin-1"))
    assert job.run(spark, str(source), out, format="csv").rows == 2
    assert [row.note for row in table(spark, out, "ids").collect()] == ["für 5 €"]
    aside = table(spark, out, "quarantine")
    (bad,) = aside.select("reason", F.col("_corrupt_record").cast("binary").alias("line")).collect()
    kept = f"{V1[1]},a\xe9" if header == "note,id" else line
    start = "header note,name\n" if header == "note,name" else ""
    assert bytes(bad.line) == f"{start}{kept}".encode("latin-1")
    expected = "the file has another header than the first file: header note,name" if start else "the line is not UTF-8"
    assert bad.reason == expected


@pytest.mark.parametrize("format", first_by_default(["csv", "tsv"], 1))
def test_read_rows_of_a_file_in_utf_16_keeps_its_lines_aside(spark, tmp_path, format):
    """The other files are read, whichever comes first; a folder of such files alone is refused."""
    source, gap = tmp_path / "in", "," if format == "csv" else "\t"
    put(source, f"2.{format}", f"id{gap}note\n{V1[0]}{gap}a\n")
    for name, encoding in (("1", "utf-16"), ("3", "utf-16-be")):
        (source / f"{name}.{format}").write_bytes(f"id{gap}note\n{V1[1]}{gap}é\n{V1[2]}{gap}b\n".encode(encoding))
    df = read_rows(spark, str(source))
    rows = df.withColumn("reason", misfit_reason(df)).collect()
    assert [row.id for row in rows if row.reason is None] == [V1[0]]
    reasons = {row.reason for row in rows if row.reason is not None}
    assert reasons == {"the file has another header than the first file: header not UTF-8"}
    text = "\n".join(row._corrupt_record for row in rows if row.reason is not None).replace("\0", "")
    assert text.count(V1[1]) == text.count(V1[2]) == 2
    (source / f"2.{format}").unlink()
    with pytest.raises(BadInput, match=r"the header of .* is not UTF-8"):
        read_rows(spark, str(source))


@pytest.mark.parametrize("name", ["_corrupt_record", "_Corrupt_Record"])
def test_read_rows_of_a_column_that_the_job_adds_is_refused(spark, tmp_path, name):
    """The column of CSV is named in the error; a JSON key of this name keeps its line alone."""
    put(tmp_path / "csv", "1.csv", f"id,{name}\n{V1[0]},x\n")
    with pytest.raises(BadInput, match=f"the input has a column '{name}' already"):
        read_rows(spark, str(tmp_path / "csv"))
    lines = [f'{{"id":"{V1[0]}"}}', f'{{"id":"{V1[1]}","{name}":"x"}}', '{"id":"' + V1[2]]
    put(tmp_path / "json", "1.json", "\n".join(lines))
    found = read_rows(spark, str(tmp_path / "json")).collect()
    assert [tuple(row)[::-1] for row in found] == [(None, V1[0]), (lines[1], V1[1]), (lines[2], None)]


@pytest.mark.details
@pytest.mark.parametrize("note", first_by_default(['"open\n0,"x', '"open', '"a" b'], 1))
@pytest.mark.parametrize("header", first_by_default(["id,note", "note,id"], 1))
def test_ids_job_on_a_quotation_mark_that_is_not_closed_loses_no_line(spark, tmp_path, note, header):
    """Lines that one cell has merged are in quarantine with their whole text; cells of several lines stay valid."""
    source, out = tmp_path / "in", str(tmp_path / "out")
    put(
        source,
        "0.csv",
        f'{header}\n{V1[0]},"two\nlines"\n' if header == "id,note" else f'{header}\n"two\nlines",{V1[0]}\n',
    )
    later = "".join(f"{V1[2]},{n}\n" for n in range(50))
    put(source, "1.csv", f"id,note\n{V1[1]},{note}\n{later}")
    job.run(spark, str(source), out, format="csv")
    ids = table(spark, out, "ids").collect()
    assert [row.note for row in ids if row.id == V1[0]] == ["two\nlines"]
    aside = [row._corrupt_record for row in table(spark, out, "quarantine").collect()]
    text = "\n".join([*aside, *(f"{row.id},{row.note}" for row in ids if "\n" not in (row.note or ""))])
    assert all(f"{V1[2]},{n}" in text for n in range(50))
    assert not any("\n" in (row.note or "") for row in ids if row.id != V1[0])
