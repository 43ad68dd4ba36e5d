"""`retry` repeats work after the errors and the delays that it is given, and calls no clock of its own."""

from itertools import count

import pytest

from msgid.shared.retrying import retry


class Flaky:
    """Work that fails a number of times."""

    def __init__(self, failures, error=OSError):
        self.runs, self.failures, self.error = 0, failures, error

    def __call__(self):
        self.runs += 1
        if self.runs <= self.failures:
            raise self.error(f"run {self.runs}")
        return "done"


@pytest.mark.parametrize("failures", range(5))
def test_retry_waits_each_delay_once_and_raises_the_last_error(failures):
    """Three delays allow four runs; a delay of 0 does not sleep."""
    work, slept = Flaky(failures), []
    if failures < 4:
        assert retry(work, lambda _: True, [0.2, 0, 0.8], sleep=slept.append) == "done"
    else:
        with pytest.raises(OSError, match="run 4"):
            retry(work, lambda _: True, [0.2, 0, 0.8], sleep=slept.append)
    assert work.runs == min(failures + 1, 4)
    assert slept == [delay for delay in [0.2, 0, 0.8][:failures] if delay]


def test_retry_ends_at_an_error_that_will_not_pass():
    """The rule decides per error, and gets the last one too, so that it can repair the cause."""
    seen = []
    with pytest.raises(ValueError, match="run 1"):
        retry(Flaky(2, ValueError), lambda error: isinstance(error, OSError), [0, 0], sleep=None)
    with pytest.raises(OSError, match="run 2"):
        retry(Flaky(9), lambda error: seen.append(str(error)) or True, [0], sleep=None)
    assert seen == ["run 1", "run 2"]


def test_retry_does_not_catch_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        retry(Flaky(1, KeyboardInterrupt), lambda _: True, count(), sleep=None)
