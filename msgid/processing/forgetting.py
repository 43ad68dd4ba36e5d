"""The thread that deletes old entries at an interval."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_log: Final = logging.getLogger("msgid.processing")


class Forgetting:
    """A thread that calls `Processor.forget` at an interval; `Processor.start_forgetting` creates it.

    It is a daemon thread, so it does not keep the process alive.
    """

    def __init__(self, forget: Callable[[], int], seconds: float, name: str) -> None:
        self._forget = forget
        self._seconds = seconds
        self._name = name
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"forgetting of {name}", daemon=True)
        self._thread.start()

    def close(self, timeout: float | None = None) -> None:
        """Stop the thread and wait at most ``timeout`` seconds for a running `forget`."""
        self._closed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    @property
    def running(self) -> bool:
        """Whether the thread runs in this process."""
        return self._thread.is_alive()

    def __enter__(self) -> Forgetting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            try:
                count = self._forget()
                _log.debug("forgot %d messages of %s", count, self._name)
            except Exception:
                _log.exception("cannot forget messages of %s; the next try is in %g seconds", self._name, self._seconds)
            if self._closed.wait(self._seconds):
                return
