"""Many messages, one after the other: poll responses and segment files, of any size in constant memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy.message import Message, decode_from, encode
from msgid.iggy.wire import U32, U32_MAX, U64_MAX, Layout, Reader, shape_of, unsigned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["PollResponse", "decode_log", "decode_poll", "encode_log", "encode_poll", "read_log"]

CHUNK = 1 << 20


class PollResponse(NamedTuple):
    """What a server answers to a poll."""

    partition: int | None
    """None in the first release, whose answers say how many messages there are and no more."""
    current_offset: int | None
    messages: list[Message]


def encode_poll(response: PollResponse, layout: Layout = "current") -> bytes:
    """Write a poll response; without partition and current offset it is that of the first release.

    >>> encode_poll(PollResponse(3, 7, [])).hex()
    '03000000070000000000000000000000'
    """
    partition, current, messages = response
    if (partition is None) != (current is None):
        raise ValueError("a poll response has both a partition and a current offset, or neither")
    head = b""
    if partition is not None and current is not None:
        head = U32.pack(unsigned("partition", partition, U32_MAX)) + unsigned(
            "current_offset", current, U64_MAX
        ).to_bytes(8, "little")
    return head + U32.pack(len(messages)) + encode_log(messages, layout)


def decode_poll(data: bytes | memoryview, layout: Layout = "current", *, first_release: bool = False) -> PollResponse:
    """Read a poll response, which is all there is.

    Args:
        data: partition u32, current offset u64, count u32, and so many messages.
        layout: of the messages.
        first_release: there are a count and messages alone.

    Raises:
        TruncatedMessage: the bytes end too early, or cannot hold as many messages as the count says.
        InvalidMessage: they are no poll response, or go on after it.

    >>> decode_poll(bytes(16))
    PollResponse(partition=0, current_offset=0, messages=[])
    """
    reader = Reader(data)
    partition = current = None
    if not first_release:
        partition, current = reader.unsigned(4, "the partition"), reader.unsigned(8, "the current offset")
    start = reader.place
    count = reader.unsigned(4, "the count of messages")
    most = (reader.end - reader.place) // shape_of(layout).least
    if count > most:
        raise TruncatedMessage(f"a count of {count} messages, and bytes for {most} at the most", start)
    messages = [decode_from(reader, layout) for _ in range(count)]
    reader.finish("the poll response")
    return PollResponse(partition, current, messages)


def encode_log(messages: Iterable[Message], layout: Layout = "current") -> bytes:
    """Write messages one after the other, as a segment's ``.log`` file holds them.

    >>> len(encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)]))
    92
    """
    return b"".join(encode(message, layout) for message in messages)


def decode_log(data: bytes | memoryview, layout: Layout = "current") -> list[Message]:
    """Read messages one after the other to the end of the bytes.

    Raises:
        TruncatedMessage: the last message is there in part; its ``offset`` is where it begins.
        InvalidMessage: what is there is no message.

    >>> [message.payload for message in decode_log(encode_log([Message.new(b"a", id=1), Message.new(b"b", id=2)]))]
    [b'a', b'b']
    """
    reader = Reader(data)
    messages = []
    while reader.place < reader.end:
        messages.append(_whole(reader, layout))
    return messages


def read_log(file: BinaryIO, layout: Layout = "current", *, chunk: int = CHUNK) -> Iterator[Message]:
    """Read the messages of a segment file of any size, one after the other.

    Args:
        file: open for reading bytes.
        layout: ``current`` or ``previous``.
        chunk: how many bytes are read at once; more are held only for a message that is longer.

    Yields:
        each message.

    Raises:
        TruncatedMessage: after the last whole message, where a part of one follows; its ``offset`` is where it begins.
        InvalidMessage: what is there is no message; counted from where the file stood.

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
    shape_of(layout)
    held, base, wanted = b"", 0, chunk
    while True:
        more = file.read(wanted)
        held += more
        reader = Reader(held, base=base)
        try:
            while reader.place < reader.end:
                start = reader.place
                message = _whole(reader, layout)
                yield message
        except TruncatedMessage:
            if not more:
                raise
            reader.place = start
        if not more:
            return
        held = held[reader.place :]
        base += reader.place
        wanted = max(chunk, len(held))  # a long message is held once, not copied for every chunk of it


def _whole(reader: Reader, layout: Layout) -> Message:
    """Read a message; where it is cut off, say where it begins."""
    start = reader.base + reader.place
    try:
        return decode_from(reader, layout)
    except TruncatedMessage as error:
        left = reader.base + reader.end - start
        raise TruncatedMessage(f"half a message of {left} bytes: {error.reason}", start) from None
    except InvalidMessage:
        raise
