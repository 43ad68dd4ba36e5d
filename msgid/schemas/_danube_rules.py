"""The compatibility that a Danube broker asks for, which is less than that a reader can read every message.

The rules are those of 231 recorded verdicts of a broker (release 0.9.0, 2026-11-23). They cover records in Avro and
objects in JSON Schema; other schemas are not decided.
"""

from __future__ import annotations

from typing import Any

from msgid.schemas._avro_rules import Problem


def problems(kind: str, old: Any, new: Any, *, backward: bool) -> list[Problem]:
    """Return why a broker refuses a new schema, in one of the two directions."""
    if kind == "avro":
        return _avro_problems(new, old) if backward else _avro_problems(old, new)
    return _json_problems(old, new, backward=backward)


def _json_problems(old: Any, new: Any, *, backward: bool) -> list[Problem]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [Problem("a schema that is true or false was not recorded", False)]
    before, after = (_dict(schema.get("properties")) for schema in (old, new))
    must_before, must_after = (_list(schema.get("required")) for schema in (old, new))
    common = [name for name in before if name in after]
    texts = []
    if backward:
        texts += [f"required property {name!r} is gone" for name in must_before if name not in after]
        texts += [
            f"optional property {name!r} became required"
            for name in common
            if name in must_after and name not in must_before
        ]
    else:
        texts += [f"new property {name!r} is required" for name in must_after if name not in before]
    for name in common:
        types = [_dict(schema[name]).get("type") for schema in (before, after)]
        if None not in types and types[0] != types[1]:
            texts.append(f"the type of property {name!r} changed")
    return [Problem(text) for text in texts]


def _avro_problems(reader: Any, writer: Any) -> list[Problem]:
    """Compare which fields there are; a broker does not compare their types."""
    for schema in (reader, writer):
        if not (isinstance(schema, dict) and schema.get("type") == "record"):
            return [Problem("a schema that is not a record was not recorded", False)]
    if _full_name(reader) != _full_name(writer):
        return [Problem("records with different names were not recorded", False)]
    held = {field["name"] for field in writer["fields"]}
    found = []
    for field in reader["fields"]:
        if field["name"] in held or "default" in field:
            continue
        if not isinstance(field["type"], list):
            found.append(Problem(f"field {field['name']!r} is missing, without a default"))
        elif "null" not in field["type"]:
            found.append(
                Problem(f"a union without null and without default, {field['name']!r}, was not recorded", False)
            )
    return found


def _full_name(schema: dict[str, Any]) -> str:
    name, space = str(schema["name"]), schema.get("namespace")
    return name if "." in name or not space else f"{space}.{name}"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
