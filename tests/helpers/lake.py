"""A model of an Iceberg table in a catalog: what `spark_ext.tables.iceberg` asks of it, with a fault at any step."""

import re
from copy import deepcopy
from urllib.parse import quote

from spark_ext.tables import iceberg
from spark_ext.tables.iceberg import Snapshot


class Lake:
    """A table with the rules of Iceberg: commits replace the state, and ``cherrypick`` checks the history."""

    def __init__(self):
        self.snapshots, self.refs, self.properties, self.time = {}, {}, {}, 0
        self.rows = []
        """The batches of the rows that readers see."""

    def add(self, ref, id, source=None, parent=None):
        self.time += 1
        self.snapshots[self.time] = Snapshot(self.refs.get(ref, parent), id, source)
        self.refs[ref] = self.time

    def history(self):
        head = self.refs.get("main")
        while head in self.snapshots:
            yield head
            head = self.snapshots[head].parent

    def cherrypick(self, staged):
        if staged not in self.snapshots:
            raise ValueError(f"Cannot cherry-pick unknown snapshot ID: {staged}")
        snapshot = self.snapshots[staged]
        if any(self.snapshots[id].id == snapshot.id for id in self.history()):
            raise ValueError(f"DuplicateWAPCommitException: {snapshot.id}")
        if snapshot.parent == self.refs.get("main"):
            self.refs["main"] = staged
        else:
            self.add("main", snapshot.id, staged)
        self.rows.append(snapshot.id)

    def expire(self):
        """Keep the snapshots that a branch names, and no others."""
        self.snapshots = {id: one for id, one in self.snapshots.items() if id in self.refs.values()}


def table_of(lake, disturb):
    """Return a class of tables of a `Lake`, with a cache as Iceberg's catalogs have; ``disturb`` runs at each step."""

    class Table(iceberg._Table):
        def __init__(self, spark, name):
            self._name, self.sql_name, self.properties = name, name, {}

        def commit(self, step, change):
            disturb(self, step)
            change()
            self.view = deepcopy(lake)
            disturb(self, f"{step}: done")

        def refresh(self):
            disturb(self, "refresh")
            self.view = deepcopy(lake)
            self.properties = {**self.view.properties, "current-snapshot-id": str(lake.refs.get("main", "none"))}

        def exists(self):
            self.refresh()
            return True

        def prepare(self, df, partition_by):
            self.refresh()
            return df

        def _refs(self):
            return dict(self.view.refs)

        def _snapshots(self):
            return dict(self.view.snapshots)

        def _create_branch(self, branch, base):
            def create():
                assert quote(branch, safe="") == branch  # Spark asks a REST catalog for it in a URL
                if base is None:
                    lake.add(branch, None)
                elif base not in lake.snapshots:
                    raise ValueError("the version has expired")
                else:
                    lake.refs[branch] = base

            self.commit("branch", create)

        def _append(self, rows, branch, id):
            self.commit("append", lambda: lake.add(branch, id, parent=lake.refs[branch]))

        def _cherrypick(self, staged):
            self.commit("publish", lambda: lake.cherrypick(staged))

        def _drop(self, branch):
            self.commit("drop", lambda: lake.refs.pop(branch, None))

        def _set(self, key):
            self.commit("set", lambda: lake.properties.update({key: ""}))

        def _run(self, statement):
            assert " UNSET TBLPROPERTIES IF EXISTS " in statement
            old = re.findall(r"'(.+?)'", statement)
            self.commit("unset", lambda: [lake.properties.pop(key, None) for key in old])

    return Table
