"""The stores pass the tests of `msgid.testing`, and a faulty store does not."""

import random
from datetime import datetime, timezone

import pytest

from msgid.processing import Append, BatchFailed, ChangedOutputs, MemoryStore
from msgid.testing import StoreTests, add, entry, read


class TestStores(StoreTests):
    """The stores in memory, in a file and in a real PostgreSQL server, with and without differences between states."""

    @pytest.fixture
    def open_store(self, new_store):
        return new_store


class AllOrNothing(MemoryStore):
    """Reports one lost key as a loss of the whole batch, though it stored the others."""

    def append(self, handler, appends, writer=None):
        return [all(super().append(handler, appends))] * len(appends)


class OneHandler(MemoryStore):
    """Mixes the states of all handlers."""

    def read(self, handler, wanted):
        return super().read("one", wanted)

    def append(self, handler, appends, writer=None):
        return super().append("one", appends)


@pytest.mark.parametrize("faulty", [AllOrNothing, OneHandler])
def test_contract_notices_a_faulty_store(faulty):
    failed = []
    for name in dir(StoreTests):
        if name.startswith("test_") and name != "test_threads_lose_nothing":
            store = faulty()
            try:
                getattr(StoreTests(), name)(lambda store=store: store)
            except (AssertionError, BatchFailed, ChangedOutputs):
                failed.append(name)
    assert failed


def test_forget_of_more_than_one_transaction(new_store):
    store = new_store()
    entries = [entry(f"id{number}", b"s%d" % number, number) for number in range(2500)]
    random.Random(1).shuffle(entries)
    assert store.append("h", [Append("key", 0, None, entries)]) == [True]
    assert store.forget(2400) == 2400
    assert read(store, "id2399").forgotten == 2399
    assert read(store, "id2400").handled == [one.id for one in entries].index("id2400") + 1


def test_forget_takes_datetimes(new_store):
    store = new_store()
    add(store, "a", b"x", stored_at=1_700_000_000_000_000)
    assert store.forget(datetime(2023, 11, 14, tzinfo=timezone.utc)) == 0
    assert store.forget(datetime(2023, 11, 15, tzinfo=timezone.utc)) == 1
    with pytest.raises(ValueError, match="before must be an aware datetime"):
        store.forget(datetime(2023, 11, 15))
    with pytest.raises(TypeError):
        store.forget("2023")
