"""The mistakes of the first hour: each is one line that names the argument, the value and the cure."""

import importlib.util
import re
import sys
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest

import msgid
from msgid import audit, iggy, kafka, rocketmq
from msgid.processing import MemoryStore, Message, PostgresStore, Processor, SqliteStore
from msgid.retention import Cleaner, RetentionPolicy, is_expired
from msgid.schemas import SchemaRegistry

ID = "0156F7E71C361B21BC024CCDBE00000000"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"
RANDOM = UUID("74b158ca-ddb3-498f-b0a9-9eec1c6197ae")
MESSAGE = iggy.Message.new(b"hello", id=1, layout="m45")
ROW = {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1_700_000_000_000}
SINCE = datetime(2026, 3, 1, tzinfo=timezone.utc)


needs_arrow = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("numpy", "pyarrow"))), reason="needs numpy and pyarrow"
)


def keep(state, message, context):
    return state


def processor(**options):
    return Processor(MemoryStore(), keep, print, **options)


PROCESSING = [
    (lambda: Processor(MemoryStore(), keep, []), "publish must be a function, got []"),
    (
        lambda: Processor(MemoryStore(), lambda state, message: state, print),
        "handler must take three arguments (state, message, context), got <function",
    ),
    (lambda: processor(dead_letter=print).handle_many([Message("a", "k", 1), {}]), "message must be a Message, got {}"),
    (
        lambda: Processor(MemoryStore, keep, print),
        "store must be a store, such as MemoryStore(), got <class 'msgid.processing.memory.MemoryStore'>: call it",
    ),
    (lambda: Processor(keep, MemoryStore(), print), "store and handler are swapped"),
    (lambda: Processor(type("Half", (), {"forget_key": keep})(), keep, print), ": read is missing"),
    (lambda: processor(dead_letter=[]), "pass its method dead_letter=letters.append"),
    (lambda: processor(dumps=5), "dumps must be a function, got 5"),
    (lambda: processor(clock=0), "clock must be a function, got 0"),
    (
        lambda: processor(clock=lambda: 1_700_000_000.5),
        "clock must return integers of nanoseconds since 1970, got 1700000000.5: time.time_ns?",
    ),
    (
        lambda: processor(clock=lambda: 1_700_000_000_000),
        "clock must return integers of nanoseconds since 1970, got 1700000000000: milliseconds?",
    ),
    (lambda: processor(keep_outputs="yes"), "keep_outputs must be True or False, got 'yes'"),
    (lambda: Processor(MemoryStore(), keep, lambda: None), "publish must take one argument (outputs), got <function"),
    (lambda: processor().handle_many(Message("a", "k", 1)), "messages must be a list of messages, got Message(id='a'"),
    (lambda: processor().handle({}), "message must be a Message, got {}: Message(id, key"),
    (lambda: processor().history(None), "key must be text, got None"),
    (
        lambda: processor().handle(Message("", "k", 1)),
        "invalid message id '': must be an ID of any version, a UUID or other text, got nothing",
    ),
    (
        lambda: processor().handle(Message("a", "k", 1, 1_700_000_000 * 10**9)),
        "timestamp must be microseconds since 1970, got 1700000000000000000: nanoseconds?",
    ),
    (
        lambda: MemoryStore().forget(1_700_000_000_000),
        "before must be microseconds since 1970, got 1700000000000: milliseconds?",
    ),
    (lambda: SqliteStore(None), "path must be the path of a file, got None"),
    (lambda: SqliteStore("file:states.db"), "path must be the path of a file, not a URL, got 'file:states.db'"),
    (lambda: SqliteStore("states.db", timeout="5"), "timeout must be a number of seconds, got '5'"),
    (lambda: SqliteStore("states.db", timeout=float("inf")), "timeout must be 0 to 86400 seconds, got inf"),
    pytest.param(
        lambda: PostgresStore("gibberish"),
        "conninfo must be a connection string of psycopg, got 'gibberish'",
        marks=pytest.mark.skipif(importlib.util.find_spec("psycopg") is None, reason="needs psycopg"),
    ),
]
IDS = [
    (lambda: msgid.parse(RANDOM), "a UUID is not a message ID, but a derived ID can have it as its parent"),
    (
        lambda: msgid.position_id("orders", 1, 1_700_000_000_000),
        "at must be Unix seconds within the years 1 to 9999, got 1700000000000: milliseconds?",
    ),
    (
        lambda: msgid.derive_id("order-17", "invoice"),
        "for a natural key, parent is a UUID of your own, and name is the key",
    ),
]
MESSAGES = [
    (lambda: next(iggy.read_log("segment.log")), "file must be a file opened for reading bytes, got 'segment.log'"),
    (lambda: next(iggy.read_tables("segment.log")), "file must be a file opened for reading bytes, got 'segment.log'"),
    (lambda: iggy.decode(iggy.encode(MESSAGE, "h64"), "m45"), "the bytes have the layout h64: pass layout='h64'"),
    (lambda: iggy.decode_log(iggy.encode(MESSAGE, "m45"), "h64"), "the bytes have the layout m45: pass layout='m45'"),
    (lambda: iggy.decode("hello"), "data must be bytes, got 'hello'"),
    (lambda: iggy.encode(b"hello", "h64"), "message must be a Message, got b'hello'"),
    (lambda: iggy.Message.new(b"", id=1, headers=[("a", "b")]), "headers must be a mapping of keys to values, got [("),
    (lambda: kafka.Record.from_consumer(None), "a message of a consumer must have topic, got None"),
    (lambda: kafka.Record.of(None), "row must be a mapping of columns to values, got None"),
    (lambda: rocketmq.Record.of(None), "row must be a mapping of columns to values, got None"),
    (
        lambda: kafka.Record.of({**ROW, "timestamp": 1_700_000_000}),
        "timestamp must be milliseconds since 1970, got 1700000000: seconds?",
    ),
    (lambda: iggy.encode_log(None, "h64"), "messages must be a list of messages, got None"),
    (lambda: SchemaRegistry().register("orders", "{"), "invalid schema '{': not JSON"),
]
AUDITS = [
    (lambda: audit.audit_table("orders.parquet"), "got 'orders.parquet'; audit_file reads a file"),
    (
        lambda: audit.audit_table({"id": [ID]}, offset="ofset"),
        "`offset` must be a column of the table, got 'ofset'; it has",
    ),
    (lambda: audit.audit_table({"Topic": ["a"], "offset": [0]}), "pass `source`, such as Topic, or an empty one for"),
    (lambda: audit.audit_ids(ID), f"ids must be an iterable of texts or bytes, or an array, got '{ID}'"),
    (lambda: audit.audit_ids([ID], clock_jump=60), "clock_jump must be a timedelta or text such as '1 day', got 60"),
    (lambda: audit.audit_ids([ID]).failure("fatal"), "must be error, warning or info, got 'fatal'"),
    (lambda: audit.audit_file("no.parquet"), "no file 'no.parquet'"),
    (lambda: audit.audit_file(None), "path must be the path of a file, or an open file, got None"),
    (lambda: audit.audit_file(5), "path must be the path of a file, or an open file, got 5"),
]
RETENTION = [
    (lambda: RetentionPolicy.of({"default_expriy": 5}), "settings must be among default_expiry, topics"),
    (lambda: Cleaner(".", RetentionPolicy(5), layout="zzz"), "layout must be one of"),
    (lambda: Cleaner("/no/folder", RetentionPolicy(5)).clean(), "no folder /no/folder"),
    (lambda: is_expired(SINCE, 10, 5), "timestamp must be an integer of microseconds since 1970, got datetime"),
    (lambda: is_expired(0, "soon", 5), "expiry must be a timedelta or text such as '1 day', of 0 or more, got 'soon'"),
]
OURS = (TypeError, ValueError, FileNotFoundError)


@pytest.mark.skipif(sys.platform == "win32", reason="paths of Windows")
@pytest.mark.parametrize(
    ("call", "words"),
    [*PROCESSING, *IDS, *MESSAGES, *(pytest.param(*case, marks=needs_arrow) for case in AUDITS), *RETENTION],
    ids=lambda value: "" if callable(value) else re.sub(r"\W+", " ", value)[:60],
)
def test_mistake_is_one_line_that_names_the_argument(call, words):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, OURS) or type(caught.value).__name__ == "OperationalError"


class Frame:
    """A value whose `repr` has several lines, as a table's has."""

    def __repr__(self):
        return "  a\n0 b\n"


@needs_arrow
def test_value_of_several_lines_is_quoted_in_one():
    """Tables are such values."""
    with pytest.raises(TypeError, match=r"got a 0 b$"):
        audit.audit_table(Frame())


def test_audit_table_accepts_what_a_user_has_at_hand():
    """IDs as a list, array, series or batch, and rows as dicts, have the report of the table."""
    np, pa, pd = (pytest.importorskip(name) for name in ("numpy", "pyarrow", "pandas"))
    ids = [*msgid.generate_batch(3).hex(), "no ID"]
    expected = audit.audit_table(pa.table({"id": ids})).to_json()
    rows = [{"id": id} for id in ids]
    for table in (ids, tuple(ids), rows, np.array(ids), pa.array(ids), pd.Series(ids), pd.DataFrame(rows), {"id": ids}):
        assert audit.audit_table(table).to_json() == expected
    positions = [{"offset": 0}, {"offset": 2, "id": msgid.parse(ID)}]
    assert audit.audit_table(positions, offset="offset").gaps[0][2:4] == (1, 1)
    assert audit.audit_table([]).rows == 0


@pytest.mark.parametrize("port", [0, 10911])
def test_parse_of_an_id_returns_it(port):
    """The bytes of a broker's ID with port 0 could be a client's; the value keeps its type."""
    for id in (msgid.BrokerOffsetId("127.0.0.1", port, 5), msgid.parse(ID), msgid.parse(CLIENT)):
        assert msgid.parse(id) is id


def test_ascii_bytes_of_a_uuid_are_the_uuid():
    """Other texts of a UUID are texts of their own."""
    ids = [RANDOM, str(RANDOM).upper(), str(RANDOM).encode(), f"{{{RANDOM}}}", RANDOM.urn]
    one = processor()
    assert [one.handle(Message(id, "k", None)).kind for id in ids] == ["new", *["duplicate"] * 2, *["new"] * 2]


def test_record_of_a_broker_has_an_id_with_the_time_of_a_producer_in_seconds():
    """The broker's number is the record's time, so its ID is made. Only `message` refuses it: see `test_kafka`."""
    polled = type("Polled", (), {**ROW, "timestamp": 1_700_000_000})()
    assert kafka.Record.from_consumer(polled).message_id()
    with pytest.raises(msgid.InvalidMessage, match="has the producer sent seconds instead of milliseconds"):
        kafka.Record.from_consumer(polled).message()


def test_a_day_is_a_day_in_each_spelling():
    """A duration is a timedelta, or text with units."""
    for day in (timedelta(days=1), "1 day", "24 hours", "23 hours 60 minutes", "1440 minutes"):
        assert RetentionPolicy(day) == RetentionPolicy(86_400)
