"""Measure a check of payloads by their schemas: JSON through jsonschema-rs, Avro through fastavro.

"Decode alone" is json.loads or fastavro. "Check" adds the bounds and, for JSON, the schema.

python bench/schemas.py [--seconds 0.5]
"""

from __future__ import annotations

import argparse
import io
import json
import time
from typing import TYPE_CHECKING

import fastavro
from rounds import machine, table

from msgid.schemas._validators import validator

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
FLAT = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "at", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "count", "type": "int"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "ok", "type": "boolean"},
    ],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "lines", "type": {"type": "array", "items": {**FLAT, "name": "Line"}}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}
EVENT = {
    "id": "0123456789abcdef" * 2,
    "at": 1_700_000_000_000_000,
    "amount": 12.5,
    "count": 3,
    "note": None,
    "ok": True,
}
CASES = {
    "flat record": (FLAT, EVENT),
    "20 records in an array": (ORDER, {"id": "order", "lines": [EVENT] * 20, "tags": {"a": "b", "c": "d"}}),
    "1,000 longs in an array": ({"type": "array", "items": "long"}, list(range(1000))),
}
JSON_TYPES = {"string": "string", "long": "integer", "int": "integer", "double": "number", "boolean": "boolean"}


def json_schema(avro: object) -> dict[str, object]:
    """Return the JSON Schema of an Avro schema's values."""
    if isinstance(avro, list):
        return {"anyOf": [{"type": "null"}, json_schema(avro[1])]}
    if isinstance(avro, str):
        return {"type": JSON_TYPES[avro]}
    assert isinstance(avro, dict)
    if avro["type"] == "array":
        return {"type": "array", "items": json_schema(avro["items"])}
    if avro["type"] == "map":
        return {"type": "object", "additionalProperties": json_schema(avro["values"])}
    fields = {field["name"]: json_schema(field["type"]) for field in avro["fields"]}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def best(functions: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the least microseconds per call of each function; they take turns in rounds."""
    micros = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            calls, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < seconds / ROUNDS:
                for _ in range(10):
                    function()
                calls += 10
            micros[name] = min(micros[name], spent / calls * 1e6)
    return micros


def rows(seconds: float) -> list[list[str]]:
    """Measure each case."""
    lines = []
    for name, (schema, value) in CASES.items():
        parsed = fastavro.parse_schema(schema)
        file = io.BytesIO()
        fastavro.schemaless_writer(file, parsed, value)
        binary, text = file.getvalue(), json.dumps(value).encode()
        check = validator("avro", json.dumps(schema))
        judge = validator("json", json.dumps(json_schema(schema)))
        assert check(binary) is None
        assert judge(text) is None
        times = best(
            {
                "fastavro": lambda parsed=parsed, binary=binary: fastavro.schemaless_reader(io.BytesIO(binary), parsed),
                "both": lambda check=check, binary=binary: check(binary),
                "json.loads": lambda text=text: json.loads(text),
                "json": lambda judge=judge, text=text: judge(text),
            },
            seconds,
        )
        for kind, size, keys in (
            ("Avro", len(binary), ("fastavro", "both")),
            ("JSON", len(text), ("json.loads", "json")),
        ):
            lines.append([f"{kind}, {name}", f"{size:,}", *(f"{times[key]:.1f}" for key in keys)])
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="Time per figure.")
    arguments = parser.parse_args()
    print(machine())
    head = ["microseconds per payload", "bytes", "decode alone", "check"]
    print(table(head, rows(arguments.seconds)))
