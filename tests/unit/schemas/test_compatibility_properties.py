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
