"""Compile a JSON Schema through jsonschema-rs: drafts 4, 6, 7, 2019-09 and 2020-12. Remote documents are never fetched.

A payload must be strict JSON within bounds: UTF-8, finite numbers, limited nesting.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgid.schemas._errors import InvalidSchema
from msgid.shared.validate import check_installed, quote

if TYPE_CHECKING:
    from collections.abc import Callable

DRAFTS: Final = {
    "json-schema.org/draft-04/schema": "4",
    "json-schema.org/draft-06/schema": "6",
    "json-schema.org/draft-07/schema": "7",
    "json-schema.org/draft/2019-09/schema": "2019-09",
    "json-schema.org/draft/2020-12/schema": "2020-12",
}
"""The values of ``$schema``, without ``http`` or ``https`` and a final ``#``, and the name of each draft."""

_ADDRESS: Final = re.compile(r"\Ahttps?://|#\Z")
_SHOWN: Final = 200
"""The maximum number of characters of the validator's message in a reason."""


def draft_of(schema: Any) -> str:
    """Return the draft of a schema by its ``$schema``; 2020-12 without it.

    Raises:
        InvalidSchema: if ``$schema`` is not one of the drafts.
    """
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if named is None:
        return "2020-12"
    draft = DRAFTS.get(_ADDRESS.sub("", named)) if isinstance(named, str) else None
    if draft is None:
        raise InvalidSchema(f"$schema must name draft {', '.join(DRAFTS.values())}, got {quote(named)}")
    return draft


def json_validator(text: str, parsed: Any) -> Callable[[bytes], str | None]:
    """Return a function that returns the reason against a payload, or None if the payload is valid.

    Raises:
        InvalidSchema: if the text is not a JSON Schema.
    """
    check_installed("a JSON Schema", "schemas", "jsonschema_rs")
    import jsonschema_rs

    if not isinstance(parsed, dict | bool):
        raise InvalidSchema(f"invalid JSON Schema {quote(text)}: must be an object or a boolean")
    try:
        draft_of(parsed)
        # Pass the text, because the parser in Rust limits the nesting. The retriever rejects every reference to
        # another document.
        compiled = jsonschema_rs.validator_for(text, retriever=_refuse)
    except Exception as error:  # the compiler raises errors of many types
        reason = str(error).partition("\n")[0]
        raise InvalidSchema(f"invalid JSON Schema {quote(text)}: {reason}") from None

    def problem(payload: bytes) -> str | None:
        try:
            value = parse_json(payload)
            if compiled.is_valid(value):
                return None
            error = next(compiled.iter_errors(value))
        except NotJson as wrong:
            return str(wrong)
        except (ValueError, RecursionError, StopIteration) as wrong:
            return f"cannot validate the JSON: {type(wrong).__name__} {wrong}"
        message = error.message if len(error.message) <= _SHOWN else f"{error.message[:_SHOWN]}..."
        where = "".join(f"/{part}" for part in error.instance_path)
        return f"{message} at {where[:_SHOWN]}" if where else message

    return problem


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"the schema refers to another document, {uri}")


# --- the text of a payload -------------------------------------------------------------------------------------------

MAX_DEPTH: Final = 128
"""The maximum nesting of arrays and objects."""

# A string without an end is one match too. Otherwise each quotation mark in it would be tried as a beginning.
_STRING_OR_BRACKET: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ESCAPED_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """Raised if a payload is not JSON, or exceeds a bound."""


def parse_json(payload: bytes) -> Any:
    """Parse a payload as strict JSON.

    Raises:
        NotJson: if the payload is not JSON in UTF-8, or exceeds a bound.

    >>> parse_json(b'{"n": [1, 2.5]}')
    {'n': [1, 2.5]}
    >>> try:
    ...     parse_json(b"[NaN]")
    ... except NotJson as error:
    ...     print(error)
    not JSON: NaN is not a JSON number
    """
    # Counting the brackets is enough for most payloads, which have few.
    if payload.count(b"[") + payload.count(b"{") > MAX_DEPTH and _depth(payload) > MAX_DEPTH:
        raise NotJson(f"JSON nested deeper than {MAX_DEPTH} levels")
    try:
        value = json.loads(payload.decode("utf-8"), parse_constant=_constant, parse_float=_float)
        if _ESCAPED_SURROGATE.search(payload):  # a pair of surrogates is one character, which is valid
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except NotJson:
        raise
    except UnicodeEncodeError:
        raise NotJson("not JSON: an unpaired surrogate in a string") from None
    except UnicodeDecodeError:
        raise NotJson("not JSON: not UTF-8") from None
    except ValueError as error:
        raise NotJson(f"not JSON: {error}") from None
    return value


def _depth(payload: bytes) -> int:
    """Return the deepest nesting of brackets outside of strings."""
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(payload):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif token in (b"]", b"}"):
            depth -= 1
    return deepest


def _constant(name: str) -> NoReturn:
    raise NotJson(f"not JSON: {name} is not a JSON number")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotJson(f"not JSON: the number {text[:20]} is beyond the range of a double")
    return value
