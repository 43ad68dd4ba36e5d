"""`process` against a plain model: random batches, spellings, restarts, retentions and failing handlers."""

import json

import pytest
from helpers.buckets import Checkpoint, run_batch, small_log
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from msgid.ids._bytes import identity
from msgid.processing import Message, run
from msgid.processing.context import fingerprint
from spark_ext.streaming._log import Sizes
from spark_ext.streaming._processing import operator
from spark_ext.streaming._processing.packing import input_text

pytestmark = pytest.mark.spark

START = 1_700_000_000
RETENTION_MS = 5000
HANDLED = ("new", "duplicate")
V1 = [str(msgid.position_id("model", number, START + number)) for number in range(6)]
IDS = [*V1, "7F0000010000238F000000000001E240", "74b158ca-ddb3-498f-b0a9-9eec1c6197ae", "orders-0-42"]
SPELLINGS = [str.upper, str.lower, lambda id: f"00{id}" if len(id) == 32 else id]


def spell(id, how):
    """Return another spelling of the same ID."""
    return id if id == "orders-0-42" else SPELLINGS[how](id)


def add(state, message, context):
    """Publish the state before; raise on a negative amount, after having changed all that it was given."""
    state = state or {"sum": 0, "seen": []}
    amount = message.body["amount"]
    state["sum"] += amount
    state["seen"].append(message.body["raw"])
    message.body["raw"] = b"changed"
    if amount < 0:
        raise ValueError("negative")
    context.publish({"sum": state["sum"], "seen": state["seen"], "chance": context.random.random()})
    if amount % 2:
        context.publish(str(context.new_id()), "odd")
    return state


def multiply(state, message, context):
    """Return and publish what `add` does not: the code after a change."""
    context.publish({"product": (state or {"sum": 1})["sum"] * message.body["amount"]})
    return state


def in_time(message):
    """Return what orders the messages of a batch: time, ID, and the text of the body."""
    return message.at is not None, message.at or 0, message.id, input_text(message.body)


class Model:
    """The rules of `process`, written as plainly as possible."""

    def __init__(self):
        self.states = {}
        self.entries = {}
        self.horizon = self.limit = self.passed_horizon = self.passed_limit = -(1 << 60)

    def batch(self, handler, lines, now_ms, retention_ms, remember_ms, told):
        """Return the set of (kind, input ID, outputs) of a batch.

        ``told`` has the (kind, key, ID) of `process`. The model follows it for an entry that had expired and counts
        again, because the retention was raised: the entry, or its hash, may still be stored, or not.
        """
        self.horizon = now_ms - retention_ms
        self.limit = self.horizon - remember_ms
        made = []
        arrivals = [Message(identity(id), key, {"amount": sum, "raw": raw}, at) for id, key, sum, raw, at in lines]
        for message in sorted(arrivals, key=in_time):
            made.append((message.key, message.id, *self.handle(handler, message, now_ms, told)))
        self.passed_horizon = max(self.passed_horizon, self.horizon)
        self.passed_limit = max(self.passed_limit, self.limit)
        return made

    def handle(self, handler, message, now_ms, told):
        known = self.entries.get((message.key, message.id))
        stored = None if known is None else known[0]
        if stored is None or stored < self.limit:
            return self.run(handler, message, now_ms, None)
        if stored < self.passed_limit and ("new", message.key, message.id) in told:
            return self.run(handler, message, now_ms, None)
        is_bare = stored < self.passed_horizon and ("too late", message.key, message.id) in told
        if stored < self.horizon or is_bare:
            return "too late", ()
        return self.run(handler, message, now_ms, known)

    def run(self, handler, message, now_ms, known):
        try:
            after, outputs = run(handler, self.states.get(message.key) if known is None else known[1], message)
        except ValueError:
            return "failed", ()
        told = tuple((output.id, output.topic, json.dumps(output.body, default=str)) for output in outputs)
        if known is None:
            self.entries[message.key, message.id] = (now_ms, self.states.get(message.key), fingerprint(outputs))
            self.states[message.key] = after
            return "new", len(told)
        return ("duplicate", len(told)) if fingerprint(outputs) == known[2] else ("changed", ())


def summary(rows):
    """Return the messages of a result and their kinds, in order, with the number of outputs of each."""
    found = []
    for row in rows:
        if row.kind in ("new", "duplicate"):
            if row.number == 0:
                found.append([row.key, row.input_id, row.kind, 0])
            found[-1][3] += 1
        else:
            found.append([row.key, row.input_id, row.kind, ()])
    return sorted(map(tuple, found), key=repr)


TIMES = st.sampled_from([None, None, 0, START * 10**6, (START + 3) * 10**6, 4_070_908_800 * 10**6])
KEYS = ["a", "b", ""]
LINES = st.tuples(
    st.sampled_from(IDS).flatmap(lambda id: st.builds(spell, st.just(id), st.integers(0, 2))),
    st.sampled_from(KEYS),
    st.integers(-1, 5),
    st.sampled_from([None, b"", b"\xff\x00"]),
    TIMES,
)
BATCHES = st.tuples(
    st.lists(LINES, max_size=8),
    st.sampled_from([0, 1, 1000, 5000]),
    st.sampled_from([1, 1000, 5000, 10**9]),
    st.sampled_from([add, add, add, multiply]),
)
# One value per history, because the model follows only the retention.
REMEMBER = st.sampled_from([0, 1000, 10**9])


@pytest.fixture(
    scope="module",
    params=["usual sizes", *(pytest.param(f"tiny {of}", marks=pytest.mark.details) for of in ("sizes", "slices"))],
)
def sizes(request):
    """The usual sizes of pages, lists and slices; and so small that a few entries or messages fill many of them."""
    with pytest.MonkeyPatch.context() as changed:
        if request.param == "tiny slices":
            changed.setattr(operator, "SLICE_ROWS", 2)
        if request.param != "usual sizes":
            small_log(changed, Sizes(page=64, recent=2, runs=2))
        yield


def check(batches, remember_ms):
    model, checkpoint, now_ms = Model(), Checkpoint(), START * 1000
    for lines, passed, retention_ms, handler in batches:
        now_ms += passed
        rows = run_batch(checkpoint, handler, lines, now_ms, retention_ms=retention_ms, remember_ms=remember_ms)
        told = {(row.kind, row.key, row.input_id) for row in rows}
        wanted = model.batch(handler, lines, now_ms, retention_ms, remember_ms, told)
        assert summary(rows) == sorted(wanted, key=repr)


@settings(max_examples=80)
@given(batches=st.lists(BATCHES, max_size=6), remember_ms=REMEMBER)
def test_process_on_random_batches_agrees_with_the_model(sizes, batches, remember_ms):
    """Each message gets the kind of the model: duplicates in any spelling, late ones, failing and changed handlers."""
    check(batches, remember_ms)


@pytest.mark.volume
@settings(max_examples=3000)
@given(batches=st.lists(BATCHES, max_size=20), remember_ms=REMEMBER)
def test_process_on_many_random_batches_agrees_with_the_model(sizes, batches, remember_ms):
    """The same with longer histories."""
    check(batches, remember_ms)
