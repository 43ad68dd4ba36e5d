"""Whether one version of a schema reads what another wrote: rules for Avro and for JSON Schema, on parsed schemas.

Avro's are those of its specification (schema resolution). JSON Schema has none of its own: here a reader takes what a
writer allows if every value that the writer's ``type``, ``required``, ``properties``, ``enum``, ``items`` and
``additionalProperties`` let through is let through by the reader's. Other keywords must be the same in both.
"""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["incompatibilities"]

_KNOWN: Final = {"type", "required", "properties", "enum", "items", "additionalProperties"}
_NO_RULE: Final = {"$schema", "$id", "title", "description", "default", "examples", "$comment"}
_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


def incompatibilities(mode: str, old_kind: str, old_text: str, new_kind: str, new_text: str) -> list[str]:
    """Say what keeps a new schema from being ``backward``, ``forward`` or ``full`` compatible with an old one.

    Args:
        mode: ``backward``: the new reads what the old wrote; ``forward``: the old reads what the new writes; ``full``.
        old_kind: ``json`` or ``avro``.
        old_text: the old schema.
        new_kind: ``json`` or ``avro``.
        new_text: the new schema.

    Returns:
        the reasons; none if it is compatible.

    >>> incompatibilities("backward", "avro", '"int"', "avro", '"long"')
    []
    >>> incompatibilities("forward", "avro", '"int"', "avro", '"long"')
    ['a long cannot be read as a int']
    """
    if old_kind != new_kind:
        return [f"the kind was {old_kind} and is {new_kind}"]
    reads = _avro if old_kind == "avro" else _json
    old, new = json.loads(old_text), json.loads(new_text)
    found = []
    if mode in ("backward", "full"):
        found += reads(new, old)
    if mode in ("forward", "full"):
        found += reads(old, new)
    return found


# JSON Schema


def _json(reader: Any, writer: Any, where: str = "") -> list[str]:
    if reader is True or reader == {} or writer is False:
        return []
    if reader is False:
        return [f"nothing is allowed{where} any more"]
    writer = {} if writer is True else writer
    found = [
        f"{quoted} differs{where}"
        for quoted in sorted((set(reader) | set(writer)) - _KNOWN - _NO_RULE)
        if reader.get(quoted) != writer.get(quoted)
    ]
    missing = sorted(_types(writer) - _types(reader))
    found += [f"a {type} was allowed{where}" for type in missing]
    if "enum" in reader:
        if "enum" not in writer:
            found.append(f"any value was allowed{where}")
        else:
            found += [f"{value!r} was allowed{where}" for value in writer["enum"] if value not in reader["enum"]]
    required = set(reader.get("required", ())) - set(writer.get("required", ()))
    found += [f"{name!r} was not required{where}" for name in sorted(required)]
    mine, theirs = reader.get("properties", {}), writer.get("properties", {})
    for name in sorted(set(mine) | set(theirs)):
        one = mine.get(name, reader.get("additionalProperties", True))
        other = theirs.get(name, writer.get("additionalProperties", True))
        found += _json(one, other, f"{where} in {name!r}")
    found += _json(
        reader.get("additionalProperties", True),
        writer.get("additionalProperties", True),
        f"{where} in a property of another name",
    )
    if isinstance(reader.get("items", True), dict | bool) and isinstance(writer.get("items", True), dict | bool):
        found += _json(reader.get("items", True), writer.get("items", True), f"{where} in an item")
    elif reader.get("items") != writer.get("items"):
        found.append(f"items differ{where}")
    return found


def _types(schema: dict[str, Any]) -> set[str]:
    held = schema.get("type", list(_TYPES))
    types = {held} if isinstance(held, str) else set(held)
    return types | {"integer"} if "number" in types else types


# Avro: the specification's rules of schema resolution

_PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def _avro(reader: Any, writer: Any) -> list[str]:
    return _resolve(reader, writer, {}, {}, set())


def _resolve(
    reader: Any, writer: Any, mine: dict[str, Any], theirs: dict[str, Any], seen: set[tuple[str, str]]
) -> list[str]:
    reader, writer = _named(reader, mine), _named(writer, theirs)
    if isinstance(writer, list):  # whatever of the union was written must be read
        return [problem for branch in writer for problem in _resolve(reader, branch, mine, theirs, seen)]
    if isinstance(reader, list):
        if any(not _resolve(branch, writer, dict(mine), dict(theirs), set(seen)) for branch in reader):
            return []
        return [f"a {_type(writer)} is in none of the union's branches"]
    is_, was = _type(reader), _type(writer)
    if is_ != was:
        return [] if is_ in _PROMOTED.get(was, ()) else [f"a {was} cannot be read as a {is_}"]
    if is_ in ("record", "enum", "fixed"):
        if _short(reader) != _short(writer):
            return [f"the {is_} was named {_short(writer)!r} and is {_short(reader)!r}"]
        pair = (_short(reader), _short(writer))
        if pair in seen:
            return []
        seen.add(pair)
    if is_ == "record":
        return _records(reader, writer, mine, theirs, seen)
    if is_ == "enum":
        left = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
        return [] if "default" in reader else [f"the symbol {symbol!r} was allowed" for symbol in left]
    if is_ == "fixed" and reader["size"] != writer["size"]:
        return [f"{_short(reader)!r} had {writer['size']} bytes and has {reader['size']}"]
    if is_ in ("array", "map"):
        part = "items" if is_ == "array" else "values"
        return _resolve(reader[part], writer[part], mine, theirs, seen)
    return []


def _records(
    reader: Any, writer: Any, mine: dict[str, Any], theirs: dict[str, Any], seen: set[tuple[str, str]]
) -> list[str]:
    written = {field["name"]: field for field in writer["fields"]}
    found = []
    for field in reader["fields"]:
        names = [field["name"], *field.get("aliases", ())]
        other = next((written[name] for name in names if name in written), None)
        if other is not None:
            found += _resolve(field["type"], other["type"], mine, theirs, seen)
        elif "default" not in field:
            found.append(f"the field {field['name']!r} is new and has no default")
    return found


def _named(schema: Any, names: dict[str, Any]) -> Any:
    """Give what a name stands for, and keep what has one."""
    if isinstance(schema, str):
        return names.get(schema.rpartition(".")[2], schema)
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), dict | list):
            return _named(schema["type"], names)
        if "name" in schema:
            names[_short(schema)] = schema
    return schema


def _type(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


def _short(schema: dict[str, Any]) -> str:
    return str(schema["name"]).rpartition(".")[2]
