"""`msgid.audit.digest`: equal messages give equal digests, and `compare` reads only the blocks that differ."""

import random
from datetime import datetime, timedelta, timezone

import pytest
from helpers.commands import invoke
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")
digests = pytest.importorskip("msgid.audit.digests")
pytest.importorskip("xxhash")

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
PLACES = {"source": "source", "offset": "offset"}
SIZE = 65_536


def queue(rows, logs=3):
    """Messages of some logs with IDs, and with times of one second each."""
    ids = msgid.Generator(node="56:f7:e7:1c:36:1b", pid=7, clock=AT.timestamp, sequence=0).generate_batch(rows).hex()
    return pa.table({
        "source": [f"log {n % logs}" for n in range(rows)],
        "offset": pa.array([n // logs for n in range(rows)], pa.int64()),
        "id": list(ids), "at": [AT + timedelta(seconds=n) for n in range(rows)],
        "body": [b"x" * (n % 50) for n in range(rows)],
    })  # fmt: skip


def changed(table, row, name, value):
    values = table[name].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


def hostile(rows):
    """Messages with IDs that are missing, malformed, or of several spellings, and without offsets, logs and times."""
    ids = queue(rows)["id"].to_pylist()
    broker = "7F0000010000238F000000000001E240"
    uuid = "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"
    ids[:9] = [None, "", "x", "größe", broker, "00" + broker.lower(), "0156F7", uuid, ids[20].upper()]
    table = queue(rows)
    for name, step in (("source", 5), ("offset", 7), ("at", 3), ("body", 4)):
        values = [None if n % step == 0 else value for n, value in enumerate(table[name].to_pylist())]
        table = table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))
    return table.set_column(2, "id", pa.array(ids, pa.string()))


def without(table, *rows):
    return table.filter(pa.array([n not in rows for n in range(table.num_rows)]))


def test_digest_has_one_row_of_64_bytes_per_block():
    """Blocks have 65,536 offsets."""
    made = audit.digest(queue(200_000, 2), **PLACES, timestamp="at", content="body")
    assert made["rows"].to_pylist() == [65_536, 34_464] * 2
    assert made["low"].to_pylist() == [0, 65_536] * 2
    fixed = sum(column.type.bit_width if not pa.types.is_dictionary(column.type) else 32 for column in made.columns)
    assert fixed == 64 * 8
    assert made["form"].unique().to_pylist() == ["offset, id, content"]


@pytest.mark.details
@settings(max_examples=10)
@given(seed=st.integers(0, 1 << 30), parts=st.integers(1, 5), table=st.sampled_from([queue(60), hostile(60)]))
def test_digests_of_parts_merge_in_any_order_to_the_same_bytes(seed, parts, table):
    chance = random.Random(seed)
    order = chance.sample(range(60), 60)
    pieces = [table.take(order[n::parts]) for n in range(parts)]
    chance.shuffle(pieces)
    for columns in ({**PLACES, "timestamp": "at", "content": "body"}, {"source": []}):
        whole = audit.digest(table, **columns)
        merged = audit.merge_digests([audit.digest(piece, **columns) for piece in pieces])
        again = audit.merge_digests([merged])
        sink, other, third = (pa.BufferOutputStream() for _ in range(3))
        for stream, one in ((sink, whole), (other, merged), (third, again)):
            with pa.ipc.new_stream(stream, one.schema) as writer:
                writer.write_table(one.combine_chunks())
        assert sink.getvalue() == other.getvalue() == third.getvalue()


@pytest.mark.parametrize(
    "table",
    [
        changed(queue(60), 9, "id", "another"), changed(queue(60), 9, "body", b""), changed(queue(60), 9, "offset", 99),
        changed(queue(60), 9, "source", "log 9"), without(queue(60), 9), pa.concat_tables([queue(60), queue(60)[9:10]]),
        changed(queue(60), 9, "body", None), queue(60).set_column(2, "id", queue(60)["id"].take([*range(58), 59, 58])),
    ],
)  # fmt: skip
def test_each_change_of_a_message_changes_the_digest(table):
    """The offset, the log, the ID, the content and the number of rows count, and which message has which ID."""
    columns = {**PLACES, "content": "body"}
    assert audit.digest(table, **columns) != audit.digest(queue(60), **columns)


def test_value_that_moves_to_another_column_changes_the_digest():
    """NULL has its place, and each value its end."""
    rows = [("a", None), (None, "a"), ("", "a"), ("a", ""), ("ab", "c"), ("a", "bc"), (None, None), ("", "")]
    made = [
        audit.digest(pa.table({"offset": [1], "x": [x], "y": [y]}), offset="offset", content=["x", "y"])
        for x, y in ((pa.scalar(one, pa.string()) for one in row) for row in rows)
    ]
    assert len({(one["lower"][0].as_py(), one["upper"][0].as_py()) for one in made}) == len(rows)


def test_spelling_of_an_id_does_not_change_the_digest():
    """IDs are hashed by their value: digits in either case, bytes, and the version byte of version 0."""
    broker, uuid = "7F0000010000238F000000000001E240", "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"
    first = pa.table({"id": [broker, uuid, "0156F7E71C361B21BC024CCDBE00000007", "x", "", None], "offset": range(6)})
    second = pa.table({
        "id": [f"00{broker}".lower(), uuid.lower(), "0156f7e71c361b21bc024ccdbe00000007", "x", None, ""],
        "offset": [str(n) for n in range(6)],
    })  # fmt: skip
    assert audit.digest(first, offset="offset") == audit.digest(second, offset="offset")


@pytest.mark.details
def test_comparison_of_digests_names_the_messages_and_reads_their_blocks(tmp_path):
    """One lost, one changed and one extra message: three blocks of each side are read."""
    sent = queue(200_000, 1)
    landed = changed(without(sent, 10_000), 150_000, "id", "another")
    landed = pa.concat_tables([landed, changed(sent[:1], 0, "offset", 300_000)])
    columns = {**PLACES, "timestamp": "at"}
    digests = []
    for name, table in (("sent", sent), ("landed", landed)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=16_384)
        digests.append(audit.digest(tmp_path / f"{name}.parquet", **columns))
        pq.write_table(digests[-1], tmp_path / f"{name}-digest.parquet")
    paths = [tmp_path / "sent.parquet", tmp_path / "landed.parquet"]
    report = audit.compare(*paths, **columns, digests=[tmp_path / f"{n}-digest.parquet" for n in ("sent", "landed")])
    whole = audit.compare(*paths, **columns)
    assert [(one.fault, one.offset) for one in report.differences] == [
        ("lost", 10_000), ("changed", 150_001), ("extra", 300_000)
    ]  # fmt: skip
    assert (report.findings, report.differences) == (whole.findings, whole.differences)
    assert (report.rows, report.sent, report.complete_until) == (whole.rows, whole.sent, whole.complete_until)
    assert max(report.rows_read) <= 2 * 65_536 + 2 * 16_384
    assert report.sent_logs == whole.sent_logs
    assert audit.compare(*paths, **columns, digests=(digests[0], digests[0])).rows_read == (0, 0)
    in_memory = audit.compare(sent, landed, **columns, digests=digests)
    assert in_memory.differences == whole.differences


@pytest.mark.parametrize(
    ("most", "ranges"),
    [(9, [(0, 1), (4, 4), (7, 7), (20, 20)]), (3, [(0, 1), (4, 7), (20, 20)]), (2, [(0, 7), (20, 20)]), (1, [(0, 20)])],
)
def test_blocks_are_read_in_few_ranges_with_the_largest_gaps_between_them(most, ranges):
    """Neighbors are one range. A filter of one condition per block would be a long query."""
    blocks = pa.chunked_array([[number * SIZE for number in (7, 1, 4, 0, 20, 0)]])
    expected = [(first * SIZE, (last + 1) * SIZE - 1) for first, last in ranges]
    assert digests.ranges_of(blocks, most) == expected


def test_many_blocks_that_differ_are_read_exactly(tmp_path):
    """Rows between the blocks of a range are read, and not compared."""
    offsets = [n * 2 * SIZE for n in range(500)]
    for name, held in (("sent", offsets), ("landed", offsets[::2])):
        pq.write_table(pa.table({"offset": held}), tmp_path / f"{name}.parquet")
    digests = [audit.digest(tmp_path / f"{name}.parquet", offset="offset") for name in ("sent", "landed")]
    report = audit.compare(tmp_path / "sent.parquet", tmp_path / "landed.parquet", digests=digests, offset="offset")
    assert [one.offset for one in report.differences] == offsets[1::2]


def test_losses_are_counted_if_the_rows_of_the_queue_are_gone():
    """Without rows the digests show how many messages are lost in which block, and the report says so."""
    sent, landed = queue(600), without(queue(600), 5, 6, 8)
    digests = [audit.digest(side, **PLACES) for side in (sent, landed)]
    for sides in ((None, None), (sent[:0], landed), (sent, landed[:9])):
        report = audit.compare(*sides, digests=digests)
        assert [(one.check, one.scope, one.count, one.example) for one in report.findings] == [
            ("lost_messages", "log 2", 2, "0 to 65535"), ("lost_messages", "log 0", 1, "0 to 65535"),
        ]  # fmt: skip
        assert report.not_checked[0].reason.startswith("rows of the digests cannot be read")
    swapped = audit.digest(changed(queue(600), 5, "id", "x"), **PLACES)
    (only,) = audit.compare(None, landed, digests=(digests[0], swapped)).findings
    assert (only.check, only.count) == ("changed_messages", 1)


def test_markers_of_a_queue_are_told_from_losses_by_its_digest():
    """Holes that both sides have are not a loss, and the loss of a single message beside them is found exactly."""
    offsets = [n for n in range(10_000) if n % 7 and not 700 <= n < 900]
    sent = pa.table({"offset": offsets})
    for lost in (8, 5_000):
        landed = pa.table({"offset": [n for n in offsets if n != lost]})
        digests = [audit.digest(side, offset="offset") for side in (sent, landed)]
        report = audit.compare(sent, landed, offset="offset", digests=digests)
        assert [(one.fault, one.offset) for one in report.differences] == [("lost", lost)]


def test_rows_without_a_place_are_counted():
    """They are in a row of the digest without a log, and the report of a comparison counts them."""
    table = pa.table({"offset": ["1", "x", None, "-1"], "source": ["a", "a", "a", None]})
    made = audit.digest(table, **PLACES)
    assert made.select(["source", "rows", "low"]).to_pylist() == [
        {"source": "a", "rows": 1, "low": 1}, {"source": None, "rows": 3, "low": None},
    ]  # fmt: skip
    report = audit.compare(table, table, **PLACES, digests=(made, made))
    assert [(one.check, one.severity, one.scope, one.count, one.example) for one in report.findings] == [
        ("uncompared_messages", "error", "sent", 3, "without a valid offset or source"),
        ("uncompared_messages", "warning", "table", 3, "without a valid offset or source"),
    ]  # fmt: skip


X = {"offset": [1], "id": ["x"]}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: audit.digest(pa.table({"offset": [1], "x": [0.5]}), offset="offset", content="x"),
            "`content` of a digest must be columns of text, binary or integers, got 'x' of type double",
        ),
        (lambda: audit.merge_digests([pa.table({"a": [1]})]), "a digest must have the columns"),
        (lambda: audit.merge_digests([audit.digest(range(3)), audit.digest(X)]), "digests must have one form"),
        (
            lambda: audit.compare(None, None, digests=(audit.digest(range(3)), audit.digest(X))),
            "must have one form",
        ),
        (lambda: audit.digest(["x"]), "a digest needs offsets: compare IDs alone without digests"),
        (lambda: audit.compare(["x"], X, digests=(audit.digest(X), audit.digest(X)[:0])), "a digest needs offsets"),
    ],
)
def test_wrong_digests_are_one_clear_error(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_empty_tables_have_empty_digests():
    empty, full = audit.digest(queue(60)[:0], **PLACES), audit.digest(queue(60), **PLACES)
    assert empty.num_rows == 0
    assert audit.merge_digests([]).num_rows == 0
    assert audit.merge_digests([empty, full]) == full
    assert audit.compare(None, None, digests=(empty, empty)).findings == []
    assert audit.compare(queue(60), queue(60)[:0], **PLACES, digests=(full, empty)).findings[0].count == 20


@pytest.mark.parametrize("values", [[0.5], [[1]], [{"a": 1}], [True]])
def test_default_content_of_another_type_is_an_error_with_the_cure(values):
    """A column named content is hashed by default. An empty list leaves it out, on each side of a comparison."""
    table = pa.table({"offset": [7], "content": values})
    with pytest.raises(ValueError, match=r"got 'content' of type .*: pass other columns, or an empty list for none"):
        audit.digest(table)
    made = audit.digest(table, content=[])
    assert made == audit.digest([7])
    assert audit.compare(table, table, content=[], digests=(made, made)).findings == []
    report = audit.compare([7, 8], table, content=[], digests=(audit.digest([7, 8]), made))
    assert [(one.fault, one.offset) for one in report.differences] == [("lost", 8)]


def test_digest_of_a_folder_is_that_of_its_rows(tmp_path):
    """A folder is read in parts, also by a comparison."""
    offsets = [pa.array(range(start, start + 70_000)) for start in (0, 70_000)]
    for n, values in enumerate(offsets):
        for side in ("sent", "table")[: 2 - n]:
            (tmp_path / side).mkdir(exist_ok=True)
            pq.write_table(pa.table({"offset": values}), tmp_path / side / f"{n}.parquet")
    sent, table = tmp_path / "sent", tmp_path / "table"
    digests = [audit.digest(side, offset="offset") for side in (sent, table)]
    report = audit.compare(sent, table, offset="offset", digests=digests)
    counts = (report.sent, report.rows, report.counts()["error"], len(report.differences), report.findings[0].count)
    assert counts == (140_000, 70_000, 1, 10_000, 70_000)


def test_command_compares_folders_of_digests(tmp_path):
    """`audit --digests` reads the rows of differing blocks, or counts the losses of a block without the sent rows."""
    for side, lost in (("queue", None), ("landed", 30)):
        rows = pa.table({"offset": [offset for offset in range(40) if offset != lost]})
        pq.write_table(rows, tmp_path / f"{side}.parquet")
        (tmp_path / side).mkdir()
        for day in range(4):
            made = audit.digest(rows.slice(10 * day, 10), offset="offset")
            pq.write_table(made, tmp_path / side / f"{day}.parquet")
    command = ["audit", str(tmp_path / "landed.parquet"), "--offset", "offset", "--fail-on", "error"]
    command += ["--digests", str(tmp_path / "queue"), str(tmp_path / "landed")]
    done = invoke([*command, "--sent", str(tmp_path / "queue.parquet")])
    assert done.exit_code == 3
    assert "lost_messages log 1 offset 30" in " ".join(done.output.split())
    done = invoke([*command, "--allow", "lost_messages=1"])
    assert (done.exit_code, "lost_messages log 1 0 to 65535" in " ".join(done.output.split())) == (0, True)
