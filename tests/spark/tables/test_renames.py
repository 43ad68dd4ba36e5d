"""Drivers that rename the folder of one batch to its place, on a disk and on HDFS, without a session of Spark."""

import os
import shutil
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from spark_ext import TableConflict
from spark_ext.tables import parquet


class Store:
    """A store of files as one driver sees it; ``happens`` is called before or after the operation number ``at``."""

    def __init__(self, kind, at=0, is_after=False, happens=None):
        self.kind, self.left, self.is_after, self.happens = kind, at, is_after, happens

    def operation(self, run):
        self.left -= 1
        if self.left == 0 and not self.is_after:
            self.happens()
        result = run()
        if self.left == 0 and self.is_after:
            self.happens()
        return result

    def get_file_info(self, path):
        return self.operation(lambda: pafs.LocalFileSystem().get_file_info(path))

    def move(self, path, to):
        def moved():
            inside = self.kind == "hdfs" and os.path.isdir(to)  # HDFS moves a folder into an existing one
            pafs.LocalFileSystem().move(path, f"{to}/{os.path.basename(path)}" if inside else to)

        self.operation(moved)

    def delete_dir(self, path):
        self.operation(lambda: pafs.LocalFileSystem().delete_dir(path))


def hidden_folder(base, driver):
    """Create the complete folder of a driver, which is not renamed yet."""
    folder = base / ".writing" / f".batch=0-{driver}"
    folder.mkdir(parents=True)
    for name in (f"part-{driver}", "_SUCCESS"):
        (folder / name).touch()
    return str(folder)


def fail():
    raise OSError("no answer")


@pytest.mark.parametrize("kind", ["local", "hdfs"])
@pytest.mark.parametrize("event", ["another driver is first", "the answer is lost"])
@pytest.mark.parametrize("is_after", [False, True])
def test_a_batch_of_two_drivers_is_whole_and_of_one_of_them_at_any_step(tmp_path, kind, event, is_after):
    """Another driver at any step, or an error after which the rename is tried again: one driver's rows are seen.

    Readers skip the folder of the other driver, whose name begins with a dot.
    """
    for at in range(1, 20):
        base, won = tmp_path / str(at), []
        place, mine, other = str(base / "batch=0"), hidden_folder(base, "mine"), hidden_folder(base, "other")
        overtaken = event == "another driver is first"

        def overtake(place=place, other=other, won=won):
            won.append(parquet._rename(Store(kind), other, place))

        store = Store(kind, at, is_after, overtake if overtaken else fail)
        won.append(parquet._rename(store, mine, place))
        seen = {path.name for path in Path(place).iterdir() if not path.name.startswith(".")}
        assert seen in ({"part-mine", "_SUCCESS"}, {"part-other", "_SUCCESS"})
        if overtaken and store.left <= 0:
            assert sorted(won) == [False, True]
            assert won[-1] == ("part-mine" in seen)
        if store.left > 0:
            break
    assert at > 2


@pytest.mark.parametrize("kind", ["local", "hdfs"])
def test_an_incomplete_folder_of_a_batch_is_never_replaced(tmp_path, kind):
    """Also not if it appears after the driver has looked: its files stay, and no other file is visible in it."""
    for at in (0, 1, 2):
        base = tmp_path / str(at)
        place, mine = base / "batch=0", hidden_folder(base, "mine")

        def appears(place=place):
            place.mkdir(exist_ok=True)
            (place / "part-old").touch()

        if at == 0:
            appears()
        with pytest.raises(TableConflict, match="batch=0: the folder exists and is incomplete"):
            parquet._rename(Store(kind, at, is_after=at == 1, happens=appears), mine, str(place))
        assert {path.name for path in place.iterdir() if not path.name.startswith(".")} == {"part-old"}
        shutil.rmtree(place)
