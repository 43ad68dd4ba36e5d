"""Compare the messages of two sides: the rule of each fault, and the report of the messages that differ.

Python and Spark find the messages that only one side has, that differ, or that the table repeats. Both group them by
fault and log, and `report_of_groups` makes the report.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from msgid._moments import UNIX_EPOCH
from msgid.audit._spans import starts_of
from msgid.audit.definitions import FAULTS
from msgid.audit.facts import Counted
from msgid.audit.report import comparison_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from msgid.audit.facts import Difference
    from msgid.audit.report import Report

NAMES: Final = tuple(FAULTS)
LOST, CHANGED, DUPLICATE, EXTRA = range(len(NAMES))
"""The places of the faults in `FAULTS`."""


class Group(NamedTuple):
    """The messages of one fault in one log: the first of them, and the least time of a sent row in microseconds.

    ``number`` is what the report counts: of a repeated message, the additional rows. ``untimed`` counts the messages
    without a time.
    """

    fault: int
    scope: str
    number: int
    messages: int
    offset: int | None
    id: str | None
    time: int | None
    untimed: int


class SideCounts(NamedTuple):
    """The rows of a side, its last time in microseconds, and the rows without a position or an ID, with their times."""

    rows: int
    last: int | None
    lacking: int
    first_lacking: int | None
    untimed_lacking: int


def report_of_groups(
    groups: Sequence[Group],
    listed: list[Difference],
    sides: tuple[SideCounts, SideCounts],
    not_checked: dict[str, str],
    by_position: bool,
) -> Report:
    """Return the report of the messages in which two sides differ.

    Args:
        groups: All groups of such messages.
        listed: The messages that the report lists.
        sides: The counts of sent and of the table.
        not_checked: The checks that were not made, with the reasons.
        by_position: Whether messages are matched by their positions, or by their IDs.
    """
    checks = list(FAULTS.values())
    if not by_position:
        checks[DUPLICATE] = "duplicate_ids"
    counts = [Counted(checks[one.fault], one.scope, one.number, one.offset, one.offset, one.id) for one in groups]
    sent, lost = sides[0], [one for one in groups if one.fault == LOST]
    times = [time for time in (sent.first_lacking, *(one.time for one in lost)) if time is not None]
    is_known = not sent.untimed_lacking and not any(one.untimed for one in lost)
    return comparison_report(
        counts, (sent.rows, sides[1].rows), listed, sum(one.messages for one in groups),
        [side.lacking for side in sides], not_checked, moment(min(times, default=sent.last) if is_known else None),
        by_position,
    )  # fmt: skip


def moment(micros: int | None) -> Any:
    """Return a moment of microseconds since 1970; None for None."""
    return None if micros is None else UNIX_EPOCH + timedelta(microseconds=micros)


def differing(
    message: NDArray[np.int64], content: NDArray[np.int64] | None, landed: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each message its fault, or -1, and the number of its repeated rows, or 1.

    Args:
        message: The number of the message of each row of both sides.
        content: A number per row that is equal if and only if the contents are; None if they are not compared.
        landed: Which rows are of the table.
    """
    contents = np.zeros(len(landed), np.int64) if content is None else content
    order = np.lexsort((contents, message))
    of_content = np.cumsum(starts_of(message[order], contents[order])) - 1
    of_message = np.zeros(int(of_content.max(initial=-1)) + 1, np.int64)
    of_message[of_content] = message[order]
    held = np.bincount(of_content, landed[order], len(of_message))
    is_one_side = (held == 0) | (held == np.bincount(of_content, minlength=len(of_message)))
    number = int(message.max(initial=-1)) + 1
    in_table = np.bincount(message, landed, number)
    sent = np.bincount(message, ~landed, number)
    is_changed = np.bincount(of_message, is_one_side, number) > 0
    cases = [in_table == 0, sent == 0, is_changed, in_table > sent]
    fault = np.select(cases, [LOST, EXTRA, CHANGED, DUPLICATE], -1)
    return fault, np.where(fault == DUPLICATE, in_table - sent, 1).astype(np.int64)
