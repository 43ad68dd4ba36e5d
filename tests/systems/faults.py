"""Faults in a schedule that a seed repeats: processes that are killed, paused and restarted.

A target has ``kill()``, ``stop()``, ``signal(number)`` and ``start()``: a `Program`, a broker, a worker of a cluster.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

KINDS = ("kill", "pause", "restart")


class Fault(NamedTuple):
    """A process is killed, paused or ended as a user ends it, and continues or starts again after some seconds."""

    after: float
    """Seconds since the fault before."""
    kind: str
    target: str
    seconds: float
    """The time until the process continues or starts again."""


def schedule(seed: int, count: int, targets: Sequence[str], *, apart: float = 4, longest: float = 8) -> list[Fault]:
    """Return faults that the seed alone decides; each target has its share of them."""
    chance = random.Random(seed)
    chosen: list[str] = []
    while len(chosen) < count:
        chosen += chance.sample(targets, len(targets))
    return [
        Fault(round(chance.uniform(1, apart), 1), chance.choice(KINDS), target, round(chance.uniform(0, longest), 1))
        for target in chosen[:count]
    ]


def inflict(faults: Sequence[Fault], targets: Mapping[str, object], meanwhile: Callable[[], object]) -> None:
    """Let the faults happen, one after another, and print each; call ``meanwhile`` many times between them."""
    for number, fault in enumerate(faults, 1):
        _wait(fault.after, meanwhile)
        target = targets[fault.target]
        print(f"{number:3} {fault.kind} {fault.target}, {fault.seconds} s", flush=True)
        if fault.kind == "pause":
            target.signal(signal.SIGSTOP)
            _wait(fault.seconds, meanwhile)
            target.signal(signal.SIGCONT)
        else:
            target.kill() if fault.kind == "kill" else target.stop()
            _wait(fault.seconds, meanwhile)
            target.start()


def _wait(seconds: float, meanwhile: Callable[[], object]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        meanwhile()
        time.sleep(0.05)


class Program:
    """A process of the test with its children: it can be ended and started again. Its output is appended to a file."""

    def __init__(self, command: Sequence[str], output: Path, **environment: str) -> None:
        self._command = list(command)
        self._output = output
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the process runs, or is paused."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process, if it does not run."""
        if not self.is_alive:
            with self._output.open("ab") as output:
                self._process = subprocess.Popen(
                    self._command, stdout=output, stderr=output, env=self._environment, start_new_session=True
                )

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        if self.is_alive:
            assert self._process is not None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """End the process by SIGKILL."""
        self.signal(signal.SIGKILL)
        self._waited(30)

    def stop(self) -> None:
        """End the process by SIGTERM; by SIGKILL if it has not ended after half a minute."""
        self.signal(signal.SIGTERM)
        if not self._waited(30):
            self.kill()

    def wait(self, seconds: float) -> int | None:
        """Wait until the process ends by itself; return its exit status, or None if it runs on."""
        self._waited(seconds)
        return None if self._process is None else self._process.poll()

    def _waited(self, seconds: float) -> bool:
        try:
            if self._process is not None:
                self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
