"""Stores across ``fork``: no connection is used or closed in a child that has inherited it."""

from __future__ import annotations

import os
import threading
from typing import Final, Protocol
from weakref import WeakSet

__all__ = ["ForkAware", "register"]


class ForkAware(Protocol):
    """A store that prepares for each fork."""

    def _before_fork(self) -> None: ...

    def _after_fork(self, *, child: bool) -> None: ...


_stores: Final[WeakSet[ForkAware]] = WeakSet()
_lock: Final = threading.RLock()  # a signal handler may fork while its own thread holds it
_forking: list[ForkAware] = []


def register(store: ForkAware) -> None:
    """Call the store's methods at each fork, as long as the store lives."""
    with _lock:
        _stores.add(store)


def _before() -> None:
    _lock.acquire()
    _forking[:] = _stores
    for store in _forking:
        store._before_fork()


def _after(*, child: bool) -> None:
    # The thread that forks is the one that goes on in the child, so it may release the locks that it took.
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
