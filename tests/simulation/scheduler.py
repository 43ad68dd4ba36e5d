"""The scheduler of a simulation: it owns the random numbers, the clock, the faults, and the order of all operations.

A seed decides everything, so a failing seed fails again. A world offers operations; the scheduler runs one at a time,
and the world checks its invariants after each of them.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Mode = Literal["limited", "any"]
"""``limited``: faults end; then everything finishes, and nothing is lost or repeated. ``any``: no result is wrong."""
MODES: tuple[Mode, ...] = ("limited", "any")

SECOND = 1_000_000
NOON = 1_700_000_000 * SECOND


class Violation(AssertionError):
    """Raised if an invariant does not hold."""


class Operation(NamedTuple):
    """One operation that a world offers."""

    weight: int
    name: str
    run: Callable[[], object]


class World(Protocol):
    """A system under test: its processes, its shadow state, and its invariants."""

    def operations(self) -> Sequence[Operation]:
        """Return the operations that are possible now."""

    def check(self) -> None:
        """Raise `Violation` if an invariant does not hold after an operation."""

    def finish(self) -> None:
        """Without further faults, do all remaining work, and check the final state; called in the limited mode."""

    def close(self) -> None:
        """Free what the world holds."""


class Scheduler:
    """Random numbers, the clock and the faults of one simulation."""

    def __init__(self, seed: int, mode: Mode) -> None:
        self.random = Random(f"{seed} {mode}")
        self.mode = mode
        self.now = NOON
        """The time in microseconds since 1970, as the simulated clocks show it."""
        self.faulty = True
        """Whether faults may happen; false in the final phase."""
        self.trace: list[str] = []

    def note(self, text: str) -> None:
        """Add a line to the report of a failing seed."""
        self.trace.append(text)

    def chance(self, probability: float) -> bool:
        """Return whether something happens that has this probability."""
        return self.random.random() < probability

    def fault(self, probability: float) -> bool:
        """Return whether a fault happens."""
        return self.faulty and self.chance(probability)

    def move_clock(self) -> None:
        """Let the clock go on, stand still, go back, or jump."""
        step = self.random.choice([0, 1, 1000, SECOND, SECOND, 90 * SECOND, 86_400 * SECOND])
        if self.fault(0.2):
            step = -step
        self.now += step
        self.note(f"clock {step:+d}")

    def step(self, world: World) -> None:
        """Run one operation of a world, and check the invariants."""
        operations = world.operations()
        [operation] = self.random.choices(operations, [operation.weight for operation in operations])
        self.note(operation.name)
        operation.run()
        world.check()


def run(make_world: Callable[[Scheduler], World], seed: int, mode: Mode, steps: int) -> None:
    """Run one simulation.

    Raises:
        Violation: if an invariant does not hold, with the report of the seed.
    """
    scheduler = Scheduler(seed, mode)
    world = make_world(scheduler)
    try:
        for _ in range(steps):
            scheduler.step(world)
        if mode == "limited":
            scheduler.faulty = False
            scheduler.note("no more faults")
            world.finish()
    except Exception as error:
        raise Violation(report(world, seed, scheduler, error)) from error
    finally:
        world.close()


def report(world: World, seed: int, scheduler: Scheduler, error: Exception) -> str:
    """Return the report of a failing seed: how to run it again, the error, and the last operations."""
    name = type(world).__name__.lower()
    lines = [
        f"{type(error).__name__}: {error}",
        f"again: PYTHONPATH=tests python -m simulation --world {name} --mode {scheduler.mode} --seed {seed} --seeds 1",
        f"after {len(scheduler.trace)} operations; the last ones are:",
        *scheduler.trace[-40:],
    ]
    return "\n".join(lines)
