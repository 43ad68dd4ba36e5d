"""The bounded facts that an audit collects from a table, before they become a report.

DuckDB and Spark compute the facts by the same statements. `msgid.audit.findings` makes findings of the facts by the
rules of the caller, and `msgid.audit.report` the report.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.audit.definitions import MAX_ROWS, MAX_SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from msgid.audit.definitions import Severity

__all__ = ["Finding", "Gap"]

NAMED: Final = 3
"""The most checks of one reason, and the most ranges to re-read, that a report names in a line."""


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


class Range(NamedTuple):
    """Messages of one fault whose offsets follow each other; ``id`` is the ID of the first."""

    fault: str
    scope: str
    first: int | None
    last: int | None
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    id: str | None


LISTS: Final[dict[str, type[Any]]] = {
    "findings": Finding, "differences": Difference, "gaps": Gap, "logs": LogRow, "generators": GeneratorRow,
    "nodes": NodeRow, "kinds": KindRow, "not_checked": NotChecked,
}  # fmt: skip
"""The lists of a report, and their rows."""


# --- The facts before they are a report ---


class Counted(NamedTuple):
    """The count of one check in one scope, with an example: two numbers whose meaning the check knows, or text.

    The scope None counts further scopes, and ``x`` is their number.
    """

    check: str
    scope: str | None
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    x: int | None = None
    y: int | None = None
    text: str | None = None


class Facts(NamedTuple):
    """All facts of a table; each list is bounded, and the entries beyond its bound are counted."""

    rows: int
    kinds: list[KindRow]
    """Rows by kind and by origin, or by the reason why a value is malformed."""
    counts: list[Counted]
    """The largest counts of each check, and one of its other scopes."""
    gaps: list[Gap]
    logs: list[LogRow]
    generators: list[GeneratorRow]
    nodes: list[NodeRow]
    lengths: dict[str, int]
    """The number of all rows of each list."""
    unplaced: int
    """Rows without a source or a valid offset, if the table has offsets."""
    untimed: int
    """Rows without a valid timestamp, if the table has timestamps."""
    unlanded: int
    """Rows without a valid landing time, if the table has landing times."""
    columns: dict[str, bool]
    """Which of ID, offset, timestamp, landed, content and parent were given."""
    holes: int
    """Gaps that are too short to be findings."""


NOTHING: Final = Facts(0, [], [], [], [], [], [], {}, 0, 0, 0, {}, 0)
_ORDERS: Final[dict[str, Callable[[Any], Any]]] = {
    "gaps": lambda gap: (-gap.count, gap.kind, gap.scope, gap.first),
    "logs": lambda log: (-(log.missing + log.duplicates + log.conflicts + log.late), -log.rows, log.source),
    "generators": lambda run: (-run.missing, -run.ids, run.node, run.pid, run.run),
    "nodes": lambda node: (-node.generators, node.node),
}
"""The order of each list that is cut to the largest."""


def part_of(counted: Iterable[Counted], lengths: dict[str, int] | None = None, **lists: Any) -> Facts:
    """Return facts with some counts and lists; ``lengths`` are those of lists that are cut."""
    counts = [one for one in counted if one.count]
    lengths = {name: len(rows) for name, rows in lists.items()} | (lengths or {})
    return NOTHING._replace(counts=counts, lengths=lengths, **lists)


def merged(parts: Sequence[Facts], max_gaps: int) -> Facts:
    """Return the facts of a table from those of its parts, which merge in any order.

    A log, a node and an ID are in one part. Counts of the whole table are in several, and are added. The lists are cut
    to their limits, the largest first, and the rest is counted.

    Args:
        parts: At least one part.
        max_gaps: Number of ranges to list.
    """
    kinds: Counter[tuple[str, str | None]] = Counter()
    counts: dict[tuple[str, str | None], Counted] = {}

    def add(one: Counted) -> None:
        before = counts.get((one.check, one.scope))
        counts[one.check, one.scope] = one if before is None else _added(one, before)

    for part in parts:
        for kind, origin, n in part.kinds:
            kinds[kind, origin] += n
        for one in part.counts:
            add(one)
    largest = Counter[str]()
    for one in sorted(counts.values(), key=lambda one: (-one.count, one.scope or "")):
        largest[one.check] += one.scope is not None
        if one.scope is not None and largest[one.check] > MAX_SCOPES:
            del counts[one.check, one.scope]
            add(Counted(one.check, None, one.count, 1))
    joined: dict[str, Any] = {}
    for name, order in _ORDERS.items():
        rows = sorted(chain.from_iterable(getattr(part, name) for part in parts), key=order)
        joined[name] = rows[: max_gaps if name == "gaps" else MAX_ROWS]
    for name in ("rows", "unplaced", "untimed", "unlanded", "holes"):
        joined[name] = sum(getattr(part, name) for part in parts)
    return NOTHING._replace(
        kinds=sorted((KindRow(*key, n) for key, n in kinds.items()), key=lambda one: (-one[2], one[0], one[1] or "")),
        counts=sorted(counts.values(), key=lambda one: (one.check, -one.count, one.scope or "")),
        columns={name: given for part in parts for name, given in part.columns.items()},
        lengths={name: sum(part.lengths.get(name, 0) for part in parts) for name in _ORDERS},
        **joined,
    )


def _added(one: Counted, other: Counted) -> Counted:
    """Return two counts of one check and scope as one; the example is the text that sorts first."""
    text = min((text for text in (one.text, other.text) if text is not None), default=None)
    x = one.x if one.scope is not None else (one.x or 0) + (other.x or 0)
    return one._replace(count=one.count + other.count, x=x, text=text)


def ranges(differences: Iterable[Difference]) -> list[Range]:
    """Return the messages in which two sides differ as ranges; one without an offset is a range of its own."""
    joined: list[Range] = []
    for fault, scope, offset, id in differences:
        before = joined[-1] if joined else None
        if before and offset is not None and before[:2] == (fault, scope) and before.last == offset - 1:
            joined[-1] = before._replace(last=offset, count=before.count + 1)
        else:
            joined.append(Range(fault, scope, offset, offset, 1, id))
    return joined


def plural(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> plural(1, "block"), plural(2_000, "block"), plural(0, "block")
    ('1 block', '2,000 blocks', '0 blocks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def span(first: int, last: int) -> str:
    """Return a range as text."""
    return f"{first}" if first == last else f"{first} to {last}"


def unchecked(not_checked: list[NotChecked], most: int = NAMED) -> list[str]:
    """Return the checks that were not made, by their reason; one name stands for more than the given number."""
    by_reason: dict[str, list[str]] = {}
    for check, reason in not_checked:
        by_reason.setdefault(reason, []).append(check)
    return [
        f"{', '.join(checks) if len(checks) <= most else f'{checks[0]} and {len(checks) - 1} others'} ({reason})"
        for reason, checks in by_reason.items()
    ]
