"""The rules of `process`, without a query: the kinds of `Processor`, and no error of a handler ends a micro-batch."""

import asyncio
import inspect
import json

import pytest
from helpers.buckets import Checkpoint, run_batch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import msgid
from msgid.ids.checked_bytes import identity
from msgid.processing import AsyncProcessor, MemoryStore, Message, Processor, dumps, loads
from msgid.processing.flow import error_text
from msgid.processing.strict_json import canonical, text

pytestmark = pytest.mark.spark

START = 1_700_000_000
ID = str(msgid.position_id("rules", 7, START))
LINES = [(ID, "a", 1, b"", None)]


class Panic(BaseException):
    """An error with the base class that errors of extensions in Rust have."""


class NoText(Exception):
    def __str__(self):
        raise ValueError("no text")


def publish(body):
    """Return a handler that publishes a body."""

    def handler(state, message, context):
        context.publish(body)
        return state

    return handler


def publish_to(topic):
    """Return a handler that publishes to a topic."""

    def handler(state, message, context):
        context.publish("body", topic)
        return state

    return handler


def raise_(error):
    """Return a handler that raises an error."""

    def handler(state, message, context):
        raise error

    return handler


async def cancelled(state, message, context):
    raise asyncio.CancelledError("stopped")


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (raise_(ValueError("bad")), "ValueError: bad"),
        (raise_(ValueError()), "ValueError"),
        (raise_(ValueError("half \ud800 a pair")), "ValueError: half ? a pair"),
        (raise_(NoText()), "NoText: its text cannot be made"),
        (raise_(SystemExit(3)), "SystemExit: 3"),
        (raise_(Panic("of Rust")), "Panic: of Rust"),
        (cancelled, "CancelledError: stopped"),
        (publish_to(5), "TypeError: topic must be text that UTF-8 can encode, or None, got 5"),
        (publish_to("\ud800"), "ValueError: topic must be text that UTF-8 can encode, or None, got '\\ud800'"),
        (publish({1, 2}), "TypeError: "),
        (lambda state, message, context: {1, 2}, "TypeError: "),
    ],
    ids=["error", "error without text", "lone surrogate", "error whose text raises", "exit", "panic", "cancelled",
         "topic that is a number", "topic with a lone surrogate",
         "output that is not JSON", "state that is not JSON"],
)  # fmt: skip
def test_error_of_a_handler_fails_its_message_alone(handler, reason):
    """Any error is a failed row with a reason that Spark can store; the next message of the key is handled."""
    checkpoint = Checkpoint()
    [row] = run_batch(checkpoint, handler, LINES, 1)
    assert (row.kind, row.input_id) == ("failed", ID)
    assert row.reason.startswith(reason)
    row.reason.encode()
    [row] = run_batch(checkpoint, publish("next"), LINES, 2)
    assert row.kind == "new"


def test_context_of_an_earlier_message_publishes_nothing():
    """Its message has its outputs already, so the output would be lost without a word."""
    contexts = []

    def handler(state, message, context):
        contexts.append(context)
        contexts[0].publish("text")

    rows = run_batch(Checkpoint(), handler, [(id, "key", 1, b"", None) for id in ("a", "b")], 1)
    assert [row.kind for row in rows] == ["new", "failed"]
    assert rows[1].reason.startswith("RuntimeError: publish was called after the handler")


def test_output_with_a_lone_surrogate_is_published_as_json():
    """UTF-8 cannot encode a lone surrogate; JSON escapes it, and reads the same text again."""
    [row] = run_batch(Checkpoint(), publish({"half": "\ud800", "name": "\u00e9"}), LINES, 1)
    assert (row.kind, row.body) == ("new", '{"half":"\\ud800","name":"\u00e9"}')
    assert loads(row.body.encode()) == {"half": "\ud800", "name": "\u00e9"}


def counted(state, message, context):
    """Publish the number of messages before; fail, exit, raise or mutate as the amount says."""
    amount = message.body["amount"]
    if amount == 1:
        raise ValueError("one")
    if amount == 2:
        raise SystemExit(2)
    if amount == 3:
        raise asyncio.CancelledError
    if amount == 4:
        return {1, 2}
    if amount == 6:
        raise Panic
    state = state or {"seen": []}
    state["seen"].append([message.id, message.body["raw"]])
    message.body["raw"] = b"mutated"
    context.publish({"seen": state["seen"], "amount": amount, "at": message.at, "chance": context.random.random()})
    if amount == 5:
        context.publish("second", "other")
    return state


KEYS = ["a", "b", "", "k" * 1000, "\u00e9" * 500]
V0, UUID = "7F0000010000238F000000000001E240", "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
OF_UUID = str(msgid.derive_id(UUID, 1))
"""An ID of version 1 without a time."""
IDS = [ID, ID.lower(), OF_UUID, V0, V0.lower(), f"00{V0}", UUID, UUID.upper(), "orders-0-42", "i" * 1000]
TIMES = st.sampled_from([None, None, 0, START * 10**6, (START + 9) * 10**6, 4_070_908_800 * 10**6])
MESSAGES = st.tuples(
    st.sampled_from(IDS), st.sampled_from(KEYS), st.integers(0, 7), st.sampled_from([None, b"", b"\xff\0"]), TIMES
)


def in_time(line):
    """Return the order in which `process` handles messages: by time, none first, by ID, and by the text of the body."""
    id, key, amount, raw, at = line
    at = Message(identity(id), key, None, at).at
    return at is not None, at or 0, identity(id), text({"amount": amount, "raw": raw})


def told(kind, key, id, outputs, reason):
    """Return the compared values: of a malformed message only that it is one."""
    return (kind, key, id, *outputs, reason) if kind != "malformed" else ("malformed", key)


def doubled(state, message, context):
    """Do what `counted` does, and publish another body: the code after a change."""
    state = counted(state, message, context)
    context.publish({"seen": 2 * len(state["seen"])})
    return state


async def counted_later(state, message, context):
    """Do what `counted` does, as a coroutine."""
    await asyncio.sleep(0)
    return counted(state, message, context)


async def doubled_later(state, message, context):
    """Do what `doubled` does, as a coroutine."""
    await asyncio.sleep(0)
    return doubled(state, message, context)


HANDLERS = {"counted": (counted, counted_later), "doubled": (doubled, doubled_later)}


def processed(processor_class, batches):
    """Return what a processor tells of each batch: its kinds, its outputs and the text of each dead letter."""
    store, found = MemoryStore(), []
    for batch, name, keep_outputs in batches:
        letters, rows, stopped = [], [], {}
        handler = HANDLERS[name][processor_class is AsyncProcessor]
        options = {"name": "rules", "attempts": 2, "dead_letter": letters.append, "keep_outputs": keep_outputs}
        processor = processor_class(store, handler, list, dumps=dumps, loads=loads, **options)
        for id, key, amount, raw, at in sorted(batch, key=in_time):
            if key in stopped:  # `process` keeps the order of a key within a micro-batch
                rows.append(told("not tried", key, identity(id), [], stopped[key]))
                continue
            letters.clear()
            try:
                # `process` does not compare bodies, and a processor compares those alone that JSON can represent.
                outcome = processor.handle(Message(id, key, {"amount": amount, "raw": raw, "other": object()}, at))
                outcome = asyncio.run(outcome) if inspect.isawaitable(outcome) else outcome
            except (SystemExit, asyncio.CancelledError, Panic) as error:  # ends `handle`; on Spark it is a failed row
                assert not letters
                rows.append(told("failed", key, identity(id), [], error_text(error)))
                stopped[key] = f"message {identity(id)} of this key failed before: {error_text(error)}"
                continue
            outputs = [(one.id, one.number, one.topic, canonical(one.body).encode()) for one in outcome.outputs]
            reason = letters[0].error if letters else None
            if outcome.kind == "failed":
                stopped[key] = f"message {identity(id)} of this key failed before: {reason}"
            rows.append(told(outcome.kind, key, identity(id), outputs, reason))
        found.append(sorted(rows, key=repr))
    return found


def on_spark(batches, is_async):
    """Return what the operator of `process` tells of each micro-batch, without a query."""
    checkpoint, found = Checkpoint(), []
    for number, (batch, name, keep_outputs) in enumerate(batches):
        handler = HANDLERS[name][is_async]
        kept, rows = [], run_batch(checkpoint, handler, batch, number + 1, attempts=2, keep_outputs=keep_outputs)
        for row in rows:
            if row.kind in ("new", "duplicate"):
                if row.number == 0:
                    kept.append([row.kind, row.key, row.input_id, [], None])
                kept[-1][3].append((row.id, row.number, row.topic, row.body.encode()))
            elif row.kind == "malformed":
                kept.append(["malformed", json.loads(row.body)["key"], None, [], None])
            else:
                kept.append([row.kind, row.key, row.input_id, [], row.reason])
        found.append(sorted((told(*one) for one in kept), key=repr))
    return found


BATCHES = st.lists(
    st.tuples(st.lists(MESSAGES, max_size=8), st.sampled_from(sorted(HANDLERS)), st.booleans()), max_size=4
)


@settings(max_examples=40)
@given(batches=BATCHES)
@example(batches=[([(ID, "a", 7, b"", None), (ID, "a", 0, b"", None)], "counted", False)])  # the body orders them
@example(batches=[([(ID, "a", 0, b"", 0), (OF_UUID, "a", 0, b"", None)], "counted", False)])
def test_any_messages_get_equal_kinds_outputs_and_reasons_from_both_processors_and_from_process(batches):
    """Also after another handler or ``keep_outputs``; in any spelling, order and time; if handlers raise or mutate."""
    spark = on_spark(batches, is_async=False)
    assert on_spark(batches, is_async=True) == spark
    assert processed(Processor, batches) == spark
    assert processed(AsyncProcessor, batches) == spark
