"""Poll responses: the messages that a server sends to a client on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgid._validate import UINT32_MAX, UINT64_MAX, integer
from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy._records.decoding import LogDecoder, messages_of
from msgid.iggy._records.encoding import batches
from msgid.iggy._wire import LAYOUTS, U32, Layout, Reader, wire_name

if TYPE_CHECKING:
    from msgid.iggy.message import Message


class PollResponse(NamedTuple):
    """The response of a server to a poll."""

    partition: int | None
    """Number of the partition; None in the first release, whose responses contain only a count and messages."""
    current_offset: int | None
    messages: list[Message]

    @property
    def layout(self) -> str | None:
        """The layout from which the messages were read; None without messages."""
        return self.messages[0].layout if self.messages else None


def encode_poll(response: PollResponse, layout: Layout = "m45") -> bytes:
    """Encode a poll response; without partition and current offset, in the form of the first release.

    >>> encode_poll(PollResponse(3, 7, [])).hex()
    '03000000070000000000000000000000'
    """
    name = wire_name(layout)
    partition, current, messages = response
    if (partition is None) != (current is None):
        raise ValueError("a poll response must have both a partition and a current offset, or neither")
    head = b""
    if partition is not None and current is not None:
        head = U32.pack(integer("partition", partition, 0, UINT32_MAX))
        head += integer("current_offset", current, 0, UINT64_MAX).to_bytes(8, "little")
    return b"".join((head, U32.pack(len(messages)), *batches(messages, name, partition or 0)))


def decode_poll(data: bytes | memoryview, layout: Layout = "auto", *, first_release: bool = False) -> PollResponse:
    """Decode exactly one poll response.

    Args:
        data: Partition u32, current offset u64, count u32, and that many messages.
        layout: Layout of the messages. Default: detected by checksum. Servers up to 0.8 send wrong checksums if they
            encrypt messages; for those, pass the layout.
        first_release: Whether the response contains only a count and messages.

    Raises:
        TruncatedMessage: if the bytes end too early, or are too short for the count of messages.
        InvalidMessage: if the bytes are malformed, continue after the messages, or no layout matches.

    >>> decode_poll(bytes(16))
    PollResponse(partition=0, current_offset=0, messages=[])
    """
    name = wire_name(layout, auto=True)
    reader = Reader(data)
    partition = current = None
    if not first_release:
        partition, current = reader.unsigned(4, "the partition"), reader.unsigned(8, "the current offset")
    at = reader.place
    count = reader.unsigned(4, "the count of messages")
    start = reader.place
    least = min(facts.least for facts in LAYOUTS.values()) if name == "auto" else LAYOUTS[name].least
    most = (reader.end - start) // least
    if count > most:
        raise TruncatedMessage(f"a count of {count} messages, and bytes for {most} at the most", at)
    if not count:
        reader.finish("the poll response")
    body = memoryview(data)[start:]
    decoder = LogDecoder(name, limit=len(data), poll=True)
    found = decoder.decode(body, len(body), start)
    messages: list[Message] = []
    for message in messages_of(body, found.rows, start):
        if isinstance(message, InvalidMessage):
            raise message
        messages.append(message)
    if found.error is not None and len(messages) < count:
        raise found.error
    if len(messages) < count:
        raise TruncatedMessage(f"a count of {count} messages, and there are {len(messages)}", at)
    if found.error is not None or len(messages) > count:
        raise InvalidMessage(f"{count} messages and bytes after the end of the poll response", at)
    return PollResponse(partition, current, messages)
