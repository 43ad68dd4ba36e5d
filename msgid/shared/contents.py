"""Compare the contents of rows: encode values so that two encodings are equal if and only if the values are equal.

NULL differs from an empty value. The order of a map's entries and of a struct's fields does not matter. All NaN are
equal, and -0.0 equals 0.0. A decimal number equals another with more zeros after it.
"""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msgid.shared.moments import UNIX_EPOCH

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_MICROSECOND: Final = timedelta(microseconds=1)
FINGERPRINT_LENGTH: Final = 16


def fingerprint(value: object) -> bytes:
    """Return the fingerprint of a value: 16 bytes, equal if and only if the values are equal.

    A dict is a map or a struct, and a list or tuple is an array.

    Raises:
        TypeError: if a value, or a value inside it, has a type without a canonical form.

    >>> fingerprint({"a": -0.0, "b": None}) == fingerprint({"b": None, "a": 0.0})
    True
    >>> fingerprint([["a"], []]) == fingerprint([[], ["a"]])
    False
    """
    return hashlib.sha256(encoded(value)).digest()[:FINGERPRINT_LENGTH]


def encoded(value: object) -> bytes:
    """Return the canonical encoding of a value: a tag of its type, the length of its bytes, and its bytes.

    Raises:
        TypeError: if a value, or a value inside it, has a type without a canonical form.

    >>> encoded("ab"), encoded(""), encoded(None)
    (b's2:ab', b's0:', b'-0:')
    """
    tag, body = _tag_and_body(value)
    return b"%s%d:%s" % (tag, len(body), body)


def _tag_and_body(value: object) -> tuple[bytes, bytes]:
    if value is None:
        return b"-", b""
    if isinstance(value, str):
        return b"s", value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray | memoryview):
        return b"b", bytes(value)
    if isinstance(value, bool):
        return b"t", b"1" if value else b"0"
    if isinstance(value, int):
        return b"i", b"%d" % value
    if isinstance(value, float):
        return b"f", (b"nan" if math.isnan(value) else (value + 0.0).hex().encode())
    if isinstance(value, Decimal):
        return b"d", _decimal(value)
    if isinstance(value, dict):
        return b"m", _entries(value.items())
    if isinstance(value, list | tuple):
        return b"a", b"".join(encoded(item) for item in value)
    return _moment_or_other(value)


def _moment_or_other(value: object) -> tuple[bytes, bytes]:
    if isinstance(value, datetime):
        # pandas' timestamps have nanoseconds too.
        nanosecond = getattr(value, "nanosecond", 0)
        if value.utcoffset() is None:
            return b"n", b"%d %d" % ((value - UNIX_EPOCH.replace(tzinfo=None)) // _MICROSECOND, nanosecond)
        return b"z", b"%d %d" % ((value - UNIX_EPOCH) // _MICROSECOND, nanosecond)
    if isinstance(value, timedelta):
        return b"e", b"%d %d" % (value // _MICROSECOND, getattr(value, "nanoseconds", 0) % 1000)
    if isinstance(value, date | time):
        return b"D" if isinstance(value, date) else b"T", value.isoformat().encode()
    if isinstance(value, UUID):
        return b"u", value.bytes
    if type(value).__name__ == "VariantVal" and hasattr(value, "toPython"):  # Spark's VARIANT, without importing Spark
        return b"v", encoded(value.toPython())
    raise TypeError(f"value must have a canonical form, got {type(value).__name__}")


def _decimal(value: Decimal) -> bytes:
    """Write a decimal number without the zeros at its end. `Decimal.normalize` would round to the context's digits."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return b"nan" if value.is_nan() else str(value).encode()
    if not any(digits):
        return b"0"
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    return f"{'-' * sign}{short}e{exponent + len(text) - len(short)}".encode()


def _entries(entries: Any) -> bytes:
    return b"".join(sorted(encoded(key) + encoded(value) for key, value in entries))


def codes_and_values(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Return for each row of an Arrow column the index of its value, -1 for NULL, and the values, each once.

    Raises:
        pyarrow.ArrowNotImplementedError: if Arrow does not compare values of the type.
    """
    import numpy as np
    import pyarrow as pa

    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):  # more than 2 GiB of text are not one array
        coded = coded.combine_chunks()
    return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary


def codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each row of an Arrow column: equal if and only if the values are equal; -1 for NULL."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    type = column.type
    if pa.types.is_null(type):
        return np.full(len(column), -1, np.int64)
    if pa.types.is_dictionary(type):
        return codes(column.cast(type.value_type))
    if pa.types.is_floating(type):
        numbers = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(numbers), math.nan, pc.add(numbers, 0.0))
    if not pa.types.is_nested(type):
        with suppress(pa.ArrowNotImplementedError):
            return codes_and_values(column)[0]
    code_of: dict[bytes, int] = {}
    values = (None if value is None else encoded(_with_maps(value, type)) for value in column.to_pylist())
    return np.array([-1 if value is None else code_of.setdefault(value, len(code_of)) for value in values], np.int64)


def encodings(column: pa.ChunkedArray) -> list[bytes | None]:
    """Return the canonical encoding of each value of an Arrow column; None for NULL."""
    type = column.type
    return [None if value is None else encoded(_with_maps(value, type)) for value in column.to_pylist()]


def _with_maps(value: Any, type: pa.DataType) -> Any:
    """Return a value of Arrow in which each map, a list of pairs, is a dict from encoded keys."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_map(type):
        return {encoded(_with_maps(key, type.key_type)): _with_maps(item, type.item_type) for key, item in value}
    if pa.types.is_struct(type):
        return {field.name: _with_maps(value[field.name], field.type) for field in type}
    if pa.types.is_nested(type) and hasattr(type, "value_type"):
        return [_with_maps(item, type.value_type) for item in value]
    return value
