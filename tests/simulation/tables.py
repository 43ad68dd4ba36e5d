"""A query that writes its batches to a table, is killed at any step, and starts again from an older checkpoint."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from types import SimpleNamespace

from helpers.lake import Lake, table_of

from spark_ext import TableConflict
from spark_ext.tables import iceberg
from spark_ext.tables.writers import Writer


class Killed(BaseException):
    """The process ends."""


class _Rows(Lake):
    """A table whose snapshots have rows."""

    def __init__(self):
        super().__init__()
        self.staged, self.published = {}, []

    def cherrypick(self, staged):
        super().cherrypick(staged)
        self.published += self.staged[staged]


class _Query:
    """A query and its checkpoint, with backups of it."""

    def __init__(self, chance):
        self.chance, self.planned = chance, 0
        self.checkpoint = {"offsets": {}, "commits": set()}
        self.saved = [deepcopy(self.checkpoint)]
        self.is_restored = False

    def restore(self):
        """Go on from a backup; the newest checkpoint is set aside."""
        self.saved.append(self.checkpoint)
        self.checkpoint, self.is_restored = deepcopy(self.chance.choice(self.saved[:-1])), True

    def restore_newest(self):
        """Do what the error says: look for the right checkpoint, from the newest one back."""
        self.checkpoint = self.saved.pop()
        self.is_restored = bool(self.saved)

    def plan(self, rows):
        """Return the number of the next batch, its rows, and what the log says of it; a replay has the same."""
        number, offsets = len(self.checkpoint["commits"]), self.checkpoint["offsets"]
        if number not in offsets:
            self.planned += 1  # another plan has read other files
            offsets[number] = (offsets[number - 1][1] if number else 0), rows, f"read{self.planned}"
        start, end, read = offsets[number]
        return number, SimpleNamespace(sparkSession=None, rows=range(start, end)), Writer("a", "q", True, read)

    def commit(self, number):
        """Note that the sink has the batch; make a backup at times."""
        self.checkpoint["commits"].add(number)
        if self.is_restored:  # the older checkpoint has lost nothing, and is the newest one now
            self.saved, self.is_restored = self.saved[:1], False
        if not self.saved or self.chance.random() < 0.3:
            self.saved.append(deepcopy(self.checkpoint))


def run(chance):
    """Run a schedule; raise AssertionError if a row is in the table twice, or in no table at the end."""
    lake, faults, query = _Rows(), Counter(), _Query(chance)
    rows = chance.randrange(1, 4)

    def disturb(table, step):
        if chance.random() < disturbed:
            kind = chance.choice(["kill", "kill", "lost", "expire"])
            faults[f"{kind} of a query"] += 1
            if kind == "kill":
                raise Killed
            if kind == "expire":
                lake.expire()
            elif step.endswith(": done"):
                raise ConnectionError("the answer is lost")

    class Table(table_of(lake, disturb)):
        def _append(self, df, branch, id):
            def add():
                lake.add(branch, id, parent=lake.refs[branch])
                lake.staged[lake.time] = list(df.rows)

            self.commit("append", add)

    original, delays = iceberg._Table, iceberg._DELAYS
    iceberg._Table, iceberg._DELAYS = Table, (0, 0)
    try:
        for turn in range(30):
            disturbed = 0.03 if turn < 20 else 0
            rows += chance.choice([0, 1, 3]) if turn < 20 else 0
            if turn < 20 and query.saved and chance.random() < 0.15:
                faults["restored checkpoint"] += 1
                query.restore()
            number, df, writer = query.plan(rows)
            try:
                iceberg.FORMAT.write_batch(df, number, "lake.db.t", writer, (), None)
            except TableConflict as error:
                if "cannot tell whether" in str(error):
                    return faults  # an administrator looks, as the error says
                if not query.is_restored:
                    raise
                query.restore_newest()
            except (Killed, ConnectionError, ValueError):  # also if the staged rows have expired
                pass
            else:
                query.commit(number)
            assert len(lake.published) == len(set(lake.published)), f"rows are twice in the table: {lake.published}"
        missing = set(range(rows)) - set(lake.published)
        assert not missing, f"the query reports success, and the rows {missing} are in no table"
        return faults
    finally:
        iceberg._Table, iceberg._DELAYS = original, delays
