"""``readStream.format("iggy")`` reads each message once, for any change of files between two micro-batches."""

import json
import os
import pickle
import shutil
import threading
import uuid

import pytest
from helpers.streams import run_to_end
from helpers.versions import module_since

from msgid import iggy
from spark_ext.formats.iggy_source import IggyDataSource

pytestmark = pytest.mark.spark
IggyStreamReader = module_since("spark_ext.formats._iggy_stream", 4, 2).IggyStreamReader
ReadAllAvailable = module_since("pyspark.sql.streaming.datasource", 4, 2).ReadAllAvailable


@pytest.fixture(autouse=True)
def registered(spark):
    spark.dataSource.register(IggyDataSource)


def log(start, count, size=50):
    """Return messages like those of a server: each call makes other IDs and times."""
    return iggy.encode_log(
        [
            iggy.Message.new(b"x" * size, id=uuid.uuid4().int, offset=n, timestamp=1_700_000_000_000_000, layout="h64")
            for n in range(start, start + count)
        ],
        "h64",
    )


def segment(root, first, stream=1, topic=1):
    path = root / "streams" / str(stream) / "topics" / str(topic) / "partitions" / "1" / f"{first:020d}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def follow(spark, path, folder, **options):
    """Read all present segments; return the offsets of good messages, and the reasons of others."""
    run_to_end(spark.readStream.format("iggy").options(**options).load(str(path)), folder)
    rows = spark.read.parquet(str(folder / "out")).collect()
    return sorted(row.offset for row in rows if row.reason is None), [row.reason for row in rows if row.reason]


def batches(spark, folder):
    """Return the numbers of messages of the micro-batches."""
    log = folder / "out" / "_spark_metadata"
    return len([name for name in os.listdir(log) if name.isdigit()])


@pytest.mark.details
def test_stream_of_a_purged_topic_reads_the_segment_begun_anew(spark, tmp_path):
    """The new segment has the name of the old one, and is longer."""
    root = tmp_path / "in"
    segment(root, 0).write_bytes(log(0, 5))
    assert follow(spark, root, tmp_path) == ([0, 1, 2, 3, 4], [])
    segment(root, 0).write_bytes(log(10, 8))
    assert follow(spark, root, tmp_path) == ([0, 1, 2, 3, 4, *range(10, 18)], [])


@pytest.mark.variants
def test_stream_whose_path_is_spelled_otherwise_reads_nothing_again(spark, tmp_path, monkeypatch):
    """A URL, a trailing slash, a relative path and a link name the same folder, also in the column ``file``."""
    root = tmp_path / "in"
    segment(root, 0).write_bytes(log(0, 3))
    (tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(tmp_path)
    for path in (root, f"file://{root}/../in/", tmp_path / "link"):
        assert follow(spark, path, tmp_path) == ([0, 1, 2], [])
    with segment(root, 0).open("ab") as file:
        file.write(log(3, 2))
    assert follow(spark, f"file://{root}", tmp_path) == ([0, 1, 2, 3, 4], [])
    files = {row.file for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    assert files == {str(segment(root, 0))}


@pytest.mark.details
def test_stream_with_limits_reads_a_backlog_in_many_batches(spark, tmp_path):
    """``maxBytesPerTrigger`` and ``maxFilesPerTrigger`` bound a batch of ``availableNow``; all of it is read."""
    root = tmp_path / "in"
    for first in (0, 100, 200):
        segment(root, first).write_bytes(log(first, 20))
    expected = [first + n for first in (0, 100, 200) for n in range(20)]
    assert follow(spark, root, tmp_path, maxBytesPerTrigger=1500) == (expected, [])
    assert batches(spark, tmp_path) == 5
    other = tmp_path / "other"
    assert follow(spark, root, other, maxFilesPerTrigger=1) == (expected, [])
    assert batches(spark, other) == 3


def test_stream_reports_segments_deleted_before_they_were_read(spark, tmp_path):
    """A planned segment that is missing becomes one row with its range of bytes, and the query continues."""
    root = tmp_path / "in"
    for first in (0, 100, 200):
        segment(root, first).write_bytes(log(first, 20))
    size = segment(root, 100).stat().st_size
    reader = IggyStreamReader({"path": str(root)})
    limit = reader.getDefaultReadLimit()
    start = reader.initialOffset()
    end = reader.latestOffset(start, limit)
    segment(root, 100).unlink()
    rows = [row for piece in reader.partitions(start, end) for found in reader.read(piece) for row in found.to_pylist()]
    (lost,) = [row for row in rows if row["reason"]]
    assert sorted(row["offset"] for row in rows if not row["reason"]) == [*range(20), *range(200, 220)]
    reason = f"lost: bytes 0 to {size} of the segment, which was deleted before they were read"
    assert (lost["file"], lost["state"], lost["reason"]) == (str(segment(root, 100)), "poisoned", reason)
    assert reader.partitions(end, reader.latestOffset(end, limit)) == []


def test_stream_reports_segments_that_were_made_and_deleted_between_two_batches(spark, tmp_path):
    """One row has the range of offsets; a replay of the batch gives it again, and the next batch does not."""
    root = tmp_path / "in"
    segment(root, 0).write_bytes(log(0, 20))
    reader = IggyStreamReader({"path": str(root), "columns": "file,position,offset,state,reason,segment"})
    limit = reader.getDefaultReadLimit()
    start = reader.latestOffset(reader.initialOffset(), limit)
    segment(root, 0).unlink()
    segment(root, 100).write_bytes(log(100, 5))
    end = reader.latestOffset(start, limit)
    for _ in range(2):
        pieces = [pickle.loads(pickle.dumps(piece)) for piece in reader.partitions(start, end)]
        rows = [row for piece in pieces for found in reader.read(piece) for row in found.to_pylist()]
        (lost,) = [row for row in rows if row["reason"]]
        assert sorted(row["offset"] for row in rows if not row["reason"]) == [*range(100, 105)]
        assert lost["reason"].startswith("lost: offsets 20 to 99 before the segment, which no segment has")
        assert (lost["state"], lost["segment"], lost["position"]) == ("poisoned", 100, None)
    assert reader.latestOffset(end, limit) == end


@pytest.mark.details
def test_query_reports_segments_that_no_batch_has_seen(spark, tmp_path):
    """A query that starts again from its checkpoint, with other limits, reports the jump once."""
    root = tmp_path / "in"
    segment(root, 0).write_bytes(log(0, 5))
    assert follow(spark, root, tmp_path) == ([0, 1, 2, 3, 4], [])
    for first in (20, 25):
        segment(root, first).write_bytes(log(first, 5))
    good, reasons = follow(spark, root, tmp_path, maxFilesPerTrigger=1)
    assert (good, len(reasons)) == ([*range(5), *range(20, 30)], 1)
    assert reasons[0].startswith("lost: offsets 5 to 19 ")
    assert follow(spark, f"file://{root}", tmp_path, maxBytesPerTrigger=1) == (good, reasons)


@pytest.mark.details
def test_stream_replays_a_batch_whose_segment_was_deleted(spark, tmp_path):
    """A micro-batch that was planned and not committed is planned again from its offsets, and does not fail."""
    root = tmp_path / "in"
    segment(root, 0).write_bytes(log(0, 5))
    segment(root, 100).write_bytes(log(100, 5))
    assert follow(spark, root, tmp_path)[0] == [*range(5), *range(100, 105)]
    for name in ("commits/0", "commits/.0.crc"):
        (tmp_path / "checkpoint" / name).unlink()
    shutil.rmtree(tmp_path / "out")
    segment(root, 0).unlink()
    good, reasons = follow(spark, root, tmp_path)
    assert good == [*range(100, 105)]
    assert [reason.partition(":")[0] for reason in reasons] == ["lost"]


@pytest.mark.variants
def test_stream_of_two_streams_with_equal_topics_reads_both(spark, tmp_path):
    """Each of two streams has separate segments and progress."""
    root = tmp_path / "in"
    for stream in (1, 2):
        segment(root, 0, stream).write_bytes(log(stream * 10, 3))
    assert follow(spark, root, tmp_path) == ([10, 11, 12, 20, 21, 22], [])
    with segment(root, 0, 2).open("ab") as file:
        file.write(log(23, 2))
    assert follow(spark, root, tmp_path) == ([10, 11, 12, 20, 21, 22, 23, 24], [])


@pytest.mark.variants
def test_stream_with_links_in_circles_reads_each_message_once(spark, tmp_path):
    """Messages are read once with a link to a parent folder, and with two names of one folder."""
    root = tmp_path / "in"
    segment(root, 0).write_bytes(log(0, 3))
    (root / "streams" / "again").symlink_to(root)
    (root / "also").symlink_to(root / "streams" / "1")
    assert follow(spark, root, tmp_path) == ([0, 1, 2], [])
    assert spark.read.format("iggy").load(str(root)).count() == 3


def test_stream_of_a_former_checkpoint_goes_on(spark, tmp_path):
    """Offsets in the former format, one position per full path, can be read."""
    root = tmp_path / "in"
    raw = log(0, 10)
    segment(root, 0).write_bytes(raw)
    reader = IggyStreamReader({"path": f"{root}/"})
    start = {str(segment(root, 0)): len(raw) // 2}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    rows = [row for piece in reader.partitions(start, end) for found in reader.read(piece) for row in found.to_pylist()]
    assert sorted(row["offset"] for row in rows) == [5, 6, 7, 8, 9]
    assert json.loads(json.dumps(end))["version"] == 4
    with pytest.raises(ValueError, match="which is not in the path that is read"):
        reader.latestOffset({"/elsewhere/0.log": 1}, reader.getDefaultReadLimit())


@pytest.mark.details
def test_stream_waits_for_a_folder_that_is_away(tmp_path):
    """The look and the tasks wait, so that nothing is lost; after a stated time the query ends with one line."""
    path = tmp_path / "streams"
    first = segment(path, 0)
    first.write_bytes(log(0, 3))
    reader = IggyStreamReader({"path": str(path), "waitSeconds": "20"})
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    planned = reader.partitions(reader.initialOffset(), start)
    for work in (lambda: reader.latestOffset(start, ReadAllAvailable()), lambda: list(reader.read(planned[0]))):
        path.rename(tmp_path / "away")
        back = threading.Timer(0.3, (tmp_path / "away").rename, [path])
        back.start()
        found = work()
        back.join()
        if found != start:
            assert [row["offset"] for batch in found for row in batch.to_pylist()] == [0, 1, 2]
    path.rename(tmp_path / "away")
    hasty = IggyStreamReader({"path": str(path), "waitSeconds": "1"})
    with pytest.raises(OSError, match=r"no file or folder .*streams \(looked for 1 seconds\)"):
        list(hasty.read(planned[0]))
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        hasty.latestOffset(hasty.initialOffset(), ReadAllAvailable())


def test_partitions_of_a_large_segment_are_planned_without_reading_it(spark, tmp_path):
    """The driver plans parts by bytes: a file of holes that no reader could decode is planned at once."""
    path = tmp_path / f"{0:020d}.log"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    pieces = IggyDataSource({"path": str(path)}).reader(None).partitions()
    assert len(pieces) == 80
    assert max(piece.part.stop - piece.part.start for piece in pieces) <= 128 << 20


@pytest.mark.parametrize("option", ["maxBytesPerTrigger", "maxFilesPerTrigger"])
def test_stream_with_a_bad_limit_raises(option):
    """The error names the option and the value."""
    with pytest.raises(ValueError, match=f"{option} must be a number of .* above 0, got '0'"):
        IggyStreamReader({"path": "x", option: "0"})
