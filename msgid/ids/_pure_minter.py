"""The pure-Python minter, which applies the rule of `msgid.ids._sequence` safely across threads and signals.

It is the reference for the compiled minter in ``_speedups.c``. `msgid.ids.generator` builds on either of them.
"""

from __future__ import annotations

import functools
import math
import mmap
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgid import layout
from msgid.ids import _sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.ids.message_id import MessageId

_DIGITS: Final = tuple(f"{byte:02X}" for byte in range(256))
_BYTES: Final = tuple(bytes([byte]) for byte in range(256))
_WIPE_ON_FORK: Final = 18  # MADV_WIPEONFORK of Linux 4.14; the module mmap does not name it
_PATIENCE: Final = 1.0
"""Seconds after which a thread that waits for the lock looks whether it is in a forked child."""
F = TypeVar("F", bound="Callable[..., Any]")


class _Block:
    """Up to 256 reserved IDs of one second, with the bytes that they share.

    The caller that draws a number from ``left`` owns that number. The draw is one step of C under the interpreter's
    lock, so the fast path needs no other lock, and a signal or an exception cannot leave it half done.
    """

    __slots__ = ("head", "hex_head", "left", "process", "state", "until")

    def __init__(
        self, process: mmap.mmap | _SamePid, prefix: bytes, run: _sequence.Run | None, state: _sequence.State
    ) -> None:
        self.process = process
        """The process whose IDs these are."""
        self.state = state
        """The state from which the generator continues after this block."""
        if run is None:  # an empty block, which no clock can make valid
            self.left, self.head, self.hex_head, self.until = iter(range(0)), b"", "", -math.inf
            return
        first = run.sequences.start
        place = ((run.second & layout.UINT32_MASK) << 32 | first).to_bytes(8, "big")
        self.left = iter(range(first % _sequence.BLOCK, first % _sequence.BLOCK + len(run.sequences)))
        self.head = prefix + place[:-1]
        self.hex_head = self.head.hex().upper()
        self.until = float(run.second + 1 + layout.EPOCH_UNIX)
        """The Unix time, in seconds, at which the block expires."""

    def drain(self) -> _sequence.State:
        """Take all remaining IDs and return the state from before they were reserved."""
        unused = len(list(self.left))
        return self.state._replace(sequence=self.state.sequence - unused)


class _SamePid:
    """The process that made this object, for systems that cannot clear a page at a fork. A look is a system call."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def __getitem__(self, index: int) -> bool:
        return self._pid == os.getpid()


def _this_process() -> mmap.mmap | _SamePid:
    """Return an object whose element 0 is true in this process, and false in the children that it forks.

    The kernel clears the page in a child, so this holds for a fork by C code too, which runs no fork hook of Python.
    """
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_WIPE_ON_FORK)
    except (AttributeError, OSError):  # not on Linux, or on an old kernel
        return _SamePid()
    page[0] = 1
    return page


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
            self._begin_process()
            lock = self._lock
            [held] = _acquiring(lock)
            try:
                if held:
                    return method(self, *args)
            finally:
                if held:
                    lock.release()

    return locked  # type: ignore[return-value]


class Minter:
    """The part of a generator that makes IDs and handles threads and the clock."""

    __slots__ = ("_block", "_clock", "_id_of", "_lock", "_prefix")

    _block: _Block

    def _begin(
        self, id_type: type[MessageId], run_type: type[_sequence.Run], clock: Callable[[], int] | None, first: int
    ) -> None:
        """Set the types, the clock and the first sequence number.

        The clock returns whole Unix seconds; None means the system's clock.
        """
        self._id_of = id_type._of
        self._clock: Callable[[], float] = time.time if clock is None else clock
        self._restart(None, first)

    def _restart(self, before: _Block | None, first: int) -> None:
        # Re-entrant, because a signal handler or finalizer can mint while this thread is in _reserve.
        lock, block = threading.RLock(), _Block(_this_process(), b"", None, _sequence.fresh(first))
        # Nothing is called between this comparison and the last assignment, so no other thread and no handler runs.
        if before is None or self._block is before:
            self._lock = lock
            self._prefix = b""  # set when the first IDs are reserved
            self._block = block

    def _begin_process(self) -> None:
        """Start again in a forked child, with its own pid, sequence and lock."""
        block = self._block
        if not block.process[0]:
            self._restart(block, self._forget_process())

    def _forget_process(self) -> int:
        """Forget what belongs to the parent process, and return the first sequence number of this process."""
        raise NotImplementedError

    def _find_prefix(self) -> bytes:
        """Return the version, node and pid with which all IDs of this process begin."""
        raise NotImplementedError

    @_exclusive
    def generate(self) -> MessageId:
        """Return a new ID.

        Returns:
            A `MessageId`, greater as bytes than every ID that this generator has made before.

        >>> import msgid
        >>> msgid.generate() < msgid.generate()
        True
        """
        while True:
            block = self._block
            # A signal handler can fork while the clock is read. Nothing is called between the second look and the draw.
            if self._clock() < block.until and block.process[0]:
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
            if self._clock() < block.until and block.process[0]:
                for last in block.left:
                    return block.hex_head + _DIGITS[last]
            self._reserve(None)

    def _reserve(self, count: int | None) -> tuple[bytes, tuple[_sequence.Run, ...]]:
        """Reserve ``count`` IDs; for None, publish the next block, from which single calls take their IDs.

        The current block is drained first. Its unused numbers are reserved again, so the IDs keep increasing.
        """
        while True:
            self._begin_process()
            lock = self._lock
            [held] = _acquiring(lock)
            try:
                if not held:
                    continue
                block = self._block
                second = math.floor(self._clock()) - layout.EPOCH_UNIX
                prefix = self._prefix or self._find_prefix()
                runs: tuple[_sequence.Run, ...]
                if count is None:
                    run, state = _sequence.reserve_block(block.drain(), second)
                    runs, following = (run,), _Block(block.process, prefix, run, state)
                else:
                    runs, state = _sequence.reserve(block.drain(), second, count)
                    following = _Block(block.process, prefix, None, state)
                # A signal handler or finalizer can mint or fork at any point above. This result is then discarded, and
                # the loop runs again. The comparison and the assignment below call and allocate nothing, so no handler
                # can run between them.
                if self._block is block and block.process[0]:
                    self._prefix = prefix
                    self._block = following
                    return prefix, runs
            finally:
                if held:
                    lock.release()
