"""Digests of generators: they merge in any order, and show what a plain model of single IDs shows."""

import itertools
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msgid.audit.definitions import RUN_STEP, split_pieces

np = pytest.importorskip("numpy")
digests = pytest.importorskip("msgid.audit._digests")
facts = pytest.importorskip("msgid.audit.facts")
runs = pytest.importorskip("msgid.audit._runs")

JUMP = 100
BLOCK = 1 << digests.BLOCK_SHIFT


def columns_of(ids):
    return np.array(sorted(ids), np.int64).reshape(-1, 3).T


def shown_by(ids, most=1_000_000):
    """Return the runs, gaps and steps of IDs: tuples of a generator, a second and a sequence number."""
    words = digests.words_of(*columns_of(ids))
    cells = digests.cells_of(words)
    return runs.shown_by(cells, digests.marked_words(cells, words), JUMP, most)


def listed(part):
    return sorted(zip(*(column.tolist() for column in part), strict=True))


def ranges(gaps):
    return listed((gaps.scope, gaps.first, gaps.last))


def parts(numbers):
    """Divide sorted numbers where a step is too large for a loss."""
    part = []
    for number in numbers:
        if part and number - part[-1] > RUN_STEP:
            yield part
            part = []
        part.append(number)
    yield part


def model(ids):
    """The runs, gaps and steps of IDs, number by number."""
    found, gaps, steps = [], [], []
    for generator in {generator for generator, _, _ in ids}:
        for part in parts(sorted({number for owner, _, number in ids if owner == generator})):
            held = {(second, number) for owner, second, number in ids if owner == generator and number in part}
            for run in runs_of(held):
                ordered = sorted((number, second) for second, number in run)
                seconds = [second for _, second in ordered]
                first, last = ordered[0][0], ordered[-1][0]
                found.append((generator, len(ordered), min(seconds), max(seconds), first, last))
                for (a, before), (b, after) in itertools.pairwise(ordered):
                    if b - a > 1:
                        gaps.append((generator, a + 1, b - 1))
                    if not 0 <= after - before <= JUMP:
                        steps.append((generator, b, after - before))
    return sorted(found), sorted(gaps), sorted(steps)


def runs_of(held):
    """Divide the IDs of a part of a generator into runs, as `split_pieces` says."""
    pieces = []
    for second in sorted({second for second, _ in held}):
        numbers = [number for at, number in held if at == second]
        uses = [at for at, number in held if number in numbers and at < second]
        used = max(uses, default=-1)
        if pieces and min(numbers) > pieces[-1][0]:
            pieces[-1] = (max(numbers), pieces[-1][1], max(pieces[-1][2], used), [*pieces[-1][3], second])
        else:
            pieces.append((max(numbers), second, used, [second]))
    numbered = {}
    for run, piece in zip(split_pieces((piece[1], piece[2]) for piece in pieces), pieces, strict=True):
        numbered.update(dict.fromkeys(piece[3], run))
    return [[id for id in held if numbered[id[0]] == run] for run in sorted(set(numbered.values()))]


NUMBERS = st.sampled_from([0, BLOCK - 6, 2 * BLOCK - 3, RUN_STEP + 5, 2**32 - 12])
IDS = st.sets(
    st.tuples(
        st.integers(0, 2),
        st.builds(int.__add__, st.sampled_from([0, 0, 150]), st.integers(0, 8)),
        st.builds(int.__add__, NUMBERS, st.integers(0, 11)),
    ),
    min_size=1,
    max_size=60,
)
GROWING = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=60)


def restarted(steps, start, restart_at):
    """A generator that counts from a number, and starts again from there after some IDs."""
    ids, second, number = [], 0, start
    for place, (wait, step) in enumerate(steps):
        second, number = second + wait, start if place == restart_at else number + step
        ids.append((0, second, number))
    return set(ids)


@given(IDS)
@example({(0, 5, 7), (0, 5, 9), (0, 5, 50_000_000), (0, 99, 10), (0, 99, 50_000_003)})
@example({(0, 5, BLOCK - 6), (0, 5, BLOCK - 1), (0, 6, BLOCK - 4), (0, 7, BLOCK), (0, 9, BLOCK + 2)})
@example({(0, n // 30_000, n) for n in (*range(65_530, 65_534), *range(65_540, 65_542))})
def test_digest_of_any_ids_shows_what_single_ids_show(ids):
    """Runs, gaps and steps are those of the plain model, whatever the order of seconds and numbers is."""
    shown = shown_by(ids)
    assert (listed(shown.runs), ranges(shown.gaps), listed(shown.steps)) == model(ids)
    assert shown.gaps.total == len(shown.gaps.first)


@given(GROWING, st.sampled_from([0, BLOCK - 20]), st.integers(0, 80))
def test_digest_of_a_restarted_generator_shows_what_single_ids_show(steps, start, restart_at):
    """As above for a generator whose sequence grows with time, and which may start again."""
    ids = restarted(steps, start, restart_at)
    shown = shown_by(ids)
    assert (listed(shown.runs), ranges(shown.gaps), listed(shown.steps)) == model(ids)


def test_digest_reads_marked_blocks_alone():
    """Blocks in which each second is complete are not read, and a large block is read in steps of whole blocks."""
    whole = {(0, n // 1000, n) for n in range(BLOCK)}
    lost = {(0, n // 1000, n) for n in range(BLOCK, BLOCK + 2000) if n != BLOCK + 700}
    cells = digests.cells_of(digests.words_of(*columns_of(whole | lost)))
    assert [part.tolist() for part in digests.marked_blocks(cells)] == [[0], [1], [1_999]]
    assert ranges(shown_by(whole | lost).gaps) == [(0, BLOCK + 700, BLOCK + 700)]


def test_digest_reads_blocks_in_steps(monkeypatch):
    """A step has whole blocks, and the runs, gaps and steps of the clock do not depend on its size."""
    chance = random.Random(7)
    ids = {(n % 3, n // 50, (n // 3) * 40_000 + chance.randrange(50)) for n in range(600)}
    whole = shown_by(ids)
    words = digests.words_of(*columns_of(ids))
    words = words.take(np.lexsort((words.word, words.seconds, words.block, words.generator)))
    assert len(list(digests.in_steps(words))) == 1
    monkeypatch.setattr(digests, "_MOST_POINTS", 7)
    steps = [
        {(words.generator[at], words.block[at]) for at in places.tolist()} for places, _ in digests.in_steps(words)
    ]
    assert 1 < len(steps) <= len(set.union(*steps)) == sum(map(len, steps))
    assert max(map(len, steps)) <= 7
    stepped = shown_by(ids)
    assert listed(stepped.runs) == listed(whole.runs)
    assert ranges(stepped.gaps) == ranges(whole.gaps)
    assert listed(stepped.steps) == listed(whole.steps)


def test_words_that_are_not_all_of_a_marked_block_are_refused():
    """A digest of cells and words that belong to different rows is an error, not a wrong report."""
    words = digests.words_of(*columns_of({(0, 1, 1), (0, 2, 5), (0, 2, 7)}))
    cells = digests.cells_of(words)
    with pytest.raises(ValueError, match="`words` must be all words"):
        runs.shown_by(cells, words.take(words.seconds == 2), JUMP, 10)


@given(IDS, st.integers(1, 5))
def test_digest_lists_the_largest_gaps_and_the_largest_of_each_generator(ids, most):
    """The others are counted."""
    every, few = shown_by(ids), shown_by(ids, most)
    ordered = sorted(ranges(every.gaps), key=lambda gap: (gap[1] - gap[2], gap))
    of_generators = {gap[0]: gap for gap in reversed(ordered)}
    assert set(ranges(few.gaps)) == set(ordered[:most]) | set(of_generators.values())
    assert few.gaps.total == len(ordered)


@given(IDS, st.randoms(use_true_random=False))
def test_digests_merge_in_any_order_to_the_same_digest(ids, chance):
    """The digest of a table is that of its parts, however it is divided, and parts may hold the same ID."""
    rows = sorted(ids)
    pieces = [digests.words_of(*columns_of(chance.sample(rows, chance.randint(1, len(rows))))) for _ in range(3)]
    pieces.append(digests.words_of(*columns_of(rows)))
    chance.shuffle(pieces)
    left = digests.merged_words(digests.merged_words(*pieces[:2]), digests.merged_words(*pieces[2:]))
    assert listed(left) == listed(digests.merged_words(*pieces)) == listed(digests.words_of(*columns_of(rows)))


PARTS = st.lists(
    st.builds(
        lambda scope, counts, gaps: (scope, counts, gaps),
        st.integers(0, 10**6),
        st.lists(st.tuples(st.sampled_from(["missing_offsets", "late_messages"]), st.integers(0, 3)), max_size=4),
        st.lists(st.integers(1, 3), max_size=4),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda part: part[0],
)


@given(PARTS, st.randoms(use_true_random=False))
def test_facts_of_parts_merge_in_any_order_to_the_same_facts(parts, chance):
    """Lists are cut to the largest and totals count all, in whichever order and grouping the parts are merged."""
    made = []
    for scope, counts, gaps in parts:
        counted = [facts.Counted(check, f"{scope} {n}", count, n) for n, (check, count) in enumerate(counts)]
        ranges = [facts.GapFact("offset", f"{scope} {n}", 5, 5 + size) for n, size in enumerate(gaps)]
        made.append(facts.part_of(counted, gaps=ranges))
    whole = facts.merged(made, 3)
    assert whole.gap_total == sum(len(gaps) for _, _, gaps in parts)
    assert sum(count for count, _ in whole.totals.values()) == sum(n for _, counts, _ in parts for _, n in counts)
    chance.shuffle(made)
    some = chance.randint(1, len(made))
    grouped = [facts.merged(part, 3) for part in (made[:some], made[some:]) if part]
    assert facts.merged(grouped, 3) == whole
