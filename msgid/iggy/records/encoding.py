"""The bytes of messages in every layout, one message at a time or a batch."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from msgid.iggy.headers import encode_headers
from msgid.iggy.message import Batch, Message, digest, frame_body, new_body, origin_of, own_checksum, raw_id
from msgid.iggy.records.checksums import crc32, xxh3
from msgid.iggy.records.producers import covered, section
from msgid.iggy.wire import BATCH24, BATCH256, LAYOUTS, PREVIOUS, U32
from msgid.shared.validate import UINT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OLD: Final = struct.Struct("<QBQ16sII")
_PREVIOUS: Final = struct.Struct("<QQ16sI")
_BATCH24: Final = struct.Struct("<QIIQ")
_BATCH256: Final = struct.Struct("<QQQQQ")
_MOST_MESSAGES: Final = 1000
"""How many messages are written as one batch."""
_MOST_BYTES: Final = 1 << 20


def _keeps_checksum(message: Message, layout: str) -> bool:
    """Return whether a message is written with the wrong checksum that it has, so that writing repairs nothing."""
    same = message.layout == layout or {message.layout, layout} == {"m45", "batch24"}
    return same and message.checksum is not None and message.checksum != own_checksum(message, message.layout)


def encoded(message: Message, layout: str) -> bytes:
    """Return the bytes of one message in a layout without batches, or of a message in a ``batch24`` batch."""
    facts = LAYOUTS[layout]
    headers = encode_headers(message.headers, typed=facts.typed_keys)
    if facts.code == PREVIOUS:
        fixed = _PREVIOUS.pack(message.offset, message.timestamp, raw_id(message), len(headers))
        return b"".join((fixed, headers, U32.pack(len(message.payload)), message.payload))
    kept = message.checksum if _keeps_checksum(message, layout) else None
    if not facts.has_state:
        body = new_body(message, facts, headers)
        return (digest(facts, body) if kept is None else kept).to_bytes(8, "little") + body
    if message.state is None:
        raise ValueError(f"cannot write a message without a state in the layout {layout!r}: pass layout to Message.new")
    sum = crc32(message.payload) if kept is None else kept
    fixed = _OLD.pack(message.offset, message.state, message.timestamp, raw_id(message), sum, len(headers))
    if facts.code == BATCH24:
        return b"".join((U32.pack(len(fixed) + len(headers) + len(message.payload)), fixed, headers, message.payload))
    return b"".join((fixed, headers, U32.pack(len(message.payload)), message.payload))


def sent(message: Message, layout: str) -> bytes:
    """Return the bytes of one message of a request, in a layout without batches: what the server fills in is 0."""
    facts = LAYOUTS[layout]
    headers = encode_headers(message.headers, typed=facts.typed_keys)
    if facts.has_origin:
        return bytes(8) + new_body(message, facts, headers, sent=True)
    lengths = (U32.pack(len(headers)), U32.pack(len(message.payload)))
    return b"".join((raw_id(message), lengths[0], headers, lengths[1], message.payload))


def _groups(messages: Iterable[Message], code: int) -> Iterator[list[Any]]:
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


def _another_batch(first: Message, message: Message, *, full: bool) -> bool:
    if first.batch is not None or message.batch is not None:
        return first.batch != message.batch
    return (
        full
        or message.timestamp != first.timestamp
        or not 0 <= message.offset - first.offset <= UINT32_MAX
        or abs(origin_of(message) - origin_of(first)) > UINT32_MAX // 2
    )


def _batch24(messages: list[Message]) -> bytes:
    body = b"".join(encoded(message, "batch24") for message in messages)
    offsets, latest = [message.offset for message in messages], max(message.timestamp for message in messages)
    delta = min(max(0, offsets[-1] - offsets[0]), UINT32_MAX)
    return _BATCH24.pack(offsets[0], len(body), delta, latest) + body


def batch256(messages: list[Any], partition: int = 0) -> bytes:
    """Return one ``batch256`` record of messages; their offsets and producer's times fit one batch."""
    batch: Batch | None = messages[0].batch
    base_offset, base_time = (
        (messages[0].offset, messages[0].timestamp) if batch is None else (batch.base_offset, batch.base_timestamp)
    )
    origin = min(map(origin_of, messages)) if batch is None else batch.origin_timestamp
    frames, sums = [], []
    for message in messages:
        body = frame_body(message, encode_headers(message.headers, typed=True), base_offset, origin)
        kept = message.checksum if _keeps_checksum(message, "batch256") else xxh3(body)
        sums.append(kept.to_bytes(8, "little"))
        frames += [sums[-1], body]
    length = 256 + sum(map(len, frames))
    partition_id = partition if batch is None else batch.partition_id
    head = _BATCH256.pack(partition_id, base_offset, base_time, origin, length)
    count = U32.pack(len(messages))
    producer = None if batch is None else batch.producer
    named = section(producer)
    checksum = xxh3(b"".join((head, count, covered(producer), *sums)))
    if batch is not None and not batch.checksum_ok:
        checksum = batch.checksum
    return b"".join((head, checksum.to_bytes(8, "little"), count, named, *frames))


def batches(messages: Iterable[Message], layout: str, partition: int = 0) -> Iterator[bytes]:
    """Yield the records of messages in a layout with batches, or each message in another layout."""
    code = LAYOUTS[layout].code
    if code == BATCH256:
        yield from (batch256(group, partition) for group in _groups(messages, code))
    elif code == BATCH24:
        yield from (_batch24(group) for group in _groups(messages, code))
    else:
        yield from (encoded(message, layout) for message in messages)
