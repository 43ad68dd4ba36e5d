"""Retention: a forgotten message is too late for a stated time, and claimed times close nothing."""

from datetime import datetime, timedelta, timezone

import pytest
from handlers import append, careless

from msgid.processing import MemoryStore, Message, Processor, SqliteStore
from msgid.processing.store import Append
from msgid.testing import add, entry, read

DAY = timedelta(days=1)


class Clock:
    """A clock that the test moves, in days since 2024."""

    def __init__(self):
        self.day = 0

    def __call__(self):
        return (1_704_067_200 + self.day * 86_400) * 1_000_000_000


def message(id, word="x", key="key", timestamp=1):
    return Message(id, key, {"word": word}, timestamp)


def test_forgotten_message_is_too_late_for_the_stated_time_and_then_new(new_store, published):
    """The example of `msgid.processing.store`, with one retention period of 10 days and 90 to remember."""
    clock = Clock()
    processor = Processor(new_store(), careless, published.extend, clock=clock)
    processor.handle(message("a"))
    clock.day = 1
    processor.handle(message("later"))  # so the outputs of the first one are published
    kinds = {}
    letters = []
    answering = Processor(processor._store, careless, published.extend, clock=clock, dead_letter=letters.append)
    for clock.day in (9, 11, 99, 100, 101):
        processor.forget(older_than=timedelta(days=10))
        kinds[clock.day] = answering.handle(message("a")).kind
    assert kinds == {9: "duplicate", 11: "too late", 99: "too late", 100: "too late", 101: "new"}
    assert "is too late: it was handled at 2024-01-01T00:00:00+00:00, and that is forgotten" in letters[0].error


def test_entry_stays_until_its_outputs_are_published_whatever_is_handled_meanwhile(new_store):
    """A batch that is handled while another one is published has a writer of its own."""
    clock, nested = Clock(), []

    def publish(outputs):
        clock.day += 1
        if not nested:
            nested.append("b")
            processor.handle(message("b", key="other"))
            raise OSError("the broker is down")

    processor = Processor(new_store(), careless, publish, clock=clock)
    with pytest.raises(OSError, match="down"):
        processor.handle(message("a"))
    clock.day = 50
    processor.forget(older_than=timedelta(days=10))
    assert processor.handle(message("a")).kind == "duplicate"


def test_forget_takes_a_moment_or_an_age():
    processor = Processor(MemoryStore(), append, print)
    assert processor.forget(datetime.now(timezone.utc)) == processor.forget(0) == processor.forget(older_than=DAY) == 0
    for wrong in ({}, {"before": 0, "older_than": DAY}):
        with pytest.raises(TypeError, match="pass either before or older_than"):
            processor.forget(**wrong)
    with pytest.raises(TypeError, match=r"older_than must be a timedelta .*: timedelta\(seconds=7\)\?"):
        processor.forget(older_than=7)
    assert processor.forget(older_than="90 days") == 0


@pytest.mark.parametrize("before", [-(1 << 63), (1 << 63) - 1])
def test_forget_takes_every_moment_of_64_bits(new_store, published, before):
    """The limit of the remembered hashes may be before the first of them."""
    processor = Processor(new_store(), lambda *_: "done", published.extend, name="quiet", clock=Clock())
    processor.handle(message("a"))
    assert processor.forget(before) == (before > 0)


def test_file_whose_keys_are_all_forgotten_is_opened_again(tmp_path):
    """It is not taken for a copy that has lost its entries, also if the one that forgets had opened it empty."""
    for forget in (lambda store: store.forget_key("key"), lambda store: store.forget(1 << 62, keys=True)):
        early, store = (SqliteStore(tmp_path / "states.db") for _ in range(2))
        assert add(store, "a", b"state")
        assert forget(early) == 1
        early.close()
        store.close()
    assert SqliteStore(tmp_path / "states.db").history("key") == []


def test_key_that_was_forgotten_and_began_anew_is_not_the_one_that_was_read(new_store):
    """A worker that read the key before does not overwrite what another one has stored since, at the same version."""
    store = new_store()
    add(store, "a", b"1" * 400)
    old = read(store, "b")
    store.forget(1 << 62, keys=True)
    add(store, "c", b"2" * 400)
    assert store.append("h", [Append("key", old.version, old.state, [entry("b", b"3")])]) == [False]
    assert read(store, "b").state == b"2" * 400
