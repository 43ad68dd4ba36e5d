"""The log of a bucket's state, against a dictionary: any entries, expiries, merges, restarts and crashes."""

import pytest
from helpers.values import Crash, Values, living
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
from spark_ext.streaming._state.bucket_log import (  # noqa: E402
    BEFORE_ALL,
    HEAD,
    USUAL,
    BucketLog,
    Entries,
    Sizes,
    fixed,
    read_entries,
    written_entries,
)


def entries(rows):
    """Return entries of (hash, time, payload), a hash being a pair of numbers."""
    rows = list(rows)
    high, low = (np.array([hash[half] for hash, _, _ in rows], np.uint64) for half in (0, 1))
    times = np.array([time for _, time, _ in rows], np.int64)
    return Entries(high, low, times, pa.array([payload for _, _, payload in rows], pa.large_binary()))


def listed(found):
    """Return entries as a dictionary by hash."""
    columns = (found.high.tolist(), found.low.tolist(), found.time.tolist(), found.data.to_pylist())
    return {(high, low): (time, payload) for high, low, time, payload in zip(*columns, strict=True)}


# Few hashes, so that they repeat. Many share their first half, which is rare for real hashes.
tied = st.tuples(st.integers(0, 9), st.integers(0, 3))
spread = st.tuples(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
payloads = st.sampled_from([b"", b"a" * 16, b"b" * 16, b"c", b"d" * 150])
fixed_payloads = st.sampled_from([b"a" * 16, b"b" * 16])
sizes = st.builds(
    Sizes,
    page=st.sampled_from([40, 100, 400, 64 << 10]),
    recent=st.integers(1, 6),
    runs=st.integers(2, 4),
)


@st.composite
def histories(draw):
    """Return micro-batches: the time that passes, the entries, and the calls until a crash or None."""
    hashes = draw(st.sampled_from([tied, spread, None]))
    values = draw(st.sampled_from([payloads, fixed_payloads]))
    batches, pool = [], []
    for number in range(draw(st.integers(1, 14))):
        made = []
        for n in range(draw(st.integers(0, 9))):
            if hashes is None:  # hashes that begin with the time
                fresh = (number << 32 | n, draw(st.integers(0, 1)))
            else:
                fresh = draw(hashes)
            hash = draw(st.sampled_from(pool)) if pool and draw(st.integers(0, 3)) == 0 else fresh
            pool.append(hash)
            made.append((hash, draw(st.integers(0, 3)), draw(values)))
        passed = draw(st.sampled_from([0, 1, 3]))
        crash = draw(st.none() | st.integers(0, 12))
        batches.append((passed, made, crash))
    return batches


@given(batches=histories(), sizes=sizes, bare_after=st.sampled_from([2, 10**6]))
def test_log_has_the_newest_living_entry_of_each_hash(batches, sizes, bare_after):
    """A crash between any two calls loses the micro-batch and nothing else.

    An entry dies 10 units after its time, and loses its payload some units after its time, at the latest when a run is
    written. The time of a hash only grows. The store does not keep a value that the head lacks.
    """
    values, model, now = Values(), {}, 0
    for passed, rows, crash in batches:
        now += passed
        dead, bare = now - 10, now - bare_after
        made = {hash: (max(now + late, model.get(hash, (0,))[0]), payload) for hash, late, payload in rows}
        added = entries((hash, *value) for hash, value in made.items())
        for calls in (crash, None):
            values.calls_left = calls
            try:
                log = BucketLog(values, dead, bare, sizes=sizes)
                check(log, model, made, dead, bare)
                log.add(added)
                check(log, {**model, **made}, made, dead, bare)
                log.commit()
                values.commit()
                break
            except Crash:
                values.lose()
        values.calls_left = None
        model |= made
        log = BucketLog(values, dead, bare, sizes=sizes)
        found = listed(living(log))
        alive = {hash: value for hash, value in model.items() if value[0] >= dead}
        assert {hash: time for hash, (time, _) in found.items()} == {hash: time for hash, (time, _) in alive.items()}
        assert {hash: payload for hash, (time, payload) in found.items() if time >= bare} == {
            hash: payload for hash, (time, payload) in alive.items() if time >= bare
        }
        numbers = {number for run in log.runs for number in [*run.pages["number"].tolist(), run.number]}
        assert numbers | {HEAD} == set(values.numbered)
        for run in log.runs:
            assert run.latest >= dead
            assert run.latest >= bare or not run.pages["payloads"].any()
            assert (run.pages["first"][1:] > run.pages["last"][:-1]).all()


def check(log, model, made, dead, bare):
    """Look up known and unknown hashes, and compare with the model."""
    asked = sorted({*model, *made, (5, 9), (1 << 63, 7)})
    high, low = (np.array([hash[half] for hash in asked], np.uint64) for half in (0, 1))
    place, found = log.find(high, low)
    times, data = found.time.tolist(), found.data.to_pylist()
    for hash, at in zip(asked, place.tolist(), strict=True):
        time, payload = model.get(hash, (BEFORE_ALL, b""))
        assert (at >= 0) == (time > BEFORE_ALL and time >= dead)
        if at >= 0:
            assert times[at] == time
            assert data[at] == payload or (time < bare and data[at] == b"")


class CountingLog(BucketLog):
    """Counts the pages that it reads."""

    pages = 0

    def _page(self, page):
        self.pages += 1
        return super()._page(page)


def stream(micro_batches, rows, hashes, *, sizes=USUAL, kept=50):
    """Add new entries; return the pages that each micro-batch read, its writes, and the entries at its end."""
    values, told = Values(), []
    for batch in range(micro_batches):
        numbers = np.arange(batch * rows, (batch + 1) * rows, dtype=np.uint64)
        values.writes = values.bytes = 0
        log = CountingLog(values, batch - kept, sizes=sizes)
        high = hashes(numbers, batch)
        place, _ = log.find(high, numbers)
        assert (place < 0).all()
        log.add(Entries(high, numbers, np.full(rows, batch), fixed(np.zeros((rows, 16), np.uint8))))
        log.commit()
        values.commit()
        entries = sum(int(run.pages["entries"].sum()) for run in BucketLog(values).runs)
        told.append((log.pages, values.writes, values.bytes, entries))
    return told


def by_time(numbers, batch):
    """Hashes that begin with the time."""
    return np.uint64(batch) << np.uint64(32) | by_hash(numbers, batch) >> np.uint64(32)


def by_hash(numbers, batch):
    """Hashes without time."""
    return numbers * np.uint64(0x9E3779B97F4A7C15)


@pytest.mark.parametrize("hashes", [by_time, by_hash])
def test_expired_entries_leave_the_log(hashes):
    """The log stays below three times the entries that are needed, which are those of 50 micro-batches."""
    told = stream(200, 100, hashes, sizes=Sizes(page=4 << 10))
    assert max(entries for *_, entries in told) < 3 * 50 * 100


def test_new_random_hashes_cost_neither_pages_nor_much_writing():
    """A look-up of hashes that are new reads few pages; each entry is written once, and once for each level."""
    told = stream(400, 200, by_hash, sizes=Sizes(page=8 << 10), kept=10**6)
    assert told[-1][3] > 76_000
    merged = sum(reads for reads, *_ in told)
    asked = sum(reads for reads, writes, *_ in told if not writes)
    assert asked < 2400  # of 80,000 look-ups in several runs: those for which a filter is wrong
    assert merged < 4800
    assert sum(size for *_, size, _ in told) < 8 * 40 * 80_000


def test_pages_of_hashes_that_begin_with_the_time_are_written_once():
    """A merge keeps them: neither reads nor writes grow with the entries of the log."""
    told = stream(400, 200, by_time, sizes=Sizes(page=8 << 10), kept=10**6)
    assert told[-1][3] > 76_000
    assert sum(size for *_, size, _ in told) < 5 * 40 * 80_000
    assert max(reads for reads, *_ in told) < 20


@pytest.mark.parametrize("payload", [16, 3000])
def test_pages_have_about_their_size(payload):
    """Pages have their size or a little more, in new runs and in merged ones; a large payload has a page of its own."""
    values = Values()
    for batch in range(3):
        numbers = np.arange(batch * 1000, (batch + 1) * 1000, dtype=np.uint64)
        log = BucketLog(values, sizes=Sizes(page=2048, runs=2))
        data = fixed(np.zeros((1000, payload), np.uint8))
        log.add(Entries(by_hash(numbers, batch), numbers, np.full(1000, batch), data))
        log.commit()
        values.commit()
        pages = np.concatenate([run.pages for run in log.runs])
        assert pages["bytes"].max() < 2048 + payload + 100
        assert len(pages) <= 1 + pages["entries"].sum() * (20 + payload) / 2048


def test_a_micro_batch_without_new_entries_writes_nothing():
    """Neither values nor a head, also if it looks up entries."""
    values = Values()
    log = BucketLog(values, sizes=Sizes(page=40))
    log.add(entries([((1, 1), 5, b"x"), ((2, 2), 5, b"y")]))
    log.commit()
    values.commit()
    values.writes = 0
    log = BucketLog(values)
    check(log, {(1, 1): (5, b"x"), (2, 2): (5, b"y")}, {}, BEFORE_ALL, BEFORE_ALL)
    log.commit()
    assert values.writes == 0


def test_a_run_that_has_expired_is_deleted_unread():
    values = Values()
    for batch, time in enumerate((1, 5)):
        log = BucketLog(values, sizes=Sizes(page=40))
        log.add(entries(((batch, n), time, b"x" * 9) for n in range(9)))
        log.commit()
        values.commit()
    log = CountingLog(values, dead=2)
    log.commit()
    values.commit()
    assert log.pages == 0
    assert len(log.runs) == 1
    assert len(values.numbered) == len(log.runs[0].pages) + 2


edges = st.sampled_from([BEFORE_ALL, -1, 0, 1, (1 << 32) - 1, 1 << 32, (1 << 63) - 1])


@given(rows=st.lists(st.tuples(spread, edges, payloads), min_size=1, max_size=20))
def test_written_entries_are_read_again(rows):
    """Times of any range, payloads of one length or of several; parts of entries too."""
    made = entries(rows)
    for part in (made, made.part(len(rows) // 2, len(rows)), made.take(np.arange(len(rows))[::-1])):
        if len(part):
            again = read_entries(written_entries(part))
            for column in ("high", "low", "time"):
                assert getattr(again, column).tolist() == getattr(part, column).tolist()
            assert again.data.to_pylist() == part.data.to_pylist()
            assert again.payloads().tobytes() == b"".join(part.data.to_pylist())


def test_a_missing_value_is_a_damaged_checkpoint():
    """The query ends in one line, and does not take the entries for new."""
    values = Values()
    log = BucketLog(values, sizes=Sizes(page=40))
    log.add(entries(((n, n), 5, b"x") for n in range(9)))
    log.commit()
    values.commit()
    values.numbered.pop(0)
    with pytest.raises(ValueError, match="value 0 of a bucket: its checkpoint is damaged"):
        living(BucketLog(values))


def test_entries_of_another_format_are_refused():
    values = Values()
    values.put(HEAD, (7).to_bytes(4, "little") + bytes(8))
    with pytest.raises(ValueError, match="cannot read the checkpoint: its state has format 7, this version reads 9"):
        BucketLog(values)
