"""Simulated processes: calls that stop before each step until the scheduler lets them go on, or kills them.

Each process is a thread, and one thread runs at a time, so a seed decides the order of all steps.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from simulation.scheduler import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simulation.scheduler import Scheduler


class Killed(BaseException):
    """Raised in a process that was killed, at every further step: nothing that it does has an effect."""


class Process:
    """A process that runs one call at a time.

    Args:
        name: Name in the report.
        scheduler: Where its steps are noted.
    """

    def __init__(self, name: str, scheduler: Scheduler) -> None:
        self.name = name
        self.result: Any = None
        self.error: BaseException | None = None
        self._scheduler = scheduler
        self._thread: threading.Thread | None = None
        self._may_go = threading.Semaphore(0)
        self._waits = threading.Semaphore(0)
        self._dead = False

    @property
    def is_running(self) -> bool:
        """Whether a call has begun and not ended."""
        return self._thread is not None

    def is_thread(self, thread: threading.Thread) -> bool:
        """Return whether a thread is the one of this process."""
        return thread is self._thread

    def start(self, call: Callable[[], Any]) -> None:
        """Begin a call, which waits before its first step."""
        self.result = self.error = None
        self._dead = False
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()
        self._waits.acquire()

    def step(self, name: str) -> None:
        """Wait until the process may take its next step; called by the file system that the process uses."""
        if self._dead:
            raise Killed
        self._scheduler.note(f"  {self.name} is before: {name}")
        self._waits.release()
        self._may_go.acquire()
        if self._dead:
            raise Killed

    def go_on(self) -> None:
        """Let the process take one step, up to the next one or the end of its call.

        Raises:
            BaseException: the error with which the call ended, unless it was killed.
        """
        self._may_go.release()
        self._waits.acquire()
        if self.result is not None or self.error is not None:
            self._join()

    def kill(self) -> None:
        """End the process before its next step."""
        self._dead = True
        self._may_go.release()
        self._waits.acquire()
        self._join()

    def finish(self, most: int = 10_000) -> None:
        """Let the process go on to the end of its call."""
        for _ in range(most):
            if not self.is_running:
                return
            self.go_on()
        raise AssertionError(f"{self.name} does not end within {most} steps")

    def operations(self, start: Callable[[], object]) -> Sequence[Operation]:
        """Return what can happen to the process now."""
        if not self.is_running:
            return [Operation(3, f"{self.name} starts", start)]
        if not self._scheduler.faulty:
            return [Operation(12, f"{self.name} goes on", self.go_on)]
        return [Operation(12, f"{self.name} goes on", self.go_on), Operation(1, f"{self.name} is killed", self.kill)]

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self.step("its first step")
            self.result = ("ended", call())
        except BaseException as error:
            self.error = error
        self._waits.release()

    def _join(self) -> None:
        assert self._thread is not None
        self._thread.join()
        self._thread = None
        if self.error is not None and not isinstance(self.error, Killed):
            raise self.error
