"""``readStream.format("iggy")`` reads each closed segment once."""

import json
import shutil

import pytest
from helpers.streams import run_to_end
from helpers.versions import module_since

from msgid import iggy
from spark_ext.formats.iggy_source import IggyDataSource

pytestmark = pytest.mark.spark
IggyStreamReader = module_since("spark_ext.formats._iggy_stream", 4, 2).IggyStreamReader


@pytest.fixture(autouse=True)
def registered(spark):
    spark.dataSource.register(IggyDataSource)


def segment(root, first, count=3, stream=1, time=0):
    """Write a segment, with half a message at its end."""
    path = root / "streams" / str(stream) / "topics" / "1" / "partitions" / "1" / f"{first:020d}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    made = [
        iggy.Message.new(b"x" * 50, id=n + 1, offset=n, layout="h64", timestamp=time)
        for n in range(first, first + count)
    ]
    path.write_bytes(iggy.encode_log(made, "h64") + b"half")
    return path


def follow(spark, path, folder, **options):
    """Read all closed segments; return the offsets of good messages, and the reasons of others."""
    run_to_end(spark.readStream.format("iggy").options(**options).load(str(path)), folder)
    rows = spark.read.parquet(str(folder / "out")).collect()
    return sorted(row.offset for row in rows if row.reason is None), [row.reason for row in rows if row.reason]


def test_stream_reads_each_closed_segment_once(spark, tmp_path):
    """The last segment of a folder waits for a later one; another spelling of the path reads nothing again."""
    root = tmp_path / "in"
    for stream in (1, 2):
        segment(root, 0, stream=stream)
    segment(root, 10)
    assert follow(spark, root, tmp_path)[0] == [0, 1, 2]
    segment(root, 10, count=5)
    segment(root, 20)
    segment(root, 7, stream=2)
    good, reasons = follow(spark, f"file://{root}/../in/", tmp_path)
    assert good == sorted([0, 1, 2, 0, 1, 2, *range(10, 15)])
    assert [reason.split(" of ")[0] for reason in reasons] == ["invalid message: half a message"] * 3


def test_offsets_of_a_stream_are_a_number_for_each_folder(tmp_path):
    """A replay has the same parts; each folder has its turn; offsets are JSON."""
    root = tmp_path / "in"
    for first in (0, 100, 200, 300):
        segment(root, first)
    segment(root, 5, stream=2)
    segment(root, 8, stream=2)
    reader = IggyStreamReader({"path": str(root), "maxFilesPerTrigger": "2"})
    limit, one, two = reader.getDefaultReadLimit(), *(f"streams/{n}/topics/1/partitions/1" for n in (1, 2))
    first = json.loads(json.dumps(reader.latestOffset(reader.initialOffset(), limit)))
    assert first["version"] == 6
    assert {folder: number for folder, (number, _) in first["segments"].items()} == {one: 0, two: 5}
    second = reader.latestOffset(first, limit)
    assert {folder: number for folder, (number, _) in second["segments"].items()} == {one: 200, two: 5}
    assert reader.latestOffset(second, limit) == second
    for _ in range(2):
        parts = reader.partitions(first, second)
        assert [part.path[-7:] for part in parts] == ["100.log", "200.log"]
    reader.prepareForTriggerAvailableNow()
    segment(root, 400)
    assert reader.latestOffset(second, limit) == second


@pytest.mark.details
def test_segment_that_is_deleted_before_it_is_read_ends_the_query_once(spark, tmp_path):
    """The error names the file. Started again, the query goes on without it; the audit finds its offsets."""
    root = tmp_path / "in"
    for first in (0, 100, 200):
        segment(root, first)
    reader = IggyStreamReader({"path": str(root)})
    start = reader.initialOffset()
    parts = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    shutil.move(segment(root, 0), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"00000\.log"):
        list(reader.read(parts[0]))
    assert follow(spark, root, tmp_path)[0] == [100, 101, 102]


def test_checkpoint_of_another_version_is_refused(tmp_path):
    """Offsets of 0.2 held the position in each file: nothing is read again, and the checkpoint stays as it is."""
    file = segment(tmp_path, 0)
    reader = IggyStreamReader({"path": str(tmp_path)})
    for old in (
        {"version": 5, "segments": {"x": 0}},
        {"version": 4, "segments": {"x/0.log": [9, 10, 1]}},
        {str(file): 9},
    ):
        with pytest.raises(ValueError, match=r"another version wrote its checkpoint\. Start with a new checkpoint"):
            reader.latestOffset(old, reader.getDefaultReadLimit())
        with pytest.raises(ValueError, match="another version wrote its checkpoint"):
            reader.partitions(old, reader.initialOffset())


@pytest.mark.parametrize(
    "firsts",
    [
        [0],  # fewer messages than before
        [0, 4, 8, 9],  # more, with other segments
        [0, 3, 6, 9],  # more, with segments of the same names
    ],
)
def test_topic_that_was_purged_ends_the_stream(tmp_path, firsts):
    """Its segments begin anew, so a stream that goes on would skip the first ones; nothing is planned of them."""
    root = tmp_path / "in"
    for first in (0, 3, 6):
        segment(root, first)
    reader = IggyStreamReader({"path": str(root)})
    start, limit = reader.initialOffset(), reader.getDefaultReadLimit()
    read = reader.latestOffset(start, limit)
    assert reader.latestOffset(read, limit) == read
    shutil.rmtree(root)
    for first in firsts:
        segment(root, first, time=7)
    with pytest.raises(ValueError, match=r"begin anew at 0, and those up to 3 have been read: the topic was purged"):
        reader.latestOffset(read, limit)
    with pytest.raises(ValueError, match="the topic was purged"):
        reader.partitions(start, read)


def test_retention_of_the_last_segment_that_was_read_does_not_end_the_stream(tmp_path):
    """The server deletes the earliest segments first."""
    root = tmp_path / "in"
    files = [segment(root, first) for first in (0, 3, 6, 9)]
    reader = IggyStreamReader({"path": str(root), "maxFilesPerTrigger": "2"})
    limit = reader.getDefaultReadLimit()
    read = reader.latestOffset(reader.initialOffset(), limit)
    for file in files[:2]:
        file.unlink()
    end = reader.latestOffset(read, limit)
    assert [part.path for part in reader.partitions(read, end)] == [str(files[2])]


@pytest.mark.parametrize("name", ["maxBytesPerTrigger", "waitSeconds", "splitbyte"])
def test_unknown_option_is_refused(spark, tmp_path, name):
    """Spark passes any name on, so a reader of an old page would believe in a limit."""
    segment(tmp_path, 0)
    with pytest.raises(ValueError, match=f"an option of format iggy must be one of path, layout, .*, got '{name}'"):
        IggyStreamReader({"path": str(tmp_path), name: "1"})
    known = {"SPLITBYTES": "100", "Columns": "offset"}
    assert spark.read.format("iggy").options(**known).load(str(tmp_path)).count() == 4
    with pytest.raises(Exception, match="an option of format iggy must be one of"):
        spark.read.format("iggy").option(name, "1").load(str(tmp_path)).count()


def test_stream_with_a_bad_limit_raises():
    """The error names the option and the value."""
    with pytest.raises(ValueError, match=r"maxFilesPerTrigger must be a number of .* above 0, got '0'"):
        IggyStreamReader({"path": "x", "maxFilesPerTrigger": "0"})
