"""`spark_ext.audit`: the report of Python, computed from blocks; streams; the outputs of the jobs."""

import doctest
import itertools
import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from helpers.queues import NAMES as DETAILS
from helpers.queues import several
from helpers.vector_files import redelivered
from pyspark.sql.types import LongType, StringType, StructField, StructType

import msgid
import msgid.audit
import spark_ext
from msgid import layout
from msgid.audit import facts
from msgid.audit.options import rules_in
from msgid.audit.reduction import STATEMENTS
from msgid.shared.known_tables import Columns
from spark_ext.auditing._engine import SparkEngine
from spark_ext.auditing._roles import Roles
from spark_ext.cli import spark_ext as command

pytestmark = pytest.mark.spark

PLACES = {"source": "source", "offset": "offset"}
PARTS = ("rows", "unplaced", "untimed", "unlanded", "findings", "gaps", "logs", "generators", "nodes", "kinds", "notes")
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
V1 = "0156F7E71C361B21BC024CCDBE00000000"


def read(spark, table, path):
    pq.write_table(table, f"{path}/table.parquet", coerce_timestamps="us")
    return spark.read.parquet(f"{path}/table.parquet")


def same(spark_report, local, parts=PARTS):
    for part in parts:
        assert getattr(spark_report.local, part) == getattr(local, part)


@pytest.mark.details
def test_audit_of_rocketmq_rows_is_that_of_python(spark, tmp_path):
    """The IDs are in the properties; redelivered messages have the log of their retry topic; odd properties, too."""
    recorded = redelivered(("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "properties", "body"))
    again = {"RETRY_TOPIC": "t", "REAL_TOPIC": "%RETRY%g", "UNIQ_KEY": V1}
    odd = [None, "{}", "no JSON", "[1]", '{"UNIQ_KEY": "no id"}', '{"UNIQ_KEY": ""}', '{"UNIQ_KEY": null}']
    odd += [json.dumps({**again, "REAL_QID": number}) for number in ("7", "x", "-1", "1234567890", "٣")]
    odd += [json.dumps({**again, "REAL_TOPIC": "t", "REAL_QID": "7"}), json.dumps({"REAL_TOPIC": "%RETRY%g"})]
    rows = [("t", "b", 1, n, 1_648_047_038_000 + n, text, b"x") for n, text in enumerate(odd)]
    rows += [(None, "b", 1, 1, 1, "{}", None), ("t", "b", -1, 1, 1, "{}", None), ("t", "b", 1, 99, None, "{}", None)]
    more = pa.table(dict(zip(recorded.column_names, zip(*rows, strict=True), strict=True)), recorded.schema)
    table = pa.concat_tables([recorded, more])
    df = read(spark, table, tmp_path)
    same(spark_ext.audit(df), msgid.audit.audit_table(table))


@pytest.mark.details
def test_audit_of_simulated_tables_is_that_of_python(spark, tmp_path):
    """Every list of the report is equal, examples included, whichever columns are given."""
    table = several((6, 7, 8, 13, 20, 41))[1]
    df = read(spark, table, tmp_path)
    for columns in (DETAILS, PLACES, {}):
        same(spark_ext.audit(df, **columns), msgid.audit.audit_table(table, **columns))


@pytest.mark.details
def test_generators_whose_node_declares_another_origin_are_those_of_python(spark, tmp_path):
    """Random nodes of other programs, beside derived IDs with and without their parent, and positions in logs."""
    nodes = [first << 40 | 5 for first in (0x07, 0x0B, 0x0F, 0xFB)]
    ids = [layout.pack(node, pid, 9 + n // 20, n) for node in nodes for pid in (1, 0xFFFF) for n in range(60) if n % 13]
    ids += [bytes(msgid.derive_id(V1, name)) for name in range(20)]
    ids += [bytes(msgid.position_id("log", offset, AT)) for offset in (*range(9), *range(9 << 30, (9 << 30) + 9))]
    parents = [V1 if n % 2 else None for n in range(len(ids))]
    table = pa.table({"id": [raw.hex().upper() for raw in ids], "parent": parents})
    report = msgid.audit.audit_table(table, parent="parent")
    assert (len(report.generators), len(report.logs)) == (8, 1)
    assert {"missing_sequences", "orphan_ids", "missing_offsets"} <= {finding.check for finding in report.findings}
    df = read(spark, table, tmp_path)
    same(spark_ext.audit(df, parent="parent"), report)
    only = table.slice(0, 4 * 2 * 55)
    same(spark_ext.audit(read(spark, only, tmp_path)), msgid.audit.audit_table(only))


def hostile():
    """IDs of all kinds, malformed values, positions, derived IDs and their parents."""
    broker = "7F0000010000238F000000000001E240"
    client = str(msgid.ClientUniqueId("127.0.0.1", 1, 2, 20 * 86_400_000, 3))
    ambiguous = "7F0000010000238F" + "00000100" + "00000000"
    positions = [str(msgid.position_id("orders", offset, AT)) for offset in (5, 6, 9, 9, 2**40)]
    child = str(msgid.derive_id(V1, "bill"))
    values = [
        V1, V1.lower(), broker, f"00{broker}", ambiguous, client, "", "x", "0" * 33, "G" * 34, "02" * 17, None,
        "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE", "74b158ca-ddb3-498f-b0a9-9eec1c6197ae", "007F", "é" * 17,
        *positions, child, child, layout.pack(0xACDE48001122, 1, 5, 2**32 - 1).hex(),
        layout.pack(layout.synthetic_node("random", 5), 65_535, 2**32 - 1, 0).hex(),
    ]  # fmt: skip
    parents = [None] * len(values)
    parents[values.index(child)], parents[values.index(child) + 1] = V1.lower(), "none"
    landed = [None, *(AT + timedelta(days=place) for place in range(1, len(values)))]
    return pa.table({"id": values, "parent": parents, "landed": landed, "n": range(len(values))})


@pytest.mark.details
@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.variants)], indirect=True)
def test_audit_of_hostile_ids_is_that_of_python(spark, tmp_path, ansi):
    """Kinds, reasons, examples, wrapped months, orphans and positions are those of Python, in both ANSI modes."""
    table = hostile()
    df = read(spark, table, tmp_path)
    for columns in ({"landed": "landed", "parent": "parent", "content": "n"}, {}):
        same(spark_ext.audit(df, **columns), msgid.audit.audit_table(table, **columns))


def odd():
    """Columns with odd names and types, as other systems write them, and rows without a place."""
    # The time zone of the tests' session skips from 2:00 to 3:00 on this day.
    naive = [datetime(2026, 3, 8, 0, 30) + timedelta(hours=n) for n in (0, 1, 0, 2, 4, 5, 6, 7)]
    return pa.table(
        {
            "my.id": [V1, V1.lower(), None, "", "x" * 300, f"{V1[:-1]}9", V1, "y"],
            "the `log`": ["a", "a", None, "a", "a", "a", "b", ""],
            "Offset No.": pa.array([*map(Decimal, ("0", "3", "4", "-1")), None, *map(Decimal, ("7", "9", "1"))]),
            "sent.at": pa.array(naive, pa.timestamp("us")),
            "day": pa.array([at.date() for at in reversed(naive)], pa.date32()),
            "body.": [b"x", b"", None, b"x", b"x", b"x", b"x", b"x"],
        }
    )


ODD = {
    "id": "my.id", "source": "the `log`", "offset": "Offset No.", "timestamp": "sent.at", "landed": "day",
    "content": "body.",
}  # fmt: skip


@pytest.mark.details
def test_audit_of_times_outside_the_years_is_that_of_python(spark, tmp_path):
    """A time after the year 9999 or before the year 1 is not read: with a time zone, without one, and as a date."""
    days = [0, 2_932_896, 2_932_897, 100_000_000, -719_162, -719_163]
    micros = [day * 86_400_000_000 for day in days]
    table = pa.table(
        {
            "offset": range(6),
            "zoned": pa.array(micros, pa.timestamp("us", "UTC")),
            "naive": pa.array(micros, pa.timestamp("us")),
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
        }
    )
    df = read(spark, table, tmp_path)
    for timestamp, landed in itertools.pairwise(["zoned", "naive", "day", "zoned"]):
        columns = {"id": None, "offset": "offset", "timestamp": timestamp, "landed": landed}
        local = msgid.audit.audit_table(table, **columns)
        assert (local.logs[0].first_time.year, local.logs[0].last_time.year) == (1, 9999)
        same(spark_ext.audit(df, **columns), local)


@pytest.mark.details
@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.variants)], indirect=True)
def test_audit_of_odd_columns_is_that_of_python(spark, tmp_path, ansi):
    """Names with dots, backticks and capitals, decimals, dates, times without time zone, long IDs and NULLs."""
    table = odd()
    df = read(spark, table, tmp_path)
    local = msgid.audit.audit_table(table, **ODD)
    same(spark_ext.audit(df, **ODD), local)
    assert {finding.check for finding in local.findings} >= {"missing_offsets", "missing_ids", "malformed_ids"}
    for rows in (table[:0], table[:1]):
        few = read(spark, rows, tmp_path)
        same(spark_ext.audit(few, **ODD), msgid.audit.audit_table(rows, **ODD))


@pytest.mark.details
def test_audit_of_many_logs_is_that_of_python(spark, tmp_path):
    """A thousand logs with a fault each are listed in the same order, and the others are counted."""
    logs = 1_200
    sources = [f"log {n // 3}" for n in range(3 * logs)]
    table = pa.table({"source": sources, "offset": [(0, 2 + n % 5, 2 + n % 5)[n % 3] for n in range(3 * logs)]})
    df = read(spark, table, tmp_path)
    same(spark_ext.audit(df, id=None, **PLACES), msgid.audit.audit_table(table, id=None, **PLACES))


@pytest.mark.details
def test_text_that_is_not_utf_8_is_audited_as_its_bytes(spark):
    """Files of other writers have it. Names of logs show it with replacement characters, IDs as hex digits."""
    rows = [(bytearray(b"\xff\xfe"), offset) for offset in (1, 4, 4)] + [(bytearray(b"a"), 4)]
    df = spark.createDataFrame(rows, "bytes binary, offset bigint").selectExpr("CAST(bytes AS STRING) AS text", "*")
    for name in ("text", "bytes"):
        report = spark_ext.audit(df, id=name, source=name, offset="offset").local
        assert [(one.check, one.scope, one.count) for one in report.findings if one.severity == "error"] == [
            ("missing_offsets", "\ufffd\ufffd", 2), ("duplicate_messages", "\ufffd\ufffd", 1),
            ("duplicate_ids", "table", 2), ("malformed_ids", "table", 4)]  # fmt: skip
        assert {one.example for one in report.findings if one.check in ("duplicate_ids", "malformed_ids")} == {"0xFFFE"}


def test_lists_of_a_report_are_dataframes(spark):
    """Each list has the columns of Python's report, also where it is empty."""
    report = spark_ext.audit(spark.createDataFrame([(V1,), (None,)], "id string"))
    for part, row in (("findings", "Finding"), ("gaps", "Gap"), ("logs", "LogRow"), ("generators", "GeneratorRow")):
        assert getattr(report, part).columns == list(getattr(facts, row)._fields)
    assert [(row.check, row["count"]) for row in report.findings.collect()] == [("missing_ids", 1)]
    assert report.nodes.collect()[0].node == "56:f7:e7:1c:36:1b"
    assert report.rows == 2


COLUMNS = Columns("id", ("source",), offset="offset", timestamp="timestamp", content=("content",), landed="landed")


@pytest.mark.details
def test_statements_about_rows_need_no_python_worker(spark, connect, tmp_path):
    """Spark's own functions read each row, 32 offsets of a log at a time."""
    moments = pa.array([AT] * 3, pa.timestamp("us", "UTC"))
    table = pa.table({"id": [V1] * 3, "source": ["a"] * 3, "offset": [0, 40, 70_000], "content": [b"x"] * 3,
                      "timestamp": moments, "landed": moments})  # fmt: skip
    engine, rules = SparkEngine(spark, 10), rules_in({})
    relations = Roles(read(spark, table, tmp_path), COLUMNS, rules).relations(engine)
    words = {
        **relations.words,
        **{
            name: getattr(relations, name) for name in ("placed", "contents", "ids", "id_contents", "contents_of_group")
        },
    }
    words["asked"] = engine.add("asked", spark.createDataFrame([("a", 40)], "log string, off bigint"))
    frames = {name: engine.frame(STATEMENTS[name].format_map(words))
              for name in ("log_words", "backwards", "messages", "words", "texts")}  # fmt: skip
    assert {name: df.count() for name, df in frames.items()} == {
        "log_words": 3, "backwards": 0, "messages": 1, "words": 1, "texts": 0}  # fmt: skip
    for name, df in frames.items() if not connect else ():
        plan = df._jdf.queryExecution().executedPlan().toString()
        assert "Python" not in plan, name
        assert "ArrowEval" not in plan, name


@pytest.mark.details
def test_an_audit_leaves_no_name_in_the_session(spark):
    """The relations of an audit are not tables of the user's session, also after an error."""
    before = [table.name for table in spark.catalog.listTables()]
    df = spark.createDataFrame([(V1, "a", 1), (V1, "a", 4)], "id string, source string, offset bigint")
    report = spark_ext.audit(df)
    assert report.rows_of("missing_offsets").collect() == [("a", 2, 3, 2)]
    with pytest.raises(ValueError, match="milliseconds"):
        spark_ext.audit(df.selectExpr("*", "1800000000L AS timestamp"))
    assert [table.name for table in spark.catalog.listTables()] == before


@pytest.mark.details
def test_times_without_a_zone_are_read_by_the_timezone_or_refused(spark):
    """The error names the argument and the cure; a time that names its offset keeps it."""
    rows = [(0, "2026-01-01 00:00:00.5"), (1, "2026-01-01T01:00:00+02:00")]
    df = spark.createDataFrame(rows, "offset bigint, timestamp string")
    for timezone_, first in ((None, None), ("+01:00", "2025-12-31T23:00:00.500000+00:00")):
        local = msgid.audit.audit_table(df.toArrow(), id=None, timezone=timezone_)
        same(spark_ext.audit(df, id=None, timezone=timezone_), local)
        assert local.untimed == (0 if first else 1)
        assert first is None or local.logs[0].last_time.isoformat() == first
    with pytest.raises(ValueError, match="`timestamp` must have times that name their offset from UTC"):
        spark_ext.audit(df.where("offset = 0"), id=None)


@pytest.mark.details
def test_spaces_at_the_end_of_a_char_column_are_not_part_of_its_values(spark):
    """Two spellings of one ID are one ID, and a log has its name."""
    padded = StructType([StructField(name, StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(40)"})
                         for name in ("id", "source")] + [StructField("offset", LongType())])  # fmt: skip
    df = spark.createDataFrame([(V1 + " " * 6, "a  ", 0), (V1.lower() + " " * 6, "a  ", 1)], padded)
    report = spark_ext.audit(df)
    assert [(one.check, one.count) for one in report.local.findings] == [("duplicate_ids", 1)]
    assert [one.source for one in report.local.logs] == ["a"]


FIRST_COLUMNS = {
    "missing_offsets": ["log", "first", "last", "count"],
    "missing_sequences": ["generator", "first", "last", "count"],
    "duplicate_messages": ["msgid_log", "msgid_offset"],
    "conflicting_messages": ["msgid_log", "msgid_offset"],
    "late_messages": ["msgid_log", "msgid_offset", "seconds_late"],
    "time_backwards": ["msgid_log", "msgid_offset", "seconds_back"],
    "synthetic_node": ["scope", "count", "example", "meaning"],
}
"""The columns before those of the table."""


@pytest.mark.details
def test_rows_of_each_check_are_those_of_python(spark, tmp_path):
    """A check of messages has the table's columns, and each row of each such message."""
    tables = [(hostile(), {"landed": "landed", "parent": "parent", "content": "n"}), (several((6, 7, 8))[1], DETAILS)]
    seen = set()
    for number, (table, columns) in enumerate(tables):
        path = tmp_path / str(number)
        path.mkdir()
        local, report = msgid.audit.audit_table(table, **columns), spark_ext.audit(read(spark, table, path), **columns)
        for check in {finding.check for finding in local.findings}:
            seen.add(check)
            rows, theirs = report.rows_of(check), local.rows_of(check)
            own = [] if rows.columns[0] in ("log", "generator", "scope") else table.column_names
            if own or check in ("missing_offsets", "missing_sequences", "synthetic_node"):
                assert rows.columns == FIRST_COLUMNS.get(check, []) + own
            assert rows.columns == theirs.column_names
            text = [name for name in rows.columns if name not in ("landed", "content", "timestamp")]
            values = (table.select(text).to_pylist() for table in (rows.toArrow(), theirs))
            one, other = (sorted(map(repr, value)) for value in values)
            assert one == other, check
    assert {"missing_offsets", "duplicate_messages", "malformed_ids", "orphan_ids", "duplicate_ids"} <= seen


def test_wrong_arguments_of_an_audit_are_refused(spark):
    """A stream, a missing column and a column of another type are errors that name the argument."""
    with pytest.raises(ValueError, match="cannot audit a stream"):
        spark_ext.audit(spark.readStream.format("rate").load(), id=None, offset="value")
    df = spark.createDataFrame([(1.5, "a")], ["offset", "key"])
    with pytest.raises(ValueError, match="`source` must be a column of the table, got 'no'"):
        spark_ext.audit(df, id=None, source="no", offset="offset")
    with pytest.raises(ValueError, match="offset must be a column of integers, got double"):
        spark_ext.audit(df, id=None, offset="offset")


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.mark.details
def test_command_audits_the_outputs_of_jobs_without_options(spark, tmp_path):
    """The outputs of ids and messages are audited by their known columns, with the rows that were put aside."""
    made = [layout.pack(1 << 40, 1, 5, sequence).hex().upper() for sequence in (0, 1, 4)]
    (tmp_path / "ids.csv").write_text("\n".join(["id,n", *(f"{id},1" for id in made), f"{made[0]},2", "bad,3"]) + "\n")
    assert run("ids", tmp_path / "ids.csv", "-o", tmp_path / "out").exit_code == 0
    page = tmp_path / "audit.html"
    done = run("audit", tmp_path / "out", "--fail-on", "error", "--report", page)
    assert done.exit_code == 3
    assert "audit failed: 1 finding of severity error: 1 duplicate_ids in table" in done.output
    assert [line.split()[1] for line in done.output.splitlines()[3:6]] == [
        "duplicate_ids", "missing_sequences", "malformed_ids",
    ]  # fmt: skip
    assert page.read_text().startswith("<!doctype html>")
    kafka = [{"topic": "a", "partition": 0, "offset": offset, "value": f"v{offset}"} for offset in (3, 4, 9)]
    (tmp_path / "kafka.json").write_text("".join(json.dumps(row) + "\n" for row in kafka))
    raw = json.loads(run("audit", tmp_path / "kafka.json", "--json").output)
    assert [(gap["scope"], gap["first"], gap["last"]) for gap in raw["gaps"]] == [("kafka:kafka/a/0", 5, 8)]
    missing = run("audit", tmp_path / "kafka.json", "--offset", "no")
    assert missing.exit_code == 1
    assert "--offset must be a column of the table, got 'no'" in missing.output


@pytest.mark.details
def test_command_audits_message_tables_and_outputs_of_process(spark, tmp_path):
    """A table of messages is audited by source and offset, and the outputs of process by their IDs."""
    rows = [{"topic": "a", "partition": 0, "offset": n, "timestamp": AT, "value": b"v"} for n in (1, 2, 2, 5)]
    spark_ext.messages(spark.createDataFrame(rows), "kafka").write.parquet(f"{tmp_path}/made/messages")
    found = json.loads(run("audit", tmp_path / "made", "--json").output)
    assert [(f["check"], f["scope"], f["count"]) for f in found["findings"]] == [
        ("missing_offsets", "kafka:kafka/a/0", 2), ("duplicate_messages", "kafka:kafka/a/0", 1),
        ("duplicate_ids", "table", 1),
    ]  # fmt: skip
    outputs = [(V1, 0, V1, "k", "t", body, "new", None) for body in ("a", "b")] + [
        (None, 0, V1, "k", "t", "", "failed", "")
    ]
    names = ["id", "number", "input_id", "key", "topic", "body", "kind", "reason"]
    df = spark.createDataFrame(outputs, ", ".join(f"{n} {'int' if n == 'number' else 'string'}" for n in names))
    df.write.partitionBy("kind").parquet(f"{tmp_path}/handled/outputs")
    found = json.loads(run("audit", tmp_path / "handled", "--json").output)
    assert [(f["check"], f["count"]) for f in found["findings"]] == [("conflicting_ids", 1)]
    assert found["rows"] == 2


TUTORIAL = Path(__file__).parents[3] / "docs" / "pages" / "tutorial" / "audit.md"


@pytest.mark.details
@pytest.mark.skipif(not TUTORIAL.exists(), reason="the tests run outside the repository")
def test_tutorial_of_the_audit_has_the_same_report_on_spark(spark, tmp_path):
    """The Spark part of the tutorial gives the output that it shows."""
    page = TUTORIAL.read_text()
    names = {}
    for block in page.partition("## The audit in Python")[0].split("```pycon\n")[1:]:
        for example in doctest.DocTestParser().get_examples(block.partition("```")[0]):
            exec(example.source.replace("landed.parquet", f"{tmp_path}/landed.parquet"), names)
    report = msgid.audit.audit_file(tmp_path / "landed.parquet")
    text = page.partition("<!-- spark -->")[2].partition("<!-- end -->")[0]
    text = text.replace("landed.parquet", f"{tmp_path}/landed.parquet")
    names = {"spark": spark, "report": report}
    example = doctest.DocTestParser().get_doctest(text, names, "audit.md", str(TUTORIAL), 0)
    assert len(example.examples) > 3
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0


@pytest.mark.details
def test_naming_a_column_leaves_the_others_known(spark):
    """The report has the findings of a table whose columns are all found by name, as in Python."""
    rows = [(str(msgid.position_id("o", n, 0)), "o", n, body) for n, body in ((0, "a"), (2, "b"), (2, "c"))]
    df = spark.createDataFrame(rows, ["id", "source", "offset", "content"])
    expected = msgid.audit.audit_table(df.toArrow()).to_json()
    assert json.loads(expected)["findings"]
    for named in ({}, {"content": "content"}, {"source": ["source"]}, {"offset": "offset"}):
        assert spark_ext.audit(df, **named).to_json() == expected


@pytest.mark.details
def test_offsets_and_times_are_text_of_each_type(spark, tmp_path):
    """Spark pads a CHAR with spaces, and its functions refuse most collations."""
    rows = [("0", "2026-01-01T00:00:00Z"), ("1", "2026-01-01T00:00:02Z"), ("3", "2026-01-01T00:00:01Z")]
    spark.sql(f"CREATE TABLE offsets_of_char (o char(9), t char(40)) USING parquet LOCATION '{tmp_path / 'chars'}'")
    try:
        spark.sql("INSERT INTO offsets_of_char VALUES " + ", ".join(map(str, rows)))
        text = spark.createDataFrame(rows, "o string, t string")
        for df in (
            text,
            spark.table("offsets_of_char"),
            text.selectExpr("o COLLATE UNICODE_CI AS o", "t COLLATE UTF8_BINARY_RTRIM AS t"),
        ):
            report = spark_ext.audit(df, id=None, offset="o", timestamp="t")
            found = [(row.check, row["count"]) for row in report.findings.collect()]
            assert found == [("missing_offsets", 1), ("time_backwards", 1)], df.schema
    finally:
        spark.sql("DROP TABLE offsets_of_char")
