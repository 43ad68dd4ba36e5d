"""The job ``messages`` writes files of messages to one table, as a batch or a stream, and prints a summary."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from msgid import iggy
from msgid.danube import MessageID, StreamMessage
from msgid.schemas import SchemaRegistry
from spark_ext.formats.message_formats import message_format_names
from spark_ext.jobs import messages_job as job
from spark_ext.jobs._input import BadInput

pytestmark = pytest.mark.spark


def made(count, start=0):
    return [
        iggy.Message.new(b"p%d" % n, id=n + 1, offset=n, timestamp=n, layout="m45") for n in range(start, start + count)
    ]


def danube(offset, payload=b"1", **fields):
    id = MessageID(9, "/default/events", "b:1", offset)
    return StreamMessage(offset, id, payload, 1_648_047_038_123, "p", **fields)


def segment(folder, messages, ending=b""):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{messages[0].offset:020d}.log"
    path.write_bytes(iggy.encode_log(messages, "m45") + ending)
    return path


def test_messages_job_on_segments_writes_the_message_table(spark, tmp_path):
    """The table has every message of every segment, and the summary counts each kind of malformed message."""
    folder = tmp_path / "in" / "streams" / "1" / "topics" / "orders" / "partitions" / "0"
    segment(folder, made(10))
    segment(folder, [*made(9, 10), replace(iggy.Message.new(b"x", id=1, offset=19, layout="m45"), checksum=5)], b"half")
    found = job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), job.Source("iggy"))
    assert found.states == [("available", 19), ("poisoned", 2)]
    assert found.reasons == [("decoding", 1), ("checksum", 1)]
    assert (found.rows, found.without_id) == (21, 0)
    rows = spark.read.parquet(str(tmp_path / "out" / "messages")).collect()
    assert sorted(row.offset for row in rows if row.state == "available") == list(range(19))
    assert {(row.topic, row.layout) for row in rows if row.state == "available"} == {("orders", "m45")}


@pytest.mark.details
def test_messages_job_on_danube_reads_parquet_and_json(spark, tmp_path):
    """Parquet columns, single files and JSON lines of Danube messages give the same table."""
    messages = [danube(n) for n in range(5)]
    rows = [(message.encode(),) for message in messages]
    spark.createDataFrame(rows, "raw binary").write.parquet(str(tmp_path / "table.parquet"))
    (tmp_path / "files" / "inner").mkdir(parents=True)
    for n, message in enumerate(messages):
        (tmp_path / "files" / "inner" / f"{n}.bin").write_bytes(message.encode())
    (tmp_path / "lines.json").write_text("".join(message.to_json() + "\n" for message in messages))
    expected = sorted(str(message.msg_id.position_id(message.publish_time // 1000)) for message in messages)
    sources = {
        "table.parquet": job.Source("danube", column="raw"),
        "files": job.Source("danube"),
        "lines.json": job.Source("danube-json"),
    }
    for name, source in sources.items():
        found = job.run(spark, str(tmp_path / name), str(tmp_path / f"{name}-out"), source)
        assert found.states == [("available", 5)]
        written = spark.read.parquet(str(tmp_path / f"{name}-out" / "messages"))
        assert sorted(row.id for row in written.collect()) == expected


@pytest.mark.details
def test_messages_job_with_a_registry_checks_payloads(spark, tmp_path):
    """A payload that does not fit its schema is poisoned and counted; a message without a log does not have an ID."""
    registry = SchemaRegistry(tmp_path / "registry.json")
    registry.register("/default/events", '{"type": "integer"}')
    lines = [danube(0, b"1", schema_id=1), danube(0, b"{}", schema_id=1), danube(0)]
    (tmp_path / "lines.json").write_text("".join(message.to_json() + "\n" for message in lines))
    source = job.Source("danube-json", registry=str(tmp_path / "registry.json"), policy="enforce")
    found = job.run(spark, str(tmp_path / "lines.json"), str(tmp_path / "out"), source)
    assert found.states == [("available", 1), ("poisoned", 2)]
    assert (found.reasons, found.without_id) == ([("schema", 2)], 3)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (job.Source("danube-json", registry="/nowhere/registry.json", policy="warn"), "no schema registry /nowhere"),
        (job.Source("danube-json", policy="enforce"), "policy 'enforce' needs a registry"),
    ],
)
def test_messages_job_with_options_that_clash_is_refused(spark, tmp_path, source, says):
    """Options that contradict each other raise one line before any row is written."""
    (tmp_path / "in.txt").write_text("")
    with pytest.raises(BadInput, match=says):
        job.run(spark, str(tmp_path), str(tmp_path / "out"), source)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [None, "backup.log"])
def test_messages_job_without_messages_is_an_error(spark, tmp_path, name):
    """A wrong path, or files of other names, would give an empty table and no error."""
    (tmp_path / "in").mkdir()
    if name is not None:
        (tmp_path / "in" / name).write_text("x")
    with pytest.raises(BadInput, match=r"found no messages in .*in: check the path"):
        job.run(spark, str(tmp_path / "in"), str(tmp_path / "out"), job.Source("iggy"))


@pytest.mark.programs
def test_command_line_of_messages_prints_the_summary(tmp_path):
    """The command prints the numbers of messages, and one line if the input is missing or the output exists.

    Spark's workers use this environment, although PYSPARK_PYTHON is not set and no environment is active.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "VIRTUAL_ENV")}
    environment["PATH"] = os.pathsep.join(
        folder for folder in environment["PATH"].split(os.pathsep) if folder != str(Path(sys.executable).parent)
    )
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, env=environment)
    segment(tmp_path / "in", made(1000), b"x")
    command = [sys.executable, "-m", "spark_ext", "messages", "in", "--format=iggy", "-oout", "--topic", "orders"]
    result = run([*command, "--show", "2"])
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(
        "1,001 messages of in\n1,000 available\n    1 poisoned (1 decoding)\nwritten to out/messages\n"
    )
    again = run(command)
    assert (again.returncode, again.stderr.splitlines()[-1]) == (
        1,
        "Error: out holds results already; --overwrite replaces them",
    )
    command[4] = "nowhere"
    missing = run([*command, "--overwrite"])
    assert missing.returncode == 1
    assert "no file or folder nowhere" in missing.stderr.splitlines()[-1]


ID = "0156F7E71C361B21BC024CCDBE00000007"
RECORD = {"topic": "orders", "key": "k", "value": "5", "partition": 0, "offset": 0, "timestamp": 1795219200000}
PLACE = {"topic": "orders", "brokerName": "a", "queueId": 2, "queueOffset": 0, "storeTimestamp": 0, "body": "5"}
VALID = {
    "iggy": ("00000000000000000000.log", iggy.encode_log(made(1), "m45")),
    "iggy-message": ("message.bin", iggy.encode(made(1)[0], "m45")),
    "iggy-poll": ("poll.bin", iggy.encode_poll(iggy.PollResponse(3, 0, made(1)), "m45")),
    "iggy-json": ("lines.jsonl", iggy.to_json(made(1)[0]).encode()),
    "danube": ("message.bin", danube(0).encode()),
    "danube-json": ("lines.jsonl", danube(0).to_json().encode()),
    "kafka": ("lines.jsonl", json.dumps({**RECORD, "headers": [{"key": "message_id", "value": ID}]}).encode()),
    "rocketmq": ("lines.jsonl", json.dumps({**PLACE, "properties": {"UNIQ_KEY": ID}}).encode()),
}
"""A file with one valid message of each format."""
EACH_FORMAT = """
import sys
from spark_ext.cli import spark_ext

for name in sys.argv[1:]:
    for stream in (sys.stdout, sys.stderr):
        print(f"format {name}:", file=stream, flush=True)
    spark_ext(["messages", name, "--format", name, "-o", f"{name}-out"], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Return the output and the log of the command for each format, in one process with Spark's own settings."""
    folder = tmp_path_factory.mktemp("each")
    for name, (file, content) in VALID.items():
        (folder / name).mkdir()
        (folder / name / file).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", EACH_FORMAT, *VALID], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    streams = (re.split(r"(?m)^format (.+):$", text)[1:] for text in (done.stdout, done.stderr))
    return [dict(zip(parts[::2], parts[1::2], strict=True)) for parts in streams]


def test_each_format_has_a_valid_message():
    assert VALID.keys() == set(message_format_names())


@pytest.mark.programs
@pytest.mark.parametrize("name", VALID)
def test_valid_messages_of_a_format_log_no_error(logs, name):
    """Spark generates and compiles code by default; it logs an ERROR if it cannot, and interprets the plan."""
    printed, log = logs
    assert "1 available\n" in printed[name]
    assert [line for line in log[name].splitlines() if "ERROR" in line or "Exception" in line] == []
