"""The minter in pure Python."""

import os
import sys
import threading
from unittest import mock

from msgid import MessageId
from msgid.ids import _pure_minter


def pure_minter():
    """Return the pure-Python minter, even if the generators use the compiled one."""
    plain = _pure_minter.Minter()
    plain._begin(MessageId, _pure_minter._sequence.Run, None, 0)
    return plain


def test_minter_without_an_interpreter_lock_takes_its_own_lock():
    """In free-threaded builds, drawing a number is not atomic, so the method acquires the lock."""
    held = []

    def method(self):
        held.append(self._lock.acquire(blocking=False) and not self._lock.release())
        thread = threading.Thread(target=lambda: held.append(self._lock.acquire(blocking=False)))
        thread.start()
        thread.join()

    with mock.patch.object(sys, "_is_gil_enabled", return_value=False, create=True):
        _pure_minter._exclusive(method)(pure_minter())
    assert held == [True, False]  # re-entrant for its own thread, closed to others
    with mock.patch.object(sys, "_is_gil_enabled", return_value=True, create=True):
        assert _pure_minter._exclusive(method) is method


def test_process_without_pages_that_a_fork_clears_is_known_by_its_pid():
    """Systems other than Linux compare the pid."""
    with mock.patch.object(_pure_minter.mmap, "mmap", side_effect=OSError):
        process = _pure_minter._this_process()
    assert process[0]
    with mock.patch.object(os, "getpid", return_value=os.getpid() + 1):
        assert not process[0]
