"""Audits of simulated clusters: every fault that the table can show is found, and nothing else."""

import pytest

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")
clusters = pytest.importorskip("helpers.clusters")

COLUMNS = {"source": "source", "offset": "offset", "timestamp": "timestamp", "landed": "landed", "content": "content"}


def check(cluster):
    report = audit.audit_table(pa.table(cluster.columns()), **COLUMNS)
    assert {(found.check, found.scope): found.count for found in report.findings} == cluster.expected
    assert sorted((gap.kind, gap.scope, gap.first, gap.last) for gap in report.gaps) == sorted(cluster.gaps)
    assert sum(gap.count for gap in report.gaps if gap.kind == "offset") == sum(log.missing for log in report.logs)
    assert sum(log.rows for log in report.logs) == report.rows == len(cluster.rows)
    assert sum(kind.rows for kind in report.kinds) == report.rows


@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in range(0, 200, 20)], ids=lambda seeds: seeds[0])
def test_audit_of_200_simulated_tables_finds_exactly_their_faults(seeds):
    """Counts and ranges equal those of the simulation; a table without a fault gives an empty report."""
    for seed in seeds:
        check(clusters.simulated(seed))


def test_simulated_tables_have_every_fault_and_none():
    """Over all seeds, each fault is in several tables, and some tables are without faults."""
    chosen = [clusters.simulated(seed).faults for seed in range(200)]
    assert sum(not faults for faults in chosen) > 20
    for fault in clusters.FAULTS:
        assert sum(fault in faults for faults in chosen) > 10


def test_runs_of_simulated_generators_are_told_apart():
    """A restarted process is a new run, also if it counts from 0 again; a clock that was set back is not."""
    for faults in (("restarts",), ("clock back",), ("restarts", "clock back")):
        for seed in range(20):
            cluster = clusters.Cluster(seed, faults)
            report = audit.audit_table(pa.table(cluster.columns()), **COLUMNS)
            runs = {}
            for row in report.generators:
                runs.setdefault(f"{row.node}/{row.pid}", set()).add(row.run)
            assert {name: len(numbers) for name, numbers in runs.items()} == dict(cluster.runs)


def test_audit_of_a_table_with_all_faults_at_once_finds_each():
    """Counts and ranges equal those of the simulation."""
    check(clusters.with_all_faults(7))
