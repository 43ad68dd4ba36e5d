"""The types in an Arrow schema that PyArrow and Spark do not read: UUIDs over bytes, and integers of 128 bits."""

from __future__ import annotations

import struct
from typing import Final

UUID: Final = "arrow.uuid"
"""The name of Arrow's type of UUIDs."""
_INTEGER, _LONGEST_INTEGER = 2, 64
"""The number of the type Int in Arrow's schema, and its bits at most in Parquet."""


def says_uuid(name: str) -> bool:
    """Return whether the name of an extension type of Arrow says UUID: a program may have a type of its own.

    >>> says_uuid("arrow.uuid"), says_uuid("my_package.uuid"), says_uuid("arrow.json")
    (True, True, False)
    """
    return name.rpartition(".")[2].lower() == "uuid"


def arrow_types(message: bytes, *, is_footer: bool = False) -> dict[str, str]:
    """Return the columns whose type in an Arrow schema is UUID, here ``arrow.uuid``, or an integer of 128 bits.

    PyArrow reads neither the second type, nor the first one over bytes of variable length. The schema is a FlatBuffer;
    see Schema.fbs of Arrow.

    Args:
        message: A message with the schema, or the footer of an Arrow file.
        is_footer: Whether ``message`` is a footer.
    """
    types: dict[str, str] = {}
    try:
        start = 0 if is_footer else 8 if message[:4] == b"\xff\xff\xff\xff" else 4
        root = _Table(message[start:], struct.unpack_from("<I", message, start)[0])
        schema = root.table(1 if is_footer else 2)
        for column in () if schema is None else schema.tables(1):
            name = column.text(0)
            pairs = {pair.text(0): pair.text(1) for pair in column.tables(6)}
            if says_uuid(pairs.get("ARROW:extension:name", "")):
                types[name] = UUID
            type = column.table(3)
            if column.number(2, "B") == _INTEGER and type is not None and type.number(0, "i") > _LONGEST_INTEGER:
                types[name] = f"Int{type.number(0, 'i')}"
    except (struct.error, UnicodeDecodeError, IndexError):
        return {}
    return types


class _Table:
    """A table of a FlatBuffer: fields that are found by their number."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position

    def _field(self, number: int) -> int | None:
        """Return the position of a field, or None if it is missing."""
        offsets = self._position - struct.unpack_from("<i", self._data, self._position)[0]
        size = struct.unpack_from("<H", self._data, offsets)[0]
        entry = 4 + 2 * number
        offset = struct.unpack_from("<H", self._data, offsets + entry)[0] if entry < size else 0
        return self._position + offset if offset else None

    def _target(self, number: int) -> int | None:
        position = self._field(number)
        return None if position is None else position + struct.unpack_from("<I", self._data, position)[0]

    def number(self, number: int, code: str) -> int:
        position = self._field(number)
        return 0 if position is None else int(struct.unpack_from(f"<{code}", self._data, position)[0])

    def text(self, number: int) -> str:
        position = self._target(number)
        if position is None:
            return ""
        size = struct.unpack_from("<I", self._data, position)[0]
        return self._data[position + 4 : position + 4 + size].decode()

    def table(self, number: int) -> _Table | None:
        position = self._target(number)
        return None if position is None else _Table(self._data, position)

    def tables(self, number: int) -> list[_Table]:
        position = self._target(number)
        if position is None:
            return []
        size = struct.unpack_from("<I", self._data, position)[0]
        items = range(position + 4, position + 4 + 4 * size, 4)
        return [_Table(self._data, item + struct.unpack_from("<I", self._data, item)[0]) for item in items]
