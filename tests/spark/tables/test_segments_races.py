"""Clean-up of a message table with concurrent writers, other clean-ups, and unrelated files."""

import os
import shutil

import pytest
from helpers.message_tables import EXPIRED, ONLY_DEFAULT, POLICY, SCHEMA, START, left, now, rows, write_table

import spark_ext as ids
from spark_ext.tables._segment_folders import SegmentFolders

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark, tmp_path):
    return write_table(spark, tmp_path / "messages")


def before_the_first_removal(monkeypatch, action):
    """Call a function between the check of the segments and the first deletion."""
    original, done = SegmentFolders.remove, []

    def remove(self, folder, judged):
        if not done:
            done.append(folder)
            action()
        return original(self, folder, judged)

    monkeypatch.setattr(SegmentFolders, "remove", remove)


@pytest.mark.details
@pytest.mark.parametrize("rename", [True, False], ids=["rename", "no-rename"])
def test_clean_of_a_segment_that_a_writer_has_added_to_puts_it_back(spark, table, monkeypatch, rename):
    """Rows that are committed between two deletions stay, with the rows that were checked."""
    import spark_ext.tables._segment_folders as module

    if not rename:
        monkeypatch.setattr(module, "RENAMES", ())
    late = spark.createDataFrame([("orders", 0, 2, 2, START, "available", b"late")], SCHEMA)
    writer = late.write.mode("append").partitionBy("topic", "partition", "segment")
    before_the_first_removal(monkeypatch, lambda: writer.parquet(str(table)))
    found = ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    kept = [segment for segment in found if segment.reason]
    assert [(segment.topic, segment.segment, segment.action) for segment in kept] == [("orders", 2, "kept")]
    assert kept[0].reason == "its files have changed since they were read"
    left_rows = spark.read.parquet(str(table)).where("topic = 'orders' and segment = 2")
    assert sorted(bytes(row.payload) for row in left_rows.collect()) == [b"abc", b"abc", b"late"]
    assert not list(table.rglob(".remov*"))
    assert ("orders", 0) not in left(spark, table)


@pytest.mark.details
def test_clean_puts_files_back_into_a_folder_that_was_made_anew(spark, table):
    """A writer creates the folder again after the rename; then the folder has the files of both."""
    folder = table / "topic=orders" / "partition=0" / "segment=0"
    hidden = folder.parent / f".removing-{'0' * 32}-segment=0"
    old = len(list(folder.glob("*.parquet")))
    folder.rename(hidden)
    folder.mkdir()
    shutil.copy(next(hidden.glob("*.parquet")), folder / "new.parquet")
    ids.clean(str(table), POLICY, now(0), apply=True, spark=spark)
    assert len(list(folder.glob("*.parquet"))) == 1 + old
    assert not hidden.exists()


@pytest.mark.details
def test_clean_killed_between_rename_and_comparison_judges_the_folder_again(spark, table):
    """The folder may have rows that were never checked, so it gets its name back first."""
    folder = table / "topic=orders" / "partition=0" / "segment=0"
    folder.rename(folder.parent / f".removing-{'0' * 32}-segment=0")
    ids.clean(str(table), POLICY, now(0), apply=True, spark=spark)
    assert folder.exists()
    assert left(spark, table) >= {("orders", 0)}


@pytest.mark.details
def test_two_clean_ups_at_once_delete_each_segment_once(spark, table, monkeypatch):
    """The second clean-up reports that another process deleted the segment, and does not fail."""
    others = []
    before_the_first_removal(
        monkeypatch, lambda: others.extend(ids.clean(str(table), POLICY, now(121), apply=True, spark=spark))
    )
    found = ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    assert {(part.topic, part.segment) for part in others if part.action == "removed"} == EXPIRED
    assert [part for part in found if part.action == "removed"] == []
    assert {part.reason for part in found if part.expired} == {"another process has removed it or put it back"}


@pytest.mark.details
def test_clean_of_a_folder_that_cannot_be_deleted_reports_the_others(spark, table, monkeypatch):
    """The report lists the deleted segments, and the reason for the segment that stays."""
    original = SegmentFolders.remove

    def remove(self, folder, judged):
        if "segment=0" in folder and "orders" in folder:
            self._files = Refusing()
        try:
            return original(self, folder, judged)
        finally:
            self.__dict__["_files"] = real

    class Refusing:
        type_name = "local"

        def move(self, path, to):
            raise PermissionError(13, "Permission denied")

    import pyarrow.fs as pafs

    real = pafs.LocalFileSystem()
    monkeypatch.setattr(SegmentFolders, "remove", remove)
    found = ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    assert {(part.topic, part.segment) for part in found if part.action == "removed"} == EXPIRED - {("orders", 0)}
    assert [part.reason for part in found if part.reason] == ["cannot delete it: [Errno 13] Permission denied"]


@pytest.mark.details
def test_clean_of_a_table_with_symbolic_links_raises(spark, table, tmp_path):
    """Symbolic links are rejected: they may lead to another table, or form a circle."""
    outside = tmp_path / "outside"
    (table / "topic=orders" / "partition=0" / "segment=0").rename(outside)
    os.symlink(outside, table / "topic=orders" / "partition=0" / "segment=0")
    with pytest.raises(ValueError, match="segment=0 is a symbolic link"):
        ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    assert list(outside.iterdir())


@pytest.mark.details
def test_clean_of_odd_names_deletes_the_segments_that_were_judged(spark, tmp_path):
    """Paths with characters of patterns, and topics with characters of escapes, are handled correctly."""
    topics = ["a b", "a%20b", "a/b", "it's", 'x"y', "a=b", "[a]*?{b}", "ü\n"]
    made = [row for topic in topics for row in rows(topic, 2)]
    base = tmp_path / "odd [x]*{y}"
    df = spark.createDataFrame(made, SCHEMA).coalesce(1)
    df.write.partitionBy("topic", "partition", "segment").parquet(str(base))
    found = ids.clean(str(base), ONLY_DEFAULT, now(121), apply=True, spark=spark)
    assert {(part.topic, part.segment) for part in found if part.action == "removed"} == {(t, 0) for t in topics}
    assert not list(base.rglob("segment=0"))
    assert len(list(base.rglob("segment=2"))) == len(topics)


@pytest.mark.details
def test_clean_never_leaves_out_a_file_that_cannot_be_read(spark, table):
    """A corrupt file is an error under all settings of the session, because its rows cannot be checked."""
    folder = table / "topic=orders" / "partition=0" / "segment=0"
    (folder / "part-x.parquet").write_bytes(b"not parquet")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Exception, match=r"part-x\.parquet"):
            ids.clean(str(table), POLICY, now(10**6), apply=True, spark=spark)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert folder.exists()
