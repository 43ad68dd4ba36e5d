"""Messages one after the other, as segment files hold them, in any layout and of any size in constant memory."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO, Final

from msgid._validate import integer
from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy._records.decoding import LogDecoder, messages_of
from msgid.iggy._records.encoding import batches
from msgid.iggy._wire import LAYOUTS, Layout, Reader, name_of
from msgid.iggy.detect import LONGEST
from msgid.iggy.headers import decode_headers
from msgid.iggy.message import Message, valid_message
from msgid.messages import STATE_CODES, MessageState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["CHUNK", "checked_limit", "decode", "decode_log", "encode", "encode_log", "left_in", "read_log"]

CHUNK: Final = 1 << 20
_STATES: Final = {int(state): state for state in MessageState}
_FIXED: Final = {"m45": struct.Struct("<QBQ16sII"), "previous": struct.Struct("<QQ16sI")}
_LIMIT_MAX: Final = 1 << 30


def encode(message: Message, layout: Layout = "m45") -> bytes:
    """Write a message; in a layout with batches, as a batch of one message.

    The checksum is the message's own if the message has this layout and its checksum is wrong, so that writing repairs
    nothing. Otherwise it is computed. A message without ``origin_timestamp`` is written with its ``timestamp``.

    Args:
        message: With a state for ``m45`` and ``batch24``; other layouts leave the state out.
        layout: A layout's name; ``auto`` is not allowed.

    Returns:
        The message's bytes, its headers in the order that they have.

    Raises:
        ValueError: if the state is missing, or a header's key does not fit the layout.

    >>> len(encode(Message.new(b"", id=1))), len(encode(Message.new(b"", id=1), "h64"))
    (45, 64)
    """
    return encode_log([message], layout)


def decode(data: bytes | memoryview, layout: Layout = "m45") -> Message:
    """Read one message, and nothing after it.

    Args:
        data: The message's bytes; in a layout with batches, a batch of one message.
        layout: A layout's name, or ``auto`` to find it by the checksum.

    Returns:
        The message. A wrong checksum is not an error: `Message.checksum_ok` is False.

    Raises:
        TruncatedMessage: if the bytes end before the message does.
        InvalidMessage: if they are malformed or go on after the message; with the place of the byte.

    >>> decode(encode(Message.new(b"hello", id=7))).payload
    b'hello'
    """
    name = name_of(layout, auto=True)
    if name in _FIXED:
        reader = Reader(data)
        message = _decode_old(reader, name)
        reader.finish("the message")
        return message
    messages = decode_log(data, layout)
    if len(messages) != 1:
        raise InvalidMessage(f"{len(messages)} messages, not one", 0)
    return messages[0]


def _decode_old(reader: Reader, layout: str) -> Message:
    """Read the message of a layout of 2023 at a reader's place, with the reason of every kind of error."""
    start, fixed = reader.base + reader.place, _FIXED[layout]
    values = fixed.unpack_from(reader.data, reader.need(fixed.size, "a message"))
    state = checksum = None
    if layout == "m45":
        offset, code, timestamp, raw, checksum, length = values
        state = _STATES.get(code)
        if state is None:
            raise InvalidMessage(f"state {code}, not {STATE_CODES}", start + 8)
    else:
        offset, timestamp, raw, length = values
    place = reader.need(length, "the block of headers")
    try:
        headers = decode_headers(Reader(reader.data, place, place + length, reader.base))
    except TruncatedMessage as error:  # the length of the headers is known, so that more bytes do not help
        raise InvalidMessage(f"within headers of {length} bytes {error.reason}", error.offset) from None
    payload = reader.sized(4, "the payload")
    id = int.from_bytes(raw, "little")
    return valid_message(offset, state, timestamp, id, checksum, headers, payload, layout=layout)


def encode_log(messages: Iterable[Message], layout: Layout = "m45", *, partition: int = 0) -> bytes:
    """Write messages one after the other, as a segment's ``.log`` file holds them.

    A layout with batches gets batches of at most 1,000 messages. A ``batch256`` batch has messages of one server time;
    messages that were read from one batch are written as that batch.

    Args:
        messages: As for `encode`.
        layout: As for `encode`.
        partition: The number of the partition, which ``batch256`` writes for messages without a batch.

    >>> len(encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)]))
    92
    """
    return b"".join(batches(messages, name_of(layout), partition))


def decode_log(data: bytes | memoryview, layout: Layout = "auto", *, first_offset: int = 0) -> list[Message]:
    """Read messages one after the other to the end of the bytes.

    Args:
        data: The bytes of a segment's ``.log`` file.
        layout: A layout's name. Default: found by the checksum of the first record; a server that was upgraded may
            go on in a later layout.
        first_offset: The number in the file's name; no first message is below it.

    Raises:
        TruncatedMessage: if the last record is cut off; its ``offset`` is where the record begins.
        InvalidMessage: if the bytes are malformed, or fit no layout.

    >>> [message.payload for message in decode_log(encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)]))]
    [b'a', b'b']
    """
    decoder = LogDecoder(name_of(layout, auto=True), first_offset=first_offset, limit=len(data))
    found = decoder.decode(data, len(data))
    messages = [_whole(message) for message in messages_of(data, found.rows)]
    if found.error is not None:
        raise found.error
    return messages


def _whole(message: Message | InvalidMessage) -> Message:
    if isinstance(message, InvalidMessage):
        raise message
    return message


def read_log(
    file: BinaryIO,
    layout: Layout = "auto",
    *,
    chunk: int = CHUNK,
    first_offset: int = 0,
    length: int | None = None,
    limit: int = LONGEST,
    malformed: Callable[[InvalidMessage], object] | None = None,
) -> Iterator[Message]:
    """Read the messages of a segment file of any size, one after the other.

    Args:
        file: Open for reading bytes.
        layout: As for `decode_log`.
        chunk: The number of bytes that are read at once; more are held only for a record that is longer.
        first_offset: As for `decode_log`.
        length: The number of bytes to read. Default: to the end of the file.
        limit: The longest record in bytes; one that claims more is an error and is not waited for.
        malformed: Called with the error of a message whose headers are malformed; reading goes on after that message.
            Default: the error is raised.

    Yields:
        Each message.

    Raises:
        TruncatedMessage: after the last whole record, if a part of one follows; its ``offset`` is where it begins.
        InvalidMessage: if the bytes are malformed, or fit no layout; its ``offset`` counts from where the file stood.

    >>> import io
    >>> file = io.BytesIO(encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)])[:-1])
    >>> try:
    ...     for message in read_log(file):
    ...         print(message.payload)
    ... except TruncatedMessage as error:
    ...     print(error.offset)
    b'a'
    46
    """
    decoder = LogDecoder(name_of(layout, auto=True), first_offset=first_offset, limit=checked_limit(limit))
    left = left_in(file) if length is None else length
    held, base, wanted, ended = b"", 0, chunk, False
    while True:
        more = file.read(wanted if left is None else min(wanted, left))
        left = None if left is None else left - len(more)
        held += more
        ended = ended or not more or left == 0
        found = decoder.decode(held, len(held) if ended else -1 if left is None else len(held) + left, base)
        for message in messages_of(held, found.rows, base):
            if isinstance(message, Message):
                yield message
            elif malformed is None:
                raise message
            else:
                malformed(message)
        if found.error is not None:
            raise found.error
        if ended:
            return
        held = held[found.place :]
        base += found.place
        wanted = max(chunk, found.needed - len(held))


def checked_limit(limit: int) -> int:
    """Return the limit of a record, or raise TypeError or ValueError."""
    return integer("limit", limit, max(facts.least for facts in LAYOUTS.values()), _LIMIT_MAX)


def left_in(file: BinaryIO) -> int | None:
    """Return how many bytes follow in a file; None if the file cannot seek."""
    try:
        here = file.tell()
        end = file.seek(0, 2)
        file.seek(here)
    except (AttributeError, OSError, ValueError):
        return None
    return max(0, end - here)
