"""When messages expire, and which segments may be removed: the rules alone, without a clock or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid._validate import UINT32_MAX, in_range, is_integer, is_number, quote

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

__all__ = [
    "DEFAULT_INTERVAL",
    "DEFAULT_SEGMENT_BYTES",
    "MICROSECONDS",
    "NEVER",
    "InvalidPolicy",
    "RetentionPolicy",
    "Segment",
    "checked_expiry",
    "checked_policy",
    "closes",
    "is_expired",
    "is_removable",
    "removable",
]

NEVER: Final = 0
"""The expiry of messages that do not expire."""
MICROSECONDS: Final = 1_000_000
"""In a second: an expiry is in seconds, a timestamp in microseconds."""
DEFAULT_SEGMENT_BYTES: Final = 1_000_000_000
"""The default size in bytes at which a segment is full."""
DEFAULT_INTERVAL: Final = 60
"""The default number of seconds between two rounds of the cleaner."""


class InvalidPolicy(ValueError):
    """A policy says what cannot be."""


class Segment(NamedTuple):
    """A run of messages that is kept or removed as a whole."""

    first_offset: int
    last_offset: int | None
    """None while there are no messages."""
    size: int
    """Bytes."""
    closed: bool
    """Nothing more is written to it."""
    latest: int | None
    """The latest of its messages' timestamps, microseconds; not that of the last message, as clocks go back."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long messages are kept, topic by topic; `dataclasses.replace` changes settings.

    Raises:
        InvalidPolicy: if a setting has a value that is not allowed; an interval of 0 is not.

    >>> RetentionPolicy.of({"default_expiry": 604800, "topics": {"orders": 86400}}).expiry_of("orders")
    86400
    """

    default_expiry: int = NEVER
    """Seconds, for topics without an expiry of their own; 0: never."""
    topics: Mapping[str, int | None] = field(default_factory=dict)
    """Seconds by topic; 0: never, None: the default."""
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    """The size at which a segment is full."""
    enabled: bool = True
    """Whether the cleaner does anything."""
    interval: float = DEFAULT_INTERVAL
    """Seconds between the cleaner's rounds, more than 0."""

    def __post_init__(self) -> None:
        if isinstance(self.topics, Mapping):
            object.__setattr__(self, "topics", dict(self.topics))  # the caller's own may change afterwards
        self.check()

    def check(self) -> None:
        """Check every setting again: `topics` is a dict, which may have been changed since.

        Raises:
            InvalidPolicy: if a setting has a value that is not allowed.
        """
        checked_expiry("default_expiry", self.default_expiry)
        if not isinstance(self.topics, Mapping):
            raise InvalidPolicy(f"topics must be expiries by topic, not {quote(self.topics)}")
        for topic, expiry in self.topics.items():
            if not isinstance(topic, str):
                raise InvalidPolicy(f"topics must have texts as keys, not {quote(topic)}")
            if expiry is not None:
                checked_expiry(f"the expiry of {quote(topic)}", expiry)
        if not is_integer(self.segment_bytes) or self.segment_bytes < 1:
            raise InvalidPolicy(f"segment_bytes must be 1 or more, not {quote(self.segment_bytes)}")
        if not isinstance(self.enabled, bool):
            raise InvalidPolicy(f"enabled must be true or false, not {quote(self.enabled)}")
        if not (is_number(self.interval) and self.interval > 0):
            raise InvalidPolicy(f"interval must be more than 0 seconds, not {quote(self.interval)}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RetentionPolicy:
        """Return a policy of plain values, as a file has them.

        Raises:
            InvalidPolicy: if a setting is unknown, or `RetentionPolicy` refuses its value.
        """
        names = [setting.name for setting in fields(cls)]
        unknown = set(values) - set(names)
        if unknown:
            raise InvalidPolicy(f"no setting {quote(min(unknown))}; there are: {', '.join(names)}")
        return cls(**values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RetentionPolicy:
        """Read a policy from a TOML file.

        Raises:
            InvalidPolicy: the file is no TOML, or `of` refuses what it says.
            OSError: it cannot be read.
        """
        try:
            import tomllib  # type: ignore[import-not-found, unused-ignore]
        except ModuleNotFoundError:  # Python 3.10
            import tomli as tomllib  # type: ignore[no-redef, import-not-found, unused-ignore]

        with open(path, "rb") as file:
            try:
                values = tomllib.load(file)
            except ValueError as error:
                raise InvalidPolicy(f"{path} is no TOML: {error}") from None
        return cls.of(values)

    def expiry_of(self, topic: str | None) -> int:
        """Give the seconds that a topic's messages are kept; 0: for ever."""
        own = None if topic is None else self.topics.get(topic)
        return checked_expiry("expiry", self.default_expiry if own is None else own)


def is_expired(timestamp: int, expiry: int | None, now: int, default: int = NEVER) -> bool:
    """Say whether a message has expired.

    Args:
        timestamp: the message's, microseconds since 1970.
        expiry: seconds; None: the default; 0: never.
        now: microseconds since 1970.
        default: seconds; 0: never.

    Raises:
        InvalidPolicy: if an expiry is not 0 to 4294967295 whole seconds.

    >>> is_expired(0, None, now=10**18), is_expired(0, None, now=5_000_000, default=5)
    (False, True)
    """
    seconds = checked_expiry("expiry", default if expiry is None else expiry)
    return seconds != NEVER and timestamp + seconds * MICROSECONDS <= now


def closes(segment: Segment, segment_bytes: int, expiry: int | None, now: int, default: int = NEVER) -> bool:
    """Say whether a segment that is being written is to be closed: it is full, or its messages have expired.

    >>> closes(Segment(0, 9, 1000, False, 0), 1000, None, now=0), closes(Segment(0, 9, 999, False, 0), 1000, 1, now=0)
    (True, False)
    """
    return segment.size >= segment_bytes or _all_expired(segment, expiry, now, default)


def removable(
    segments: Iterable[Segment], expiry: int | None, now: int, default: int = NEVER, *, enabled: bool = True
) -> list[Segment]:
    """Give the segments that a policy removes at a moment: the closed ones, all of whose messages have expired.

    >>> [s.first_offset for s in removable([Segment(0, 4, 9, True, 0), Segment(5, 9, 9, False, 0)], 1, now=2_000_000)]
    [0]
    """
    return [segment for segment in segments if enabled and is_removable(segment, expiry, now, default)]


def is_removable(segment: Segment, expiry: int | None, now: int, default: int = NEVER) -> bool:
    """Return whether a segment is closed and all of its messages have expired.

    >>> is_removable(Segment(0, 4, 9, True, 0), 1, now=2_000_000)
    True
    """
    return segment.closed and _all_expired(segment, expiry, now, default)


def _all_expired(segment: Segment, expiry: int | None, now: int, default: int) -> bool:
    return segment.latest is not None and is_expired(segment.latest, expiry, now, default)


def checked_policy(policy: object) -> RetentionPolicy:
    """Return a policy whose settings have been checked now, or raise TypeError or `InvalidPolicy`."""
    if not isinstance(policy, RetentionPolicy):
        raise TypeError(f"policy must be a RetentionPolicy, got {quote(policy)}")
    policy.check()
    return policy


def checked_expiry(what: str, value: object) -> int:
    """Return an expiry in seconds, or raise `InvalidPolicy`."""
    if not in_range(value, 0, UINT32_MAX):
        raise InvalidPolicy(f"{what} must be whole seconds, 0 to {UINT32_MAX}, not {quote(value)}")
    return value
