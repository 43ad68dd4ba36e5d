"""The runs in which `spark_ext.deduplicate` remembers IDs, against a dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
from spark_ext.streaming._seen import LABELS, Batch, Run, compacted, label_rows, needs_merge  # noqa: E402

WITHIN = 10

# Few hashes, so that IDs repeat. Many share their first half, which is rare for real hashes.
hashes = st.tuples(st.integers(0, 3), st.integers(0, 3))
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


@given(steps=batches)
def test_labels_of_any_batches_equal_those_of_a_dictionary(steps):
    """Rows of any order, late rows and forgotten IDs get the labels of the plain model, however runs are merged."""
    seen, runs, watermark = {}, [], 0
    for advance, rows in steps:
        watermark += advance
        if not rows:
            continue
        expected = labels_of_model(rows, seen, watermark)
        labels, run = label_rows(columns(rows), [Run.from_bytes(bytes(run)) for run in runs], watermark, WITHIN)
        # Equal rows may change places; their labels as a whole may not.
        assert sorted(zip(rows, (LABELS[label] for label in labels), strict=True)) == sorted(
            zip(rows, expected, strict=True)
        )
        runs.append(run)
        if needs_merge(runs):
            runs = [compacted(runs, watermark)]
        assert len(runs) < 16


def test_compacted_entries_whose_time_has_passed_are_dropped():
    """A merge keeps the newest entry of each ID, and drops expired entries."""
    old = Run(*(np.array([1, 2, 3], np.uint64) for _ in range(4)), until=np.array([5, 5, 50]))
    new = Run(*(np.array([2], np.uint64) for _ in range(4)), until=np.array([20]))
    assert compacted([old, new], 10).high.tolist() == [2, 3]
    assert compacted([old, new], 10).until.tolist() == [20, 50]
    assert len(compacted([old, new], 51)) == 0


def test_a_run_of_another_format_is_refused():
    """State that `deduplicate` did not write is an error, not an ID."""
    with pytest.raises(ValueError, match="cannot read the state of `deduplicate`"):
        Run.from_bytes(b"\0" * 48)
