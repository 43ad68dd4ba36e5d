"""Schemas: the registry, what goes with what, and the verdict on a message."""

import io
import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgid import schemas
from msgid.compatibility import incompatibilities
from msgid.schemas import SchemaRegistry, check

JSON_SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
AVRO_SCHEMA = '{"type": "record", "name": "Event", "fields": [{"name": "n", "type": "int"}]}'


def avro(value, schema=AVRO_SCHEMA):
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(json.loads(schema)), value)
    return file.getvalue()


@pytest.fixture
def registry():
    registry = SchemaRegistry()
    registry.register("other", '{"type": "string"}')
    registry.register("events", JSON_SCHEMA)
    registry.register("events", AVRO_SCHEMA, "avro")
    return registry


CASES = {
    "missing": (b'{"n": 1}', None, None, "no schema"),
    "unknown": (b'{"n": 1}', 9, 1, "unknown schema 9"),
    "wrong subject": (b'"text"', 1, 1, "schema 1 is of the subject 'other', not 'events'"),
    "wrong version": (b'{"n": 1}', 2, 2, "schema 2 is version 1 of 'events', not 2"),
    "bad payload": (b'{"n": "x"}', 2, 1, 'payload b\'{"n": "x"}\': data.n must be integer'),
    "no JSON": (b"\xff", 2, 1, "payload b'\\xff': no JSON"),
    "bad Avro": (b"", 3, 2, "payload b'': no Avro of the schema: EOFError"),
    "too much Avro": (avro({"n": 1}) + b"x", 3, 2, "payload b'\\x02x': 1 bytes after the end of the Avro"),
    "good": (b'{"n": 1}', 2, 1, None),
    "good without version": (b'{"n": 1}', 2, None, None),
    "good Avro": (avro({"n": 1}), 3, 2, None),
}


@pytest.mark.parametrize("policy", ["none", "warn", "enforce"])
@pytest.mark.parametrize("case", CASES)
def test_the_truth_table(registry, policy, case):
    """None accepts all; warn lets pass with the reason what enforce rejects with it."""
    payload, id, version, reason = CASES[case]
    verdict = check(payload, registry, "events", id, version, policy=policy)
    if policy == "none" or reason is None:
        assert verdict == ("accept", None)
    else:
        assert verdict.verdict == {"warn": "warn", "enforce": "reject"}[policy]
        assert verdict.reason.startswith(reason)


@given(st.binary(max_size=60), st.sampled_from([2, 3]))
def test_any_payload_gets_a_verdict(payload, id):
    """No payload makes it raise."""
    registry = SchemaRegistry()
    registry.register("other", '{"type": "string"}')
    registry.register("events", JSON_SCHEMA)
    registry.register("events", AVRO_SCHEMA, "avro")
    assert check(payload, registry, "events", id, policy="enforce").verdict in ("accept", "reject")


def test_ids_are_global_and_versions_a_subjects_own(registry):
    """Both count from 1; a text that is the newest version already is not added again."""
    assert [(s.id, s.subject, s.version) for s in map(registry.get, (1, 2, 3))] == [
        (1, "other", 1),
        (2, "events", 1),
        (3, "events", 2),
    ]
    assert registry.register("events", AVRO_SCHEMA, "avro").id == 3
    assert registry.register("events", JSON_SCHEMA).version == 3
    assert registry.subjects() == ["other", "events"]
    assert [registry.get(id) for id in (0, -1, 5, None)] == [None] * 4


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "json"),
        ("[]", "json"),
        ('{"type": "nothing"}', "json"),
        ('{"$ref": "http://localhost:1/x.json"}', "json"),
        ('{"type": "record"}', "avro"),
        ('"nothing"', "avro"),
        ("{", "avro"),
    ],
)
def test_what_is_no_schema(registry, text, kind):
    """One error, which quotes the text; nothing is added, and nothing is fetched."""
    with pytest.raises(schemas.InvalidSchema, match="schema '"):
        registry.register("events", text, kind)
    assert len(registry.versions("events")) == 2


def test_names_of_policies_kinds_and_modes_are_checked(registry):
    """ValueError, which names those there are."""
    for call in (
        lambda: check(b"", registry, "events", 1, policy="strict"),
        lambda: registry.register("events", "{}", "xml"),
        lambda: registry.set_compatibility("events", "transitive"),
    ):
        with pytest.raises(ValueError, match="must be one of"):
            call()


def test_a_registry_in_a_file(tmp_path):
    """Another one that opens the file has what was registered; a file that is none is refused."""
    path = tmp_path / "schemas.json"
    first = SchemaRegistry(path)
    schema = first.register("événements", JSON_SCHEMA)
    first.set_compatibility("événements", "full")
    second = SchemaRegistry(path)
    assert second.get(1) == schema
    assert second.compatibility("événements") == "full"
    assert [file.name for file in tmp_path.iterdir()] == ["schemas.json"]
    for text in ("", "[]", '{"schemas": [{"x": 1}], "compatibility": {}}'):
        path.write_text(text)
        with pytest.raises(schemas.InvalidSchema, match=r"schemas\.json is no schema registry"):
            SchemaRegistry(path)


def record(*fields):
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


A = {"name": "a", "type": "int"}
WITH_DEFAULT = {"name": "b", "type": "string", "default": ""}
WITHOUT_DEFAULT = {"name": "b", "type": "string"}
ENUM = '{"type": "enum", "name": "E", "symbols": ["A"]}'

# Old, new, and whether the new reads the old and the old reads the new.
AVRO = [
    ('"int"', '"int"', True, True),
    ('"int"', '"long"', True, False),
    ('"long"', '"double"', True, False),
    ('"string"', '"bytes"', True, True),
    ('"int"', '"string"', False, False),
    ('"int"', '["null", "int"]', True, False),
    ('["null", "int"]', '["null", "int", "string"]', True, False),
    (record(A), record(A, WITH_DEFAULT), True, True),
    (record(A), record(A, WITHOUT_DEFAULT), False, True),
    (record(A), record({"name": "x", "aliases": ["a"], "type": "int"}), True, False),
    (record(A), record({"name": "a", "type": "long"}), True, False),
    (record(A), record(A).replace('"R"', '"S"'), False, False),
    (ENUM, ENUM.replace('"A"]', '"A", "B"]'), True, False),
    (ENUM.replace('"A"]', '"A", "B"]'), ENUM[:-1] + ', "default": "A"}', True, True),
    ('{"type": "array", "items": "int"}', '{"type": "array", "items": "long"}', True, False),
    ('{"type": "map", "values": "int"}', '{"type": "map", "values": "string"}', False, False),
    ('{"type": "fixed", "name": "F", "size": 4}', '{"type": "fixed", "name": "F", "size": 5}', False, False),
    (
        record(A, {"name": "next", "type": ["null", "R"], "default": None}),
        record({"name": "a", "type": "long"}, {"name": "next", "type": ["null", "R"], "default": None}),
        True,
        False,
    ),
]


def properties(required=(), closed=False, **types):
    schema = {"type": "object", "properties": {name: {"type": type} for name, type in types.items()}}
    return json.dumps({**schema, "required": list(required), **({"additionalProperties": False} if closed else {})})


JSON = [
    ('{"type": "string"}', '{"type": "string", "title": "t"}', True, True),
    ('{"type": "integer"}', '{"type": "number"}', True, False),
    ('{"type": "string"}', '{"type": ["string", "null"]}', True, False),
    ('{"type": "string"}', "{}", True, False),
    ('{"enum": [1]}', '{"enum": [1, 2]}', True, False),
    (properties(a="string"), properties(["a"], a="string"), False, True),
    (properties(a="string"), properties(a="string", b="string"), False, True),
    (properties(closed=True, a="string"), properties(closed=True, a="string", b="string"), True, False),
    (properties(a="integer"), properties(a="string"), False, False),
    ('{"type": "array", "items": {"type": "integer"}}', '{"type": "array", "items": {"type": "number"}}', True, False),
    ('{"type": "string", "maxLength": 3}', '{"type": "string"}', False, False),
    ("true", "false", False, True),
]


@pytest.mark.parametrize(
    ("kind", "old", "new", "backward", "forward"),
    [("avro", *row) for row in AVRO] + [("json", *row) for row in JSON],
)
def test_compatibility(kind, old, new, backward, forward):
    """Backward: the new reads what the old wrote; forward: the other way; full: both; none asks for nothing."""
    for mode, expected in {"backward": backward, "forward": forward, "full": backward and forward}.items():
        assert (incompatibilities(mode, kind, old, kind, new) == []) == expected, mode
        registry = SchemaRegistry()
        registry.register("s", old, kind)
        registry.set_compatibility("s", mode)
        if expected:
            registry.register("s", new, kind)
        else:
            with pytest.raises(schemas.IncompatibleSchema, match=f"schema of 's' is not {mode} compatible"):
                registry.register("s", new, kind)
            assert len(registry.versions("s")) == 1
    assert incompatibilities("none", kind, old, kind, new) == []


def test_a_schema_of_another_kind_is_never_compatible():
    """Nothing reads JSON as Avro."""
    assert incompatibilities("backward", "json", "{}", "avro", '"int"') == ["the kind was json and is avro"]
