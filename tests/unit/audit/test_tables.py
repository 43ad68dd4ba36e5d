"""Audits of small tables: each check by an example, columns of all types, and files."""

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from helpers.commands import invoke

import msgid
import msgid.audit
from msgid import layout

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
audit = pytest.importorskip("msgid.audit")

V1 = "0156F7E71C361B21BC024CCDBE00000000"
NODE = 0x56F7E71C361B
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


def ids(*pairs, node=NODE, pid=7):
    return [layout.pack(node, pid, seconds, sequence).hex().upper() for seconds, sequence in pairs]


def found(report):
    return {(finding.check, finding.scope): (finding.count, finding.example) for finding in report.findings}


def test_identity_of_ids_is_compared_by_value():
    """Case and the version byte of version 0 do not matter, and binary IDs are the same as text."""
    broker = "7F0000010000238F000000000001E240"
    report = audit.audit_ids([V1, V1.lower(), broker, f"00{broker}", broker.lower(), "other", "other", "Other"])
    assert found(report)["duplicate_ids", "table"] == (4, f"00{broker}")
    raw = pa.array([bytes.fromhex(V1), bytes.fromhex(V1), None], pa.binary())
    assert found(audit.audit_ids(raw)) == {("duplicate_ids", "table"): (1, V1), ("missing_ids", "table"): (1, None)}


def test_malformed_values_are_counted_by_reason():
    uuid = "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"
    report = audit.audit_ids(["", "x", "0" * 33, "G" * 34, "02" * 17, None, uuid, uuid.lower(), V1])
    assert {(kind.kind, kind.origin): kind.rows for kind in report.kinds} == {
        ("malformed", "empty"): 1, ("malformed", "wrong length"): 2, ("malformed", "not hex digits alone"): 1,
        ("malformed", "unknown version"): 1, ("null", None): 1, ("uuid", None): 2, ("v1", "mac"): 1,
    }  # fmt: skip
    assert found(report)["malformed_ids", "table"] == (5, "000000000000000000000000000000000")
    assert found(report)["duplicate_ids", "table"] == (1, uuid.lower())


def test_version_0_ids_are_ambiguous_or_of_the_month_before():
    """Offsets that a little-endian client could have written are ambiguous; times after the landing, last month's."""
    ambiguous = "7F0000010000238F" + "00000100" + "00000000"
    client = str(msgid.ClientUniqueId("127.0.0.1", 1, 2, 20 * 86_400_000, 3))
    table = pa.table({"id": [ambiguous, client, client], "landed": [AT, AT + timedelta(days=19), AT]})
    report = audit.audit_table(table, landed="landed")
    assert found(report)["ambiguous_ids", "table"] == (1, f"00{ambiguous}")
    assert found(report)["v0_month_wrap", "table"] == (2, f"00{client}")
    later = pa.table({"id": [client], "landed": [AT + timedelta(days=21)]})
    assert found(audit.audit_table(later, landed="landed")) == {}


def test_version_0_id_of_the_end_of_january_landed_in_march_is_of_a_month_before():
    """February does not have 30.5 days, so the ID is of 31 January, as `time_near` says; not of 3 March."""
    client = str(msgid.ClientUniqueId("127.0.0.1", 1, 2, int(30.5 * 86_400_000), 3))
    landed = datetime(2026, 3, 1, 0, 0, 1, tzinfo=timezone.utc)
    report = audit.audit_table(pa.table({"id": [client], "landed": [landed]}), landed="landed")
    assert found(report)["v0_month_wrap", "table"] == (1, f"00{client}")


MULTICAST = [0x01, 0x03, 0x05, 0x07, 0x09, 0x0B, 0x0D, 0x0F]


def counted_by(first, lost=(7, 8, 9, 31, 50), pids=(4711,), start=0):
    """Return the IDs of a generator with a random node of another program: five of 60 are lost."""
    node = first << 40 | 0x42_AC_11_00_02
    return [
        msgid.MessageId.from_fields(node=node, pid=pid, seconds=150_000_000 + n // 20, sequence=start + n)
        for pid in pids
        for n in range(60)
        if n not in lost
    ]


@pytest.mark.parametrize("first", MULTICAST)
def test_lost_ids_of_a_foreign_random_node_are_missing_sequences(first):
    """`uuid.getnode` sets the multicast bit alone, so its node may declare any origin; its numbers are counted."""
    report = audit.audit_ids(counted_by(first, pids=(4711, 17)))
    checks = {check: count for (check, _), (count, _) in found(report).items() if check != "synthetic_node"}
    assert checks == {"missing_sequences": 5}
    assert [(run.pid, run.ids, run.missing) for run in report.generators] == [(17, 55, 5), (4711, 55, 5)]
    assert report.logs == []


def test_lost_ids_of_a_node_that_declares_derived_are_missing_wherever_they_begin():
    """Two derived IDs never have one node and pid, so numbers above a random start are counted, too."""
    report = audit.audit_ids(counted_by(0x0F, start=1 << 30))
    assert [(run.first_sequence, run.missing) for run in report.generators] == [(1 << 30, 5)]


def test_ids_of_functions_are_not_those_of_generators():
    """Derived IDs have a node each; positions have pid 0, or are far from where a process begins to count."""
    derived = [msgid.derive_id(V1, name) for name in range(60)]
    far = [msgid.position_id("log", (3 << 32) + (1 << 30) + offset, AT) for offset in range(60) if offset != 5]
    near = [msgid.position_id("other", offset, AT) for offset in range(60) if offset != 5]
    report = audit.audit_ids([*derived, *far, *near])
    assert report.generators == []
    assert {check for check, _ in found(report)} == {"missing_offsets"}
    assert [(log.rows, log.missing) for log in report.logs] == [(59, 1), (59, 1)]


def test_ids_of_a_foreign_generator_are_not_orphans():
    """An ID that no function derived does not have a parent that must be in the table."""
    table = pa.table({"id": [str(id) for id in counted_by(0x0F)], "parent": [V1] * 55})
    report = audit.audit_table(table, parent="parent")
    assert "orphan_ids" not in {check for check, _ in found(report)}
    derived = pa.table({"id": [str(msgid.derive_id(V1, "x"))], "parent": [V1]})
    report = audit.audit_table(pa.concat_tables([table, derived]), parent="parent")
    assert found(report)["orphan_ids", "table"][0] == 1


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "Pacific/Kiritimati", "America/Los_Angeles", "Asia/Kolkata"])
def test_version_0_ids_that_land_when_they_are_made_are_not_of_the_month_before(zone):
    """The ID counts from the start of the client's own month, which is up to 14 hours earlier or later than UTC's."""
    landed, ids = [], []
    for hour in range(0, 24 * 70, 5):
        moment = datetime(2026, 1, 25, tzinfo=timezone.utc) + timedelta(hours=hour)
        month = moment.astimezone(ZoneInfo(zone)).replace(day=1, hour=0)
        elapsed = (moment - month.astimezone(timezone.utc)) // timedelta(milliseconds=1)
        ids.append(str(msgid.ClientUniqueId("127.0.0.1", 1, 2, elapsed, hour)))
        landed.append(moment)
    assert found(audit.audit_table(pa.table({"id": ids, "landed": landed}), landed="landed")) == {}


def test_ids_from_the_future_or_before_a_bound_are_found():
    """An ID is dated at most a second after its row landed, and not before the earliest time allowed."""
    seconds = int(AT.timestamp()) - layout.EPOCH_UNIX
    table = pa.table({"id": ids((seconds, 1), (seconds + 1, 2), (seconds + 2, 3)), "landed": [AT] * 3})
    assert found(audit.audit_table(table, landed="landed")) == {("future_ids", "table"): (1, ids((seconds + 2, 3))[0])}
    report = audit.audit_table(table.select(["id"]), not_before=AT + timedelta(seconds=1))
    assert found(report) == {("future_ids", "table"): (1, ids((seconds, 1))[0])}
    skipped = audit.audit_table({"offset": [1]}, not_before=AT).not_checked
    assert ("late_messages", "without a landing time") in skipped
    with pytest.raises(TypeError, match="not_before must be an aware datetime"):
        audit.audit_table(table, not_before=5)


def test_derived_ids_without_their_parent_are_orphans():
    """A derived ID whose parent is not a row is an orphan, whatever form the parent's ID has."""
    child = str(msgid.derive_id(V1, "bill"))
    table = pa.table({"id": [V1, child, child], "parent": [None, V1.lower(), V1[:-1] + "9"]})
    assert found(audit.audit_table(table, parent="parent"))["orphan_ids", "table"] == (1, child)


def test_positions_in_ids_name_the_logs():
    made = [str(msgid.position_id("orders", offset, AT)) for offset in (5, 6, 9)]
    report = audit.audit_ids(made)
    node = msgid.parse(made[0]).mac
    assert found(report) == {("missing_offsets", node): (2, "7 to 8")}
    assert report.logs[0].first_time == AT


def test_nodes_of_many_machines_are_shared():
    """A known shared address, and two runs of one pid at one time, are shared; a random node is synthetic."""
    shared = ids((100, 1), node=0xACDE48001122)
    overlapping = ids(*((n, n) for n in range(9)), *((n, 5_000_000 + n) for n in range(9)))
    random = ids((100, 1), node=layout.synthetic_node("random", 5))
    report = audit.audit_ids([*shared, *overlapping, *random])
    findings = [(finding.check, finding.count) for finding in report.findings]
    assert findings == [("shared_node", 1), ("shared_node", 2), ("synthetic_node", 1)]
    assert [row.generators for row in report.nodes] == [2, 1, 1]


def test_sequences_that_restart_each_second_are_runs():
    """A generator that resets its sequence each second loses nothing by that."""
    report = audit.audit_ids(ids(*((second, n) for second in range(2_000) for n in range(3))))
    assert report.findings == []
    assert len(report.generators) == 2_000


def test_sequence_at_its_wrap_loses_nothing():
    """The number after the last is 0."""
    report = audit.audit_ids(ids((1, 2**32 - 2), (1, 2**32 - 1), (2, 0), (2, 1)))
    assert report.findings == []


def test_offsets_of_all_kinds_are_read():
    """Text of digits is an offset; NULL, negative and too large ones are in no log and counted."""
    for column in (["0", "2", None, "x", "-1", str(2**48)], [0, 2, None, -5, -1, 2**48]):
        report = audit.audit_table(pa.table({"offset": column}), id=None, offset="offset")
        assert found(report) == {("missing_offsets", "log"): (1, "1")}
        assert report.notes[-1] == "4 rows lack a source or a valid offset, and so do not count in any log."
    with pytest.raises(ValueError, match=r"`offset` must be a column of integers, got .* of double: .* type Int64"):
        audit.audit_table(pa.table({"offset": [1.5]}), id=None, offset="offset")


def test_offsets_as_decimals_and_columns_of_nulls_are_read():
    """A whole decimal is an offset, another one is not; a column of NULLs is a column of no offsets and no times."""
    values = [Decimal("0.0"), Decimal("2.0"), Decimal("1.5"), Decimal("-3"), Decimal(10) ** 20, None]
    table = pa.table({"offset": pa.array(values, pa.decimal128(38, 2)), "at": pa.nulls(6), "none": pa.nulls(6)})
    report = audit.audit_table(table, id=None, offset="offset", timestamp="at")
    assert found(report) == {("missing_offsets", "log"): (1, "1")}
    assert report.notes[-1].startswith("4 rows lack")
    assert audit.audit_table(table, id=None, offset="none").findings == []


def test_times_as_dates_and_without_time_zone_are_in_utc():
    for values, kind in (
        ([date(2026, 1, 2), date(2026, 1, 1), None], pa.date32()),
        ([datetime(2026, 1, 2), datetime(2026, 1, 1), None], pa.timestamp("us")),
    ):
        table = pa.table({"offset": [0, 1, 2], "at": pa.array(values, kind)})
        report = audit.audit_table(table, id=None, offset="offset", timestamp="at")
        assert found(report) == {("time_backwards", "log"): (1, "offset 1, 86,400.000 s back")}
        assert report.logs[0].first_time == AT


def test_printed_report_shows_hostile_values_in_one_short_line():
    """Control characters and spaces around a value are visible, long values are cut, and lists keep the whole value."""
    for value, shown in (("x\x1b[31m\n", "'x\\x1b[31m\\n'"), (" x", "' x'"), ("x" * 200, "x" * 97 + "..."), ("é", "é")):
        report = audit.audit_ids([value, V1])
        assert str(report).splitlines()[-1].endswith(f"1  {shown}")
        assert [line[:9] for line in str(report).splitlines()[1:]] == ["not check", "severity ", "warning  "]
        assert report.findings[0].example == value
    table = pa.table({"log": ["a\n"] * 2, "offset": [0, 2]})
    report = audit.audit_table(table, id=None, source="log", offset="offset")
    assert report.failure() == r"1 finding of severity error: 1 missing_offsets in 'a\n'"


def test_rows_without_a_valid_time_are_counted(tmp_path):
    """Times that are missing or cannot be read are counted in the summary, the notes, JSON and the page."""
    naive, good = "2026-01-02 00:00:00", "2026-01-01T00:00:00Z"
    sent, landed = [naive, good, None, "x", good], [naive, good, good, good, good]
    table = pa.table({"offset": range(5), "sent": sent, "landed": landed})
    report = audit.audit_table(table, id=None, offset="offset", timestamp="sent", landed="landed")
    counts = "3 of them without a valid timestamp, 1 without a valid landing time"
    assert str(report).splitlines()[0] == report.summary == f"no errors in 5 rows, {counts}"
    assert (report.untimed, report.unlanded) == (3, 1)
    plain = json.loads(report.to_json())
    assert (plain["untimed"], plain["unlanded"]) == (3, 1)
    assert [note.partition(",")[0] for note in report.notes if "lack" in note] == [
        "3 rows lack a valid timestamp", "1 row lacks a valid landing time",
    ]  # fmt: skip
    assert "3 rows lack a valid timestamp" in report.to_html()
    (tmp_path / "times.csv").write_text("id,sent\n" + "".join(f"{V1},{time or ''}\n" for time in sent))
    assert audit.audit_file(tmp_path / "times.csv", timestamp="sent").untimed == 3
    whole = audit.audit_table(table, id=None, offset="offset", landed="")
    assert (whole.untimed, whole.unlanded) == (0, 0)


def test_rows_of_the_format_iggy_are_audited_by_source_offset_and_text_of_the_id():
    """The columns are known; a row that could not be read has neither ID nor offset, and counts in no log."""
    columns = {name: pa.nulls(3) for name in ("file", "position", "state", "timestamp", "id", "checksum")}
    uuids = ["74b158ca-ddb3-498f-b0a9-9eec1c6197ae", "0193e3b2-7c1a-7d3e-9a5f-0123456789ab", None]
    columns |= {"source": ["iggy:1/2#3"] * 3, "offset": [4, 6, None], "payload": [b"x", b"y", None], "id_text": uuids}
    report = audit.audit_table(pa.table(columns))
    assert found(report)["missing_offsets", "iggy:1/2#3"] == (1, "5")
    assert ("uuid", None, 2) in report.kinds
    assert any(note.startswith("1 row lacks") for note in report.notes)


WHOLE = {
    "id": [V1, *ids((5, 0), (6, 1), (8, 3)), V1],
    "source": ["orders/0"] * 5,
    "offset": [0, 1, 4, 3, 4],
    "timestamp": [AT] * 5,
    "landed": [AT] * 5,
    "content": [b"a", b"b", b"c", b"d", b"e"],
}


@pytest.mark.parametrize("named", [*({name: name} for name in WHOLE), {"id": "id", "content": ["content"]}], ids=str)
def test_naming_a_column_leaves_the_others_known(named):
    report = audit.audit_table(pa.table(WHOLE))
    assert {"missing_offsets", "conflicting_messages", "conflicting_ids"} <= {one.check for one in report.findings}
    assert audit.audit_table(pa.table(WHOLE), **named).to_json() == report.to_json()


def test_columns_of_other_names_are_completed_and_an_empty_name_is_no_column():
    """The log is named by ``source`` for offsets of another name too; an empty name or list turns a column off."""
    other = pa.table({"place" if name == "offset" else name: column for name, column in WHOLE.items()})
    expected = audit.audit_table(pa.table(WHOLE)).to_json()
    assert audit.audit_table(other, offset="place").to_json() == expected
    off = audit.audit_table(pa.table(WHOLE), id="", source=(), timestamp="", landed="", content="")
    assert off.to_json() == audit.audit_table(pa.table({"offset": WHOLE["offset"]})).to_json()


def test_ids_in_properties_are_read_if_another_column_is_named():
    """Rows of RocketMQ's connector keep their IDs in their properties."""
    rows = [
        {"topic": "a", "brokerName": "b", "queueId": 0, "queueOffset": offset, "body": b"x", "storeTimestamp": 0,
         "properties": json.dumps({"UNIQ_KEY": V1})}
        for offset in range(2)
    ]  # fmt: skip
    report = audit.audit_table(rows, content="body")
    assert found(report)["duplicate_ids", "table"] == (1, V1)
    assert report.to_json() == audit.audit_table(rows).to_json()


def test_wrong_columns_are_refused():
    table = pa.table({"key": [V1]})
    words = r"a column named id is missing from \['key'\]: pass `id`, or `offset` and `source`"
    with pytest.raises(ValueError, match=words):
        audit.audit_table(table)
    with pytest.raises(ValueError, match="cannot audit the table: it must have IDs, or offsets, got neither"):
        audit.audit_table(table, id=None)
    with pytest.raises(ValueError, match="`offset` must be a column of the table if `source` is given"):
        audit.audit_table(table, id="key", source="key")


def test_lists_are_bounded_and_findings_count_all():
    """The largest ranges are listed, and a note tells how many there are."""
    table = pa.table({"offset": [0, 2, 6, 8, 20]})
    report = audit.audit_table(table, id=None, offset="offset", max_gaps=2)
    assert [(gap.first, gap.last) for gap in report.gaps] == [(9, 19), (3, 5)]
    assert found(report)["missing_offsets", "log"] == (16, "9 to 19")
    assert "The report lists 2 of 4 missing ranges; the findings count all." in report.notes
    many = pa.table({"log": [f"log {n // 2}" * (n > 1) for n in range(2_400)], "offset": [0, 2] * 1_200})
    report = audit.audit_table(many, id=None, source="log", offset="offset")
    assert (len(report.findings), report.findings[0].scope, *report.findings[-1][2:4]) == (1_001, "", "200 others", 200)


def test_command_exits_with_3_and_names_the_largest_findings(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("\n".join([*ids((1, 1), (1, 5)), V1, V1, V1, "x"]) + "\n")

    def run(*arguments):
        return invoke(["audit", str(path), *arguments])

    assert run().exit_code == 0
    failed = run("--fail-on", "error", "--json", "--report", str(tmp_path / "audit.html"))
    assert failed.exit_code == 3
    assert failed.stderr == "audit failed: 1 finding of severity error: 2 duplicate_ids in table\n"
    assert json.loads(failed.stdout)["rows"] == 6
    assert (tmp_path / "audit.html").read_text().startswith("<!doctype html>")
    warned = run("--fail-on", "warning")
    assert warned.exit_code == 3
    largest = "2 duplicate_ids in table, 3 missing_sequences in 56:f7:e7:1c:36:1b/7, 1 malformed_ids in table"
    assert warned.stderr == f"audit failed: 3 findings of severity warning or above: {largest}\n"
    path.write_text(V1 + "\n")
    assert run("--fail-on", "warning").exit_code == 0
    unwritten = run("--report", str(tmp_path / "no" / "audit.html"))
    assert unwritten.exit_code == 2
    assert "--report must name a file in a folder that exists" in unwritten.stderr
    missing = run("--id", "no")
    assert (missing.exit_code, "Error: --id must be a column of the table, got 'no'" in missing.stderr) == (1, True)


def test_uuids_without_dashes_are_told_from_ids_of_clients():
    """The kind of 32 digits is that of a client's ID; the bits of a random UUID are noted, and how many have them."""
    client, v1 = "C0A8F001103E214D29547ACFD6E30000", "0156F7E71C361B21BC024CCDBE00000000"
    random = "74b158caddb3498fb0a99eec1c6197ae"
    report = msgid.audit.audit_ids([random, random.upper(), "00" + random, client, v1])
    kinds = {(kind, origin): rows for kind, origin, rows in report.kinds}
    assert kinds["v0-client-unique", "may be a UUID"] == 3
    assert kinds["v0-client-unique", None] == 1
    assert [note for note in report.notes if note.startswith("3 of 4 version-0 IDs may be UUIDs")]
    assert not any("UUID" in note for note in msgid.audit.audit_ids([client]).notes)
    assert [msgid.parse(id).may_be_uuid for id in (random, client)] == [True, False]


def test_ids_of_one_node_that_do_not_fit_into_memory_are_refused_in_one_line(monkeypatch):
    """The words of a node are passed to its rules together; the error says how much memory they take."""
    from msgid.audit import duck

    monkeypatch.setattr(duck, "_GROUPED", 1 << 20)
    words = "one node has 300 rows of IDs that do not follow one another, which take 300 MiB"
    with pytest.raises(OSError, match=words) as error:
        audit.audit_ids(ids(*((second, 64 * second) for second in range(300))), memory="256MiB")
    assert "\n" not in str(error.value)


def test_lists_of_rows_are_those_of_the_finding_whatever_the_names_of_the_columns_are():
    """A column may have the name of a part of a query, and an orphan is a row, not all rows of its ID."""
    names = ["t", "whole", "log", "off", "k0", "msgid_log", "value", "key", "content", "place"]
    table = pa.table({"pos": [0, 0], **{name: ["x", "x"] for name in names}})
    rows = audit.audit_table(table, id=None, offset="pos", source=[], content=[]).rows_of("duplicate_messages")
    assert [row["t"] for row in rows.to_pylist()] == ["x", "x"]
    child = str(msgid.derive_id(V1, "bill"))
    table = pa.table({"id": [child, child, V1], "parent": [V1[:-1] + "8", V1, None], "n": [1, 2, 3]})
    report = audit.audit_table(table, parent="parent")
    assert report.rows_of("orphan_ids")["n"].to_pylist() == [1]
