"""Which schemas are compatible: the answers of the libraries, held to what readers really read."""

import contextlib
import json

import pytest

from msgid.schemas import IncompatibleSchema, InvalidSchema, SchemaRegistry, check_compatibility
from msgid.schemas._containment import contains_safely

fastavro = pytest.importorskip("fastavro")
jsonschema_rs = pytest.importorskip("jsonschema_rs")
pytest.importorskip("avro")

YES, NO, OPEN = "compatible", "incompatible", "not decided"


def record(*fields, name="R", **more):
    return json.dumps({"type": "record", "name": name, "fields": list(fields), **more})


def field(name, type, **more):
    return {"name": name, "type": type, **more}


def enum(name, *symbols, **more):
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


A = field("a", "int")
WITH_DEFAULT = field("b", "string", default="")
WITHOUT_DEFAULT = field("b", "string")
ENUM = json.dumps(enum("E", "A"))
TWO = json.dumps(enum("E", "A", "B"))
LINKED = field("next", ["null", "R"], default=None)
MS, US = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
TWO_TIMES = [f"[{record(field('t', one))}, {record(field('t', 'long'), name='S')}]" for one in (MS, US)]
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9}
TWO_NAMESPACES = record(field("x", enum("a.E", "A")), field("y", enum("b.E", "B")), field("z", "a.E"))

# Old, new, whether the new reads the old, and whether the old reads the new.
AVRO = [
    ('"int"', '"long"', YES, NO),
    (record(A), record(A, WITH_DEFAULT), YES, YES),
    (record(A), record(A, WITHOUT_DEFAULT), NO, YES),
    (record(A), record(field("x", "int", aliases=["a"])), YES, NO),
    (record(A), record(A, name="S"), NO, NO),
    (TWO, ENUM[:-1] + ', "default": "A"}', YES, YES),
    (record(A, LINKED), record(field("a", "long"), LINKED), YES, NO),
    # Names: full names and aliases, of records, enums and fixed.
    (record(A), record(A, name="S", aliases=["R"]), YES, NO),
    (record(A, name="n.R"), record(A, name="m.S", aliases=["R"]), NO, NO),
    (record(A, name="n.R"), record(A, name="R", namespace="n"), YES, YES),
    # Two types of one short name in two namespaces: each is the one that it names.
    (TWO_NAMESPACES, record(field("x", enum("a.E", "A")), field("z", "a.E"), field("y", enum("b.E", "B"))), YES, YES),
    (TWO_NAMESPACES, TWO_NAMESPACES.replace('"type": "a.E"', '"type": "b.E"'), NO, NO),
    # Logical types.
    ('"long"', '{"type": "long", "logicalType": "timestamp-micros"}', OPEN, OPEN),
    (json.dumps(MS), json.dumps(US), OPEN, OPEN),
    (json.dumps({"type": "int", "logicalType": "date"}), json.dumps(MS), OPEN, NO),
    (*TWO_TIMES, OPEN, OPEN),
    (json.dumps(MONEY | {"scale": 2}), json.dumps(MONEY | {"scale": 3}), OPEN, OPEN),
    (json.dumps(MONEY), json.dumps(MONEY | {"scale": 0}), YES, YES),
]  # fmt: skip


def properties(required=(), **types):
    schema = {"type": "object", "properties": {name: {"type": type} for name, type in types.items()}}
    return json.dumps({**schema, "required": list(required)})


DRAFT_4 = '{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}'
DRAFT_6 = '{"$schema": "http://json-schema.org/draft-06/schema#", "type": "integer"}'
TREE = '{"properties": {"of": {"items": {"$ref": "#"}}, "v": {"type": "integer"}}}'

JSON = [
    ('{"type": "string"}', '{"type": ["string", "null"]}', YES, NO),
    (properties(a="string"), properties(["a"], a="string"), NO, YES),
    (properties(a="string"), properties(a="string", b="string"), NO, YES),
    ('{"enum": [1]}', '{"enum": [1, 2]}', YES, NO),
    ('{"enum": [true]}', '{"enum": [1]}', NO, NO),
    ("true", "false", NO, YES),
    ("{}", '{"patternProperties": {"^[0-9]+$": {"type": "integer"}}}', OPEN, YES),
    (TREE, TREE.replace("integer", "number"), OPEN, OPEN),
    (DRAFT_4, DRAFT_6, OPEN, OPEN),
    (DRAFT_6, DRAFT_6.replace("http:", "https:").replace("#", "").replace("{", '{"title": "t", '), YES, YES),
]


@pytest.mark.parametrize(("old", "new", "backward", "forward"), AVRO)
def test_compare_of_two_avro_schemas_gives_the_verdict_of_each_direction(old, new, backward, forward):
    """Backward: the new schema reads the old one's values; forward: the other way; full: both; the registry agrees."""
    full = next(verdict for verdict in (NO, OPEN, YES) if verdict in (backward, forward))
    for mode, expected in {"backward": backward, "forward": forward, "full": full, "none": YES}.items():
        verdict, reasons = check_compatibility(mode, "avro", old, "avro", new)
        assert (verdict, reasons == ()) == (expected, expected == YES), (mode, reasons)
        registry = SchemaRegistry()
        registry.register("s", old, "avro")
        registry.set_compatibility("s", mode)
        if expected == YES:
            registry.register("s", new, "avro")
        else:
            told = f"schema of 's' is not {mode} compatible with version 1: {'not decided: ' * (expected == OPEN)}"
            with pytest.raises(IncompatibleSchema, match=told):
                registry.register("s", new, "avro")
            assert len(registry.versions("s")) == 1


# Old, new, and the verdict of each direction.
IGNORED_LOGICAL_TYPES = [
    ('"string"', '{"type": "string", "logicalType": "decimal"}', YES),
    ('"int"', '{"type": "int", "logicalType": "money"}', YES),
    ('{"type": "int", "logicalType": "money"}', '{"type": "int", "logicalType": "uuid"}', YES),
    ('"bytes"', json.dumps(MONEY | {"scale": 10}), YES),
    ('{"type": "int", "logicalType": "money"}', '{"type": "int", "logicalType": "date"}', OPEN),
    (record(field("a", {"type": "string", "logicalType": "date"})), record(field("a", "string"), doc="d"), YES),
]  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("old", "new", "expected"), IGNORED_LOGICAL_TYPES)
def test_compare_ignores_logical_types_that_are_invalid_or_unknown_and_warns_of_none(old, new, expected):
    """A reader ignores them, so a change between them changes no value; a valid one that appears is not decided."""
    assert check_compatibility("full", "avro", old, "avro", new).verdict == expected


@pytest.mark.parametrize(("old", "new", "backward", "forward"), JSON)
def test_compare_of_two_json_schemas_gives_the_verdict_of_each_direction(old, new, backward, forward):
    """Members that are added, required or nullable are decided; two drafts are not; two spellings of one draft are."""
    assert check_compatibility("backward", "json", old, "json", new).verdict == backward
    assert check_compatibility("forward", "json", old, "json", new).verdict == forward


def test_schemas_that_differ_in_annotations_alone_are_compatible():
    """Titles, descriptions, examples, defaults and comments do not change which values a schema allows."""
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/a"}, "b": {"type": "array", "items": {"enum": [1, "x"]}}},
        "definitions": {"a": {"type": "string", "pattern": "^[a-z]+$", "format": "email"}},
        "required": ["a"],
    }
    notes = {"title": "t", "description": "d", "examples": [1], "default": 0, "$comment": "c", "readOnly": True}
    new = {**old, **notes, "properties": {name: {**part, "title": name} for name, part in old["properties"].items()}}
    new["definitions"] = {"a": {**old["definitions"]["a"], **notes}}
    assert check_compatibility("full", "json", json.dumps(old), "json", json.dumps(new)) == (YES, ())


@pytest.mark.parametrize(("kind", "row"), [("avro", row) for row in AVRO] + [("json", row) for row in JSON])
def test_compare_of_a_schema_with_itself_is_compatible(kind, row):
    """A schema reads its own values, even if a library cannot follow it."""
    for text in row[:2]:
        assert check_compatibility("full", kind, text, kind, f" {text}").verdict == YES


def test_compare_of_two_kinds_is_incompatible():
    assert check_compatibility("backward", "json", "{}", "avro", '"int"') == (NO, ("the kind was json and is avro",))


def test_schema_that_ends_the_librarys_process_is_not_decided():
    """jsonschema-rs overflows the stack for this schema; the caller goes on."""
    schema = json.dumps({"if": {"$ref": "#", "unevaluatedItems": {}}})
    verdict, (reason,) = check_compatibility("backward", "json", "{}", "json", schema)
    assert verdict == OPEN
    assert "jsonschema-rs did not compare the schemas" in reason


def test_comparison_that_takes_too_long_is_not_decided():
    """The process of the comparison is ended after its time."""
    assert contains_safely({}, {}, seconds=0.001) == ("unknown", "jsonschema-rs did not decide within 0.001 seconds")


@pytest.mark.parametrize("depth", [200, 20_000])
def test_avro_schema_that_is_nested_too_deep_is_not_decided_or_invalid(depth):
    text = '{"type": "array", "items": ' * depth + '"int"' + "}" * depth
    with contextlib.suppress(InvalidSchema):
        assert check_compatibility("backward", "avro", text, "avro", text.replace("int", "long")).verdict in (YES, OPEN)


def test_compare_of_an_invalid_schema_raises_invalid_schema():
    for kind, text in (("json", "[]"), ("json", "{"), ("avro", '"nothing"')):
        with pytest.raises(InvalidSchema):
            check_compatibility("backward", kind, text, kind, "{}" if kind == "json" else '"int"')
