"""Limits of connections to PostgreSQL: how long a transaction waits for locks, and a vanished client holds them.

The server ends a transaction whose client is silent between two statements. TCP ends a connection whose other machine
is silent, on both sides.
"""

from __future__ import annotations

import math
import os
import time
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgid.shared.validate import is_number, quote

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

LOCK_TIMEOUT: Final = 60
"""Seconds that a store waits for a lock."""
SINK_LOCK_TIMEOUT: Final = 600
"""Seconds that a sink waits for a lock: another task may be inserting the same keys, with many rows."""
IDLE_TIMEOUT: Final = 30
"""Seconds after which the server ends the transaction of a silent client."""
CONNECT_TIMEOUT: Final = 30
"""Seconds in which a sink opens a connection, if the connection string does not say so."""
ANSWER_TIMEOUT: Final = 600
"""Seconds that a store waits for a server whose connection lives, and that does not answer."""
SINK_ANSWER_TIMEOUT: Final = 3600
"""The same for a sink: an insert of many rows is one statement."""
_MIN: Final = 0.001
_MAX: Final = 86_400
_PROBES: Final = 3
"""The number of keepalives without an answer after which TCP ends a connection."""


def seconds(name: str, value: object) -> float:
    """Return a time limit; raise an error if it is not one millisecond to a day.

    >>> seconds("lock_timeout", 0)
    Traceback (most recent call last):
    ValueError: lock_timeout must be 0.001 to 86400 seconds, got 0
    """
    if not is_number(value):
        raise TypeError(f"{name} must be a number of seconds, got {quote(value)}")
    if not _MIN <= value <= _MAX:
        raise ValueError(f"{name} must be {_MIN} to {_MAX} seconds, got {quote(value)}")
    return float(value)


def settings(lock_timeout: float, idle_timeout: float) -> tuple[str, ...]:
    """Return the settings of a session, or of a transaction, that limit its waits and its silence.

    >>> settings(1, 30)[:2]
    ('lock_timeout = 1000', 'idle_in_transaction_session_timeout = 30000')
    """
    pause, between = _keepalives(idle_timeout)
    return (
        f"lock_timeout = {_milliseconds(lock_timeout)}",
        f"idle_in_transaction_session_timeout = {_milliseconds(idle_timeout)}",
        f"tcp_keepalives_idle = {pause}",
        f"tcp_keepalives_interval = {between}",
        f"tcp_keepalives_count = {_PROBES}",
        f"tcp_user_timeout = {_milliseconds(idle_timeout)}",
    )


def connection_options(
    given: Mapping[str, Any], idle_timeout: float, connect_timeout: float = CONNECT_TIMEOUT
) -> dict[str, Any]:
    """Return the options of libpq that end a connection to a silent server; those of a connection string win.

    >>> connection_options({"connect_timeout": 5}, 30)["tcp_user_timeout"]
    30000
    """
    pause, between = _keepalives(idle_timeout)
    options = {
        "connect_timeout": max(math.ceil(connect_timeout), 2),
        "keepalives_idle": pause,
        "keepalives_interval": between,
        "keepalives_count": _PROBES,
        "tcp_user_timeout": _milliseconds(idle_timeout),
    }
    if "PGCONNECT_TIMEOUT" in os.environ:
        del options["connect_timeout"]
    return {name: value for name, value in options.items() if name not in given}


def connect(conninfo: str, answer_timeout: float, **options: Any) -> Any:
    """Return a connection of psycopg that is closed, with an error, if the server says nothing for too long.

    No setting of libpq ends a wait for a server whose machine answers and whose process does not.
    """
    connection = _bounded_connection().connect(conninfo, **options)
    connection.answer_timeout = answer_timeout
    return connection


@cache
def _bounded_connection() -> Any:
    import psycopg

    class NoAnswer(psycopg.OperationalError, TimeoutError):
        pass

    class Bounded(psycopg.Connection[Any]):
        answer_timeout: float = CONNECT_TIMEOUT

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            return super().wait(self._bounded(gen), *arguments, **options)

        def _bounded(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """Yield what the steps of a call of psycopg wait for; each time of silence is bounded."""
            end, ready = time.monotonic() + self.answer_timeout, None
            try:
                while True:
                    ready = yield steps.send(ready)
                    if ready:
                        end = time.monotonic() + self.answer_timeout
                    elif time.monotonic() > end:
                        self.pgconn.finish()
                        raise NoAnswer(
                            f"the server has not answered a statement for {self.answer_timeout:g} seconds, and its "
                            "machine keeps the connection: find the cause on the server, and try again"
                        )
            except StopIteration as done:
                return done.value

    return Bounded


def _keepalives(idle_timeout: float) -> tuple[int, int]:
    """Return the seconds of silence before the first keepalive, and those between two; together the limit."""
    pause = max(1, int(idle_timeout / 2))
    return pause, max(1, math.ceil((idle_timeout - pause) / _PROBES))


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
