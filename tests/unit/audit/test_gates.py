"""Reports as gates of pipelines: OpenMetrics text, allowances, and the time up to which a table is complete."""

import os
import pickle
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from helpers.commands import invoke

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
audit = pytest.importorskip("msgid.audit")
facts = pytest.importorskip("msgid.audit.facts")
findings_of = pytest.importorskip("msgid.audit.findings").findings_of

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
            "--allow must name checks, got 'lost'; the checks are ",
        ),
        (["--fail-on", "error", "--allow", "late_messages"], "=10, got 'late_messages'"),
        (["--sent-column", "id=key"], "--sent-column needs --sent"),
        (["--fail-on", "error", "--allow", "late_messages=-1"], "--allow must be CHECK=N"),
        (["--allow", "late_messages=1"], "--allow needs --fail-on"),
    ],
)
def test_wrong_allowance_ends_the_command_before_it_reads(tmp_path, options, words):
    (tmp_path / "a.html").write_text("")
    done = invoke(["audit", f"{tmp_path}/a.html", *options])
    assert (done.exit_code, words in done.output) == (2, True)


def test_allowance_of_an_unknown_check_raises():
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
    assert report.summary.endswith(f" {report.to_dict()['unplaced']} of them without a valid offset or source")
    assert invoke(["audit", str(path), "--fail-on", "error"]).exit_code == 3
    path.write_text("offset\n0\n1\nx\n")
    assert audit.audit_file(path).failure() is None


NAIVE = ["2026-11-24 14:00:00"]


@pytest.mark.parametrize("times", [["soon"], [None]])
@pytest.mark.parametrize(
    ("column", "what", "checks"),
    [("timestamp", "timestamp", {"time_backwards"}), ("landed", "landing time", {"late_messages", "future_ids"})],
)
def test_times_that_cannot_be_read_are_a_failure(times, column, what, checks):
    """The checks that need them are not made, and are not 0 in OpenMetrics text, if no row has a time."""
    rows = pa.table({"offset": range(3), "id": [f"order-{n}" for n in range(3)], "at": pa.array(times * 3)})
    report = audit.audit_table(rows, offset="offset", without=["malformed_ids"], **{column: "at"})
    assert not report.findings
    assert {one.check for one in report.not_checked if one.reason == f"no row has a valid {what}"} == checks
    assert not any(check in report.to_openmetrics() for check in checks)
    assert report.failure() == f"3 of 3 rows do not have a valid {what}"
    without = ["malformed_ids", *checks]
    assert audit.audit_table(rows, offset="offset", without=without, **{column: "at"}).failure() is None


@pytest.mark.parametrize(("times", "failed"), [(["2026-11-24T14:00:00Z", *NAIVE], False), (NAIVE * 2, True)])
@pytest.mark.parametrize(("column", "check"), [("timestamp", "time_backwards"), ("landed", "late_messages")])
def test_most_times_must_be_read(times, failed, column, check):
    """The check is made of those that can be read."""
    at = ["2026-11-24T14:00:00Z", *times]
    report = audit.audit_table(table(*range(3), at=at), offset="offset", **{column: "at"})
    assert (report.failure() is not None) == failed
    assert check not in {one.check for one in report.not_checked}


def test_offsets_that_cannot_be_read_leave_their_checks_out():
    """A check that was not made is not 0 in OpenMetrics text."""
    report = audit.audit_table(table("x", "y", at=[AT, AT]), offset="offset", timestamp="at")
    assert {"missing_offsets", "duplicate_messages", "time_backwards"} <= {
        one.check for one in report.not_checked if one.reason == "no row has a valid offset or source"
    }
    assert "missing_offsets" not in report.to_openmetrics()


@pytest.mark.parametrize("column", ["timestamp", "landed"])
@pytest.mark.parametrize("times", [[1_795_000_000, 1_795_000_060], ["1795000000", "1795000060"]])
def test_seconds_in_place_of_milliseconds_are_refused(times, column):
    """They would be times of January 1970; such a time as text of ISO 8601 is one."""
    with pytest.raises(ValueError, match=f"`{column}` must be milliseconds since 1970, got 1795000060: seconds?"):
        audit.audit_table(table(0, 1, at=times), offset="offset", **{column: "at"})
    report = audit.audit_table(table(0, at=["1970-01-21T18:00:00Z"]), offset="offset", **{column: "at"})
    assert report.failure() is None


V1 = "0156F7E71C361B21BC024CCDBE00000007"


def report_with(*findings, **fields):
    """Return a report of 100 rows with findings: the check, the scope and the count of each."""
    made = [
        facts.Finding(*one, None, "")
        for one in ((check, audit.CHECKS[check].severity, *rest) for check, *rest in findings)
    ]
    return audit.Report(100, made, **fields)


def test_failure_names_all_checks_by_their_harm():
    """Lost messages are first, then changed ones, then repeated ones. Each check has its total and largest scope."""
    report = report_with(
        ("duplicate_messages", "a", 900), ("late_messages", "a", 5_000), ("missing_offsets", "b", 2),
        ("duplicate_ids", "table", 800), ("missing_offsets", "c", 5), ("conflicting_ids", "table", 7),
        ("conflicting_messages", "a", 1),
    )  # fmt: skip
    errors = (
        "7 missing_offsets (5 of them in c), 1 conflicting_messages in a, 7 conflicting_ids in table, "
        "900 duplicate_messages in a, 800 duplicate_ids in table"
    )
    assert report.failure() == f"6 findings of severity error: {errors}"
    assert report.failure("warning") == f"7 findings of severity warning or above: {errors}, 5,000 late_messages in a"
    assert [one.count for one in report.failures()] == [5, 2, 1, 7, 900, 800]
    sent = report_with(("duplicate_messages", "a", 9), ("changed_messages", "a", 3), ("lost_messages", "a", 1), sent=9)
    assert sent.failure().endswith("1 lost_messages in a, 3 changed_messages in a, 9 duplicate_messages in a")


def test_example_of_a_failure_is_one_log_and_not_the_sum_of_many():
    """The finding that counts the logs beyond the limit is part of the total."""
    found = [facts.Counted("missing_offsets", scope, count, 1, 2) for scope, count in (("a", 3), (None, 50))]
    report = audit.Report(100, findings_of(facts.part_of(found)))
    assert report.failure() == "2 findings of severity error: 53 missing_offsets (3 of them in a)"


def test_numbers_of_one_have_a_noun_in_the_singular():
    """In the failure, the summary and the findings of further logs."""
    assert audit.audit_ids([None]).failure() == "1 of 1 row does not have a valid ID"
    assert report_with(("lost_messages", "a", 1), sent=1).summary == "1 message lost in 100 rows, compared with 1 sent"
    (one,) = findings_of(facts.part_of([facts.Counted("missing_offsets", None, 4, 1)]))
    assert one.scope == "1 other"


# --- The rows of a check ---


def test_rows_of_a_check_come_from_the_engine(tmp_path):
    """A check that was made and found nothing has rows, too: none of them."""
    report = report_with(("missing_offsets", "a", 1))
    written = []
    report._rows, report._copy = "rows of {}".format, lambda *arguments: written.append(arguments)
    assert report.rows_of("missing_offsets") == "rows of missing_offsets"
    assert report.rows_of("duplicate_messages") == "rows of duplicate_messages"
    report.write_rows("missing_offsets", tmp_path / "lost.csv")
    assert written == [("missing_offsets", tmp_path / "lost.csv")]


@pytest.mark.parametrize(
    ("check", "sent", "why"),
    [
        ("lost", None, "check must name checks, got 'lost'"),
        ("late_messages", None, r"it was not checked \(without a landing time\)"),
        ("lost_messages", None, r"it was not checked \(it needs a comparison\)"),
        ("missing_offsets", 9, r"it was not checked \(a comparison does not make it\)"),
    ],
)
def test_rows_of_a_check_that_was_not_made_are_refused(check, sent, why):
    """An empty table would look as if the check had found nothing."""
    report = report_with(sent=sent, not_checked=[facts.NotChecked("late_messages", "without a landing time")])
    report._rows = report._copy = lambda *_: pytest.fail("the engine was asked")
    for ask in (report.rows_of, lambda name: report.write_rows(name, "rows.csv")):
        with pytest.raises(ValueError, match=why):
            ask(check)


def test_report_without_its_table_has_no_rows():
    """Such as one of digests, or a copy in another process, which keeps all values."""
    report = report_with(("missing_offsets", "a", 1))
    report._rows = report._copy = lambda *_: pytest.fail("the engine was asked")
    copied = pickle.loads(pickle.dumps(report))
    assert copied.to_json() == report.to_json()
    for ask in (copied.rows_of, lambda name: copied.write_rows(name, "rows.csv")):
        with pytest.raises(ValueError, match="of missing_offsets: the report does not have its table"):
            ask("missing_offsets")


@pytest.mark.parametrize("values", [[None] * 3, [V1, None, None], [V1, V1[:-1] + "8", None, "x", None]])
def test_ids_that_are_mostly_unreadable_are_a_failure(values):
    """Of a table without positions, losses cannot be found then; an allowance covers them."""
    report = audit.audit_ids(values)
    rows, valid = len(values), sum(value == V1 or (value or "").startswith("01") for value in values)
    assert report.failure() == f"{rows - valid} of {rows} rows do not have a valid ID"
    assert report.failure(allow={"missing_ids": 3, "malformed_ids": 1}) is None
    assert audit.audit_ids(values, without=["missing_ids", "malformed_ids"]).failure() is None
    positions = audit.audit_table({"id": values, "offset": list(range(rows))})
    assert positions.failure() is None


def test_a_table_without_rows_is_a_failure(tmp_path):
    """Nothing was checked; a table that lacks all sent messages was compared."""
    empty = table()
    assert audit.audit_table(empty, offset="offset").failure() == "no rows: nothing was checked"
    assert audit.audit_ids([]).failure("warning") == "no rows: nothing was checked"
    assert audit.compare([], table(0), offset="offset").failure() == "no rows in sent: nothing was checked"
    assert audit.compare([0], empty, offset="offset").failure(allow={"lost_messages": 1}) is None
    digests = [audit.digest(empty.cast(pa.schema({"offset": pa.int64()})), offset="offset")] * 2
    assert audit.compare(None, None, digests=digests).failure() == "no rows in sent: nothing was checked"
    path = tmp_path / "table.csv"
    path.write_text("offset\n")
    assert invoke(["audit", str(path)]).exit_code == 0
    done = invoke(["audit", str(path), "--fail-on", "error"])
    assert (done.exit_code, "audit failed: no rows: nothing was checked" in done.output) == (3, True)


@pytest.mark.parametrize("option", ["--report", "--openmetrics"])
def test_report_does_not_replace_an_input(tmp_path, option):
    """A file of FILE, `--sent` or `--digests` is refused before anything is read, by any of its names."""
    (tmp_path / "digests").mkdir()
    table, link, other = (tmp_path / name for name in ("table.csv", "link.html", "other.html"))
    table.write_text("offset\n1\n")
    link.symlink_to(table)
    other.hardlink_to(table)
    sides = ["--sent", str(table), "--digests", str(tmp_path / "digests"), str(tmp_path / "digests")]
    for more, file in (([], table), ([], link), ([], other), (sides, tmp_path / "digests" / "new.html")):
        done = invoke(["audit", str(table), *more, option, str(file)])
        assert done.exit_code == 2
        assert f"{option} must not be a file of the input" in done.output
    assert table.read_text() == "offset\n1\n"


def test_report_or_list_does_not_replace_a_file_of_a_pattern(tmp_path):
    """Nor is it a new file that the pattern would read the next time."""
    table, pattern = tmp_path / "a.csv", f"{tmp_path}/*.csv"
    table.write_text("offset\n1\n")
    for name in ("a.csv", "new.csv"):
        for option in (("--report", f"{tmp_path}/{name}"), ("--rows", f"missing_offsets={tmp_path}/{name}")):
            done = invoke(["audit", pattern, *option])
            assert (done.exit_code, f"{option[0]} must not be a file of the input" in done.output) == (2, True)
    deep = invoke(["audit", f"{tmp_path}/**/*.csv", "--report", f"{tmp_path}/inner.csv"])
    assert "must not be a file of the input" in deep.output
    assert table.read_text() == "offset\n1\n"
    assert invoke(["audit", pattern, "--rows", f"missing_offsets={tmp_path}/lost.json"]).exit_code == 0


def test_folder_that_cannot_be_written_to_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    for option in (("--report", f"{tmp_path}/a.html"), ("--rows", f"missing_offsets={tmp_path}/a.csv")):
        done = invoke(["audit", "missing.csv", *option])
        assert (done.exit_code, "in a folder that you may write to" in done.output) == (2, True)
    assert "missing.csv" in invoke(["audit", "missing.csv", "--report", "/dev/null"]).output  # a stream


def test_empty_file_among_several_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("offset\n1\n")
    (tmp_path / "b.csv").touch()
    done = invoke(["audit", f"{tmp_path}/a.csv", f"{tmp_path}/b.csv"])
    assert f"'{tmp_path}/b.csv': it is empty" in done.stderr


def test_header_with_another_separator_names_the_option(tmp_path):
    (tmp_path / "a.csv").write_text("topic;offset\na;1\n")
    assert "pass --delimiter" in invoke(["audit", f"{tmp_path}/a.csv"]).stderr


def test_reports_of_one_name_are_refused(tmp_path):
    """One of them would replace the other."""
    ids = tmp_path / "ids.txt"
    ids.write_text("")
    done = invoke(["audit", str(ids), "--report", f"{tmp_path}/x", "--openmetrics", f"{tmp_path}/../{tmp_path.name}/x"])
    assert (done.exit_code, "--report and --openmetrics must be two files" in done.stderr) == (2, True)
    assert "must name files" in invoke(["audit", str(ids), "--report", ""]).stderr
    assert os.listdir(tmp_path) == ["ids.txt"]


def test_page_of_a_file_whose_name_is_not_utf_8_is_written(tmp_path):
    """The page names the command, with an escape in place of such a byte."""
    ids = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    Path(ids).write_text("")
    assert invoke(["audit", ids, "--report", f"{tmp_path}/audit.html"]).exit_code == 0
    assert r"\udcff.txt" in (tmp_path / "audit.html").read_text()
