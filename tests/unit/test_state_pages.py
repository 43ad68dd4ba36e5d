"""The pages of a bucket's state, against a dictionary: any reads, changes, sweeps and restarts."""

import pytest
from helpers.values import Values
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
from spark_ext.streaming import _pages  # noqa: E402
from spark_ext.streaming._pages import DIRECTORY_BYTES, Pages  # noqa: E402


class Numbers:
    """Sorted numbers as the content of a page: each is its own place, and takes ten bytes."""

    def empty(self):
        return ()

    def load(self, raw):
        return tuple(int(part) for part in raw.split())

    def dump(self, content):
        return b"".join(b"%-10d" % number for number in content)

    def split(self, content, parts):
        starts = sorted({part * len(content) // parts for part in range(parts)})
        return [(content[a], content[a:b]) for a, b in zip(starts, [*starts[1:], len(content)], strict=True)]

    def join(self, first, second):
        return (*first, *second)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    """Pages of eight to sixteen numbers, which are small with one number."""
    monkeypatch.setattr(_pages, "PAGE_BYTES", 80)


def listed(values, directory):
    """Return all numbers, page by page, as another micro-batch reads them."""
    pages = Pages(values, Numbers(), directory, 0)
    pages.read(range(len(pages)))
    return [number for page in range(len(pages)) for number in pages.content(page)]


changes = st.lists(st.tuples(st.sampled_from(["add", "add", "add", "remove"]), st.integers(0, 99)), max_size=30)


@given(micro_batches=st.lists(changes, max_size=15))
def test_pages_have_each_entry_once_in_order_after_any_changes(micro_batches):
    """However pages are split and joined; the store does not keep a page that the directory lacks."""
    values, directory, model = Values(), b"", set()
    for number, batch in enumerate(micro_batches):
        pages = Pages(values, Numbers(), directory, number)
        pages.read(pages.pages_of(np.array([place for _, place in batch], np.uint64)).tolist())
        for action, place in batch:
            page = pages.page_of(place)
            content = set(pages.content(page)) | {place} if action == "add" else set(pages.content(page)) - {place}
            pages.replace(page, tuple(sorted(content)))
            model = model | {place} if action == "add" else model - {place}
        written = pages.commit()
        directory = directory if written is None else written
        assert listed(values, directory) == sorted(model)
        stored = sum(1 for raw in values.held.values() if raw)
        assert stored <= len(directory) // DIRECTORY_BYTES


@given(
    numbers=st.lists(st.integers(0, 10**6), min_size=50, max_size=200, unique=True), every=st.sampled_from([20, 10**6])
)
def test_pages_of_a_shrunk_state_join_again(numbers, every):
    """Entries that leave in several micro-batches leave few pages behind, also if some entries stay."""
    values = Values()
    pages = Pages(values, Numbers(), b"", 0)
    pages.replace(0, tuple(sorted(numbers)))
    directory = pages.commit()
    assert len(directory) // DIRECTORY_BYTES >= len(numbers) // 16
    stay = sorted(numbers)[every - 1 :: every]
    for start in range(0, len(numbers), 10):
        pages = Pages(values, Numbers(), directory, 0)
        for number in set(numbers[start : start + 10]) - set(stay):
            page = pages.page_of(number)
            pages.replace(page, tuple(one for one in pages.content(page) if one != number))
        directory = pages.commit() or directory
    assert listed(values, directory) == stay
    assert len(directory) // DIRECTORY_BYTES <= 2 + len(stay) // 2


def test_due_pages_are_swept_in_turn_and_once_in_a_period():
    """One page that was not read for each micro-batch, the longest unswept first; then none until the period ends."""
    values = Values()
    pages = Pages(values, Numbers(), b"", 0)
    pages.replace(0, tuple(range(40)))
    directory = pages.commit()
    count = len(directory) // DIRECTORY_BYTES
    swept = []
    for now in range(100, 100 + 2 * count):
        pages = Pages(values, Numbers(), directory, now)
        swept += pages.due(now, 100)
        directory = pages.commit() or directory
    assert swept == [*range(count)]
    assert pages.due(200, 100) == [0]


def test_pages_that_were_read_are_swept_at_once():
    """They cost no read; and one more for each page that changed."""
    values = Values()
    pages = Pages(values, Numbers(), b"", 0)
    pages.replace(0, tuple(range(80)))
    directory = pages.commit()
    pages = Pages(values, Numbers(), directory, 100)
    pages.read([5, 6])
    pages.replace(5, pages.content(5))
    pages.replace(6, pages.content(6))
    assert pages.due(100, 100) == [5, 6, 0, 1]


def test_a_micro_batch_without_changes_writes_nothing():
    """Neither pages nor the directory."""
    values = Values()
    pages = Pages(values, Numbers(), b"", 0)
    pages.replace(0, (1, 2))
    directory = pages.commit()
    values.writes = 0
    pages = Pages(values, Numbers(), directory, 5)
    pages.read([0])
    assert pages.due(5, 100) == []
    assert pages.commit() is None
    assert values.writes == 0
