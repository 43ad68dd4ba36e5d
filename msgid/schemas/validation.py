"""Check a message's payload against its schema, by the policy of its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, get_args

from msgid._validate import quote
from msgid.errors import InvalidMessage
from msgid.schemas._errors import InvalidSchema
from msgid.schemas._validators import validator
from msgid.schemas.framing import Framing, checked_framing, unframe

if TYPE_CHECKING:
    from msgid.schemas.registry import Schema

__all__ = ["Policy", "SchemaSource", "Verdict", "check", "checked_policy"]

Policy = Literal["none", "warn", "enforce"]
Outcome = Literal["accept", "warn", "reject"]


class SchemaSource(Protocol):
    """Schemas by ID: a `SchemaRegistry`, or the result of `from_lookup` or `from_confluent`."""

    def get(self, id: int, /) -> Schema | None:
        """Return the schema of an ID, or None if the ID is unknown."""


class Verdict(NamedTuple):
    """The outcome of a check, and the reason unless the message is accepted."""

    verdict: Outcome
    reason: str | None = None


def check(
    payload: bytes,
    registry: SchemaSource,
    subject: str | None,
    schema_id: int | None,
    schema_version: int | None = None,
    *,
    policy: Policy,
    framing: Framing = "none",
) -> Verdict:
    """Check a message against its schema. No payload makes the function raise.

    JSON must be UTF-8 with finite numbers, nested at most 128 levels. An Avro payload may nest 128 levels and hold
    100,000 values that take no bytes, and it must end where its value ends.

    Args:
        payload: Payload of the message.
        registry: Schemas by ID.
        subject: Subject that the schema must belong to. A source that does not know subjects does not compare it.
        schema_id: Schema ID that the message names, or None.
        schema_version: Schema version that the message names, or None.
        policy: ``none`` accepts every message; ``enforce`` rejects a message without a schema that it fits; ``warn``
            passes such a message and adds the reason.
        framing: ``confluent`` if the payload begins with a zero byte and the schema ID (u32, big-endian). An ID in
            ``schema_id`` must then be the same.

    Returns:
        A verdict.

    Raises:
        ValueError: if the policy or the framing is unknown.
        Exception: if a lookup of the schema fails for another reason than an unknown ID. A registry that cannot be
            reached is not the message's fault.

    >>> from msgid.schemas import SchemaRegistry, frame
    >>> registry = SchemaRegistry()
    >>> check(b"", registry, "events", None, policy="warn")
    Verdict(verdict='warn', reason='no schema')
    >>> schema = registry.register("events", '"int"', "avro")
    >>> check(frame(schema.id, bytes([2])), registry, "events", None, policy="enforce", framing="confluent")
    Verdict(verdict='accept', reason=None)
    """
    checked_framing(framing)
    if checked_policy(policy) == "none":
        return ACCEPT
    reason = _problem(payload, registry, subject, schema_id, schema_version, framing)
    return ACCEPT if reason is None else Verdict("warn" if policy == "warn" else "reject", reason)


ACCEPT: Final = Verdict("accept")


def checked_policy(policy: Policy) -> Policy:
    """Return a policy if it is one.

    Raises:
        ValueError: if it is not.
    """
    if policy not in get_args(Policy):
        raise ValueError(f"policy must be one of {', '.join(get_args(Policy))}, not {quote(policy)}")
    return policy


def _problem(
    payload: bytes,
    registry: SchemaSource,
    subject: str | None,
    schema_id: int | None,
    schema_version: int | None,
    framing: Framing,
) -> str | None:
    body = payload
    if framing == "confluent":
        try:
            framed, body = unframe(payload)
        except InvalidMessage as error:
            return f"payload {quote(payload)}: {error.reason}"
        if schema_id is not None and schema_id != framed:
            return f"schema {framed} in the payload's framing, not {schema_id}"
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
        return f"schema {schema_id} is of the subject {quote(schema.subject)}, not {quote(subject)}"
    if schema_version is not None and schema.version is not None and schema_version != schema.version:
        return f"schema {schema_id} is version {schema.version} of {quote(schema.subject)}, not {schema_version}"
    try:
        problem = validator(schema.kind, schema.text)(body)
    except InvalidSchema as error:  # of a registry that does not check its schemas
        return f"schema {schema_id}: {error}"
    return None if problem is None else f"payload {quote(body)}: {problem}"
