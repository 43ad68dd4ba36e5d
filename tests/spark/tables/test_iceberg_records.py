"""The records of `write_once` in an Iceberg table, without Spark: names, histories, and drivers that are disturbed."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
from helpers.lake import Lake, table_of
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ext import TableConflict
from spark_ext.tables import iceberg
from spark_ext.tables.iceberg import Snapshot
from spark_ext.tables.writers import Writer

WRITER = Writer("a", query=None, chosen=True)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("lake.db.t", ["lake", "db", "t"]),
        ("db.t", ["db", "t"]),
        ("lake.a.b.c", ["lake", "a", "b", "c"]),
        ("lake.branch_x.my_branch_", ["lake", "branch_x", "my_branch_"]),
        ("`la-ke`.`d.b`.ä1", ["la-ke", "d.b", "ä1"]),
    ],
)
def test_name_of_an_iceberg_table_has_parts(name, parts):
    """The parts are those of Spark."""
    assert iceberg.parts_of(name) == parts


@pytest.mark.parametrize(
    "name",
    [
        "", "t", "/data/t", "lake.db.t/x", "s3://lake/db", "lake..t", ".t", "lake.db.", "lake.my-db.t", "lake.db.t\n",
        "lake.`d`b`.t", "lake.db.`t'`", 'lake.db.`"`', "lake.db.`a\\`", "lake.db.``", " lake.db.t", "lake.db t", None,
        "lake.db.t.branch_x", "lake.db.`TAG_x`", "lake.db.t.snapshot_id_7", "lake.db.t.at_timestamp_7",
        "lake.db.changelog",
    ],
)  # fmt: skip
def test_text_that_does_not_name_an_iceberg_table_is_refused(name):
    """Paths, quotes, and versions of a table are refused before Spark sees them."""
    with pytest.raises(ValueError, match="an Iceberg table must have a name such as"):
        iceberg.parts_of(name)


def test_writers_with_similar_names_do_not_share_records():
    """Dots and prefixes of names are not patterns."""
    keys = [f"msgid.batch/{rest}" for rest in ("a.b/3/", "a/5/q-1", "axb/9/", "a/4/", "a/x/", "a/b/7/")]
    assert iceberg.keys_of("batch", keys, Writer("a.b", None, True)) == {keys[0]: (3, "")}
    assert iceberg.keys_of("batch", keys, WRITER) == {keys[1]: (5, "q-1"), keys[3]: (4, "")}
    key = iceberg.key_of("batch", WRITER, 7, "q-2")
    assert iceberg.keys_of("batch", [key], WRITER) == {key: (7, "q-2")}


LONG = {
    1: Snapshot(None, "a/0/", None),
    2: Snapshot(1, None, None),
    4: Snapshot(2, "a/1/q", 3),
    5: Snapshot(4, None, None),
}


@pytest.mark.parametrize(
    ("snapshots", "head", "id", "bases", "found"),
    [
        (LONG, 5, "a/1/", ["2"], (True, 3, "q")),  # published from the staged snapshot 3
        (LONG, 5, "a/0/", ["none"], (True, 1, "")),  # the staged snapshot became the table's
        (LONG, 5, "a/2/", ["5"], (True, None, "")),
        (LONG, None, "a/2/", ["none"], (True, None, "")),
        (LONG, 2, "a/1/", ["2"], (True, None, "")),  # rolled back
        ({5: LONG[5]}, 5, "a/1/", ["2"], (False, None, "")),  # the publishing snapshot has expired
        ({5: LONG[5]}, 5, "a/2/", ["5"], (True, None, "")),
        ({5: LONG[5]}, 5, "a/2/", ["4"], (True, None, "")),  # the base has expired, and the history goes back to it
        ({5: LONG[5]}, 5, "a/2/", ["5", "2"], (False, None, "")),  # one of two attempts may have published it
        ({5: LONG[5]}, 5, "a/2/", ["none"], (False, None, "")),
    ],
)
def test_publication_of_a_batch_is_known_as_far_as_the_history_goes(snapshots, head, id, bases, found):
    """A history is long enough if it goes back to the snapshot before the batch was staged."""
    assert iceberg.publication(snapshots, head, id, bases) == found


class Killed(BaseException):
    """The process ends."""


@pytest.fixture(autouse=True)
def no_delays(monkeypatch):
    monkeypatch.setattr(iceberg, "_DELAYS", (0, 0))


FAULTS = ["none"] * 8 + ["kill", "expire", "commit", "driver", "fail", "lost answer", "refused"]


@settings(max_examples=60)
@given(st.data())
def test_drivers_disturbed_at_any_step_write_each_batch_once(data):
    """They are killed, overtaken and paused, snapshots expire, and answers are lost: no batch is in the table twice.

    A batch is unknown only if the snapshots have expired after an attempt failed, or while another one runs.
    """
    lake, won, seen = Lake(), [], set()
    depth = 0

    def disturb(table, step):
        if depth > 2:
            return
        fault = data.draw(st.sampled_from(FAULTS), label=step)
        is_done = step.endswith("done")
        if fault == "kill":
            seen.add("unfinished")
            raise Killed
        if fault == "expire":
            seen.add("expired")
            lake.expire()
        elif fault == "commit":
            lake.add("main", None)
        elif fault == "driver":
            seen.add("unfinished")
            drive(number)
        elif fault == "lost answer" and is_done:
            seen.add("unfinished")
            raise OSError("the answer is lost")
        elif fault == "fail" and not is_done:
            seen.add("unfinished")
            raise OSError("the catalog is away")
        elif fault == "refused" and not is_done:
            raise OSError("org.apache.iceberg.exceptions.CommitFailedException")

    def drive(number):
        nonlocal depth
        depth += 1
        try:
            df = SimpleNamespace(sparkSession=None)
            if iceberg.FORMAT.write_batch(df, number, "lake.db.t", WRITER, (), None):
                won.append(number)
            assert lake.rows.count(f"msgid/a/{number}/") == 1
            return True
        except (Killed, OSError, ValueError) as error:
            if isinstance(error, TableConflict):
                assert seen == {"unfinished", "expired"}
                return True
            seen.add("unfinished")
            return False
        finally:
            depth -= 1
            assert len(set(lake.rows)) == len(lake.rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg, "_Table", table_of(lake, disturb))
        for number in range(3):
            for _ in range(3):
                if drive(number):
                    break
            depth = 3  # without faults
            drive(number)
            depth = 0
    assert len(set(won)) == len(won)


def test_records_of_many_batches_are_few(monkeypatch):
    """Old records and branches are removed, and the last batch is known after the snapshots have expired."""
    lake = Lake()
    monkeypatch.setattr(iceberg, "_Table", table_of(lake, lambda table, step: None))
    df = SimpleNamespace(sparkSession=None)
    for number in range(100):
        assert iceberg.FORMAT.write_batch(df, number, "lake.db.t", WRITER, (), None)
        assert len(lake.properties) <= iceberg._KEPT + 4
        lake.expire()
    assert list(lake.refs) == ["main"]
    for number in (0, 50, 98):
        with pytest.raises(TableConflict, match=f"cannot write batch {number} of 'a' to lake.db.t: its batch 99 is in"):
            iceberg.FORMAT.write_batch(df, number, "lake.db.t", WRITER, (), None)
    assert not iceberg.FORMAT.write_batch(df, 99, "lake.db.t", WRITER, (), None)
    assert len(lake.rows) == 100


@pytest.mark.parametrize("stops_at", ["publish: done", None])
def test_batch_of_another_query_does_not_count_as_written(monkeypatch, stops_at):
    """Whether it is recorded, or was published by a process that ended: the rows of this query would be lost."""
    lake, df = Lake(), SimpleNamespace(sparkSession=None)

    def disturb(table, step):
        if step == stops_at:
            raise Killed

    def drive(query, number, disturb=lambda table, step: None):
        monkeypatch.setattr(iceberg, "_Table", table_of(lake, disturb))
        writer = Writer("a", query, chosen=True)
        return iceberg.FORMAT.write_batch(df, number, "lake.db.t", writer, (), None)

    with suppress(Killed):
        drive("q1", 0, disturb)
    with pytest.raises(TableConflict, match="its writer 'a' is another query than q2"):
        drive("q2", 0)
    assert [drive("q1", 0), drive(None, 0), drive("q2", 1)] == [False, False, True]
    for number in (0, 1):
        with pytest.raises(TableConflict):
            drive("q1", number)
    assert lake.rows == ["msgid/a/0/q1", "msgid/a/1/q2"]


@pytest.mark.parametrize("stops_at", ["publish: done", None])
def test_batch_that_has_read_other_offsets_is_refused(monkeypatch, stops_at):
    """Whether the first one is recorded, or was published by a process that ended. A replay is not refused."""
    lake, df = Lake(), SimpleNamespace(sparkSession=None)

    def disturb(table, step):
        if step == stops_at:
            raise Killed

    def drive(read, number, disturb=lambda table, step: None):
        monkeypatch.setattr(iceberg, "_Table", table_of(lake, disturb))
        return iceberg.FORMAT.write_batch(df, number, "lake.db.t", Writer("a", "q", True, read), (), None)

    with suppress(Killed):
        drive("r1", 0, disturb)
    with pytest.raises(TableConflict, match="the table has a batch of this number that has read other offsets"):
        drive("r2", 0)
    assert [drive("r1", 0), drive(None, 0), drive("r3", 1)] == [False, False, True]
    with pytest.raises(TableConflict, match="other offsets"):
        drive("r1", 1)
    assert lake.rows == ["msgid/a/0/q", "msgid/a/1/q"]


def test_driver_that_was_paused_until_the_snapshots_expired_does_not_publish(monkeypatch):
    """While it stood before its commit, another driver published the batch and ended, and its snapshot expired."""
    lake, steps = Lake(), []

    def disturb(table, step):
        steps.append(step)
        if steps.count("set") == 1 and step == "set":
            with pytest.raises(Killed):
                iceberg.FORMAT.write_batch(df, 0, "lake.db.t", WRITER, (), None)
            lake.add("main", None)
            lake.expire()
        elif steps.count("publish: done") == 1 and step == "publish: done":
            raise Killed

    monkeypatch.setattr(iceberg, "_Table", table_of(lake, disturb))
    df = SimpleNamespace(sparkSession=None)
    for _ in range(2):
        with pytest.raises(TableConflict, match="cannot tell whether batch 0 of 'a' is in "):
            iceberg.FORMAT.write_batch(df, 0, "lake.db.t", WRITER, (), None)
    assert lake.rows == ["msgid/a/0/"]
    lake.properties["msgid.batch/a/0/"] = ""  # what the error says
    assert not iceberg.FORMAT.write_batch(df, 0, "lake.db.t", WRITER, (), None)


@pytest.mark.parametrize("ends", [True, False], ids=["recorded", "published"])
def test_driver_that_is_overtaken_before_it_publishes_does_not_report_the_batch(monkeypatch, ends):
    """Iceberg refuses its snapshot, and the rows in the table are those of the other driver."""
    lake, steps, df = Lake(), [], SimpleNamespace(sparkSession=None)

    def disturb(table, step):
        steps.append(step)
        if step == "publish" and steps.count(step) == 1:
            with suppress(Killed):
                assert iceberg.FORMAT.write_batch(df, 0, "lake.db.t", WRITER, (), None)
        elif step == "publish: done" and steps.count(step) == 1 and not ends:
            raise Killed

    monkeypatch.setattr(iceberg, "_Table", table_of(lake, disturb))
    assert not iceberg.FORMAT.write_batch(df, 0, "lake.db.t", WRITER, (), None)
    assert lake.rows == ["msgid/a/0/"]
