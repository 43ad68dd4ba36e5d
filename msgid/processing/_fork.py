"""Stores across ``fork``: a child process never uses or closes a connection that it inherited."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable


class ForkAware(Protocol):
    """A store. A fork waits for its lock."""

    _lock: threading.RLock

    def _after_fork_in_child(self) -> None:
        """Drop what belongs to the parent process; a second call changes nothing."""


_stores: Final[WeakSet[ForkAware]] = WeakSet()
_lock: Final = threading.RLock()  # re-entrant, because a signal handler can fork while its thread holds the lock
CLOSING: Final = threading.RLock()
"""Held while a connection closes: a fork at that moment would copy a lock inside of SQLite that stays locked.

Python may close the connection of a dropped store anywhere, for example while a thread holds the lock of another store.
So a fork acquires this lock after those of the stores.
"""
_before_works: Final[list[Callable[[], None]]] = []
_child_works: Final[list[Callable[[], None]]] = []


class _Acquired(threading.local):
    """The locks that a thread has acquired for a fork."""

    def __init__(self) -> None:
        self.locks: list[threading.RLock] = []


_acquired: Final = _Acquired()


def register(store: ForkAware) -> None:
    """Register a store: as long as it exists, a fork waits for its lock."""
    with _lock:
        _stores.add(store)


def at_each_fork(*, before: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Call functions before each fork and in each child, with all locks held; a second call must change nothing."""
    _before_works.append(before)
    _child_works.append(in_child)


def _before() -> None:
    """Acquire all locks, whatever a signal handler raises in the meantime: the system forks in any case."""
    interrupts: list[BaseException] = []
    patience = 0.1
    while True:
        try:
            if _acquire_all(patience):
                break
            # The owner of a lock may itself wait to fork, in a signal handler. So this thread lets it go first.
            _release_all()
            patience *= 2
        except BaseException as error:
            interrupts.append(error)
    for work in _before_works:
        work()
    if interrupts:
        raise interrupts[0]


def _acquire_all(patience: float) -> bool:
    return (
        _acquire(_lock, patience)
        and all(_acquire(store._lock, patience) for store in list(_stores))
        and _acquire(CLOSING, patience)
    )


def _acquire(lock: threading.RLock, patience: float) -> bool:
    """Acquire a lock unless this thread owns it. An error of a signal handler leaves no doubt: the owner is known."""
    if _owns(lock):
        return True
    _acquired.locks.append(lock)
    return lock.acquire(timeout=patience)


def _release_all() -> None:
    while _acquired.locks:
        lock = _acquired.locks[-1]
        if _owns(lock):
            lock.release()
        _acquired.locks.pop()


def _owns(lock: threading.RLock) -> bool:
    return lock._is_owned()  # type: ignore[attr-defined, no-any-return]  # threading.Condition uses it, too


def _after_in_child() -> None:
    for store in list(_stores):
        store._after_fork_in_child()
    for work in _child_works:
        work()
    _release_all()  # the thread that forks continues in the child


for _ in range(2 if hasattr(os, "register_at_fork") else 0):  # twice, as in msgid.ids.generator
    os.register_at_fork(before=_before, after_in_parent=_release_all, after_in_child=_after_in_child)
