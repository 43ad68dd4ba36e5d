"""Stores across ``fork``: a child process never uses or closes a connection that it inherited."""

from __future__ import annotations

import os
import threading
from typing import Final, Protocol
from weakref import WeakSet

__all__ = ["CLOSING", "ForkAware", "register"]


class ForkAware(Protocol):
    """A store that prepares for each fork."""

    def _before_fork(self) -> None: ...

    def _after_fork(self, *, child: bool) -> None: ...


_stores: Final[WeakSet[ForkAware]] = WeakSet()
_lock: Final = threading.RLock()  # re-entrant, because a signal handler can fork while its thread holds the lock
_forking: list[ForkAware] = []
CLOSING: Final = threading.RLock()
"""Held while Python frees a connection: a fork at that moment would copy a lock inside of SQLite that stays locked.

Python frees a connection anywhere, for example while a thread holds the lock of another store. So a fork acquires this
lock after those of the stores.
"""


def register(store: ForkAware) -> None:
    """Register a store, whose methods are called at each fork as long as the store exists."""
    with _lock:
        _stores.add(store)


def _before() -> None:
    _lock.acquire()
    _forking[:] = _stores
    for store in _forking:
        store._before_fork()
    CLOSING.acquire()


def _after(*, child: bool) -> None:
    # The thread that forks continues in the child, so it can release the locks that it acquired.
    CLOSING.release()
    for store in _forking:
        store._after_fork(child=child)
    _forking.clear()
    _lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before,
        after_in_parent=lambda: _after(child=False),
        after_in_child=lambda: _after(child=True),
    )
