"""The errors of the library as values."""

import copy
import io
import pickle
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

import msgid
from msgid import danube, iggy
from msgid.processing import MemoryStore, Message, PostgresStore, Processor, SqliteStore
from msgid.schemas import SchemaRegistry

UNSEEN_AVRO = '{"type": "fixed", "name": "OnlyInTheTestOfExtras", "size": 3}'
UNSEEN_JSON = '{"title": "only in the test of extras"}'
"""Schemas that no other test of the process has compiled: a compiled schema is kept and needs no package."""


def test_error_pickled_or_copied_keeps_reason_and_offset():
    """Errors are equal after pickling, with reason and offset."""
    error = msgid.TruncatedMessage("half", 7)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other), other.offset) == (type(error), str(error), 7)


@pytest.mark.parametrize(
    ("extra", "package", "call"),
    [
        ("arrow", "numpy", lambda: msgid.parse_batch([])),
        ("arrow", "numpy", lambda: msgid.generate_batch(1).to_numpy()),
        ("arrow", "pyarrow", lambda: msgid.generate_batch(1).to_arrow()),
        ("arrow", "numpy", lambda: next(iggy.read_tables(io.BytesIO(b"?")))),
        ("arrow", "pyarrow", lambda: next(iggy.read_tables(io.BytesIO(b"?")))),
        ("arrow", "pyarrow", lambda: iggy.decode_table(b"")),
        ("arrow", "pyarrow", iggy.table.schema),
        ("danube", "google.protobuf", danube._message_class.__wrapped__),
        ("schemas", "fastavro", lambda: SchemaRegistry().register("orders", UNSEEN_AVRO, "avro")),
        ("schemas", "jsonschema_rs", lambda: SchemaRegistry().register("orders", UNSEEN_JSON, "json")),
        ("postgres", "psycopg", lambda: PostgresStore("host=none")),
    ],
)
def test_call_without_its_extra_names_the_extra(monkeypatch, extra, package, call):
    """The error of a missing package names the extra that installs it; the packages looked for before it are there."""
    for other in {"numpy", "pyarrow"} - {package}:
        if find_spec(other) is None:
            monkeypatch.setitem(sys.modules, other, ModuleType(other))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install 'msgid\[{extra}\]'$"):
        call()


def keep(state, message, context):
    return state


MISTAKES = {
    "arguments in another order": (
        lambda: Processor(keep, MemoryStore(), print),
        "store must be a store, such as MemoryStore(), got <function keep",
    ),
    "a class of stores": (
        lambda: Processor(MemoryStore, keep, print),
        "store must be a store, such as MemoryStore(), got <class",
    ),
    "a list in place of its method": (
        lambda: Processor(MemoryStore(), keep, []),
        "publish must be a function, got []",
    ),
    "a handler of two arguments": (
        lambda: Processor(MemoryStore(), lambda state, message: state, print),
        "handler must take three arguments (state, message, context), got <function",
    ),
    "a dict as a message": (
        lambda: Processor(MemoryStore(), keep, print).handle({"id": "a"}),
        "message must be a Message, got {'id': 'a'}",
    ),
    "a dict among messages": (
        lambda: Processor(MemoryStore(), keep, print, dead_letter=print).handle_many([Message("a", "k", 1), {}]),
        "message must be a Message, got {}",
    ),
    "a file in a missing folder": (
        lambda: SqliteStore("/no/folder/states.db"),
        "cannot open /no/folder/states.db: unable to open database file",
    ),
    "a path in place of a file": (
        lambda: next(iggy.read_log("segment.log")),
        "file must be a file opened for reading bytes, got 'segment.log'",
    ),
    "milliseconds": (
        lambda: msgid.position_id("orders", 1, 1_700_000_000_000),
        "at must be Unix seconds within the years 1 to 9999, got 1700000000000: milliseconds?",
    ),
    "nanoseconds": (
        lambda: msgid.position_id("orders", 1, 1_700_000_000_000_000_000),
        "got 1700000000000000000: nanoseconds?",
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="paths of Windows")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_of_the_first_hour_is_one_line_that_names_the_argument(mistake):
    """The line quotes the value and names the allowed ones, or the cure."""
    call, words = MISTAKES[mistake]
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert type(caught.value).__name__ in {"TypeError", "ValueError", "OperationalError"}
