"""Generators: where ids are minted, with their node, their process and their clock.

`msgid.ids._sequence` is the pure rule of seconds and sequence numbers. A minter (`msgid.ids._pure_minter`, or its
compiled twin) applies it safely across threads and signals. A generator adds the node, the process and fork handling.
"""

from __future__ import annotations

import math
import os
import weakref
from typing import TYPE_CHECKING, Final, NoReturn, final

from msgid import layout
from msgid._validate import INT64_MAX, integer, quote
from msgid.ids import _pure_minter
from msgid.ids._native import native
from msgid.ids._sequence import Run
from msgid.ids.batch import IdBatch
from msgid.ids.message_id import MessageId
from msgid.ids.node import NodeChoice, find_node, read_node

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Generator", "explain_node", "generate", "generate_batch", "generate_hex"]

if TYPE_CHECKING or native is None:
    Minter = _pure_minter.Minter
else:
    Minter = native.Minter

_CLOCK_LIMIT: Final = 1 << 53  # where a float no longer tells neighbouring seconds apart

_alive: weakref.WeakSet[Generator] = weakref.WeakSet()


@final
class Generator(Minter):
    """Mints version-1 ids. No two ids of one generator are equal, and they strictly increase as bytes.

    That holds across threads, in signal handlers, after ``fork``, when the clock stands still or goes back and when
    the sequence wraps (the table in `msgid.ids._sequence` lists the cases). Ids of different generators are told apart
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
    __slots__ = ("__weakref__", "_choice", "_pid")

    def __init__(
        self,
        node: int | bytes | str | None = None,
        pid: int | None = None,
        clock: Callable[[], float] | None = None,
        sequence: int | None = None,
    ) -> None:
        self._choice: NodeChoice | None = None if node is None else read_node(node)
        self._pid: int | None = None if pid is None else integer("pid", pid, 0, INT64_MAX)
        first = _random_start() if sequence is None else integer("sequence", sequence, 0, layout.UINT32_MASK)
        self._begin(MessageId, Run, None if clock is None else _checked(clock), first)
        _alive.add(self)

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

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        # copy.copy, copy.deepcopy and pickle all come here.
        raise TypeError("cannot copy a Generator: the copy would repeat its IDs; make a new Generator instead")

    def _find_prefix(self) -> bytes:
        node = self.explain_node().node
        pid = (os.getpid() if self._pid is None else self._pid) & layout.PID_MAX
        return layout.pack(node, pid, 0, 0)[: layout.PREFIX_LENGTH]

    def _after_fork_in_child(self) -> None:
        self._pid = None
        self._restart(_random_start())


def _checked(clock: Callable[[], float]) -> Callable[[], int]:
    """Wrap a clock that is handed in: whole seconds, and what is no time is an error here and nowhere further in."""
    if not callable(clock):
        raise TypeError(f"clock must be a function giving Unix seconds, not {quote(clock)}")

    def checked() -> int:
        now = clock()
        try:
            if -_CLOCK_LIMIT < now < _CLOCK_LIMIT:  # false for NaN
                return math.floor(now)
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
