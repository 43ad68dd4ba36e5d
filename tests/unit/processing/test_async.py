"""The processor of coroutines."""

import asyncio
import contextlib
import gc
from datetime import timedelta

import pytest
from handlers import careless

from msgid.processing import AsyncProcessor, BatchFailed, MemoryStore, Message, Processor, TooLate, loads


def message(id, word="x", key="key"):
    return Message(id, key, {"word": word}, 1)


async def waiting(state, message, context):
    """Handle like the test handler, but let other tasks run in the middle."""
    await asyncio.sleep(0)
    return careless(state, message, context)


def test_coroutines_give_what_plain_functions_give(new_store):
    """Outcomes, outputs, dead letters and history are those of `Processor`."""
    messages = [message("a"), message("b", key="other"), message("a"), message("bad", "fail"), message("c")]
    plain, published, letters = [], [], []
    one = Processor(MemoryStore(), careless, plain.extend, dead_letter=letters.append)
    expected = [one.handle(each) for each in messages]

    async def publish(outputs):
        await asyncio.sleep(0)
        published.extend(outputs)

    async def bury(letter):
        letters.append(letter)

    async def main():
        processor = AsyncProcessor(new_store(), waiting, publish, dead_letter=bury)
        outcomes = [await processor.handle(each) for each in messages]
        again = await processor.handle_many(messages, batch=2)
        return processor, outcomes, again

    processor, outcomes, again = asyncio.run(main())
    assert [outcome[:3] for outcome in outcomes] == [outcome[:3] for outcome in expected]
    assert [outcome.kind for outcome in again] == ["duplicate"] * 3 + ["failed", "duplicate"]
    assert published == plain * 2 or published[: len(plain)] == plain
    assert letters == [letters[0]] * 3
    assert [version[:4] for version in processor.history("key")] == [version[:4] for version in one.history("key")]


def test_tasks_at_once_and_cancelled_lose_nothing(new_store):
    """Two tasks on the same keys, one of them cancelled at some step: one change per message, equal outputs."""
    published = {}

    async def publish(outputs):
        await asyncio.sleep(0)
        for output in outputs:
            published.setdefault(output.id, []).append(repr(output))

    async def main():
        processor = AsyncProcessor(new_store(), waiting, publish, name="h")
        messages = [message(f"id{number}", str(number), f"key {number % 3}") for number in range(40)]
        for steps in range(0, 120, 4):
            tasks = [asyncio.create_task(processor.handle_many(messages[first:], batch=10)) for first in (0, 7)]
            for _ in range(steps):
                await asyncio.sleep(0)
            tasks[steps // 4 % 2].cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        outcomes = await processor.handle_many(messages, batch=10)
        return outcomes, [version.id for number in range(3) for version in processor.history(f"key {number}")]

    outcomes, made = asyncio.run(main())
    assert sorted(made) == sorted(f"id{number}" for number in range(40))
    assert {output.id for outcome in outcomes for output in outcome.outputs} == published.keys()
    assert all(len(set(contents)) == 1 for contents in published.values())


def test_tasks_of_one_key_run_the_handler_once_per_message_in_the_order_of_their_calls(new_store):
    """Tasks of a key wait for each other, also beside batches with their keys in other orders and cancelled tasks."""
    runs = []

    async def slow(state, message, context):
        runs.append(message.id)
        await asyncio.sleep(0.001 if message.id.endswith("7") else 0)
        context.publish(message.id)
        return [*(state or []), message.id]

    async def main():
        processor = AsyncProcessor(new_store(), slow, lambda outputs: None, name="h")
        tasks = [asyncio.create_task(processor.handle(message(f"a{n}"))) for n in range(80)]
        batches = [[message(f"{n} {key}", key=key) for key in keys] for n, keys in enumerate(["bca", "acb", "cab"] * 5)]
        tasks += [asyncio.create_task(processor.handle_many(batch)) for batch in batches]
        await asyncio.sleep(0)
        tasks[40].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results].count(asyncio.CancelledError) == 1
        assert list(processor._last.values()) == [{}]
        return loads(processor.history("key")[-1].state)

    expected = [f"a{n}" for n in range(80) if n != 40]
    for _ in range(2):  # a second event loop finds the messages as duplicates
        assert asyncio.run(main()) == expected
        assert sorted(runs) == sorted({*runs})
        runs.clear()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_event_loop_that_is_left_in_the_middle_leaves_nothing_to_wait_for(caplog):
    """Its tasks end when they are deleted. The next loop handles the key, and the processor keeps no closed loop."""
    processor = AsyncProcessor(MemoryStore(), waiting, list, name="h")

    async def leave():
        tasks = [asyncio.ensure_future(processor.handle(message(f"{n}"))) for n in range(4)]
        await asyncio.sleep(0)
        return len(tasks)

    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(leave()) == 4
    loop.close()
    del loop
    gc.collect()
    assert asyncio.run(processor.handle(message("next"))).kind == "new"
    gc.collect()
    assert [held for held in processor._last.values() if held] == []


def test_call_inside_a_handler_or_a_publisher_does_not_wait_for_its_own_caller():
    """A publisher that hands its outputs to its own processor, also for the same key, goes on."""
    store, states = MemoryStore(), []

    async def count(state, message, context):
        if message.body["word"] == "first":
            context.publish("next")
        return (state or 0) + 1

    async def publish(outputs):
        for output in outputs:
            inner = asyncio.create_task(processor.handle(message(output.id, "second")))
            states.append((await inner).state)

    async def main():
        return await asyncio.wait_for(processor.handle(message("a", "first")), 30)

    processor = AsyncProcessor(store, count, publish, name="h")
    assert asyncio.run(main()).state == 1
    assert states == [2]


def test_errors_of_coroutines_are_raised(new_store):
    """Without a dead-letter output the handler's error, a batch's and `TooLate` are raised as by `Processor`."""

    async def main():
        processor = AsyncProcessor(new_store(), waiting, list, name="h")
        with pytest.raises(ValueError, match="the word is fail"):
            await processor.handle(message("bad", "fail"))
        with pytest.raises(BatchFailed):
            await processor.handle_many([message("bad", "fail"), message("good", key="other")])
        await processor.handle(message("last"))
        assert processor.forget(older_than=timedelta(0)) == 1
        with pytest.raises(TooLate):
            await processor.handle(message("good", key="other"))

    asyncio.run(main())


class Later:
    """Counts the outputs that it was awaited for."""

    def __init__(self):
        self.received = []

    async def __call__(self, what):
        self.received.append(what)

    def lazily(self, what):
        """Publish when the result is iterated."""
        yield self.received.append(what)

    async def both(self, what):
        """Publish when the result is iterated by a coroutine."""
        yield self.received.append(what)


def outcome_of(processor, message):
    """Handle a message with a processor of either kind."""
    outcome = processor.handle(message)
    return asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome


@pytest.mark.parametrize("kind", [Processor, AsyncProcessor])
@pytest.mark.parametrize("argument", ["publish", "dead_letter", "handler"])
@pytest.mark.parametrize("call", [Later.__call__, Later.lazily, Later.both], ids=["coroutine", "generator", "both"])
@pytest.mark.filterwarnings("error")
def test_functions_that_return_unfinished_work_lose_nothing(kind, argument, call):
    """Unfinished work is either awaited or an error; the store does not call the message published."""
    later, published = Later(), []
    functions = {"handler": careless, "publish": published.extend, "dead_letter": published.append}
    functions[argument] = lambda *arguments: call(later, arguments[0])
    awaits = kind is AsyncProcessor and call is Later.__call__
    processor = kind(MemoryStore(), name="h", **functions)
    bad = message("bad", "fail") if argument == "dead_letter" else message("good")
    if argument == "handler":
        outcome = outcome_of(processor, bad)
        assert (outcome.kind, bool(later.received)) == ("new" if awaits else "failed", awaits)
        return
    if awaits:
        outcome_of(processor, bad)
        assert len(later.received) == 1
        return
    for _ in range(2):
        with pytest.raises(TypeError, match=f"{argument} must do its work before it returns, got a"):
            outcome_of(processor, bad)
    mended = {**functions, argument: later.received.append}
    outcome = outcome_of(kind(processor._store, name="h", **mended), bad)
    assert (outcome.kind, len(later.received)) == ("failed" if argument == "dead_letter" else "duplicate", 1)


@pytest.mark.parametrize("function", [waiting, Later()], ids=["coroutine function", "object"])
@pytest.mark.parametrize("argument", ["publish", "dead_letter", "handler"])
def test_processor_of_plain_functions_refuses_coroutine_functions(argument, function):
    """An unawaited coroutine would lose the message, so the error names the other class."""
    functions = {"handler": careless, "publish": list, argument: function}
    with pytest.raises(TypeError, match=f"{argument} must be a plain function; AsyncProcessor takes coroutine"):
        Processor(MemoryStore(), name="h", **functions)


class Timeout(BaseException):
    """An error of a user that is not an `Exception`."""


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Timeout])
@pytest.mark.parametrize("processor_class", [Processor, AsyncProcessor])
def test_exception_that_is_no_error_ends_handle_at_once(kind, processor_class):
    """SIGTERM can raise `SystemExit` in a handler: the message is not settled, and nothing is stored or tried again."""
    store, calls, letters = MemoryStore(), [], []

    def handler(state, message, context):
        calls.append(message.id)
        if len(calls) == 1:
            raise kind
        return "done"

    async def later(state, message, context):
        return handler(state, message, context)

    is_async = processor_class is AsyncProcessor
    processor = processor_class(store, later if is_async else handler, list, name="h", dead_letter=letters.append)
    with pytest.raises(kind):  # asyncio itself ends its loop with some of these
        outcome_of(processor, message("a"))
    assert (calls, letters, processor.history("key")) == (["a"], [], [])
    plain = Processor(store, handler, list, name="h")
    assert plain.handle(message("a")).kind == "new"
