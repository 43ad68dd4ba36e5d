"""The findings of a table: what its facts mean by the rules of the caller, and which checks were not made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.audit.definitions import CHECKS, FAULTS, MALFORMED_KIND, NULL_KIND, SEVERITIES, TABLE, Check
from msgid.audit.facts import Counted, Finding, NotChecked, plural, span
from msgid.audit.options import Rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from msgid.audit.facts import Facts

GAPS: Final = {"offset": "missing_offsets", "sequence": "missing_sequences"}
"""The check of each kind of gap."""
_TWO_READINGS: Final = (
    "Numbers are missing in a topic with transactions. An aborted transaction causes it, and so does a loss. A digest "
    "of the queue tells them apart."
)
_BACK_OR_SHARED: Final = (
    "Times of a generator go back while its numbers go on. In a compacted topic, most numbers are missing. So a clock "
    "that was set back, a restart, and two processes with one node and pid look alike."
)
_WITHOUT: Final = {
    "id": "without IDs", "counter": "no ID carries a counter", "offset": "without offsets",
    "content": "without content", "landed": "without a landing time", "timestamp": "without a timestamp",
    "parent": "without a parent",
}  # fmt: skip
"""Why a check is not made, by the column that it needs."""
WRONG_COLUMN: Final = (
    "Most values are not IDs. The wrong column or the wrong file usually causes it. An ID inside other text must be "
    "cut out first."
)
APART: Final = (
    "At least 9 of 10 compared messages are on one side alone. Sides that name their logs or IDs in two ways usually "
    "cause it, or the wrong file."
)
BARE: Final = (
    "One side has UUIDs, and the other one their 16 bytes or 32 digits, which are IDs of version 0. An engine that has "
    "no type of UUIDs usually causes it: cast that column to UUIDs, or to text with dashes."
)
VALUES: Final = {
    "offset": "a valid offset or source",
    "timestamp": "a valid timestamp",
    "landed": "a valid landing time",
    "id": "a valid ID",
}
"""The value that a row lacks, by the column that cannot be read."""
CUT_LISTS: Final = {"gaps": "missing ranges", "logs": "logs", "generators": "runs of generators", "nodes": "nodes"}
"""The lists that may be cut, and their rows in words."""
_OF_TWO_SIDES: Final = (*FAULTS.values(), "duplicate_ids", "uncompared_messages")
"""The checks of a comparison."""


class Unread(NamedTuple):
    """Rows without a value that checks need.

    Attributes:
        what: The value that they lack.
        rows: Their number, by the check that counts them or by the column.
    """

    what: str
    rows: dict[str, int]


def findings_of(facts: Facts, rules: Rules = Rules()) -> list[Finding]:  # noqa: B008  # it is immutable
    """Return the findings of facts, in the order of a report."""
    malformed = sum(number for kind, _, number in facts.kinds if kind == MALFORMED_KIND)
    values = sum(number for kind, _, number in facts.kinds if kind != NULL_KIND)

    def check_of(name: str, scope: str, example: str | None) -> Check:
        check = CHECKS[name]
        if name == "uncompared_messages" and scope == TABLE:
            return check._replace(severity="warning")  # each sent message has another row
        if name == "malformed_ids" and 2 * malformed > values:
            return Check("error", WRONG_COLUMN)
        if rules.holes == "compacted" and (name == "clock_backwards" or (name == "shared_node" and example is None)):
            return Check("info", _BACK_OR_SHARED)
        return Check("info", _TWO_READINGS) if rules.holes == "markers" and name in GAPS.values() else check

    def finding(check: str, scope: str, count: int, example: str | None) -> Finding:
        known = check_of(check, scope, example)
        return Finding(check, known.severity, scope, count, example, known.meaning)

    scopes = ((one, plural(one.x or 0, "other") if one.scope is None else one.scope) for one in facts.counts)
    return in_order(finding(one.check, scope, one.count, _example(one)) for one, scope in scopes)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, the most severe first: lost before changed, and changed before repeated, as in `CHECKS`."""
    order = list(CHECKS)
    return sorted(
        findings,
        key=lambda f: (SEVERITIES.index(f.severity), order.index(f.check), f.example is None, -f.count, f.scope),
    )


def skipped_checks(rules: Rules) -> dict[str, str]:
    """Return the checks that the caller leaves out, each with the reason."""
    compacted = dict.fromkeys(GAPS.values(), "holes='compacted': compare with the queue")
    return (compacted if rules.holes == "compacted" else {}) | dict.fromkeys(rules.without, "left out by the caller")


def checks_left_out(facts: Facts, rules: Rules) -> tuple[list[NotChecked], list[Unread]]:
    """Return the checks that the table or the caller does not allow, in the order of `CHECKS`, and what cannot be read.

    A value that cannot be read counts only if a check needs it that is made otherwise.
    """
    given = {**facts.columns, "offset": facts.columns["offset"] or bool(facts.logs), "counter": bool(facts.generators)}
    needs = {name: check.needs for name, check in CHECKS.items() if "sent" not in check.needs}
    if rules.earliest is not None:
        needs["future_ids"] = ("id",)
    reasons = skipped_checks(rules)
    for name, needed in needs.items():
        lacking = [need for need in needed if not given[need]]
        if lacking and name not in reasons:
            reasons[name] = _WITHOUT[lacking[0]]
    unread: list[Unread] = []
    for column, number in (("offset", facts.unplaced), ("timestamp", facts.untimed), ("landed", facts.unlanded)):
        checks = [name for name, needed in needs.items() if column in needed and name not in reasons]
        if number and checks:
            unread.append(Unread(VALUES[column], {column: number}))
            if number == facts.rows:
                reasons |= dict.fromkeys(checks, f"no row has {VALUES[column]}")
    if not facts.columns["offset"]:
        rows = {
            check: sum(number for kind, _, number in facts.kinds if kind == of)
            for check, of in (("missing_ids", NULL_KIND), ("malformed_ids", MALFORMED_KIND))
            if check not in reasons
        }
        unread.append(Unread(VALUES["id"], rows))
    not_checked = [NotChecked(check, reasons[check]) for check in CHECKS if check in reasons]
    if facts.holes and "missing_offsets" not in reasons:
        gaps = "gap" if facts.holes == 1 else "gaps"
        length = "one offset" if rules.producers == 1 else f"up to {rules.producers:,} offsets"
        marker = "is a marker" if facts.holes == 1 else "are markers"
        reason = f"{facts.holes:,} {gaps} of {length} {marker} or a loss: compare with the queue"
        not_checked.append(NotChecked("missing_offsets", reason))
    return not_checked, unread


def _example(c: Counted) -> str | None:
    form = CHECKS[c.check].example
    if c.scope is None or c.x is None or not form:
        return c.text
    return form.format(x=c.x, y=c.y, seconds=(c.y or 0) / 1e6, span=span(c.x, c.y or 0))


def notes_of(facts: Facts) -> list[str]:
    """Return the limits of a table and of its report, as sentences."""
    notes = []
    v0 = [(origin, n) for kind, origin, n in facts.kinds if kind.startswith("v0-")]
    if uuids := sum(n for origin, n in v0 if origin is not None):
        notes.append(
            f"{uuids:,} of {sum(n for _, n in v0):,} version-0 IDs may be UUIDs that were written without dashes, by "
            "their bits. One in 64 IDs of a client has these bits by chance. Write UUIDs with dashes."
        )
    if facts.logs:
        notes.append(
            "A loss before the first offset of a log or after its last leaves no trace in the table. Compare "
            "first_offset and last_offset with those of the queue."
        )
    if facts.generators:
        notes.append("A loss before the first sequence number of a run or after its last leaves no trace either.")
    in_utc = "A time as text is valid if it names its offset from UTC."
    for rows, lack in (
        (facts.untimed, f"a valid timestamp, which time_backwards needs. {in_utc}"),
        (facts.unlanded, f"a valid landing time, which late_messages and future_ids need. {in_utc}"),
        (facts.unplaced, "a source or a valid offset, and so do not count in any log."),
    ):
        if rows:
            notes.append(f"{rows:,} {'row lacks' if rows == 1 else 'rows lack'} {lack}")
    for name, what in CUT_LISTS.items():
        total, listed = facts.lengths.get(name, 0), len(getattr(facts, name))
        if total > listed:
            notes.append(f"The report lists {listed:,} of {total:,} {what}; the findings count all.")
    return notes


def complete_checks(not_checked: Sequence[NotChecked], *, of_two_sides: bool) -> list[str]:
    """Return the checks that were made in full, of a table or of a comparison."""
    left_out = {one.check for one in not_checked}
    of_one_side = [name for name, check in CHECKS.items() if "sent" not in check.needs]
    return [check for check in (_OF_TWO_SIDES if of_two_sides else of_one_side) if check not in left_out]
