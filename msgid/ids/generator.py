"""Generators: make new IDs from a node, a process ID, a clock and a counter.

`msgid.ids._sequence` is the pure rule of seconds and sequence numbers. A minter (`msgid.ids._pure_minter`, or its
compiled twin) applies it safely across threads, signals and copies of a process. A generator adds the node, the pid and
the first sequence number.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final, final

from msgid import layout
from msgid.ids import _pure_minter
from msgid.ids._native import native
from msgid.ids._sequence import SecondOfIds
from msgid.ids.batch import IdBatch
from msgid.ids.message_id import MessageId
from msgid.ids.node import NodeChoice, find_node, note_copies, random_node, read_node
from msgid.shared.validate import INT64_MAX, integer, quote

if TYPE_CHECKING:
    from collections.abc import Callable

if TYPE_CHECKING or native is None:
    Minter = _pure_minter.Minter
    _begin_life = _pure_minter.begin_life
else:
    Minter = native.Minter
    _begin_life = native.begin_life

_CLOCK_LIMIT: Final = 1 << 53  # from here on, neighbouring seconds are equal as floats


@final
class Generator(Minter):
    """Makes version-1 IDs. IDs of one generator are never equal, and their bytes strictly increase.

    This holds across threads, in signal handlers, after ``fork``, with a clock that stands still or goes back, and
    when the sequence wraps. The table in `msgid.ids._sequence` lists the cases.

    Only the functions of `msgid` use a MAC address by default, and only where the address and the pid name one process.
    A `Generator` has random bits as its node, which differ from generator to generator. If you name a node, also by
    ``MSGID_NODE``, only one generator per process may have it.

    A generator begins anew, with its next ID, in a copy of the process: a forked child, or after `reseed`. It then uses
    the pid of the process and a new random sequence number, even if the arguments set them, and new random bits if it
    has such a node. The parent's generator does not change. A generator also begins anew if the clock has gone back by
    more than a day, then always with random bits as its node. IDs before and after such a begin do not compare.

    Args:
        node: 48 bits as an int, 6 bytes, ``"aa:bb:cc:dd:ee:ff"``, ``"mac"`` or ``"random"``. Default: the environment
            variable ``MSGID_NODE``, which takes the same texts, else random bits. ``"mac"`` is the address of a network
            card of this machine, and random bits if none identifies it (see `explain_node`).
        pid: Process ID; an ID holds its low 16 bits. Default: `os.getpid`.
        clock: Function that returns Unix seconds. Default: the clock of the operating system, which test clocks such as
            freezegun and time-machine do not stop. Pass ``clock=lambda: time.time()`` to use theirs.
        sequence: First sequence number, 0 to 2**32 - 1. Default: random below 2**31. RocketMQ's own clients start at 0,
            so two of their processes with the same node, pid and start second make the same IDs.

    Raises:
        TypeError, ValueError: if an argument has the wrong type or is out of range, or the node is a multicast address.

    >>> g = Generator(node="56:f7:e7:1c:36:1b", pid=8636, clock=lambda: 1648047038, sequence=0)
    >>> g.generate_hex(), g.generate().sequence, len(g.generate_batch(10))
    ('0156F7E71C361B21BC024CCDBE00000000', 1, 10)
    """

    __module__ = "msgid"
    __slots__ = ("__weakref__", "_node", "_pid", "_sequence")

    def __init__(
        self,
        node: int | bytes | str | None = None,
        pid: int | None = None,
        clock: Callable[[], float] | None = None,
        sequence: int | None = None,
    ) -> None:
        self._node: int | str | None = None if node is None else read_node(node)
        self._pid: int | None = None if pid is None else integer("pid", pid, 0, INT64_MAX)
        self._sequence: int | None = None if sequence is None else integer("sequence", sequence, 0, layout.UINT32_MASK)
        self._begin(MessageId, SecondOfIds, None if clock is None else _checked(clock))

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
            ValueError: if the environment variable ``MSGID_NODE`` is not one of the texts that `Generator` takes.

        >>> Generator(node="02:00:5e:10:00:01").explain_node().mac
        '02:00:5e:10:00:01'
        """
        return self._explain()

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[], Generator], tuple[()]]:
        # copy.copy, copy.deepcopy and pickle all call this method.
        if self is _default:  # so that `generate` and the other functions of `msgid` can be passed to another process
            return _default_generator, ()
        raise TypeError("cannot copy a Generator: the copy would repeat its IDs; make a new Generator instead")

    def _start(self, why: int) -> tuple[bytes, int, NodeChoice]:
        is_first = why == _pure_minter.FIRST
        if why == _pure_minter.BEHIND:
            choice = NodeChoice(random_node(), "random", "random bits: the clock has gone back by more than a day")
        else:
            choice = find_node(self._node, is_default=self is _default)
        pid = self._pid if is_first and self._pid is not None else os.getpid()
        first = self._sequence if is_first and self._sequence is not None else _random_start()
        return layout.pack(choice.node, pid & layout.PID_MAX, 0, 0)[: layout.PREFIX_LENGTH], first, choice


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


def reseed() -> None:
    """Make every generator of this process begin anew with its next ID, as in a forked child, and use no MAC address.

    A node that the caller or ``MSGID_NODE`` names stays. Call it in each copy after a snapshot of the process or
    machine was restored: copies have the same pid and counters, so they make the same IDs otherwise. A fork needs no
    call. In AWS Lambda with SnapStart, `msgid` registers it with ``snapshot_restore_py.register_after_restore``.

    >>> import msgid
    >>> before = msgid.generate()
    >>> msgid.reseed()
    >>> msgid.generate().node == before.node
    False
    """
    note_copies()
    _begin_life()


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
"""``explain_node()`` returns the node of the default generator's IDs, and the ``reason`` why it was chosen."""

try:
    from snapshot_restore_py import register_after_restore  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    pass
else:
    register_after_restore(reseed)
