"""`msgid.audit.compare`: the messages that were sent and did not land, by position and by ID."""

import json
import random
from collections import Counter, namedtuple
from datetime import datetime, timedelta, timezone

import pytest
from helpers.commands import invoke
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid.kafka import Record

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")

V1 = "0156F7E71C361B21BC024CCDBE00000007"
PLACES = {"source": "source", "offset": "offset"}


def named(report):
    return [(one.fault, one.scope, one.offset, one.id) for one in report.differences]


def counts(report):
    return Counter({(one.check, one.scope): one.count for one in report.findings})


def test_lost_changed_repeated_and_extra_messages_are_named():
    """Each fault is a finding with its count, and each message is listed, the lost ones first."""
    sent = pa.table({"id": list("abcde"), "source": ["x", "x", "x", "y", "y"], "offset": [1, 2, 3, 1, 2]})
    landed = pa.table({"id": list("abXeeZ"), "source": ["x", "x", "x", "y", "y", "y"], "offset": [1, 2, 3, 2, 2, 9]})
    report = audit.compare(sent, landed, **PLACES)
    assert named(report) == [
        ("lost", "y", 1, "d"), ("changed", "x", 3, "c"), ("duplicate", "y", 2, "e"), ("extra", "y", 9, "Z"),
    ]  # fmt: skip
    assert [(f.check, f.severity, f.scope, f.count, f.example) for f in report.findings] == [
        ("lost_messages", "error", "y", 1, "offset 1"), ("changed_messages", "error", "x", 1, "offset 3"),
        ("duplicate_messages", "error", "y", 1, "offset 2"), ("extra_messages", "info", "y", 1, "offset 9"),
    ]  # fmt: skip
    assert report.summary == "1 message lost, 1 changed, 1 duplicated, 1 info in 6 rows, compared with 5 sent"


def test_spellings_of_other_identities_are_one():
    """The version byte of version 0 and the case of a UUID do not matter; any other text is itself."""
    broker, uuid = "7F0000010000238F000000000001E240", "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"
    assert audit.compare([broker, uuid, "order"], [f"00{broker.lower()}", uuid.lower(), "order"]).findings == []
    assert named(audit.compare(["order"], ["Order"])) == [
        ("lost", "table", None, "order"),
        ("extra", "table", None, "Order"),
    ]


Metadata = namedtuple("Metadata", "topic partition offset timestamp")
"""The result of a send, as kafka-python and aiokafka return it."""


@pytest.mark.parametrize(
    "sent",
    [
        [("orders", 0, 5), ("orders", 0, 6)],
        iter([("orders", 0, 5), ["orders", 0, 6]]),
        [Metadata("orders", 0, 5, 1), Metadata("orders", 0, 6, 2)],
        [Record.of({"topic": "orders", "partition": 0, "offset": n, "timestamp": n}) for n in (5, 6)],
        {"topic": ["orders"] * 2, "partition": [0] * 2, "offset": ["5", "6"]},
        pa.table({"source": ["kafka:kafka/orders/0"] * 2, "offset": [5, 6], "id": [V1] * 2,
                  "state": ["available"] * 2, "payload": [b""] * 2, "timestamp": [5, 6]}),
    ],
)  # fmt: skip
def test_positions_of_a_producer_have_many_forms(sent):
    """Tuples, records, the metadata of clients and tables name the same messages."""
    landed = {"topic": ["orders"], "partition": [0], "offset": [5]}
    assert named(audit.compare(sent, landed))[0][:3] == ("lost", "kafka:kafka/orders/0", 6)


def test_content_of_rows_of_kafka_is_compared():
    """Also if the column has not the name that Spark's source gives it."""
    sides = [{"topic": ["t"], "partition": [0], "offset": [5], "content": [text]} for text in "ab"]
    assert [one.check for one in audit.compare(*sides).findings] == ["changed_messages"]


def test_offsets_alone_are_those_of_one_log():
    import numpy as np

    landed = pa.table({"offset": [1, 2, 4]})
    for sent in (range(1, 5), np.arange(1, 5), pa.array([1, 2, 3, 4])):
        assert named(audit.compare(sent, landed, offset="offset")) == [("lost", "log", 3, None)]


@pytest.mark.parametrize(
    ("sent", "landed", "columns", "error", "words"),
    [
        (5, [], {}, TypeError, "sent must be a path, a table or an iterable"),
        (b"abc", [], {}, TypeError, "sent must be a path"),
        (None, [], {}, TypeError, "sent must be a path"),
        ([("a", 1), V1], [], {}, TypeError, "IDs alone or positions alone"),
        ([V1], pa.table({"offset": [1]}), {"offset": "offset"}, ValueError, "got IDs and positions"),
        ([("a", 1)], [V1], {}, ValueError, "got positions and IDs"),
        ([V1], pa.table({"x": [1]}), {}, ValueError, "cannot compare table: a column named id is missing"),
        ([V1], [V1], {"sent_columns": {"key": "x"}}, ValueError, "sent_columns must name"),
        ([V1], [V1], {"max_messages": -1}, ValueError, "max_messages"),
        ("/no/such/file", [V1], {}, FileNotFoundError, "no file"),
    ],
)  # fmt: skip
def test_a_side_that_cannot_be_compared_is_one_clear_error(sent, landed, columns, error, words):
    with pytest.raises(error, match=words):
        audit.compare(sent, landed, **columns)


def test_sides_without_rows_are_compared():
    """An empty list fits IDs and positions."""
    assert audit.compare([], []).findings == []
    assert counts(audit.compare([], {"id": [V1]})) == {("extra_messages", "table"): 1}
    empty = pa.table({"source": pa.array([], pa.string()), "offset": pa.array([], pa.int64())})
    assert counts(audit.compare([("a", 1)], empty, **PLACES)) == {("lost_messages", "a"): 1}
    assert counts(audit.compare([], pa.table({"offset": [1]}), offset="offset")) == {("extra_messages", "log"): 1}


def test_rows_without_a_position_or_an_id_are_findings_and_not_compared():
    """NULL is not a message. Such a row of sent may be a loss; one of the table stands for no other message."""
    report = audit.compare(["a", None, ""], ["a", None])
    assert counts(report) == {("uncompared_messages", "sent"): 2, ("uncompared_messages", "table"): 1}
    assert [one.severity for one in report.findings] == ["error", "warning"]
    why = "1 finding of severity error: 2 uncompared_messages in sent (without a valid ID)"
    assert report.failure() == why
    assert report.failure(allow={"uncompared_messages": 3}) is None
    report = audit.compare(pa.table({"offset": ["1", "2", "x"]}), pa.table({"offset": [1, 2]}), offset="offset")
    assert report.failure() == why.replace("2", "1").replace("ID", "offset or source")
    for text in (str(report), report.to_json(), report.to_html(), report.to_openmetrics()):
        assert "uncompared_messages" in text


@pytest.mark.parametrize("offset", [-1, 2**48, 2**63, 2**70])
def test_listed_offset_that_is_out_of_range_is_not_compared(offset):
    """An integer that Arrow cannot hold is as invalid as a negative one."""
    for sent, landed in (([1, offset], [1]), ([("a", 0, 1), ("a", 0, offset)], [("a", 0, 1)])):
        report = audit.compare(sent, landed)
        assert counts(report) == {("uncompared_messages", "sent"): 1}
        assert audit.compare(None, None, digests=(audit.digest(sent), audit.digest(landed))).failure() is not None


@pytest.mark.parametrize("digests", [False, True])
def test_table_is_complete_until_the_first_row_that_is_not_compared(digests):
    """Such a row may be a lost message; the digest of the rows without a place does not show all their times."""
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    times = [at + timedelta(minutes=n) for n in range(4)]
    columns = {"offset": "offset", "timestamp": "time"}
    sent, landed = pa.table({"offset": ["0", "1", "x", "3"], "time": times}), pa.table({"offset": [0, 1, 3]})
    made = [audit.digest(side, offset="offset") for side in (sent, landed)]
    sent_columns = {"sent_columns": columns, "digests": made if digests else None}
    report = audit.compare(sent, landed, offset="offset", **sent_columns)
    assert report.complete_until == (None if digests else times[2])
    assert counts(report) == {("uncompared_messages", "sent"): 1}
    untimed = sent.set_column(1, "time", pa.array([*times[:2], None, times[3]]))
    assert audit.compare(untimed, landed, offset="offset", **sent_columns).complete_until is None


def test_contents_are_compared_if_both_sides_have_them():
    """Without them, the report says that changed messages are not looked for."""
    sent, landed = pa.table({"offset": [1, 2], "body": ["a", "b"]}), pa.table({"offset": [1, 2], "value": ["a", "B"]})
    report = audit.compare(sent, landed, offset="offset", content="value",
                           sent_columns={"offset": "offset", "content": "body"})  # fmt: skip
    assert named(report) == [("changed", "log", 2, None)]
    assert report.not_checked == []
    report = audit.compare(sent, landed, offset="offset", content="value")
    assert report.findings == []
    assert report.not_checked == [("changed_messages", "without content on both sides")]
    numbers = pa.table({"offset": [1, 2], "value": [1, 2]})
    with pytest.raises(ValueError, match="content must have one type on both sides"):
        audit.compare(numbers, landed, offset="offset", content="value")


def test_time_until_which_the_table_is_complete_is_that_of_the_first_lost_message():
    """Without a loss, it is the last time of the sent messages."""
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    sent = pa.table({"offset": range(9), "time": [at + timedelta(minutes=n) for n in range(9)]})
    landed = sent.filter(pa.array([n not in (5, 7) for n in range(9)]))
    columns = {"offset": "offset", "timestamp": "time"}
    assert audit.compare(sent, landed, **columns).complete_until == at + timedelta(minutes=5)
    assert audit.compare(sent, sent, **columns).complete_until == at + timedelta(minutes=8)
    assert audit.compare(range(9), landed, **columns).complete_until is None
    ids = list(msgid.Generator(pid=1, clock=at.timestamp).generate_batch(3).hex())
    assert audit.compare(ids, ids).complete_until == at


def test_lists_are_bounded_and_the_findings_count_all():
    """The lost messages come first."""
    report = audit.compare(range(100), pa.table({"offset": range(50, 150)}), offset="offset", max_messages=3)
    assert [one.offset for one in report.differences] == [0, 1, 2]
    assert [one.count for one in report.findings] == [50, 50]
    assert report.notes == ["The report lists 3 of 100 messages; the findings count all."]


def faults_of(sent, landed):
    """The faults by a plain model: messages are (key, content), and a key may be there several times."""
    found = Counter()
    for key in {key for key, _ in (*sent, *landed)}:
        there, here = [c for k, c in sent if k == key], [c for k, c in landed if k == key]
        if not here or not there:
            found["extra" if here else "lost", key] = 1
        elif set(here) != set(there):
            found["changed", key] = 1
        elif len(here) > len(there):
            found["duplicate", key] = len(here) - len(there)
    return found


MESSAGES = st.lists(st.tuples(st.tuples(st.sampled_from("xy"), st.integers(0, 6)), st.sampled_from("AB")), max_size=12)


@given(sent=MESSAGES, landed=MESSAGES)
def test_faults_are_those_of_a_plain_model(sent, landed):
    """By position with the ID as content, and by ID."""

    def table(messages):
        return {"source": [k[0] for k, _ in messages], "offset": [k[1] for k, _ in messages],
                "body": [c for _, c in messages], "id": [f"{k[0]}{k[1]}" for k, _ in messages]}  # fmt: skip

    def typed(columns):
        types = {"source": pa.string(), "offset": pa.int64(), "body": pa.string(), "id": pa.string()}
        return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})

    model = faults_of(sent, landed)
    by_place = audit.compare(typed(table(sent)), typed(table(landed)), **PLACES, content="body")
    assert Counter({(d.fault, (d.scope, d.offset)) for d in by_place.differences}) == Counter(set(model))
    by_id = audit.compare(typed(table(sent)), typed(table(landed)), content="body",
                          sent_columns={"id": "id", "content": "body"})  # fmt: skip
    assert {(d.fault, d.id) for d in by_id.differences} == {(fault, f"{key[0]}{key[1]}") for fault, key in model}
    totals = Counter()
    for (fault, _), n in model.items():
        totals[fault] += n
    assert sum(f.count for f in by_place.findings) == sum(totals.values()) == sum(f.count for f in by_id.findings)


def test_a_page_and_json_show_the_messages():
    """The lists of the report stand in all of its forms."""
    report = audit.compare([V1, "b<"], [V1])
    assert json.loads(report.to_json())["differences"] == [
        {"fault": "lost", "scope": "table", "offset": None, "id": "b<"}
    ]
    assert "b&lt;" in report.to_html()
    assert "changed_messages (without content on both sides)" in report.to_html()


def test_command_compares_files(tmp_path):
    """`--sent` names a file, `--sent-column` its columns, and `--fail-on` ends with status 3."""
    ids = msgid.generate_batch(30).hex()
    lost = sorted(random.sample(range(30), 3))
    (tmp_path / "acked.txt").write_text("\n".join(ids), encoding="utf-8")
    rows = [ids[n].lower() for n in range(30) if n not in lost]
    (tmp_path / "landed.csv").write_text("\n".join(["id,body", *(f"{id},x" for id in rows)]), encoding="utf-8")
    call = ["audit", f"{tmp_path}/landed.csv", "--sent", f"{tmp_path}/acked.txt"]
    result = invoke([*call, "--json", "--fail-on", "error"])
    assert result.exit_code == 3
    printed = json.loads(result.stdout)
    assert [one["id"] for one in printed["differences"]] == sorted(ids[n] for n in lost)
    (tmp_path / "acked.tsv").write_text("\n".join(["key", *ids]), encoding="utf-8")
    call[-1] = f"{tmp_path}/acked.tsv"
    named = invoke([*call, "--sent-column", "id=key"])
    assert (named.exit_code, named.stdout.splitlines()[-1].split()[:4]) == (0, ["error", "lost_messages", "table", "3"])
    for wrong in (["--sent-column", "id"], ["--landed", "x"]):
        assert invoke([*call, *wrong]).exit_code == 2


def test_ids_in_bytes_of_text_are_that_text():
    """Printable ASCII in a binary column, such as a header of Kafka, is text: in reports, digests and comparisons."""
    texts = [V1, V1[:-1] + "9", "7f0000010000238f000000000001e240", "order-1", None, ""]
    forms = [pa.array(texts), pa.array([one if one is None else one.encode() for one in texts], pa.binary())]
    mixed = [bytes.fromhex(V1), *forms[1].to_pylist()[1:]]
    tables = [pa.table({"id": form}) for form in (*forms, pa.array(mixed, pa.large_binary()))]
    assert len({audit.audit_table(table).to_json() for table in tables}) == 1
    placed = [table.append_column("offset", pa.array(range(len(texts)))) for table in tables]
    assert all(audit.digest(table) == audit.digest(placed[0]) for table in placed)
    for side in tables:
        report = audit.compare(side, tables[0])
        assert counts(report) == {("uncompared_messages", "sent"): 2, ("uncompared_messages", "table"): 2}


@pytest.mark.parametrize(
    ("sent", "table"),
    [
        (pa.array([1, 2]), pa.array([1.0, 2.0])),
        (pa.array([1, 2]), pa.array(["1", "2"])),
        (pa.array([0.5, 2], pa.float32()), pa.array([0.5, 2])),
        (pa.array([1, 2], pa.date32()), pa.array([1, 2], pa.timestamp("s"))),
        (pa.array([1, 2], pa.timestamp("us")), pa.array([1, 2], pa.timestamp("us", "UTC"))),
        (pa.array([True, False]), pa.array([1, 0])),
    ],
)
def test_contents_of_other_kinds_are_refused(sent, table):
    """Spark and Arrow would compare them by other rules."""
    sides = [pa.table({"offset": [1, 2], "content": one}) for one in (sent, table)]
    with pytest.raises(ValueError, match=r"content must have one type on both sides, got .*; cast one of them"):
        audit.compare(*sides)


def test_contents_of_one_kind_are_compared_by_value():
    """The width of integers, the scale of decimals and the encoding of text do not matter; columns pair by place."""
    from decimal import Decimal

    pairs = [
        (pa.array([1, 2], pa.int8()), pa.array([1, 2])),
        (pa.array([Decimal("1.5")] * 2), pa.array([Decimal("1.50")] * 2)),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array([b"a", b"b"])),
        (pa.array([1, 2], pa.timestamp("ms")), pa.array([1_000, 2_000], pa.timestamp("us"))),
        (pa.nulls(2), pa.nulls(2, pa.int64())),
    ]
    sent = pa.table([pa.array([1, 2]), *(pair[0] for pair in pairs)], ["offset", *"edcba"])
    table = pa.table([pa.array([1, 2]), *(pair[1] for pair in pairs)], ["offset", *"vwxyz"])
    columns = {"content": list("vwxyz"), "sent_columns": {"offset": "offset", "content": list("edcba")}}
    assert audit.compare(sent, table, offset="offset", **columns).findings == []


def test_table_is_complete_until_the_first_time_of_a_lost_message():
    """A message that was acknowledged twice counts from its first time, whichever row is the first."""
    times = [datetime(2026, 1, 1, minute, tzinfo=timezone.utc) for minute in (0, 3, 1, 4)]
    sent = pa.table({"offset": [0, 1, 1, 2], "timestamp": times})
    assert audit.compare(sent, pa.table({"offset": [0, 2]})).complete_until == times[2]


def test_report_names_the_largest_lost_ranges_to_read_again():
    """Neighboring lost offsets are one range; the line names three."""
    sent = pa.table({"offset": range(20)})
    landed = pa.table({"offset": [offset for offset in range(20) if offset not in {0, 3, 5, 6, 7, 11, 12}]})
    report = audit.compare(sent, landed, offset="offset")
    assert str(report).splitlines()[1] == "re-read these ranges: log 5 to 7, log 11 to 12, log 0, and 1 other range"


def test_line_of_a_list_that_is_cut_says_so():
    """The ranges that the list does not have may be the largest, and nobody knows their number."""
    landed = pa.table({"offset": [offset for offset in range(20) if offset not in {0, 3, 5, 7, *range(9, 15)}]})
    line = str(audit.compare(range(20), landed, max_messages=4)).splitlines()[1]
    assert line == "re-read these ranges: log 0, log 3, log 5, and others: the report lists 4 of 10 lost messages"
    line = str(audit.compare(range(20), landed, max_messages=1)).splitlines()[1]
    assert line == "re-read these ranges: log 0, and others: the report lists 1 of 10 lost messages"
    line = str(audit.audit_table(landed, max_gaps=2)).splitlines()[1]
    assert line == "re-read these ranges: log 9 to 14, log 3, and others: the report lists 7 of 9 lost messages"
    assert str(audit.compare([*"abcdef"], [], max_messages=2)).splitlines()[1] == "lost: a, b, and 4 others"


def test_line_of_lost_messages_counts_the_rows_that_cannot_be_read():
    """A row whose offset or ID cannot be read may be the message that is missing."""
    told = "; 2 rows that cannot be read may be among these"
    landed = pa.table({"offset": ["0", " 1", "2", "x", "4"]})
    assert str(audit.audit_table(landed)).splitlines()[1] == f"re-read these ranges: log 1, log 3{told}"
    assert str(audit.compare(range(5), landed)).splitlines()[1] == f"re-read these ranges: log 1, log 3{told}"
    assert str(audit.compare(["x", None], ["", None])).splitlines()[1] == f"lost: x{told}"
    assert str(audit.compare(["x", None], [])).splitlines()[1] == "lost: x"


def test_report_of_ids_names_the_first_lost_ones():
    """A message without an offset cannot be read again by its place; the line counts all, whatever the list has."""
    sent = [f"order-{number}" for number in range(9)]
    for landed, lines in ((sent[4:], "and 1 other"), (sent[6:], "and 3 others"), (sent[2:], None)):
        for most in (4, 100):
            line = str(audit.compare(sent, landed, max_messages=most)).splitlines()[1]
            assert line == "lost: " + ("order-0, order-1" if lines is None else f"order-0, order-1, order-2, {lines}")


@pytest.mark.parametrize(
    ("sent", "landed", "is_said"),
    [
        ([("a", 0, 1), ("a", 0, 2)], [("b", 0, 1)], True), (["x", "y"], ["z"], True),
        ([("a", 0, 1)], [("a", 0, 1), ("b", 0, 1)], False), (["x"], [], False), ([], ["z"], False), ([], [], False),
        (["x", None], [None, "y"], True), (["x", None], [None, "x"], False),
        (["x", "x"], ["y", "y", "z"], True), (["x"] * 10, [*"xyyyyyyyyy"], False),
        ([f"a{n}" for n in range(10)], ["a0", *(f"b{n}" for n in range(9))], True),
        ([f"a{n}" for n in range(10)], ["a0", "a1", *(f"b{n}" for n in range(18))], False),
    ],
)  # fmt: skip
def test_sides_with_few_common_messages_are_told(sent, landed, is_said):
    """Logs that are named in two ways look like a loss of all messages: the report says so above its findings."""
    report, told = audit.compare(sent, landed), "At least 9 of 10 compared messages are on one side alone."
    assert (f"lost_messages: {told}" in str(report)) is is_said
    assert any(one.meaning.startswith(told) for one in report.findings) is is_said


KAFKA = {"topic": ["orders"] * 3, "partition": [0, 0, 1], "offset": [0, 1, 0]}


@pytest.mark.parametrize("swapped", [False, True])
def test_sides_name_their_logs_in_one_way(swapped):
    """The prefix of a known table is that of both, if both have as many columns; one log is not one of several."""

    def compared(one, other, **columns):
        return audit.compare(other, one, **columns) if swapped else audit.compare(one, other, **columns)

    renamed = {"t": ["orders"] * 3, "p": ["0", "0", "1"], "n": [0, 1, 0]}
    columns = {"source": ["t", "p"], "offset": "n"}
    given = {**columns, "sent_columns": {"id": ""}} if swapped else {"sent_columns": columns}
    assert compared(renamed, KAFKA, **given).findings == []
    assert compared([("orders", 0, 0), ("orders", 0, 1), ("orders", 1, 0)], KAFKA).findings == []
    for other in (range(3), {"offset": [0, 1, 0]}, {"log": ["orders"] * 3, "offset": [0, 1, 0]}):
        with pytest.raises(ValueError, match="both must name their logs, or neither"):
            compared(other, KAFKA)
    assert {one.count for one in compared([], KAFKA).findings} == {1, 2}
