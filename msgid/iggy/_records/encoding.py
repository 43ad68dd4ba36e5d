"""The bytes of messages in every layout, one message at a time or a batch.

`Encodable` are the fields of a message that are written; `msgid.iggy.message.Message` has them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgid._validate import UINT32_MAX, UINT64_MAX
from msgid.iggy._records.checksums import crc32, xxh3
from msgid.iggy._records.producers import Producer, covered, section
from msgid.iggy._wire import BATCH24, BATCH256, H64, LAYOUTS, PREVIOUS, U32, LayoutFacts
from msgid.iggy.headers import encode_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_OLD: Final = struct.Struct("<QBQ16sII")
_PREVIOUS: Final = struct.Struct("<QQ16sI")
_NEW: Final = struct.Struct("<16sQQQII")
_FRAME: Final = struct.Struct("<16sIIIIQ")
_BATCH24: Final = struct.Struct("<QIIQ")
_BATCH256: Final = struct.Struct("<QQQQQ")
_MOST_MESSAGES: Final = 1000
"""How many messages are written as one batch."""
_MOST_BYTES: Final = 1 << 20


class Batch(NamedTuple):
    """The header of the ``batch256`` batch in which a message stands."""

    partition_id: int
    base_offset: int
    base_timestamp: int
    """The server's append time; 0 in a batch that a producer sends."""
    origin_timestamp: int
    """The earliest producer's time of the batch."""
    checksum: int
    checksum_ok: bool
    """Whether the checksum of the batch is right."""
    producer: Producer | None = None
    """The idempotent producer of release 0.10 that made the batch, if it names one."""


class Encodable(Protocol):
    """The fields of a message that are written."""

    @property
    def offset(self) -> int: ...
    @property
    def state(self) -> Any: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def id(self) -> int: ...
    @property
    def checksum(self) -> int | None: ...
    @property
    def headers(self) -> Mapping[Any, Any]: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def origin_timestamp(self) -> int | None: ...
    @property
    def layout(self) -> str: ...
    @property
    def batch(self) -> Batch | None: ...


def digest(facts: LayoutFacts, data: bytes) -> int:
    """Return the checksum of bytes in a layout."""
    return xxh3(data) if facts.checksum == "xxh3" else crc32(data)


def _origin(message: Encodable) -> int:
    return message.timestamp if message.origin_timestamp is None else message.origin_timestamp


def _raw_id(message: Encodable) -> bytes:
    return message.id.to_bytes(16, "little")


def _new_body(message: Encodable, facts: LayoutFacts, headers: bytes, *, sent: bool = False) -> bytes:
    """Return a message of the layouts with 56 or 64 bytes, from byte 8 on."""
    offset, timestamp = (0, 0) if sent else (message.offset, message.timestamp)
    lengths = (len(headers), len(message.payload))
    fixed = _NEW.pack(_raw_id(message), offset, timestamp, _origin(message), *lengths)
    return b"".join((fixed, bytes(8) if facts.code == H64 else b"", message.payload, headers))


def _frame_body(message: Encodable, headers: bytes, base_offset: int, origin: int) -> bytes:
    """Return a frame of a ``batch256`` batch, from byte 8 on."""
    deltas = ((message.offset - base_offset) & UINT64_MAX, (_origin(message) - origin) & UINT64_MAX)
    if max(deltas) > UINT32_MAX:
        raise ValueError(
            f"cannot write the message at offset {message.offset} into a batch that starts at offset {base_offset} "
            f"and time {origin}: the distance must be 0 to {UINT32_MAX}"
        )
    fixed = _FRAME.pack(_raw_id(message), *deltas, len(headers), len(message.payload), 0)
    return b"".join((fixed, message.payload, headers))


def _base(message: Encodable) -> tuple[int, int]:
    """Return the offset and the producer's time that a message's frame counts from."""
    if message.batch is not None:
        return message.batch.base_offset, message.batch.origin_timestamp
    return message.offset, _origin(message)


def own_checksum(message: Encodable, layout: str) -> int | None:
    """Return the checksum that a message must have in a layout; None if none is right."""
    facts = LAYOUTS[layout]
    if facts.code == PREVIOUS:
        return None
    if facts.has_state:
        return crc32(message.payload)
    headers = encode_headers(message.headers, typed=facts.typed_keys)
    if not facts.batch:
        return digest(facts, _new_body(message, facts, headers))
    try:
        return digest(facts, _frame_body(message, headers, *_base(message)))
    except ValueError:  # fields that were changed, and fit the batch no more: no checksum is right
        return None


def _keeps_checksum(message: Encodable, layout: str) -> bool:
    """Return whether a message is written with the wrong checksum that it has, so that writing repairs nothing."""
    same = message.layout == layout or {message.layout, layout} == {"m45", "batch24"}
    return same and message.checksum is not None and message.checksum != own_checksum(message, message.layout)


def encoded(message: Encodable, layout: str) -> bytes:
    """Return the bytes of one message in a layout without batches, or of a message in a ``batch24`` batch."""
    facts = LAYOUTS[layout]
    headers = encode_headers(message.headers, typed=facts.typed_keys)
    if facts.code == PREVIOUS:
        fixed = _PREVIOUS.pack(message.offset, message.timestamp, _raw_id(message), len(headers))
        return b"".join((fixed, headers, U32.pack(len(message.payload)), message.payload))
    kept = message.checksum if _keeps_checksum(message, layout) else None
    if not facts.has_state:
        body = _new_body(message, facts, headers)
        return (digest(facts, body) if kept is None else kept).to_bytes(8, "little") + body
    if message.state is None:
        raise ValueError(f"cannot write a message without a state in the layout {layout!r}: pass layout to Message.new")
    sum = crc32(message.payload) if kept is None else kept
    fixed = _OLD.pack(message.offset, message.state, message.timestamp, _raw_id(message), sum, len(headers))
    if facts.code == BATCH24:
        return b"".join((U32.pack(len(fixed) + len(headers) + len(message.payload)), fixed, headers, message.payload))
    return b"".join((fixed, headers, U32.pack(len(message.payload)), message.payload))


def sent(message: Encodable, layout: str) -> bytes:
    """Return the bytes of one message of a request, in a layout without batches: what the server fills in is 0."""
    facts = LAYOUTS[layout]
    headers = encode_headers(message.headers, typed=facts.typed_keys)
    if facts.has_origin:
        return bytes(8) + _new_body(message, facts, headers, sent=True)
    lengths = (U32.pack(len(headers)), U32.pack(len(message.payload)))
    return b"".join((_raw_id(message), lengths[0], headers, lengths[1], message.payload))


def _groups(messages: Iterable[Encodable], code: int) -> Iterator[list[Any]]:
    """Divide messages into batches; messages that were read from one ``batch256`` batch stay together."""
    group: list[Any] = []
    size = 0
    for message in messages:
        full = len(group) >= _MOST_MESSAGES or size + len(message.payload) > _MOST_BYTES
        if group and (_another_batch(group[0], message, full=full) if code == BATCH256 else full):
            yield group
            group, size = [], 0
        group.append(message)
        size += len(message.payload)
    if group:
        yield group


def _another_batch(first: Encodable, message: Encodable, *, full: bool) -> bool:
    if first.batch is not None or message.batch is not None:
        return first.batch != message.batch
    return (
        full
        or message.timestamp != first.timestamp
        or not 0 <= message.offset - first.offset <= UINT32_MAX
        or abs(_origin(message) - _origin(first)) > UINT32_MAX // 2
    )


def _batch24(messages: list[Encodable]) -> bytes:
    body = b"".join(encoded(message, "batch24") for message in messages)
    offsets, latest = [message.offset for message in messages], max(message.timestamp for message in messages)
    delta = min(max(0, offsets[-1] - offsets[0]), UINT32_MAX)
    return _BATCH24.pack(offsets[0], len(body), delta, latest) + body


def batch256(messages: list[Any], partition: int = 0) -> bytes:
    """Return one ``batch256`` record of messages; their offsets and producer's times fit one batch."""
    held: Batch | None = messages[0].batch
    base_offset, base_time = (
        (messages[0].offset, messages[0].timestamp) if held is None else (held.base_offset, held.base_timestamp)
    )
    origin = min(map(_origin, messages)) if held is None else held.origin_timestamp
    frames, sums = [], []
    for message in messages:
        body = _frame_body(message, encode_headers(message.headers, typed=True), base_offset, origin)
        kept = message.checksum if _keeps_checksum(message, "batch256") else xxh3(body)
        sums.append(kept.to_bytes(8, "little"))
        frames += [sums[-1], body]
    length = 256 + sum(map(len, frames))
    partition_id = partition if held is None else held.partition_id
    head = _BATCH256.pack(partition_id, base_offset, base_time, origin, length)
    count = U32.pack(len(messages))
    producer = None if held is None else held.producer
    named = section(producer)
    checksum = xxh3(b"".join((head, count, covered(producer), *sums)))
    if held is not None and not held.checksum_ok:
        checksum = held.checksum
    return b"".join((head, checksum.to_bytes(8, "little"), count, named, *frames))


def batches(messages: Iterable[Encodable], layout: str, partition: int = 0) -> Iterator[bytes]:
    """Yield the records of messages in a layout with batches, or each message in another layout."""
    code = LAYOUTS[layout].code
    if code == BATCH256:
        yield from (batch256(group, partition) for group in _groups(messages, code))
    elif code == BATCH24:
        yield from (_batch24(group) for group in _groups(messages, code))
    else:
        yield from (encoded(message, layout) for message in messages)
