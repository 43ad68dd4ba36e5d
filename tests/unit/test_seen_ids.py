"""The IDs that `spark_ext.deduplicate` remembers in pages, against a dictionary."""

import pytest
from helpers.values import Values
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
from spark_ext.streaming import _pages  # noqa: E402
from spark_ext.streaming._pages import Pages  # noqa: E402
from spark_ext.streaming._seen import LABELS, Batch, Entries, EntriesCodec, label_bucket, merged  # noqa: E402

WITHIN = 10

# Few hashes, so that IDs repeat. Many share their first half, which is rare for real hashes.
hashes = st.tuples(st.integers(0, 9), st.integers(0, 3))
contents = st.tuples(st.integers(0, 1), st.integers(0, 1))
rows = st.tuples(hashes, contents, st.integers(0, 60), st.sampled_from([True, True, True, False]))
batches = st.lists(st.tuples(st.integers(0, 12), st.lists(rows, max_size=12)), max_size=12)


def columns(rows):
    values = [(*id, *content, time, has_id) for id, content, time, has_id in rows]
    types = [np.uint64] * 4 + [np.int64, bool]
    return Batch(*(np.array(column, type) for column, type in zip(zip(*values, strict=True), types, strict=True)))


def labels_of_model(rows, seen, watermark):
    """Label rows one by one; a dictionary holds each ID's first row and the time until which it is needed."""
    labels = [""] * len(rows)
    for place, (id, content, time, has_id) in sorted(enumerate(rows), key=lambda item: (item[1][2], item[1][1])):
        if time < watermark:
            labels[place] = "late"
        elif not has_id:
            labels[place] = "new"
        else:
            first, until = seen.get(id, (None, -1))
            known = until >= watermark and first is not None
            labels[place] = "new" if not known else "duplicate" if first == content else "conflict"
            seen[id] = (first if known else content, max(until if known else 0, time + WITHIN))
    return labels


@pytest.fixture(scope="module", params=[80, 16 << 10])
def page_bytes(request):
    """Pages of two entries, and pages of the usual size."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(_pages, "PAGE_BYTES", request.param)
        yield request.param


@given(steps=batches)
def test_labels_of_any_batches_equal_those_of_a_dictionary(page_bytes, steps):
    """Rows of any order, late rows and forgotten IDs get the labels of the plain model, however pages are divided."""
    seen, values, directory, watermark = {}, Values(), b"", 0
    for advance, rows in steps:
        watermark += advance
        if not rows:
            continue
        expected = labels_of_model(rows, seen, watermark)
        pages = Pages(values, EntriesCodec(), directory, watermark)
        labels = label_bucket(columns(rows), pages, watermark, WITHIN)
        written = pages.commit()
        directory = directory if written is None else written
        # Equal rows may change places; their labels as a whole may not.
        assert sorted(zip(rows, (LABELS[label] for label in labels), strict=True)) == sorted(
            zip(rows, expected, strict=True)
        )


def stream(micro_batches, rows, place, per_second):
    """Label micro-batches of new IDs; return what each one read and wrote, and the number of entries at its end."""
    values, directory, told = Values(), b"", []
    within = 50 * rows * 1_000_000 // per_second
    for batch in range(micro_batches):
        numbers = np.arange(batch * rows, (batch + 1) * rows, dtype=np.uint64)
        time = numbers.astype(np.int64) * 1_000_000 // per_second
        watermark = max(int(time[0]) - within, 0)
        values.reads = values.writes = 0
        pages = Pages(values, EntriesCodec(), directory, watermark)
        labels = label_bucket(
            Batch(place(numbers, time), numbers, numbers, numbers, time, np.ones(rows, bool)), pages, watermark, within
        )
        assert not labels.any()
        directory = pages.commit() or directory
        told.append((values.reads, values.writes, sum(len(raw) // 40 for raw in values.held.values())))
    return told


def by_time(numbers, time):
    """Places of IDs that carry their time: a prefix of seconds and a hash."""
    return (time // 1_000_000).astype(np.uint64) << np.uint64(32) | by_hash(numbers, time) >> np.uint64(32)


def by_hash(numbers, time):
    """Places of IDs without time."""
    return numbers * np.uint64(0x9E3779B97F4A7C15)


@pytest.mark.parametrize("place", [by_time, by_hash])
@pytest.mark.parametrize("rows", [20, 1000])
def test_forgotten_ids_leave_the_state_in_micro_batches_of_any_size(place, rows):
    """The state stays below three times the IDs that are needed, which are those of 50 micro-batches and the delay."""
    told = stream(160, rows, place, per_second=1000)
    needed = 2 * 50 * rows
    assert max(entries for _, _, entries in told) < 3 * needed


def test_new_ids_that_carry_their_time_touch_the_newest_pages_alone():
    """A small micro-batch reads and writes a few pages, however many IDs the state has."""
    told = stream(2000, 200, by_time, per_second=1000)
    assert told[-1][2] > 15_000
    assert max(reads for reads, _, _ in told[-50:]) <= 4
    assert max(writes for _, writes, _ in told[-50:]) <= 4


def test_merged_entries_whose_time_has_passed_are_dropped():
    """A merge keeps the newest entry of each ID, and drops expired entries."""
    old = Entries(*(np.array([1, 2, 3], np.uint64) for _ in range(4)), until=np.array([5, 5, 50]))
    new = Entries(*(np.array([2], np.uint64) for _ in range(4)), until=np.array([20]))
    assert merged(old, new, 10).high.tolist() == [2, 3]
    assert merged(old, new, 10).until.tolist() == [20, 50]
    assert len(merged(old, new, 51)) == 0
