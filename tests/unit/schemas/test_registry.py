"""The registry: IDs and versions, its file with several writers, and schemas of other registries."""

import itertools
import json
import os
import pickle
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest
from helpers.threads import at_once

from msgid.schemas import (
    IncompatibleSchema,
    InvalidSchema,
    Schema,
    SchemaRegistry,
    check_schema,
    frame,
    from_confluent,
    from_lookup,
)
from msgid.schemas import registry as registry_file

pytest.importorskip("fastavro")
pytest.importorskip("jsonschema_rs")
pytest.importorskip("filelock")

WRITER = """
import sys
from msgid.schemas import SchemaRegistry
path, subject, count = sys.argv[1:]
registry = SchemaRegistry(path, lock_timeout=60)
print("ready", flush=True)
for number in range(int(count)):
    schema = registry.register(subject, f'{{"const": "{subject} {number}"}}')
    print(schema.id, schema.version, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "schemas.json"


def test_ids_are_global_and_versions_a_subjects_own():
    """Both count from 1; a text that equals the newest version is not added again."""
    registry = SchemaRegistry()
    registry.register("other", '{"type": "string"}')
    registry.register("events", "{}")
    registry.register("events", '"long"', "avro")
    assert [(s.id, s.subject, s.version) for s in map(registry.get, (1, 2, 3))] == [
        (1, "other", 1),
        (2, "events", 1),
        (3, "events", 2),
    ]
    assert registry.register("events", '"long"', "avro").id == 3
    assert registry.register("events", "{}").version == 3
    assert registry.subjects() == ["other", "events"]
    assert [registry.get(id) for id in (0, -1, 5, None, True, 1.0)] == [None] * 6


def test_a_registry_of_a_file_has_what_another_one_registered(path):
    """The file holds schemas and compatibilities, in any language; its access rights stay."""
    first = SchemaRegistry(path)
    schema = first.register("événements", "{}")
    path.chmod(0o640)
    first.set_compatibility("événements", "full")
    second = SchemaRegistry(path)
    assert second.get(1) == schema
    assert second.compatibility("événements") == "full"
    assert path.stat().st_mode & 0o777 == 0o640
    assert {file.name for file in path.parent.iterdir()} <= {"schemas.json", "schemas.json.lock"}


def test_get_looks_a_schema_up_by_its_id(path):
    """IDs may have gaps and any order; the next one is larger than all."""
    held = [Schema(7, "s", 1, "json", "{}")._asdict(), Schema(3, "s", 2, "json", "true")._asdict()]
    path.write_text(json.dumps({"schemas": held, "compatibility": {}}))
    registry = SchemaRegistry(path)
    assert (registry.get(3).text, registry.get(7).text, registry.get(1)) == ("true", "{}", None)
    assert registry.register("s", "false")[:3] == (8, "s", 3)


INVALID = [
    json.dumps({"schemas": [Schema(2, "s", 1, "json", text)._asdict()], "compatibility": {}})
    for text in ('{"type": 7}', "not JSON", '{"$schema": "draft-99"}')
]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 5000,
        '{"schemas": []}',
        '{"schemas": [{"x": 1}], "compatibility": {}}',
        "null",
        '{"schemas": [], "compatibility": []}',
        '{"schemas": [], "compatibility": {"s": "transitive"}}',
        '{"schemas": [{"id": "1", "subject": "s", "version": 1, "kind": "json", "text": "{}"}], "compatibility": {}}',
        '{"schemas": [{"id": 1, "subject": "s", "version": 1, "kind": "xml", "text": "{}"}], "compatibility": {}}',
        *INVALID,
    ],
)
def test_a_file_that_is_not_a_registry_is_refused(path, text):
    """The error names the file, and its invalid schema; the file does not change."""
    path.write_text(text)
    with pytest.raises(InvalidSchema, match=r"schemas\.json (is not a schema registry|holds an invalid schema 2: )"):
        SchemaRegistry(path)
    assert path.read_text() == text


def test_register_after_another_writer_keeps_its_schemas(path):
    """The file is read again before each change, so nothing is lost and no ID is shared."""
    first, second = SchemaRegistry(path), SchemaRegistry(path)
    assert first.register("a", "{}").id == 1
    assert second.register("b", "{}").id == 2
    assert first.register("a", "true")[:3] == (3, "a", 2)
    second.set_compatibility("a", "backward")
    with pytest.raises(IncompatibleSchema):
        first.register("a", "false")
    assert (first.get(2), second.get(3)) == (Schema(2, "b", 1, "json", "{}"), first.get(3))
    assert second.register("a", "true").id == 3


def test_reload_reads_what_another_writer_saved(path):
    """Reading methods use the registry in memory until `reload`."""
    reader, writer = SchemaRegistry(path), SchemaRegistry(path)
    writer.register("a", "{}")
    assert reader.get(1) is None
    reader.reload()
    assert reader.get(1).subject == "a"


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_register_whose_save_fails_changes_nothing(path, monkeypatch, call):
    """Memory and file stay as they were, and the next change works."""
    registry = SchemaRegistry(path)
    registry.register("a", "{}")
    before = path.read_bytes()

    def fails(*args):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(registry_file, "os", SimpleNamespace(**{**vars(os), call: fails}))
        for change in (lambda: registry.register("a", "true"), lambda: registry.set_compatibility("a", "full")):
            with pytest.raises(OSError, match="disk full"):
                change()
    assert (registry.get(2), registry.compatibility("a")) == (None, "none")
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir() if file.name.endswith(".tmp")] == []
    assert registry.register("a", "true").id == 2


def test_register_into_a_replaced_file_is_refused(path):
    """An ID that was given out never means another schema."""
    registry = SchemaRegistry(path)
    registry.register("a", "{}")
    path.unlink()
    with pytest.raises(InvalidSchema, match="does not hold schema 1 as before"):
        registry.register("a", "true")
    SchemaRegistry(path).register("b", "{}")
    with pytest.raises(InvalidSchema, match="does not hold schema 1 as before"):
        registry.register("a", "true")


@pytest.mark.parametrize(("subject", "error"), [(None, TypeError), (b"a", TypeError), ("\ud800", ValueError)])
def test_register_of_a_bad_subject_is_refused(path, subject, error):
    """A subject that a file cannot hold is refused before the file is written."""
    registry = SchemaRegistry(path)
    for call in (lambda: registry.register(subject, "{}"), lambda: registry.set_compatibility(subject, "full")):
        with pytest.raises(error, match="subject must be text"):
            call()
    assert not path.exists()


def test_registry_of_a_process_that_was_forked_is_not_changed_by_the_child(path, monkeypatch):
    """A thread of the parent may hold the lock that the child inherits; a copy that is unpickled has its own."""
    registry = SchemaRegistry(path)
    registry.register("s", "{}")
    copy = pickle.dumps(registry)
    monkeypatch.setattr(registry_file, "os", SimpleNamespace(**{**vars(os), "getpid": lambda: -1}))
    for change in (lambda: registry.register("s", "true"), lambda: registry.set_compatibility("s", "full")):
        with pytest.raises(RuntimeError, match="cannot change a SchemaRegistry after a fork"):
            change()
    assert registry.get(1).text == "{}"
    assert pickle.loads(copy).register("s", "true").id == 2


def test_register_while_the_lock_is_held_times_out(path):
    registry = SchemaRegistry(path, lock_timeout=0.1)
    with registry_file._locked(path, 1), pytest.raises(TimeoutError, match=r"cannot lock .*schemas\.json"):
        registry.register("a", "{}")
    assert registry.register("a", "{}").id == 1


@pytest.mark.parametrize("shared", [True, False])
def test_registers_of_many_threads_share_no_id(path, shared):
    """One registry for all threads, or one each: every schema has an ID and a version of its own."""
    one = SchemaRegistry(path, lock_timeout=60)

    def register(thread):
        registry = one if shared else SchemaRegistry(path, lock_timeout=60)
        return [registry.register("s", f'{{"const": "{thread} {n}"}}') for n in range(5)]

    found = list(itertools.chain(*at_once(*(partial(register, thread) for thread in range(4)))))
    assert sorted(schema.id for schema in found) == sorted(schema.version for schema in found) == list(range(1, 21))
    assert len(SchemaRegistry(path).versions("s")) == 20


def writer(path, subject, count):
    command = [sys.executable, "-c", WRITER, str(path), subject, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_process_killed_while_it_writes_leaves_a_whole_file(path):
    """Each schema it reported is there, the lock is free, and another writer, which uses a link, goes on."""
    SchemaRegistry(path)
    link = path.with_name("link.json")
    os.symlink(path, link)
    other = writer(link, "other", 25)
    reported = []
    for turn in range(3):
        process = writer(path, f"killed{turn}", 10_000)
        for _ in range(3 + turn):  # "ready" first
            line = process.stdout.readline().split()
            if len(line) == 2:
                reported.append((int(line[0]), f"killed{turn}", int(line[1])))
        process.kill()
        process.communicate()
        assert len(SchemaRegistry(path).versions(f"killed{turn}")) >= 2 + turn
    out, _ = other.communicate(timeout=120)
    assert other.returncode == 0
    reported += [(int(line.split()[0]), "other", int(line.split()[1])) for line in out.splitlines()[1:]]
    registry = SchemaRegistry(path)
    assert len({id for id, _, _ in reported}) == len(reported) == 25 + 2 + 3 + 4
    assert [registry.get(id)[:3] for id, _, _ in reported] == reported
    assert registry.register("after", "{}").id == max(held["id"] for held in json.loads(path.read_text())["schemas"])


# --- other registries ----------------------------------------------------------------------------------------------


def test_from_lookup_refuses_an_unknown_kind():
    """Another spelling is not Avro in silence."""
    with pytest.raises(ValueError, match="kind must be one of json, avro, got 'Json'"):
        from_lookup({}.get, kind="Json")


def test_from_lookup_finds_schemas_texts_and_unknown_ids():
    """A Schema is compared in subject and version, a text is not; None and LookupError are an unknown ID."""
    held = {1: Schema(1, "s", 4, "json", '{"type": "null"}'), 2: '{"type": "null"}'}
    for lookup in (held.get, held.__getitem__):
        source = from_lookup(lookup)
        assert check_schema(b"null", source, "s", 1, 4, policy="enforce").verdict == "accept"
        assert (
            check_schema(b"null", source, "s", 1, 5, policy="enforce").reason
            == "schema 1 of 's' must have version 5, got 4"
        )
        assert check_schema(b"null", source, "t", 2, 5, policy="enforce").verdict == "accept"
        assert check_schema(b"null", source, "s", 3, policy="enforce").reason == "unknown schema 3"
    assert (
        check_schema(b"\0", from_lookup({1: '"int"'}.get, kind="avro"), None, 1, policy="enforce").verdict == "accept"
    )
    assert check_schema(b"1", from_lookup({1: "{"}.get), None, 1, policy="enforce").reason.startswith(
        "schema 1: invalid"
    )
    with pytest.raises(TypeError, match="a lookup must return a Schema, text or None, got 7"):
        from_lookup(lambda id: 7).get(1)


class Client:
    """A client as confluent_kafka's: an object with ``get_schema``, and errors with an HTTP status."""

    def __init__(self):
        self.calls = []

    def get_schema(self, id):
        self.calls.append(id)
        if id == 404:
            raise HttpError(404)
        if id == 500:
            raise HttpError(500)
        kind = {1: "AVRO", 2: "JSON", 3: "PROTOBUF", 4: "AVRO"}[id]
        return SimpleNamespace(schema_str='"int"' if id != 2 else "{}", schema_type=kind, references=[id] * (id == 4))


class HttpError(Exception):
    def __init__(self, status):
        super().__init__(status)
        self.http_status_code = status


def test_from_confluent_checks_by_the_clients_schema():
    """Found once per ID; what the library does not support is the message's verdict, a failure is the caller's."""
    client = Client()
    source = from_confluent(client)

    def reason(id):
        return check_schema(frame(id, b"\x02"), source, "any", None, policy="enforce", framing="confluent").reason

    assert [reason(1), reason(1)] == [None, None]
    assert client.calls == [1]
    assert reason(2).endswith("not JSON: Expecting value: line 1 column 1 (char 0)")
    assert reason(3) == "schema 3: its type must be AVRO or JSON, got 'PROTOBUF'"
    assert reason(4) == "schema 4: it refers to other schemas, which is not supported"
    assert reason(404) == "unknown schema 404"
    with pytest.raises(HttpError):
        reason(500)
    assert source.get(-1) is source.get(2**32) is None


def test_from_confluent_of_a_function_makes_a_client_per_process():
    """A client usually cannot be pickled; a function can."""
    source = from_confluent(Client)
    assert source.get(1).kind == "avro"
    copy = pickle.loads(pickle.dumps(source))
    assert copy.get(2).kind == "json"
