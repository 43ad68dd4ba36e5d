"""The segments of a folder under any spelling of its path; these tests do not start Spark."""

import pytest

from spark_ext import _filesystem
from spark_ext.formats._iggy_files import LastRead, closed_segments, mark_of, open_part, segment_names, segments

NAME = f"{0:020d}.log"


def made(folder, *numbers):
    folder.mkdir(parents=True)
    for number in numbers:
        (folder / f"{number:020d}.log").write_bytes(b"")
    return folder


def test_segments_of_databricks_have_the_names_that_spark_reads(monkeypatch, tmp_path):
    """The files are read from the mount."""
    monkeypatch.setattr(_filesystem, "_DBFS", tmp_path)
    made(tmp_path / "in", 0)
    (segment,) = segments("dbfs:/in/")
    assert (segment.path, segment.size) == (f"dbfs:/in/{NAME}", 0)
    with open_part(segment.path, 0, 0) as file:
        assert file.read() == b""


def test_segments_have_one_name_however_the_path_is_spelled(tmp_path, monkeypatch):
    """The column ``file`` does not depend on the spelling; links in a folder, also in circles, are not followed."""
    folder = made(tmp_path / "in" / "a", 0, 7)
    (tmp_path / "in" / "circle").symlink_to(tmp_path / "in")
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "in", f"{tmp_path}/in/", f"file://{tmp_path}/in/../in/"):
        found = segments(str(path))
        assert [(one.folder, one.first, one.path) for one in found] == [
            ("a", number, str(folder / f"{number:020d}.log")) for number in (0, 7)
        ]
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert [one.folder for one in segments(str(tmp_path / "link"))] == ["a", "a"]


def test_closed_segments_are_those_that_a_later_one_follows(tmp_path):
    """The last segment of each folder is the one that a server writes."""
    made(tmp_path / "1", 0, 5, 9)
    made(tmp_path / "2", 3)
    assert [(one.folder, one.first) for one in closed_segments(str(tmp_path), {})] == [("1", 0), ("1", 5)]
    closed = closed_segments(str(tmp_path), {})
    read = {"1": LastRead(5, mark_of(closed[1])), "3": LastRead(8, "")}
    assert closed_segments(str(tmp_path), read) == closed
    with pytest.raises(ValueError, match="/2 begin anew at 3, and those up to 3 have been read: "):
        closed_segments(str(tmp_path), {"2": LastRead(3, "")})
    with pytest.raises(ValueError, match="path of a stream must be a folder"):
        closed_segments(str(tmp_path / "2" / f"{3:020d}.log"), {})
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        closed_segments(str(tmp_path / "away"), {})


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("s3://b/streams/1/topics/2/partitions/3/00000000000000000004.log", ("iggy:1/2#3", "1", "2", 3, 4)),
        ("/data/00000000000000000004.log", ("iggy:/data", None, None, None, 4)),
        ("streams/1/topics/2/partitions/x/1.log", ("iggy:streams/1/topics/2/partitions/x", None, None, None, 1)),
        ("streams/1/topics/2/partitions/3/1.index", ("iggy:1/2#3", "1", "2", 3, None)),
        ("streams/1/topics/2/partitions/3/new\nline.log", ("iggy:1/2#3", "1", "2", 3, None)),
        ("a/mystreams/1/topics/2/partitions/3/4.log", ("iggy:1/2#3", "1", "2", 3, 4)),
        ("streams/é%20/topics/2/partitions/123456789/4.log", ("iggy:é%20/2#123456789", "é%20", "2", 123456789, 4)),
        ("a/1.2.log", ("iggy:a", None, None, None, None)),
        (f"a/{'9' * 19}.log", ("iggy:a", None, None, None, None)),
        ("a/١.log", ("iggy:a", None, None, None, None)),
    ],
)
def test_segment_names_of_a_path_are_those_of_its_folders(path, names):
    """Stream, topic, partition and first offset are in the path; a name that is not there is None."""
    assert segment_names(path) == names


@pytest.mark.parametrize("inner", ["topics//partitions/3", "topics/2/partitions/1234567890", "topics/2/partitions/١"])
def test_segment_names_of_folders_that_a_server_does_not_make_are_missing(inner):
    """An empty topic, a number of more than nine digits, and digits of another script are not Iggy's."""
    assert segment_names(f"streams/1/{inner}/4.log") == (f"iggy:streams/1/{inner}", None, None, None, 4)
