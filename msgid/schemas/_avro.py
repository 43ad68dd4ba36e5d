"""Check the bytes of an Avro payload as fastavro reads them, within bounds.

fastavro recurses in C without a bound. It creates every item that an array claims, even items of a type without bytes.
It also reads a negative index of a union or an enum from the end of the list. The walk rejects all of these before
fastavro decodes the payload, and keeps no values.

A schema of another registry is taken as its writers used it: a reader needs neither defaults nor a valid logical type.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from msgid._validate import INT32_MAX, check_installed, in_range, quote
from msgid.schemas._errors import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    Skip = Callable[[bytes, int, list[int], int], int]
    """Return the position after a value, from the payload, a position, the remaining empty values, and the depth."""

MAX_DEPTH: Final = 128
"""The maximum nesting of records, arrays and maps."""
MAX_EMPTY_VALUES: Final = 100_000
"""The maximum number of values without bytes (null, an empty record) in a payload; other values have at least one."""

_INT_BYTES, _LONG_BYTES = 5, 10
_MORE: Final = 0x80
"""The bit of a byte of an integer that announces another byte."""


class Malformed(ValueError):
    """Raised if a payload does not follow its schema, or exceeds a bound."""


def check_strictly(text: str, parsed: Any) -> None:
    """Check a schema by the rules for new schemas: names, symbols, defaults and logical types must be valid.

    Raises:
        InvalidSchema: if the packages fastavro or avro refuse the schema.
    """
    check_installed("an Avro schema", "schemas", "avro")
    import avro.schema
    import fastavro

    try:
        fastavro.parse_schema(parsed)
        avro.schema.parse(text)
    except Exception as error:  # both raise errors of many types
        raise InvalidSchema(f"invalid Avro schema {quote(text)}: {error}") from None


def avro_validator(text: str, parsed: Any) -> Callable[[bytes], str | None]:
    """Return a function that returns the reason against a payload, or None if the payload is valid.

    Raises:
        InvalidSchema: if fastavro cannot read with the schema.
    """
    check_installed("an Avro schema", "schemas", "fastavro")
    import fastavro

    names: dict[str, Any] = {}
    try:
        schema = fastavro.parse_schema(_as_read(parsed), names)
        skip = _Compiler(names).compile(schema)
    except Exception as error:  # fastavro raises errors of many types
        raise InvalidSchema(f"invalid Avro schema {quote(text)}: {error}") from None

    def problem(payload: bytes) -> str | None:
        try:
            end = skip(payload, 0, [MAX_EMPTY_VALUES], 0)
            if end == len(payload):
                fastavro.schemaless_reader(io.BytesIO(payload), schema)
                return None
        except Malformed as error:
            return f"not Avro of the schema: {error}"
        except IndexError:  # the cheapest way to detect the end of the payload
            return "not Avro of the schema: the payload ends before the value"
        except Exception as error:  # for example text that is not UTF-8, or a timestamp after the year 9999
            return f"not Avro of the schema: {type(error).__name__} {error}".rstrip()
        return f"{len(payload) - end} bytes after the end of the Avro"

    return problem


def _as_read(schema: Any) -> Any:
    """Return a schema without the parts that a reader of its own messages ignores."""
    if isinstance(schema, list):
        return [_as_read(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in {"default", "aliases", "doc"}}
    if kept.get("logicalType") == "decimal" and not is_decimal(kept):
        del kept["logicalType"]
    for part in ("type", "items", "values"):
        if part in kept:
            kept[part] = _as_read(kept[part])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_as_read(field) for field in kept["fields"]]
    return kept


def is_decimal(schema: dict[str, Any]) -> bool:
    """Return whether the logical type decimal of a schema is valid."""
    import fastavro

    try:
        fastavro.parse_schema({**schema, "name": "n"})
    except Exception:  # fastavro raises errors of many types
        return False
    return "precision" in schema


class _Compiler:
    """Make a function that skips a value of a type, from a schema that fastavro has parsed."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._made: dict[str, Skip] = {}
        self._empty: dict[str, int] = {}

    def compile(self, schema: Any) -> Skip:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return _SIMPLE[schema] if schema in _SIMPLE else self._named(schema)
        kind = schema["type"]
        if kind in ("record", "enum", "fixed", "error"):
            return self._named(schema["name"])
        if kind in ("array", "map"):
            return self._blocks(schema["items" if kind == "array" else "values"], keyed=kind == "map")
        return self.compile(kind)

    def _named(self, name: str) -> Skip:
        if name in self._made:
            return self._made[name]
        target: list[Skip] = []

        def later(data: bytes, position: int, left: list[int], depth: int) -> int:
            return target[0](data, position, left, depth)

        self._made[name] = later  # for references within its own definition
        schema = self._names[name]
        make = {"enum": _enum, "fixed": _fixed}.get(schema["type"], self._record)
        target.append(make(schema))
        self._made[name] = target[0]
        return target[0]

    def _empty_values(self, schema: Any) -> int:
        """Return the number of values that a type without bytes has, including itself; 0 if the type has bytes."""
        if isinstance(schema, dict) and schema["type"] not in ("array", "map"):
            return self._empty_values(schema.get("name", schema["type"]))
        if not isinstance(schema, str) or schema not in self._names:
            return int(schema == "null")
        if schema not in self._empty:
            self._empty[schema] = 0  # a type within itself has an infinite number of values
            named = self._names[schema]
            inner = [self._empty_values(field["type"]) for field in named.get("fields", ())]
            has_bytes = named["type"] == "enum" or named.get("size", 0) > 0 or not all(inner)
            self._empty[schema] = 0 if has_bytes else 1 + sum(inner)
        return self._empty[schema]

    def _record(self, schema: dict[str, Any]) -> Skip:
        types = [field["type"] for field in schema["fields"]]
        skips = tuple(self.compile(type) for type in types)
        empty = sum(self._empty_values(type) for type in types)

        def skip(data: bytes, position: int, left: list[int], depth: int) -> int:
            if depth == MAX_DEPTH:
                raise Malformed(f"nested deeper than {MAX_DEPTH} levels")
            if empty:
                _spend(left, empty)
            depth += 1
            for part in skips:
                position = part(data, position, left, depth)
            return position

        return skip

    def _union(self, schema: list[Any]) -> Skip:
        branches = tuple(self.compile(branch) for branch in schema)
        count = len(branches)

        def skip(data: bytes, position: int, left: list[int], depth: int) -> int:
            index = data[position]
            if index >= _MORE or index & 1:
                number, position = _varint(data, position, _INT_BYTES)
            else:
                number, position = index >> 1, position + 1
            if not 0 <= number < count:
                raise Malformed(f"branch {number} of a union of {count}")
            return branches[number](data, position, left, depth)

        return skip

    def _blocks(self, items: Any, *, keyed: bool) -> Skip:
        item = self.compile(items)
        empty = self._empty_values(items)

        def skip(data: bytes, position: int, left: list[int], depth: int) -> int:
            if depth == MAX_DEPTH:
                raise Malformed(f"nested deeper than {MAX_DEPTH} levels")
            depth += 1
            while True:
                count, position = _varint(data, position, _LONG_BYTES)
                if not count:
                    return position
                end = None
                if count < 0:
                    size, position = _varint(data, position, _LONG_BYTES)
                    count, end = -count, position + size
                if empty:  # each value of a map has a key, which has at least one byte
                    _spend(left, count * (empty - 1 if keyed else empty))
                if keyed:
                    for _ in range(count):
                        position = item(data, _skip_bytes(data, position, left, depth), left, depth)
                elif not empty:
                    for _ in range(count):
                        position = item(data, position, left, depth)
                if end is not None and position != end:
                    raise Malformed("a block of another size than it states")

        return skip


def _spend(left: list[int], count: int) -> None:
    left[0] -= count
    if left[0] < 0:
        raise Malformed(f"more than {MAX_EMPTY_VALUES} values that take no bytes")


def _varint(data: bytes, position: int, most: int) -> tuple[int, int]:
    """Return a zigzag number of up to ``most`` bytes and the position after it."""
    byte = data[position]
    position += 1
    number = byte & 0x7F
    shift = 7
    while byte >= _MORE:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > 7 * most:
            raise Malformed(f"an integer of more than {most} bytes")
    if number >> (32 if most == _INT_BYTES else 64):
        raise Malformed(f"an integer of more than {32 if most == _INT_BYTES else 64} bits")
    return (number >> 1) ^ -(number & 1), position


def _skip_null(data: bytes, position: int, left: list[int], depth: int) -> int:
    return position


def _skip_boolean(data: bytes, position: int, left: list[int], depth: int) -> int:
    if data[position] > 1:
        raise Malformed(f"boolean must be 0 or 1, got {data[position]}")
    return position + 1


def _skip_int(data: bytes, position: int, left: list[int], depth: int) -> int:
    if data[position] < _MORE:
        return position + 1
    return position + 2 if data[position + 1] < _MORE else _varint(data, position, _INT_BYTES)[1]


def _skip_long(data: bytes, position: int, left: list[int], depth: int) -> int:
    if data[position] < _MORE:
        return position + 1
    return position + 2 if data[position + 1] < _MORE else _varint(data, position, _LONG_BYTES)[1]


def _skip_bytes(data: bytes, position: int, left: list[int], depth: int) -> int:
    first = data[position]
    if first < _MORE and not first & 1:
        position += 1 + (first >> 1)
    else:
        length, position = _varint(data, position, _LONG_BYTES)
        if length < 0:
            raise Malformed(f"length {length}")
        position += length
    if position > len(data):
        raise IndexError
    return position


def _fixed_length(size: int) -> Skip:
    def skip(data: bytes, position: int, left: list[int], depth: int) -> int:
        position += size
        if position > len(data):
            raise IndexError
        return position

    return skip


def _fixed(schema: dict[str, Any]) -> Skip:
    if not in_range(schema["size"], 0, INT32_MAX):
        raise ValueError(f"the size of {quote(schema['name'])} must be 0 to {INT32_MAX}, got {quote(schema['size'])}")
    return _fixed_length(schema["size"])


def _enum(schema: dict[str, Any]) -> Skip:
    count = len(schema["symbols"])

    def skip(data: bytes, position: int, left: list[int], depth: int) -> int:
        number, position = _varint(data, position, _INT_BYTES)
        if not 0 <= number < count:
            raise Malformed(f"symbol {number} of an enum of {count}")
        return position

    return skip


_SIMPLE: Final[dict[str, Skip]] = {
    "null": _skip_null,
    "boolean": _skip_boolean,
    "int": _skip_int,
    "long": _skip_long,
    "float": _fixed_length(4),
    "double": _fixed_length(8),
    "bytes": _skip_bytes,
    "string": _skip_bytes,
}
