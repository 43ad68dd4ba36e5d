"""Tests that every store of states must pass, for a `msgid.processing.Store` of your own. They need pytest.

Subclass `StoreTests` in a module of your tests, with a fixture that opens your store::

    class TestRedisStore(StoreTests):
        @pytest.fixture
        def open_store(self, redis):
            return lambda: RedisStore(redis)

A store that passes handles each message once: under replay, with several writers, and if workers are killed between two
steps.

With `pytest.register_assert_rewrite("msgid.testing")` in your conftest.py, pytest shows the values of an assert that
fails.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest

from msgid.ids.derived import position_id
from msgid.processing import Message, Output, Processor, dumps, loads, run
from msgid.processing.flow import next_action
from msgid.processing.store import Append, Entry, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from msgid.processing import Context, Store

__all__ = ["StoreTests"]

SUM: Final = bytes(16)
A, B, C = (str(position_id("log", number, 1_700_000_000 + number)) for number in range(3))
_MESSAGES: Final = {
    A: Message(A, "key", "a"),
    A.lower(): Message(A.lower(), "key", "a"),
    B: Message(B, "key", "twice"),
    C: Message(C, "key", "c"),
}


class StoreTests:
    """Tests of one store. Define the fixture ``open_store`` in a subclass whose name starts with ``Test``.

    The fixture returns a function. Its first call opens an empty store, and each further call opens the same store
    again, as another worker does.
    """

    @pytest.fixture
    def open_store(self) -> Callable[[], Store]:
        """Return the function that opens the store."""
        raise NotImplementedError("define the fixture open_store: it returns a function that opens the store")

    def test_append_stores_an_entry_only_after_the_newest_version(self, open_store: Callable[[], Store]) -> None:
        """The first of two writers wins, and each message keeps the state before it."""
        store = open_store()
        assert add(store, "a", b"first")
        (stale,) = store.read("h", [("key", "b")])
        assert add(open_store(), "b", b"second")
        for version, state in ((1, stale.state), (0, None), (7, b"x")):
            assert store.append("h", [Append("key", version, state, [entry("c", b"other")])]) == [False]
        assert read(store, "a") == Reading(2, None, 1, SUM)
        assert read(store, "b") == Reading(2, b"first", 2, SUM)
        assert read(store, "another") == Reading(2, b"second")
        assert read(store, "a", key="unknown") == Reading(0, None)

    def test_append_of_several_keys_stores_those_whose_version_is_the_newest(
        self, open_store: Callable[[], Store]
    ) -> None:
        """A key that another writer has changed is left alone; all entries of the other keys are stored."""
        store = open_store()
        add(store, "a", b"first", key="taken")
        wanted = [("new", "x"), ("taken", "x"), ("other", "x")]
        readings = store.read("h", wanted)
        add(open_store(), "b", b"second", key="taken")
        appends = [
            Append(key, one.version, one.state, [entry("x", b"x" * 400), entry("y", b"y")])
            for (key, _), one in zip(wanted, readings, strict=True)
        ]
        assert store.append("h", appends) == [True, False, True]
        assert read(store, "y", key="new") == Reading(2, b"x" * 400, 2, SUM)
        assert read(store, "y", key="other").handled == 2  # noqa: PLR2004
        assert [version.id for version in store.history("taken")] == ["a", "b"]

    def test_read_of_several_messages_of_one_key_has_the_state_for_each(self, open_store: Callable[[], Store]) -> None:
        """A handled message has the state before it, and a new message the newest state."""
        store = open_store()
        add(store, "a", b"first")
        add(store, "b", b"second")
        readings = store.read("h", [("key", id) for id in ("a", "x", "b", "y", "x")])
        assert [one.state for one in readings] == [None, b"second", b"first", b"second", b"second"]
        assert [one.handled for one in readings] == [1, None, 2, None, None]

    def test_any_text_and_any_bytes_come_back(self, open_store: Callable[[], Store]) -> None:
        """Keys, IDs and names are compared exactly; states and outputs may be empty or large."""
        store = open_store()
        texts = ["", "key", "KEY", "key ", "k\u00e9y", "\u65e5" * 333, "'; --", "\U0001f600"]
        states = [b"", bytes(range(256)) * 2000]
        for index, text in enumerate(texts):
            state, last = states[index % 2], entry(f"{text}!", b"last", outputs=states[index % 2])
            assert add(store, text or "-", state, key=text, handler=text or "-")
            (reading,) = store.read(text or "-", [(text, last.id)])
            assert reading.state == state
            assert store.append(text or "-", [Append(text, 1, state, [last])]) == [True]
        for index, text in enumerate(texts):
            reading = read(open_store(), f"{text}!", key=text, handler=text or "-")
            assert reading == Reading(2, states[index % 2], 2, SUM, states[index % 2])
            assert len(store.history(text)) == 2  # noqa: PLR2004

    def test_two_handlers_do_not_see_each_other(self, open_store: Callable[[], Store]) -> None:
        """Each handler has its own states, entries, history and forgetting."""
        store = open_store()
        assert add(store, "a", b"one", handler="one", stored_at=5)
        assert add(store, "a", b"two", handler="two", stored_at=5)
        assert add(store, "b", b"more", handler="two", stored_at=5)
        assert read(store, "b", handler="one") == Reading(1, b"one")
        assert store.forget(10, handler="one") == 1
        assert read(store, "a", handler="one") == Reading(1, b"one", forgotten=5)
        assert read(store, "a", handler="two") == Reading(2, None, 1, SUM)
        assert [version.state for version in store.history("key", handler="two")] == [b"two", b"more"]
        states = sorted((version.handler, version.version, version.state) for version in store.history("key"))
        assert states == [("one", 1, b"one"), ("two", 1, b"two"), ("two", 2, b"more")]

    def test_history_has_each_state_and_its_message(self, open_store: Callable[[], Store]) -> None:
        """Another worker reads the same history, oldest state first; an unknown key has an empty history."""
        for number in range(3):
            assert add(open_store(), f"id{number}", b"%d" % number, stored_at=number + 10, at=number)
        history = open_store().history("key")
        assert [tuple(version) for version in history] == [
            (number + 1, f"id{number}", number, b"%d" % number, number + 10, "h") for number in range(3)
        ]
        assert open_store().history("unknown") == []

    def test_forget_deletes_entries_stored_before_the_time(self, open_store: Callable[[], Store]) -> None:
        """An entry of exactly that time stays, and so do the newest state and the states before the kept entries."""
        store = open_store()
        for number in range(8):
            add(store, f"id{number}", b"state %d" % number * 60, stored_at=number * 10)
            add(store, f"id{number}", b"state %d" % number * 60, key="old", stored_at=number)
        assert store.forget(50) == 5 + 8
        kept = [(version.version, version.id, (version.state or b"")[:7]) for version in store.history("key")]
        assert kept == [(5, None, b"state 4"), (6, "id5", b"state 5"), (7, "id6", b"state 6"), (8, "id7", b"state 7")]
        assert [(version.id, (version.state or b"")[:7]) for version in store.history("old")] == [(None, b"state 7")]
        assert read(store, "id5") == Reading(8, b"state 4" * 60, 6, SUM)
        assert read(store, "id4").forgotten == 40  # noqa: PLR2004
        assert read(store, "id8") == Reading(8, b"state 7" * 60)
        assert store.forget(50) == store.forget(20) == 0
        assert add(store, "id8", b"state 8", key="old", stored_at=100)
        assert [(version.state or b"")[:7] for version in store.history("old")] == [b"state 7", b"state 8"]
        assert add(store, "after the clock went back", b"state 8", stored_at=20)
        assert store.forget(50) == 1
        assert [version.id for version in store.history("key")] == [None, "id5", "id6", "id7", None]

    def test_forgotten_message_is_too_late_and_never_new(self, open_store: Callable[[], Store]) -> None:
        """A batch of new, redelivered and forgotten messages: each has its own outcome."""
        now = [0]
        store = open_store()
        processor = Processor(
            store, _handler, list, name="h", dead_letter=lambda letter: None, clock=lambda: now[0] * 1000
        )
        messages = [Message(f"id {number}", f"key {number % 7}", number) for number in range(60)]
        processor.handle_many(messages[:20])
        now[0] = 10
        processor.handle_many(messages[20:40])
        assert processor.forget(10) == 20  # noqa: PLR2004
        kinds = [outcome.kind for outcome in processor.handle_many([*messages, messages[59]])]
        assert kinds == ["too late"] * 20 + ["duplicate"] * 20 + ["new"] * 20 + ["duplicate"]

    def test_forget_keeps_the_entries_of_a_writer_until_it_appends_again(self, open_store: Callable[[], Store]) -> None:
        """Its outputs may not be published; a key that is forgotten is as new all the same."""
        store = open_store()
        for number, writer in enumerate((1, 2, 1)):
            append = Append(f"key {number}", 0, None, [entry("a", b"state", stored_at=number)])
            assert store.append("h", [append], writer) == [True]
        assert open_store().forget(10, keys=True) == 1
        assert [len(store.history(f"key {number}")) for number in range(3)] == [0, 1, 1]
        assert open_store().forget_key("key 1") == 1
        assert read(store, "a", key="key 1") == Reading(0, None)

    def test_forget_with_keys_keeps_a_key_that_has_an_entry(self, open_store: Callable[[], Store]) -> None:
        """Its version goes on, whichever of its entries stays; a key without entries is as new."""
        store = open_store()
        for key, times in (("old", (0, 1)), ("first", (9, 0)), ("last", (0, 9))):
            for id, stored_at in zip("ab", times, strict=True):
                assert add(store, id, id.encode(), key=key, stored_at=stored_at)
        assert store.forget(5, keys=True) == 4  # noqa: PLR2004
        readings = open_store().read("h", [("old", "x"), ("first", "a"), ("last", "b")])
        assert readings == [Reading(0, None), Reading(2, None, 1, SUM), Reading(2, b"a", 2, SUM)]

    def test_append_to_a_forgotten_key_of_an_old_version_stores_nothing(self, open_store: Callable[[], Store]) -> None:
        """A worker has read the key before it was forgotten: the key stays new, or keeps its newer state."""
        store = open_store()
        assert add(store, "a", b"state")
        assert store.forget(5, keys=True) == 1
        assert store.append("h", [Append("key", 1, b"state", [entry("b", b"other")])]) == [False]
        assert open_store().forget_key("key") == 0
        assert read(store, "b") == Reading(0, None)
        assert add(store, "c", b"anew")
        assert store.append("h", [Append("key", 1, b"state", [entry("b", b"other")])]) == [False]
        assert read(store, "b") == Reading(1, b"anew")

    def test_forget_key_deletes_the_key_of_one_handler(self, open_store: Callable[[], Store]) -> None:
        """The other handlers and keys stay as they are, and forgotten messages are still too late."""
        store = open_store()
        keys = [("one", "key"), ("one", "other"), ("two", "key")]
        for id, stored_at in (("a", 1), ("b", 9)):
            for handler, key in keys:
                assert add(store, id, id.encode(), key=key, handler=handler, stored_at=stored_at)
        assert store.forget(5) == len(keys)
        assert open_store().forget_key("key", handler="one") == 1
        assert [read(store, "a", key, handler).forgotten for handler, key in keys] == [1, 1, 1]
        assert [read(store, "b", key, handler).handled for handler, key in keys] == [None, 2, 2]

    def test_workers_that_are_killed_between_steps_handle_each_message_once(
        self, open_store: Callable[[], Store]
    ) -> None:
        """Two or three workers take turns step by step, and some are killed: one change and one output per message."""
        stores = [open_store() for _ in range(3)]
        for seed in range(60):
            draw = random.Random(seed)
            ids = [A, A.lower(), B, C]
            deliveries = [draw.choices(ids, k=draw.randrange(1, 4)) for _ in range(draw.randrange(2, 4))]
            run_schedule(draw.randrange, stores, deliveries, draw.randrange(4), name=f"schedule {seed}")

    def test_threads_lose_nothing(self, open_store: Callable[[], Store]) -> None:
        """Threads count in the same keys, with one store for all and with a store for each: each append is atomic."""
        shared, errors = open_store(), []

        def work(worker: int) -> None:
            try:
                store = shared if worker % 2 else open_store()
                for number in range(10):
                    while not add(store, f"{worker}-{number}", _counted, key=f"key {number % 3}"):
                        pass
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not errors
        histories = [shared.history(f"key {number}") for number in range(3)]
        ids = [f"{worker}-{number}" for worker in range(4) for number in range(10)]
        assert sorted(version.id or "" for history in histories for version in history) == sorted(ids)
        for history in histories:
            assert [version.version for version in history] == list(range(1, len(history) + 1))
            assert all(version.state == b"%d" % version.version for version in history)


def run_schedule(
    choose: Callable[[int], int],
    stores: Sequence[Store],
    deliveries: Sequence[Sequence[str]],
    kills: int,
    name: str = "schedule",
) -> None:
    """Run one worker for each list of IDs, one step at a time, and check that each message was handled once.

    A killed worker loses its work, and gets the same message again.

    Args:
        choose: Returns a number below its argument: which worker is next, or is killed.
        stores: The store of each worker.
        deliveries: The IDs of the messages of each worker, in order.
        kills: Maximum number of kills.
        name: Name of the handler.
    """
    published: list[Output] = []
    workers = [Processor(stores[number], _handler, published.extend, name=name) for number in range(len(deliveries))]
    left = [list(ids) for ids in deliveries]
    running: list[Any] = [None] * len(workers)
    while any(left):
        alive = [number for number, ids in enumerate(left) if ids]
        killable = [number for number in alive if running[number] is not None] if kills else []
        choice = choose(len(alive) + len(killable))
        if choice >= len(alive):
            kills -= 1
            running[killable[choice - len(alive)]] = None
            continue
        number = alive[choice]
        if running[number] is None:
            running[number] = steps(workers[number], _MESSAGES[left[number][0]])
        try:
            # Other workers see nothing between reading and handling, and nothing after publishing.
            if next(running[number]) in ("Read", "Publish"):
                next(running[number])
        except StopIteration:
            left[number].pop(0)
            running[number] = None
    _check(published, workers[0], {id.upper() for ids in deliveries for id in ids})


def steps(processor: Processor, message: Message) -> Iterator[str]:
    """Handle a message, one step at a time; stopping between two steps simulates a crash."""
    flow = processor._batch([message], {})
    action = next_action(flow)
    while not isinstance(action, list):
        result = processor._do(action)
        yield "conflict" if result == [False] else type(action).__name__
        action = next_action(flow, result)


def _check(published: Sequence[Output], worker: Processor, ids: set[str]) -> None:
    """Check that each message made one state, and that its outputs follow from the state before it."""
    history = worker.history("key")
    assert sorted(str(version.id) for version in history) == sorted(ids)
    contents: dict[tuple[str, int], set[bytes]] = {}
    for output in published:
        contents.setdefault((output.input_id, output.number), set()).add(dumps([output.id, output.body]))
    expected: dict[tuple[str, int], set[bytes]] = {}
    state = None
    for version in history:
        state, outputs = run(_handler, state, _MESSAGES[str(version.id)])
        assert loads(version.state or b"") == state
        expected |= {(output.input_id, output.number): {dumps([output.id, output.body])} for output in outputs}
    assert contents == expected


def _handler(state: Any, message: Message, context: Context) -> Any:
    """Append the message to the state, and publish the state before it."""
    context.publish({"before": state, "body": message.body, "random": context.random.random()})
    if message.body == "twice":
        context.publish({"id": str(context.new_id()), "now": context.now.isoformat()})
    return [*(state or []), message.body]


def entry(id: str, state: bytes, stored_at: int = 0, **other: Any) -> Entry:
    return Entry(id, state, SUM, stored_at, **other)


def _counted(before: bytes | None) -> bytes:
    return b"%d" % (int(before or 0) + 1)


def add(
    store: Store,
    id: str,
    state: bytes | Callable[[bytes | None], bytes],
    *,
    key: str = "key",
    handler: str = "h",
    stored_at: int = 0,
    at: int | None = None,
) -> bool:
    """Append one entry, whose state may be made from the one before it; return whether it was stored."""
    newest = read(store, id, key, handler)
    new_state = state(newest.state) if callable(state) else state
    return store.append(handler, [Append(key, newest.version, newest.state, [entry(id, new_state, stored_at, at=at)])])[
        0
    ]


def read(store: Store, id: str, key: str = "key", handler: str = "h") -> Reading:
    """Return the reading of one message."""
    return store.read(handler, [(key, id)])[0]
