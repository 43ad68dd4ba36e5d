"""The bounded facts that an audit collects from a table, before they become a report.

NumPy and Spark compute the same facts in different ways. `msgid.audit.report` makes the report of them.
"""

from __future__ import annotations

from typing import NamedTuple


class Counted(NamedTuple):
    """The count of one check in one scope, with an example: two numbers whose meaning the check knows, or text."""

    check: str
    scope: str
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    x: int | None = None
    y: int | None = None
    text: str | None = None


class GapFact(NamedTuple):
    """A range of missing offsets or sequence numbers, both ends included."""

    kind: str
    scope: str
    first: int
    last: int


class LogFact(NamedTuple):
    """One log. Times are microseconds since 1970, or None."""

    source: str
    rows: int
    first_offset: int
    last_offset: int
    first_time: int | None
    last_time: int | None
    missing: int
    duplicates: int
    conflicts: int
    late: int


class RunFact(NamedTuple):
    """One run of a generator. Times are Unix seconds."""

    node: int
    pid: int
    run: int
    ids: int
    first_time: int
    last_time: int
    first_sequence: int
    last_sequence: int
    missing: int


class NodeFact(NamedTuple):
    """One node: its IDs, its generators at the same time, and whether two runs of one pid overlap."""

    node: int
    ids: int
    generators: int
    overlapping: bool


class RateFact(NamedTuple):
    """The IDs of a generator in one interval that begins at a Unix second and takes ``width`` seconds."""

    node: int
    pid: int
    start: int
    width: int
    ids: int


class Facts(NamedTuple):
    """All facts of a table; each list is bounded, and the totals count everything."""

    rows: int
    kinds: list[tuple[str, str | None, int]]
    """Rows by kind and by origin, or by the reason why a value is malformed."""
    found: list[Counted]
    """The largest counts of each check."""
    totals: dict[str, tuple[int, int]]
    """For each check its count in all scopes, and the number of scopes."""
    gaps: list[GapFact]
    gap_total: int
    logs: list[LogFact]
    log_total: int
    runs: list[RunFact]
    run_total: int
    nodes: list[NodeFact]
    node_total: int
    rates: list[RateFact]
    unplaced: int
    """Rows without a source or a valid offset, if the table has offsets."""
    columns: dict[str, bool]
    """Which of offset, timestamp, landed, content and parent were given."""
