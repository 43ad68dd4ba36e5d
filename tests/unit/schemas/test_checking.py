"""The check of a message by its schema: policies, Confluent's framing, and bounds that no payload passes."""

import io
import json
from contextlib import nullcontext

import pytest
from helpers.commands import python
from hypothesis import example, given
from hypothesis import strategies as st

from msgid.errors import InvalidMessage
from msgid.schemas import InvalidSchema, SchemaRegistry, check_compatibility, check_schema, frame, from_lookup, unframe
from msgid.schemas._avro import MAX_DEPTH, MAX_EMPTY_VALUES
from msgid.schemas._json_schema import MAX_DEPTH as JSON_DEPTH
from msgid.schemas._validators import validator

fastavro = pytest.importorskip("fastavro")
pytest.importorskip("jsonschema_rs")

JSON_SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
AVRO_SCHEMA = '{"type": "record", "name": "Event", "fields": [{"name": "n", "type": "int"}]}'
LIST = '{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}'
TREE = '{"type": "record", "name": "R", "fields": [{"name": "of", "type": {"type": "array", "items": "R"}}]}'
ENDLESS = '{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}'
NULLS = '{"type": "array", "items": "null"}'
EMPTIES = '{"type": "array", "items": {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}}'
DOUBLING = '{"type": "record", "name": "R0", "fields": []}'
"""A value of this schema has 2**40 values in it, and no bytes."""
for _n in range(1, 41):
    _fields = f'[{{"name": "a", "type": {DOUBLING}}}, {{"name": "b", "type": "R{_n - 1}"}}]'
    DOUBLING = f'{{"type": "record", "name": "R{_n}", "fields": {_fields}}}'
THIRTY_MILLION = bytes([0x80, 0x8E, 0xCE, 0x1C, 0])


def avro(value, schema=AVRO_SCHEMA):
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(json.loads(schema)), value)
    return file.getvalue()


def problem(kind, schema, payload):
    return validator(kind, schema)(payload)


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
    "wrong subject": (b'"text"', 1, 1, "schema 1 must be of the subject 'events', got 'other'"),
    "no subject": (b'"text"', 1, None, "schema 1 must be of the subject None, got 'other'"),
    "wrong version": (b'{"n": 1}', 2, 2, "schema 2 of 'events' must have version 2, got 1"),
    "bad payload": (b'{"n": "x"}', 2, 1, 'payload b\'{"n": "x"}\': "x" is not of type "integer" at /n'),
    "no JSON": (b"\xff", 2, 1, "payload b'\\xff': not JSON: not UTF-8"),
    "bad Avro": (b"", 3, 2, "payload b'': not Avro of the schema: the payload ends before the value"),
    "too much Avro": (avro({"n": 1}) + b"x", 3, 2, "payload b'\\x02x': 1 bytes after the end of the Avro"),
    "no bytes": (None, 2, 1, "payload must be bytes, got None"),
    "text": ('{"n": 1}', 2, 1, "payload must be bytes, got '{\"n\": 1}'"),
    "good": (b'{"n": 1}', 2, 1, None),
    "good bytearray": (bytearray(b'{"n": 1}'), 2, 1, None),
    "good view": (memoryview(b'{"n": 1}'), 2, 1, None),
    "good without version": (b'{"n": 1}', 2, None, None),
    "good Avro": (avro({"n": 1}), 3, 2, None),
}


@pytest.mark.parametrize("policy", ["none", "warn", "enforce"])
@pytest.mark.parametrize("case", CASES)
def test_check_of_each_case_and_policy_gives_its_verdict(registry, policy, case):
    """The policy none accepts all; warn passes with the reason what enforce rejects with it."""
    payload, id, version, reason = CASES[case]
    subject = None if case == "no subject" else "events"
    verdict = check_schema(payload, registry, subject, id, version, policy=policy)
    if policy == "none" or reason is None:
        assert verdict == ("accept", None)
    else:
        assert verdict == ({"warn": "warn", "enforce": "reject"}[policy], reason)


@pytest.mark.parametrize(
    ("id", "payload", "reason"),
    [
        (None, frame(3, b"\x02"), None),
        (3, frame(3, b"\x02"), None),
        (2, frame(3, b"\x02"), "the schema ID in the payload's framing must be 2, got 3"),
        (3, b"\x02", "payload b'\\x02': Confluent's framing takes 5 bytes, got 1"),
        (3, b"\x01" + frame(3, b"\x02")[1:], "framing begins with a zero byte, got 1"),
        (None, frame(4_294_967_295, b""), "unknown schema 4294967295"),
        (None, frame(3, b""), "payload b'': not Avro"),
        (2, None, "payload must be bytes, got None"),
    ],
)
def test_check_with_confluents_framing_takes_the_id_of_the_payload(registry, id, payload, reason):
    """The ID is the payload's, an ID beside it must be the same, and the rest is checked."""
    verdict = check_schema(payload, registry, "events", id, policy="enforce", framing="confluent")
    assert (verdict.verdict, verdict.reason is None) == ("accept" if reason is None else "reject", reason is None)
    assert reason is None or reason in verdict.reason


@given(st.integers(0, 2**32 - 1), st.binary(max_size=20))
def test_unframe_of_a_framed_payload_returns_both_parts(id, payload):
    """The ID is big-endian after a zero byte."""
    assert frame(id, payload) == b"\0" + id.to_bytes(4, "big") + payload
    assert unframe(frame(id, payload)) == (id, payload)
    with pytest.raises(InvalidMessage):
        unframe(b"\1" + frame(id, payload)[1:])
    for beyond in (-1, 2**32):
        with pytest.raises(ValueError, match="schema_id must be 0 to 4294967295"):
            frame(beyond, payload)


def test_check_with_an_unknown_option_names_the_known_ones(registry):
    for call in (
        lambda: check_schema(b"", registry, "events", 1, policy="strict"),
        lambda: check_schema(b"", registry, "events", 1, policy="none", framing="iggy"),
        lambda: registry.register("events", "{}", "xml"),
        lambda: registry.set_compatibility("events", "transitive"),
        lambda: check_compatibility("backwards", "json", "{}", "json", "{}"),
        lambda: check_compatibility("full", "xml", "{}", "json", "{}"),
        lambda: check_compatibility("full", "json", "{}", "xml", "{}"),
    ):
        with pytest.raises(ValueError, match="must be one of"):
            call()


# --- schemas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "json"),
        ("[]", "json"),
        ('"\ud800"', "json"),
        ('{"type": "nothing"}', "json"),
        ('{"$schema": "http://localhost:1/own"}', "json"),
        ('{"$schema": 7}', "json"),
        ('{"$ref": "http://localhost:1/x.json"}', "json"),
        ('{"$ref": "file:///etc/passwd"}', "json"),
        ('{"$id": "http://localhost:1/a", "$ref": "b"}', "json"),
        ('{"multipleOf": 0}', "json"),
        ('{"items": ' * 2000 + "true" + "}" * 2000, "json"),
        ('{"type": "record"}', "avro"),
        ('"nothing"', "avro"),
        ("{", "avro"),
        (AVRO_SCHEMA.replace("}]", '}, {"name": "n", "type": "int"}]'), "avro"),
        ('{"type": "array", "items": ' * 2000 + '"int"' + "}" * 2000, "avro"),
    ],
)
def test_register_of_an_invalid_schema_raises_invalid_schema(registry, text, kind):
    with pytest.raises(InvalidSchema, match=r"[Ss]chema"):
        registry.register("events", text, kind)
    assert len(registry.versions("events")) == 2


@pytest.mark.parametrize(
    ("schema", "wrong", "right"),
    [
        ('{"prefixItems": [{"type": "string"}]}', b"[1]", b'["x", 1]'),
        ('{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}', b"1.0", b"1"),
        ('{"$schema": "http://json-schema.org/draft-07/schema", "if": {"minimum": 3}, "then": false}', b"3", b"2"),
        ('{"$schema": "https://json-schema.org/draft-04/schema", "type": "integer"}', b"1.0", b"1"),
        ('{"$schema": "http://json-schema.org/draft/2020-12/schema#", "prefixItems": [false]}', b"[1]", b"[]"),
    ],
)
def test_check_of_json_follows_the_schemas_draft(schema, wrong, right):
    """A schema without ``$schema`` follows draft 2020-12."""
    assert problem("json", schema, wrong) is not None
    assert problem("json", schema, right) is None


TWO_DIGITS = {"logicalType": "decimal", "precision": 2}
LENIENT = {
    "a hyphen in the namespace": ({"namespace": "my-ns"}, {}),
    "a default of another type": ({}, {"default": "x"}),
    "a decimal without a precision": ({}, {"type": {"type": "bytes", "logicalType": "decimal"}}),
    "a decimal of precision 0": ({}, {"type": {"type": "bytes", "logicalType": "decimal", "precision": 0}}),
    "a decimal whose scale is null": ({}, {"type": {"type": "bytes", **TWO_DIGITS, "scale": None}}),
    "a decimal whose precision is false": ({}, {"type": {"type": "bytes", **TWO_DIGITS, "precision": False}}),
    "a decimal with a large scale": ({}, {"type": {"type": "bytes", **TWO_DIGITS, "scale": 5}}),
    "a logical type of another type": ({}, {"type": {"type": "string", **TWO_DIGITS}}),
    "an unknown logical type": ({}, {"type": {"type": "int", "logicalType": "money"}}),
}
STRICT = ("a hyphen in the namespace", "a default of another type", "a decimal with a large scale")
"""The faults that the specification does not allow in a new schema."""


@pytest.mark.parametrize("case", LENIENT)
def test_avro_of_another_registry_is_checked_as_a_reader_reads_it(case):
    """A reader ignores some faults of a schema, so they reject no message; a new schema must not have them."""
    of_record, of_field = LENIENT[case]
    field = {"name": "n", "type": "int", **of_field}
    text = json.dumps({"type": "record", "name": "R", **of_record, "fields": [field]})
    source = from_lookup({7: text}.get, kind="avro")
    payload = b"\x02" if field["type"] == "int" or "int" in str(field["type"]) else b"\x02a"
    assert check_schema(payload, source, None, 7, policy="enforce") == ("accept", None)
    assert check_schema(b"", source, None, 7, policy="enforce").verdict == "reject"
    with pytest.raises(InvalidSchema, match="invalid Avro schema") if case in STRICT else nullcontext():
        SchemaRegistry().register("events", text, "avro")


INNER = {
    "type": "record",
    "name": "S",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "bytes", "default": "a"}],
}
FIXED = {"type": "fixed", "name": "F", "size": 2}
DEFAULTS = {
    "int": (2**31 - 1, [2**31, True, 1.5]), "long": (-(2**63), [2**63]), "bytes": ("\u00ff", ["\u0100", 1]),
    "array": ([1], ["x", ["x"]]), "map": ({"k": 1}, [{"k": "v"}, []]), "record": ({"x": 1}, [{}, {"x": "1"}, []]),
    "enum": ("A", ["B"]), "fixed": ("ab", ["abc"]), "union": ({"x": 1}, [{"x": "1"}, 1.5]), "name": ({"x": 1}, [{}]),
    "double": (1, ["1"]),
}  # fmt: skip
AVRO_TYPES = {
    "array": {"type": "array", "items": "int"}, "map": {"type": "map", "values": "int"}, "record": INNER,
    "enum": {"type": "enum", "name": "E", "symbols": ["A"]}, "fixed": FIXED, "union": ["null", INNER], "name": "S",
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_register_refuses_a_default_that_does_not_fit_its_type(name):
    """Also in a record inside of an array; the packages check some types alone."""
    right, wrong = DEFAULTS[name]
    for default in (right, *wrong):
        fields = [{"name": "b", "type": AVRO_TYPES.get(name, name), "default": default}]
        if name == "name":  # a reference to a type that another field has defined
            fields.insert(0, {"name": "a", "type": INNER})
        record = {"type": "record", "name": "R", "fields": fields}
        for schema in (record, {"type": "array", "items": record}):
            with nullcontext() if default is right else pytest.raises(InvalidSchema, match="invalid Avro schema"):
                SchemaRegistry().register("events", json.dumps(schema), "avro")


# --- payloads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"NaN", "not JSON: NaN is not a JSON number"),
        (b"[-Infinity]", "not JSON: -Infinity"),
        (b"1e400", "beyond the range of a double"),
        (b"9" * 5000, "not JSON: Exceeds the limit"),
        (b'"\\ud800"', "not JSON: an unpaired surrogate"),
        (b'{"\\uDFFF": 1}', "not JSON: an unpaired surrogate"),
        (b'"\xed\xa0\x80"', "not JSON: not UTF-8"),
        ("1".encode("utf-16"), "not JSON: not UTF-8"),
        (b"[" * 129 + b"]" * 129, "nested deeper than 128"),
        (b"[" * 100_000, "nested deeper than 128"),
        (b"", "not JSON"),
        (b"{}{}", "not JSON"),
    ],
)
def test_check_of_text_beyond_a_bound_gives_the_reason(payload, reason):
    """Every schema refuses what other JSON parsers do not read, even the schema that accepts all."""
    for schema in (
        "true",
        '{"type": ["string", "array", "object", "number"], "multipleOf": 0.01, "uniqueItems": true}',
    ):
        assert reason in problem("json", schema, payload)


@pytest.mark.parametrize(
    "payload",
    [
        b'"\\ud83d\\ude00"',
        b'["' + b"[{" * 200 + b'"]',
        b"[[]," * 127 + b"[]" + b"]" * 127,
        b"[" + b"[{}]," * 200 + b"1]",
        b'"\\\\ud800"',
        b"9" * 4000,
    ],
)
def test_check_of_text_within_the_bounds_is_accepted(payload):
    """Brackets in strings or side by side are not nesting; a pair of surrogates is one character."""
    assert problem("json", "true", payload) is None


@given(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass"))))
@example(b'{"n": 1e999}')
@example(b'{"n": [1, 1e-400]}')
def test_check_of_any_bytes_gives_a_verdict(payload):
    """No payload raises, whatever the schema's keywords."""
    schema = '{"multipleOf": 1e-300, "pattern": "^(a+)+$", "uniqueItems": true, "enum": [1, "a", null, {"n": 1e308}]}'
    for kind, text in (("json", JSON_SCHEMA), ("json", schema), ("avro", AVRO_SCHEMA), ("avro", TREE), ("avro", LIST)):
        found = problem(kind, text, payload)
        assert found is None or found.encode("utf-8")


NAMED = [{"type": "enum", "name": "E", "symbols": ["A", "B"]}, {"type": "fixed", "name": "n.F", "size": 2}]
TYPES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string", *NAMED, "E", "n.F"]
TYPES += [{"type": "array", "items": "E"}, {"type": "map", "values": "null"}, {"type": "int"}, ["null", "E"]]
VALUES = [None, True, -1, 1 << 40, 1.5, -2.5, b"\xff", "text", "B", b"ab", "A", b"cd", ["A", "B"], {"k": None}, 7, "B"]
EVERY = {f"f{n}": (type, value) for n, (type, value) in enumerate(zip(TYPES, VALUES, strict=True))}


@pytest.mark.parametrize("is_recursive", [False, True])
def test_check_of_a_payload_with_every_type_accepts_it(is_recursive):
    """A schema that refers to itself is read by avro first, and any other by fastavro alone."""
    fields = [{"name": name, "type": type} for name, (type, _) in EVERY.items()]
    value = {name: value for name, (_, value) in EVERY.items()}
    if is_recursive:
        fields.append({"name": "next", "type": ["null", "R"]})
        value = {**value, "next": {**value, "next": None}}
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    payload = avro(value, schema)
    assert problem("avro", schema, payload) is None
    assert problem("avro", schema, payload + b"x") == "1 bytes after the end of the Avro"
    assert all(problem("avro", schema, payload[:length]) for length in range(len(payload)))


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        (LIST, b"\x02" * MAX_DEPTH + b"\0", "nested deeper than 64 levels"),
        (LIST, b"\x02" * (MAX_DEPTH - 1) + b"\0", None),
        (TREE, b"\x02" * 5000, "nested deeper than 64 levels"),
        (ENDLESS, b"", "nested deeper than 64 levels"),
        (DOUBLING, b"", f"more than {MAX_EMPTY_VALUES} values that take no bytes"),
        (NULLS, bytes([0xC2, 0x9A, 0x0C, 0]), f"more than {MAX_EMPTY_VALUES} values that take no bytes"),
        (NULLS, THIRTY_MILLION, "not Avro of the schema: "),
        (NULLS, b"\xff" * 9 + b"\x01" + b"\x00\x00", "not Avro of the schema: "),
        (EMPTIES, bytes([0xE0, 0xD4, 0x03, 0]), None),
        (EMPTIES, bytes([0xC0, 0x9A, 0x0C, 0]), f"more than {MAX_EMPTY_VALUES} values"),
        ('{"type": "array", "items": "int"}', THIRTY_MILLION, "the payload ends before the value"),
        ('{"type": "map", "values": "null"}', THIRTY_MILLION, "the payload ends before the value"),
        ('["null", "int"]', b"\x04", "not Avro of the schema: IndexError"),
        ('"string"', b"\x01", "the payload ends before the value"),
        ('"bytes"', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "the payload ends before the value"),
        ('"string"', b"\x02\xff", "UnicodeDecodeError"),
        ('{"type": "long", "logicalType": "timestamp-millis"}', b"\xff" * 9 + b"\x01", "not Avro of the schema"),
    ],
)
def test_check_of_avro_beyond_a_bound_gives_the_reason(schema, payload, reason):
    """Depth and values without bytes are bounded before fastavro sees the payload."""
    found = problem("avro", schema, payload)
    assert found is None if reason is None else reason in found


def test_check_of_five_kilobytes_of_recursive_avro_does_not_end_the_process():
    """The process survives, also in a thread with a small stack."""
    program = f"""
import threading
from msgid.schemas import SchemaRegistry, check_schema

registry = SchemaRegistry()
for schema in ({LIST!r}, {TREE!r}):
    registry.register("s", schema, "avro")
def run():
    for id in (1, 2):
        for payload in (b"\\x02" * 5_000, b"\\x02" * 1_000_000, b"\\x02" * 127 + b"\\0" * 200):
            print(check_schema(payload, registry, "s", id, policy="enforce").verdict)
threading.stack_size(256 * 1024)
for target in (run, threading.Thread(target=run).run):
    target()
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
    done = python(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split().count("reject") >= 12


@pytest.mark.parametrize("end", [b"", b"\\", b'"'])
def test_payload_with_many_quotation_marks_is_read_once(end):
    """The search for strings goes on after an unclosed string, instead of once from each of its quotation marks."""
    payload = b"[" * (JSON_DEPTH + 1) + b'"' + b'\\"' * 1_000_000 + end
    assert problem("json", "true", payload) == f"JSON nested deeper than {JSON_DEPTH} levels"
    assert problem("json", "true", b"[" * 100 + payload[JSON_DEPTH + 1 :]).startswith("not JSON: ")
