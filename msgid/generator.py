"""Generators: where ids are minted, with their lock, their clock and their process.

The rule itself is pure and lives in `msgid.minting`; here it meets threads, forks and the clock.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar, final

from msgid import layout, minting
from msgid.batch import IdBatch
from msgid.errors import quote
from msgid.identifier import MessageId
from msgid.node import NodeChoice, find_node, read_node
from msgid.strict import integer

__all__ = ["Generator", "explain_node", "generate", "generate_batch", "generate_hex"]

_DIGITS: Final = tuple(f"{byte:02X}" for byte in range(256))
_BYTES: Final = tuple(bytes([byte]) for byte in range(256))
_CLOCK_LIMIT: Final = 1 << 53  # where a float no longer tells neighbouring seconds apart

F = TypeVar("F", bound=Callable[..., Any])


class _Block:
    """Up to 256 ids of one second, waiting to be taken: all they share is written out already.

    Whoever draws a number from ``left`` owns it. That is one step of C under the interpreter's lock, so the hot path
    needs no lock of its own, and nothing can be left half done by a signal or an exception.
    """

    __slots__ = ("head", "hex_head", "left", "state", "until")

    def __init__(self, prefix: bytes, run: minting.Run | None, state: minting.State) -> None:
        self.state = state
        """Where the generator goes on when the block is used up."""
        if run is None:  # nothing to take, and no time at which there would be
            self.left, self.head, self.hex_head, self.until = iter(range(0)), b"", "", -math.inf
            return
        first = run.sequences.start
        place = ((run.second & layout.UINT32_MASK) << 32 | first).to_bytes(8, "big")
        self.left = iter(range(first % minting.BLOCK, first % minting.BLOCK + len(run.sequences)))
        self.head = prefix + place[:-1]
        self.hex_head = self.head.hex().upper()
        self.until = float(run.second + 1 + layout.EPOCH_UNIX)
        """The Unix time from which on the block is of the past."""

    def drain(self) -> minting.State:
        """Take all that is left, so that nobody else can, and give the state as if it had never been reserved."""
        unused = len(list(self.left))
        return self.state._replace(sequence=self.state.sequence - unused)


def _exclusive(method: F) -> F:
    """Take the generator's lock around a method where the interpreter has none of its own (free-threaded builds)."""

    @functools.wraps(method)
    def locked(self: Generator, *args: Any) -> Any:
        with self._lock:
            return method(self, *args)

    return locked  # type: ignore[return-value]


def _exclusive_if_free_threaded(method: F) -> F:
    return method if getattr(sys, "_is_gil_enabled", lambda: True)() else _exclusive(method)


_alive: weakref.WeakSet[Generator] = weakref.WeakSet()


@final
class Generator:
    """Mints version-1 ids. No two ids of one generator are equal, and they strictly increase as bytes.

    That holds across threads, in signal handlers, after ``fork``, when the clock stands still or goes back and when
    the sequence wraps (the table in `msgid.minting` says what each does). Ids of different generators are told apart
    by node and pid, and by a first sequence drawn at random where those repeat: containers, cut-off pids, cloned
    machines.

    After ``fork`` the child's copy takes the child's own pid and a new random sequence, whatever was handed in, as
    the two processes would mint the same ids otherwise; the parent's is untouched.

    Args:
        node: 48 bits as an int, 6 bytes, ``"aa:bb:cc:dd:ee:ff"`` or ``"random"``. Default: the environment variable
            ``MSGID_NODE``, else a network card of this machine, else random bits (see `explain_node`); looked for at
            the first id.
        pid: the process id; its low 16 bits are taken. Default: `os.getpid`.
        clock: a function giving Unix seconds, as `time.time` does, which is the default.
        sequence: the first sequence number, 0 to 2**32 - 1. Default: random below 2**31. RocketMQ's own clients
            start at 0, and two of their processes with the same node and pid, started in the same second, mint the
            same ids.

    Raises:
        TypeError, ValueError: an argument is of the wrong type or out of range.

    >>> g = Generator(node="56:f7:e7:1c:36:1b", pid=8636, clock=lambda: 1648047038, sequence=0)
    >>> g.generate_hex(), g.generate().sequence, len(g.generate_batch(10))
    ('0156F7E71C361B21BC024CCDBE00000000', 1, 10)
    """

    __module__ = "msgid"
    __slots__ = ("__weakref__", "_block", "_choice", "_clock", "_lock", "_pid", "_prefix")

    def __init__(
        self,
        node: int | bytes | str | None = None,
        pid: int | None = None,
        clock: Callable[[], float] | None = None,
        sequence: int | None = None,
    ) -> None:
        self._choice: NodeChoice | None = None if node is None else read_node(node)
        self._pid: int | None = None if pid is None else integer("pid", pid, 0, (1 << 63) - 1)
        self._clock: Callable[[], float] = time.time if clock is None else _checked(clock)
        # Re-entrant: a signal handler or a finalizer may mint while this very thread is at it (see _reserve).
        self._lock = threading.RLock()
        self._prefix = b""  # found at the first id
        first = _random_start() if sequence is None else integer("sequence", sequence, 0, layout.UINT32_MASK)
        self._block = _Block(b"", None, minting.fresh(first))
        _alive.add(self)

    @_exclusive_if_free_threaded
    def generate(self) -> MessageId:
        """Mint one id.

        >>> import msgid
        >>> msgid.generate() < msgid.generate()
        True
        """
        while True:
            block = self._block
            if self._clock() < block.until:
                for last in block.left:
                    return MessageId._of(block.head + _BYTES[last])
            self._reserve(None)

    @_exclusive_if_free_threaded
    def generate_hex(self) -> str:
        """Mint one id as its text, 34 upper-case hex digits, without making a `MessageId` of it.

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

    def generate_batch(self, n: int) -> IdBatch:
        """Mint ``n`` neighbouring ids at once, 0 to 2**32.

        Raises:
            TypeError: ``n`` is not an integer.
            ValueError: ``n`` is below 0 or above 2**32.

        >>> import msgid
        >>> len(msgid.generate_batch(1000).to_bytes())
        17000
        """
        return IdBatch(*self._reserve(integer("n", n, 0, layout.UINT32_SPAN)))

    def explain_node(self) -> NodeChoice:
        """Say which node this generator stamps on its ids, from where, and what was passed over and why.

        >>> Generator(node="02:00:5e:10:00:01").explain_node().mac
        '02:00:5e:10:00:01'
        """
        return find_node() if self._choice is None else self._choice

    def _reserve(self, count: int | None) -> tuple[bytes, tuple[minting.Run, ...]]:
        """Take ``count`` ids off the generator; None: put the next block out for the single calls to take from.

        The block that was out is drained first: its numbers are given back, and what comes next is above them.
        """
        with self._lock:
            while True:
                block = self._block
                second = math.floor(self._clock()) - layout.EPOCH_UNIX
                prefix = self._prefix or self._find_prefix()
                runs: tuple[minting.Run, ...]
                if count is None:
                    run, state = minting.reserve_block(block.drain(), second)
                    runs, following = (run,), _Block(prefix, run, state)
                else:
                    runs, state = minting.reserve(block.drain(), second, count)
                    following = _Block(prefix, None, state)
                # A signal handler or finalizer that minted in between has put another block out: what was reckoned
                # from this one is dropped, and reckoned again. Between this comparison and the store nothing is
                # called or allocated, so nothing can come in between.
                if self._block is block:
                    self._block = following
                    return prefix, runs

    def _find_prefix(self) -> bytes:
        node = self.explain_node().node
        pid = (os.getpid() if self._pid is None else self._pid) & layout.PID_MAX
        self._prefix = layout.pack(node, pid, 0, 0)[: layout.PREFIX_LENGTH]
        return self._prefix

    def _after_fork_in_child(self) -> None:
        self._lock = threading.RLock()  # another thread of the parent's may have held it, and is not here
        self._pid, self._prefix = None, b""
        self._block = _Block(b"", None, minting.fresh(_random_start()))


def _checked(clock: Callable[[], float]) -> Callable[[], float]:
    """Wrap a clock that is handed in, so that what is no time is an error here and nowhere further in."""
    if not callable(clock):
        raise TypeError(f"clock must be a function giving Unix seconds, not {quote(clock)}")

    def checked() -> float:
        now = clock()
        try:
            if -_CLOCK_LIMIT < now < _CLOCK_LIMIT:  # false for NaN
                return now
        except TypeError:
            pass
        raise ValueError(f"the clock must give Unix seconds, not {quote(now)}")

    return checked


def _random_start() -> int:
    return int.from_bytes(os.urandom(4), "big") >> 1


def _after_fork_in_child() -> None:
    for generator in list(_alive):
        generator._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

_default = Generator()
generate = _default.generate
generate_hex = _default.generate_hex
generate_batch = _default.generate_batch
explain_node = _default.explain_node
