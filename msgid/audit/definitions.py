"""The definitions of an audit, written once: the checks, which are the table `checks.tsv`, and the limits.

Python and Spark take them from here, so that both find the same faults in the same rows.

- A **message** of a log is a pair of source and offset. Several rows may hold one message.
- A **generator** is a pair of node and process id. Only IDs of the origins in `COUNTED` carry a sequence, and those of
  which `is_generator` says so.
- A **run** of a generator is the life of one process: its sequence only grows. `PART_STEP`, `RUN_STEP` and
  `split_pieces` say where a run ends. `msgid.audit.runs` finds runs that several processes share.
- IDs are compared by value: neither the case of the digits nor the version byte of a version-0 ID matters.
"""

from __future__ import annotations

import pkgutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgid.layout import Origin

__all__ = ["Severity"]

Format = Literal["csv", "tsv", "json", "parquet", "arrow", "text"]
"""The format of a file that an audit reads."""
FORMATS: Final[tuple[Format, ...]] = ("csv", "tsv", "json", "parquet", "arrow", "text")

Severity = Literal["error", "warning", "info"]
"""How severe a finding is: ``error`` for a lost, repeated or changed message."""
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
TABLE: Final = "table"
"""The scope of a finding about the whole table."""

FAULTS: Final = {
    "lost": "lost_messages",
    "changed": "changed_messages",
    "duplicate": "duplicate_messages",
    "extra": "extra_messages",
}
"""The check of each fault of a comparison, in the order in which a report lists the messages."""

COUNTED: Final[tuple[Origin, ...]] = ("mac", "random", "assigned")
"""The origins whose IDs carry a counter: a number that is missing was given to an ID that is not in the table."""

COUNTED_FROM_0: Final = 1 << 22
"""A first sequence number below this was counted up from 0. Of random ones below 2**31, one in 512 is."""

PART_STEP: Final = 1 << 12
"""A step of more sequence numbers than this is a loss only if the generator had the time to make as many IDs."""
RUN_STEP: Final = 1 << 20
"""A step of more sequence numbers than this between neighbours is a new run, not a loss."""
FIRST_NUMBERS: Final = 256
"""A process whose lowest sequence number is below this counts from 0."""
MAX_RUNS: Final = 1_000
"""A generator that repeats its numbers in more runs than this resets its sequence; each piece is a run."""
CLOCK_JUMP: Final = timedelta(days=1)
"""Default of the time between neighbours of a run beyond which the clock has jumped forward."""
AHEAD_S: Final = 1
"""The seconds by which an ID may be ahead of its landing: RocketMQ's Java client for gRPC is up to one ahead."""
MAY_BE_UUID: Final = "may be a UUID"
"""The origin of version-0 IDs whose 16 bytes may be a UUID that was written without dashes."""

MAX_GAPS: Final = 10_000
"""Default number of ranges that a report lists; the findings count all."""
MAX_MESSAGES: Final = 10_000
"""Default number of messages that a comparison lists; the findings count all."""
MAX_ROWS: Final = 10_000
"""Number of logs, runs and nodes that a report lists."""
MAX_SCOPES: Final = 1_000
"""Number of findings of one check; one further finding counts the rest."""

NULL_KIND: Final = "null"
MALFORMED_KIND: Final = "malformed"
"""The kinds of values that are not IDs."""


def is_generator(is_derived: Any, pid: Any, lowest: Any, highest: Any) -> Any:
    """Return whether IDs of one node and pid are a generator's, though the node declares ``derived`` or ``position``.

    A random node of another program, such as that of Python's `uuid.getnode`, may declare any origin. Two derived IDs
    never have one node and pid. The pid of a position is 0, unless the log has more than 2**32 messages. Its offsets
    are then rarely just above a multiple of 2**32, where a process that counts from 0 begins.

    Args:
        is_derived: Whether the node declares ``derived``.
        pid: The pid.
        lowest: The lowest sequence number.
        highest: The highest sequence number. Each argument is a number, an array or a column of Spark.
    """
    return (highest > lowest) & (is_derived | (pid > 0) & (lowest < COUNTED_FROM_0))


class Check(NamedTuple):
    """A check.

    Attributes:
        severity: How severe its findings are.
        meaning: The meaning of a finding, and its usual cause.
        needs: The columns that the check needs; ``counter`` for IDs that carry one, and ``sent`` for a comparison.
        words: One error in words, the noun first.
        example: The example of a finding from its two numbers: ``x``, ``y``, ``y`` microseconds as ``seconds``, or the
            ``span`` of both. Empty if the example is a text.
    """

    severity: Severity
    meaning: str
    needs: tuple[str, ...] = ()
    words: str = ""
    example: str = ""


def _checks() -> dict[str, Check]:
    """Read the table of the checks beside this module."""
    data = pkgutil.get_data(__package__, "checks.tsv")  # a command imports it sooner than importlib.resources
    assert data is not None
    rows = (line.split("\t") for line in data.decode().splitlines()[1:])
    return {
        name: Check(cast("Severity", severity), meaning, tuple(needs.split()), words, example)
        for name, severity, needs, words, example, meaning in rows
    }


CHECKS: Final = _checks()
"""The checks by name, in the order of a report."""


Holes = Literal["markers", "committed", "compacted"]
"""Which offsets are missing without a loss."""
HOLES: Final[tuple[Holes, ...]] = ("markers", "committed", "compacted")


def check_names(argument: str, names: Iterable[str]) -> None:
    """Raise an error if a name is not that of a check."""
    for name in names:
        if name not in CHECKS:
            raise ValueError(f"{argument} must name checks, got {quote(name)}; the checks are {', '.join(CHECKS)}")


class Piece(NamedTuple):
    """A stretch of a generator's IDs, ordered by time, in which the sequence grows.

    Attributes:
        first: Its first second.
        used: The last second at which one of its sequence numbers was used before; -1 if none was.
        low: Its lowest sequence number.
        high: Its highest sequence number.
    """

    first: int
    used: int
    low: int
    high: int


def split_pieces(pieces: Iterable[Piece]) -> list[int]:
    """Return the number of the run of each piece, from 0.

    A generator that was restarted uses a sequence number again; one whose clock was set back does not. So a piece
    starts a new run if it repeats a number of the current run. It also does if it counts from about 0, and ends before
    the numbers of the current run begin: a process that was restarted and has not come that far.

    Args:
        pieces: The pieces, ordered by time.

    >>> times = [(0, -1), (60, -1), (100, 3), (200, 60)]
    >>> split_pieces(Piece(first, used, 500, 600) for first, used in times)
    [0, 0, 1, 1]
    >>> restarted = Piece(60, -1, 0, 90)
    >>> split_pieces([Piece(0, -1, 500, 600), restarted]), split_pieces([Piece(0, -1, 91, 600), restarted])
    ([0, 1], [0, 0])
    """
    runs: list[int] = []
    run, start, least = 0, None, 0
    for first, used, low, high in pieces:
        if start is None:
            start, least = first, low
        elif used >= start or (low < FIRST_NUMBERS and high + 1 < least):
            run, start, least = run + 1, first, low
        least = min(least, low)
        runs.append(run)
    return runs if run < MAX_RUNS else list(range(len(runs)))
