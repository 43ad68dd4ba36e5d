"""Commands and responses of the message-expiry document: topics and streams, and the expiry of their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgid.errors import InvalidMessage
from msgid.iggy.headers import decode_headers, encode_headers, headers_of
from msgid.iggy.wire import U32, Reader
from msgid.messages import MAX_NAME_BYTES, normalize_name
from msgid.shared.validate import UINT32_MAX, UINT64_MAX, integer, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgid.iggy.headers import Header, HeaderName, HeaderValue

__all__ = ["CreateStream", "CreateTopic", "Stream", "Topic"]

_NUMERIC = 1
_TEXT = 2


def _name(name: str) -> bytes:
    raw = normalize_name(name).encode()
    return bytes([len(raw)]) + raw


def _u32(name: str, value: int) -> bytes:
    return U32.pack(integer(name, value, 0, UINT32_MAX))


def _u64(name: str, value: int) -> bytes:
    return integer(name, value, 0, UINT64_MAX).to_bytes(8, "little")


def identifier(name: str, value: int | str) -> bytes:
    """Encode an identifier: kind, length, and the number or text."""
    if isinstance(value, str):
        raw = value.encode()
        return bytes([_TEXT, integer(f"the length of {name}", len(raw), 1, MAX_NAME_BYTES)]) + raw
    return bytes([_NUMERIC, U32.size]) + _u32(name, value)


def _read(reader: Reader, **widths: int) -> dict[str, Any]:
    """Read unsigned integers of the given widths in bytes, then the name, up to the end of the reader."""
    values: dict[str, Any] = {name: reader.unsigned(width, name) for name, width in widths.items()}
    values["name"] = reader.text(1, "name", MAX_NAME_BYTES)
    reader.finish("the name")
    return values


def read_identifier(reader: Reader, name: str) -> int | str:
    """Decode the identifier at a reader's position."""
    at = reader.position
    kind = reader.unsigned(1, f"the kind of {name}")
    if kind == _TEXT:
        return reader.text(1, name, MAX_NAME_BYTES)
    if kind != _NUMERIC:
        raise InvalidMessage(f"an identifier must be of kind {_NUMERIC} or {_TEXT}, got {kind}", at)
    return int.from_bytes(reader.sized(1, name, U32.size, U32.size), "little")


class CreateTopic(NamedTuple):
    """The command that creates a topic: that of the document, or that of the crate iggy_binary_protocol 0.11.1-edge.8.

    The newer command has ``options`` in place of ``topic_id`` and ``message_expiry``, which are None there.

    >>> CreateTopic(1, 2, 3, 10, "test").encode().hex()
    '01040100000002000000030000000a0000000474657374'
    >>> CreateTopic(1, None, 3, None, "test", {"durability": "persisted"}).encode()[:14].hex()
    '0104010000000300000004746573'
    """

    stream: int | str
    """Number or name of the stream."""
    topic_id: int | None
    partitions: int
    message_expiry: int | None
    """Time until a message expires, in seconds; 0 means never."""
    name: str
    options: Mapping[HeaderName, Header | HeaderValue] | None = None
    """The settings of the topic, such as ``message_expiry``, in the form of user headers; None in the older command."""

    def encode(self) -> bytes:
        """Encode the command, with names in their normal form.

        Raises:
            ValueError, TypeError: if a field has the wrong type or is out of range, or belongs to the other command.
        """
        stream = normalize_name(self.stream) if isinstance(self.stream, str) else self.stream
        older = ("topic_id", "message_expiry")
        if self.options is None:
            numbers = [_u32(name, getattr(self, name)) for name in (older[0], "partitions", older[1])]
            return b"".join((identifier("stream", stream), *numbers, _name(self.name)))
        if given := [name for name in older if getattr(self, name) is not None]:
            raise ValueError(f"{given[0]} must be None in a command with options, got {quote(getattr(self, given[0]))}")
        options = encode_headers(headers_of(self.options), typed=True)
        return b"".join((identifier("stream", stream), _u32("partitions", self.partitions), _name(self.name), options))

    @classmethod
    def decode(cls, data: bytes, *, has_options: bool = False) -> CreateTopic:
        """Decode the command; malformed or additional bytes raise `InvalidMessage`.

        Args:
            data: The command.
            has_options: Whether it is the newer command. The bytes do not tell.
        """
        reader = Reader(data)
        stream = read_identifier(reader, "stream")
        if not has_options:
            return cls(stream=stream, **_read(reader, topic_id=4, partitions=4, message_expiry=4))
        partitions = reader.unsigned(4, "partitions")
        name = reader.text(1, "name", MAX_NAME_BYTES)
        return cls(stream, None, partitions, None, name, dict(decode_headers(reader, typed=True)))


class CreateStream(NamedTuple):
    """The command that creates a stream.

    >>> CreateStream(1, "test").encode().hex()
    '010000000474657374'
    """

    stream_id: int
    name: str

    def encode(self) -> bytes:
        """Encode the command, with the name in its normal form."""
        return _u32("stream_id", self.stream_id) + _name(self.name)

    @classmethod
    def decode(cls, data: bytes) -> CreateStream:
        """Decode the command; malformed or additional bytes raise `InvalidMessage`."""
        return cls(**_read(Reader(data), stream_id=4))


class Topic(NamedTuple):
    """The response of a server with the details of a topic.

    >>> Topic.decode(Topic(2, 3, 10, 1024, 7, "test").encode())
    Topic(topic_id=2, partitions=3, message_expiry=10, size=1024, messages=7, name='test')
    """

    topic_id: int
    partitions: int
    message_expiry: int
    """Time until a message expires, in seconds; 0 means never."""
    size: int
    """Bytes."""
    messages: int
    name: str

    def encode(self) -> bytes:
        """Encode the response, with the name in its normal form."""
        small = (_u32(name, getattr(self, name)) for name in ("topic_id", "partitions", "message_expiry"))
        large = (_u64(name, getattr(self, name)) for name in ("size", "messages"))
        return b"".join((*small, *large, _name(self.name)))

    @classmethod
    def decode(cls, data: bytes) -> Topic:
        """Decode the response; malformed or additional bytes raise `InvalidMessage`."""
        return cls(**_read(Reader(data), topic_id=4, partitions=4, message_expiry=4, size=8, messages=8))


class Stream(NamedTuple):
    """The response of a server with the details of a stream.

    >>> Stream(1, 2, 1024, 7, "test").encode().hex()
    '0100000002000000000400000000000007000000000000000474657374'
    """

    stream_id: int
    topics: int
    size: int
    """Bytes."""
    messages: int
    name: str

    def encode(self) -> bytes:
        """Encode the response, with the name in its normal form."""
        small = (_u32(name, getattr(self, name)) for name in ("stream_id", "topics"))
        large = (_u64(name, getattr(self, name)) for name in ("size", "messages"))
        return b"".join((*small, *large, _name(self.name)))

    @classmethod
    def decode(cls, data: bytes) -> Stream:
        """Decode the response; malformed or additional bytes raise `InvalidMessage`."""
        return cls(**_read(Reader(data), stream_id=4, topics=4, size=8, messages=8))
