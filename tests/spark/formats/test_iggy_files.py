"""The folder of segments under any spelling of its path; these tests do not start Spark."""

import pytest

from spark_ext import _filesystem
from spark_ext.formats._iggy_files import SegmentFolder, segments


@pytest.mark.parametrize("path", ["s3a://lake/orders", "s3://lake//orders/", "s3n://lake/orders/../orders"])
def test_segment_folder_of_a_url_has_one_name_however_it_is_spelled(monkeypatch, path):
    """The column ``file`` and the offsets of a stream do not depend on the spelling of the path."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    folder = SegmentFolder(path)
    assert folder.file("1/0.log") == "s3://lake/orders/1/0.log"
    assert folder.inner("s3a://lake/orders/1/0.log") == "1/0.log"
    assert folder.inner("s3://lake/orders2/0.log") is None


NAME = f"{0:020d}.log"


def test_segment_folder_on_databricks_names_its_files_as_spark_does(monkeypatch, tmp_path):
    """The files are read from the mount, and have the names that Spark reads."""
    monkeypatch.setattr(_filesystem, "_DBFS", tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / NAME).write_bytes(b"")
    assert segments("dbfs:/in/") == [(f"dbfs:/in/{NAME}", 0)]
    folder = SegmentFolder("dbfs:/in")
    with folder.open(NAME) as segment:
        assert segment.size == 0
    assert folder.inner(f"dbfs:/in/{NAME}") == folder.inner(f"{tmp_path}/in/{NAME}") == NAME
