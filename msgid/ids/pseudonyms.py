"""Pseudonyms of IDs: the address of the machine becomes a keyed hash, and all other fields stay."""

from __future__ import annotations

from typing import Final

from msgid import layout
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import AnyId, parse
from msgid.shared.validate import quote

_SHORTEST_KEY: Final = 16
"""The least number of bytes of a key: with fewer, all keys can be tried."""


def pseudonymize(id: AnyId | str | bytes, key: bytes) -> AnyId:
    """Return an ID whose node, or whose address in version 0, is a keyed hash of it. All other fields stay the same.

    Equal IDs stay equal, and IDs of one node have one pseudonym, so an audit of pseudonyms gives the same counts.
    Without the key, nobody can find the address by trying all addresses. A node that is not of a network card stays as
    it is. A pseudonym of a node has the form of a random node.

    Args:
        id: An ID as `parse` accepts it.
        key: 16 bytes or more, which are secret; the same for all IDs that are compared.

    Raises:
        InvalidMessageId: if ``id`` is not an ID.
        TypeError: if ``key`` is not bytes.
        ValueError: if ``key`` has fewer than 16 bytes.

    >>> first, second = (pseudonymize(id, b"sixteen or more!") for id in
    ...                  ("0156F7E71C361B21BC024CCDBE00000000", "0156f7e71c361b21bc024ccdbe00000001"))
    >>> first.node == second.node != 0x56F7E71C361B, first.pid, first.seconds, second.sequence, first.origin
    (True, 8636, 38587838, 1, 'random')
    """
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes, got {quote(key)}")
    if len(key) < _SHORTEST_KEY:
        raise ValueError(f"key must have {_SHORTEST_KEY} bytes or more, got {len(key)}")
    known = id if isinstance(id, AnyId) else parse(id)  # which may take one of the two kinds of version 0 for the other
    raw = bytes(known)
    if isinstance(known, MessageId):
        if known.origin != "mac":
            return known
        field = layout.FIELDS["node"]
        node = layout.synthetic_node(
            "random", int.from_bytes(_hash(raw[field.start : field.stop], key, field.width), "big") >> 4
        )
        return MessageId._of(raw[: field.start] + node.to_bytes(field.width, "big") + raw[field.stop :])
    address, rest = raw[: -layout.TAIL_LENGTH], raw[-layout.TAIL_LENGTH :]
    return type(known)._of(_hash(address, key, len(address)) + rest)


def _hash(address: bytes, key: bytes, length: int) -> bytes:
    import hashlib
    import hmac

    return hmac.new(key, address, hashlib.sha256).digest()[:length]
