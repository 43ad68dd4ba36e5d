"""`msgid.audit.compare`: the messages that were sent and did not land, by position and by ID."""

import itertools
import json
import random
from collections import Counter, namedtuple
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from helpers.commands import invoke
from helpers.strategies import share_of_examples
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid.kafka import Record

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
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


def test_logs_of_sent_have_their_own_ends():
    """The page shows the faults of a log in all of its sent messages; a log without faults is left out."""
    sent = pa.table({"source": [*"aaab"], "offset": [3, 5, 9, 1]})
    report = audit.compare(sent, pa.table({"source": [*"abb"], "offset": [5, 1, 1]})[:2], **PLACES)
    assert {name: tuple(log) for name, log in report.sent_logs.items()} == {"a": (3, 3, 9)}
    assert audit.compare(["a"], ["b"]).sent_logs == {}


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


IDS = [V1[:-1] + digit for digit in "789A"]
ROWS = {"id": IDS, "offset": [1, 2, 3, 4]}


def written(folder, name):
    """Return the path of a file, or of a folder, with the rows."""
    table, path = pa.table(ROWS), folder / name
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    elif name.endswith(".csv"):
        path.write_text("id,offset\n" + "".join(f"{id},{n}\n" for id, n in zip(*ROWS.values(), strict=True)))
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        path.mkdir()
        pq.write_table(table[:3], path / "0.parquet")
        pq.write_table(table[3:], path / "1.parquet")
    return path


def polars():
    return pytest.importorskip("polars").DataFrame(ROWS)


def pandas():
    return pytest.importorskip("pandas").DataFrame(ROWS)


def relation():
    import duckdb

    values = ", ".join(f"('{id}', {n})" for id, n in zip(*ROWS.values(), strict=True))
    return duckdb.sql(f'SELECT * FROM (VALUES {values}) t(id, "offset")')


TABLES = {
    "a Parquet file": lambda folder: written(folder, "a.parquet"),
    "its name": lambda folder: str(written(folder, "a.parquet")),
    "an open file": lambda folder: written(folder, "a.parquet").open("rb"),
    "CSV": lambda folder: written(folder, "a.csv"),
    "JSON lines": lambda folder: written(folder, "a.jsonl"),
    "a folder": lambda folder: written(folder, "rows"),
    "several paths": lambda folder: sorted(written(folder, "rows").iterdir()),
    "a pattern": lambda folder: f"{written(folder, 'rows')}/*.parquet",
    "an Arrow table": lambda _: pa.table(ROWS),
    "a dict of columns": lambda _: ROWS,
    "a list of dicts": lambda _: pa.table(ROWS).to_pylist(),
    "dicts one by one": lambda _: iter(pa.table(ROWS).to_pylist()),
    "a frame of Polars": lambda _: polars(),
    "a frame of pandas": lambda _: pandas(),
    "a relation of DuckDB": lambda _: relation(),
    "a reader of batches": lambda _: pa.table(ROWS).to_reader(),
}
LISTS = {
    "texts": lambda _: list(IDS),
    "other spellings": lambda _: [id.lower() for id in IDS],
    "bytes": lambda _: (bytes.fromhex(id) for id in IDS),
    "IDs": lambda _: [msgid.parse(id) for id in IDS],
    "a set": lambda _: set(IDS),
    "an Arrow array": lambda _: pa.array(IDS),
    "a series of pandas": lambda _: pandas()["id"],
    "a series of Polars": lambda _: polars()["id"],
    "lines of a text": lambda folder: [(folder / "ids.txt").write_text("\n".join(IDS)), folder / "ids.txt"][1],
}
OFFSETS = {
    "integers": lambda _: [1, 2, 3, 4],
    "an array of NumPy": lambda _: pytest.importorskip("numpy").array([1, 2, 3, 4]),
    "an Arrow array of integers": lambda _: pa.array([1, 2, 3, 4], pa.uint16()),
    "a series of integers": lambda _: pandas()["offset"],
    "a series of integers of Polars": lambda _: polars()["offset"],
}
POSITION = {"id": "", "offset": "offset"}
ID = {"id": "id", "offset": ""}


@pytest.mark.parametrize(
    ("side", "options"),
    [
        *(pytest.param(side, options, id=f"{name}, {next(iter(options))}")
          for name, side in TABLES.items() for options in (POSITION, ID)),
        *(pytest.param(side, ID, id=name) for name, side in LISTS.items()),
        *(pytest.param(side, POSITION, id=name) for name, side in OFFSETS.items()),
    ],
)  # fmt: skip
def test_sides_of_each_kind_are_equal(side, options, tmp_path):
    """A side of each kind is the table of its rows, on both sides; one row less is one lost message."""
    table = pa.table(ROWS)
    assert audit.compare(side(tmp_path), table, **options, sent_columns=options).findings == []
    assert [one.count for one in audit.compare(table[:3], table, **options).findings] == [1]
    report = audit.compare(table, side(tmp_path.joinpath("again").mkdir() or tmp_path / "again"), **options)
    assert (report.findings, report.sent, report.rows) == ([], 4, 4)


class Frame:
    """A table of an unknown package, which iterates over the names of its columns."""

    columns = ("id",)

    def __iter__(self):
        return iter(self.columns)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (Frame(), TypeError, "table must be a table"),
        ([object()], TypeError, "sent must be a path, a table or an iterable of IDs or positions, got an item"),
        ([V1, 5], TypeError, "sent must have IDs alone or positions alone, got 5 among IDs"),
        ([V1, 0.5], TypeError, "got an item 0.5"),
        ([5, V1], TypeError, "among positions"),
        ([{"id": V1}, V1], TypeError, "got an item"),
        ([[V1]], TypeError, "got an item"),
        (["pyproject.toml"], TypeError, "got the names of files: pass pathlib.Path objects for files"),
        (True, TypeError, "sent must be a path"),
    ],
)
def test_value_that_is_not_a_table_and_not_ids_is_refused(value, error, words, monkeypatch):
    """Its columns, or its text, are never taken for IDs."""
    monkeypatch.chdir(__file__.partition("tests")[0])
    with pytest.raises(error, match=words):
        audit.compare(value, [V1])


@pytest.mark.parametrize(
    ("sent", "columns", "hint"),
    [
        ({"order_id": ["a"]}, None, "--sent-column id=order_id"),
        (
            {"order_id": ["a"], "x": [1]},
            {"id": "order"},
            r"sent_columns={'id': 'order_id'}, or --sent-column id=order_id",
        ),
        ({"id": ["a"], "number": [1]}, {"offset": "n"}, "--sent-column offset="),
    ],
)
def test_unknown_column_of_sent_is_refused_with_the_option_that_names_it(sent, columns, hint, tmp_path):
    """Before the rows of either side are read: the table is a file that cannot be read to its end."""
    (tmp_path / "landed.csv").write_text('id\n"open')
    with pytest.raises(ValueError, match=f"cannot compare sent: .*{hint}"):
        audit.compare(sent, tmp_path / "landed.csv", sent_columns=columns)


def test_limits_and_zones_are_those_of_an_audit(tmp_path):
    """`memory`, `temp_dir` and `timezone` are options of a comparison and of a digest; an unknown option is refused."""
    sent = {"offset": [1, 2], "timestamp": ["2026-01-01 00:00:00", "2026-01-01 00:01:00"]}
    options = {"memory": "300MiB", "temp_dir": str(tmp_path), "timezone": "+01:00"}
    report = audit.compare(sent, {"offset": [1]}, **options)
    assert report.complete_until == datetime(2025, 12, 31, 23, 1, tzinfo=timezone.utc)
    with pytest.raises(ValueError, match="pass timezone='UTC'"):
        audit.compare(sent, {"offset": [1]})
    pytest.importorskip("xxhash")
    assert audit.digest(sent, **options)["last_time"].to_pylist() == [report.complete_until]
    with pytest.raises(ValueError, match="memory must be"):
        audit.digest(sent, memory=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'holes'"):
        audit.compare(sent, sent, holes="markers")
    del report
    assert [*tmp_path.iterdir()] == []


def test_rows_of_a_check_are_those_of_its_table(tmp_path):
    """Lost rows have the columns of sent, changed ones those of both sides, and others those of the table."""
    sent = pa.table({"offset": [1, 2, 3, 3], "body": ["a", "b", "c", "d"], "by": ["x"] * 4})
    landed = pa.table({"offset": [2, 2, 3, 9], "body": ["b", "b", "C", "e"], "at": [5, 6, 7, 8]})
    report = audit.compare(sent, landed, offset="offset", content="body")
    expected = {
        "lost_messages": [{"offset": 1, "body": "a", "by": "x"}],
        "duplicate_messages": [{"offset": 2, "body": "b", "at": 5}, {"offset": 2, "body": "b", "at": 6}],
        "extra_messages": [{"offset": 9, "body": "e", "at": 8}],
    }
    for check, rows in expected.items():
        assert sorted(report.rows_of(check).to_pylist(), key=str) == rows
    changed = report.rows_of("changed_messages")
    assert changed.column_names == ["sent_offset", "sent_body", "sent_by", "table_offset", "table_body", "table_at"]
    assert sorted(changed["sent_body"].to_pylist()) == ["c", "d"]
    assert sorted(changed["table_body"].to_pylist(), key=str) == ["C", None]
    report.write_rows("lost_messages", tmp_path / "lost.csv")
    assert (tmp_path / "lost.csv").read_text() == "offset,body,by\n1,a,x\n"
    report.write_rows("changed_messages", tmp_path / "changed.parquet")
    assert pq.read_table(tmp_path / "changed.parquet").num_rows == 2
    with pytest.raises(ValueError, match="late_messages"):
        report.rows_of("late_messages")


def test_rows_of_ids_are_found_by_their_value():
    """Another spelling is the same message, and the row is shown as it stands in its table."""
    report = audit.compare(["a", V1.lower()], {"id": [V1, V1, "b"], "n": [1, 2, 3]})
    rows = {check: report.rows_of(check).to_pylist() for check in ("lost_messages", "duplicate_ids", "extra_messages")}
    assert rows["lost_messages"] == [{"id": "a"}]
    assert sorted(rows["duplicate_ids"], key=str) == [{"id": V1, "n": 1}, {"id": V1, "n": 2}]
    assert rows["extra_messages"] == [{"id": "b", "n": 3}]


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


@share_of_examples(15)
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
    for fault, check, side in (("lost", "lost_messages", sent), ("extra", "extra_messages", landed)):
        rows = Counter((row["source"], row["offset"], row["body"]) for row in by_place.rows_of(check).to_pylist())
        assert rows == Counter((*key, body) for key, body in side if (fault, key) in model)


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
        (pa.array([[1], [2]]), pa.array([["1"], ["2"]])),
    ],
)
def test_contents_of_other_kinds_are_refused(sent, table):
    """Spark and Arrow would compare them by other rules."""
    sides = [pa.table({"offset": [1, 2], "content": one}) for one in (sent, table)]
    with pytest.raises(
        ValueError, match=r"content must have one type on both sides, got 'content' of .* and of .*; cast"
    ):
        audit.compare(*sides)


LISTS_OF_LISTS = pa.list_(pa.list_(pa.int64()))
STRUCT = pa.struct({"a": pa.int64(), "b": pa.string()})


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.list_(pa.int64()), [None, [], [None], [0], [None, None], [0, None], [None, 0]]),
        (LISTS_OF_LISTS, [None, [], [[]], [None], [[None]], [[], []], [[], None]]),
        (pa.list_(pa.string()), [None, [], [""], [None], ["NULL"], ["a", "b"], ["a, b"]]),
        (STRUCT, [None, {"a": None, "b": None}, {"a": 0, "b": None}, {"a": None, "b": ""}, {"a": 0, "b": ""}]),
        (pa.map_(pa.string(), pa.int64()), [None, [], [("", None)], [("", 0)]]),
        (pa.decimal128(38, 2), [None, Decimal("0.00"), Decimal("-0.01"), Decimal("-1"), Decimal(1 << 70)]),
        (pa.decimal128(9, 2), [None, Decimal("0.00"), Decimal("-0.01"), Decimal("-1")]),
        (pa.string(), [None, "", "\0", "0", "NULL"]),
        (pa.binary(), [None, b"", b"\0", b"\0\0"]),
        (pa.float64(), [None, 0.0, float("nan"), float("inf")]),
        (pa.bool_(), [None, False, True]),
        (pa.int64(), [None, 0, -1, 1 << 62]),
    ],
    ids=str,
)
def test_contents_that_resemble_each_other_differ(type, values):
    """NULL, empty values and zeros are different contents; DuckDB gives some of them one hash."""
    pairs = list(itertools.permutations(values, 2))
    sides = [
        pa.table({"offset": range(64 * len(pairs))[::64], "content": pa.array([pair[side] for pair in pairs], type)})
        for side in (0, 1)
    ]
    assert [finding.count for finding in audit.compare(*sides).findings] == [len(pairs)]


def maps(*entries):
    """Maps, two of them equal."""
    return pa.array([[*entries[0]]] * 2, pa.map_(pa.string(), pa.int64()))


def test_contents_of_one_kind_are_compared_by_value():
    """The width of integers, the scale of decimals and the encoding of text do not matter; columns pair by place."""
    pairs = [
        (pa.array([1, 2], pa.int8()), pa.array([1, 2])),
        (pa.array([Decimal("1.5")] * 2), pa.array([Decimal("1.50")] * 2)),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array([b"a", b"b"])),
        (pa.array([1, 2], pa.timestamp("ms")), pa.array([1_000, 2_000], pa.timestamp("us"))),
        (pa.nulls(2), pa.nulls(2, pa.int64())),
        (pa.array([[1], [2]], pa.list_(pa.int32())), pa.array([[1], [2]], pa.list_(pa.int64()))),
        (pa.array([-0.0, float("nan")]), pa.array([0.0, float("nan")])),
        (maps([("a", 1), ("b", 2)]), maps([("b", 2), ("a", 1)])),
    ]
    sent = pa.table([pa.array([1, 2]), *(pair[0] for pair in pairs)], ["offset", *"hgfedcba"])
    table = pa.table([pa.array([1, 2]), *(pair[1] for pair in pairs)], ["offset", *"stuvwxyz"])
    columns = {"content": list("stuvwxyz"), "sent_columns": {"offset": "offset", "content": list("hgfedcba")}}
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
