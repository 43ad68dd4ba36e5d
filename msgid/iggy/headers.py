"""The headers of an Iggy message: values of 15 kinds, converted from and to Python values."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from msgid.errors import InvalidMessage
from msgid.iggy.wire import HEADER_KEY_MAX, HEADER_VALUE_MAX, U32, Reader
from msgid.shared.validate import integer, is_number, quote

HeaderValue = bytes | str | bool | int | float


class HeaderKind(IntEnum):
    """The kind of a header's value.

    >>> HeaderKind(12), str(HeaderKind.UINT64)
    (<HeaderKind.UINT64: 12>, 'uint64')
    """

    RAW = 1
    STRING = 2
    BOOL = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    INT128 = 8
    UINT8 = 9
    UINT16 = 10
    UINT32 = 11
    UINT64 = 12
    UINT128 = 13
    FLOAT32 = 14
    FLOAT64 = 15

    def __str__(self) -> str:
        return self.name.lower()


NAMES: Final = {str(kind): kind for kind in HeaderKind}
_FLOATS: Final = {HeaderKind.FLOAT32: struct.Struct("<f"), HeaderKind.FLOAT64: struct.Struct("<d")}
_INTEGERS: Final = {
    NAMES[f"{sign}int{bits}"]: (bits // 8, sign == "") for sign in ("", "u") for bits in (8, 16, 32, 64, 128)
}
WIDTHS: Final = {
    HeaderKind.BOOL: 1,
    **{kind: width for kind, (width, _) in _INTEGERS.items()},
    **{kind: packer.size for kind, packer in _FLOATS.items()},
}


class Header(NamedTuple):
    r"""A header's kind and the bytes of its value.

    >>> Header.of(250000), Header.of(250000).value
    (Header(kind=<HeaderKind.INT64: 7>, raw=b'\x90\xd0\x03\x00\x00\x00\x00\x00'), 250000)
    """

    kind: HeaderKind
    raw: bytes

    @classmethod
    def of(cls, value: HeaderValue, kind: HeaderKind | None = None) -> Header:
        r"""Create a header from a Python value.

        Args:
            value: Bytes, str, bool, int or float.
            kind: Kind of the header. Default: raw, string, bool, int64 or float64, by the type of the value.

        Raises:
            TypeError: if the value does not have a type of the kind.
            ValueError: if an integer is out of range, or the value is empty or longer than 255 bytes.

        >>> Header.of(-1, HeaderKind.INT8).raw
        b'\xff'
        """
        if kind is None:
            for type_, kind_ in _DEFAULTS:
                if isinstance(value, type_):
                    kind = kind_
                    break
            else:
                raise TypeError(f"a header's value must be bytes, str, bool, int or float, got {quote(value)}")
        raw = _encoded(value, kind)
        if not 1 <= len(raw) <= HEADER_VALUE_MAX:
            raise ValueError(
                f"a header's value must have 1 to {HEADER_VALUE_MAX} bytes, got {len(raw)}: {quote(value)}"
            )
        return cls(kind, raw)

    @property
    def value(self) -> HeaderValue:
        """The value as a Python object."""
        if self.kind in _INTEGERS:
            return int.from_bytes(self.raw, "little", signed=_INTEGERS[self.kind][1])
        if self.kind in _FLOATS:
            number: float = _FLOATS[self.kind].unpack(self.raw)[0]
            return number
        if self.kind is HeaderKind.BOOL:
            return self.raw != b"\0"
        return self.raw.decode() if self.kind is HeaderKind.STRING else self.raw


_DEFAULTS: Final = (
    (bytes | bytearray | memoryview, HeaderKind.RAW),
    (str, HeaderKind.STRING),
    (bool, HeaderKind.BOOL),  # before int, because bool is a subclass of int
    (int, HeaderKind.INT64),
    (float, HeaderKind.FLOAT64),
)


def _encoded(value: object, kind: HeaderKind) -> bytes:
    if kind in _INTEGERS:
        width, signed = _INTEGERS[kind]
        low, high = (-(1 << 8 * width - 1), (1 << 8 * width - 1) - 1) if signed else (0, (1 << 8 * width) - 1)
        return integer(f"a header of kind {kind}", value, low, high).to_bytes(width, "little", signed=signed)
    if kind in _FLOATS and is_number(value):
        try:
            return _FLOATS[kind].pack(value)
        except OverflowError:
            raise ValueError(f"a header of kind {kind} cannot hold {quote(value)}") from None
    if kind is HeaderKind.BOOL and isinstance(value, bool):
        return bytes([value])
    if kind is HeaderKind.STRING and isinstance(value, str):
        return value.encode()
    if kind is HeaderKind.RAW and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a header of kind {kind} cannot hold {quote(value)}, a {type(value).__name__}")


def checked(kind: HeaderKind, raw: bytes, offset: int | None) -> Header:
    """Create a header from bytes of a message, or raise `InvalidMessage` if they are malformed."""
    width = WIDTHS.get(kind, len(raw))
    if len(raw) != width or not 1 <= width <= HEADER_VALUE_MAX:
        raise InvalidMessage(f"a header's value of {len(raw)} bytes for kind {kind}", offset)
    if kind is HeaderKind.BOOL and raw not in (b"\0", b"\1"):
        raise InvalidMessage(f"a header of kind bool with the value {quote(raw)}", offset)
    if kind is HeaderKind.STRING:
        try:
            raw.decode()
        except UnicodeDecodeError:
            raise InvalidMessage(f"a header of kind string must be UTF-8, got {quote(raw)}", offset) from None
    return Header(kind, raw)


class HeaderKey(NamedTuple):
    r"""The key of a header that is not text, in the layouts ``h64`` and ``batch256``.

    A key of kind string is always a `str` in this library, not a `HeaderKey`.

    >>> key = HeaderKey.of(-5, HeaderKind.INT32)
    >>> key, str(key)
    (HeaderKey(kind=<HeaderKind.INT32: 6>, raw=b'\xfb\xff\xff\xff'), 'int32:-5')
    """

    kind: HeaderKind
    raw: bytes

    @classmethod
    def of(cls, value: HeaderValue, kind: HeaderKind | None = None) -> HeaderKey:
        """Create a key from a Python value, with the kinds and errors of `Header.of`."""
        header = Header.of(value, kind)
        if header.kind is HeaderKind.STRING:
            raise ValueError(f"a header's key of kind string must be a str, not a HeaderKey: {quote(value)}")
        return cls(header.kind, header.raw)

    @property
    def value(self) -> HeaderValue:
        """The key as a Python object."""
        return Header(self.kind, self.raw).value

    def __str__(self) -> str:
        """Return the kind and the key as text, for tables and JSON; bytes and floats become hex digits."""
        value = self.value
        shown = str(value).lower() if isinstance(value, int) else self.raw.hex()
        return f"{self.kind}:{shown}"


HeaderName = str | HeaderKey


def _order(item: tuple[HeaderName, object]) -> tuple[int, bytes]:
    """Return the sort key of a header: the kind of its key, then the bytes of its key."""
    key = item[0]
    return (key.kind, key.raw) if isinstance(key, HeaderKey) else (HeaderKind.STRING, key.encode())


def headers_of(headers: Mapping[Any, Header | HeaderValue] | None) -> dict[HeaderName, Header]:
    """Return headers sorted by key, with Python values converted to `Header`."""
    given = {} if headers is None else headers
    if not isinstance(given, Mapping):
        raise TypeError(f"headers must be a mapping of keys to values, got {quote(given)}")
    if wrong := [key for key in given if not isinstance(key, HeaderKey | str)]:
        raise TypeError(f"a header's key must be text or a HeaderKey, got {quote(wrong[0])}")
    values = sorted(given.items(), key=_order)
    return {key: value if isinstance(value, Header) else Header.of(value) for key, value in values}


def check_headers(headers: object) -> None:
    """Check that ``headers`` is a dict of `Header` values with keys of `HeaderKey` or text of 1 to 255 bytes."""
    if not isinstance(headers, dict):
        raise TypeError(f"headers must be a dict, got {quote(headers)}")
    for key, header in headers.items():
        if not isinstance(key, str | HeaderKey):
            raise TypeError(f"a header's key must be text or a HeaderKey, got {quote(key)}")
        if not isinstance(header, Header):
            raise TypeError(f"header {quote(key)} must be a Header, got {quote(header)}")
        length = len(key.raw if isinstance(key, HeaderKey) else key.encode())
        if not 1 <= length <= HEADER_KEY_MAX:
            raise ValueError(f"a header's key must have 1 to {HEADER_KEY_MAX} bytes, got {length}: {quote(key)}")


def encode_headers(headers: Mapping[Any, Header], *, typed: bool = False) -> bytes:
    """Encode headers in their given order, without the length field of the whole block.

    Args:
        headers: Headers by key.
        typed: Whether the layout writes the kind of each key.

    Raises:
        ValueError: if a key is not text and the layout allows only text keys.
    """
    parts = []
    for key, (kind, raw) in headers.items():
        key_kind, name = (key.kind, key.raw) if isinstance(key, HeaderKey) else (HeaderKind.STRING, key.encode())
        if typed:
            parts.append(bytes([key_kind]))
        elif key_kind is not HeaderKind.STRING:
            raise ValueError(f"cannot write the header's key {key}: the layout has only keys of text")
        parts += [U32.pack(len(name)), name, bytes([kind]), U32.pack(len(raw)), raw]
    return b"".join(parts)


def _kind(reader: Reader, what: str) -> HeaderKind:
    at = reader.base + reader.position
    code = reader.unsigned(1, f"{what} kind")
    if not HeaderKind.RAW <= code <= HeaderKind.FLOAT64:
        raise InvalidMessage(f"{what} kind must be 1 to 15, got {code}", at)
    return HeaderKind(code)


def decode_key(reader: Reader, *, typed: bool = False) -> HeaderName:
    """Decode the key of one header; the arguments and the error are those of `decode_headers`."""
    kind = _kind(reader, "a header's key's") if typed else HeaderKind.STRING
    if kind is HeaderKind.STRING:
        return reader.text(4, "a header's key", HEADER_KEY_MAX)
    at = reader.base + reader.position
    return HeaderKey(*checked(kind, reader.sized(4, "a header's key", 1, HEADER_KEY_MAX), at))


def decode_headers(reader: Reader, *, typed: bool = False) -> dict[HeaderName, Header]:
    """Decode headers in their given order, to the end of the reader.

    Args:
        reader: The bytes of all headers of a message.
        typed: Whether the layout writes the kind of each key.

    Raises:
        InvalidMessage: if a header is malformed, or a key occurs twice.
    """
    headers: dict[HeaderName, Header] = {}
    while reader.position < reader.end:
        start = reader.base + reader.position
        key = decode_key(reader, typed=typed)
        if key in headers:
            raise InvalidMessage(f"a second header {quote(str(key))}", start)
        kind = _kind(reader, "a header's")
        at = reader.base + reader.position
        headers[key] = checked(kind, reader.sized(4, "a header's value", 1, HEADER_VALUE_MAX), at)
    return headers
