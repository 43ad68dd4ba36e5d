"""Compatibility over random pairs of schemas: whenever the verdict is "compatible", independent readers read."""

import io
import json
import re
from importlib.metadata import version
from random import Random

import pytest
from helpers.avro_pairs import evolved, random_schema
from helpers.json_pairs import DRAFTS, Pairs, random_value
from hypothesis import given, settings
from hypothesis import strategies as st

from msgid.schemas import InvalidSchema, compare
from msgid.schemas import compatibility as module

fastavro = pytest.importorskip("fastavro")
jsonschema_rs = pytest.importorskip("jsonschema_rs")

SEEDS = st.integers(0, 2**64 - 1)
OLD_FASTAVRO = tuple(map(int, version("fastavro").split(".")[:3])) < (1, 13, 1)
VALUES = 8


def avro_verdict(old, new):
    try:
        return compare("backward", "avro", old, "avro", new).verdict
    except InvalidSchema:  # a change made a union in a union
        return None


@pytest.mark.skipif(OLD_FASTAVRO, reason="fastavro before 1.13.1 misses types that the other schema defines elsewhere")
@settings(max_examples=400)
@given(SEEDS)
def test_avro_that_is_compatible_is_read_by_fastavro(seed):
    """Data written with the old schema is read with the new one."""
    random = Random(seed)
    old = random_schema(random)
    new = evolved(old, random)
    if avro_verdict(old.text(), new.text()) != "compatible":
        return
    writer, reader = (fastavro.parse_schema(json.loads(model.text())) for model in (old, new))
    for _ in range(VALUES):
        file = io.BytesIO()
        try:
            fastavro.schemaless_writer(file, writer, old.value(random))
        except ValueError:  # fastavro does not tell two branches of a union apart by the value
            continue
        file.seek(0)
        fastavro.schemaless_reader(file, writer, reader)
        assert file.read() == b""


@settings(max_examples=400)
@given(SEEDS)
def test_avro_that_is_compatible_is_so_for_the_avro_package(seed):
    """Apache's rules agree, except where one name is in two namespaces: Apache compares names without namespaces."""
    schema = pytest.importorskip("avro.schema")
    rules = pytest.importorskip("avro.compatibility")
    random = Random(seed)
    old = random_schema(random)
    new = evolved(old, random)
    verdict = avro_verdict(old.text(), new.text())
    if verdict is None:
        return
    reader, writer = schema.parse(new.text()), schema.parse(old.text())
    found = rules.ReaderWriterCompatibilityChecker().get_compatibility(reader, writer).compatibility
    if verdict == "compatible":
        assert found is rules.SchemaCompatibilityType.compatible
    names = set(re.findall(r'"name": "(\w+)\.(\w+)"', old.text() + new.text()))
    if verdict == "incompatible" and len(names) == len({name for _, name in names}):
        assert found is not rules.SchemaCompatibilityType.compatible


def near_default(random, schema, named):
    """Return JSON that often is a default of a type, and often nearly one."""
    if random.random() < 0.1:
        return random.choice(
            [None, True, 0, 2**31, 2**63, -(2**31) - 1, 1.5, "", "A", "\u0100", [], {}, [None], {"k": 1}]
        )
    if isinstance(schema, list):
        return near_default(random, random.choice(schema[:1] * 4 + schema), named)
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = schema
    if kind == "record":
        fields = [field for field in schema["fields"] if "default" not in field or random.random() < 0.5]
        return {
            field["name"]: near_default(random, field["type"], named) for field in fields[: random.choice([9, 9, 9, 1])]
        }
    if kind in ("array", "map"):
        values = [
            near_default(random, schema["items" if kind == "array" else "values"], named)
            for _ in range(random.randrange(3))
        ]
        return values if kind == "array" else {f"k{index}": value for index, value in enumerate(values)}
    if kind == "enum":
        return random.choice(["A", "B", "C"])
    if kind == "fixed":
        return "\u00ff" * random.choice([schema["size"]] * 3 + [0, 1, 2])
    if kind == "bytes":
        return random.choice(["", "\u00ff", "\u00ff\u0000"])
    values = {"null": None, "boolean": True, "int": -(2**31), "long": 2**63 - 1, "string": "\u0100"}
    return values.get(kind, 0)


def value_of(default, schema, named):
    """Return the value of a default: text is bytes where the type is, and missing fields have their own defaults.

    Raises:
        KeyError: if a field has neither a value nor a default.
    """
    if isinstance(schema, list):
        fits = [value_of(default, branch, named) for branch in schema[:1]]
        return fits[0]
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = schema
    if kind == "record" and isinstance(default, dict):
        return {
            field["name"]: value_of(
                default[field["name"]] if field["name"] in default else field["default"], field["type"], named
            )
            for field in schema["fields"]
        }
    if kind == "array" and isinstance(default, list):
        return [value_of(item, schema["items"], named) for item in default]
    if kind == "map" and isinstance(default, dict):
        return {key: value_of(item, schema["values"], named) for key, item in default.items()}
    if kind in ("bytes", "fixed") and isinstance(default, str):
        return default.encode("latin-1")
    return default


@settings(max_examples=400)
@given(SEEDS)
def test_avro_default_of_a_new_field_counts_only_if_it_is_a_value_of_its_type(seed):
    """By fastavro, the default of each compatible new field is valid, and the default of each other is not."""
    random = Random(seed)
    schema = json.loads(random_schema(random).text())
    old = {"type": "record", "name": "Outer", "fields": []}
    new = dict(old, fields=[{"name": "new", "type": schema, "default": near_default(random, schema, {})}])
    try:
        verdict = compare("backward", "avro", json.dumps(old), "avro", json.dumps(new)).verdict
    except InvalidSchema:  # fastavro rejects some of these defaults itself
        return
    try:
        named = {}
        value = value_of(new["fields"][0]["default"], schema, named)
        parsed = fastavro.parse_schema(dict(old, fields=[{"name": "new", "type": schema}]))
        valid = fastavro.validation.validate({"new": value}, parsed, raise_errors=False, strict=True)
    except (KeyError, UnicodeEncodeError, RecursionError):
        valid = False
    if verdict == "compatible":
        assert valid
    elif verdict == "incompatible" and '": [' not in re.sub(r'"(fields|symbols)": \[', "", json.dumps({"new": schema})):
        assert not valid  # within a union, fastavro accepts records without all fields, and bytes for an array


@pytest.mark.parametrize(
    ("type", "default", "verdict"),
    [
        ("int", 2**31, "incompatible"),
        ("int", True, "incompatible"),
        ("long", 1.5, "incompatible"),
        ("double", 1, "compatible"),
        ("string", None, "incompatible"),
        ({"type": "array", "items": "int"}, [1, "2"], "incompatible"),
        ({"type": "map", "values": "int"}, {"a": None}, "incompatible"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "incompatible"),
        ({"type": "fixed", "name": "F", "size": 2}, "a", "incompatible"),
        ({"type": "fixed", "name": "F", "size": 1}, "\u0100", "incompatible"),
        ({"type": "fixed", "name": "F", "size": 1}, "\u00ff", "compatible"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}, "incompatible"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1}]}, {}, "compatible"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "R", "default": {}}]}, {}, "incompatible"),
        (["null", "int"], 1, "not decided"),
        (["null", "int"], "1", "incompatible"),
        ([{"type": "array", "items": ["int", "null"]}, "null"], [None], "not decided"),
    ],
)
def test_avro_default_must_be_a_value_of_its_type(type, default, verdict):
    """The whole default counts: items, values, fields, symbols and sizes. From Avro 1.12 on, any branch may fit."""
    old = {"type": "record", "name": "Outer", "fields": []}
    for inner in (type, {"type": "record", "name": "Inner", "fields": [{"name": "in", "type": type}]}):
        given = default if inner is type else {"in": default}
        new = dict(old, fields=[{"name": "new", "type": inner, "default": given}])
        if inner is type:
            try:
                assert compare("backward", "avro", json.dumps(old), "avro", json.dumps(new)).verdict == verdict
            except InvalidSchema:
                assert verdict != "compatible"  # fastavro rejects some of these defaults itself
        else:
            assert compare("backward", "avro", json.dumps(old), "avro", json.dumps(new)).verdict == verdict


@pytest.mark.parametrize("library", [True, False])
@settings(max_examples=400)
@given(seed=SEEDS, draft=st.sampled_from(sorted(DRAFTS)))
def test_json_that_is_compatible_allows_every_value_of_the_old_schema(library, seed, draft):
    """No random value is valid by the old schema alone, with and without jsonschema-rs deciding."""
    random = Random(seed)
    old, new = (json.dumps(schema) for schema in Pairs(random, draft).pair())
    with pytest.MonkeyPatch.context() as patched:
        if not library:
            patched.setattr(module, "_covers", lambda reader, writer: "unknown")
            patched.setattr(module, "witness", lambda reader, writer: None)
        try:
            verdict = compare("backward", "json", old, "json", new).verdict
        except InvalidSchema:  # a keyword that the draft does not allow so
            return
    if verdict != "compatible":
        return
    before, after = jsonschema_rs.validator_for(old), jsonschema_rs.validator_for(new)
    for _ in range(5 * VALUES):
        value = random_value(random)
        assert after.is_valid(value) or not before.is_valid(value), value
