"""The generator in one thread: the clock, the sequence, and invalid arguments."""

import concurrent.futures
import copy
import gc
import multiprocessing
import pickle
import sys
import time
import weakref

import pytest
from helpers.commands import python
from helpers.minting import NOON, mint, place
from helpers.strategies import EDGES32
from hypothesis import example, given
from hypothesis import strategies as st

from msgid import layout
from msgid.ids import _sequence

ask = st.sampled_from(["generate", "generate_hex", "batch of 0", "batch of 1", "batch of 300"])


# Times of a slow clock, and of one that jumps, goes back, and is before 1970 or after 2157.
slow = st.integers(-1, 2)
faulty = st.integers(-(2**20), 2**20) | st.sampled_from([-(10**10), 2**32 - 2, 2**32 + 5, 10**11])


def calls_at(times):
    """Return lists of times, fractions of a second, and calls."""
    return st.lists(st.tuples(times, st.sampled_from([0, 0.5, 0.999]), ask), min_size=1, max_size=20)


@example([(0, 0, "batch of 300"), (0, 0, "generate"), (0, 0, "generate_hex")], 2**32 - 1)
@example([(0, 0, "generate_hex"), (1, 0, "generate_hex"), (1, 0, "generate")], 0)
@given(calls_at(slow) | calls_at(faulty), EDGES32)
def test_ids_of_both_cores_follow_the_rule(msgid, steps, first):
    """Each call gives the IDs of `msgid.ids._sequence`, and begins anew exactly where the rule says so.

    An ID has whole seconds, modulo 2**32. So IDs increase with single IDs, texts and batches mixed, and never repeat.
    """
    now = part = 0
    minting = msgid.Generator(node=1, pid=2, clock=lambda: layout.EPOCH_UNIX + now + part, sequence=first)
    state, nodes = _sequence.fresh(first), [1]
    for now, part, how in steps:  # noqa: B007, the clock reads it
        made = mint(minting, how)
        if state is not None and _sequence.is_behind(state, now):
            state = None
        if not made:
            continue
        if state is None:  # another random sequence number, on another random node
            assert layout.unpack(made[0])[0] not in nodes
            nodes.append(layout.unpack(made[0])[0])
            assert layout.origin_of(nodes[-1]) == "random"
            assert minting.explain_node().reason == "random bits: the clock has gone back by more than a day"
            state = _sequence.fresh(place(made[0])[1])
        runs, state = _sequence.reserve(state, now, len(made))
        expected = [(run.second % 2**32, number) for run in runs for number in run.sequences]
        assert [place(raw) for raw in made] == expected
        assert {layout.unpack(raw)[0] for raw in made} == {nodes[-1]}


FROZEN = {
    "freezegun": "with freezegun.freeze_time('2031-01-01'):",
    "time_machine": "with time_machine.travel(1_900_000_000, tick=False):",
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere time-machine replaces the only clock of the reference")
@pytest.mark.parametrize("library", FROZEN)
def test_frozen_test_clock_does_not_stop_the_clock_of_ids(msgid, library):
    """A generator reads the clock of the operating system, wherever it is made; a clock that is passed is frozen."""
    pytest.importorskip(library)
    program = f"""
import time, msgid, {library}
before = int(time.time())
outside = msgid.Generator()
{FROZEN[library]}
    inside = msgid.Generator()
    made = [g.generate() for g in (inside, outside)] + [msgid.parse(g.generate_hex()) for g in (inside, outside, msgid)]
    assert time.time() > 1_899_000_000
    assert msgid.Generator(clock=lambda: time.time()).generate().time.timestamp() > 1_899_000_000
assert all(before <= id.time.timestamp() <= time.time() for id in made), made
"""
    done = python(program)
    assert done.returncode == 0, done.stderr


def test_sequence_by_default_starts_at_random_below_2_to_31(msgid):
    """Two processes with the same node, pid and second start at different numbers, far from the wrap."""
    starts = {msgid.Generator(node=1, pid=1, clock=lambda: NOON).generate().sequence for _ in range(200)}
    assert len(starts) > 190
    assert max(starts) < 2**31
    assert max(starts) > 2**30  # the whole range is used


def test_generator_without_users_is_collected(msgid):
    unused = weakref.ref(msgid.Generator(node=1))
    gc.collect()
    assert unused() is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"node": "56:f7:e7:1c:36"}, ValueError, "aa:bb:cc:dd:ee:ff, got '56:f7:e7:1c:36'"),
        ({"node": "56:f7:e7:1c:36:1g"}, ValueError, "got '56:f7:e7:1c:36:1g'"),
        ({"node": "５6:f7:e7:1c:36:1b"}, ValueError, "aa:bb:cc:dd:ee:ff"),
        ({"node": " 6:f7:e7:1c:36:1b"}, ValueError, "aa:bb:cc:dd:ee:ff"),
        ({"node": "ff:ff:ff:ff:ff:ff"}, ValueError, "node must not be a multicast address.*got 'ff:ff:ff:ff:ff:ff'"),
        ({"node": b"\x03\0\0\0\0\0"}, ValueError, "node must not be a multicast address.*got b'"),
        ({"node": 1 << 40}, ValueError, "node must not be a multicast address.*got 1099511627776"),
        ({"node": b"12345"}, ValueError, "6 bytes, got b'12345'"),
        ({"node": 2**48}, ValueError, "node must be 0 to 281474976710655, got 281474976710656"),
        ({"node": -1}, ValueError, "got -1"),
        ({"node": 1.5}, TypeError, "got 1.5"),
        ({"node": True}, TypeError, "got True"),
        ({"pid": -1}, ValueError, "pid must be 0 to"),
        ({"pid": "7"}, TypeError, "pid must be an integer, got '7'"),
        ({"sequence": 2**32}, ValueError, "sequence must be 0 to 4294967295, got 4294967296"),
        ({"sequence": 0.0}, TypeError, "sequence must be an integer, got 0.0"),
        ({"clock": 12}, TypeError, "clock must be a function that returns Unix seconds, got 12"),
    ],
)
def test_generator_with_bad_arguments_raises_when_it_is_made(msgid, arguments, error, message):
    with pytest.raises(error, match=message):
        msgid.Generator(**arguments)


@pytest.mark.parametrize(
    ("n", "error"), [(-1, ValueError), (2**32 + 1, ValueError), (1.0, TypeError), ("3", TypeError), (True, TypeError)]
)
def test_generate_batch_with_a_bad_count_raises(msgid, n, error):
    with pytest.raises(error, match="n must be"):
        msgid.generate_batch(n)


@pytest.mark.parametrize("now", [float("nan"), float("inf"), -float("inf"), 10**400, None, "noon", 1j])
def test_clock_that_gives_no_time_raises_value_error(msgid, now):
    with pytest.raises(ValueError, match="clock must return Unix seconds, got "):
        msgid.Generator(clock=lambda: now).generate()


def test_clock_that_raises_costs_no_id(msgid):
    """An error of the clock reaches the caller, and the generator continues as if it had not occurred."""
    failing = [False]

    def clock():
        if failing[0]:
            raise OSError("no clock")
        return NOON

    minting = msgid.Generator(clock=clock, sequence=0)
    minting.generate()
    failing[0] = True
    with pytest.raises(OSError, match="no clock"):
        minting.generate_batch(5)
    failing[0] = False
    assert minting.generate().sequence == 1


def test_generator_with_a_node_of_any_form_stamps_it(msgid):
    """A node is an int, 6 bytes, a MAC address with either separator, or random bits."""
    assert {msgid.Generator(node=node).generate().mac for node in (1, b"\0\0\0\0\0\1", "00:00:00:00:00:01")} == {
        "00:00:00:00:00:01"
    }
    assert msgid.Generator(node="AA-BB-CC-DD-EE-FF").generate().mac == "aa:bb:cc:dd:ee:ff"
    assert msgid.Generator(node="random").generate().origin == "random"


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps], ids=lambda function: function.__name__)
def test_copy_of_a_generator_raises_type_error(msgid, copying):
    """A copy is rejected, because it would repeat every later ID of the generator."""
    generator = msgid.Generator(node=1)
    generator.generate()
    with pytest.raises(TypeError, match="cannot copy a Generator: the copy would repeat its IDs"):
        copying(generator)


def test_clock_of_the_system_is_exact_at_the_begin_of_a_second(msgid):
    """An ID made just after a full second has the second of `time.time`, and not the one before."""
    begin = int(time.time()) + 1
    time.sleep(max(begin - time.time() - 0.01, 0))
    while time.time() < begin:
        pass
    seconds = [msgid.generate().time.timestamp() for _ in range(100)]
    seconds += [msgid.parse(msgid.generate_hex()).time.timestamp() for _ in range(100)]
    assert begin <= min(seconds) <= max(seconds) <= time.time()


FORKING = ("fork", "forkserver")


@pytest.mark.parametrize("start", ["spawn", *(pytest.param(one, marks=pytest.mark.details) for one in FORKING)])
def test_functions_of_the_default_generator_can_be_passed_to_other_processes(msgid, start):
    """Each process makes IDs of its own, with any start method."""
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not support {start}")
    context = multiprocessing.get_context(start)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        minted = [pool.submit(msgid.generate_hex).result() for _ in range(5)]
        minted += pool.submit(msgid.generate_batch, 5).result().hex()
    assert msgid.generate_hex() not in minted
    assert len(set(minted)) == 10
    assert pickle.loads(pickle.dumps(msgid.generate)) == msgid.generate
