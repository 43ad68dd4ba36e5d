"""Minting for real: threads, forks, signals, clocks and what is handed in."""

import gc
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import EDGES32, readings

import msgid
from msgid import Generator, MessageId, generator, minter

NOON = 1_700_000_000
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

ask = st.sampled_from(["generate", "generate_hex", "batch of 0", "batch of 1", "batch of 300"])


def mint(generator, how):
    """Mint as the word says, and give the ids' bytes."""
    if how == "generate":
        return [bytes(generator.generate())]
    if how == "generate_hex":
        return [bytes.fromhex(generator.generate_hex())]
    return [bytes(id) for id in generator.generate_batch(int(how.split()[-1]))]


def place(raw):
    """An id's (second, sequence)."""
    return int.from_bytes(raw[9:13], "big"), int.from_bytes(raw[13:], "big")


@given(readings, st.lists(ask, min_size=1, max_size=30), EDGES32)
def test_ids_strictly_increase_under_any_clock_and_any_call(clock, calls, first):
    """Rules 1 to 3: single ids, texts and batches mixed, on a clock that stands still, leaps or goes back.

    The seconds are kept modulo 2**32, so the order is that of the bytes only until they pass its end.
    """
    latest = itertools.chain(clock, itertools.repeat(clock[-1]))
    minting = Generator(node=1, pid=2, clock=lambda: next(latest), sequence=first)
    minted = [raw for how in calls for raw in mint(minting, how)]
    assert len(set(minted)) == len(minted)
    in_range = all(msgid.layout.EPOCH_UNIX <= now < msgid.layout.EPOCH_UNIX + 2**32 - 2 for now in clock)
    if in_range:
        assert minted == sorted(minted)
    assert [place(raw)[1] for raw in minted] == [(first + n) % 2**32 for n in range(len(minted))]


@pytest.mark.parametrize(
    ("clock", "seconds"),
    [
        ([10, 10, 10], [10, 10, 10]),
        ([10, 9.5, 3], [10, 10, 10]),
        ([10, 3, 10.9, 11, 11.999, 50], [10, 10, 10, 11, 11, 50]),
        ([-1, 0], [2**32 - 1, 0]),  # before 2021: modulo 2**32
        ([2**32 + 5], [5]),  # after 2157: the same
        ([-0.5], [2**32 - 1]),  # rounded down, not towards 2021
    ],
)
def test_the_clock_is_followed_forward_only(clock, seconds):
    """The last second is kept until the clock has passed it; seconds are whole and taken modulo 2**32."""
    now = clock[0]
    minting = Generator(clock=lambda: msgid.layout.EPOCH_UNIX + now, sequence=0)
    minted = []
    for now in clock:  # noqa: B007, the clock reads it
        minted.append(minting.generate().seconds)
    assert minted == seconds


def test_wrap_at_the_end_of_the_sequence():
    """At 2**32 the sequence goes to 0 and the second one further, for single ids and within a batch."""
    single = Generator(node=1, pid=2, clock=lambda: NOON, sequence=2**32 - 1)
    before, after = single.generate(), single.generate()
    assert (before.sequence, after.sequence) == (2**32 - 1, 0)
    assert after.seconds == before.seconds + 1
    batch = Generator(node=1, pid=2, clock=lambda: NOON, sequence=2**32 - 1).generate_batch(2)
    assert list(batch) == [before, after]


def test_a_batch_is_contiguous_and_singles_go_on_behind_it():
    """A batch takes the numbers next to the last single id's, and the next single id the one after the batch."""
    minting = Generator(clock=lambda: NOON, sequence=0)
    assert minting.generate().sequence == 0
    assert [id.sequence for id in minting.generate_batch(300)] == list(range(1, 301))
    assert minting.generate().sequence == 301


def test_default_sequence_starts_at_random_below_2_to_31():
    """Rule 5: two processes alike in node, pid and second start at different numbers, far from the wrap."""
    starts = {Generator(node=1, pid=1, clock=lambda: NOON).generate().sequence for _ in range(200)}
    assert len(starts) > 190
    assert max(starts) < 2**31
    assert max(starts) > 2**30  # the whole range is used


def test_threads_never_share_an_id_and_each_sees_its_own_increase():
    """8 threads x 200 000 ids of one generator: no duplicate, and each thread's own ids increase."""
    count = 200_000
    minted = run_threads(8, lambda _: [msgid.generate_hex() for _ in range(count)])
    for own in minted:
        assert all(earlier < later for earlier, later in itertools.pairwise(own))
    assert len(set(itertools.chain.from_iterable(minted))) == 8 * count


def test_threads_mixing_batches_and_single_ids():
    """The same with batches in between: a batch is contiguous, and nobody gets one of its numbers."""
    minting = Generator(clock=lambda: NOON, sequence=2**32 - 100_000)  # over the wrap, too

    def work(seed):
        own = []
        for turn in range(3_000):
            how = ("generate", "generate_hex", "batch of 7", "generate", "batch of 300")[(turn + seed) % 5]
            own.append(mint(minting, how))
        return own

    everything = []
    for own in run_threads(8, work):
        flat = list(itertools.chain.from_iterable(own))
        assert all(earlier < later for earlier, later in itertools.pairwise(flat))
        for minted in own:
            sequences = [place(raw)[1] for raw in minted]
            assert all((b - a) % 2**32 == 1 for a, b in itertools.pairwise(sequences))
        everything += flat
    assert len(set(everything)) == len(everything)


def test_without_an_interpreter_lock_the_generators_own_is_taken():
    """In free-threaded builds drawing a number is not one step by itself: there a method takes the lock."""
    held = []

    def method(self):
        held.append(self._lock.acquire(blocking=False) and not self._lock.release())
        thread = threading.Thread(target=lambda: held.append(self._lock.acquire(blocking=False)))
        thread.start()
        thread.join()

    with mock.patch.object(sys, "_is_gil_enabled", return_value=False, create=True):
        minter._exclusive_if_free_threaded(method)(pure_minter())
    assert held == [True, False]  # re-entrant for its own thread, closed to others
    with mock.patch.object(sys, "_is_gil_enabled", return_value=True, create=True):
        assert minter._exclusive_if_free_threaded(method) is method


def pure_minter():
    """The pure-Python minter, whichever one the generators are built on."""
    plain = minter.Minter()
    plain._begin(MessageId, minter.minting.Run, None, 0)
    return plain


def test_minting_goes_on_in_a_signal_handler():
    """A handler that mints while its thread is minting neither hangs nor makes an id that is repeated."""
    minting = Generator(clock=lambda: NOON)
    in_handler, in_loop = [], []
    previous = signal.signal(signal.SIGALRM, lambda *_: in_handler.extend(minting.generate_batch(3).hex()))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            in_loop.append(minting.generate_hex())
            in_loop.extend(minting.generate_batch(2).hex())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert in_handler
    assert in_loop == sorted(in_loop)
    assert len(set(in_loop + in_handler)) == len(in_loop) + len(in_handler)


def test_an_interrupt_leaves_no_lock_behind():
    """An exception out of a signal handler, at any step of minting, leaves a generator that others can go on with."""
    minting = Generator(clock=lambda: NOON)

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
    (elsewhere,) = run_threads(1, lambda _: minting.generate_hex())
    assert elsewhere > minted[-1]
    assert minted == sorted(set(minted))


def test_minting_inside_the_clock_itself():
    """A clock that mints (or a finalizer that runs in it) is the deepest a call can be nested: still no duplicate."""
    minted, depth = [], []

    def clock():
        if len(depth) < 3:
            depth.append(None)
            minted.append(nested.generate_hex())
            depth.pop()
        return NOON

    nested = Generator(clock=clock, sequence=0)
    for _ in range(50):
        minted.append(nested.generate_hex())
        minted.extend(nested.generate_batch(2).hex())
    assert len(set(minted)) == len(minted)


@forks
def test_forked_children_never_mint_the_parents_ids_in_a_frozen_second():
    """8 children x 10 000 ids of one generator, in one frozen second, with the parent's own: no duplicate."""
    minting = Generator(clock=lambda: NOON)
    before = minting.generate_batch(10).hex()
    minted = run_children(8, lambda: [minting.generate_hex() for _ in range(10_000)])
    own = minting.generate_batch(10_000).hex()
    everything = [*before, *own, *itertools.chain.from_iterable(minted)]
    assert len(set(everything)) == len(everything) == 90_010
    # The parent's sequence is untouched.
    assert MessageId(own[0]).sequence == (MessageId(before[-1]).sequence + 1) % 2**32


@forks
def test_a_forked_child_has_its_own_pid_even_where_one_was_handed_in():
    """A pid and a sequence that are handed in hold for one process: a child that kept them would repeat its ids."""
    minting = Generator(node=1, pid=7, clock=lambda: NOON, sequence=0)
    parent = minting.generate()
    ((child_pid, child),) = run_children(1, lambda: (os.getpid(), minting.generate_hex()))
    assert MessageId(child).pid == child_pid % 2**16
    assert MessageId(child).node == parent.node == 1
    assert (minting.generate().pid, minting.generate().sequence) == (7, 2)


@forks
def test_fork_while_another_thread_is_minting():
    """The child of a process whose other threads are minting mints at once: no lock is inherited held."""
    minting = Generator()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            minting.generate_batch(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            (child,) = run_children(1, minting.generate_hex)
            assert msgid.is_valid(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@forks
def test_grandchildren_too():
    """A fork of a fork has its own pid and sequence as well."""
    minting = Generator(clock=lambda: NOON)
    family = [minting.generate_hex()]

    def child():
        return [minting.generate_hex(), *run_children(1, minting.generate_hex)]

    family += run_children(1, child)[0]
    pids = {MessageId(id).pid for id in family}
    assert len(pids) == 3


def test_processes_started_afresh_mint_their_own():
    """Processes that share nothing with each other but the node mint different ids."""
    program = "import msgid; print('\\n'.join(msgid.generate_batch(500).hex()))"
    runs = [subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    everything = [line for run in runs for line in run.stdout.split()] + msgid.generate_batch(500).hex()
    assert len(set(everything)) == len(everything) == 2500


def test_containers_that_all_run_as_pid_1():
    """Processes alike in node, pid and second, as containers are, mint different ids: 8 of them, 10 000 each."""
    program = (
        "import msgid; g = msgid.Generator(node='02:42:ac:11:00:02', pid=1, clock=lambda: 1.7e9);"
        "print('\\n'.join(g.generate_hex() for _ in range(10_000)))"
    )
    runs = [subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(8)]
    everything = [line for run in runs for line in run.stdout.split()]
    assert len(set(everything)) == len(everything) == 80_000


def test_generators_are_collected():
    """A generator that nobody uses is freed: the fork hook does not keep it alive."""
    gc.collect()
    before = len(generator._alive)
    Generator(node=1)
    gc.collect()
    assert len(generator._alive) == before


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"node": "56:f7:e7:1c:36"}, ValueError, "aa:bb:cc:dd:ee:ff, not '56:f7:e7:1c:36'"),
        ({"node": "56:f7:e7:1c:36:1g"}, ValueError, "not '56:f7:e7:1c:36:1g'"),
        ({"node": "５6:f7:e7:1c:36:1b"}, ValueError, "aa:bb:cc:dd:ee:ff"),
        ({"node": " 6:f7:e7:1c:36:1b"}, ValueError, "aa:bb:cc:dd:ee:ff"),
        ({"node": b"12345"}, ValueError, "6 bytes, not b'12345'"),
        ({"node": 2**48}, ValueError, "node must be 0 to 281474976710655, not 281474976710656"),
        ({"node": -1}, ValueError, "not -1"),
        ({"node": 1.5}, TypeError, "not 1.5"),
        ({"node": True}, TypeError, "not True"),
        ({"pid": -1}, ValueError, "pid must be 0 to"),
        ({"pid": "7"}, TypeError, "pid must be an integer, not '7'"),
        ({"sequence": 2**32}, ValueError, "sequence must be 0 to 4294967295, not 4294967296"),
        ({"sequence": 0.0}, TypeError, "sequence must be an integer, not 0.0"),
        ({"clock": 12}, TypeError, "clock must be a function giving Unix seconds, not 12"),
    ],
)
def test_bad_arguments_are_refused_when_the_generator_is_made(arguments, error, message):
    """Each says what was given and what is allowed."""
    with pytest.raises(error, match=message):
        Generator(**arguments)


@pytest.mark.parametrize(
    ("n", "error"), [(-1, ValueError), (2**32 + 1, ValueError), (1.0, TypeError), ("3", TypeError), (True, TypeError)]
)
def test_bad_counts_are_refused(n, error):
    """A batch has 0 to 2**32 ids."""
    with pytest.raises(error, match="n must be"):
        msgid.generate_batch(n)


@pytest.mark.parametrize("now", [float("nan"), float("inf"), -float("inf"), 10**400, None, "noon", 1j])
def test_a_clock_that_gives_no_time_is_an_error(now):
    """What is no number of Unix seconds is refused with what the clock gave."""
    with pytest.raises(ValueError, match="the clock must give Unix seconds, not "):
        Generator(clock=lambda: now).generate()


def test_a_clock_that_raises_costs_nothing():
    """The clock's own exception comes out, and the next id is made as if nothing had been."""
    failing = [False]

    def clock():
        if failing[0]:
            raise OSError("no clock")
        return NOON

    minting = Generator(clock=clock, sequence=0)
    minting.generate()
    failing[0] = True
    with pytest.raises(OSError, match="no clock"):
        minting.generate_batch(5)
    failing[0] = False
    assert minting.generate().sequence == 1


def test_all_kinds_of_node_can_be_handed_in():
    """An int, 6 bytes, a MAC address with either separator, or random bits."""
    assert {Generator(node=node).generate().mac for node in (1, b"\0\0\0\0\0\1", "00:00:00:00:00:01")} == {
        "00:00:00:00:00:01"
    }
    assert Generator(node="AA-BB-CC-DD-EE-FF").generate().mac == "aa:bb:cc:dd:ee:ff"
    assert Generator(node="random").generate().origin == "random"


def run_threads(count, work):
    """Run ``work(n)`` in so many threads at once and give what each returned."""
    results, barrier = [None] * count, threading.Barrier(count)

    def body(n):
        barrier.wait()
        results[n] = work(n)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def run_children(count, work):
    """Run ``work()`` in so many forked children at once and give what each returned."""
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    children = [context.Process(target=lambda send=send: send.send(work())) for _, send in pipes]
    for child in children:
        child.start()
    results = [receive.recv() if receive.poll(60) else None for receive, _ in pipes]
    for child in children:
        child.join(10)
        if child.is_alive():
            child.kill()
    return results
