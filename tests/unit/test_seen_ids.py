"""The IDs that `spark_ext.deduplicate` remembers in a log, against a dictionary."""

import pytest
from helpers.values import Values
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
from spark_ext.streaming._labelling import LABELS, Batch, label_bucket  # noqa: E402
from spark_ext.streaming._state.bucket_log import USUAL, BucketLog, Sizes  # noqa: E402

WITHIN = 10

# Few hashes, so that IDs repeat. Many share their first half, which is rare for real hashes.
hashes = st.tuples(st.integers(0, 9), st.integers(0, 3))
contents = st.integers(0, 3)
rows = st.tuples(hashes, contents, st.integers(0, 60), st.sampled_from([True, True, True, False]))
batches = st.lists(st.tuples(st.integers(0, 12), st.lists(rows, max_size=12)), max_size=12)


def columns(rows):
    values = [(*id, content, 1000 * time, has_id) for id, content, time, has_id in rows]
    types = [np.uint64] * 3 + [np.int64, bool]
    return Batch(*(np.array(column, type) for column, type in zip(zip(*values, strict=True), types, strict=True)))


def labels_of_model(rows, seen, watermark):
    """Label rows one by one; a dictionary holds each ID's first row and the time until which it is needed."""
    labels = [""] * len(rows)
    for place, (id, content, time, has_id) in sorted(enumerate(rows), key=lambda item: (item[1][2], item[1][1])):
        if time < watermark:
            labels[place] = "late"
        elif not has_id:
            labels[place] = "no id"
        else:
            first, until = seen.get(id, (None, -1))
            known = until >= watermark and first is not None
            labels[place] = "new" if not known else "duplicate" if first == content else "conflict"
            seen[id] = (first if known else content, max(until if known else 0, time + WITHIN))
    return labels


@given(steps=batches, sizes=st.sampled_from([USUAL, Sizes(page=80, recent=2, runs=2)]))
def test_labels_of_any_batches_equal_those_of_a_dictionary(steps, sizes):
    """Rows of any order, late rows and forgotten IDs get the labels of the plain model, in the list and in runs."""
    seen, values, watermark = {}, Values(), 0
    for advance, rows in steps:
        watermark += advance
        if not rows:
            continue
        expected = labels_of_model(rows, seen, watermark)
        log = BucketLog(values, watermark, sizes=sizes)
        labels = label_bucket(columns(rows), log, 1000 * watermark, 1000 * WITHIN)
        log.commit()
        values.commit()
        # Equal rows may change places; their labels as a whole may not.
        assert sorted(zip(rows, (LABELS[label] for label in labels), strict=True)) == sorted(
            zip(rows, expected, strict=True)
        )


def test_time_of_an_id_near_the_end_of_time_does_not_overflow():
    """The last time that a timestamp has is remembered, and not a time before 1970."""
    end, values = (1 << 63) - 1, Values()
    word = np.array([1], np.uint64)
    for expected in ("new", "duplicate"):
        log = BucketLog(values, 5)
        batch = Batch(word, word, word, np.array([end]), np.array([True]))
        assert LABELS[label_bucket(batch, log, 5000, 1000)[0]] == expected
        log.commit()
        values.commit()


@pytest.mark.parametrize(("watermark", "label"), [(18, "duplicate"), (19, "new")])
def test_id_is_needed_from_the_last_of_its_rows_in_a_micro_batch(watermark, label):
    """Rows at 0 and 8 within 10: the ID is known up to a watermark of 18."""
    values, found = Values(), []
    for batch, at in (([0, 8], 0), ([30], watermark)):
        log = BucketLog(values, at)
        rows = [((1, 1), 0, time, True) for time in batch]
        found.append(label_bucket(columns(rows), log, 1000 * at, 1000 * WITHIN).tolist())
        log.commit()
        values.commit()
    assert [[LABELS[number] for number in numbers] for numbers in found] == [["new", "duplicate"], [label]]
