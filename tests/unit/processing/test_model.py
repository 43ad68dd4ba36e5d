"""Processor and all stores against a plain Python model, through any history of deliveries, restarts and forgetting."""

import contextlib
import functools
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import msgid
from msgid.processing import MemoryStore, Message, PostgresStore, Processor, SqliteStore, loads

V1 = str(msgid.position_id("log", 7, 1_700_000_000))
V0 = "7F0000010000238F000000000001E240"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
SPELLINGS = {
    V1: [V1, V1.lower()],
    f"00{V0}": [V0, V0.lower(), f"00{V0}"],
    UUID: [UUID, UUID.upper()],
    "orders-0-42": ["orders-0-42"],
    "Orders-0-42": ["Orders-0-42"],
}
CANONICAL = {spelling: id for id, spellings in SPELLINGS.items() for spelling in spellings}
NAMES, KEYS = ["one", "two"], ["key", "другой"]
REMEMBER_DAYS = 20
DAY = 86_400_000_000

deliveries = st.tuples(st.sampled_from(KEYS), st.sampled_from(sorted(CANONICAL)), st.sampled_from(["a", "b", "fail"]))


def handler_of(code):
    """Return the handler of one version of the code."""

    def handler(state, message, context):
        state = state or {"words": [], "padding": "x" * 300}
        state["words"].append(message.body.pop("word"))
        context.publish({"code": code, "state": state, "of": message.id, "raw": b"\xff"}, topic=str(code))
        if state["words"][-1] == "fail":
            raise ValueError(f"fail of {code}")
        if len(state["words"]) % 3 == 0:
            context.publish([str(context.new_id()), context.random.randrange(10**9)])
        return state

    return handler


class Handled(NamedTuple):
    """A handled message in the model."""

    version: int
    before: tuple
    code: int
    word: str
    stored_at: int
    kept: bool


class Model:
    """A handler's states and messages in lists and dicts."""

    def __init__(self):
        self.words = dict.fromkeys(KEYS, ())
        self.version = dict.fromkeys(KEYS, 0)
        self.handled = {}
        self.forgotten = {}
        self.writing = None
        """When the processor has stored its last batch."""
        self.unpublished = set()
        """When processors that are gone have stored their last batches, and when batches failed to be published."""

    def deliver(self, key, id, word, code, now, keep):
        """Return the kind of the outcome, the words of the state, and what its outputs follow from."""
        known = self.handled.get((key, id))
        if known is not None:
            if word != known.word:
                return "conflict", None, None
            if known.kept:
                return "duplicate", (*known.before, known.word), (known.code, known.before, known.word)
            if word == "fail":
                return "failed", None, None
            if code != known.code:
                return "changed", None, None
            return "duplicate", (*known.before, word), (code, known.before, word)
        if (key, id) in self.forgotten:
            return "too late", None, None
        if word == "fail":
            return "failed", None, None
        before = self.words[key]
        self.words[key] = (*before, word)
        self.version[key] += 1
        self.handled[key, id] = Handled(self.version[key], before, code, word, now, keep)
        return "new", self.words[key], (code, before, word)

    def lose_writer(self):
        self.unpublished |= {self.writing} - {None}
        self.writing = None

    def forget(self, before, keys):
        kept = self.unpublished | {self.writing}
        gone = [where for where, it in self.handled.items() if it.stored_at < before and it.stored_at not in kept]
        for where in gone:
            self.forgotten[where] = self.handled.pop(where).stored_at
        oldest = before - REMEMBER_DAYS * DAY
        self.forgotten = {where: at for where, at in self.forgotten.items() if at >= oldest}
        self.unpublished = {at for at in self.unpublished if at >= oldest}
        if self.writing is not None and self.writing < oldest:
            self.writing = None
        for key in {key for key, _ in gone if keys} - {key for key, _ in self.handled}:
            self.words[key], self.version[key] = (), 0
        return len(gone)

    def forget_key(self, key):
        gone = [where for where in self.handled if where[0] == key]
        for where in gone:
            del self.handled[where]
        self.words[key], self.version[key] = (), 0
        return len(gone)

    def history(self, key):
        """Return version, ID and words of each state that is known."""
        entries = {known.version: (id, known) for (of, id), known in self.handled.items() if of == key}
        states = {known.version - 1: known.before for _, known in entries.values() if known.version > 1}
        if self.version[key]:
            states[self.version[key]] = self.words[key]
        return [
            (version, entries[version][0] if version in entries else None, states.get(version))
            for version in sorted(entries.keys() | states.keys())
        ]


class Machine(RuleBasedStateMachine):
    """Every store is given the same work; what each one answers is what the model says."""

    address: str | None = None
    """Of a PostgreSQL server, where there is one."""

    @initialize(keep=st.booleans())
    def start(self, keep):
        self.folder = Path(tempfile.mkdtemp(prefix="msgid-"))
        self.models = {name: Model() for name in NAMES}
        self.code, self.day = 1, 100
        self.memory = MemoryStore(remember=timedelta(days=REMEMBER_DAYS))
        self.stores = []
        if self.address is not None:
            import psycopg

            with psycopg.connect(self.address, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS model CASCADE; CREATE SCHEMA model")
        self.restart(keep)

    def teardown(self):
        if hasattr(self, "stores"):
            for store in self.stores[1:]:
                store.close()
            shutil.rmtree(self.folder)

    @rule(keep=st.booleans())
    def restart(self, keep):
        """Open the stores again, and keep outputs or not."""
        for store in self.stores[1:]:
            store.close()
        options = {"remember": timedelta(days=REMEMBER_DAYS)}
        sqlite = SqliteStore(self.folder / "states.db", **options)
        sqlite._connection().execute("PRAGMA synchronous = OFF")
        self.stores = [self.memory, sqlite]
        if self.address is not None:
            self.stores.append(PostgresStore(f"{self.address} options='-c search_path=model'", **options))
        self.keep = keep
        self._processors()

    @rule()
    def change_code(self):
        """A new version of both handlers publishes other bodies."""
        self.code = 3 - self.code
        self._processors()

    @rule(days=st.integers(0, 15))
    def wait(self, days):
        self.day += days

    @rule(name=st.sampled_from(NAMES), days=st.integers(0, 15), keys=st.booleans())
    def forget(self, name, days, keys):
        expected = self.models[name].forget((self.day - days) * DAY, keys)
        for processors in self.processors:
            assert processors[name].forget(older_than=timedelta(days=days), keys=keys) == expected

    @rule(name=st.sampled_from(NAMES), key=st.sampled_from(KEYS))
    def forget_key(self, name, key):
        expected = self.models[name].forget_key(key)
        for processors in self.processors:
            assert processors[name].forget_key(key) == expected

    @rule(name=st.sampled_from(NAMES), what=st.lists(deliveries, min_size=1, max_size=6), batch=st.integers(0, 4))
    def deliver(self, name, what, batch, broken=False):
        """Deliver messages one by one (batch 0) or in batches, with a claimed time that means nothing."""
        messages = [
            Message(spelling, key, {"word": word}, [None, 0, 4_070_908_800_000_000][len(word) % 3])
            for key, spelling, word in what
        ]
        model, expected, is_stopped = self.models[name], [], False
        for start in range(0, len(what), batch or 1):
            outcomes = [
                model.deliver(key, CANONICAL[spelling], word, self.code, self.day * DAY, self.keep)
                for key, spelling, word in what[start : start + (batch or 1)]
            ]
            is_stored = any(kind == "new" for kind, _, _ in outcomes)
            if is_stored:
                model.writing = self.day * DAY
            is_stopped = broken and any(origin for _, _, origin in outcomes)
            if is_stopped:
                if is_stored:
                    model.lose_writer()
                break
            expected += outcomes
        self.broken = broken
        for processors, published, letters in zip(self.processors, self.published, self.letters, strict=True):
            published.clear()
            letters.clear()
            processor, outcomes = processors[name], []
            with pytest.raises(BrokenPipeError) if is_stopped else contextlib.nullcontext():
                if batch:
                    outcomes += processor.handle_many(messages, batch=batch)
                else:
                    outcomes.extend(map(processor.handle, messages))
            for message, outcome, (kind, words, origin) in zip(messages, outcomes, expected, strict=False):
                assert (outcome.kind, outcome.state and tuple(outcome.state["words"])) == (kind, words)
                assert {output.input_id for output in outcome.outputs} <= {message.id}
                self._check_outputs(outcome.outputs, origin)
            assert is_stopped or len(outcomes) == len(expected)
            inputs = [message.id for message, (_, _, origin) in zip(messages, expected, strict=False) if origin]
            assert list(dict.fromkeys(output.input_id for output in published)) == list(dict.fromkeys(inputs))
            assert [(letter.message, letter.kind) for letter in letters] == [
                (message, kind)
                for message, (kind, _, _) in zip(messages, expected, strict=False)
                if kind not in ("new", "duplicate")
            ]
        assert all(published == self.published[0] for published in self.published)

    @rule(name=st.sampled_from(NAMES), what=st.lists(deliveries, min_size=1, max_size=3), batch=st.integers(0, 2))
    def deliver_without_a_broker(self, name, what, batch):
        """The outputs are stored and not published."""
        self.deliver(name, what, batch, broken=True)

    @invariant()
    def histories_are_the_models(self):
        if not hasattr(self, "models"):
            return
        for name, model in self.models.items():
            for key in KEYS:
                expected = model.history(key)
                for store in self.stores:
                    found = store.history(key, handler=name)
                    words = [version.state and tuple(loads(version.state)["words"]) for version in found]
                    named = [(version.version, version.id) for version in found]
                    assert [(*one, state) for one, state in zip(named, words, strict=True)] == expected

    def _check_outputs(self, outputs, origin):
        if origin is None:
            assert list(outputs) == []
            return
        code, before, word = origin
        first = outputs[0]
        assert (first.topic, first.body["code"], first.body["raw"]) == (str(code), code, b"\xff")
        assert tuple(first.body["state"]["words"]) == (*before, word)
        assert len(outputs) == 1 + ((len(before) + 1) % 3 == 0)
        assert len({output.id for output in outputs}) == len(outputs)

    def _publish(self, published, outputs):
        if self.broken:
            raise BrokenPipeError
        published.extend(outputs)

    def _processors(self):
        self.published = [[] for _ in self.stores]
        self.broken = False
        for model in self.models.values():
            model.lose_writer()
        self.letters = [[] for _ in self.stores]
        self.processors = [
            {
                name: Processor(
                    store,
                    handler_of(self.code),
                    functools.partial(self._publish, published),
                    name=name,
                    dead_letter=letters.append,
                    keep_outputs=self.keep,
                    clock=lambda: self.day * DAY * 1000,
                )
                for name in NAMES
            }
            for store, published, letters in zip(self.stores, self.published, self.letters, strict=True)
        ]


FEW = settings(max_examples=15, stateful_step_count=30, deadline=None)
MANY = settings(FEW, max_examples=150, stateful_step_count=60)


@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.volume)], ids=["few", "many"])
def test_memory_and_sqlite_are_the_model(number):
    """Spellings, duplicates, failures, new code, restarts, forgetting, two handlers, batches: no difference."""
    run_state_machine_as_test(Machine, settings=number)


@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.volume)], ids=["few", "many"])
def test_postgres_is_the_model(postgres, number):
    """The same with a real PostgreSQL server beside them."""
    machine = type("PostgresMachine", (Machine,), {"address": postgres})
    run_state_machine_as_test(machine, settings=number)
