"""Reduce: the kinds of values that are neither version-1 IDs nor the canonical text of a UUID, each value once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid import layout
from msgid.audit.definitions import MALFORMED_KIND, MAY_BE_UUID, TABLE
from msgid.audit.facts import Counted, Facts, KindRow, part_of
from msgid.errors import InvalidMessageId
from msgid.ids.checked_bytes import NOT_HEX, UNKNOWN_VERSION, id_bytes, is_uuid, kind_of, strip_version
from msgid.shared.moments import UNIX_EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTH, _HEX, _VERSION = "wrong length", "not hex digits alone", "unknown version"
"""The reasons why a value is not an ID."""
_LONGEST_MONTH_MS: Final = 31 * 86_400_000
_DAY: Final = layout.CLOCKS_DIFFER_S * 1_000_000


class Kind(NamedTuple):
    """The kind of a value, its origin or the reason why it is malformed, and the time of a client's version-0 ID."""

    kind: str
    origin: str | None
    elapsed_ms: int | None


def kind_of_text(value: str) -> Kind:
    """Return the kind of a value that is not a version-1 ID.

    >>> kind_of_text("7F0000010000238F000000000001E240").kind, kind_of_text("order 7").origin
    ('v0-broker-offset', 'wrong length')
    """
    if is_uuid(value):
        return Kind("uuid", None, None)
    try:
        raw = id_bytes(value)
    except InvalidMessageId as error:
        return Kind(MALFORMED_KIND, _reason(error), None)
    kind, bare = kind_of(raw), strip_version(raw) or raw
    elapsed = None
    if kind == layout.KIND_CLIENT_UNIQUE:
        elapsed = layout.CLIENT_UNIQUE.unpack(bare[-layout.TAIL_LENGTH :])[2]
    return Kind(kind, MAY_BE_UUID if layout.may_be_uuid(bare) else None, elapsed)


def _reason(error: InvalidMessageId) -> str:
    if error.reason == NOT_HEX:
        return _HEX
    return _VERSION if error.reason.startswith(UNKNOWN_VERSION.partition("{")[0]) else _LENGTH


def facts_of_odd(identities: Sequence[str], numbers: Sequence[int], near: Sequence[int | None]) -> Facts:
    """Return the kinds of some values, and the findings about them.

    Args:
        identities: The identity of each value, each once.
        numbers: Number of its rows.
        near: The earliest time of its rows in microseconds since 1970, or None.
    """
    kinds: Counter[tuple[str, str | None]] = Counter()
    counts: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    for identity, number, moment in zip(identities, numbers, near, strict=True):
        kind, origin, elapsed_ms = kind_of_text(identity)
        kinds[kind, origin] += number
        checks = [check for of, check in _CHECK_OF.items() if of == kind]
        if elapsed_ms is not None and is_of_month_before(elapsed_ms, moment):
            checks.append("v0_month_wrap")
        for check in checks:
            counts[check] += number
            firsts[check] = min(identity, firsts.get(check, identity))
    counted = (Counted(check, TABLE, number, text=firsts[check]) for check, number in counts.items())
    return part_of(counted, kinds=[KindRow(*key, number) for key, number in kinds.items()])


_CHECK_OF: Final = {MALFORMED_KIND: "malformed_ids", layout.KIND_AMBIGUOUS: "ambiguous_ids"}


def is_of_month_before(elapsed_ms: int, near: int | None) -> bool:
    """Return whether a client made a version-0 ID in the month before its row's time, by `ClientUniqueId.time_near`.

    The clients' time zones are unknown, so an ID of the last day is not one of them.

    Args:
        elapsed_ms: Milliseconds since the start of the client's month.
        near: Microseconds since 1970, or None.

    >>> day = 86_400_000
    >>> is_of_month_before(20 * day, 18 * day * 1000), is_of_month_before(10 * day, 18 * day * 1000)
    (True, False)
    """
    if elapsed_ms >= _LONGEST_MONTH_MS:
        return True
    if near is None:
        return False
    moment_of_id = None
    for back in (3, 2, 1, 0):
        moment = _month_of(near + _DAY, back) + elapsed_ms * 1_000
        if moment < _month_of(near + _DAY, back - 1) and moment <= near + _DAY:
            moment_of_id = moment
    return moment_of_id is not None and moment_of_id < _month_of(near, 0) and moment_of_id < near - _DAY


def _month_of(micros: int, back: int) -> int:
    """Return the start of the month that is some months before that of a moment, in microseconds since 1970."""
    from datetime import date

    days = micros // 86_400_000_000
    day = date.fromordinal(UNIX_EPOCH.toordinal() + days)
    months = day.year * 12 + day.month - 1 - back
    return (date(months // 12, months % 12 + 1, 1).toordinal() - UNIX_EPOCH.toordinal()) * 86_400_000_000
