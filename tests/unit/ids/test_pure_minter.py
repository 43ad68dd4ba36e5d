"""The minter in pure Python."""

import mmap
import os
import sys
import threading
from types import SimpleNamespace
from unittest import mock

import pytest

from msgid import MessageId
from msgid.ids import _pure_minter


def pure_minter():
    """Return the pure-Python minter, even if the generators use the compiled one."""

    class Plain(_pure_minter.Minter):
        def _start(self, why):
            return bytes(9), 0, None

    plain = Plain()
    plain._begin(MessageId, _pure_minter._sequence.SecondOfIds, None)
    return plain


def test_minter_without_an_interpreter_lock_takes_its_own_lock():
    """In free-threaded builds, drawing a number is not atomic, so the method acquires the lock."""
    held = []

    def method(self):
        held.append(self._lock.acquire(blocking=False) and not self._lock.release())
        thread = threading.Thread(target=lambda: held.append(self._lock.acquire(blocking=False)))
        thread.start()
        thread.join()

    with mock.patch.object(_pure_minter, "sys", SimpleNamespace(_is_gil_enabled=lambda: False)):
        _pure_minter._exclusive(method)(pure_minter())
    assert held == [True, False]  # re-entrant for its own thread, closed to others
    with mock.patch.object(_pure_minter, "sys", SimpleNamespace(_is_gil_enabled=lambda: True)):
        assert _pure_minter._exclusive(method) is method


@pytest.mark.parametrize(
    "page",
    [
        mock.Mock(side_effect=OSError),  # no such memory
        mock.Mock(return_value=mock.Mock(madvise=mock.Mock(side_effect=OSError))),  # an old kernel
        mock.Mock(return_value=mock.Mock(madvise=mock.Mock(return_value=None))),  # an emulator that accepts any advice
    ],
)
def test_process_without_pages_that_a_fork_clears_is_known_by_its_pid(page):
    """Where the advice is missing, or accepted and not followed, the pid is compared; Linux needs no such look."""
    with mock.patch.object(_pure_minter, "mmap", SimpleNamespace(**{**vars(mmap), "mmap": page})):
        life = _pure_minter._wiped_on_fork()
    assert life[0] == 0
    life[0] = 7
    assert life[0] == 7
    with mock.patch.object(_pure_minter, "os", SimpleNamespace(getpid=lambda: os.getpid() + 1)):
        assert life[0] == 0
    if sys.platform == "linux":
        assert isinstance(_pure_minter._wiped_on_fork(), memoryview)


def test_clock_of_the_system_is_exact_at_the_end_of_a_second():
    """The coarse clock is up to a tick behind; the fraction of the atomic clock tells whether the second has ended."""
    for coarse, atomic, second in [(7.5, 99.0, 7), (7.95, 44.96, 7), (7.996, 45.001, 8), (7.92, 44.92, 7)]:
        with mock.patch.object(_pure_minter, "_read_clock", side_effect=[coarse, atomic]):
            assert int(_pure_minter.system_clock()) == second
