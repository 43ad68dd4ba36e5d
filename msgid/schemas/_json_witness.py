"""Search a value that one JSON Schema allows and another does not, which proves that they are not compatible."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALARS: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    1.5,
    1000,
    "",
    "a",
    "text",
    [],
    {},
    [None],
    [0, 0],
    ["a"],
)
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions")
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_LENGTHS: Final = ("minLength", "maxLength", "minItems", "maxItems")
_MOST: Final = 2_000
_LONGEST: Final = 100


def witness(reader: Any, writer: Any) -> str | None:
    """Return the JSON text of a value that the writer allows and the reader does not, or None if none was found.

    Both must be valid schemas of one draft.

    >>> witness({"type": "integer"}, {"type": "number"})
    '0.5'
    >>> witness({"properties": {"a": {"maximum": 3}}}, {"properties": {"a": {"maximum": 4}}})
    '{"a": 4}'
    """
    import jsonschema_rs

    try:
        allowed = jsonschema_rs.validator_for(json.dumps(writer))
        read = jsonschema_rs.validator_for(json.dumps(reader))
        for value in islice(_probes(reader, writer), _MOST):
            if allowed.is_valid(value) and not read.is_valid(value):
                return json.dumps(value)
    except (ValueError, RecursionError):
        return None
    return None


def _probes(reader: Any, writer: Any) -> Iterator[Any]:
    """Yield values, simple ones first: constants, the schemas' own values, and objects and arrays of them."""
    names: dict[str, None] = {}
    values: list[Any] = list(_SCALARS)
    for schema in (writer, reader):
        _collect(schema, names, values)
    yield from values
    for value in values:
        yield [value]
    for value in values:
        for name in names:
            yield {name: value}
    everything = [dict.fromkeys(names, value) for value in values]
    yield from everything
    for value in everything:
        for name in names:
            yield value | {name: [value]}
            yield {name: value}


def _collect(schema: Any, names: dict[str, None], values: list[Any]) -> None:
    """Add the names of properties, and values at the limits of keywords."""
    if isinstance(schema, list):
        for part in schema:
            _collect(part, names, values)
    if not isinstance(schema, dict):
        return
    for key, part in schema.items():
        if key in _NAMED and isinstance(part, dict):
            # A pattern such as ^a often matches its own text.
            names.update(dict.fromkeys(name.strip("^$.*+") for name in part))
        if key == "required" and isinstance(part, list):
            names.update(dict.fromkeys(name for name in part if isinstance(name, str)))
        if key in ("enum", "examples") and isinstance(part, list):
            values += part
        elif key in ("const", "default"):
            values.append(part)
        elif key in _BOUNDS and isinstance(part, int | float):
            values += [part, part + 1, part - 1, part * 2, part + 0.5]
        elif key in _LENGTHS and isinstance(part, int):
            for size in (part - 1, part, part + 1):
                if 0 <= size < _LONGEST:
                    values += ["a" * size, list(range(size))]
        _collect(part, names, values)
