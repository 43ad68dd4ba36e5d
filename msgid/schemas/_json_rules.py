"""Decide whether a JSON Schema allows each value that another allows, by rules that follow ``$ref`` and give reasons.

A schema is a conjunction of parts: its own keywords, each member of ``allOf``, the target of ``$ref``, and the choice
of ``anyOf`` or ``oneOf``. One part of the writer must imply each part of the reader. This condition is sufficient for
compatibility but not necessary, so a reason found here is not yet proof of incompatibility.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import unquote

_ANNOTATIONS: Final = frozenset(
    {"$schema", "$id", "id", "$comment", "$defs", "definitions", "title", "description", "default", "examples"}
    | {"readOnly", "writeOnly", "deprecated"}
)
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_OBJECT: Final = ("properties", "patternProperties", "additionalProperties")
_ARRAY: Final = ("items", "prefixItems", "additionalItems")
_PARTS: Final = ("$ref", "allOf", "anyOf", "oneOf")
_OWN: Final = frozenset(
    {"type", "enum", "const", "required", "uniqueItems", *_UPPER, *_LOWER, *_OBJECT, *_ARRAY, *_PARTS}
)
_GROUPS: Final = (("contains", "minContains", "maxContains"), ("if", "then", "else"))
_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
_REFERENCES: Final = re.compile(r'"\$(ref|dynamicRef|recursiveRef)"')
_FAR_REFERENCES: Final = re.compile(r'"\$ref": "(?!#["/])|"\$(dynamicRef|recursiveRef)"')
_STEPS: Final = 20_000


def json_problems(reader: Any, writer: Any, draft: str) -> list[str]:
    """Return reasons against compatibility; none if the reader allows each value that the writer allows.

    Args:
        reader: The schema that must allow the values.
        writer: The schema of the values.
        draft: The draft of both schemas.

    >>> json_problems({"minimum": 1}, {"minimum": 2}, "2020-12")
    []
    >>> json_problems({"minimum": 2}, {"minimum": 1}, "2020-12")
    ['minimum was 1 and is 2']
    """
    if same_json(reader, writer):
        return []
    try:
        return _Rules(reader, writer, draft).contains(reader, writer, "", frozenset())
    except _Unknown as error:
        return [str(error)]
    except RecursionError:
        return ["the schemas are nested too deep"]


def is_recursive(document: Any) -> bool:
    """Return whether a part of a schema has a reference that leads to the same part again.

    References other than ``#`` and ``#/...`` are not followed: the result is then True.

    >>> is_recursive({"items": {"$ref": "#"}}), is_recursive({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}})
    (True, False)
    """
    if not _refers(document):
        return False
    if _has_nested_id(document) or _FAR_REFERENCES.search(_dump(document)):
        return True
    ends: set[int] = set()

    def recurs(value: Any, above: frozenset[int]) -> bool:
        if not isinstance(value, dict | list) or id(value) in ends:
            return False
        within = above | {id(value)}
        parts = list(value.values() if isinstance(value, dict) else value)
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            parts.append(_local(document, value["$ref"]))
        if id(value) in above or any(recurs(part, within) for part in parts):
            return True
        ends.add(id(value))
        return False

    try:
        return recurs(document, frozenset())
    except (LookupError, TypeError, ValueError, RecursionError):  # the reference is invalid, or is in a value
        return True


def _local(document: Any, reference: str) -> Any:
    """Return the part of a document that a reference within the document names.

    Raises:
        LookupError, TypeError, ValueError: if the document does not have the part.
    """
    value = document
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def same_json(one: Any, other: Any) -> bool:
    """Return whether two JSON values have the same canonical text; 1, 1.0 and true all differ."""
    return _dump(one) == _dump(other)


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class _Unknown(Exception):
    """Raised if the rules cannot follow the schemas."""


class _Rules:
    def __init__(self, reader: Any, writer: Any, draft: str) -> None:
        self.documents = (reader, writer)
        self.draft = draft
        # A nested $id changes the meaning of "#".
        self.bases = tuple(_has_nested_id(document) for document in self.documents)
        self.steps = 0
        self.active: set[tuple[int, int]] = set()
        self.made: dict[tuple[int, str], Any] = {}

    def contains(self, reader: Any, writer: Any, where: str, flat: frozenset[tuple[int, int]]) -> list[str]:
        """Compare two schemas. ``flat`` holds the pairs on the path here since the last step into the value."""
        self.steps += 1
        if self.steps > _STEPS:
            raise _Unknown("the schemas have too many combinations")
        if reader is True or reader == {} or writer is False:
            return []
        if reader is False:
            return [f"the new schema rejects every value{where}"]
        writer = _EMPTY if writer is True else writer
        pair = (id(reader), id(writer))
        if pair in flat:
            raise _Unknown(f"a reference leads to itself{where}")
        if pair in self.active:
            return []  # by induction over the size of the value, which is smaller here
        self.active.add(pair)
        try:
            return self.parts(reader, writer, where, flat | {pair})
        finally:
            self.active.discard(pair)

    def parts(self, reader: Any, writer: Any, where: str, flat: frozenset[tuple[int, int]]) -> list[str]:
        wanted, given = self.split(reader, 0), self.split(writer, 1)
        found: list[str] = []
        for name, part in wanted:
            tried = [self.part(name, part, held_name, held, where, flat) for held_name, held in given]
            if all(tried):
                found += tried[0]
        return found

    def part(
        self, name: str, part: Any, held_name: str, held: Any, where: str, flat: frozenset[tuple[int, int]]
    ) -> list[str]:
        """Compare one part of the reader with one part of the writer."""
        if held_name in ("anyOf", "oneOf"):
            if name in ("anyOf", "oneOf") and name == held_name and same_json(part, held) and not _refers(held):
                return []
            whole = self.node(part, name) if name in ("anyOf", "oneOf") else part
            return [problem for branch in held for problem in self.contains(whole, branch, where, flat)]
        if name == "anyOf":
            if any(not self.contains(branch, held, where, flat) for branch in part):
                return []
            return [f"no branch of anyOf allows all that was allowed{where}"]
        if name == "oneOf":
            return [f"oneOf differs{where}"]
        if name == "schema" or held_name == "schema":
            return self.contains(part, held, where, flat)
        return self.own(part, held, where)

    def node(self, branches: Any, name: str) -> Any:
        """Return a choice as a separate schema; the same choice always gives the same object."""
        return self.made.setdefault((id(branches), name), {name: branches})

    def split(self, schema: dict[str, Any], side: int) -> list[tuple[str, Any]]:
        """Return the parts of a schema: own keywords, choices, and other schemas."""
        old = self.draft in ("4", "6", "7")
        if "$ref" in schema and old:
            return [("schema", self.target(schema["$ref"], side))]
        parts: list[tuple[str, Any]] = []
        own = {key: value for key, value in schema.items() if key not in _ANNOTATIONS and key not in _PARTS}
        # The object must be the same each time, so that a reference to itself is detected.
        rest = schema if len(own) == len(schema) else self.made.setdefault((id(schema), "own"), own)
        if rest or not any(key in schema for key in _PARTS):
            parts.append(("own", rest))
        if "$ref" in schema:
            parts.append(("schema", self.target(schema["$ref"], side)))
        parts += [("schema", member) for member in schema.get("allOf", ())]
        parts += [(name, schema[name]) for name in ("anyOf", "oneOf") if name in schema]
        return parts

    def target(self, reference: str, side: int) -> Any:
        if self.bases[side] or not (reference == "#" or reference.startswith("#/")):
            raise _Unknown(f"the rules do not follow the reference {reference!r}")
        try:
            return _local(self.documents[side], reference)
        except (LookupError, TypeError, ValueError):
            raise _Unknown(f"the rules do not follow the reference {reference!r}") from None

    def own(self, reader: dict[str, Any], writer: dict[str, Any], where: str) -> list[str]:
        """Compare the keywords of two schemas that hold no references or combinations of schemas."""
        found = _types(reader, writer, where) + _values(reader, writer, where) + _bounds(reader, writer, where)
        required = set(reader.get("required", ())) - set(writer.get("required", ()))
        found += [f"{name!r} was not required{where}" for name in sorted(required)]
        if reader.get("uniqueItems") and not writer.get("uniqueItems"):
            found.append(f"uniqueItems is new{where}")
        grouped = {key for group in _GROUPS for key in group}
        others = [(key,) for key in sorted(set(reader) - _OWN - grouped)]
        for group in (*_GROUPS, *others):
            mine = {key: reader[key] for key in group if key in reader}
            theirs = {key: writer[key] for key in group if key in writer}
            if mine and (not same_json(mine, theirs) or _refers(mine) or group[0].startswith(("unevaluated", "$"))):
                found.append(f"{' and '.join(mine)} differs{where}")
        found += self.properties(reader, writer, where)
        return found + self.items(reader, writer, where)

    def properties(self, reader: dict[str, Any], writer: dict[str, Any], where: str) -> list[str]:
        if not any(key in reader for key in _OBJECT):
            return []
        mine, theirs = reader.get("properties", {}), writer.get("properties", {})
        my_patterns, their_patterns = reader.get("patternProperties", {}), writer.get("patternProperties", {})
        mine_else, theirs_else = reader.get("additionalProperties", True), writer.get("additionalProperties", True)
        found = [f"patternProperties {new!r} is new{where}" for new in sorted(set(my_patterns) - set(their_patterns))]
        for pattern in sorted(their_patterns):
            place = f"{where} in a property that matches {pattern!r}"
            found += self.inside(my_patterns.get(pattern, mine_else), their_patterns[pattern], place)
        for name in sorted(set(mine) | set(theirs)):
            # A pattern of the writer can replace its additionalProperties here.
            absent = True if their_patterns else theirs_else
            found += self.inside(mine.get(name, mine_else), theirs.get(name, absent), f"{where} in {name!r}")
        return found + self.inside(mine_else, theirs_else, f"{where} in a property of another name")

    def items(self, reader: dict[str, Any], writer: dict[str, Any], where: str) -> list[str]:
        if not any(key in reader for key in _ARRAY):
            return []
        (mine, mine_else), (theirs, theirs_else) = self.tuple_of(reader), self.tuple_of(writer)
        found = []
        for index in range(max(len(mine), len(theirs))):
            one = mine[index] if index < len(mine) else mine_else
            other = theirs[index] if index < len(theirs) else theirs_else
            found += self.inside(one, other, f"{where} in item {index}")
        return found + self.inside(mine_else, theirs_else, f"{where} in an item")

    def tuple_of(self, schema: dict[str, Any]) -> tuple[list[Any], Any]:
        """Return the schemas of the first items, and the schema of all further items."""
        if self.draft == "2020-12":
            return schema.get("prefixItems", []), schema.get("items", True)
        items = schema.get("items", True)
        return (items, schema.get("additionalItems", True)) if isinstance(items, list) else ([], items)

    def inside(self, reader: Any, writer: Any, where: str) -> list[str]:
        """Compare the schemas of a part of the value."""
        return self.contains(reader, writer, where, frozenset())


_EMPTY: Final[dict[str, Any]] = {}


def _types(reader: dict[str, Any], writer: dict[str, Any], where: str) -> list[str]:
    missing = sorted(_type_set(writer) - _type_set(reader))
    return [f"{'an' if type[0] in 'aio' else 'a'} {type} was allowed{where}" for type in missing]


def _type_set(schema: dict[str, Any]) -> set[str]:
    held = schema.get("type", list(_TYPES))
    types = {held} if isinstance(held, str) else set(held)
    return types | {"integer"} if "number" in types else types


def _values(reader: dict[str, Any], writer: dict[str, Any], where: str) -> list[str]:
    """Compare ``enum`` and ``const``."""
    allowed = _value_lists(reader)
    if not allowed:
        return []
    lists = _value_lists(writer)
    if not lists:
        return [f"any value was allowed{where}"]
    return [
        f"{json.dumps(value)} was allowed{where}"
        for value in lists[0]
        for values in allowed
        if not any(same_json(value, one) for one in values)
    ]


def _value_lists(schema: dict[str, Any]) -> list[list[Any]]:
    return [[schema["const"]] if key == "const" else schema[key] for key in ("const", "enum") if key in schema]


def _bounds(reader: dict[str, Any], writer: dict[str, Any], where: str) -> list[str]:
    found = []
    for key in (*_UPPER, *_LOWER):
        if key not in reader or reader[key] is False:  # draft 4 has exclusiveMaximum: false
            continue
        new, old = reader[key], writer.get(key)
        if old is None:
            found.append(f"{key} {new} is new{where}")
        elif isinstance(new, bool) or isinstance(old, bool):
            if new is not old:
                found.append(f"{key} was {old} and is {new}{where}")
        elif old > new if key in _UPPER else old < new:
            found.append(f"{key} was {old} and is {new}{where}")
    return found


def _refers(value: Any) -> bool:
    return _REFERENCES.search(_dump(value)) is not None


def _has_nested_id(document: Any) -> bool:
    """Return whether a schema below the root may have its own base; a property of that name counts too."""
    below = document.values() if isinstance(document, dict) else ()
    return any('"$id": "' in _dump(value) or '"id": "' in _dump(value) for value in below)
