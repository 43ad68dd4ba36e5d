"""Compile a schema into a function that checks a payload: JSON Schema with jsonschema-rs, Avro with fastavro."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgid._validate import check_installed, quote
from msgid.schemas._avro_types import parse_avro
from msgid.schemas._avro_walk import Malformed, walker
from msgid.schemas._errors import InvalidSchema
from msgid.schemas._json_schema import json_validator

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["json", "avro"]
"""The kind of a schema: JSON Schema or Avro."""


def parse_schema_text(text: str) -> Any:
    """Return the JSON value of a schema's text.

    Raises:
        InvalidSchema: if the text is not JSON.
    """
    if not isinstance(text, str):
        raise InvalidSchema(f"a schema must be text, got {quote(text)}")
    try:
        text.encode("utf-8")
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"invalid schema {quote(text)}: not JSON: {error}") from None


@lru_cache(maxsize=256)
def validator(kind: Kind, text: str) -> Callable[[bytes], str | None]:
    """Return a function that returns the reason against a payload, or None if the payload is valid.

    Raises:
        InvalidSchema: if the text is not a schema of its kind.
    """
    parsed = parse_schema_text(text)
    return json_validator(text, parsed) if kind == "json" else _avro_validator(text, parsed)


def _avro_validator(text: str, parsed: Any) -> Callable[[bytes], str | None]:
    check_installed("an Avro schema", "schemas", "fastavro")
    import fastavro
    import fastavro.schema

    try:
        walk = walker(parse_avro(parsed))
        schema = fastavro.parse_schema(parsed)
    except Exception as error:  # fastavro raises errors of many types
        raise InvalidSchema(f"invalid Avro schema {quote(text)}: {error}") from None

    def problem(payload: bytes) -> str | None:
        try:
            end = walk(payload)
        except Malformed as error:
            return f"not Avro of the schema: {error}"
        if end != len(payload):
            return f"{len(payload) - end} bytes after the end of the Avro"
        try:
            fastavro.schemaless_reader(io.BytesIO(payload), schema)
        except Exception as error:  # for example text that is not UTF-8, or a timestamp after the year 9999
            return f"not Avro of the schema: {type(error).__name__} {error}".rstrip()
        return None

    return problem
