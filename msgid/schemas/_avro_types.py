"""Parse an Avro schema into a graph of types with full names, by the rules of its specification."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from msgid._validate import INT32_MAX, in_range, quote
from msgid.schemas._errors import InvalidSchema

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_COMPLEX: Final = frozenset({"record", "enum", "fixed", "array", "map", "union"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
MISSING: Final = object()
_LOGICAL: Final = ("logicalType", "precision", "scale")


@dataclass(slots=True, eq=False)
class AvroField:
    """One field of a record."""

    name: str
    aliases: tuple[str, ...]
    type: AvroType
    default: Any
    """The default as JSON; `MISSING` without one. It need not fit the type."""


@dataclass(slots=True, eq=False)
class AvroType:
    """One type; a recursive schema is a cyclic graph. Only the attributes of its kind are set.

    A type of the kind ``reference`` names a type that the schema defines elsewhere.
    """

    kind: str
    name: str = ""
    """The full name of a record, an enum or a fixed."""
    aliases: tuple[str, ...] = ()
    """The full names of the aliases."""
    fields: list[AvroField] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    default: str | None = None
    """The default symbol of an enum."""
    size: int = 0
    items: AvroType | None = None
    """The type of an array's items or of a map's values."""
    branches: list[AvroType] = field(default_factory=list)
    logical: tuple[Any, ...] = ()
    """The logical type with its precision and scale; empty without a logical type."""
    target: AvroType | None = None

    @property
    def real(self) -> AvroType:
        """The type itself, or the type that a reference names."""
        return self if self.target is None else self.target


def parse_avro(parsed: Any) -> AvroType:
    """Parse a schema from its decoded JSON.

    Raises:
        InvalidSchema: if it breaks a rule of the specification.

    >>> record = parse_avro({"type": "record", "name": "a.R", "fields": [{"name": "r", "type": ["null", "R"]}]})
    >>> record.fields[0].type.branches[1].real is record
    True
    """
    try:
        return _Parser().type(parsed, "")
    except RecursionError:
        _refuse("nested too deep")


class _Parser:
    def __init__(self) -> None:
        self.named: dict[str, AvroType] = {}

    def type(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, str):
            return self.reference(schema, namespace)
        if isinstance(schema, list):
            return self.union(schema, namespace)
        if not isinstance(schema, dict):
            _refuse(f"a type must be a name, an object or a list, got {quote(schema)}")
        kind = schema.get("type")
        if not isinstance(kind, str):
            _refuse(f"the type of an object must be a name, got {quote(kind)}")
        logical = self.logical(schema)
        if kind in PRIMITIVES:
            return AvroType(kind, logical=logical)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            if part not in schema:
                _refuse(f"{kind} without {part}")
            return AvroType(kind, items=self.type(schema[part], namespace))
        if kind not in ("record", "enum", "fixed"):
            return self.reference(kind, namespace)
        return self.definition(kind, schema, namespace, logical)

    @staticmethod
    def logical(schema: dict[str, Any]) -> tuple[Any, ...]:
        if not isinstance(schema.get("logicalType"), str):
            return ()
        name, precision, scale = (schema.get(key) for key in _LOGICAL)
        return (name, precision, 0 if scale is None else scale)

    def reference(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.named.get(full)
        if found is None:
            _refuse(f"unknown type {quote(name)}")
        return AvroType("reference", target=found)

    def union(self, branches: list[Any], namespace: str) -> AvroType:
        union = AvroType("union", branches=[self.type(branch, namespace) for branch in branches])
        if any(branch.kind == "union" for branch in union.branches):
            _refuse("a union directly in a union")
        seen = [branch.real.name or branch.kind for branch in union.branches]
        if len(set(seen)) != len(seen):
            _refuse(f"the same type twice in a union: {', '.join(seen)[:100]}")
        return union

    def definition(self, kind: str, schema: dict[str, Any], namespace: str, logical: tuple[Any, ...]) -> AvroType:
        name, inner = self.full_name(kind, schema, namespace)
        if name in self.named:
            _refuse(f"{quote(name)} is defined twice")
        aliases = tuple(
            alias if "." in alias or not inner else f"{inner}.{alias}"
            for alias in _names("aliases", schema, dotted=True)
        )
        made = AvroType(kind, name, aliases, logical=logical)
        self.named[name] = made
        if kind == "fixed":
            made.size = schema.get("size")  # type: ignore[assignment]
            if not in_range(made.size, 0, INT32_MAX):
                _refuse(f"the size of {quote(name)} must be 0 to {INT32_MAX}, got {quote(made.size)}")
        elif kind == "enum":
            made.symbols = _names("symbols", schema, needed=True)
            made.default = schema.get("default")
            if len(set(made.symbols)) != len(made.symbols):
                _refuse(f"{quote(name)} has a symbol twice")
            if made.default is not None and made.default not in made.symbols:
                _refuse(f"the default of {quote(name)} must be one of its symbols, got {quote(made.default)}")
        else:
            self.fields(made, schema, inner)
        return made

    def fields(self, record: AvroType, schema: dict[str, Any], namespace: str) -> None:
        fields = schema.get("fields")
        if not isinstance(fields, list):
            _refuse(f"the fields of {quote(record.name)} must be a list, got {quote(fields)}")
        for item in fields:
            if not isinstance(item, dict) or "type" not in item:
                _refuse(f"a field of {quote(record.name)} must be an object with a name and a type, got {quote(item)}")
            name = _name("name", item.get("name"))
            if any(name == field.name for field in record.fields):
                _refuse(f"{quote(record.name)} has the field {quote(name)} twice")
            type = self.type(item["type"], namespace)
            record.fields.append(AvroField(name, _names("aliases", item), type, item.get("default", MISSING)))

    @staticmethod
    def full_name(kind: str, schema: dict[str, Any], namespace: str) -> tuple[str, str]:
        """Return a definition's full name and the namespace of the names inside it."""
        name = _name(f"the name of a {kind}", schema.get("name"), dotted=True)
        if "." in name:
            return name, name.rpartition(".")[0]
        if name in PRIMITIVES or name in _COMPLEX:
            _refuse(f"{quote(name)} is the name of a type of Avro's own")
        own = schema.get("namespace")
        inner = namespace if own is None else own
        if inner != "":
            _name("namespace", inner, dotted=True)
        return (f"{inner}.{name}" if inner else name), inner


def _names(what: str, schema: dict[str, Any], *, dotted: bool = False, needed: bool = False) -> tuple[str, ...]:
    held = schema.get(what)
    if held is None and not needed:
        return ()
    if not isinstance(held, list):
        _refuse(f"{what} must be a list of names, got {quote(held)}")
    return tuple(_name(what, name, dotted=dotted) for name in held)


def _name(what: str, name: Any, *, dotted: bool = False) -> str:
    if not isinstance(name, str) or not all(_NAME.match(part) for part in (name.split(".") if dotted else [name])):
        _refuse(f"{what} must be letters, digits and underscores, not starting with a digit, got {quote(name)}")
    return name


def _refuse(reason: str) -> NoReturn:
    raise InvalidSchema(reason)
