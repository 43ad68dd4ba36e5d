"""The rows of the lists of an audit's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from msgid.audit.definitions import Severity


class Finding(NamedTuple):
    """A fault that the table shows.

    Attributes:
        check: Name of the check, one of `msgid.audit.CHECKS`.
        severity: ``error``, ``warning`` or ``info``.
        scope: A source, a generator ``mac/pid``, a node, or ``table``.
        count: Number of messages, IDs or sequence numbers.
        example: An ID, an offset or a range.
        meaning: The meaning of the finding and its usual cause.
    """

    check: str
    severity: Severity
    scope: str
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    example: str | None
    meaning: str


class Gap(NamedTuple):
    """A range of missing offsets or sequence numbers; ``first`` and ``last`` are both missing."""

    kind: str
    scope: str
    first: int
    last: int
    count: int  # type: ignore[assignment]  # a tuple has a method of this name


class LogRow(NamedTuple):
    """One log: its rows, and the number of its faults."""

    source: str
    rows: int
    first_offset: int
    last_offset: int
    first_time: datetime | None
    last_time: datetime | None
    missing: int
    duplicates: int
    conflicts: int
    late: int


class GeneratorRow(NamedTuple):
    """One run of a generator; ``run`` counts the runs of its node and pid from 1."""

    node: str
    pid: int
    run: int
    ids: int
    first_time: datetime
    last_time: datetime
    first_sequence: int
    last_sequence: int
    missing: int


class NodeRow(NamedTuple):
    """One node: its origin, its generators at the same time, and why it is shared, or None."""

    node: str
    origin: str
    generators: int
    shared: str | None


class KindRow(NamedTuple):
    """The rows of a kind and origin; of the kind ``malformed``, the origin is the reason.

    The origin of a version-0 ID is None, or ``may be a UUID`` by its bits: see `msgid.ClientUniqueId.may_be_uuid`.
    """

    kind: str
    origin: str | None
    rows: int


class Difference(NamedTuple):
    """A message in which two sides differ: ``lost``, ``changed``, ``duplicate`` or ``extra`` in the table.

    Attributes:
        fault: ``lost`` for a message that was sent and is not in the table, ``extra`` for one that was not sent.
        scope: The log, or ``table``.
        offset: The offset; None if messages are matched by their IDs.
        id: The ID, or None.
    """

    fault: str
    scope: str
    offset: int | None
    id: str | None


class NotChecked(NamedTuple):
    """A check that was not made, and the reason."""

    check: str
    reason: str
