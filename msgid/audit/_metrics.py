"""A report as OpenMetrics text, which Prometheus and others read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgid.audit._comparing import FAULTS, check_by
from msgid.audit.definitions import CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from msgid.audit._lists import Finding, NotChecked

_OF_TWO_SIDES: Final = (*FAULTS.values(), check_by(FAULTS["duplicate"], is_position=False), "uncompared_messages")
"""The checks of a comparison."""
_ONLY_OF_TWO_SIDES: Final = ("lost_messages", "changed_messages", "extra_messages", "uncompared_messages")


def metrics(
    findings: Sequence[Finding],
    not_checked: Sequence[NotChecked],
    rows: int,
    unplaced: int,
    sent: int | None,
    complete_until: datetime | None,
) -> str:
    """Return the metrics of a report, with the end mark of OpenMetrics; the arguments are attributes of the report."""
    found: Counter[tuple[str, str]] = Counter()
    for one in findings:
        found[one.check, one.severity] += one.count
    left_out = {one.check for one in not_checked}
    seen = {check for check, _ in found}
    made = _OF_TWO_SIDES if sent is not None else [check for check in CHECKS if check not in _ONLY_OF_TWO_SIDES]
    for check in made:
        if check not in left_out and check not in seen:
            found[check, CHECKS[check].severity] = 0
    order = list(CHECKS)
    messages = [
        (f'{{check="{check}",severity="{severity}"}}', number)
        for (check, severity), number in sorted(found.items(), key=lambda item: order.index(item[0][0]))
    ]
    lines = [
        *_gauge("msgid_audit_messages", "Messages, IDs or numbers that a check found.", messages),
        *_gauge("msgid_audit_rows", "Rows of the table.", [("", rows)]),
        *_gauge("msgid_audit_rows_without_place", "Rows without a source or a valid offset.", [("", unplaced)]),
    ]
    if sent is not None:
        lines += _gauge("msgid_audit_sent_rows", "Messages that were sent.", [("", sent)])
    if complete_until is not None:
        name, help = "msgid_audit_complete_until_seconds", "Unix time before which all sent messages have landed."
        lines += _gauge(name, help, [("", complete_until.timestamp())], unit="seconds")
    return "\n".join((*lines, "# EOF", ""))


def _gauge(name: str, help: str, values: Iterable[tuple[str, float]], unit: str | None = None) -> list[str]:
    head = [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {help}"]
    return head + [f"{name}{labels} {value}" for labels, value in values]
