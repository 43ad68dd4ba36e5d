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
from msgid.processing import PostgresStore
from msgid.schemas import SchemaRegistry

UNSEEN_AVRO = '{"type": "fixed", "name": "OnlyInTheTestOfExtras", "size": 3}'
UNSEEN_JSON = '{"title": "only in the test of extras"}'
"""Schemas that no other test of the process has compiled: a compiled schema is kept and needs no package."""


def test_error_pickled_or_copied_keeps_reason_and_offset():
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
    with pytest.raises(ImportError, match=rf"needs {package}: pip install 'msgid\[{extra}\]' \("):
        call()
