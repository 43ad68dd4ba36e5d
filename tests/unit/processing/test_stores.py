"""Stores: reading, appending, two handlers, forgetting and threads."""

import threading
from datetime import datetime, timezone

import pytest
from helpers.stores import SUM, add, entry, read

from msgid.processing import Append
from msgid.processing.store import Reading


def test_read_after_append_returns_the_state_before_each_message(new_store):
    """A store stores an entry only if its version is the newest."""
    store = new_store()
    assert add(store, "a", b"first")
    (stale,) = store.read("h", [("key", "b")])
    assert add(store, "b", b"second")
    assert store.append("h", [Append("key", 1, stale.state, [entry("c", b"other")], stale.held)]) == [False]
    assert store.append("h", [Append("key", 0, None, [entry("c", b"other")])]) == [False]
    assert store.append("h", [Append("key", 7, b"x", [entry("c", b"other")])]) == [False]
    assert read(store, "a") == Reading(2, None, 1, SUM)
    assert read(store, "b") == Reading(2, b"first", 2, SUM)
    assert read(store, "another") == Reading(2, b"second")
    assert read(store, "a", key="nobody") == Reading(0, None)
    again = new_store()
    assert [version.state for version in again.history("key")] == [b"first", b"second"]
    assert again.history("nobody") == []


def test_append_of_several_keys_stores_the_keys_whose_version_is_the_newest(new_store):
    """A key that another worker has changed is left alone; the others of the batch are stored, all entries of them."""
    store = new_store()
    add(store, "a", b"first", key="taken")
    wanted = [("new", "x"), ("taken", "x"), ("other", "x")]
    found = store.read("h", wanted)
    add(store, "b", b"second", key="taken")
    appends = [
        Append(key, reading.version, reading.state, [entry("x", b"x" * 400), entry("y", b"y")], reading.held)
        for (key, _), reading in zip(wanted, found, strict=True)
    ]
    assert store.append("h", appends) == [True, False, True]
    assert read(store, "y", key="new") == Reading(2, b"x" * 400, 2, SUM)
    assert read(store, "y", key="other").handled == 2
    assert [version.id for version in store.history("taken")] == ["a", "b"]


def test_read_of_several_messages_of_one_key_has_the_state_for_each(new_store):
    """Messages of one key are read at once: each has its own answer, and new ones the newest state."""
    store = new_store()
    add(store, "a", b"first")
    add(store, "b", b"second")
    found = store.read("h", [("key", id) for id in ("a", "x", "b", "y", "x")])
    assert [reading.state for reading in found] == [None, b"second", b"first", b"second", b"second"]
    assert [reading.handled for reading in found] == [1, None, 2, None, None]


def test_append_of_a_message_that_has_an_entry_is_refused(new_store):
    """A message is never stored twice, not even by a caller that did not look for it."""
    store = new_store()
    assert add(store, "a", b"first")
    (found,) = store.read("h", [("key", "x")])
    other = Append("other", 0, None, [entry("a", b"other key")])
    assert store.append("h", [found_append(found, "a"), other]) == [False, True]
    assert len(store.history("key")) == 1


def found_append(found, id):
    return Append("key", found.version, found.state, [entry(id, b"again")], found.held)


def test_two_handlers_do_not_see_each_other(new_store):
    """Handlers of different names in one database have their own states, entries and forgetting."""
    store = new_store()
    assert add(store, "a", b"one", handler="one", stored_at=5)
    assert add(store, "a", b"two", handler="two", stored_at=5)
    assert add(store, "b", b"more", handler="two", stored_at=5)
    assert read(store, "b", handler="one") == Reading(1, b"one")
    assert store.forget(10, handler="one") == 1
    assert read(store, "a", handler="one") == Reading(1, b"one", forgotten=5)
    assert read(store, "a", handler="two") == Reading(2, None, 1, SUM)
    assert [version.state for version in store.history("key", handler="two")] == [b"two", b"more"]
    assert [(version.handler, version.state) for version in store.history("key")] == [
        ("one", b"one"),
        ("two", b"two"),
        ("two", b"more"),
    ]


def test_forget_deletes_what_was_stored_before_and_keeps_the_newest_state(new_store):
    """The newest state stays, and the states before the kept entries; forgotten messages are known as such."""
    store = new_store()
    for number in range(8):
        add(store, f"id{number}", b"state %d" % number * 60, stored_at=number * 10)
        add(store, f"id{number}", b"state %d" % number * 60, key="old", stored_at=number)
    assert store.forget(50) == 5 + 8
    assert [(version.version, version.id, version.state[:7]) for version in store.history("key")] == [
        (5, None, b"state 4"),
        (6, "id5", b"state 5"),
        (7, "id6", b"state 6"),
        (8, "id7", b"state 7"),
    ]
    assert [(version.id, version.state[:7]) for version in store.history("old")] == [(None, b"state 7")]
    assert read(store, "id5") == Reading(8, b"state 4" * 60, 6, SUM)
    assert read(store, "id4").forgotten == 40
    assert read(store, "id8") == Reading(8, b"state 7" * 60)
    assert store.forget(50) == store.forget(20) == 0
    assert add(store, "id8", b"state 8", key="old", stored_at=100)
    assert [version.state[:7] for version in store.history("old")] == [b"state 7", b"state 8"]


def test_forget_drops_a_hash_after_the_time_to_remember(new_store, request):
    """Hashes are kept for `remember` before the moment of a forget, and not longer: the cost has a bound."""
    store = new_store()
    store._remember = 100
    for number in range(6):
        add(store, f"id{number}", b"state", stored_at=number * 40)
    assert store.forget(200) == 5
    assert [read(store, f"id{number}").forgotten for number in range(6)] == [None, None, None, 120, 160, None]
    assert store.forget(250) == 1
    assert [read(store, f"id{number}").forgotten for number in range(6)] == [None, None, None, None, 160, 200]


def test_forget_of_entries_in_another_order_than_their_versions(new_store):
    """The clocks of two workers may disagree: each entry is forgotten by its own time, and the others stay answered."""
    store = new_store()
    states = [b"state %d" % number * 60 for number in range(8)]
    for number, stored_at in enumerate([10, 90, 20, 30, 95, 40, 50, 60]):
        add(store, f"id{number}", states[number], stored_at=stored_at)
    assert store.forget(80) == 6
    assert read(store, "id1").state == states[0]
    assert read(store, "id4").state == states[3]
    assert read(store, "new").state == states[7]
    history = {version.version: (version.id, version.state) for version in store.history("key")}
    assert history == {
        1: (None, states[0]),
        2: ("id1", None),
        4: (None, states[3]),
        5: ("id4", None),
        8: (None, states[7]),
    }


def test_forget_of_more_than_one_transaction(new_store):
    """Many entries are forgotten in several transactions, and none is left."""
    store = new_store()
    entries = [entry(f"id{number}", b"s%d" % number, number) for number in range(2500)]
    assert store.append("h", [Append("key", 0, None, entries)]) == [True]
    assert store.forget(2400) == 2400
    assert read(store, "id2399").forgotten == 2399
    assert read(store, "id2400").handled == 2401


def test_forget_takes_datetimes(new_store):
    """A moment is an aware datetime or microseconds since 1970; nothing else."""
    store = new_store()
    add(store, "a", b"x", stored_at=1_700_000_000_000_000)
    assert store.forget(datetime(2023, 11, 14, tzinfo=timezone.utc)) == 0
    assert store.forget(datetime(2023, 11, 15, tzinfo=timezone.utc)) == 1
    with pytest.raises(ValueError, match="before must be an aware datetime"):
        store.forget(datetime(2023, 11, 15))
    with pytest.raises(TypeError):
        store.forget("2023")


def test_store_is_safe_for_threads(new_store):
    """Threads that add to the same keys at once lose nothing, and store nothing twice."""
    store, errors = new_store(), []

    def work(worker):
        try:
            for number in range(20):
                while not add(store, f"{worker}-{number}", b"%d-%d" % (worker, number), key=f"key {number % 3}"):
                    pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    histories = [store.history(f"key {number}") for number in range(3)]
    assert sum(map(len, histories)) == 80
    for history in histories:
        assert [version.state.decode() for version in history] == [version.id for version in history]
        assert [version.version for version in history] == list(range(1, len(history) + 1))
