"""Check the payload of a message against its schema, by the policy of its topic."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, get_args

from msgid.errors import InvalidMessage
from msgid.schemas._errors import InvalidSchema
from msgid.schemas._validators import validator
from msgid.shared.validate import integer, one_of, quote

if TYPE_CHECKING:
    from msgid.schemas.registry import Schema

Policy = Literal["none", "warn", "enforce"]
"""The treatment of a message that does not fit its schema.

``none``: messages are not checked. ``warn``: the message is accepted with the reason. ``enforce``: it is rejected.
"""
Framing = Literal["none", "confluent"]
"""The bytes before a payload: nothing, or Confluent's zero byte and the ID of the schema."""

_HEAD: Final = struct.Struct(">BI")
_MAGIC: Final = 0

Outcome = Literal["accept", "warn", "reject"]


class SchemaSource(Protocol):
    """Schemas by ID: a `SchemaRegistry`, or the result of `from_lookup` or `from_confluent`."""

    def get(self, id: int, /) -> Schema | None:
        """Return the schema of an ID, or None if the ID is unknown."""


class Verdict(NamedTuple):
    """The result of a check, with the reason if the message is not accepted."""

    verdict: Outcome
    reason: str | None = None


def check_schema(
    payload: bytes | bytearray | memoryview | None,
    registry: SchemaSource,
    subject: str | None,
    schema_id: int | None,
    schema_version: int | None = None,
    *,
    policy: Policy,
    framing: Framing = "none",
) -> Verdict:
    """Check a message against its schema; a malformed payload gives a verdict and never an error.

    JSON must be UTF-8 with finite numbers and at most 128 levels of nesting. An Avro payload is valid if fastavro reads
    it, and it must end where its value ends. If the schema refers to itself, the payload can have 64 levels and 100,000
    values without bytes.

    Args:
        payload: Payload of the message. None, as in a tombstone, is a malformed payload.
        registry: Schemas by ID.
        subject: Subject to which the schema must belong. It is not compared if the source does not know subjects.
        schema_id: Schema ID in the message, or None.
        schema_version: Schema version in the message, or None.
        policy: ``none`` accepts every message. ``enforce`` rejects a message if its schema is missing or rejects it.
            ``warn`` lets such a message pass and adds the reason.
        framing: ``confluent`` if the payload begins with a zero byte and the schema ID (u32, big-endian). An ID in
            ``schema_id`` must then have the same value.

    Returns:
        The ``verdict``, with the ``reason`` if the message is not accepted.

    Raises:
        ValueError: if the policy or the framing is unknown.
        Exception: any error of the schema source except an unknown ID; for example if the registry is unreachable.

    >>> from msgid.schemas import SchemaRegistry, frame
    >>> registry = SchemaRegistry()
    >>> check_schema(b"", registry, "events", None, policy="warn")
    Verdict(verdict='warn', reason='no schema')
    >>> schema = registry.register("events", '"int"', "avro")
    >>> check_schema(frame(schema.id, bytes([2])), registry, "events", None, policy="enforce", framing="confluent")
    Verdict(verdict='accept', reason=None)
    """
    checked_framing(framing)
    if checked_policy(policy) == "none":
        return ACCEPT
    reason = _problem(payload, registry, subject, schema_id, schema_version, framing)
    return ACCEPT if reason is None else Verdict("warn" if policy == "warn" else "reject", reason)


ACCEPT: Final = Verdict("accept")


def checked_policy(policy: Policy) -> Policy:
    """Check the name of a policy and return it.

    Raises:
        ValueError: if the policy is unknown.
    """
    one_of("policy", policy, get_args(Policy))
    return policy


def _problem(
    payload: bytes | bytearray | memoryview | None,
    registry: SchemaSource,
    subject: str | None,
    schema_id: int | None,
    schema_version: int | None,
    framing: Framing,
) -> str | None:
    if not isinstance(payload, bytes | bytearray | memoryview):
        return f"payload must be bytes, got {quote(payload)}"
    body = payload = bytes(payload)
    if framing == "confluent":
        try:
            framed, body = unframe(payload)
        except InvalidMessage as error:
            return f"payload {quote(payload)}: {error.reason}"
        if schema_id is not None and schema_id != framed:
            return f"the schema ID in the payload's framing must be {schema_id}, got {framed}"
        schema_id = framed
    if schema_id is None:
        return "no schema"
    try:
        schema = registry.get(schema_id)
    except InvalidSchema as error:
        return f"schema {schema_id}: {error}"
    if schema is None:
        return f"unknown schema {schema_id}"
    if schema.subject is not None and schema.subject != subject:
        return f"schema {schema_id} must be of the subject {quote(subject)}, got {quote(schema.subject)}"
    if schema_version is not None and schema.version is not None and schema_version != schema.version:
        return f"schema {schema_id} of {quote(schema.subject)} must have version {schema_version}, got {schema.version}"
    try:
        problem = validator(schema.kind, schema.text)(body)
    except InvalidSchema as error:  # from a source that does not check its schemas
        return f"schema {schema_id}: {error}"
    return None if problem is None else f"payload {quote(body)}: {problem}"


def checked_framing(framing: Framing) -> Framing:
    """Check the name of a framing and return it.

    Raises:
        ValueError: if the framing is unknown.
    """
    one_of("framing", framing, get_args(Framing))
    return framing


def frame(schema_id: int, payload: bytes) -> bytes:
    r"""Return a payload in Confluent's framing.

    Raises:
        TypeError: if the ID is not an integer.
        ValueError: if the ID is not 0 to 4294967295.

    >>> frame(7, b"\x02")
    b'\x00\x00\x00\x00\x07\x02'
    """
    return _HEAD.pack(_MAGIC, integer("schema_id", schema_id, 0, (1 << 32) - 1)) + payload


def unframe(data: bytes) -> tuple[int, bytes]:
    r"""Return the schema ID and the payload of bytes in Confluent's framing.

    Raises:
        InvalidMessage: if there are fewer than 5 bytes, or the first byte is not zero.

    >>> unframe(b"\x00\x00\x00\x00\x07\x02")
    (7, b'\x02')
    """
    if len(data) < _HEAD.size:
        raise InvalidMessage(f"Confluent's framing takes {_HEAD.size} bytes, got {len(data)}", 0)
    magic, schema_id = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise InvalidMessage(f"Confluent's framing begins with a zero byte, got {magic}", 0)
    return schema_id, data[_HEAD.size :]
