"""The job ``process``: its table, its summary, its progress on a terminal, and the checkpoints that it rejects."""

import functools
import gzip
import json
import time

import pytest

from spark_ext.jobs import _progress, process_job
from spark_ext.jobs._files import BadInput
from spark_ext.jobs._formats import BatchLimit

pytestmark = pytest.mark.spark


def add(state, message, context):
    """Publish the sum; raise on a negative amount, and exit on 9,999."""
    if message.body["amount"] == 9_999:
        raise SystemExit(3)
    if message.body["amount"] < 0:
        raise ValueError("negative")
    after = (state or 0) + message.body["amount"]
    context.publish(after)
    return after


def run(spark, folder, lines, **options):
    """Run the job on one more file of lines; return its summary."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    folder.mkdir(exist_ok=True)
    (folder / "in").mkdir(exist_ok=True)
    number = len(list((folder / "in").iterdir()))
    (folder / "in" / f"{number}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    places = {"checkpoint": str(folder / "checkpoint"), "output": str(folder / "out")}
    return process_job.run(spark, str(folder / "in"), add, key="account", format="json", **places, **options)


@pytest.mark.details
def test_process_job_counts_and_shows_what_was_set_aside(spark, rocksdb, tmp_path, monkeypatch):
    """The summary and the line on the terminal count failed and malformed messages; duplicates are written once."""
    shown = []
    monkeypatch.setattr(process_job, "Progress", functools.partial(_progress.Progress, shown=True))
    monkeypatch.setattr(_progress, "describe", lambda *counts: shown.append(counts) or "")
    good = {"id": "a-1", "account": "a", "amount": 2, "at": "2026-01-01 00:00:00"}
    lines = [good, good, {**good, "id": "a-2", "amount": -1}, {**good, "id": "a-3", "at": "tomorrow"}]
    lines.append({**good, "id": "a-4", "amount": 9_999})
    summary = run(spark, tmp_path, lines, timestamp="at", attempts=2)
    assert summary[:5] == (1, 0, 1, 2, 0)
    deadline = time.monotonic() + 30
    while not shown and time.monotonic() < deadline:
        time.sleep(0.05)
    messages, rate, state_bytes, letters = shown[-1]
    assert (messages, letters) == (5, {"too late": 0, "failed": 2, "changed": 0, "malformed": 1})
    assert rate > 0
    assert state_bytes > 0
    with pytest.raises(BadInput, match="`buckets` must be 32, the number in the checkpoint of the query, got 4"):
        run(spark, tmp_path, [{**good, "id": "a-5"}], timestamp="at", buckets=4)


@pytest.mark.variants
def test_process_job_of_a_damaged_file_goes_on_and_takes_the_repaired_one(spark, rocksdb, tmp_path):
    """Messages before the damage and in later files are handled; in the repaired file they are duplicates."""
    (tmp_path / "in").mkdir()
    lines = [{"id": f"a-{number}", "account": "a", "amount": number} for number in range(2000)]
    whole = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    (tmp_path / "in" / "0.json.gz").write_bytes(whole[: len(whole) // 2])
    summary = run(spark, tmp_path, [{"id": "b-1", "account": "b", "amount": 1}])
    ((path, reason),) = summary.unreadable
    assert (path.rpartition("/")[2], reason) == ("0.json.gz", "EOFException: Unexpected end of input stream")
    assert 1 <= summary.outputs < 2000
    (tmp_path / "in" / "again.json.gz").write_bytes(whole)
    summary = run(spark, tmp_path, [])
    assert (summary.outputs, summary.unreadable) == (2001, [])


@pytest.mark.details
def test_process_job_of_a_history_is_many_micro_batches_of_the_limit(spark, rocksdb, tmp_path):
    """The outputs are those of one micro-batch; a file above the limit is a micro-batch of its own."""
    (tmp_path / "in").mkdir()
    for number in range(3):
        line = json.dumps({"id": f"b-{number}", "account": "b", "amount": number + 1})
        (tmp_path / "in" / f"{number}.json").write_text(line)
    summary = run(spark, tmp_path, [{"id": "a-1", "account": "a", "amount": 2}], limit=BatchLimit(max_bytes=1))
    assert summary.outputs == 4
    assert {path.name for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")} == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("retention", 0, "retention must be a number of days above 0 and below a billion, got 0"),
        ("retention", float("nan"), "got nan"),
        ("retention", 1e9, "got 1000000000.0"),
        ("buckets", 70_000, "buckets must be at most 65536, got 70000"),
        ("interval", float("nan"), "interval must be 0 to 31622400 seconds, got nan"),
        ("interval", 1e20, "interval must be 0 to 31622400 seconds, got 1e[+]20"),
        ("limit", BatchLimit(max_files=0), "max_files_per_trigger must be an integer from 1 to 2147483647, got 0"),
        ("limit", BatchLimit(max_bytes=True), "max_bytes_per_trigger must be .*, got True"),
        ("limit", BatchLimit(2, 3), "cannot be used together, got 2 and 3: pass one of them"),
    ],
)
def test_process_job_with_an_argument_out_of_range_is_refused(spark, rocksdb, tmp_path, option, value, error):
    """The error names the argument and its limits, before any message is handled."""
    with pytest.raises(BadInput, match=error):
        run(spark, tmp_path, [{"id": "a-1", "account": "a", "amount": 2}], **{option: value})
    assert not (tmp_path / "out").exists()
