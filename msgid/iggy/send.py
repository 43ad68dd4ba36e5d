"""The request that sends messages to a server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy.commands import identifier, read_identifier
from msgid.iggy.headers import decode_headers
from msgid.iggy.message import Batch, Message, origin_of
from msgid.iggy.records.decoding import messages_of
from msgid.iggy.records.encoding import batch256, sent
from msgid.iggy.records.rows import ROW, Stop
from msgid.iggy.records.scanning import scan
from msgid.iggy.records.searching import stop_reason
from msgid.iggy.wire import BATCH256, LAYOUTS, U32, Layout, Reader, wire_name
from msgid.shared.validate import UINT32_MAX, integer

if TYPE_CHECKING:
    from collections.abc import Iterator

_BALANCED, _PARTITION, _KEY = 1, 2, 3
_TEXT_MAX: Final = 255
_ENTRY: Final = 16
"""The size in bytes of an index entry, which holds the end position of a message."""


class Partitioning(NamedTuple):
    """The rule by which a server chooses the partition of sent messages.

    >>> Partitioning(), Partitioning(partition=3), Partitioning(key=b"order-7")
    (Partitioning(partition=None, key=None), Partitioning(partition=3, key=None), \
Partitioning(partition=None, key=b'order-7'))
    """

    partition: int | None = None
    """Number of the partition; None if the server chooses."""
    key: bytes | None = None
    """Key of 1 to 255 bytes; messages with the same key go to the same partition."""

    def encode(self) -> bytes:
        """Encode the partitioning as a part of a request."""
        if self.partition is not None and self.key is not None:
            raise ValueError("a partitioning must have a partition or a key, not both")
        if self.partition is not None:
            return bytes([_PARTITION, 4]) + U32.pack(integer("partition", self.partition, 0, UINT32_MAX))
        if self.key is not None:
            return bytes([_KEY, integer("the length of the key", len(self.key), 1, _TEXT_MAX)]) + self.key
        return bytes([_BALANCED, 0])

    @classmethod
    def read(cls, reader: Reader) -> Partitioning:
        """Decode the partitioning at a reader's position."""
        at = reader.position
        kind = reader.unsigned(1, "the kind of the partitioning")
        value = reader.sized(1, "the partitioning")
        if kind == _BALANCED and not value:
            return cls()
        if kind == _PARTITION and len(value) == U32.size:
            return cls(partition=int.from_bytes(value, "little"))
        if kind == _KEY and value:
            return cls(key=value)
        raise InvalidMessage(f"a partitioning of kind {kind} with {len(value)} bytes", at)


class SendMessages(NamedTuple):
    """The body of the command that sends messages.

    Offset and timestamp of the messages are 0, because the server fills them in. Only ``batch256`` has checksums.

    >>> request = SendMessages(1, "orders", Partitioning(partition=3), [Message.new(b"hello", id=7, layout="h64")])
    >>> SendMessages.decode(request.encode("h64"), "h64").messages[0].payload
    b'hello'
    """

    stream: int | str
    """Number or name of the stream."""
    topic: int | str
    partitioning: Partitioning
    messages: list[Message]

    def encode(self, layout: Layout) -> bytes:
        """Encode the request.

        Args:
            layout: Layout of the server; ``batch24`` is ``m45`` on the network.

        Raises:
            TypeError, ValueError: if a value has the wrong type or is out of range.
        """
        name = wire_name(layout)
        code = LAYOUTS[name].code
        target = b"".join(
            (identifier("stream", self.stream), identifier("topic", self.topic), self.partitioning.encode())
        )
        if not LAYOUTS[name].has_origin:
            return b"".join((target, *(sent(message, name) for message in self.messages)))
        head = U32.pack(len(target) + U32.size) + target + U32.pack(len(self.messages))
        if code == BATCH256:
            return head + _batches_sent(self.messages)
        raws = [sent(message, name) for message in self.messages]
        entries, end = [], 0
        for raw in raws:
            end += len(raw)
            entries.append(bytes(4) + U32.pack(end) + bytes(8))
        return b"".join((head, *entries, *raws))

    @classmethod
    def decode(cls, data: bytes | memoryview, layout: Layout) -> SendMessages:
        """Decode exactly one request.

        Args:
            data: Body of the command.
            layout: Layout of the server. It cannot be detected, because the checksums are 0.

        Raises:
            InvalidMessage: if the bytes are malformed.
        """
        name = wire_name(layout)
        facts, reader = LAYOUTS[name], Reader(data)
        at = reader.position
        length = reader.unsigned(4, "the length of the metadata") if facts.has_origin else 0
        stream, topic = read_identifier(reader, "stream"), read_identifier(reader, "topic")
        partitioning = Partitioning.read(reader)
        if not facts.has_origin:
            return cls(stream, topic, partitioning, list(_sent_old(reader, name)))
        count = reader.unsigned(4, "the count of messages")
        if reader.position != at + 4 + length:
            raise InvalidMessage(f"metadata must have {reader.position - 4 - at} bytes, got {length}", at)
        ends = [] if facts.code == BATCH256 else _entries(reader, count)
        body = memoryview(data)[reader.position :]
        scanned = scan(body, facts.code, known=len(body))
        if scanned.stop != Stop.END:
            kind = TruncatedMessage if scanned.stop == Stop.CUT else InvalidMessage
            raise kind(stop_reason(scanned), reader.position + scanned.at)
        messages = []
        for message in messages_of(body, scanned.rows, reader.position):
            if isinstance(message, InvalidMessage):
                raise message
            messages.append(message)
        if len(messages) != count:
            raise InvalidMessage(f"a count of {count} messages, and there are {len(messages)}", at + length)
        if ends and ends != _ends(scanned.rows):
            raise InvalidMessage("the index entries must match the ends of the messages", at + length + 4)
        return cls(stream, topic, partitioning, messages)


def _batches_sent(messages: list[Message]) -> bytes:
    """Return the record that a producer sends: numbered from offset 0, without server time, with its own numbers."""
    if not messages:
        return b""
    origins = [origin_of(message) for message in messages]
    producer = None if messages[0].batch is None else messages[0].batch.producer
    batch = Batch(0, 0, 0, min(origins), 0, checksum_ok=True, producer=producer)
    # The layout h64 keeps no wrong checksum in a batch.
    unset: dict[str, Any] = {"state": None, "timestamp": 0, "layout": "h64", "batch": batch}
    return batch256(
        [
            replace(message, offset=offset, origin_timestamp=origin, checksum=message.checksum or 0, **unset)
            for offset, (message, origin) in enumerate(zip(messages, origins, strict=True))
        ]
    )


def _entries(reader: Reader, count: int) -> list[int]:
    at = reader.position
    if count * _ENTRY > reader.end - at:
        raise TruncatedMessage(f"a count of {count} messages, and bytes for fewer", at)
    raw = reader.take(count * _ENTRY, "the entries")
    return [int.from_bytes(raw[position + 4 : position + 8], "little") for position in range(0, len(raw), _ENTRY)]


def _ends(rows: bytes) -> list[int]:
    return [row[1] for row in ROW.iter_unpack(rows)]


def _sent_old(reader: Reader, layout: Any) -> Iterator[Message]:
    """Decode the messages of a request of a release before 0.5.0."""
    while reader.position < reader.end:
        id = reader.unsigned(16, "the ID")
        length = reader.unsigned(4, "the length of the headers")
        position = reader.need(length, "the block of headers")
        try:
            headers = decode_headers(Reader(reader.data, position, position + length))
        except TruncatedMessage as error:
            raise InvalidMessage(f"within headers of {length} bytes {error.reason}", error.offset) from None
        payload = reader.sized(4, "the payload")
        yield replace(Message.new(payload, id=id, layout=layout), headers=headers)  # in their order
