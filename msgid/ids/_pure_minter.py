"""The pure-Python minter, which applies the rule of `msgid.ids._sequence` safely across threads and signals.

It is the reference for the compiled minter in ``_speedups.c``. `msgid.ids.generator` builds on either of them.

A process has a life, a number that changes in each copy of the process. A generator that finds another life than its
own begins anew. Two detectors change the number after a fork: a hook of the interpreter, and a page of memory that
Linux clears in a child, so that a fork by C code is seen, too. `begin_life` is for copies that neither of them sees.
"""

from __future__ import annotations

import functools
import itertools
import math
import mmap
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgid import layout
from msgid.ids import _sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.ids.message_id import MessageId
    from msgid.ids.node import NodeChoice

_DIGITS: Final = tuple(f"{byte:02X}" for byte in range(256))
_BYTES: Final = tuple(bytes([byte]) for byte in range(256))
_WIPE_ON_FORK: Final = 18  # MADV_WIPEONFORK of Linux 4.14; the module mmap does not name it
_NO_ADVICE: Final = -1
_PATIENCE: Final = 1.0
"""Seconds after which a thread that waits for the lock looks whether it is in a forked child."""
F = TypeVar("F", bound="Callable[..., Any]")

# Why a generator begins: the argument of `Minter._start`.
FIRST: Final = 0
"""It makes its first ID."""
COPIED: Final = 1
"""The process is a copy: a forked child, or restored from a snapshot."""
BEHIND: Final = 2
"""The clock has gone back further than `_sequence.MAX_BEHIND`."""


class _SamePid:
    """A number that is 0 in forked children, for systems that cannot clear a page. A look is a system call."""

    def __init__(self) -> None:
        self[0] = 0

    def __getitem__(self, index: int) -> int:
        return self._number if self._pid == os.getpid() else 0

    def __setitem__(self, index: int, number: int) -> None:
        self._number, self._pid = number, os.getpid()


def _wiped_on_fork() -> memoryview | _SamePid:
    """Return an object whose element 0 is a number, and 0 in the children that the process forks."""
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        try:
            page.madvise(_NO_ADVICE)
        except OSError:
            page.madvise(_WIPE_ON_FORK)
            return memoryview(page).cast("Q")
    except (AttributeError, OSError):  # not on Linux, or on an old kernel
        pass
    return _SamePid()  # also if every advice is accepted: old emulators of Linux do so, and follow none


_life = _wiped_on_fork()
"""Element 0 is the life of this process; 0 in a new child."""
_lives = itertools.count(1)
_forks = 0
"""The number of forks between the process that loaded this module and this process."""
_beginning = threading.RLock()
"""Held while a generator begins."""


def begin_life() -> None:
    """Make every generator of this process begin anew with its next ID."""
    _life[0] = next(_lives)


def _begin_child() -> None:
    global _beginning, _forks
    _forks += 1
    _beginning = threading.RLock()  # another thread of the parent may have held it
    begin_life()


def this_life() -> int:
    """Return the life of this process."""
    if not _life[0]:
        _begin_child()
    return _life[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


_REALTIME_COARSE: Final = 5  # of Linux; the module time does not name it
_NEARLY_A_SECOND: Final = 0.9


_read_clock: Callable[[int], float] = getattr(time, "clock_gettime", lambda _: 0.0)


def system_clock() -> float:
    """Return the Unix time of the operating system, as the compiled minter reads it; the second is exact.

    freezegun and time-machine replace functions of `time`. On Linux, neither of them replaces the two clocks that are
    read here. The coarse clock is up to a tick behind. International Atomic Time differs from it by whole seconds, so
    its fraction tells at the end of a second whether the next second has begun.
    """
    try:
        coarse = _read_clock(_REALTIME_COARSE)
        if (fraction := coarse % 1) > _NEARLY_A_SECOND and _read_clock(time.CLOCK_TAI) % 1 < fraction:
            return math.floor(coarse) + 1
        return coarse
    except OSError:  # some sandboxes have fewer clocks
        return time.time()


_system_clock = system_clock if sys.platform == "linux" and hasattr(time, "CLOCK_TAI") else time.time


class _Start(NamedTuple):
    """How a generator began, and what all IDs since then have in common."""

    life: int
    """The life of the process in which these IDs may be made; 0 if the generator must begin."""
    first_life: int
    """The life in which the generator was made, or began."""
    forks: int
    why: int
    """Why the generator begins, unless it is a copy."""
    prefix: bytes
    choice: NodeChoice | None


class _Block:
    """Up to 256 reserved IDs of one second, with the bytes that they share.

    The caller that draws a number from ``left`` owns that number. The draw is one step of C under the interpreter's
    lock, so the fast path needs no other lock, and a signal or an exception cannot leave it half done.
    """

    __slots__ = ("head", "hex_head", "left", "life", "since", "start", "state", "until")

    def __init__(self, start: _Start, run: _sequence.SecondOfIds | None, state: _sequence.State) -> None:
        self.start = start
        self.life = start.life
        self.state = state
        """The state from which the generator continues after this block."""
        if run is None:  # an empty block, which no clock can make valid
            self.left, self.head, self.hex_head, self.since, self.until = iter(range(0)), b"", "", 0.0, -math.inf
            return
        first = run.sequences.start
        second_and_sequence = ((run.second & layout.UINT32_MASK) << 32 | first).to_bytes(8, "big")
        self.left = iter(range(first % _sequence.BLOCK, first % _sequence.BLOCK + len(run.sequences)))
        self.head = start.prefix + second_and_sequence[:-1]
        self.hex_head = self.head.hex().upper()
        behind = run.second - _sequence.MAX_BEHIND
        self.since = float(behind + layout.EPOCH_UNIX) if behind > 0 else -math.inf
        """The first Unix time, in seconds, that is not too far back."""
        self.until = float(run.second + 1 + layout.EPOCH_UNIX)
        """The Unix time, in seconds, at which the block expires."""

    def drain(self) -> _sequence.State:
        """Take all remaining IDs and return the state from before they were reserved."""
        unused = len(list(self.left))
        return self.state._replace(sequence=self.state.sequence - unused)


def _acquiring(lock: threading.RLock) -> Iterator[bool]:
    """Return an iterator that acquires a lock when it is unpacked directly before the ``try`` of the lock's release.

    It yields False if the lock is not free for `_PATIENCE` seconds.

    Python raises the error of a signal handler, such as KeyboardInterrupt, after a call. After ``lock.acquire()``, and
    on Python 3.14 after ``with lock``, nothing would then release the lock. Unpacking an iterator is not a call.
    """
    return map(lock.acquire, (True,), (_PATIENCE,))


def _exclusive(method: F) -> F:
    """Return a method that holds the generator's lock; return the method itself if the interpreter has the GIL."""
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        return method

    @functools.wraps(method)
    def locked(self: Minter, *args: Any) -> Any:
        while True:
            self._begin_anew()
            lock = self._lock
            [is_acquired] = _acquiring(lock)
            try:
                if is_acquired:
                    return method(self, *args)
            finally:
                if is_acquired:
                    lock.release()

    return locked  # type: ignore[return-value]


class Minter:
    """The part of a generator that makes IDs and handles threads, copies of the process and the clock."""

    __slots__ = ("_block", "_clock", "_id_of", "_lock")

    _block: _Block

    def _begin(
        self, id_type: type[MessageId], run_type: type[_sequence.SecondOfIds], clock: Callable[[], int] | None
    ) -> None:
        """Set the types and the clock, which returns whole Unix seconds; None means the system's clock."""
        self._id_of = id_type._of
        self._clock: Callable[[], float] = _system_clock if clock is None else clock
        # Re-entrant, because a signal handler or finalizer can mint while this thread is in _reserve.
        self._lock = threading.RLock()
        self._block = _Block(_Start(0, this_life(), _forks, FIRST, b"", None), None, _sequence.fresh(0))

    def _start(self, why: int) -> tuple[bytes, int, NodeChoice]:
        """Return the first nine bytes of all IDs to come, the first sequence number, and the choice of the node."""
        raise NotImplementedError

    def _explain(self) -> NodeChoice:
        """Return the choice of the node of the next ID."""
        while True:
            self._begin_anew()
            start = self._block.start
            if start.choice is not None:
                return start.choice

    def _begin_anew(self) -> None:
        """Begin if the generator has not yet begun in the life of this process."""
        while True:
            block, life = self._block, this_life()
            start = block.start
            if start.life == life:
                return
            prefix, first, choice = self._start(start.why if start.first_life == life else COPIED)
            lock = self._lock if start.forks == _forks else threading.RLock()
            start = _Start(life, life, _forks, FIRST, prefix, choice)
            following = _Block(start, None, _sequence.fresh(first))
            beginning = _beginning
            [is_acquired] = _acquiring(beginning)
            try:
                # Nothing is called between this comparison and the last assignment, so no handler runs.
                if is_acquired and self._block is block and _life[0] == life:
                    self._lock = lock
                    self._block = following
            finally:
                if is_acquired:
                    beginning.release()

    @_exclusive
    def generate(self) -> MessageId:
        """Return a new ID.

        Returns:
            A `MessageId`, greater as bytes than every ID that this generator has made since it began.

        >>> import msgid
        >>> msgid.generate() < msgid.generate()
        True
        """
        while True:
            block = self._block
            # A signal handler can fork while the clock is read. Nothing is called between the second look and the draw.
            if block.since <= self._clock() < block.until and block.life == _life[0]:
                for last in block.left:
                    return self._id_of(block.head + _BYTES[last])
            self._reserve(None)

    @_exclusive
    def generate_hex(self) -> str:
        """Return a new ID as its text.

        Returns:
            34 upper-case hex digits. It is faster than ``str(generate())``, which makes a `MessageId` first.

        >>> import msgid
        >>> len(msgid.generate_hex())
        34
        """
        while True:
            block = self._block
            # A signal handler can fork while the clock is read. Nothing is called between the second look and the draw.
            if block.since <= self._clock() < block.until and block.life == _life[0]:
                for last in block.left:
                    return block.hex_head + _DIGITS[last]
            self._reserve(None)

    def _reserve(self, count: int | None) -> tuple[bytes, tuple[_sequence.SecondOfIds, ...]]:
        """Reserve ``count`` IDs; for None, publish the next block, from which single calls take their IDs.

        The current block is drained first. Its unused numbers are reserved again, so the IDs keep increasing.
        """
        while True:
            self._begin_anew()
            lock = self._lock
            [is_acquired] = _acquiring(lock)
            try:
                if not is_acquired:
                    continue
                block = self._block
                start, second = block.start, math.floor(self._clock()) - layout.EPOCH_UNIX
                runs: tuple[_sequence.SecondOfIds, ...] | None = None
                if _sequence.is_behind(block.state, second):
                    following = _Block(start._replace(life=0, why=BEHIND), None, block.state)
                elif count is None:
                    run, state = _sequence.reserve_block(block.drain(), second)
                    runs, following = (run,), _Block(start, run, state)
                else:
                    runs, state = _sequence.reserve(block.drain(), second, count)
                    following = _Block(start, None, state)
                # A signal handler or finalizer can mint or fork at any point above. This result is then discarded, and
                # the loop runs again. The comparison and the assignment below call and allocate nothing, so no handler
                # can run between them.
                if self._block is block and block.life == _life[0]:
                    self._block = following
                    if runs is not None:
                        return start.prefix, runs
            finally:
                if is_acquired:
                    lock.release()
