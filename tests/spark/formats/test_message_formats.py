"""A message format of one's own, in one file: `messages`, the sinks, the job and the audit use it by its name."""

import json

import pytest
from click.testing import CliRunner
from helpers import markdown
from helpers.versions import since
from pyspark.sql import functions as F

import msgid
import spark_ext as ids
from msgid.shared import known_tables
from spark_ext.cli import spark_ext as command
from spark_ext.formats import message_formats
from spark_ext.jobs import audit_job, messages_job
from spark_ext.testing import MessageFormatTests

pytestmark = pytest.mark.spark


Pulsar = markdown.class_of("guides/message-formats.md", "Pulsar", spark_ext=ids, F=F)


@pytest.fixture
def pulsar(monkeypatch):
    monkeypatch.setattr(known_tables, "registered", {})
    monkeypatch.setattr(message_formats._FORMATS, "loaded", dict(message_formats._FORMATS.loaded))
    ids.register_message_format(Pulsar())


ENTRIES = (0, 1, 3)
LOG, AT = "pulsar:eu/orders/0/7", 1767225600
LINES = [
    {"topic": "orders", "message_id": f"7:{entry}:0:-1", "published": "2026-01-01T00:00:00Z", "payload": "a"}
    for entry in ENTRIES
]
BAD = {"topic": "orders", "message_id": "seven", "published": "2026-01-01T00:00:00Z", "payload": "bad"}


GOOD = [
    (
        tuple(line.values()),
        [
            {
                "id": str(msgid.position_id(LOG, n << 16, AT)),
                "source": LOG,
                "topic": "orders",
                "partition": 0,
                "offset": n,
                "timestamp": AT * 10**6,
                "payload": b"a",
            }
        ],
    )
    for n, line in zip(ENTRIES, LINES, strict=True)
]


@since(4, 0)
class TestPulsar(MessageFormatTests):
    """The small format passes the tests of all formats."""

    format, schema = Pulsar(), "topic string, message_id string, published string, payload string"
    options, good, malformed = {"cluster": "eu"}, GOOD, [(tuple(BAD.values()), b"bad")]


FAULTS = {
    "id": lambda row: F.when(row["malformed"].isNull(), F.expr("uuid()")),
    "source": lambda row: F.concat(row["source"], F.lit("0")),
    "topic": lambda row: F.upper(row["topic"]),
    "partition": lambda row: row["partition"] + 1,
    "offset": lambda row: row["offset"] + 1,
    "timestamp": lambda row: row["timestamp"] + F.expr("INTERVAL 1 MICROSECOND"),
    "payload": lambda row: F.upper(row["payload"].cast("string")).cast("binary"),
    "malformed": lambda row: F.lit(None).cast("string"),
}


def fails(test, *arguments):
    try:
        test(*arguments)
    except AssertionError:
        return True
    return False


@since(4, 0)
@pytest.mark.details
@pytest.mark.parametrize("column", FAULTS)
def test_contract_notices_a_fault_in_each_column(spark, pulsar, column):
    class Faulty(Pulsar):
        def rows(self, df, options):
            row = super().rows(df, options)
            return {**row, column: FAULTS[column](row)}

    ids.register_message_format(Faulty())
    assert any(fails(getattr(TestPulsar(), name), spark) for name in dir(TestPulsar) if name.startswith("test_"))


@pytest.mark.details
def test_job_and_audit_use_an_own_message_format(spark, tmp_path, pulsar):
    """The job reads JSON lines of the format, and the audit finds the missing entries of its table."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(line) + "\n" for line in [*LINES, BAD]))
    source = messages_job.Source("pulsar", files="json")
    messages_job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), source)
    report = audit_job.run(spark, str(tmp_path / "out"))
    assert "missing_offsets" in str(report)


def test_audit_needs_no_argument_for_rows_of_an_own_format(spark, pulsar):
    """The format's ``log`` names the columns of its rows; the audit finds the offset that is missing."""
    own = Pulsar()
    own.log = {"source": ("topic", "ledger"), "offset": "entry", "prefix": "pulsar:eu/"}
    ids.register_message_format(own)
    rows = spark.createDataFrame(
        [("orders", 7, entry, "a") for entry in (0, 1, 3)], "topic string, ledger int, entry bigint, note string"
    )
    findings = ids.audit(rows).findings.where(F.col("check") == "missing_offsets").collect()
    assert [(row.scope, row["count"]) for row in findings] == [("pulsar:eu/orders/7", 1)]


def test_unknown_message_format_is_refused_with_the_known_ones(spark, pulsar):
    """The error lists the formats, those of one's own too; only a `MessageFormat` can be registered."""
    with pytest.raises(ValueError, match=r"format must be one of iggy, .*, rocketmq, pulsar, got 'nats'"):
        ids.messages(spark.range(1), "nats")
    with pytest.raises(TypeError, match="format must be a MessageFormat, got 'kafka'"):
        ids.register_message_format("kafka")


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("name", None, "`name` of a message format must be a str, got None"),
        ("name", "", "`name` of a message format must be a str, got ''"),
        ("columns", ["a"], r"`columns` of a message format must be a tuple, got \['a'\]"),
        ("columns", (), r"`columns` of a message format must be a tuple, got \(\)"),
        ("time", None, "`time` of a message format must be a str, got None"),
    ],
)
def test_incomplete_message_format_is_refused_when_it_is_registered(pulsar, attribute, value, reason):
    """The error names the attribute and its value."""
    own = Pulsar()
    setattr(own, attribute, value)
    with pytest.raises(ValueError, match=reason):
        ids.register_message_format(own)


def test_option_of_no_format_is_refused_and_one_of_another_format_is_ignored(spark, pulsar):
    """A misspelt option is never ignored; one program may pass the options of several formats."""
    df = spark.createDataFrame([tuple(LINES[0].values())], list(BAD))
    with pytest.raises(TypeError, match=r"messages\(\) got an unexpected keyword argument 'clutser'"):
        ids.messages(df, "pulsar", clutser="eu")
    assert "id" in ids.messages(df, "pulsar", layout="m45", logged=True).columns


@pytest.mark.details
def test_own_format_may_replace_a_format_of_the_package(spark, pulsar):
    """Each format is known by its name alone, also those of Iggy and Danube."""
    own = Pulsar()
    own.name = "danube"
    ids.register_message_format(own)
    df = spark.createDataFrame([tuple(LINES[0].values())], list(BAD))
    assert ids.messages(df, "danube").first().source == "pulsar:pulsar/orders/0/7"


def test_command_line_knows_the_formats_of_imported_modules(tmp_path, pulsar, monkeypatch):
    """``--import`` runs a module first, which registers its formats; a missing module is one line."""
    (tmp_path / "own_formats.py").write_text(
        "import spark_ext\n"
        "class Own(spark_ext.MessageFormat):\n"
        "    name, columns, time = 'own', ('a',), 'a'\n"
        "    def rows(self, df, options): ...\n"
        "spark_ext.register_message_format(Own())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    run = CliRunner().invoke
    assert "|own]" not in run(command, ["messages", "--help"]).output
    assert "|own]" in run(command, ["--import", "own_formats", "messages", "--help"]).output
    result = run(command, ["messages", str(tmp_path), "-o", "x", "--format", "nats"])
    assert result.exit_code == 2
    assert "must be one of iggy" in result.output
    result = run(command, ["--import", "no_such_module", "messages", "--help"])
    assert result.exit_code == 2
    assert "cannot import no_such_module" in result.output
