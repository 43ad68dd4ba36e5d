"""Random pairs of JSON Schemas, an old one and a copy with one or two changes, and random JSON values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

__all__ = ["DRAFTS", "Pairs", "random_value"]

DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
NAMES = ("a", "b", "ab")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
SCALARS = (None, True, False, 0, 1, 1.0, -1, 2, 3, 1.5, 0.5, "", "a", "ab", "abc", "b", "1", "2020-01-01", [], {})
ONE = ("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else")
ONE_2019 = ("unevaluatedProperties", "unevaluatedItems")
LIST = ("anyOf", "allOf", "oneOf")
MAP = ("properties", "patternProperties", "dependentSchemas", "dependencies")
NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
LENGTHS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
OTHERS = (
    "enum",
    "const",
    "multipleOf",
    "pattern",
    "uniqueItems",
    "required",
    "prefixItems",
    "dependentRequired",
    "format",
)
COMMON = ("type", "type", "type", "properties", "properties", "items", "$ref")
KEYWORDS = (*COMMON, *ONE, *ONE_2019, *LIST, *MAP, *NUMBERS, *LENGTHS, *OTHERS)
NESTED = {*ONE, *ONE_2019, *LIST, *MAP, "prefixItems"}
DEEPEST = 2


def random_value(random: Random, depth: int = 0) -> Any:
    """Return a random JSON value."""
    choice = random.random()
    if depth > DEEPEST or choice < 0.5:
        return random.choice(SCALARS)
    if choice < 0.75:
        return [random_value(random, depth + 1) for _ in range(random.randrange(4))]
    return {random.choice((*NAMES, "c", "x1")): random_value(random, depth + 1) for _ in range(random.randrange(4))}


class Pairs:
    """Random schemas of one draft."""

    def __init__(self, random: Random, draft: str) -> None:
        self.random = random
        self.draft = draft

    def pair(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return an old and a new schema."""
        old = self.document()
        new = self.changed(old)
        return (old, new) if self.random.random() < 0.5 else (new, old)

    def document(self) -> dict[str, Any]:
        """Return a schema that sets its draft and defines two other schemas."""
        definitions = {"d": self.schema(1), "e": self.schema(1)}
        return {"$schema": DRAFTS[self.draft], "definitions": definitions, **self.object(0)}

    def schema(self, depth: int) -> Any:
        """Return a schema, sometimes a boolean if the draft allows it."""
        if self.random.random() < 0.08:
            return {} if self.draft == "4" else self.random.choice((True, False, {}))
        return self.object(depth)

    def object(self, depth: int) -> dict[str, Any]:
        """Return a schema with a few keywords."""
        made: dict[str, Any] = {}
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            keyword = self.random.choice(KEYWORDS)
            if depth < DEEPEST or keyword not in NESTED:
                made[keyword] = self.value(keyword, depth)
        return made

    def value(self, keyword: str, depth: int) -> Any:
        """Return a value for a keyword."""
        random = self.random
        if keyword in (*ONE, *ONE_2019):
            tuple_items = keyword == "items" and self.draft != "2020-12" and random.random() < 0.3
            return [self.schema(depth + 1) for _ in range(2)] if tuple_items else self.schema(depth + 1)
        if keyword in (*LIST, "prefixItems"):
            return [self.schema(depth + 1) for _ in range(random.randrange(1, 4))]
        if keyword == "patternProperties":
            return {random.choice(("^a", "b$", ".")): self.schema(depth + 1)}
        if keyword in MAP:
            return {name: self.schema(depth + 1) for name in random.sample(NAMES, random.randrange(1, 3))}
        if keyword in NUMBERS:
            switch = self.draft == "4" and keyword.startswith("exclusive")
            return random.random() < 0.7 if switch else random.choice((-1, 0, 1, 2, 3, 1.5, 1.0, 0.1))
        if keyword in LENGTHS:
            return random.randrange(4)
        return self.other(keyword)

    def other(self, keyword: str) -> Any:
        """Return a value for a keyword without schemas."""
        random = self.random
        if keyword == "type":
            return random.choice(TYPES) if random.random() < 0.7 else random.sample(TYPES, random.randrange(1, 4))
        if keyword == "enum":
            return list({json.dumps(value): value for value in (random_value(random, 1) for _ in range(3))}.values())
        made: dict[str, Any] = {
            "const": random_value(random, 1),
            "multipleOf": random.choice((1, 2, 3, 0.5, 1.5, 0.1)),
            "pattern": random.choice(("^a", "a", "^a$", "^[ab]*$", ".", "^$")),
            "uniqueItems": random.random() < 0.8,
            "required": random.sample(NAMES, random.randrange(1, 3)),
            "dependentRequired": {random.choice(NAMES): random.sample(NAMES, 1)},
            "format": random.choice(("date", "email")),
            "$ref": random.choice(("#/definitions/d", "#/definitions/e", "#")),
        }
        return made[keyword]

    def changed(self, schema: Any) -> Any:
        """Return a schema with one or two changes, in itself or in a nested schema."""
        random = self.random
        if not isinstance(schema, dict) or not schema or random.random() < 0.1:
            return schema if isinstance(schema, dict) and "$schema" in schema else self.schema(1)
        made = dict(schema)
        for _ in range(random.choice((1, 1, 2))):
            keys = [key for key in made if key != "$schema"] or ["type"]
            keyword = random.choice(keys)
            choice = random.random()
            if keyword == "definitions":
                made[keyword] = {name: self.changed(part) for name, part in made[keyword].items()}
            elif choice < 0.35:
                made.pop(keyword, None)
            elif choice < 0.5 and keyword in KEYWORDS:
                made[keyword] = self.value(keyword, 1)
            elif choice < 0.8 and keyword in MAP and isinstance(made.get(keyword), dict):
                made[keyword] = {name: self.changed(part) for name, part in made[keyword].items()}
            elif choice < 0.8 and keyword in LIST and keyword in made:
                made[keyword] = [self.changed(part) for part in made[keyword]]
            elif choice < 0.8 and keyword in NESTED and keyword in made:
                made[keyword] = self.changed(made[keyword])
            else:
                added = random.choice(KEYWORDS)
                made[added] = self.value(added, 1)
        return made
