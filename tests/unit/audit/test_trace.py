"""The story of one message: where it landed, who handled it, and its outputs."""

import base64
import csv
import gzip
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from uuid import UUID

import pytest
from helpers.deliveries import ROCKETMQ
from helpers.vector_files import FOLDER

import msgid
from msgid import audit, iggy
from msgid.errors import InvalidMessageId
from msgid.processing import Message, Processor, SqliteStore

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

OWN = "0156F7E71C361B21BC024CCDBE00000007"
"""The ID of the parcel, which has an ID of its own in a header."""
START = 1_700_000_000


def place_id(offset):
    """Return the ID of a record without an ID of its own."""
    return str(msgid.position_id("kafka:kafka/orders/1", offset, START + offset))


def record(offset, value, *headers, topic="orders", partition=1, at=None):
    """Return a row of Spark's Kafka source."""
    moment = datetime.fromtimestamp(at or START + offset, timezone.utc)
    held = [{"key": name, "value": content} for name, content in headers]
    return {"topic": topic, "partition": partition, "offset": offset, "timestamp": moment, "key": b"shop 5",
            "value": value, "headers": held}  # fmt: skip


def write(path, rows):
    """Write Kafka rows."""
    import pyarrow.parquet as pq

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    fields = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(),
              "timestamp": pa.timestamp("us", "UTC"), "key": pa.binary(),
              "value": pa.binary(), "headers": pa.list_(header)}  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), path)


FILES = ("orders.parquet", "parcels.csv")


def ship(state, message, context):
    """Make a parcel of an order."""
    context.publish({"parcel": message.body}, "parcels")
    return (state or 0) + 1


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A shop: Kafka rows with a redelivery, a dead letter and its redrive, a lost message, a processor, its outputs."""
    monkeypatch.chdir(tmp_path)
    own = ("message_id", OWN.lower().encode())
    write("orders.parquet", [
        record(699, b"first"),
        record(702, b"parcel", own),
        record(703, b"plain"),
        record(704, b"parcel", own),
        record(704, b"PARCEL", own),
        record(9, b"parcel", own, ("error", b"TypeError: no address"), topic="orders.dead", at=START + 800),
        record(900, b"parcel", own),
    ])  # fmt: skip
    published = []
    processor = Processor(SqliteStore("states.db"), ship, published.extend, name="shipping")
    processor.handle(Message(OWN, "shop 5", "parcel"))
    with open("parcels.csv", "w", encoding="utf-8") as file:
        print("id,content", f"{published[0].id},box", sep="\n", file=file)
    return processor


def story(id, /, *inputs, **options):
    """Return the story as lines without their times, and the notes."""
    from msgid.audit import trace

    found = trace(id, list(inputs), **options)
    return [f"{event.kind}: {event.text} [{event.evidence}]" for event in found.events], found.notes


def test_story_of_a_parcel_line_by_line(shop):
    """The parcel was redelivered, changed once, was a dead letter, was sent again, was handled, and has an output."""
    from msgid.audit import trace

    lines, notes = story(OWN, "orders.parquet", "parcels.csv", store=SqliteStore("states.db"))
    rows = "[orders.parquet row"
    assert [line.replace(f"{Path.cwd()}/", "") for line in lines] == [
        f"born: {OWN}: node 56:f7:e7:1c:36:1b (mac), pid 8636, sequence 7 [the ID]",
        f"position: in kafka:kafka/orders/1 at offset 702 {rows} 1]",
        f"redelivered: in kafka:kafka/orders/1 at offset 704 {rows} 3]",
        f"again: landed again in kafka:kafka/orders/1 at offset 704; CONTENTS DIFFER from its first row {rows} 4]",
        f"dead letter: TypeError: no address; in kafka:kafka/orders.dead/1 at offset 9 {rows} 5]",
        f"redelivered: after the dead letter, in kafka:kafka/orders/1 at offset 900 {rows} 6]",
        "handled: by shipping, key 'shop 5', made version 1 of its state [store, handler shipping]",
        f"output: output 0, {msgid.derive_id(OWN, 'output 0')}, landed [parcels.csv]",
    ]
    assert notes == []
    assert trace(OWN, ["orders.parquet"]).exists


@pytest.mark.parametrize(
    "id", [OWN, OWN.lower(), f"0x{OWN}", bytes.fromhex(OWN), UUID(OWN[2:]), str(UUID(OWN[2:])), OWN[2:].lower(),
           "orders/1:702", msgid.parse(OWN)],
)  # fmt: skip
@pytest.mark.usefixtures("shop")
def test_message_is_found_by_any_form_of_its_id(id):
    """Each form gives the same positions and the entry of the processor."""
    lines, _ = story(id, "orders.parquet", store=SqliteStore("states.db"))
    kinds = [line.partition(":")[0] for line in lines if not line.startswith("born")]
    assert kinds == ["position", "redelivered", "again", "dead letter", "redelivered", "handled"]


@pytest.mark.parametrize("type", ["VARCHAR", "BLOB", "UUID", "lower"])
def test_message_is_found_in_any_stored_form(tmp_path, type):
    """A column of text, of bytes or of UUIDs has the message and its output."""
    import duckdb

    from msgid.audit import trace

    ids = [OWN, str(msgid.derive_id(OWN, "output 3")), "0156F7E71C361B21BC024CCDBE00000008"]
    value = {"VARCHAR": "id", "lower": "lower(id)", "BLOB": "unhex(id)", "UUID": "CAST(substr(id, 3) AS UUID)"}[type]
    path = tmp_path / "ids.parquet"
    duckdb.sql(f"COPY (SELECT {value} AS id FROM (VALUES {', '.join(f'($${id}$$)' for id in ids)}) t(id)) TO '{path}'")
    found = trace(OWN, path)
    assert [event.kind for event in found.events] == ["born", "landed", "output"]
    assert "output 3" in found.events[-1].text


@pytest.mark.usefixtures("shop")
def test_position_and_the_id_of_a_position_find_the_same_row():
    """A record without an ID of its own is found by its position, and by the ID of that position."""
    assert story("orders/1:703", "orders.parquet") == story(place_id(703), "orders.parquet")
    assert story(place_id(703), "orders.parquet")[0][1].startswith("position: in kafka:kafka/orders/1 at offset 703 ")


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("id", ["orders/1:700", place_id(700)])
def test_lost_message_has_its_neighbours(id):
    """The offset is in a missing range, and the rows at its two ends are named."""
    _, notes = story(id, "orders.parquet")
    assert notes[0] == (
        "orders.parquet: offset 700 of kafka:kafka/orders/1: it is missing, with offsets 700 to 701; "
        "699 landed before it, 702 after it"
    )


def test_lost_message_of_a_process_has_its_neighbours(tmp_path):
    """An ID without a position has the IDs of its process before and after it."""
    path = tmp_path / "ids.txt"
    path.write_text(f"{OWN[:-1]}6\n{OWN[:-1]}9\n", encoding="utf-8")
    _, notes = story(OWN, path)
    assert notes[0] == f"{path}: of the same process, it has '{OWN[:-1]}6' before it and '{OWN[:-1]}9' after it"


def test_odd_spelling_is_found_and_named(tmp_path):
    """Mixed letters and white space are found by a second search."""
    path = tmp_path / "ids.csv"
    path.write_text(f"id,content\n {OWN[:20].lower()}{OWN[20:]} ,x\n", encoding="utf-8")
    lines, _ = story(OWN, path)
    assert "spelled ' 0156f7e71c361b21bc024CCDBE00000007 '" in lines[1]


def test_rows_without_a_time_or_with_odd_values_are_found(tmp_path):
    """An export of Kafka rows as CSV has headers as JSON, perhaps not a time, and perhaps an invalid offset."""
    path = tmp_path / "orders.csv"
    headers = json.dumps([["message_id", OWN]]).replace('"', '""')
    path.write_text(f'topic,partition,offset,headers\norders,1,7,"{headers}"\norders,1,?,\norders,1,9,[[\n')
    for id in (OWN, "orders/1:7"):
        lines, _ = story(id, path)
        assert lines[-1].startswith("position: in kafka:kafka/orders/1 at offset 7")
    lines, _ = story("orders/1:9", path)
    assert lines[0].startswith("position: in kafka:kafka/orders/1 at offset 9")


def test_retry_of_rocketmq_and_its_dead_letter(tmp_path):
    """The retry topic is named with its first place; the dead letter with its group."""
    unique, first = "7F0000010000238F000000000001E240", "0A0000010000238F0000000000000007"
    base = {"brokerName": "a", "queueId": 0, "storeTimestamp": (START + 5) * 1000, "body": "x"}
    retry = {"RETRY_TOPIC": "orders", "REAL_TOPIC": "%RETRY%billing", "REAL_QID": "0", "ORIGIN_MESSAGE_ID": first}
    rows = [
        {**base, "topic": "orders", "queueOffset": 7, "offsetMsgId": first,
         "properties": json.dumps({"UNIQ_KEY": unique})},
        {**base, "topic": "orders", "queueOffset": 1, "storeTimestamp": (START + 9) * 1000, "offsetMsgId": "",
         "properties": json.dumps({"UNIQ_KEY": unique, **retry})},
        {**base, "topic": "%DLQ%billing", "queueOffset": 0, "storeTimestamp": (START + 20) * 1000, "offsetMsgId": "",
         "properties": json.dumps({"UNIQ_KEY": unique})},
    ]  # fmt: skip
    import pyarrow.parquet as pq

    path = tmp_path / "rocket.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    for id in (unique.lower(), first):
        lines, _ = story(id, path)
        told = [line.partition(" [")[0] for line in lines if not line.startswith("born")]
        assert told == [
            "position: in rocketmq:a/orders/0 at offset 7",
            f"redelivered: in rocketmq:a/%RETRY%billing/0 at offset 1, first place {first}",
            "dead letter: in %DLQ%billing; in rocketmq:a/%DLQ%billing/0 at offset 0",
        ]


def rows_of_rocketmq(rows):
    """Return recorded rows as a table of the connector."""
    names = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "reconsumeTimes", "body")
    columns = {name: [row[name] for row in rows] for name in names}
    properties = pa.array([list(row["properties"].items()) for row in rows], pa.map_(pa.string(), pa.string()))
    return pa.table({**columns, "properties": properties})


@pytest.mark.parametrize(
    ("kind", "first", "retry"),
    [("first", "orders/0", "%RETRY%billing/0"), ("first in POP mode", "popped/0", "%RETRY%popping_popped/0")],
)
def test_recorded_redelivery_of_rocketmq_has_its_story(tmp_path, kind, first, retry):
    """A push consumer of either mode shows the first topic; the story names the retry topic and the redeliveries."""
    import pyarrow.parquet as pq

    path = tmp_path / "rocket.parquet"
    pq.write_table(rows_of_rocketmq(ROCKETMQ), path)
    redelivered = [row for row in ROCKETMQ if row["kind"] == kind.replace("first", "redelivered")]
    unique = redelivered[0]["properties"]["UNIQ_KEY"]
    lines, _ = story(unique, path)
    sent = next(row for row in ROCKETMQ if row["kind"] == kind and row["properties"]["UNIQ_KEY"] == unique)
    assert lines[1].startswith(f"position: in rocketmq:broker-a/{first} at offset {sent['queueOffset']} [")
    again = next(line for line in lines if f"/{retry} at offset {redelivered[0]['queueOffset']}" in line)
    assert again.startswith("redelivered: ")
    assert f", delivery {redelivered[0]['reconsumeTimes']}" in again


def test_recorded_polls_of_iggy_have_one_story(tmp_path):
    """A message that is polled twice landed again at its one position, and is found by each form of its ID."""
    server = json.loads((FOLDER / "iggy_servers.json").read_text(encoding="utf-8"))["servers"]
    release, server = [*server.items()][-1]
    polls = [gzip.decompress(base64.b64decode(server["plain"][name])) for name in ("poll_0_100_gz", "poll_1_2_gz")]
    polled = [message for poll in polls for message in iggy.decode_poll(poll, server["layout"]).messages]
    rows = [
        {
            "id": message.id_text,
            "source": "iggy:shop/orders/1",
            "offset": message.offset,
            "content": message.payload.hex(),
        }
        for message in polled
    ]
    path = tmp_path / "messages.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    twice = polled[-1]
    for id in (twice.id_text, twice.id_text.upper(), UUID(twice.id_text), UUID(twice.id_text).hex):
        lines, _ = story(id, path)
        told = [line.partition(" [")[0] for line in lines if not line.startswith("born")]
        where = f"in iggy:shop/orders/1 at offset {twice.offset}"
        assert told == [f"position: {where}", f"again: landed again {where}"], release


def test_row_groups_without_the_message_are_not_read(tmp_path):
    """The pages of the other row groups are overwritten: a query that read them would fail."""
    import pyarrow.parquet as pq

    path = tmp_path / "ids.parquet"
    table = pa.table({"id": [f"{OWN[:-3]}{group}{number:02X}" for group in range(5) for number in range(50)]})
    pq.write_table(table, path, row_group_size=50, compression="zstd")
    about = pq.ParquetFile(path).metadata
    ends = [about.row_group(group).column(0) for group in range(1, 5)]
    raw = bytearray(path.read_bytes())
    for column in ends:
        start = column.dictionary_page_offset or column.data_page_offset
        raw[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(raw)
    lines, _ = story(OWN, path)
    assert [line.partition(":")[0] for line in lines] == ["born", "landed"]
    with pytest.raises(ValueError, match="damaged"):
        story(f"{OWN[:-3]}101", path)


def test_dead_letter_of_a_share_group_is_found_by_its_first_place(tmp_path):
    """It does not have an ID: its headers name the place, the deliveries and the reason."""
    about = {"topic": b"orders", "partition": b"1", "offset": b"703", "delivery.count": b"5", "message": b"no address"}
    headers = [(f"__dlq.errors.{name}", value) for name, value in about.items()]
    path = tmp_path / "orders.parquet"
    write(path, [record(703, b"plain"), record(0, None, *headers, topic="dead", partition=0, at=START + 900)])
    lines, _ = story(place_id(703), path)
    assert lines[2].partition("; in ")[0] == (
        "dead letter: no address (deliveries: 5); first place kafka:kafka/orders/1 offset 703"
    )


def test_dead_letter_of_danube_is_found_by_its_first_place(tmp_path):
    """Its attributes name the place and the reason."""
    import duckdb

    attributes = "{'x-original-topic': 'orders', 'x-original-topic-offset': '7', 'x-failure-reason': 'no address'}"
    path = tmp_path / "danube.parquet"
    duckdb.sql(
        f"COPY (SELECT 'orders' AS topic, 7 AS \"offset\", NULL::MAP(VARCHAR, VARCHAR) AS attributes UNION ALL "
        f"SELECT 'dead', 0, MAP {attributes}) TO '{path}'"
    )
    lines, _ = story("orders:7", path, source="topic", offset="offset", id=None)
    assert [line.partition(" [")[0] for line in lines] == [
        "position: in orders at offset 7",
        "dead letter: no address; first place orders offset 7; in dead at offset 0",
    ]


@pytest.mark.usefixtures("shop")
def test_forgotten_message_is_told(shop):
    """Its entry was deleted; the key of its row finds the hash that is kept."""
    store = SqliteStore("states.db")
    shop.handle(Message(place_id(703), "shop 5", "plain"))  # the newest batch is kept
    store.forget(time.time_ns() // 1000 + 1_000_000)
    lines, _ = story(OWN, "orders.parquet", store=store)
    assert [line for line in lines if line.startswith("handled")] == [
        "handled: by shipping, key 'shop 5'; its entry was deleted since: a redelivery is too late "
        "[store, handler shipping]"
    ]


def test_search_that_is_cut_has_a_note(tmp_path):
    """The story of a thousand rows names the first of them, and says that there are more."""
    path = tmp_path / "ids.txt"
    for number, is_cut in ((1_000, False), (1_001, True)):
        path.write_text(f"{'0156F7E71C361B21BC024CCDBE00000007'}\n" * number)
        lines, notes = story("0156F7E71C361B21BC024CCDBE00000007", path)
        assert len(lines) == 1 + 1_000
        assert any("more than 1,000 rows" in note for note in notes) == is_cut


@pytest.mark.usefixtures("shop")
def test_input_that_cannot_be_searched_is_a_note(tmp_path):
    """The other inputs are searched."""
    (tmp_path / "other.csv").write_text("amount\n5\n", encoding="utf-8")
    _, notes = story(OWN, "orders.parquet", "other.csv")
    assert any(note.startswith("not looked at: other.csv: a column named id is missing") for note in notes)
    with pytest.raises(ValueError, match="a column named id is missing"):
        story(OWN, "other.csv")
    with pytest.raises(InvalidMessageId):
        story("", "orders.parquet")


def test_text_that_has_the_id_inside_is_named(tmp_path):
    """A line of a log is not an ID; the message is not found, and the note says why."""
    path = tmp_path / "app.txt"
    path.write_text(f"start\nERROR sent {OWN.lower()} twice\n")
    lines, notes = story(OWN, path)
    assert len(lines) == 1
    assert (
        notes[0]
        == f"{path}: 'ERROR sent {OWN.lower()} twice' contains it: an ID inside other text must be cut out first"
    )


def test_columns_and_logs_that_were_not_looked_at_are_named(tmp_path):
    path = tmp_path / "mid.csv"
    path.write_text(f"message_id,topic,partition,offset\n{OWN},a,0,0\n{OWN},a,0,1.0\n{OWN},a,0,2\n")
    assert (
        f"{path}: its IDs were not looked at, because no column is named id or chosen as the ID" in story(OWN, path)[1]
    )
    missing = f"{path}: offset 1 of kafka:kafka/a/0: it is missing; 0 landed before it, 2 after it"
    assert missing in story("a/0:1", path)[1]
    assert f"{path}: log a/9 is missing; it has kafka:kafka/a/0" in story("a/9:1", path)[1]
    assert not any("column is named id" in note for note in story(OWN, path, id="message_id")[1])


@pytest.mark.parametrize("time", ["1700000000", "2023-11-14 22:13:20"])
def test_time_that_is_not_in_the_story_is_named(tmp_path, time):
    """Seconds in place of milliseconds, and a time without an offset."""
    path = tmp_path / "a.csv"
    path.write_text(f"id,timestamp\n{OWN},{time}\n")
    _, notes = story(OWN, path)
    assert any(note.startswith(f"{path}: the story lacks times: ") and time in note for note in notes)


def test_uuid_tells_its_version_and_time(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n")
    born, landed = audit.trace("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", path).events
    assert (str(born.at), born.text.split(": ")[1]) == ("2022-02-22 19:22:22+00:00", "a UUID of version 7")
    assert landed.kind == "landed"


def test_uuid_without_its_dashes_is_found_in_a_store(tmp_path):
    """The store has the message under the UUID."""
    uuid = "919108f7-52d1-4320-9bac-f847db4148a8"
    store = SqliteStore(tmp_path / "states.db")
    Processor(store, lambda *_: 1, list, name="count").handle(Message(uuid, "k", None))
    (tmp_path / "ids.txt").touch()
    for given in (uuid, uuid.replace("-", ""), uuid.upper()):
        found = audit.trace(given, tmp_path / "ids.txt", store=store)
        assert [event.kind for event in found.events] == ["born", "handled"]


@pytest.mark.usefixtures("shop")
def test_report_does_not_replace_an_input_or_the_store():
    from click.testing import CliRunner

    from msgid.cli import msgid as command

    before = {name: Path(name).read_bytes() for name in ("orders.parquet", "states.db")}
    for name in before:
        done = CliRunner().invoke(
            command, ["trace", OWN, "orders.parquet", "--store", "sqlite:states.db", "--report", name]
        )
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
        assert "--report must not be a file of the input" in done.output
    assert {name: Path(name).read_bytes() for name in before} == before


@pytest.mark.usefixtures("shop")
def test_command_has_the_exit_status_of_what_it_found():
    """0: found. 1: not found. 2: a wrong input, in one line."""
    from click.testing import CliRunner

    from msgid.cli import msgid as command

    def run(*arguments):
        done = CliRunner().invoke(command, ["trace", *arguments])
        return done.exit_code, done.output

    assert run(OWN, "orders.parquet", "--store", "sqlite:states.db")[0] == 0
    code, text = run(OWN, "orders.parquet", "--json")
    assert code == 0
    assert json.loads(text)["events"][1]["kind"] == "position"
    assert run("orders/1:700", "orders.parquet", "--report", "lost.html")[0] == 1
    assert "Not found." in Path("lost.html").read_text(encoding="utf-8")
    Path("damaged.parquet").write_bytes(Path("orders.parquet").read_bytes()[:-100])
    for wrong in (
        (OWN, "missing.parquet"),
        (OWN, "orders.parquet", "--store", "sqlite:missing.db"),
        ("", "orders.parquet"),
        (OWN, "orders.parquet", "--report", "missing/story.html"),
        (OWN, "orders.parquet", "--report", ""),
        (OWN, "orders.parquet", "--store", ""),
        (OWN, "orders.parquet", "--store", "sqlite:damaged.parquet"),
        (OWN, "damaged.parquet"),
        (OWN, "orders.parquet", "--format", "json"),
    ):
        code, text = run(*wrong)
        assert (code, text.count("\n")) == (2, 1), text
    code, text = run("orders/1:700", "orders.parquet", "damaged.parquet")  # the message may be in the second one
    assert (code, "note: not looked at: damaged.parquet" in text) == (2, True)


@pytest.mark.details
@pytest.mark.usefixtures("shop")
def test_stories_of_the_shop_are_the_same_with_a_store_in_postgresql():
    """The address of the database is the option of the command, too."""
    from click.testing import CliRunner

    pytest.importorskip("psycopg")
    from helpers.servers import running_postgres

    from msgid.cli import msgid as command
    from msgid.processing import PostgresStore

    expected = [story(id, *FILES, store=SqliteStore("states.db")) for id in (OWN, place_id(703), "orders/1:700")]
    with running_postgres() as address:
        store = PostgresStore(address)
        Processor(store, ship, lambda outputs: None, name="shipping").handle(Message(OWN, "shop 5", "parcel"))
        told = [story(id, *FILES, store=store) for id in (OWN, place_id(703), "orders/1:700")]
        done = CliRunner().invoke(command, ["trace", OWN.lower(), "orders.parquet", "--store", address])
        store.close()
    assert told == expected
    assert done.exit_code == 0, done.output
    assert "by shipping, key 'shop 5', made version 1 of its state" in done.output
