"""Random Avro schemas and their values.

A schema is a model here: a tree of types and a dict of named definitions. A definition is written at its first use.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

__all__ = ["Model", "random_schema"]

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEEPEST = 3


class Model:
    """A schema: a tree of types (kind, part) and its named definitions."""

    def __init__(self) -> None:
        self.defs: list[dict[str, Any]] = []
        self.root: list[Any] = ["null", None]

    def text(self) -> str:
        """Return the schema as Avro's JSON."""
        return json.dumps(self._written(self.root, set()))

    def _written(self, type: list[Any], seen: set[int]) -> Any:
        kind, part = type
        if kind == "union":
            return [self._written(branch, seen) for branch in part]
        if kind in ("array", "map"):
            return {"type": kind, "items" if kind == "array" else "values": self._written(part, seen)}
        if kind != "named":
            return kind
        found = self.defs[part]
        if part in seen:
            return found["name"]
        seen.add(part)
        made = {key: found[key] for key in ("type", "name", "aliases", "symbols", "default", "size") if key in found}
        if found["type"] == "record":
            made["fields"] = [
                {key: field[key] for key in ("name", "aliases", "default") if key in field}
                | {"type": self._written(field["type"], seen)}
                for field in found["fields"]
            ]
        return made

    def value(self, random: Random, type: list[Any] | None = None, depth: int = 0) -> Any:
        """Return a random value, as fastavro writes it."""
        kind, part = self.root if type is None else type
        if kind == "union":
            branches = part
            if depth > DEEPEST:
                simple = [branch for branch in part if branch[0] in PRIMITIVES]
                branches = simple or part
            branch = random.choice(branches)
            value = self.value(random, branch, depth + 1)
            # fastavro chooses the branch of a record by its name
            named = branch[0] == "named" and self.defs[branch[1]]["type"] == "record"
            return (self.defs[branch[1]]["name"], value) if named else value
        if kind in ("array", "map"):
            count = 0 if depth > DEEPEST else random.randrange(3)
            values = [self.value(random, part, depth + 1) for _ in range(count)]
            return values if kind == "array" else {f"k{index}": value for index, value in enumerate(values)}
        if kind != "named":
            return random.choice(_VALUES[kind])
        found = self.defs[part]
        if found["type"] == "enum":
            return random.choice(found["symbols"])
        if found["type"] == "fixed":
            return bytes(found["size"])
        return {field["name"]: self.value(random, field["type"], depth + 1) for field in found["fields"]}


_VALUES: dict[str, tuple[Any, ...]] = {
    "null": (None,),
    "boolean": (True, False),
    "int": (0, -1, 2**31 - 1),
    "long": (0, 1, -(2**63)),
    "float": (0.0, 1.5),
    "double": (0.0, -2.5),
    "bytes": (b"", b"\xff\x00"),
    "string": ("", "text"),
}


def random_schema(random: Random) -> Model:
    """Return a random schema."""
    model = Model()
    spaces = random.choice([[""], ["a."], ["a.", "b."]])
    model.root = _type(model, random, 0, spaces, [])
    return model


def _type(model: Model, random: Random, depth: int, spaces: list[str], open: list[int]) -> list[Any]:
    choice = random.random()
    if depth > DEEPEST or choice < 0.35:
        return [random.choice(PRIMITIVES), None]
    if choice < 0.5:
        if open and random.random() < 0.5:  # recursive
            return ["union", [["null", None], ["named", random.choice(open)]]]
        return _union(model, random, depth, spaces, open)
    if choice < 0.62:
        return [random.choice(["array", "map"]), _type(model, random, depth + 1, spaces, open)]
    closed = [index for index in range(len(model.defs)) if index not in open]
    if closed and choice < 0.72:
        return ["named", random.choice(closed)]
    return ["named", _definition(model, random, depth, spaces, open)]


def _union(model: Model, random: Random, depth: int, spaces: list[str], open: list[int]) -> list[Any]:
    branches: dict[Any, list[Any]] = {}
    for _ in range(random.randrange(1, 4)):
        branch = _type(model, random, depth + 1, spaces, open)
        if branch[0] != "union":
            branches[branch[1] if branch[0] == "named" else branch[0]] = branch
    return ["union", list(branches.values()) or [["null", None]]]


def _definition(model: Model, random: Random, depth: int, spaces: list[str], open: list[int]) -> int:
    free = [space + name for space in spaces for name in ("R", "S", "T", "U") if space + name not in _names(model)] or [
        f"{spaces[0]}N{len(model.defs)}"
    ]
    made: dict[str, Any] = {"type": random.choice(["record", "record", "enum", "fixed"]), "name": random.choice(free)}
    index = len(model.defs)
    model.defs.append(made)
    if made["type"] == "enum":
        made["symbols"] = random.sample(["A", "B", "C"], random.randrange(1, 4))
        if random.random() < 0.3:
            made["default"] = random.choice(made["symbols"])
    elif made["type"] == "fixed":
        made["size"] = random.randrange(3)
    else:
        made["fields"] = []
        for name in random.sample(["f", "g", "h"], random.randrange(4)):
            type = _type(model, random, depth + 1, spaces, [*open, index])
            made["fields"].append(_field(random, name, type))
    return index


def _names(model: Model) -> set[str]:
    return {definition["name"] for definition in model.defs}


def _field(random: Random, name: str, type: list[Any]) -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": type}
    kind = type[1][0][0] if type[0] == "union" else type[0]
    defaults = {
        "null": None,
        "int": 1,
        "long": 2,
        "string": "d",
        "boolean": True,
        "array": [],
        "map": {},
        "double": 1.0,
    }
    if kind in defaults and random.random() < 0.5:
        field["default"] = defaults[kind]
    return field
