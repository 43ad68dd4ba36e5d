"""Iggy files and frames from a seed, of every layout; the same seed always gives the same bytes."""

from dataclasses import replace
from uuid import UUID

import msgid
from msgid import iggy

CHECKED = [name for name, facts in iggy.LAYOUTS.items() if facts.checksum]
"""The layouts that can be told by checksum."""


def _header(chance):
    kind = chance.choice([iggy.HeaderKind.RAW, iggy.HeaderKind.STRING, iggy.HeaderKind.BOOL, iggy.HeaderKind.INT64])
    values = {
        "raw": chance.randbytes(chance.randrange(1, 9)),
        "string": "v" * chance.randrange(1, 9),
        "bool": chance.random() < 0.5,
        "int64": chance.randrange(-5, 5),
    }
    return iggy.Header.of(values[str(kind)], kind)


def _headers(chance, layout):
    headers = {f"k{number}": _header(chance) for number in range(chance.choice([0, 0, 0, 1, 3]))}
    if headers and iggy.LAYOUTS[layout].typed_keys:
        headers[iggy.HeaderKey.of(chance.randrange(9))] = _header(chance)
    return headers


def messages(chance, layout, count, first=0, size=60):
    """Return messages of a layout with increasing offsets; some payloads are empty, and some contain only zeros."""
    made, offset, time = [], first, 1_785_000_000_000_000
    for _ in range(count):
        payload = chance.choice([chance.randbytes(chance.randrange(1, size)), bytes(chance.randrange(1, size)), b""])
        made.append(
            iggy.Message.new(
                payload,
                id=chance.choice([chance.getrandbits(128), 0, 7, UUID(int=chance.getrandbits(128), version=4)]),
                offset=offset,
                timestamp=time,
                state=chance.choice(list(msgid.MessageState)),
                headers=_headers(chance, layout),
                origin_timestamp=time - chance.randrange(1000),
                layout=layout,
            )
        )
        offset += chance.choice([1, 1, 1, 3])
        time += chance.choice([0, 0, 5])
    return made


def contents(messages):
    """Return messages without their checksums, which in ``batch256`` depend on the position in the batch."""
    return [replace(message, checksum=0) for message in messages]


def mutated(chance, raw):
    """Return bytes after a random change: changed, cut or inserted bytes, or lengths that often break readers."""
    raw = bytearray(raw)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(raw))
        match chance.randrange(5):
            case 0:
                raw[place] = chance.randrange(256)
            case 1:
                del raw[place:]
                raw += b"\0"
            case 2:
                raw[place:place] = chance.randbytes(3)
            case 3:
                huge = [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80"]
                raw[place : place + 4] = chance.choice(huge)
            case 4:
                raw[place] ^= 1 << chance.randrange(8)
    return bytes(raw)
