"""User code on IDs that mypy checks: each annotation is the type that the user must get."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from ipaddress import IPv4Address, IPv6Address

import msgid
from msgid.ids.bulk import IdColumns

made: msgid.MessageId = msgid.generate()
text: str = msgid.generate_hex()
second: msgid.MessageId = msgid.Generator(node="56:f7:e7:1c:36:1b", pid=1, clock=lambda: 1.7e9).generate()
of_row: msgid.MessageId = msgid.position_id("kafka://orders/3", 1234, datetime.now(timezone.utc))
child: msgid.MessageId = msgid.derive_id(made, "reply")
ordered: bool = made < second

batch: msgid.IdBatch = msgid.generate_batch(10)
first: msgid.MessageId = batch[0]
part: msgid.IdBatch = batch[2:5]
each: Iterator[msgid.MessageId] = iter(batch)
texts: list[str] = batch.hex()
columns: IdColumns = msgid.parse_batch(texts)


def describe(value: str) -> str:
    """Return the origin of an ID of any kind."""
    id = msgid.parse(value)
    match id:
        case msgid.MessageId():
            seconds: int = id.seconds
            return f"{id.mac} {id.time:%Y} {seconds}"
        case msgid.BrokerOffsetId():
            host: IPv4Address | IPv6Address = id.host
            return f"{host}:{id.port} {id.offset}"
        case msgid.ClientUniqueId():
            return f"{id.host} {id.counter}"


def refused(value: object) -> str | None:
    """Return the reason why a value is not an ID, or None if it is one."""
    try:
        msgid.parse(value)  # type: ignore[arg-type]  # an ID is a value, text or bytes
    except msgid.InvalidMessageId as error:
        reason: str = error.reason
        return reason
    return None


made.pid = 7  # type: ignore[misc]  # a value cannot be changed
