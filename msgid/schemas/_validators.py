"""Compile a schema into a function that checks a payload: JSON Schema with jsonschema-rs, Avro with fastavro."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgid.schemas._avro import avro_validator
from msgid.schemas._errors import InvalidSchema
from msgid.schemas._json_schema import json_validator
from msgid.shared.validate import quote

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
        raise InvalidSchema(f"a schema must be JSON text, got {quote(text)}")
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
    compile_schema = json_validator if kind == "json" else avro_validator
    return compile_schema(text, parse_schema_text(text))
