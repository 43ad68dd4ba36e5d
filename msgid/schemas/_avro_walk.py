"""Check the bytes of an Avro payload by its schema, within bounds, before fastavro decodes them.

fastavro recurses in C without a bound. It creates every item that an array claims, even items of a type without bytes.
It also reads a negative index of a union or an enum from the end of the list. The walk rejects all of these and keeps
no values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgid.schemas._avro_types import AvroType

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


def walker(schema: AvroType) -> Callable[[bytes], int]:
    """Return a function that checks the value at the start of a payload and returns the position after it.

    The function raises `Malformed`.

    >>> from msgid.schemas._avro_types import parse_avro
    >>> walk = walker(parse_avro({"type": "array", "items": "null"}))
    >>> walk(bytes([4, 0]))
    2
    >>> try:
    ...     walk(bytes([0x80, 0x80, 0x80, 0x1C, 0]))
    ... except Malformed as error:
    ...     print(error)
    more than 100000 values that take no bytes
    """
    skip = _Compiler().compile(schema)

    def walk(payload: bytes) -> int:
        try:
            return skip(payload, 0, [MAX_EMPTY_VALUES], 0)
        except IndexError:  # the cheapest way to detect the end of the payload
            raise Malformed("the payload ends before the value") from None
        except RecursionError:
            raise Malformed("nested too deep") from None

    return walk


class _Compiler:
    def __init__(self) -> None:
        self._made: dict[int, Skip] = {}
        self._empty: dict[int, int] = {}

    def compile(self, type: AvroType) -> Skip:
        type = type.real
        simple = _SIMPLE.get(type.kind)
        if simple is not None:
            return simple
        key = id(type)  # the graph of types lives as long as the compiler
        if key in self._made:
            return self._made[key]
        target: list[Skip] = []

        def later(data: bytes, position: int, left: list[int], depth: int) -> int:
            return target[0](data, position, left, depth)

        self._made[key] = later  # for references within its own definition
        make: dict[str, Callable[[AvroType], Skip]] = {
            "record": self._record,
            "enum": _enum,
            "fixed": _fixed,
            "union": self._union,
            "array": self._blocks,
            "map": self._blocks,
        }
        target.append(make[type.kind](type))
        self._made[key] = target[0]
        return target[0]

    def _empty_values(self, type: AvroType) -> int:
        """Return the number of values that a type without bytes has, including itself; 0 if the type has bytes."""
        type = type.real
        if type.kind == "null" or (type.kind == "fixed" and type.size == 0):
            return 1
        if type.kind != "record":
            return 0
        key = id(type)
        if key not in self._empty:
            self._empty[key] = 0  # a type within itself has an infinite number of values
            inner = [self._empty_values(field.type) for field in type.fields]
            self._empty[key] = 1 + sum(inner) if all(inner) else 0
        return self._empty[key]

    def _record(self, type: AvroType) -> Skip:
        skips = tuple(self.compile(field.type) for field in type.fields)
        empty = sum(self._empty_values(field.type) for field in type.fields)

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

    def _union(self, type: AvroType) -> Skip:
        branches = tuple(self.compile(branch) for branch in type.branches)
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

    def _blocks(self, type: AvroType) -> Skip:
        assert type.items is not None
        item = self.compile(type.items)
        empty = self._empty_values(type.items)
        keyed = type.kind == "map"

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


def _fixed(type: AvroType) -> Skip:
    return _fixed_length(type.size)


def _enum(type: AvroType) -> Skip:
    count = len(type.symbols)

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
