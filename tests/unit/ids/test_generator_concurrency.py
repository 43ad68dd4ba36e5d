"""A generator with threads, signals, forks and many processes never repeats an ID."""

import itertools
import signal
import time
from functools import partial

from helpers.minting import NOON, mint, place
from helpers.threads import at_once


def test_threads_mixing_batches_and_single_ids_never_share_an_id(msgid):
    """With concurrent batches, each batch is consecutive, and no other caller gets its numbers."""
    minting = msgid.Generator(clock=lambda: NOON, sequence=2**32 - 100_000)  # also across the wrap

    def work(seed):
        own = []
        for turn in range(800):
            how = ("generate", "generate_hex", "batch of 7", "generate", "batch of 300")[(turn + seed) % 5]
            own.append(mint(minting, how))
        return own

    everything = []
    for own in at_once(*(partial(work, seed) for seed in range(8))):
        flat = list(itertools.chain.from_iterable(own))
        assert all(earlier < later for earlier, later in itertools.pairwise(flat))
        for minted in own:
            sequences = [place(raw)[1] for raw in minted]
            assert all((b - a) % 2**32 == 1 for a, b in itertools.pairwise(sequences))
        everything += flat
    assert len(set(everything)) == len(everything)


def test_signal_handler_that_mints_makes_new_ids(msgid):
    """A signal handler that makes an ID while its thread makes one does not block and repeats no ID."""
    minting = msgid.Generator(clock=lambda: NOON)
    in_handler, in_loop = [], []
    previous = signal.signal(signal.SIGALRM, lambda *_: in_handler.extend(minting.generate_batch(3).hex()))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        deadline = time.monotonic() + 0.4
        while time.monotonic() < deadline:
            in_loop.append(minting.generate_hex())
            in_loop.extend(minting.generate_batch(2).hex())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert in_handler
    assert in_loop == sorted(in_loop)
    assert len(set(in_loop + in_handler)) == len(in_loop) + len(in_handler)


def test_interrupt_at_any_step_leaves_no_lock_behind(msgid):
    """An error from a signal handler at any step leaves a generator that still works for others."""
    minting = msgid.Generator(clock=lambda: NOON)

    def interrupt(*_):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    minted = []
    try:
        for turn in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + turn * 1e-6)
                while True:
                    minted.append(minting.generate_batch(1).hex()[0])
            except KeyboardInterrupt:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    (elsewhere,) = at_once(minting.generate_hex)
    assert elsewhere > minted[-1]
    assert minted == sorted(set(minted))


def test_clock_that_mints_itself_makes_new_ids(msgid):
    """A clock (or a finalizer in it) that makes IDs is the deepest nesting: it causes no duplicates either."""
    minted, depth = [], []

    def clock():
        if len(depth) < 3:
            depth.append(None)
            minted.append(nested.generate_hex())
            depth.pop()
        return NOON

    nested = msgid.Generator(clock=clock, sequence=0)
    for _ in range(50):
        minted.append(nested.generate_hex())
        minted.extend(nested.generate_batch(2).hex())
    assert len(set(minted)) == len(minted)
