"""The world of generators: processes that fork, clocks that go back and stand still, and sequences that wrap.

The generators are those of the pure-Python reference, so that a fork is a copy in this process: the copy has the
parent's state, another pid, and the flag that the kernel clears in a child.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING
from unittest import mock

from helpers.backends import backend

from simulation.scheduler import SECOND, Operation, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulation.scheduler import Scheduler

NODE = 0x02_42_AC_11_00_02
METHODS = ("generate", "generate_hex", "batch")
WRAP = 1 << 32


class Process:
    """One simulated process with its generators."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.life = 0
        self.minters: list[Minter] = []


class Minter:
    """A generator, and the last ID that it made."""

    def __init__(self, generator: object, last: bytes | None = None) -> None:
        self.generator = generator
        self.last = last


class Life:
    """The page of a process, which the kernel clears in its children."""

    def __init__(self, world: Generators) -> None:
        self.world = world

    def __getitem__(self, index: int) -> int:
        return self.world.running.life

    def __setitem__(self, index: int, life: int) -> None:
        self.world.running.life = life


class Generators:
    """Processes of one node that make IDs; several can have one pid, as in containers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.made: set[bytes] = set()
        self.new: list[tuple[Minter, list[bytes]]] = []
        self.starts = 0
        self.wrapping = scheduler.random.randrange(1, 6)
        self.depth = 0
        self._backend = backend("python")
        self.msgid = self._backend.__enter__()
        from msgid.ids import _pure_minter, generator

        self._patches = [
            mock.patch.object(_pure_minter, "_life", Life(self)),
            mock.patch.object(generator, "_random_start", self._random_start),
            mock.patch.object(generator, "random_node", self._random_node),
            mock.patch.object(generator.os, "getpid", self._getpid),
        ]
        for patch in self._patches:
            patch.start()
        self.running = Process(1)
        self.processes = [self.running]
        self._add()

    def operations(self) -> Sequence[Operation]:
        """Return the operations that are possible now."""
        found = [
            Operation(20, "mint", self._mint),
            Operation(3, "move the clock", self.scheduler.move_clock),
            Operation(1, "new generator", self._add),
        ]
        if len(self.processes) < 8:
            found.append(Operation(2, "fork", self._fork))
            found.append(Operation(1, "new container", self._start_container))
        if len(self.processes) > 1:
            found.append(Operation(1, "end of a process", self._end))
        return found

    def check(self) -> None:
        """No ID is made twice, and the IDs of a generator increase on one node."""
        for minter, made in self.new:
            for raw in made:
                if raw in self.made:
                    raise Violation(f"{raw.hex().upper()} was made before")
                begins = minter.last is None or raw[:7] != minter.last[:7]  # anew, if the clock has gone far back
                if not begins and raw <= minter.last:
                    raise Violation(f"{raw.hex().upper()} is not after {minter.last.hex().upper()}")
                self.made.add(raw)
                minter.last = raw
        self.new = []

    def finish(self) -> None:
        """Every process still makes IDs."""
        for process in self.processes:
            self.running = process
            self._mint_here()
            self.check()

    def close(self) -> None:
        """Use the installed backend again."""
        for patch in self._patches:
            patch.stop()
        self._backend.__exit__(None, None, None)

    def _random_start(self) -> int:
        # Random starts are far from each other, here for certain. One is near the wrap.
        self.starts += 1
        return WRAP - 700 if self.starts == self.wrapping else self.starts << 20

    def _random_node(self) -> int:
        return 0x03 << 40 | self.scheduler.random.getrandbits(40)

    def _getpid(self) -> int:
        return self.running.pid

    def _clock(self) -> float:
        # A signal handler can mint while the clock is read.
        if self.depth < 2 and self.scheduler.chance(0.05):
            self.depth += 1
            self._mint_here()
            self.depth -= 1
        return self.scheduler.now / SECOND

    def _add(self) -> None:
        self.running.minters.append(Minter(self.msgid.Generator(node=NODE, clock=self._clock)))

    def _mint(self) -> None:
        self.running = self.scheduler.random.choice(self.processes)
        self._mint_here()

    def _mint_here(self) -> None:
        process = self.running
        minter = self.scheduler.random.choice(process.minters)
        how = self.scheduler.random.choice(METHODS)
        if how == "batch":
            count = self.scheduler.random.choice([0, 1, 2, 255, 256, 257, 700])
            made = [bytes(id) for id in minter.generator.generate_batch(count)]
        elif how == "generate":
            made = [bytes(minter.generator.generate())]
        else:
            made = [bytes.fromhex(minter.generator.generate_hex())]
        self.scheduler.note(f"  {process.pid}: {len(made)} of {how}, the first {made[0].hex() if made else None}")
        # The IDs of a nested call can be between those of two calls, but not within one.
        self.new.append((minter, made))

    def _fork(self) -> None:
        parent = self.scheduler.random.choice(self.processes)
        # The child can get any free pid, also one that was used before.
        taken = {process.pid for process in self.processes}
        child = Process(
            next(pid for pid in iter(lambda: self.scheduler.random.randrange(2, 30), 0) if pid not in taken)
        )
        for minter in parent.minters:
            self.running = parent
            child.minters.append(Minter(_copied(minter.generator)))
        self.processes.append(child)

    def _start_container(self) -> None:
        self.running = Process(1)
        self.processes.append(self.running)
        self._add()

    def _end(self) -> None:
        self.processes.remove(self.scheduler.random.choice(self.processes))
        self.running = self.processes[0]


def _copied(generator: object) -> object:
    """Return the generator as it is in the memory of a forked child."""
    child = object.__new__(type(generator))
    for kind in type(generator).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if name != "__weakref__":
                setattr(child, name, getattr(generator, name))
    block = copy.copy(child._block)
    block.left = copy.copy(block.left)
    child._block = block
    return child
