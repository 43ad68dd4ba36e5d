"""The commands ``clean`` and ``process``, called like a user calls them, on the session of the tests."""

import json
import os
from datetime import datetime, timezone

import pytest
import shooting_range
from click.testing import CliRunner
from helpers.covering import first_by_default

import msgid
from msgid import iggy
from msgid.processing import MemoryStore, Message, Processor, dumps
from spark_ext.cli import spark_ext
from spark_ext.tables.sinks import read_table

pytestmark = pytest.mark.spark


def run(*arguments):
    return CliRunner().invoke(spark_ext, [str(argument) for argument in arguments])


@pytest.mark.details
def test_messages_of_segments_are_stored_and_expire(spark, tmp_path):
    """``clean`` reports the expired segments, deletes them with --apply, and rejects a wrong policy with one line."""
    folder = tmp_path / "in" / "streams" / "1" / "topics" / "orders" / "partitions" / "0"
    folder.mkdir(parents=True)
    for offset in (0, 1):
        message = iggy.Message.new(b"abc", id=offset + 1, offset=offset, timestamp=1_700_000_000_000_000, layout="m45")
        (folder / f"{offset:020d}.log").write_bytes(iggy.encode(message, "m45"))
    made = run("messages", tmp_path / "in", "-f", "iggy", "-o", tmp_path / "out", "--by-segment")
    assert made.exit_code == 0, made.output
    table, policy = tmp_path / "out" / "messages", tmp_path / "policy.toml"
    policy.write_text("default_expiry = 60\n")
    dry = run("clean", table, "--policy", policy)
    assert dry.exit_code == 0, dry.output
    assert dry.output.endswith("1 of 2 segments, 1 messages, 3 bytes: would be removed; --apply removes them\n")
    first, second, _ = dry.output.splitlines()
    assert first.startswith("expired ")
    assert first.endswith("topic=orders/partition=0/segment=0")
    assert second.startswith("open ")
    assert spark.read.parquet(str(table)).count() == 2
    done = run("clean", table, "--policy", policy, "--apply")
    assert done.output.endswith("1 of 2 segments, 1 messages, 3 bytes: removed\n")
    assert [row.segment for row in spark.read.parquet(str(table)).collect()] == [1]
    policy.write_text("interval = 0\n")
    wrong = run("clean", table, "--policy", policy)
    assert (wrong.exit_code, wrong.output) == (1, "Error: interval must be more than 0 seconds, got 0\n")
    both = run("messages", tmp_path / "in", "-f", "iggy", "-o", tmp_path / "out", "--by-segment", "--stream")
    assert both.exit_code == 2


@pytest.mark.details
@pytest.mark.parametrize("table_format", first_by_default(["delta", "parquet"], 1))
def test_process_of_a_folder_run_again_writes_nothing_new(spark, rocksdb, tmp_path, table_format):
    """``process`` runs the handler of a user's module on a folder; a second run writes no new rows."""
    at = int(datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp())
    lines = [
        {"id": str(msgid.position_id("range", n, at + n)), "player": f"p{n % 2}", "kind": "fire", "position": n % 10}
        for n in range(12)
    ]
    (tmp_path / "in.json").mkdir()
    text = "".join(json.dumps(line) + "\n" for line in (*lines, *lines[:5])) + '{"id": half\n'
    (tmp_path / "in.json" / "1.json").write_text(text)
    out = ("--checkpoint", tmp_path / "checkpoint", "-o", tmp_path / "out", "--key", "player")
    out += ("--table-format", table_format)
    for _ in range(2):
        done = run("process", tmp_path / "in.json", "--handler", "shooting_range:shoot", *out)
        assert done.exit_code == 0, done.output
        table = read_table(spark, str(tmp_path / "out" / "outputs"))
        (malformed,) = table.where("kind = 'malformed'").collect()
        assert (malformed.reason, '{\\"id\\": half' in malformed.body) == ("the line does not fit the format", True)
        assert done.output.splitlines()[2] == " 1 messages malformed, written with kind=malformed"
        rows = table.where("kind = 'new'").collect()
        expected = []
        processor = Processor(MemoryStore(), shooting_range.shoot, expected.extend)
        for line in lines:
            body = {"kind": line["kind"], "position": line["position"]}
            processor.handle(Message(line["id"], line["player"], body))
        assert sorted((row.id, row.body) for row in rows) == sorted((o.id, dumps(o.body).decode()) for o in expected)
        assert done.output.splitlines()[0].startswith(f"{len(expected)} outputs, written to ")
    nothing = run("process", tmp_path / "in.json", "--handler", "shooting_range:nothing", *out)
    assert nothing.exit_code == 1
    assert "Error: no handler 'shooting_range:nothing' (module:function)" in nothing.output
    column = run("process", tmp_path / "in.json", "--handler", "shooting_range:shoot", *out, "--id", "no")
    assert "Error: no column 'no'; there are: " in column.output


REQUIRED = {
    "ids": ["--output", "o"],
    "messages": ["--output", "o"],
    "process": ["--output", "o", "--handler", "m:f", "--checkpoint", "c"],
    "audit": [],
    "clean": ["--policy", __file__],
}


@pytest.mark.parametrize("command", ["ids", "messages", "process"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--max-files-per-trigger", "0"], "'--max-files-per-trigger': 0 is not in the range"),
        (["--max-bytes-per-trigger", "1.5"], "'--max-bytes-per-trigger': '1.5' is not a valid integer range"),
        (["--max-bytes-per-trigger", str(1 << 63)], "'--max-bytes-per-trigger': 9223372036854775808 is not in the"),
        (["--max-bytes-per-trigger", "9", "--max-files-per-trigger", "9"], "cannot be used together"),
    ],
)
def test_limits_of_a_micro_batch_are_checked_before_spark_starts(command, options, says):
    """Each is a number of 1 or more, and Spark accepts one of them."""
    stream = [] if command == "process" else ["--stream"]
    key = {"process": ["--key", "k"], "messages": ["-f", "iggy"]}.get(command, [])
    done = CliRunner().invoke(spark_ext, [command, "in", *REQUIRED[command], *key, *stream, *options])
    assert (done.exit_code, says in done.output) == (2, True), done.output


@pytest.mark.parametrize("command", ["ids", "messages"])
def test_limits_of_a_micro_batch_need_a_stream(command):
    """A batch reads all files."""
    format = ["-f", "iggy"] if command == "messages" else []
    done = CliRunner().invoke(spark_ext, [command, "in", *REQUIRED[command], *format, "--max-files-per-trigger", "1"])
    assert (done.exit_code, "--max-files-per-trigger needs --stream" in done.output) == (2, True), done.output


@pytest.mark.parametrize("command", REQUIRED)
def test_input_that_is_not_utf_8_is_refused(command):
    """The commands end with one line before Spark starts."""
    done = CliRunner().invoke(spark_ext, [command, os.fsdecode(b"M\xe4rz.csv"), *REQUIRED[command]])
    assert done.exit_code == 2
    assert r"a path must be UTF-8, got 'M\udce4rz.csv'" in done.output


PROCESS = ["process", "in", "-o", "o", "--key", "k", "--checkpoint", "c"]
"""The options that ``process`` needs; the handler is missing."""
POSITION = ["--assign", "position", "--source", "s", "--offset", "o", "--at", "t"]
WRONG_OPTIONS = [
    (["ids", "in.csv", "-o", "o", "--assign", "position", "--source", "s"], "needs --source, --offset and --at"),
    (["ids", "in.csv", "-o", "o", "--assign", "assign", "--stream"], "--assign assign numbers the rows of a batch"),
    (["ids", "in.csv", "-o", "o", "--offset", "offset"], "--offset needs --assign"),
    (
        ["ids", "in.csv", "-o", "o", *POSITION, "--timezone", "Mars/Olympus"],
        "--timezone must be a time zone, such as Europe/Berlin or +02:00, got 'Mars/Olympus'",
    ),
    (["ids", "in.csv", "-o", "o", "--interval", "5"], "--interval needs --stream"),
    (["ids", "in.csv", "-o", "o", "--stream", "--interval", "soon"], "a number of seconds or text such as '1 day'"),
    (["ids", "in.csv", "-o", "o", "--stream", "--interval", "2 years"], "a number of seconds or text such as '1 day'"),
    (["ids", "in.csv", "-o", "o", "--stream", "--interval", "400 days"], "interval must be 0 to 31622400 seconds"),
    (["messages", "in", "-o", "o", "-f", "kafak"], "must be one of iggy"),
    (
        ["messages", "in", "-o", "o", "-f", "kafka", "--policy", "enforce"],
        "policy 'enforce' needs a registry of schemas: pass registry",
    ),
    (["messages", "in", "-o", "o", "-f", "kafka", "--registry", "no.json"], "no schema registry no.json"),
    ([*PROCESS, "--handler", "json:no"], "no handler 'json:no' (module:function)"),
    ([*PROCESS, "--handler", "json:dumps", "--retention", "0 days"], "retention must be a number of days above 0"),
    ([*PROCESS, "--handler", "json:dumps", "--buckets", "70000"], "buckets must be at most 65536, got 70000"),
    (["audit", "in.csv", "--without", "lost"], "without must name checks, got 'lost'"),
    (["clean", "table", "--policy", __file__], "as TOML"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG_OPTIONS)
def test_wrong_option_is_told_before_spark_starts(monkeypatch, arguments, words):
    """The last line names the option and the value; nothing is a traceback."""
    monkeypatch.setattr("spark_ext.cli.session", lambda **_: pytest.fail("Spark has started"))
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert words in done.output.strip().splitlines()[-1]
