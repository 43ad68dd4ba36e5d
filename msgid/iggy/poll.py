"""Poll responses: the messages that a server sends to a client on request."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy.records.decoding import LogDecoder, messages_of
from msgid.iggy.records.encoding import batches
from msgid.iggy.records.searching import LONGEST, probe
from msgid.iggy.wire import AUTO, LAYOUTS, U32, Layout, wire_name
from msgid.shared.validate import UINT32_MAX, UINT64_MAX, integer, one_of

if TYPE_CHECKING:
    from msgid.iggy.message import Message

_FORMS: Final = {16: struct.Struct("<IQI"), 40: struct.Struct("<IQIQQQ")}
"""The heads by their size in bytes: of releases up to 0.9, and of the crate iggy_binary_protocol 0.11.1-edge.8."""
_EARLIER, _NEWEST = _FORMS
_COUNT_AT: Final = 12


class PollResponse(NamedTuple):
    """The response of a server to a poll."""

    partition: int
    current_offset: int
    messages: list[Message]
    incarnation: int | None = None
    """Number of the partition's life, which changes if a topic is created again; None in a head of 16 bytes."""
    owner_generation: int | None = None
    """None in a head of 16 bytes."""
    metadata_op: int | None = None
    """None in a head of 16 bytes."""

    @property
    def layout(self) -> str | None:
        """The layout from which the messages were read; None without messages."""
        return self.messages[0].layout if self.messages else None

    @property
    def head(self) -> int:
        """The size of the response's head in bytes: 16 up to release 0.9, or 40.

        Raises:
            ValueError: if some of the fields of a head are missing.
        """
        missing = self[3:].count(None)
        if missing not in {0, len(self[3:])}:
            raise ValueError(
                "a poll response must have all of incarnation, owner_generation and metadata_op, or none of them"
            )
        return _EARLIER if missing else _NEWEST


def encode_poll(response: PollResponse, layout: Layout) -> bytes:
    """Encode a poll response, with the head whose fields it has, and with messages in a layout of `LAYOUTS`.

    >>> encode_poll(PollResponse(3, 7, []), "h64").hex()
    '03000000070000000000000000000000'
    >>> len(encode_poll(PollResponse(3, 7, [], incarnation=1, owner_generation=1, metadata_op=9), "batch256"))
    40
    """
    name, size = wire_name(layout), response.head
    values = [integer("partition", response.partition, 0, UINT32_MAX)]
    values += [integer("current_offset", response.current_offset, 0, UINT64_MAX), len(response.messages)]
    if size == _NEWEST:
        fields = zip(response._fields[3:], response[3:], strict=True)
        values += [integer(field, value, 0, UINT64_MAX) for field, value in fields]
    return b"".join((_FORMS[size].pack(*values), *batches(response.messages, name, response.partition)))


def decode_poll(data: bytes | memoryview, layout: Layout = "auto", *, head: int | None = None) -> PollResponse:
    """Decode exactly one poll response.

    Args:
        data: Head and messages.
        layout: Layout of the messages. Default: detected by checksum. Servers up to 0.8 send wrong checksums if they
            encrypt messages; for those, pass the layout.
        head: Size of the head in bytes: 16 up to release 0.9, 40 in the crate iggy_binary_protocol 0.11.1-edge.8.
            Default: 40 if a ``batch256`` record with a correct checksum follows such a head, or nothing; else 16.

    Raises:
        ValueError: if ``head`` is another number.
        TruncatedMessage: if the bytes end too early, or are too short for the count of messages.
        InvalidMessage: if the bytes are malformed, continue after the messages, or no layout matches.

    >>> decode_poll(bytes(16))
    PollResponse(partition=0, current_offset=0, messages=[], incarnation=None, owner_generation=None, metadata_op=None)
    """
    if head is not None:
        one_of("head", head, _FORMS)
    name, view = wire_name(layout, auto=True), memoryview(data).cast("B")
    size = _head_of(view, name) if head is None else head
    if len(view) < size:
        raise TruncatedMessage(f"the head needs {size} bytes, and {len(view)} are left", 0)
    partition, current, count, *context = _FORMS[size].unpack_from(view)
    return PollResponse(partition, current, _messages(view, size, count, name), *context)


def _head_of(data: memoryview, layout: str) -> int:
    """Return the size of the head of a response."""
    if layout not in (AUTO, "batch256") or len(data) < _NEWEST:
        return _EARLIER
    if len(data) == _NEWEST:
        return _EARLIER if U32.unpack_from(data, _COUNT_AT)[0] else _NEWEST
    record = data[_NEWEST:]
    probed = probe(record, LAYOUTS["batch256"], len(record), 0, LONGEST)
    return _NEWEST if probed.reason is None else _EARLIER


def _messages(data: memoryview, start: int, count: int, layout: str) -> list[Message]:
    at, body = _COUNT_AT, data[start:]
    least = min(facts.least for facts in LAYOUTS.values()) if layout == AUTO else LAYOUTS[layout].least
    if count > len(body) // least:
        raise TruncatedMessage(f"a count of {count} messages, and bytes for {len(body) // least} at the most", at)
    if not count and len(body):
        raise InvalidMessage(f"{len(body)} bytes after the end of the poll response", start)
    decoded = LogDecoder(layout, limit=len(data), poll=True).decode(body, len(body), start)
    messages: list[Message] = []
    for message in messages_of(body, decoded.rows, start):
        if isinstance(message, InvalidMessage):
            raise message
        messages.append(message)
    if decoded.error is not None and len(messages) < count:
        raise decoded.error
    if len(messages) < count:
        raise TruncatedMessage(f"a count of {count} messages, and there are {len(messages)}", at)
    if decoded.error is not None or len(messages) > count:
        raise InvalidMessage(f"{count} messages and bytes after the end of the poll response", at)
    return messages
