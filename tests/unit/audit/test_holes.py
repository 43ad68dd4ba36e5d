"""Offsets that are missing without a loss, several incarnations of a log, and checks that are left out."""

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from helpers.commands import invoke

from msgid import layout

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")
facts = pytest.importorskip("msgid.audit.facts")

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


def kafka(offsets, **columns):
    return pa.table({"topic": ["t"] * len(offsets), "partition": [0] * len(offsets), "offset": offsets, **columns})


def found(report):
    return [(one.check, one.severity, one.scope, one.count, one.example) for one in report.findings]


def transactions(aborted=(), size=5, number=40):
    """The offsets that a reader of committed messages sees: each transaction has messages and a marker."""
    return [
        transaction * (size + 1) + place
        for transaction in range(number)
        for place in range(size)
        if transaction not in aborted
    ]


def test_markers_of_transactions_are_not_a_loss():
    """Each transaction takes one offset more than its messages; without `holes`, it is missing."""
    table = kafka(transactions())
    assert found(audit.audit_table(table)) == [("missing_offsets", "error", "kafka:kafka/t/0", 39, "5")]
    for holes in ("markers", "committed", "compacted"):
        report = audit.audit_table(table, holes=holes)
        assert (report.findings, report.gaps) == ([], [])


def test_report_says_that_a_marker_may_be_a_loss():
    """The number of such gaps stands in the text, the JSON and the page."""
    report = audit.audit_table(kafka(transactions()), holes="markers")
    reason = "39 gaps of one offset are markers or a loss: compare with the queue"
    assert facts.NotChecked("missing_offsets", reason) in report.not_checked
    assert reason in str(report)
    assert {"check": "missing_offsets", "reason": reason} in json.loads(report.to_json())["not_checked"]
    assert reason in report.to_html()


def test_longer_gaps_beside_markers_are_aborted_transactions_or_a_loss():
    """Both readings are possible, so the finding is an info; a caller without aborted transactions has an error."""
    table = kafka([offset for offset in transactions(aborted=(7, 8)) if offset not in (150, 151, 152)])
    (only,) = found(audit.audit_table(table, holes="markers"))
    assert only == ("missing_offsets", "info", "kafka:kafka/t/0", 17, "41 to 53")
    (only,) = found(audit.audit_table(table, holes="committed"))
    assert only == ("missing_offsets", "error", "kafka:kafka/t/0", 17, "41 to 53")
    assert [(gap.first, gap.last) for gap in audit.audit_table(table, holes="markers").gaps] == [(41, 53), (149, 152)]


def test_markers_of_several_producers_stand_side_by_side(tmp_path):
    """A gap of as many offsets as producers may be their markers; a longer one is a loss of at least the difference."""
    table = kafka([0, 1, 4, 5, 9, 10])
    assert found(audit.audit_table(table, holes="committed")) == [
        ("missing_offsets", "error", "kafka:kafka/t/0", 5, "6 to 8")
    ]
    report = audit.audit_table(table, holes="committed", producers=2)
    assert found(report) == [("missing_offsets", "error", "kafka:kafka/t/0", 3, "6 to 8")]
    assert "1 gap of up to 2 offsets is a marker or a loss" in str(report)
    assert found(audit.audit_table(table, holes="markers", producers=2))[0][1] == "info"
    report = audit.audit_table(table, holes="committed", producers=3)
    assert (report.findings, report.gaps) == ([], [])
    assert "2 gaps of up to 3 offsets are markers or a loss" in str(report)
    file = str(tmp_path / "t.parquet")
    pq.write_table(table, file)
    for producers, status in ((2, 3), (3, 0)):
        asked = ["audit", file, "--holes", "committed", "--producers", str(producers), "--fail-on", "error"]
        assert invoke(asked).exit_code == status


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"producers": 2}, "producers needs holes to be markers or committed, got None"),
        ({"producers": 2, "holes": "compacted"}, "producers needs holes to be markers or committed, got 'compacted'"),
        ({"producers": 0, "holes": "committed"}, "producers must be"),
    ],
)
def test_number_of_producers_needs_transactions(options, words):
    with pytest.raises(ValueError, match=words):
        audit.audit_table(kafka([0, 1]), **options)


def test_sequence_numbers_of_aborted_messages_are_an_info():
    """An aborted message has an ID, and a marker does not: its ID shows a loss."""
    offsets = transactions()
    ids = [layout.pack(0x00163E000001, 1, 100 + n, n).hex() for n in range(len(offsets))]
    table = kafka(offsets, id=ids)
    assert audit.audit_table(table, holes="committed").findings == []
    lost = table.filter(pa.array([n != 57 for n in range(len(offsets))]))
    for holes, severity in (("markers", "info"), ("committed", "warning")):
        (only,) = found(audit.audit_table(lost, holes=holes))
        assert only[:2] == ("missing_sequences", severity)


def test_a_compacted_topic_is_clean():
    """Neither offsets nor sequence numbers are checked, and the report says so."""
    ids = [layout.pack(0x00163E000001, 1, 100 + n, n).hex() for n in range(0, 900, 9)]
    report = audit.audit_table(kafka(range(0, 900, 9), id=ids), holes="compacted")
    assert (report.findings, report.gaps) == ([], [])
    skipped = {one.check: one.reason for one in report.not_checked}
    assert skipped["missing_offsets"] == skipped["missing_sequences"] == (
        "holes='compacted': compare with the queue"
    )  # fmt: skip


def test_lives_of_a_log_are_logs():
    """A log that was created again repeats its offsets with other contents."""
    table = kafka(
        [0, 1, 3, 0, 1, 2],
        value=[b"a", b"b", b"c", b"x", b"y", b"z"],
        timestamp=[AT] * 3 + [AT + timedelta(hours=1)] * 3,
        incarnation=[None, None, None, "2026-01-01T01:00:00+00:00", *["2026-01-01T01:00:00+00:00"] * 2],
    )
    assert {one.check for one in audit.audit_table(table).findings} > {"conflicting_messages"}
    report = audit.audit_table(table, incarnation="incarnation")
    assert found(report) == [("missing_offsets", "error", "kafka:kafka/t/0", 1, "2")]
    assert [log.source for log in report.logs] == ["kafka:kafka/t/0", "kafka:kafka/t/0@2026-01-01T01:00:00+00:00"]


def test_checks_are_left_out_by_name():
    """Neither findings nor gaps of the check are in the report, which says that the caller left it out."""
    table = kafka([0, 1, 1, 5])
    report = audit.audit_table(table, without=["missing_offsets"])
    assert [one[0] for one in found(report)] == ["duplicate_messages"]
    assert report.gaps == []
    assert facts.NotChecked("missing_offsets", "left out by the caller") in report.not_checked
    assert audit.audit_table(table, without="missing_offsets").findings == report.findings


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"holes": "marker"}, "holes must be markers, committed or compacted, got 'marker'"),
        ({"without": ["lost"]}, "without must name checks, got 'lost'; the checks are lost_messages"),
        ({"incarnation": "life"}, "`incarnation` must be a column of the table, got 'life'"),
        ({"incarnation": AT}, "`incarnation` must be a column of the table, got datetime"),
        ({"incarnation": "topic", "id": "topic", "offset": ""}, "`offset` must be a column of the table if"),
    ],
)
def test_wrong_arguments_are_one_clear_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        audit.audit_table(kafka([0, 1]), **arguments)


def test_command_takes_the_same_options(tmp_path):
    pq.write_table(kafka([0, 1, 3, 9, 0, 1], incarnation=[1, 1, 1, 1, 2, 2]), tmp_path / "t.parquet")
    call = ["audit", f"{tmp_path}/t.parquet", "--incarnation", "incarnation", "--json"]
    for more, expected in ((["--holes", "markers"], ["info"]), (["--without", "missing_offsets"], []), ([], ["error"])):
        result = invoke([*call, *more])
        assert [one["severity"] for one in json.loads(result.stdout)["findings"]] == expected


@pytest.mark.parametrize("values", [[0.5], [Decimal("1.50")], [AT], [["a"]]])
@pytest.mark.parametrize("argument", ["source", "incarnation"])
def test_logs_are_not_named_by_values_whose_text_depends_on_the_engine(values, argument):
    """Python and Spark write such values in other ways."""
    table = pa.table({"offset": [1], "name": values})
    with pytest.raises(ValueError, match="`source` and `incarnation` must be columns of text, integers or dates, got"):
        audit.audit_table(table, offset="offset", **{argument: "name"})


def test_logs_of_one_name_are_refused():
    """The columns of a source are joined by a slash, so only one of them may have it in its values."""
    pairs = pa.table({"a": ["a/b", "a"], "b": [b"c", b"b/c"], "offset": [0, 0]})
    with pytest.raises(ValueError, match="at most one column of the source may have a '/' in its values"):
        audit.audit_table(pairs, source=["a", "b"], offset="offset")
    assert not audit.audit_table(pairs, source=["offset", "a"], offset="offset").findings
