"""Which schemas are compatible: the rules of Avro and of JSON Schema, case by case."""

import json
import subprocess
import sys

import pytest
from helpers import vector_files as vectors

from msgid.schemas import IncompatibleSchema, InvalidSchema, SchemaRegistry, compare, incompatibilities
from msgid.schemas import compatibility as module
from msgid.schemas._json_rules import is_recursive, json_problems

pytest.importorskip("fastavro")
pytest.importorskip("jsonschema_rs")

YES, NO, OPEN = "compatible", "incompatible", "not decided"


def record(*fields, name="R", **more):
    return json.dumps({"type": "record", "name": name, "fields": list(fields), **more})


def field(name, type, **more):
    return {"name": name, "type": type, **more}


def enum(name, *symbols, **more):
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(name, size):
    return {"type": "fixed", "name": name, "size": size}


A = field("a", "int")
WITH_DEFAULT = field("b", "string", default="")
WITHOUT_DEFAULT = field("b", "string")
ENUM = json.dumps(enum("E", "A"))
TWO = json.dumps(enum("E", "A", "B"))
LINKED = field("next", ["null", "R"], default=None)
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9}
TWO_NAMESPACES = record(field("x", enum("a.E", "A")), field("y", enum("b.E", "B")), field("z", "a.E"))

# Old, new, whether the new reads the old, and whether the old reads the new.
AVRO = [
    ('"int"', '"int"', YES, YES),
    ('"int"', '"long"', YES, NO),
    ('"long"', '"double"', YES, NO),
    ('"string"', '"bytes"', YES, OPEN),
    ('"int"', '"string"', NO, NO),
    ('"int"', '["null", "int"]', YES, NO),
    ('["null", "int"]', '["null", "int", "string"]', YES, NO),
    ('"int"', '["float", "int"]', YES, NO),
    ('"bytes"', '["string", "bytes"]', OPEN, YES),
    ('"bytes"', '["bytes", "string"]', YES, YES),
    ("[]", '"int"', YES, NO),
    (record(A), record(A, WITH_DEFAULT), YES, YES),
    (record(A), record(A, WITHOUT_DEFAULT), NO, YES),
    (record(A), record(field("x", "int", aliases=["a"])), YES, NO),
    (record(A), record(field("a", "long")), YES, NO),
    (record(A), record(A, name="S"), NO, NO),
    (ENUM, TWO, YES, NO),
    (TWO, ENUM[:-1] + ', "default": "A"}', YES, YES),
    ('{"type": "array", "items": "int"}', '{"type": "array", "items": "long"}', YES, NO),
    ('{"type": "map", "values": "int"}', '{"type": "map", "values": "string"}', NO, NO),
    (json.dumps(fixed("F", 4)), json.dumps(fixed("F", 5)), NO, NO),
    (record(A, LINKED), record(field("a", "long"), LINKED), YES, NO),
    # Names: full names and aliases, of records, enums and fixed.
    (record(A), record(A, name="S", aliases=["R"]), YES, NO),
    (record(A, name="n.R"), record(A, name="S", namespace="n", aliases=["R"]), YES, NO),
    (record(A, name="n.R"), record(A, name="m.S", aliases=["R"]), NO, NO),
    (record(A, name="n.R"), record(A, name="n.R", doc="d"), YES, YES),
    (record(A, name="n.R"), record(A, name="R", namespace="n"), YES, YES),
    (record(A, name="n.R"), record(A, name="m.R"), OPEN, OPEN),
    (record(A, name="n.R"), record(A, name="m.R", aliases=["n.R"]), YES, OPEN),
    (ENUM, json.dumps(enum("D", "A", aliases=["E"])), YES, NO),
    (json.dumps(fixed("F", 4)), json.dumps(fixed("G", 4)), NO, NO),
    # Two types of one short name in two namespaces: each is the one that it names.
    (TWO_NAMESPACES, record(field("x", enum("a.E", "A")), field("z", "a.E"), field("y", enum("b.E", "B"))), YES, YES),
    (TWO_NAMESPACES, TWO_NAMESPACES.replace('"type": "a.E"', '"type": "b.E"'), NO, NO),
    (TWO_NAMESPACES, TWO_NAMESPACES.replace('["B"]', '["A", "B"]'), YES, NO),
    (record(field("x", fixed("a.F", 4)), field("y", fixed("b.F", 8)), field("z", "a.F")),
     record(field("x", fixed("a.F", 4)), field("y", fixed("b.F", 8)), field("z", "b.F")), NO, NO),
    # In a union, readers take another branch than the one of the full name.
    (json.dumps(["null", enum("b.E", "A")]), json.dumps(["null", enum("a.E", "X"), enum("b.E", "A")]), OPEN, NO),
    (json.dumps(["null", enum("b.E", "A")]), json.dumps(["null", enum("b.E", "A"), enum("a.E", "X")]), YES, NO),
    # Types first defined in a field that is dropped or new.
    (record(field("a", enum("E", "A")), field("b", "E")), record(field("b", enum("E", "A"))), YES, NO),
    (record(field("a", enum("E", "A")), field("b", "E")), record(field("b", enum("E", "B"))), NO, NO),
    (record(field("b", enum("E", "A"))), record(field("n", enum("E", "A"), default="A"), field("b", "E")), YES, YES),
    (record(field("b", enum("E", "A"))), record(field("n", enum("E", "B"), default="B"), field("b", "E")), NO, NO),
    (record(field("a", fixed("F", 2)), field("b", "F")), record(field("b", fixed("F", 3))), NO, NO),
    # fastavro cannot read a union that defines a type which the other schema only names there.
    (record(field("a", enum("E", "A")), field("b", "E")), record(field("b", ["null", enum("E", "A")])), OPEN, NO),
    (record(field("a", enum("E", "A")), field("b", "E")), record(field("a", enum("E", "A")), field("b", ["null", "E"])),
     YES, NO),
    # One field for two, two fields for one.
    (record(A), record(A, field("x", "int", aliases=["a"])), OPEN, YES),
    (record(A, field("b", "int")), record(field("x", "int", aliases=["a", "b"])), OPEN, NO),
    # Logical types.
    ('"long"', '{"type": "long", "logicalType": "timestamp-micros"}', OPEN, YES),
    ('{"type": "long", "logicalType": "timestamp-millis"}', '{"type": "long", "logicalType": "timestamp-micros"}',
     OPEN, OPEN),
    (json.dumps(MONEY | {"scale": 2}), json.dumps(MONEY | {"scale": 3}), NO, NO),
    (json.dumps(MONEY), json.dumps(MONEY | {"scale": 0}), YES, YES),
]  # fmt: skip


def properties(required=(), closed=False, **types):
    schema = {"type": "object", "properties": {name: {"type": type} for name, type in types.items()}}
    return json.dumps({**schema, "required": list(required), **({"additionalProperties": False} if closed else {})})


def defined(**more):
    return json.dumps({"$defs": {"n": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/n"}}, **more})


def tree(type):
    return json.dumps({"properties": {"of": {"items": {"$ref": "#"}}, "v": {"type": type}}})


DRAFT_4 = '{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}'
DRAFT_6 = '{"$schema": "http://json-schema.org/draft-06/schema#", "type": "integer"}'
STRINGS = '{"patternProperties": {"^s": {"type": "string"}}}'

JSON = [
    ('{"type": "string"}', '{"type": "string", "title": "t"}', YES, YES),
    ('{"type": "integer"}', '{"type": "number"}', YES, NO),
    ('{"type": "string"}', '{"type": ["string", "null"]}', YES, NO),
    ('{"type": "string"}', "{}", YES, NO),
    ('{"enum": [1]}', '{"enum": [1, 2]}', YES, NO),
    (properties(a="string"), properties(["a"], a="string"), NO, YES),
    (properties(a="string"), properties(a="string", b="string"), NO, YES),
    (properties(closed=True, a="string"), properties(closed=True, a="string", b="string"), YES, NO),
    (properties(a="integer"), properties(a="string"), NO, NO),
    ('{"type": "array", "items": {"type": "integer"}}', '{"type": "array", "items": {"type": "number"}}', YES, NO),
    ('{"type": "string", "maxLength": 3}', '{"type": "string"}', YES, NO),
    ("true", "false", NO, YES),
    # Read as compatible where reading fails.
    (STRINGS, STRINGS.replace("string", "integer"), NO, NO),
    ("{}", STRINGS, NO, YES),
    (properties(a="string"), '{"type": "object", "patternProperties": {"^a": {"type": "integer"}}}', NO, NO),
    ("{}", '{"patternProperties": {"^[0-9]+$": {"type": "integer"}}}', OPEN, YES),
    (DRAFT_6, DRAFT_4, OPEN, OPEN),
    (DRAFT_4, '{"type": "integer"}', OPEN, OPEN),
    ('{"enum": [true]}', '{"enum": [1]}', NO, NO),
    ('{"enum": [1, [true]]}', '{"enum": [1, [1]]}', NO, NO),
    ('{"const": 1}', '{"const": true}', NO, NO),
    ('{"enum": [1]}', '{"const": 1.0}', YES, YES),
    ('{"not": {"type": "string"}}', '{"not": {"type": ["string", "null"]}}', NO, YES),
    # Read as incompatible where reading works.
    ('{"minimum": 3}', '{"minimum": 1}', YES, NO),
    ('{"exclusiveMinimum": 3}', '{"minimum": 3}', YES, NO),
    ('{"maxItems": 3, "uniqueItems": true}', '{"maxItems": 4}', YES, NO),
    ('{"multipleOf": 6}', '{"multipleOf": 3}', YES, NO),
    (defined(), '{"properties": {"n": {"type": "integer"}}}', YES, YES),
    (defined(), '{"properties": {"n": {"type": "number"}}}', YES, NO),
    ('{"anyOf": [{"type": "string"}]}', '{"anyOf": [{"type": "string"}, {"type": "null"}]}', YES, NO),
    ('{"allOf": [{"minimum": 3}, {"maximum": 5}]}', '{"minimum": 2, "maximum": 5}', YES, NO),
    (STRINGS, STRINGS.replace('"string"', '["string", "null"]'), YES, NO),
    (STRINGS, "{}", YES, NO),
    (tree("integer"), tree("number"), YES, NO),
    (tree("integer"), tree("integer").replace("{", '{"title": "t", ', 1), YES, YES),
    ('{"prefixItems": [{"type": "integer"}]}', '{"prefixItems": [{"type": "number"}]}', YES, NO),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "old", "new", "backward", "forward"),
    [("avro", *row) for row in AVRO] + [("json", *row) for row in JSON],
)
def test_compare_of_two_schemas_gives_the_verdict_of_each_direction(kind, old, new, backward, forward):
    """Backward: the new reads the old; forward: the old reads the new; full: both; the registry agrees."""
    full = next(verdict for verdict in (NO, OPEN, YES) if verdict in (backward, forward))
    for mode, expected in {"backward": backward, "forward": forward, "full": full, "none": YES}.items():
        verdict, reasons = compare(mode, kind, old, kind, new)
        assert (verdict, reasons == ()) == (expected, expected == YES), (mode, reasons)
        problems = incompatibilities(mode, kind, old, kind, new)
        assert [problem.startswith("not decided: ") for problem in problems] == [expected == OPEN] * len(reasons)
        registry = SchemaRegistry()
        registry.register("s", old, kind)
        registry.set_compatibility("s", mode)
        if expected == YES:
            registry.register("s", new, kind)
        else:
            with pytest.raises(IncompatibleSchema, match=f"schema of 's' is not {mode} compatible"):
                registry.register("s", new, kind)
            assert len(registry.versions("s")) == 1


@pytest.mark.parametrize(("kind", "row"), [("avro", row) for row in AVRO] + [("json", row) for row in JSON])
def test_compare_of_a_schema_with_itself_is_compatible(kind, row):
    """A schema reads its own values, even if the rules cannot follow it."""
    for text in row[:2]:
        assert compare("full", kind, text, kind, f" {text}").verdict == YES


@pytest.mark.parametrize(("old", "new", "expected"), [row[:3] for row in JSON])
def test_compare_without_the_librarys_containment_is_never_wrong(monkeypatch, old, new, expected):
    """With a release of jsonschema-rs that cannot decide, the rules alone find fewer schemas compatible, not others."""
    monkeypatch.setattr(module, "_covers", lambda reader, writer: "unknown")
    monkeypatch.setattr(module, "witness", lambda reader, writer: None)
    assert compare("backward", "json", old, "json", new).verdict in (expected, OPEN)


PATTERNS = {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
ITSELF = {"allOf": [{"$ref": "#"}]}


@pytest.mark.parametrize(
    ("draft", "writer", "reader"),
    [
        ("2020-12", PATTERNS, PATTERNS | {"properties": {"ab": {"type": "string"}}}),
        ("2020-12", PATTERNS, {"patternProperties": {"^b": {"type": "string"}}} | PATTERNS["additionalProperties"]),
        ("2020-12", PATTERNS, {"additionalProperties": {"type": "string"}}),
        ("2020-12", ITSELF, ITSELF | {"type": "string"}),
        ("2020-12", {"type": "object"}, {"unevaluatedProperties": False}),
        ("2020-12", {"if": {"minimum": 3}}, {"if": {"minimum": 3}, "then": {"type": "string"}}),
        ("2020-12", {"items": {"type": "string"}}, {"prefixItems": [{"type": "null"}], "items": {"type": "string"}}),
        ("7", {"items": {"type": "string"}}, {"items": [{"type": "string"}], "additionalItems": False}),
        ("7", {"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {}}}, {"type": "null"}),
        ("4", {"maximum": 5, "exclusiveMaximum": False}, {"maximum": 5, "exclusiveMaximum": True}),
    ],
)
def test_rules_of_json_find_a_reason_where_a_keyword_depends_on_another(draft, writer, reader):
    """The rules alone are never wrong: names that patterns match, references to themselves, keywords in pairs."""
    assert json_problems(reader, writer, draft)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {}}},
            False,
        ),
        (
            {"$defs": {"a": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/a"}] * 2, "not": {"$ref": "#/$defs/a"}},
            False,
        ),
        ({"$ref": "#"}, True),
        ({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, True),
        ({"items": {"anyOf": [{"$ref": "#/items"}]}}, True),
        ({"then": {"dependentSchemas": {"a": {"else": {"$ref": "#/then"}}}}}, True),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, True),
        ({"properties": {"a": {"$ref": "#b"}}}, True),
        ({"enum": [{"$ref": "#/nowhere"}]}, True),
    ],
)
def test_recursive_schema_is_found(schema, expected):
    """A schema is recursive if a reference leads to a part that contains it; an unknown reference counts too."""
    assert is_recursive(schema) is expected


def test_compare_of_two_kinds_is_incompatible():
    """JSON and Avro schemas are never compatible."""
    assert compare("backward", "json", "{}", "avro", '"int"') == (NO, ("the kind was json and is avro",))


def test_compare_of_many_combinations_ends():
    """A schema that doubles at each level does not take forever."""
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(9)}
    old = {"$defs": {**definitions, "d9": {"patternProperties": {"a": {"type": "string"}}}}, "$ref": "#/$defs/d0"}
    new = json.dumps({**old, "patternProperties": {"b": {}}})
    assert compare("backward", "json", json.dumps(old), "json", new).verdict in (YES, OPEN)


def test_compare_of_recursive_schemas_ends():
    """jsonschema-rs overflows the stack for some of these schemas, so a process of its own compares them."""
    pairs = []
    for itself in [{"$ref": "#", extra: rest} for extra in ("unevaluatedItems", "title") for rest in ({}, False)]:
        for schema in ({"if": itself}, {"not": itself}, {"oneOf": [{"not": itself}, {"dependentSchemas": {}}]}):
            pairs += [({}, schema), ({"oneOf": [{}, {}]}, schema)]
    pattern = {"^a$": {"type": "array", "$ref": "#", "unevaluatedProperties": {}, "propertyNames": {}}}
    items = {"type": "string", "unevaluatedItems": {"type": ["number", "integer"], "maxProperties": 3}}
    tree = {"type": "array", "anyOf": [{"dependentRequired": {"a": ["aa"]}, "patternProperties": pattern}, items]}
    pairs.append((tree | {"not": {"type": ["object", "null"], "maximum": 0.1}}, tree))
    code = (
        "import json, sys\nfrom msgid.schemas import compare\n"
        "for old, new in json.loads(sys.argv[1]):\n"
        "    try: print(compare('backward', 'json', json.dumps(old), 'json', json.dumps(new)).verdict)\n"
        "    except ValueError: print('invalid')"
    )
    run = subprocess.run([sys.executable, "-c", code, json.dumps(pairs)], capture_output=True, text=True, check=False)
    assert (run.returncode, len(run.stdout.splitlines())) == (0, len(pairs))


@pytest.mark.parametrize(
    "arguments",
    [
        ("backwards", "json", "{}", "json", "{}"),
        ("full", "xml", "{}", "json", "{}"),
        ("full", "json", "{}", "xml", "{}"),
    ],
)
def test_compare_with_an_unknown_mode_or_kind_raises_value_error(arguments):
    """An unknown mode or kind raises ValueError with the known ones."""
    with pytest.raises(ValueError, match="must be one of"):
        compare(*arguments)


def test_compare_of_an_invalid_schema_raises_invalid_schema():
    """A text that is not a schema is not compared."""
    for kind, text in (("json", "[]"), ("json", "{"), ("avro", '"nothing"')):
        with pytest.raises(InvalidSchema):
            compare("backward", kind, text, kind, "{}" if kind == "json" else '"int"')


# --- a broker's own rules -----------------------------------------------------------------------------------------

BROKER = json.loads((vectors.FOLDER / "danube_broker.json").read_text())["schema_verdicts"]


def danube(mode, kind, old, new):
    return compare(mode, kind, json.dumps(old), kind, json.dumps(new), rules="danube").verdict


def test_verdicts_of_a_danube_broker_are_predicted():
    """There are 231 recorded verdicts; the rules of readers differ from more than a fifth of them."""
    kinds = {"avro": "avro", "json_schema": "json"}
    told = [(v["mode"].lower(), kinds[v["kind"]], v["old"], v["new"], YES if v["broker"] else NO) for v in BROKER]
    assert [danube(*verdict[:4]) for verdict in told] == [verdict[4] for verdict in told]
    readers = [compare(mode, kind, json.dumps(old), kind, json.dumps(new)).verdict for mode, kind, old, new, _ in told]
    assert sum(one != verdict[4] for one, verdict in zip(readers, told, strict=True)) > len(told) / 5


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("json", True, {"type": "object"}),
        ("avro", "int", "long"),
        ("avro", json.loads(record(name="R")), json.loads(record(name="S"))),
        ("avro", json.loads(record()), json.loads(record(field("n", ["int", "string"])))),
    ],
)
def test_schema_of_a_form_that_was_not_recorded_is_not_decided(kind, old, new):
    """A prediction says where it ends."""
    assert danube("backward", kind, old, new) == OPEN
    assert incompatibilities("backward", kind, json.dumps(old), kind, json.dumps(new), rules="danube")[0].startswith(
        "not decided"
    )


def test_names_of_records_are_compared_by_value():
    """A namespace may stand in the name."""
    old = json.loads(record(name="n.R"))
    new = json.loads(record(name="R", namespace="n"))
    assert danube("full", "avro", old, new) == YES


def test_unknown_rules_are_refused():
    """With the list of the known ones."""
    with pytest.raises(ValueError, match="rules must be one of readers, danube, got 'kafka'"):
        compare("none", "avro", '"int"', "avro", '"int"', rules="kafka")
