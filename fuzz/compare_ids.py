"""Atheris: the compiled core of the IDs against the reference, on values, batches, Arrow, NumPy, rows and generators.

Each function draws its arguments from the input, and checks that both cores return the same, or raise the same error.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import atheris
import numpy as np
import pyarrow as pa
from both import compiled, reference

C, P = compiled["msgid"], reference["msgid"]
native = compiled["msgid.ids._native"].native
pure_bytes = reference["msgid.ids._batch_bytes"]

TEXT_LENGTHS = [32, 34, 56, 58, 33, 0, 2, 16, 17]
BYTE_LENGTHS = [16, 17, 28, 29, 0, 1, 34, 15, 30]
ARROW_TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16),
    pa.binary(17), pa.binary(34), pa.null(), pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int32(), pa.binary()),
]  # fmt: skip
COLUMNS = ("u1", "u8", "u2", "u4", "u4", "bool")


class Text(str):
    """Text of another type, which the compiled core leaves to the reference."""


class Bytes(bytes):
    """Bytes of another type, which the compiled core leaves to the reference."""


class Draw(atheris.FuzzedDataProvider):
    """The input, read as values."""

    def below(self, limit: int) -> int:
        """Return an integer of 0 to limit - 1."""
        return self.ConsumeIntInRange(0, limit - 1)

    def one_of(self, *values: Any) -> Any:
        """Return one of the values."""
        return self.PickValueInList(list(values))

    def exactly(self, length: int) -> bytes:
        """Return so many bytes; those that the input lacks are 1."""
        return self.ConsumeBytes(length).ljust(length, b"\1")

    def text(self) -> str:
        """Return the text of an ID, often with a fault."""
        how, length = self.below(10), self.one_of(*TEXT_LENGTHS)
        if how >= 7:
            return self.ConsumeBytes(length).decode("latin1")
        if how >= 5:
            return self.ConsumeUnicode(length)
        digits = self.ConsumeBytes((length + 1) // 2).hex().ljust(length, "0")[:length]
        if how == 1:
            return digits.upper()
        if how == 2 and length:
            return (self.one_of("00", "01") + digits[2:])[:length]
        if how == 3 and length:
            index = self.below(length)
            return digits[:index] + chr(self.below(0x110000)) + digits[index + 1 :]
        return Text(digits) if how == 4 else digits

    def binary(self) -> bytes:
        """Return the bytes of an ID, often with a fault."""
        raw = self.ConsumeBytes(self.one_of(*BYTE_LENGTHS))
        how = self.below(6)
        if how in (1, 2) and raw:
            return bytes([how - 1]) + raw[1:]
        return Bytes(raw) if how == 3 else raw

    def value(self) -> Any:
        """Return a value that a user may pass as an ID."""
        how = self.below(12)
        if how < 5:
            return self.text()
        raw = self.binary()
        if how < 9:
            return raw
        return self.one_of(
            bytearray(raw), memoryview(raw), memoryview(raw + raw)[::2], np.bytes_(raw), np.str_(raw.hex()),
            None, 5, 1.5, Text(raw.hex()),
        )  # fmt: skip


def outcome(function: Any, *arguments: Any) -> Any:
    """Return the result in a form that can be compared across the cores, or the error."""
    try:
        result = function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)
    if hasattr(result, "kind"):
        return type(result).__name__, bytes(result), str(result), hash(result), result.kind, repr(result)
    return result


def columns(function: Any, values: Any) -> Any:
    """Return the columns of a batch as lists with their types, or the error."""
    try:
        result = function(values)
    except Exception as error:
        return type(error).__name__, str(error)
    return [(column.tolist(), str(column.dtype)) for column in result]


def same(fast: Any, slow: Any, *what: Any) -> None:
    """Check that both cores agree."""
    assert fast == slow, f"{what}: compiled {fast}, Python {slow}"


def one_value(draw: Draw) -> None:
    """Compare parse and is_valid, and the attributes and the order of two IDs."""
    values = draw.value(), draw.value()
    same(outcome(C.parse, values[0]), outcome(P.parse, values[0]), "parse", values[0])
    same(outcome(C.is_valid, values[0]), outcome(P.is_valid, values[0]), "is_valid", values[0])
    if not all(outcome(P.is_valid, value) is True for value in values):
        return
    fast, slow = [C.parse(value) for value in values], [P.parse(value) for value in values]
    same(fast[0] == fast[1], slow[0] == slow[1], "==", values)
    same(f"{fast[0]:>60}", f"{slow[0]:>60}", "format", values)
    for name in ("hex", "pid", "node", "seconds", "sequence", "ip", "port", "offset", "canonical"):
        same(getattr(fast[0], name, None), getattr(slow[0], name, None), name, values[0])
    if type(fast[0]) is type(fast[1]):
        same(
            (fast[0] < fast[1], fast[0] <= fast[1], fast[0] > fast[1], fast[0] >= fast[1]),
            (slow[0] < slow[1], slow[0] <= slow[1], slow[0] > slow[1], slow[0] >= slow[1]), "order", values,
        )  # fmt: skip


def a_list(draw: Draw) -> None:
    """Compare parse_batch of objects."""
    values = [draw.value() for _ in range(draw.below(13))]
    same(columns(C.parse_batch, values), columns(P.parse_batch, values), values)


def an_arrow_array(draw: Draw) -> None:
    """Compare parse_batch of Arrow arrays of every type, sliced and in chunks, with both cores and with a list."""
    kind = draw.one_of(*ARROW_TYPES)
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    values: list[Any] = []
    for _ in range(draw.below(13)):
        if pa.types.is_null(plain) or draw.below(6) == 0:
            values.append(None)
        elif pa.types.is_fixed_size_binary(plain):
            values.append(draw.exactly(plain.byte_width))
        elif pa.types.is_binary(plain) or pa.types.is_large_binary(plain) or pa.types.is_binary_view(plain):
            values.append(bytes(draw.binary()))
        else:
            values.append(draw.text().encode("utf-8", "replace").decode())
    array = pa.array(values, plain)
    if pa.types.is_dictionary(kind):
        array = array.dictionary_encode()
    first = draw.below(len(values) + 1)
    array = array.slice(first, draw.below(len(values) - first + 1))
    form = draw.below(4)
    if form == 1:
        array = pa.chunked_array([array, array.slice(0, 1), array.slice(1)], array.type)
    elif form == 2:
        array = pa.chunked_array([], array.type)
    fast = columns(C.parse_batch, array)
    same(fast, columns(P.parse_batch, array), array.type, array.to_pylist())
    same(fast, columns(P.parse_batch, array.to_pylist()), "as a list", array.type, array.to_pylist())


def a_numpy_array(draw: Draw) -> None:
    """Compare parse_batch of NumPy arrays: bytes, text, matrices with any strides, objects, read-only arrays."""
    how, count = draw.below(6), draw.below(9)
    rows = np.frombuffer(draw.exactly(40 * count), np.uint8).reshape(count, 40)
    if how == 0:
        array = np.array([draw.exactly(17) for _ in range(count)], draw.one_of("S17", "S40"))
    elif how == 1:
        texts = [draw.text().encode("utf-8", "replace").decode() for _ in range(count)]
        array = np.array(texts, draw.one_of("U34", "U58", ">U34", "U60"))
    elif how == 2:
        array = rows[:, draw.one_of(slice(0, 34, 2), slice(3, 20), slice(16, None, -1), slice(0, 0))]
    elif how == 3:
        array = np.array([*(draw.value() for _ in range(count)), None], object)
    elif how == 4:
        array = np.frombuffer(draw.exactly(17 * count), "V17")
    else:
        array = rows[:, :17].copy()
    array = array[draw.one_of(slice(None), slice(None, None, -1), slice(None, None, 2))]
    if array.flags.owndata and draw.ConsumeBool():
        array.flags.writeable = False
    same(columns(C.parse_batch, array), columns(P.parse_batch, array), array)


def offsets_of_any_kind(draw: Draw) -> None:
    """Check that read_rows accepts only offsets inside the data, and only columns of its length that it may write."""
    count, is_hex, fault = draw.below(11), draw.ConsumeBool(), draw.below(8)
    offset, offsets = draw.ConsumeIntInRange(-2, 6), []
    for _ in range(count + 1):
        offset += draw.one_of(17, 34, 16, 32, 28, 29, 56, 58, 0, 1, -1, 2**40)
        offsets.append(offset)
    if draw.below(6) == 0:
        offsets[draw.below(count + 1)] = draw.ConsumeInt(8)
    data = np.frombuffer(draw.ConsumeBytes(600), np.uint8).copy()
    columns = [np.zeros(count, kind) for kind in COLUMNS]
    given = np.array(offsets, np.int64)
    if fault == 1:
        columns[draw.below(6)] = np.zeros(count + 1, "u1")
    elif fault == 2:
        columns[0].flags.writeable = False
    elif fault == 3:
        given = np.repeat(given, 2)[::2]
    elif fault == 4:
        given = given[:0]
    is_inside = offsets == sorted(offsets) and offsets[0] >= 0 and offsets[-1] <= len(data)
    try:
        native.read_rows(data, given, is_hex, *columns)
    except (ValueError, BufferError):
        assert fault in (1, 2, 3, 4) or not is_inside, offsets
        return
    assert is_inside or (count == 0 and offsets[0] >= 0), offsets
    if fault not in (1, 2, 3, 4):
        cells = [data[start:end].tobytes() for start, end in itertools.pairwise(offsets)]
        slow = P.parse_batch([cell.decode("latin1") if is_hex else cell for cell in cells])
        same([column.tolist() for column in columns], [column.tolist() for column in slow[:6]], cells)


def rows(draw: Draw) -> None:
    """Compare the encoders of a batch."""
    prefix, parts = draw.exactly(9), []
    for _ in range(draw.below(5)):
        count, step = draw.below(300), draw.one_of(1, 2, 7, -1, -3)
        start = draw.one_of(0, 5, 2**32 - 1, 2**31, draw.below(2**32))
        if 0 <= start + step * max(count - 1, 0) < 2**32:
            parts.append((draw.one_of(0, 1, 2**32, draw.below(2**40)), start, step, count))
    for name in ("rows", "hex_rows", "hex_list"):
        same(getattr(native, name)(prefix, tuple(parts)), getattr(pure_bytes, name)(prefix, tuple(parts)), name, parts)


def wrong_arguments(draw: Draw) -> None:
    """Check that wrong arguments of the compiled functions raise one of the errors that Python code can catch."""
    parts = [
        None,
        (),
        (1,),
        (1, 2, 3),
        (1, 2, 3, 4),
        (2**80, 1, 1, 1),
        ("a", 1, 1, 1),
        (1, 1, 1, -1),
        (1, 1, 1, 2**62),
        5,
    ]
    prefix = draw.one_of(b"123456789", b"12", "x", None, bytearray(9))
    listed = tuple(draw.one_of(*parts) for _ in range(draw.below(4)))
    arrays = [
        np.zeros(1, "u1"),
        np.zeros(0, "u1"),
        np.zeros(1, "u8"),
        np.zeros((1, 8), "u1"),
        np.zeros(4, "u8")[::2],
        b"x",
        5,
    ]
    given = [draw.one_of((), (b"x" * 17,), None, [1]), *(draw.one_of(*arrays) for _ in range(4 + draw.below(5)))]
    for name in ("rows", "hex_rows", "hex_list", "read_texts", "read_rows", "parse", "is_valid"):
        try:
            getattr(native, name)(*((prefix, listed) if name.startswith(("rows", "hex")) else given))
        except (TypeError, ValueError, OverflowError, BufferError, MemoryError):
            pass


def a_generator(draw: Draw) -> None:
    """Compare two generators with the same clock, whose second may stand still, go on, or go back a little."""
    clock = draw.one_of(1609459200, 1648047038, 0, -5, 2**33, 1609459200 + 2**32, 2**62)
    sequence, node, pid = draw.one_of(0, 77, 2**32 - 5, 2**32 - 1), draw.below(2**48), draw.below(2**16)
    seconds = [clock]
    # Further back than a limit, a generator begins again with a random sequence number.
    seconds += [clock + draw.one_of(0, 0, 1, -1, 3600) for _ in range(5)]
    steps = [(draw.below(3), draw.one_of(0, 1, 3, 10, 70), second) for second in seconds]

    def history(core: Any) -> list[Any]:
        now, results = [clock], []
        try:
            generator = core.Generator(node=node, pid=pid, clock=lambda: now[0], sequence=sequence)
            for call, count, second in steps:
                now[0] = second
                if call == 0:
                    results.append(str(generator.generate()))
                elif call == 1:
                    results.append(generator.generate_hex())
                else:
                    results.append(generator.generate_batch(count).hex())
        except Exception as error:
            results.append((type(error).__name__, str(error)))
        return results

    same(history(C), history(P), node, pid, sequence, steps)


CHECKS = (
    one_value, a_list, an_arrow_array, a_numpy_array, offsets_of_any_kind, rows, wrong_arguments, a_generator,
)  # fmt: skip


def test_one_input(data: bytes) -> None:
    """Run one of the comparisons."""
    draw = Draw(data)
    CHECKS[draw.below(len(CHECKS))](draw)


atheris.Setup(sys.argv, test_one_input)
atheris.Fuzz()
