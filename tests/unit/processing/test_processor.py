"""The processor: spellings, failures, changed outputs and batches."""

import asyncio
import pickle
import re
import uuid
from datetime import datetime, timezone
from functools import partial
from types import SimpleNamespace

import pytest
from handlers import append, careless

from msgid.processing import (
    AsyncProcessor,
    BatchFailed,
    ChangedBody,
    ChangedOutputs,
    MemoryStore,
    Message,
    MissingTime,
    Outcome,
    Processor,
    TooLate,
    TooManyFailures,
    async_processor,
    dumps,
    loads,
    processor,
)

V1 = "0156F7E71C361B21BC024CCDBE00000000"
V0 = "7F0000010000238F000000000001E240"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"


def message(id, word="x", key="key", timestamp=1):
    return Message(id, key, {"word": word}, timestamp)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": ""}, "invalid message id ''"),
        ({"id": None}, "must be text, bytes or an ID, got NoneType"),
        ({"id": "x" * 1001}, "id must be text of at most 1000 bytes, got 1001"),
        ({"id": "\ud800"}, "id must be text that UTF-8 can encode"),
        ({"key": None}, "key must be text, got None"),
        ({"key": "é" * 501}, "key must be text of at most 1000 bytes, got 1002"),
        ({"key": "a\0b"}, "key must be text without a NUL character"),
        ({"timestamp": 1 << 63}, "timestamp must be"),
        ({"timestamp": "now"}, "timestamp must be an integer"),
        ({"timestamp": 1_700_000_000}, "timestamp must be microseconds since 1970, got 1700000000: seconds?"),
        ({"timestamp": 1_700_000_000_000}, "milliseconds?"),
        ({"timestamp": datetime(2024, 1, 1)}, "timestamp must be an aware datetime"),
    ],
)
def test_message_checks_its_arguments_when_it_is_made(fields, reason):
    """Also if it is made from another message; so a processor never gets a malformed one."""
    good = Message("x", "key", None)
    for make in (lambda: Message(**{**good._asdict(), **fields}), lambda: good._replace(**fields)):
        with pytest.raises((ValueError, TypeError), match=re.escape(reason)):
            make()


def test_message_has_the_canonical_id_and_the_microseconds_of_a_datetime():
    """Every spelling is one ID; a message is pickled as it is."""
    made = Message(V0.lower(), "key", "body", datetime(2024, 1, 1, tzinfo=timezone.utc))
    assert made == (f"00{V0}", "key", "body", 1_704_067_200_000_000) == pickle.loads(pickle.dumps(made))
    assert Message(uuid.UUID(UUID), "key", None).id == UUID == Message(UUID.upper(), "key", None).id


class Limit(Exception):
    """The error of a soft time limit, such as Celery's."""


def raising(*errors):
    """Return a handler that raises these errors, one per run, and then succeeds."""
    left = list(errors)

    def handler(state, message, context):
        context.publish(len(left))
        if left:
            raise left.pop(0)
        return "done"

    return handler


@pytest.mark.parametrize("processor_class", [Processor, AsyncProcessor])
@pytest.mark.parametrize(
    ("errors", "options", "kind", "attempts", "waits"),
    [
        ([ValueError("one"), ValueError("two")], {}, "new", 3, []),
        ([ValueError("one"), ValueError("two")], {"backoff": 0.5}, "new", 3, [0.5, 0.5]),
        ([ValueError()] * 9, {"attempts": 4, "backoff": lambda number: 2**number}, "failed", 4, [2, 4, 8]),
        ([ValueError()] * 9, {"attempts": 1, "backoff": 5}, "failed", 1, []),
        ([KeyError(), ValueError("bad"), KeyError()], {"give_up": (ValueError,)}, "failed", 2, []),
        ([UnicodeError()], {"give_up": (ValueError, KeyError)}, "failed", 1, []),
        ([Limit()], {"give_up": (Limit,), "backoff": 1}, "failed", 1, []),
    ],
)
def test_failed_attempt_is_repeated_after_a_wait_or_given_up(
    processor_class, errors, options, kind, attempts, waits, monkeypatch
):
    """The outcome has the number of attempts; the outputs are those of the last one."""
    slept, published, letters = [], [], []

    async def sleep(seconds):
        slept.append(seconds)

    # Only the waits of the processors count: other threads of the process sleep, too.
    monkeypatch.setattr(processor, "time", SimpleNamespace(sleep=slept.append))
    monkeypatch.setattr(async_processor, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    handler = raising(*errors)
    options = {"dead_letter": letters.append, "name": "h", **options}
    outcome = processor_class(MemoryStore(), handler, published.extend, **options).handle(message("a"))
    outcome = asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome
    assert (outcome.kind, outcome.attempts, slept) == (kind, attempts, waits)
    assert [output.body for output in published] == ([0] if kind == "new" else [])
    assert [letter.attempts for letter in letters] == ([attempts] if kind == "failed" else [])


def test_processor_stops_after_so_many_failures_in_a_row(new_store, published):
    """Each success counts from 0 again. Nothing of the batch that stops is stored, published or a dead letter."""
    letters, down = [], True

    def failing(state, message, context):
        context.publish(message.id)
        if down and message.body["word"] == "fail":
            raise ConnectionError("the service is down")
        return "done"

    processor = Processor(new_store(), failing, published.extend, dead_letter=letters.append, name="h", stop_after=3)
    words = ["fail", "fail", "ok", "fail", "fail"]
    kinds = [processor.handle(message(f"id{number}", word)).kind for number, word in enumerate(words)]
    assert kinds == ["failed", "failed", "new", "failed", "failed"]
    batch = [message("next", "fail"), message("later")]
    for handle in (processor.handle_many, lambda batch: processor.handle(batch[0])):
        with pytest.raises(TooManyFailures, match="failed in a row, the last one is 'next': deliver it") as caught:
            handle(batch)
        assert str(caught.value.__cause__) == "the service is down"
    assert (len(published), len(letters), len(processor.history("key"))) == (1, 4, 1)
    down = False
    assert [outcome.kind for outcome in processor.handle_many(batch)] == ["new", "new"]


def test_text_of_a_sender_is_one_line_of_the_log(caplog):
    """An error often repeats the body: a line break does not forge a record, and no escape reaches a terminal."""

    def refuse(state, message, context):
        raise ValueError(message.body)

    processor = Processor(MemoryStore(), refuse, list, name="h", attempts=1, dead_letter=lambda letter: None)
    for number, body in enumerate(("a\nWARNING b", "a\x1b[0m", "a\r", "a\u2028b", "a" * 9_999)):
        processor.handle(Message(str(number), "key", body))
    assert len(caplog.messages) == 5
    assert all(one.isprintable() and len(one) < 1_100 for one in caplog.messages)


def test_each_outcome_is_observed_after_it_is_settled(published, caplog):
    """Metrics get kind, attempts, seconds of the handler and the message; their errors stop nothing."""
    seen, letters, now = [], [], [0]

    def slow(state, message, context):
        now[0] += 1_500_000_000
        return careless(state, message, context)

    def observe(message, outcome, seconds):
        seen.append((message.id, outcome.kind, outcome.attempts, seconds, len(published), len(letters)))
        raise RuntimeError("no metrics")

    processor = Processor(
        MemoryStore(), slow, published.extend, name="h", attempts=2, dead_letter=letters.append, observe=observe,
        clock=lambda: now[0],
    )  # fmt: skip
    processor.handle_many([message("a"), message("a"), message("b", "fail")])
    first = [("a", "new", 1, 1.5, 2, 0), ("a", "duplicate", 1, 1.5, 2, 0), ("b", "failed", 2, 3.0, 2, 1)]
    assert seen == first
    errors = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert errors == ["no metrics"] * 3
    assert "h: message 'b' of key 'key' is failed (attempts: 2): ValueError: the word is fail" in caplog.messages


@pytest.mark.parametrize(
    "options",
    [
        {"backoff": -1},
        {"backoff": "1 second"},
        {"give_up": ValueError},
        {"give_up": (KeyboardInterrupt,)},
        {"stop_after": 0},
        {"stop_after": True},
        {"observe": lambda outcome: None},
        {"name": ""},
        {"name": 7},
        {"name": "\ud800"},
        {"name": "n" * 1001},
        {"attempts": 0},
    ],
)
def test_wrong_options_are_refused(options):
    """Each is an error at once, and not at the first failure; no store can hold such a name."""
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must"):
        Processor(MemoryStore(), append, print, **options)


def test_message_that_cannot_be_copied_does_not_stop_its_batch(new_store, published):
    """A body that cannot be copied, or a state that cannot be read or written, affects only its own message."""
    letters = []

    def broken(raw):
        raise ValueError("unreadable")

    messages = [message("a"), Message("b", "key", (part for part in "x")), message("c", key="other")]
    processor = Processor(new_store(), careless, published.extend, dead_letter=letters.append, name="h")
    assert [outcome.kind for outcome in processor.handle_many(messages)] == ["new", "failed", "new"]
    assert [letter.message.id for letter in letters] == ["b"]
    unreadable = Processor(new_store(), careless, published.extend, dead_letter=letters.append, name="h", loads=broken)
    outcomes = unreadable.handle_many([message("d"), message("e", key="fresh")])
    assert [outcome.kind for outcome in outcomes] == ["failed", "new"]
    assert letters[-1].error == "ValueError: unreadable"

    def of_text(state):
        return "text" if state == 2 else dumps(state)

    def count(state, message, context):
        return (state or 0) + 1

    writing = Processor(new_store(), count, print, dead_letter=letters.append, name="count", dumps=of_text)
    outcomes = writing.handle_many([message("f"), message("g"), message("h", key="other")])
    assert [outcome.kind for outcome in outcomes] == ["new", "failed", "new"]
    assert letters[-1].error == "TypeError: dumps must return bytes, got 'text'"


def of_version(number):
    def handler(state, message, context):
        context.publish({"version": number, "before": state})
        return (state or 0) + number

    return handler


@pytest.mark.parametrize("many", [False, True], ids=["handle", "handle_many"])
def test_redelivered_message_whose_outputs_changed_is_an_error(new_store, published, many):
    """A new version of the handler never publishes another body under the same ID in silence."""
    store = new_store()
    Processor(store, of_version(1), published.extend, name="h").handle(message("a"))
    changed = Processor(store, of_version(2), published.extend, name="h")
    with pytest.raises(BatchFailed if many else ChangedOutputs, match="gives other outputs than the first time"):
        changed.handle_many([message("a")]) if many else changed.handle(message("a"))
    letters = []
    other = Processor(store, of_version(2), published.extend, name="h", dead_letter=letters.append)
    assert other.handle(message("a")).kind == letters[0].kind == "changed"
    assert "context.new_id()" in str(letters[0].error)
    assert f"the first is now {published[0].id} with {{'before': None, 'version': 2}}" in str(letters[0].error)
    assert len(published) == len(store.history("key")) == 1
    assert changed.handle(message("b")).outputs[0].body == {"version": 2, "before": 1}


class Methods:
    def method(self, state, message, context):
        return state

    __call__ = method


@pytest.mark.parametrize(
    "handler",
    [lambda *_: None, partial(append), of_version(1), Methods().method, Methods()],
    ids=["lambda", "partial", "closure", "method", "object"],
)
def test_handler_without_a_name_of_its_own_needs_one(handler):
    """Two handlers that would have one name by chance do not share states: the name must be given."""
    with pytest.raises(ValueError, match="name must be given for a handler without a name of its own"):
        Processor(MemoryStore(), handler, print)
    assert Processor(MemoryStore(), handler, print, name="n").handle(message("a")).kind == "new"


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_handle_many_without_dead_letters_stops_a_key_at_its_first_failure(new_store, published, batch):
    """Later messages of the key are not tried, also in a later transaction. Other keys go on, and order is kept."""
    away, runs = [True], []

    def failing(state, message, context):
        runs.append(message.id)
        if away and message.body["word"] == "fail":
            raise ConnectionError("the service is away")
        return careless(state, message.with_body({"word": message.id}), context)

    processor = Processor(new_store(), failing, published.extend, name="h", attempts=1)
    words = [("a", "key", "ok"), ("b", "key", "fail"), ("c", "other", "ok"), ("d", "key", "ok"), ("a", "key", "ok")]
    messages = [message(id, word, key) for id, key, word in words]
    with pytest.raises(BatchFailed, match="3 of 5 messages were not handled; the first: ConnectionError") as caught:
        processor.handle_many(messages, batch=batch)
    assert [one.kind for one in caught.value.outcomes] == ["new", "failed", "new", "not tried", "not tried"]
    assert len({str(outcome.error) for outcome in caught.value.outcomes[3:]} - {"the service is away"}) == 0
    assert (runs, len(published)) == (["a", "b", "c"], 2)
    away.clear()
    kinds = [outcome.kind for outcome in processor.handle_many(messages, batch=batch)]
    assert kinds == ["duplicate", "new", "duplicate", "new", "duplicate"]
    assert loads(processor.history("key")[-1].state) == {"seen": ["a", "b", "d"]}


def test_key_that_another_worker_has_changed_is_tried_again_to_its_first_failure(new_store, published):
    """The failure of a lost attempt does not count: on the other worker's state, the messages are handled in order."""
    store, runs = new_store(), []

    def first_only(state, message, context):
        runs.append(message.id)
        if runs == ["a"]:
            Processor(store, careless, published.extend, name="h").handle(message_of_other)
        if message.id == "b" and "other" not in state["seen"]:
            raise ValueError("the other message is missing")
        return careless(state, message, context)

    message_of_other = message("other", "other")
    processor = Processor(store, first_only, published.extend, name="h", attempts=1)
    outcomes = processor.handle_many([message("a", "a"), message("b", "b"), message("c", "c")])
    assert [outcome.kind for outcome in outcomes] == ["new", "new", "new"]
    assert runs == ["a", "b", "a", "b", "c"]
    assert loads(processor.history("key")[-1].state) == {"seen": ["other", "a", "b", "c"]}


def test_handle_many_runs_again_what_another_worker_has_changed(new_store, published):
    """Between reading and storing another worker adds to a key: that key alone is handled again, on the new state."""
    store = new_store()
    runs = []

    def interrupted(state, message, context):
        runs.append(message.id)
        if runs == ["a", "b"]:
            Processor(store, careless, published.extend, name="h").handle(Message("other", "taken", {"word": "other"}))
        return careless(state, message, context)

    processor = Processor(store, interrupted, published.extend, name="h")
    outcomes = processor.handle_many([message("a", key="free"), message("b", key="taken"), message("b", key="taken")])
    assert runs == ["a", "b", "b", "b", "b"]
    assert [outcome.kind for outcome in outcomes] == ["new", "new", "duplicate"]
    assert outcomes[1].state == {"seen": ["other", "x"]}
    assert [output.body["seen"] for output in published] == [["other"], ["x"], ["other", "x"], ["other", "x"]]


def test_errors_and_outcomes_pickle():
    for error in (
        TooLate(message("a"), 7),
        ChangedOutputs(message("a"), b"1", b"2"),
        TooManyFailures(5, message("a")),
        MissingTime("a"),
        BatchFailed([Outcome("failed", error=ValueError("x"))]),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
    assert pickle.loads(pickle.dumps(TooLate(message("a"), 7))).stored_at == 7


@pytest.mark.parametrize("keep_outputs", [False, True])
def test_message_with_the_id_of_another_is_a_conflict(keep_outputs, caplog):
    """It is neither handled nor published, in one batch or later; a redelivery of the first one is a duplicate."""
    first, second = Message(V1, "key", {"order": 1, "of": "a"}), Message(V1, "key", {"order": 2, "of": "a"})
    published, letters, store = [], [], MemoryStore()
    processor = Processor(
        store, lambda state, message, context: context.publish("handled"), published.extend, name="orders",
        keep_outputs=keep_outputs, dead_letter=letters.append,
    )  # fmt: skip
    batch = [first, second, first._replace(body={"of": "a", "order": 1})]
    assert [outcome.kind for outcome in processor.handle_many(batch)] == ["new", "conflict", "duplicate"]
    assert processor.handle(second).kind == "conflict"
    assert [letter.message.body for letter in letters] == [second.body] * 2
    assert (len(published), len(store.history("key"))) == (2, 1)
    assert f"orders: message {V1!r} of key 'key' is conflict (attempts: 0): ChangedBody: message {V1!r}" in caplog.text
    silent = Processor(store, lambda *_: None, list, name="orders")
    with pytest.raises(ChangedBody, match="has the ID of a handled message and another body: not handled"):
        silent.handle(second)
    opaque = [Message("opaque", "key", object()) for _ in range(2)]
    assert [processor.handle(message).kind for message in opaque] == ["new", "duplicate"]
