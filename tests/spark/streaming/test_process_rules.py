"""The rules of `process`, without a query: the kinds of `Processor`, and no error of a handler ends a micro-batch."""

import asyncio

import pytest
from helpers.buckets import Checkpoint, run_batch

import msgid
from msgid.processing import MemoryStore, Message, Processor

pytestmark = pytest.mark.spark

ID = str(msgid.position_id("rules", 7, 1_700_000_000))
LINES = [(ID, "a", 1, b"", None)]


class NoText(Exception):
    def __str__(self):
        raise ValueError("no text")


def publish(body):
    """Return a handler that publishes a body."""

    def handler(state, message, context):
        context.publish(body)
        return state

    return handler


def raise_(error):
    """Return a handler that raises an error."""

    def handler(state, message, context):
        raise error

    return handler


async def cancelled(state, message, context):
    raise asyncio.CancelledError("stopped")


BODIES = {
    "the same": ({"a": 1, "b": [2]}, {"a": 1, "b": [2]}),
    "names in another order": ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
    "a map in another order": ({1: "x", 2: "y"}, {2: "y", 1: "x"}),
    "a list in another order": ([1, 2], [2, 1]),
    "another value": ({"a": 1}, {"a": 2}),
    "text for a number": ({"a": 1}, {"a": "1"}),
}


@pytest.mark.parametrize("case", BODIES)
def test_outputs_are_compared_as_by_the_processor(case):
    """One fingerprint of outputs: the order of names does not matter, the order of a list does."""
    first, second = BODIES[case]
    checkpoint, store, letters = Checkpoint(), MemoryStore(), []
    kinds = []
    for body in (first, second):
        [row] = run_batch(checkpoint, publish(body), LINES, 1)
        processor = Processor(store, publish(body), list, name="rules", attempts=1, dead_letter=letters.append)
        kinds.append((row.kind, processor.handle(Message(ID, "a", {"amount": 1, "raw": b""})).kind))
    assert kinds[0] == ("new", "new")
    assert kinds[1] in (("duplicate", "duplicate"), ("changed", "changed"))
    assert (kinds[1][0] == "duplicate") == (("order" in case and "list" not in case) or case == "the same")


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (raise_(ValueError("bad")), "ValueError: bad"),
        (raise_(ValueError()), "ValueError"),
        (raise_(ValueError("half \ud800 a pair")), "ValueError: half ? a pair"),
        (raise_(NoText()), "NoText: its text cannot be made"),
        (raise_(SystemExit(3)), "SystemExit: 3"),
        (cancelled, "CancelledError: stopped"),
        (publish("\ud800"), "UnicodeEncodeError: "),
        (publish({1, 2}), "TypeError: "),
        (lambda state, message, context: {1, 2}, "TypeError: "),
    ],
    ids=["error", "error without text", "lone surrogate", "error whose text raises", "exit", "cancelled",
         "output with a lone surrogate", "output that is not JSON", "state that is not JSON"],
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
