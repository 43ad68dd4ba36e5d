"""Repeat work that may succeed later. The delays are an argument, and so are the clock and the sleep."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

R = TypeVar("R")


def retry(
    work: Callable[[], R],
    again: Callable[[Exception], bool],
    delays: Iterable[float],
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> R:
    """Return the result of a function; run it again after an error that may pass.

    Args:
        work: The function.
        again: Returns whether the work is repeated after an error; it may repair the cause first.
        delays: Seconds to wait before each repetition. After the last one, an error is final.
        sleep: Waits for a number of seconds.

    Raises:
        Exception: the error of the last run.

    >>> answers = iter([OSError("busy"), "done"])
    >>> def work():
    ...     answer = next(answers)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> retry(work, lambda error: isinstance(error, OSError), [0.2, 0.4], sleep=print)
    0.2
    'done'
    """
    rest = iter(delays)
    while True:
        try:
            return work()
        except Exception as error:
            delay = next(rest, None) if again(error) else None
            if delay is None:
                raise
        if delay:
            sleep(delay)


def within(
    seconds: float, delay: Callable[[], float], *, clock: Callable[[], float] = time.monotonic
) -> Iterator[float]:
    """Return delays that end after a number of seconds from now.

    Args:
        seconds: How long work is repeated.
        delay: Returns the next delay in seconds.
        clock: Returns the time in seconds.

    >>> times = iter([100, 101, 104, 106])
    >>> list(within(5, lambda: 0.5, clock=lambda: next(times)))
    [0.5, 0.5]
    """
    end = clock() + seconds

    def delays() -> Iterator[float]:
        while clock() < end:
            yield delay()

    return delays()
