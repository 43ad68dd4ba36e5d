"""Reports as gates of pipelines: OpenMetrics text, allowances, and the time up to which a table is complete."""

from datetime import datetime, timedelta, timezone

import pytest
from helpers.commands import invoke

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
audit = pytest.importorskip("msgid.audit")

AT = datetime(2026, 11, 24, 14, 5, tzinfo=timezone.utc)


def table(*offsets, **columns):
    return pa.table({"offset": list(offsets), **columns})


def families(text):
    """Return the values of each metric by its labels, read by the parser of the Prometheus client."""
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in parser.text_string_to_metric_families(text)
    }


def test_openmetrics_text_has_the_number_of_each_check_that_was_made():
    """A check that found nothing is 0, and one that was not made is missing."""
    found = families(audit.audit_table(table(0, 1, 1, 9), offset="offset").to_openmetrics())
    assert found["msgid_audit_messages"] == {("missing_offsets", "error"): 7, ("duplicate_messages", "error"): 1}
    assert found["msgid_audit_rows"] == {(): 4}
    assert "msgid_audit_complete_until_seconds" not in found
    found = families(audit.audit_table(table(0), offset="offset", without=["duplicate_messages"]).to_openmetrics())
    assert found["msgid_audit_messages"] == {("missing_offsets", "error"): 0}


def test_openmetrics_text_of_a_comparison_has_the_time_up_to_which_the_table_is_complete():
    """Unix seconds; the checks are those of two sides."""
    moments = [AT + timedelta(seconds=n) for n in range(4)]
    sent = table(0, 1, 2, 3, at=moments)
    report = audit.compare(sent, sent.take([0, 1, 3]), offset="offset", timestamp="at")
    found = families(report.to_openmetrics())
    assert found["msgid_audit_complete_until_seconds"] == {(): AT.timestamp() + 2}
    assert found["msgid_audit_sent_rows"] == {(): 4}
    assert found["msgid_audit_messages"] == {
        ("lost_messages", "error"): 1, ("duplicate_messages", "error"): 0, ("extra_messages", "info"): 0,
        ("duplicate_ids", "error"): 0, ("uncompared_messages", "error"): 0,
    }  # fmt: skip


def test_time_up_to_which_a_table_is_complete_is_in_text_json_and_page():
    """The first lost message ends it; without a loss, it is the last message."""
    sent = table(0, 1, 2, at=[AT + timedelta(seconds=n) for n in range(3)])
    columns = {"offset": "offset", "timestamp": "at"}
    for kept, until in (([0, 2], AT + timedelta(seconds=1)), ([0, 1, 2], AT + timedelta(seconds=2))):
        digests = [audit.digest(side, **columns) for side in (sent, sent.take(kept))]
        for options in ({}, {"digests": digests}):
            report = audit.compare(sent, sent.take(kept), **columns, **options)
            assert report.complete_until == until
            text = until.isoformat()
            assert f"complete: each message before {text} has landed" in str(report)
            assert f'"complete_until": "{text}"' in report.to_json()
            assert f"Complete: each message before {text}" in report.to_html()


@pytest.mark.parametrize(
    ("allow", "failed"),
    [({}, ["missing_offsets", "duplicate_messages"]), ({"missing_offsets": 7}, ["duplicate_messages"]),
     ({"missing_offsets": 6, "duplicate_messages": 1}, ["missing_offsets"]),
     ({"missing_offsets": 7, "duplicate_messages": 5}, [])],
)  # fmt: skip
def test_allowed_numbers_of_a_check_are_not_a_failure(tmp_path, allow, failed):
    """The numbers of all logs together count; the report stays as it is."""
    rows = pa.table({"source": ["a", "b", "b", "a", "b"], "offset": [0, 0, 0, 5, 4]})
    report = audit.audit_table(rows)
    assert list(dict.fromkeys(one.check for one in report.failures("error", allow))) == failed
    assert len(report.findings) == 3
    path = tmp_path / "a.csv"
    path.write_text("source,offset\na,0\nb,0\nb,0\na,5\nb,4\n")
    options = [part for check, most in allow.items() for part in ("--allow", f"{check}={most}")]
    done = invoke(["audit", str(path), "--fail-on", "error", *options])
    assert done.exit_code == (3 if failed else 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--fail-on", "error", "--allow", "lost=3"],
            "--allow must be CHECK=N, such as late_messages=10, got 'lost=3'",
        ),
        (["--fail-on", "error", "--allow", "late_messages"], "--allow must be CHECK=N"),
        (["--fail-on", "error", "--allow", "late_messages=-1"], "--allow must be CHECK=N"),
        (["--allow", "late_messages=1"], "--allow needs --fail-on"),
    ],
)
def test_wrong_allowance_ends_the_command_before_it_reads(tmp_path, options, words):
    """One clear error of usage."""
    (tmp_path / "a.html").write_text("")
    done = invoke(["audit", f"{tmp_path}/a.html", *options])
    assert (done.exit_code, words in done.output) == (2, True)


def test_allowance_of_an_unknown_check_raises():
    """The error lists the checks."""
    report = audit.audit_table(table(0), offset="offset")
    with pytest.raises(ValueError, match="allow must name checks, got 'lost'"):
        report.failure("error", {"lost": 1})
    with pytest.raises(ValueError, match="allow must be"):
        report.failure("error", {"late_messages": -1})


def test_command_writes_openmetrics_text(tmp_path):
    """A collector sees the whole file: it is moved into its place."""
    path, metrics = tmp_path / "a.csv", tmp_path / "audit.prom"
    path.write_text("offset\n0\n2\n")
    done = invoke(["audit", str(path), "--openmetrics", str(metrics)])
    assert done.exit_code == 0
    assert families(metrics.read_text())["msgid_audit_messages"]["missing_offsets", "error"] == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv", "audit.prom"]


@pytest.mark.parametrize("offsets", ["0.0 1.0 5.0", "x y z", "0 x y"])
def test_offsets_that_are_mostly_unreadable_are_a_failure(offsets, tmp_path):
    """Their losses cannot be found, so a gate does not pass; one such row among valid ones is a note."""
    path = tmp_path / "table.csv"
    path.write_text("offset\n" + "\n".join(offsets.split()) + "\n")
    report = audit.audit_file(path)
    assert not report.findings
    assert report.failure() == f"{report.unplaced} of 3 rows do not have a valid offset or source"
    assert invoke(["audit", str(path), "--fail-on", "error"]).exit_code == 3
    path.write_text("offset\n0\n1\nx\n")
    assert audit.audit_file(path).failure() is None
