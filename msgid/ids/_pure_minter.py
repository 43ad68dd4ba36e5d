"""The pure-Python minter: where the rule of `msgid.ids._sequence` meets threads, signals and the clock.

It is the reference that the compiled one in ``_speedups.c`` is held to; `msgid.ids.generator` builds on either.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgid import layout
from msgid.ids import _sequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgid.ids.message_id import MessageId

__all__ = ["Minter"]

_DIGITS: Final = tuple(f"{byte:02X}" for byte in range(256))
_BYTES: Final = tuple(bytes([byte]) for byte in range(256))
F = TypeVar("F", bound="Callable[..., Any]")


class _Block:
    """Up to 256 ids of one second, waiting to be taken: all they share is written out already.

    Whoever draws a number from ``left`` owns it. That is one step of C under the interpreter's lock, so the hot path
    needs no lock of its own, and nothing can be left half done by a signal or an exception.
    """

    __slots__ = ("head", "hex_head", "left", "state", "until")

    def __init__(self, prefix: bytes, run: _sequence.Run | None, state: _sequence.State) -> None:
        self.state = state
        """Where the generator goes on when the block is used up."""
        if run is None:  # nothing to take, and no time at which there would be
            self.left, self.head, self.hex_head, self.until = iter(range(0)), b"", "", -math.inf
            return
        first = run.sequences.start
        place = ((run.second & layout.UINT32_MASK) << 32 | first).to_bytes(8, "big")
        self.left = iter(range(first % _sequence.BLOCK, first % _sequence.BLOCK + len(run.sequences)))
        self.head = prefix + place[:-1]
        self.hex_head = self.head.hex().upper()
        self.until = float(run.second + 1 + layout.EPOCH_UNIX)
        """The Unix time from which on the block is of the past."""

    def drain(self) -> _sequence.State:
        """Take all that is left, so that nobody else can, and give the state as if it had never been reserved."""
        unused = len(list(self.left))
        return self.state._replace(sequence=self.state.sequence - unused)


def _exclusive(method: F) -> F:
    """Return a method that holds the generator's lock, or the method itself where the interpreter has a lock."""
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        return method

    @functools.wraps(method)
    def locked(self: Minter, *args: Any) -> Any:
        with self._lock:
            return method(self, *args)

    return locked  # type: ignore[return-value]


class Minter:
    """Hands out ids: the part of a generator that meets threads and the clock."""

    __slots__ = ("_block", "_clock", "_id_of", "_lock", "_prefix")

    def _begin(
        self, id_type: type[MessageId], run_type: type[_sequence.Run], clock: Callable[[], int] | None, first: int
    ) -> None:
        """Take what every id needs: the types, a clock giving whole Unix seconds (None: the system's), the start."""
        self._id_of = id_type._of
        self._clock: Callable[[], float] = time.time if clock is None else clock
        self._restart(first)

    def _restart(self, first: int) -> None:
        """Begin anew, as in a forked child: another thread of the parent's may have held the lock, and is not here."""
        # Re-entrant: a signal handler or a finalizer may mint while this very thread is at it (see _reserve).
        self._lock = threading.RLock()
        self._prefix = b""  # found at the first id
        self._block = _Block(b"", None, _sequence.fresh(first))

    def _find_prefix(self) -> bytes:
        """Give the version, node and pid that all ids of this process begin with; the generator knows."""
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
            if self._clock() < block.until:
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
            if self._clock() < block.until:
                for last in block.left:
                    return block.hex_head + _DIGITS[last]
            self._reserve(None)

    def _reserve(self, count: int | None) -> tuple[bytes, tuple[_sequence.Run, ...]]:
        """Take ``count`` ids off the generator; None: put the next block out for the single calls to take from.

        The block that was out is drained first: its numbers are given back, and what comes next is above them.
        """
        with self._lock:
            while True:
                block = self._block
                second = math.floor(self._clock()) - layout.EPOCH_UNIX
                self._prefix = prefix = self._prefix or self._find_prefix()
                runs: tuple[_sequence.Run, ...]
                if count is None:
                    run, state = _sequence.reserve_block(block.drain(), second)
                    runs, following = (run,), _Block(prefix, run, state)
                else:
                    runs, state = _sequence.reserve(block.drain(), second, count)
                    following = _Block(prefix, None, state)
                # A signal handler or finalizer that minted in between has put another block out: what was reckoned
                # from this one is dropped, and reckoned again. Between this comparison and the store nothing is
                # called or allocated, so nothing can come in between.
                if self._block is block:
                    self._block = following
                    return prefix, runs
