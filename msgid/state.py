"""The states of a message (the Iggy message-state document), which this library uses for messages of all kinds."""

from __future__ import annotations

from enum import IntEnum

from msgid.errors import InvalidMessage, quote

__all__ = ["MessageState"]


class MessageState(IntEnum):
    """What may be done with a message. Consumers are given those that are ``available`` and no others.

    >>> MessageState(20), MessageState.of("poisoned"), str(MessageState.MARKED_FOR_DELETION)
    (<MessageState.POISONED: 20>, <MessageState.POISONED: 20>, 'marked_for_deletion')
    """

    AVAILABLE = 1
    UNAVAILABLE = 10
    POISONED = 20
    """It failed its checksum, its schema or its decoding."""
    MARKED_FOR_DELETION = 30
    """Retention has found it expired."""

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, value: object) -> MessageState:
        """Read a code or a name in snake_case.

        Args:
            value: an int or a str.

        Raises:
            InvalidMessage: there is no such state.

        >>> MessageState.of(1)
        <MessageState.AVAILABLE: 1>
        """
        if isinstance(value, str):
            for state in cls:
                if str(state) == value:
                    return state
            raise InvalidMessage(f"state {quote(value)}, not {', '.join(map(str, cls))}")
        if isinstance(value, int) and not isinstance(value, bool) and value in cls._value2member_map_:
            return cls(value)
        raise InvalidMessage(f"state {quote(value)}, not {CODES}")


CODES = "1, 10, 20 or 30"
