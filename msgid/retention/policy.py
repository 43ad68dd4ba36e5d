"""Retention rules: which messages have expired, and which segments may be deleted. They read no clock and no file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.shared.moments import duration, unit_hint
from msgid.shared.validate import UINT32_MAX, in_range, is_integer, is_number, quote, toml_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

NEVER: Final = 0
"""Expiry of messages that never expire."""
MICROSECONDS: Final = 1_000_000
"""Microseconds per second: an expiry is in seconds, a timestamp in microseconds."""
DEFAULT_INTERVAL: Final = 60
"""The default number of seconds between two rounds of the cleaner."""


GAP: Final = "the next segment starts at offset %d, not at %d: offsets are missing, or it is a stray file"
"""Why a segment is kept whose successor does not begin at its last offset + 1."""
OPEN: Final = "it has expired, but no segment begins after its last message: the server may still write it"
"""Why an expired segment is kept that is not closed, such as the last one of an idle partition."""
_YEAR_2000: Final = 946_684_800 * MICROSECONDS


class InvalidPolicy(ValueError):
    """A setting of a retention policy is unknown, or has a value that is not allowed."""


class Segment(NamedTuple):
    """A range of messages of a log that is kept or deleted as a whole."""

    first_offset: int
    last_offset: int | None
    """Offset of the last message; None if the segment is empty."""
    size: int
    """Size in bytes."""
    closed: bool
    """Whether the segment is marked as complete, so that no message is added to it."""
    earliest: int | None
    """Least timestamp of the messages in microseconds; None if the segment is empty, or if a message lacks a time."""
    latest: int | None
    """Greatest timestamp of the messages in microseconds; the last message may have a smaller one (clock set back)."""
    follows: bool = True
    """Whether the segment can close the one before it: it is empty, or begins with a valid message."""


@dataclass(frozen=True, slots=True, init=False)
class RetentionPolicy:
    """Retention of messages by topic; `dataclasses.replace` returns a copy with other settings.

    Args:
        default_expiry: Retention period of topics that are not in ``topics``, as a timedelta, as text such as ``"7
            days"``, or in seconds; 0 keeps messages forever.
        topics: Retention period by topic, in the same forms; None means the default.
        enabled: Whether the cleaner runs; if False, no message is deleted.
        interval: Time between two rounds of the cleaner, in the same forms, more than 0.

    Raises:
        InvalidPolicy: if a setting has a value that is not allowed, such as an interval of 0.

    >>> RetentionPolicy(default_expiry="7 days").default_expiry
    604800
    >>> RetentionPolicy.of({"default_expiry": 604800, "topics": {"orders": 86400}}).expiry_of("orders")
    86400
    """

    default_expiry: int = NEVER
    """Retention period in seconds of topics that are not in ``topics``; 0 keeps messages forever."""
    topics: Mapping[str, int | None] = field(default_factory=dict)
    """Retention period in seconds by topic; 0 keeps messages forever, None means the default."""
    enabled: bool = True
    """Whether the cleaner runs; if False, no message is deleted."""
    interval: float = DEFAULT_INTERVAL
    """Seconds between two rounds of the cleaner, more than 0."""

    def __init__(  # `replace` calls it, too
        self,
        default_expiry: timedelta | str | int = NEVER,
        topics: Mapping[str, timedelta | str | int | None] | None = None,
        enabled: bool = True,
        interval: timedelta | str | float = DEFAULT_INTERVAL,
    ) -> None:
        own: Any = {} if topics is None else topics
        if isinstance(own, Mapping):  # a copy: the caller may change the original later
            own = {topic: _seconds(f"the expiry of {quote(topic)}", expiry) for topic, expiry in own.items()}
        values = _seconds("default_expiry", default_expiry), own, enabled, _seconds("interval", interval, whole=False)
        for setting, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, setting.name, value)
        self.check()

    def check(self) -> None:
        """Check every setting again, because the dict `topics` can be changed.

        Raises:
            InvalidPolicy: if a setting has a value that is not allowed.
        """
        checked_expiry("default_expiry", self.default_expiry)
        if not isinstance(self.topics, Mapping):
            raise InvalidPolicy(f"topics must be a mapping of topics to seconds, got {quote(self.topics)}")
        for topic, expiry in self.topics.items():
            if not isinstance(topic, str):
                raise InvalidPolicy(f"topics must have strings as keys, got {quote(topic)}")
            if expiry is not None:
                checked_expiry(f"the expiry of {quote(topic)}", expiry)
        if not isinstance(self.enabled, bool):
            raise InvalidPolicy(f"enabled must be true or false, got {quote(self.enabled)}")
        if not (is_number(self.interval) and 0 < self.interval <= TIMEOUT_MAX):
            allowed = f"more than 0 and at most {TIMEOUT_MAX:.0f} seconds"
            raise InvalidPolicy(f"interval must be {allowed}, got {quote(self.interval)}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RetentionPolicy:
        """Return a policy of plain values, such as the values of a TOML file.

        Raises:
            InvalidPolicy: if a setting is unknown, or has a value that is not allowed.
        """
        names = [setting.name for setting in fields(cls)]
        unknown = set(values) - set(names)
        if unknown:
            raise InvalidPolicy(f"settings must be among {', '.join(names)}, got {quote(min(unknown))}")
        return cls(**values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RetentionPolicy:
        """Read a policy from a TOML file.

        Raises:
            InvalidPolicy: if the file is not TOML, or a setting is unknown or has a value that is not allowed.
            OSError: if the file cannot be read.
        """
        data = Path(path).read_bytes()
        try:
            values = toml_of(data)
        except ValueError as error:
            raise InvalidPolicy(f"cannot read {path} as TOML: {error}") from None
        return cls.of(values)

    def expiry_of(self, topic: str | None) -> int:
        """Return the retention period of a topic in seconds; 0 keeps messages forever."""
        own = None if topic is None else self.topics.get(topic)
        return checked_expiry("expiry", self.default_expiry if own is None else own)


def is_expired(
    timestamp: int, expiry: timedelta | str | int | None, now: int, default: timedelta | str | int = NEVER
) -> bool:
    """Return whether a message has expired.

    Args:
        timestamp: Time of the message in microseconds since 1970.
        expiry: Retention period, as for `RetentionPolicy`; 0 keeps messages forever, None means ``default``.
        now: The current time in microseconds since 1970.
        default: Default retention period; 0 keeps messages forever.

    Raises:
        InvalidPolicy: if a retention period is not 0 to 4294967295 whole seconds.
        TypeError: if ``timestamp`` or ``now`` is not an integer.

    >>> is_expired(0, None, now=10**18), is_expired(0, None, now=5_000_000, default=5)
    (False, True)
    """
    for name, micros in (("timestamp", timestamp), ("now", now)):
        if not is_integer(micros):
            raise TypeError(f"{name} must be an integer of microseconds since 1970, got {quote(micros)}")
    seconds = expiry_seconds("expiry", default if expiry is None else expiry)
    return seconds != NEVER and timestamp + seconds * MICROSECONDS <= now


class Decision(NamedTuple):
    """The decision of a policy about a segment."""

    closed: bool
    """Whether the segment is complete, so that no message is added to it."""
    expired: bool
    """Whether the segment is closed and all of its messages have expired, so that it is deleted."""
    reason: str | None = None
    """Why the segment is kept although a later one has messages, or although the policy applies to it."""

    @property
    def action(self) -> str:
        """``delete`` for an expired segment, otherwise ``keep``."""
        return "delete" if self.expired else "keep"


def decide(
    segments: Sequence[Segment],
    policy: RetentionPolicy,
    now: int,
    *,
    topic: str | None = None,
    allow_gaps: bool = False,
) -> list[Decision]:
    """Decide which segments of a log are deleted.

    A segment is closed if it is marked so, or if a later segment begins at its last offset + 1. A segment before a gap
    of offsets is kept, because the later segment may be a stray copy. A segment that the next one overlaps is kept,
    too. A closed segment in which all messages have expired is deleted. The reason is given for each expired segment
    that is kept, also for the last one of an idle log.

    A segment is kept, with the reason, if the time of a message is missing, before the year 2000 or after ``now``: such
    times are often in another unit, and do not tell when the message was made.

    Args:
        segments: The segments of one log, in any order.
        policy: Retention by topic. A disabled policy deletes nothing.
        now: The current time in microseconds since 1970.
        topic: The topic of the log.
        allow_gaps: Whether a later segment with messages closes a segment even if offsets between the two are missing.

    Returns:
        One decision per segment, in the order of ``segments``: whether it is ``closed`` and ``expired``, its
        ``action``, ``delete`` or ``keep``, and the ``reason`` why it is kept.

    Raises:
        InvalidPolicy: if a retention period is not an integer from 0 to 4294967295.

    >>> then = 1_700_000_000_000_000
    >>> log = [Segment(first, last, 9, False, then, then) for first, last in [(0, 4), (5, 6), (9, 9)]]
    >>> for decision in decide(log, RetentionPolicy(default_expiry=1), now=then + 2_000_000):
    ...     print(decision.action, decision.closed, decision.reason)
    delete True None
    keep False the next segment starts at offset 9, not at 7: offsets are missing, or it is a stray file
    keep False it has expired, but no segment begins after its last message: the server may still write it
    """
    expiry = policy.expiry_of(topic)
    applies = policy.enabled and expiry != NEVER
    starts = {segment.first_offset for segment in segments if segment.follows}
    filled = sorted(s.first_offset for s in segments if s.follows and s.last_offset is not None)
    decisions = []
    for segment in segments:
        first, last, closed, reason = segment.first_offset, segment.last_offset, segment.closed, None
        if not closed:
            index = bisect_right(filled, first)
            following = filled[index] if index < len(filled) else None
            closed = following is not None if last is None else last >= first and last + 1 in starts
            if not closed and last is not None and following is not None and following > last:  # else they overlap
                closed = allow_gaps
                reason = GAP % (following, last + 1) if applies and not closed else None
        if applies and closed and last is not None:
            reason = _doubt(segment, now)
        is_past = applies and reason is None and segment.latest is not None and is_expired(segment.latest, expiry, now)
        decisions.append(Decision(closed, is_past and closed, OPEN if is_past and not closed else reason))
    return decisions


def _doubt(segment: Segment, now: int) -> str | None:
    """Return why the times of a segment do not tell its age; None if they do."""
    earliest, latest = segment.earliest, segment.latest
    if earliest is None or latest is None:
        return "the time of a message is missing"
    if earliest < _YEAR_2000:
        return f"the time of a message is {earliest}, before the year 2000{unit_hint(earliest, MICROSECONDS)}"
    return f"the time of a message is {latest}, in the future" if latest > now else None


def checked_policy(policy: object) -> RetentionPolicy:
    """Check the settings of a policy and return it, or raise TypeError or `InvalidPolicy`."""
    if not isinstance(policy, RetentionPolicy):
        raise TypeError(f"policy must be a RetentionPolicy, got {quote(policy)}")
    policy.check()
    return policy


def _seconds(what: str, value: Any, *, whole: bool = True) -> Any:
    """Return the seconds of a timedelta or a text; any other value stays as it is."""
    if not isinstance(value, timedelta | str):
        return value
    try:
        seconds = duration(what, value).total_seconds()
    except ValueError as error:
        raise InvalidPolicy(str(error)) from None
    if whole and seconds != int(seconds):
        raise InvalidPolicy(f"{what} must be whole seconds, got {quote(str(value))}")
    return int(seconds) if whole else seconds


def expiry_seconds(what: str, value: timedelta | str | int) -> int:
    """Return an expiry of any form in seconds, or raise `InvalidPolicy`."""
    return checked_expiry(what, _seconds(what, value))


def checked_expiry(what: str, value: object) -> int:
    """Return an expiry in seconds, or raise `InvalidPolicy`."""
    if not in_range(value, 0, UINT32_MAX):
        raise InvalidPolicy(f"{what} must be an integer of 0 to {UINT32_MAX} seconds, got {quote(value)}")
    return value
