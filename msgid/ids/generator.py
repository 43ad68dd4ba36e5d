"""Generators: make new IDs from a node, a process ID, a clock and a counter.

`msgid.ids._sequence` is the pure rule of seconds and sequence numbers. A minter (`msgid.ids._pure_minter`, or its
compiled twin) applies it safely across threads and signals. A generator adds the node, the process and fork handling.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final, final

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

if TYPE_CHECKING or native is None:
    Minter = _pure_minter.Minter
else:
    Minter = native.Minter

_CLOCK_LIMIT: Final = 1 << 53  # from here on, neighbouring seconds are equal as floats


@final
class Generator(Minter):
    """Makes version-1 IDs. IDs of one generator are never equal, and their bytes strictly increase.

    This holds across threads, in signal handlers, after ``fork``, with a clock that stands still or goes back, and
    when the sequence wraps. The table in `msgid.ids._sequence` lists the cases. IDs of different generators differ in
    node and pid. Where those repeat (containers, 16-bit pids, cloned machines), the random first sequence number
    separates them.

    After ``fork``, the copy in the child process uses the child's pid and a new random sequence number, even if the
    arguments set them: both processes would otherwise make the same IDs. The parent's generator does not change.

    Args:
        node: 48 bits as an int, 6 bytes, ``"aa:bb:cc:dd:ee:ff"`` or ``"random"``. Default: the environment variable
            ``MSGID_NODE``, else the address of a network card of this machine, else random bits (see `explain_node`).
            The default is looked up when the first ID is made.
        pid: Process ID; an ID holds its low 16 bits. Default: `os.getpid`.
        clock: Function that returns Unix seconds. Default: `time.time`.
        sequence: First sequence number, 0 to 2**32 - 1. Default: random below 2**31. RocketMQ's own clients start at 0,
            so two of their processes with the same node, pid and start second make the same IDs.

    Raises:
        TypeError, ValueError: if an argument has the wrong type or is out of range.

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

    def generate_batch(self, n: int) -> IdBatch:
        """Return ``n`` consecutive new IDs.

        Args:
            n: Number of IDs, 0 to 2**32.

        Returns:
            An `IdBatch`, a sequence of `MessageId`.

        Raises:
            TypeError: if ``n`` is not an integer.
            ValueError: if ``n`` is below 0 or above 2**32.

        >>> import msgid
        >>> len(msgid.generate_batch(1000).to_bytes())
        17000
        """
        return IdBatch(*self._reserve(integer("n", n, 0, layout.UINT32_SPAN)))

    def explain_node(self) -> NodeChoice:
        """Return the node of a generator's IDs, its source, and each rejected candidate with the reason.

        `msgid.explain_node` explains the node of `msgid.generate`.

        Raises:
            ValueError: if the environment variable ``MSGID_NODE`` is neither a MAC address nor ``random``.

        >>> Generator(node="02:00:5e:10:00:01").explain_node().mac
        '02:00:5e:10:00:01'
        """
        return find_node() if self._choice is None else self._choice

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[], Generator], tuple[()]]:
        # copy.copy, copy.deepcopy and pickle all call this method.
        if self is _default:  # so that `generate` and the other functions of `msgid` can be passed to another process
            return _default_generator, ()
        raise TypeError("cannot copy a Generator: the copy would repeat its IDs; make a new Generator instead")

    def _find_prefix(self) -> bytes:
        node = self.explain_node().node
        pid = (os.getpid() if self._pid is None else self._pid) & layout.PID_MAX
        return layout.pack(node, pid, 0, 0)[: layout.PREFIX_LENGTH]

    def _forget_process(self) -> int:
        self._pid = None
        return _random_start()


def _checked(clock: Callable[[], float]) -> Callable[[], int]:
    """Return a clock that gives whole seconds and raises an error for an invalid time."""
    if not callable(clock):
        raise TypeError(f"clock must be a function that returns Unix seconds, got {quote(clock)}")

    def checked() -> int:
        now = clock()
        try:
            if -_CLOCK_LIMIT < now < _CLOCK_LIMIT:  # false for NaN
                return math.floor(now)
        except TypeError:
            pass
        raise ValueError(f"clock must return Unix seconds, got {quote(now)}")

    return checked


def _random_start() -> int:
    return int.from_bytes(os.urandom(4), "big") >> 1


def _default_generator() -> Generator:
    return _default


_default = Generator()
generate = _default.generate
"""``generate()`` returns a new `MessageId` of the default generator of this process; see `Generator.generate`."""
generate_hex = _default.generate_hex
"""``generate_hex()`` returns the text of a new ID of the default generator; see `Generator.generate_hex`."""
generate_batch = _default.generate_batch
"""``generate_batch(n)`` returns ``n`` new IDs of the default generator; see `Generator.generate_batch`."""
explain_node = _default.explain_node
"""``explain_node()`` returns the node of the default generator's IDs, and why it was chosen; see `NodeChoice`."""
