"""The layout of an ID: the only definition of its bytes, fields and kinds.

Version 1 is 17 bytes, big-endian::

    01 56F7E71C361B 21BC 024CCDBE 00000000
    |  |            |    |        `- sequence  bytes 13-16, one counter for the life of a generator
    |  |            |    `---------- seconds   bytes 9-12, since 2021-01-01T00:00:00Z
    |  |            `--------------- pid       bytes 7-8, low 16 bits of the process ID
    |  `---------------------------- node      bytes 1-6, a MAC address or a synthetic node
    `------------------------------- version   byte 0

All code that reads or writes an ID, in Python and on Spark, imports these constants: positions, widths, epoch, origins
and kinds. `v0_kind` is the rule that distinguishes the two version-0 kinds.

RocketMQ defines the layouts: version 1 in its message-identifier document, version 0 in ``MessageDecoder`` and
``MessageClientIDSetter``. This library defines the synthetic nodes, within RFC 9562 section 6.10.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple

# --- version 1 ---------------------------------------------------------------------------------------------------

VERSION_0: Final = 0x00
"""The first byte of a canonical version-0 ID."""
VERSION_1: Final = 0x01
"""The first byte of a version-1 ID."""


class Field(NamedTuple):
    """One field of an ID: its name and its half-open range of bytes."""

    name: str
    start: int
    stop: int

    @property
    def width(self) -> int:
        """The number of bytes of the field."""
        return self.stop - self.start


def _fields(**widths: int) -> dict[str, Field]:
    fields, start = {}, 0
    for name, width in widths.items():
        fields[name] = Field(name, start, start + width)
        start += width
    return fields


FIELDS: Final = _fields(version=1, node=6, pid=2, seconds=4, sequence=4)
"""The fields of a version-1 ID by name, in their order."""

ID_LENGTH: Final = 17
"""The number of bytes of a version-1 ID."""
ID_DIGITS: Final = 2 * ID_LENGTH
"""The number of hex digits of a version-1 ID."""
BODY_LENGTH: Final = 16
"""The number of bytes after the version byte; a UUID has the same length."""
PREFIX_LENGTH: Final = 9
"""The number of bytes of version, node and pid, which stay the same for the life of a generator."""

EPOCH_UNIX: Final = 1_609_459_200
"""The epoch of ``seconds``, 2021-01-01T00:00:00Z, in Unix seconds."""

NODE_MAX: Final = (1 << 48) - 1
"""The largest node."""
PID_MAX: Final = (1 << 16) - 1
"""The largest pid in an ID; larger process IDs lose their high bits."""
UINT32_SPAN: Final = 1 << 32
"""The number of different sequence numbers, and of different seconds; after the last value comes 0."""
UINT32_MASK: Final = (1 << 32) - 1
"""The largest value of ``seconds`` and ``sequence``."""

HEX_DIGITS: Final = "0123456789ABCDEF"
"""The digits of an ID's text. Readers accept lower case too."""

_PACK: Final = struct.Struct(">BHIHII")  # the node as its high 16 and low 32 bits


def pack(node: int, pid: int, seconds: int, sequence: int) -> bytes:
    """Encode the fields of a version-1 ID as its 17 bytes.

    The caller checks the ranges: ``node`` below 2**48, ``pid`` below 2**16, ``seconds`` and ``sequence`` below 2**32.

    >>> pack(0x56F7E71C361B, 8636, 38587838, 0).hex()
    '0156f7e71c361b21bc024ccdbe00000000'
    """
    return _PACK.pack(VERSION_1, node >> 32, node & UINT32_MASK, pid, seconds, sequence)


def unpack(raw: bytes) -> tuple[int, int, int, int]:
    """Decode the 17 bytes of a version-1 ID as ``(node, pid, seconds, sequence)``.

    >>> unpack(bytes.fromhex("0156F7E71C361B21BC024CCDBE00000000"))
    (95622734296603, 8636, 38587838, 0)
    """
    _, high, low, pid, seconds, sequence = _PACK.unpack(raw)
    return high << 32 | low, pid, seconds, sequence


def format_mac(node: int) -> str:
    """Return a 48-bit node as the text of a MAC address.

    >>> format_mac(0x56F7E71C361B)
    '56:f7:e7:1c:36:1b'
    """
    return node.to_bytes(FIELDS["node"].width, "big").hex(":")


def time_key(raw: bytes) -> bytes:
    """Return the 16 bytes of a version-1 ID in an order that sorts by (seconds, sequence, node, pid).

    >>> time_key(bytes.fromhex("0156F7E71C361B21BC024CCDBE00000007")).hex()
    '024ccdbe0000000756f7e71c361b21bc'
    """
    pid_end = FIELDS["pid"].stop
    return raw[pid_end:] + raw[FIELDS["node"].start : pid_end]


# --- origins: how a node was chosen ------------------------------------------------------------------------------

Origin = Literal["mac", "random", "assigned", "position", "derived"]
"""How the node of an ID was chosen: a network card, random bits, or one of the functions that make IDs from values."""

SYNTHETIC_BITS: Final = 44
"""The number of free bits of a synthetic node: 48 minus the four bits that mark its origin."""

ORIGINS: Final[dict[Origin, int]] = {"random": 0b0011, "assigned": 0b0111, "position": 0b1011, "derived": 0b1111}
"""The low four bits of a synthetic node's first byte, by origin.

Bit 0 marks multicast, bit 1 marks a locally administered address, and two bits hold the origin. The origin ``mac`` is
not in this table: a node of a network card has a clear multicast bit.
"""

_MULTICAST: Final = 0b0001
_LOCAL: Final = 0b0010
_ORIGIN_SHIFT: Final = 40
_ORIGIN_OF_BITS: Final[dict[int, Origin]] = {bits: origin for origin, bits in ORIGINS.items()}


def synthetic_node(origin: Origin, bits: int) -> int:
    """Return a 48-bit node that holds an origin and 44 ``bits``; no network card has such an address.

    The first four of the 44 bits become the high four bits of the node's first byte.

    >>> f"{synthetic_node('derived', 0xABCDEF01234):012x}"
    'afbcdef01234'
    """
    low = (1 << _ORIGIN_SHIFT) - 1
    return (bits >> _ORIGIN_SHIFT) << 44 | ORIGINS[origin] << _ORIGIN_SHIFT | bits & low


def origin_of(node: int) -> Origin:
    """Return the origin that a node declares. The origin is not authenticated.

    A node with only the multicast bit set is also ``random``, because RFC 9562 requires only that bit.

    >>> origin_of(0x56F7E71C361B), origin_of(0x0F0000000000)
    ('mac', 'derived')
    """
    first = node >> _ORIGIN_SHIFT
    if not first & _MULTICAST:
        return "mac"
    if not first & _LOCAL:
        return "random"
    return _ORIGIN_OF_BITS[first & 0b1111]


# --- version 0 ---------------------------------------------------------------------------------------------------

IPV4_LENGTH: Final = 4
"""The number of bytes of an IPv4 address at the start of a version-0 ID."""
IPV6_LENGTH: Final = 16
"""The number of bytes of an IPv6 address at the start of a version-0 ID."""

# 12 bytes follow the address: int32 and int64 of a broker offset; uint16, uint32, uint32 and uint16 of a client ID.
TAIL_LENGTH: Final = 12
"""The number of bytes after the address of a version-0 ID."""
BROKER_FIELDS: Final = _fields(port=4, offset=8)
"""The fields after the address of a broker-offset ID by name, in their order."""
BROKER_OFFSET: Final = struct.Struct(">iq")
"""The structure of these fields: port and offset, big-endian."""
CLIENT_FIELDS: Final = _fields(pid=2, loader_hash=4, elapsed_ms=4, counter=2)
"""The fields after the address of a client ID by name, in their order."""
CLIENT_UNIQUE: Final = struct.Struct(">HIIH")
"""The structure of these fields: pid, loader hash, elapsed milliseconds and counter, big-endian."""

CLOCKS_DIFFER_S: Final = 86_400
"""Seconds by which a version-0 client ID may be later than the moment near which it was seen, because clocks differ."""

V0_LENGTHS: Final = (IPV4_LENGTH + TAIL_LENGTH, IPV6_LENGTH + TAIL_LENGTH)
"""The numbers of bytes of version-0 IDs, with an IPv4 and with an IPv6 address."""
CANONICAL_V0_PREFIX: Final = "00"
"""The version byte, as text, at the start of a canonical version-0 ID."""

PORT_MAX: Final = 65_535
"""The largest port of a broker."""
OFFSET_MAX: Final = (1 << 48) - 1
"""The largest offset in a broker-offset ID and in `msgid.position_id`."""
AMBIGUOUS_OFFSET_MIN: Final = 1 << 40
"""From this offset on, a version-0 ID that ends in a zero byte is ambiguous; see `v0_kind`."""

Kind = Literal["v1", "v0-broker-offset", "v0-client-unique", "v0-ambiguous"]
"""The kind of an ID, as ``id.kind`` and `spark_ext.id_kind` name it."""
KIND_V1: Final = "v1"
"""The kind of a version-1 ID."""
KIND_BROKER_OFFSET: Final = "v0-broker-offset"
"""The kind of a version-0 ID that a broker made."""
KIND_CLIENT_UNIQUE: Final = "v0-client-unique"
"""The kind of a version-0 ID that a client made."""
KIND_AMBIGUOUS: Final = "v0-ambiguous"
"""The kind of a version-0 ID that a broker or a client can have made; see `v0_kind`."""
KINDS: Final[tuple[Kind, ...]] = (KIND_V1, KIND_BROKER_OFFSET, KIND_CLIENT_UNIQUE, KIND_AMBIGUOUS)
"""All kinds of IDs."""

_UUID_LENGTH, _UUID_VERSION, _UUID_VARIANT = 16, 4, 0b10
"""The bytes of a UUID, the version of a random one, and the variant of RFC 9562."""


def v0_kind(port: int, offset: int) -> Kind:
    """Return the kind of a version-0 ID, from its last 12 bytes read as a broker offset.

    ``port`` and ``offset`` are the signed int32 and int64 after the address. The two kinds have the same length and no
    marker, so this rule is a heuristic. An ID is a broker offset if the port is valid and the offset is below 2**48.
    An offset of at least 2**40 that ends in a zero byte is ambiguous: RocketMQ's C++ client 1.2.0 to 1.2.3 wrote the
    fields of client IDs in little-endian order, which produces such offsets.

    >>> v0_kind(10911, 123456), v0_kind(6324, -1), v0_kind(13950, 56753002317824)
    ('v0-broker-offset', 'v0-client-unique', 'v0-ambiguous')
    """
    if not (1 <= port <= PORT_MAX and 0 <= offset <= OFFSET_MAX):
        return KIND_CLIENT_UNIQUE
    if offset >= AMBIGUOUS_OFFSET_MIN and offset & 0xFF == 0:
        return KIND_AMBIGUOUS
    return KIND_BROKER_OFFSET


def may_be_uuid(raw: bytes) -> bool:
    """Return whether 16 bytes have the version and the variant of a random UUID: one in 64 others have them, too.

    >>> may_be_uuid(bytes.fromhex("74b158caddb3498fb0a99eec1c6197ae")), may_be_uuid(bytes(16))
    (True, False)
    """
    return len(raw) == _UUID_LENGTH and raw[6] >> 4 == _UUID_VERSION and raw[8] >> 6 == _UUID_VARIANT
