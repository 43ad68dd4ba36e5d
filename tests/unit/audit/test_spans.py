"""Spans of IDs: they merge in any order, and show what a plain model of single IDs shows."""

import itertools
from unittest import mock

import pytest
from helpers.lives import KINDS, generator_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msgid.audit.definitions import PART_STEP, RUN_STEP, Piece, split_pieces

np = pytest.importorskip("numpy")
spans = pytest.importorskip("msgid.audit._spans")
facts = pytest.importorskip("msgid.audit.facts")
runs = pytest.importorskip("msgid.audit.runs")

JUMP = 100
ALIVE = 8
BLOCK = 1 << spans.BLOCK_SHIFT


def shown_by(ids, most=1_000_000):
    """Return the runs, gaps and steps of IDs: tuples of a generator, a second and a sequence number."""
    return runs.shown_by(spans.spans_of_words(*words_of(ids)), JUMP, most)


def listed(part):
    return sorted(zip(*(column.tolist() for column in part), strict=True))


def ranges(gaps):
    return listed(gaps[:3])


def model(ids):
    """The runs, gaps, steps and jumps of IDs, number by number."""
    found, gaps, steps, jumps = [], [], [], []
    for generator in {generator for generator, _, _ in ids}:
        parts, jumped = parts_of({(second, number) for owner, second, number in ids if owner == generator})
        jumps += [(generator, *jump) for jump in jumped]
        for run, processes in itertools.chain.from_iterable(map(shared, map(runs_of, parts))):
            ordered = sorted((number, second) for second, number in run)
            by = 2 if processes == 1 and counts_by_two(run) else 1
            missing = [(generator, a + by, b - by) for (a, _), (b, _) in itertools.pairwise(ordered) if b - a > by]
            gaps += missing
            if processes == 1:
                waits = [(b, after - before) for (_, before), (b, after) in itertools.pairwise(ordered)]
                steps += [(generator, number, wait) for number, wait in waits if not 0 <= wait <= JUMP]
            seconds = [second for _, second in ordered]
            first, last = ordered[0][0], ordered[-1][0]
            lost = sum(b - a + 1 for _, a, b in missing)
            found.append((generator, len(ordered), min(seconds), max(seconds), first, last, lost, processes))
    return sorted(found), sorted(gaps), sorted(steps), sorted(jumps)


def parts_of(held):
    """Divide the IDs of a generator where the step to the next number is large, except at a plausible loss."""
    parts = []
    for second, number in sorted(held, key=lambda id: (id[1], id[0])):
        if not parts or number - parts[-1][-1][1] > PART_STEP:
            parts.append([])
        parts[-1].append((second, number))
    spans = [(min(part)[0], max(part)[0], len(part)) for part in parts]
    joined, jumps = parts[:1], []
    for lower, part, (begin, end, ids), (start, until, more) in zip(parts, parts[1:], spans, spans[1:], strict=False):
        step = part[0][1] - lower[-1][1]
        between = any(first > end and last < start for first, last, _ in spans)
        is_next = step <= RUN_STEP and end <= start and not between
        rate = (ids + more) / (end - begin + 1 + until - start + 1)
        if is_next and step <= 2 * rate * (start - end + 1):
            joined[-1] = joined[-1] + part
            continue
        if is_next:
            jumps.append((part[0][1], step))
        joined.append(part)
    return joined, jumps


def runs_of(held):
    """Divide the IDs of a part of a generator into runs, as `split_pieces` says."""
    pieces = []
    for second in sorted({second for second, _ in held}):
        numbers = [number for at, number in held if at == second]
        uses = [at for at, number in held if number in numbers and at < second]
        used = max(uses, default=-1)
        if pieces and min(numbers) > pieces[-1][0].high:
            piece, seconds = pieces[-1]
            pieces[-1] = (piece._replace(used=max(piece.used, used), high=max(numbers)), [*seconds, second])
        else:
            pieces.append((Piece(second, used, min(numbers), max(numbers)), [second]))
    numbered = {}
    for run, (_, seconds) in zip(split_pieces(piece for piece, _ in pieces), pieces, strict=True):
        numbered.update(dict.fromkeys(seconds, run))
    return [[id for id in held if numbered[id[0]] == run] for run in sorted(set(numbered.values()))]


def shared(runs):
    """Join the runs of a part that several processes share; each with its number of processes."""
    links = [] if len(runs) == 1 else list(continued(runs))
    everywhere = len(links) > 1 and 2 * len(runs) <= 3 * len(links) + 3
    covered = [any(a < r <= b for a, b, _ in links) or (everywhere and may_go_on(runs, r)) for r in range(len(runs))]
    groups = []
    for run in range(len(runs)):
        if run and covered[run]:
            groups[-1].append(run)
        else:
            groups.append([run])
    for group in groups:
        mixed = everywhere and goes_back(runs[group[0]])
        if mixed or (len(group) > 1 and (everywhere or any(back for _, later, back in links if later in group))):
            yield [id for run in group for id in runs[run]], 2
        else:
            yield from ((runs[run], 1) for run in group)


def may_go_on(runs, place):
    """Whether a process of the runs before may be alive in a run: it is not that of one process after a silence."""
    spans = [(min(run)[0], max(run)[0], len(run)) for run in runs]
    slowest = max(((last - first + 1) / ids for first, last, ids in spans if ids >= 32), default=None)
    silence = spans[place][0] - max((last for _, last, _ in spans[:place]), default=0)
    return goes_back(runs[place]) or slowest is None or silence <= ALIVE * slowest + 2


def goes_back(run):
    """Whether a number is dated before the next lower one."""
    seconds = [second for _, second in sorted((number, second) for second, number in run)]
    return seconds != sorted(seconds)


def continued(runs):
    """Pairs of runs where one continues the other, and whether its number is dated before the next lower one."""
    starts, ends = [], []
    top = None
    for place, run in enumerate(runs):
        ordered = sorted((number, second) for second, number in run)
        ends.append((*ordered[-1], place))
        for (low, before), (high, after) in itertools.pairwise(ordered):
            if (back := after < before) or high > low + 1:
                ends.append((low, before, place))
                starts.append((top + 1 if back and top and low < top < high else high, after, high, back, place))
        top = ordered[-1][0]
    spans = [(min(run)[0], max(run)[0], min(n for _, n in run), max(n for _, n in run), len(run)) for run in runs]
    waits = [ALIVE * (last - first + 1) / ids + 2 for first, last, _, _, ids in spans]
    for place, ((_, end, least, most, _), (begin, _, low, _, _)) in enumerate(itertools.pairwise(spans)):
        if begins_between(runs[place], runs[place + 1]):
            yield place, place + 1, True
        elif least < low <= most + 1 and begin - end <= waits[place]:
            yield place, place + 1, False
    used = set()
    for number, second, high, back, place in sorted(starts):
        known = [end for end in ends if end[0] == number - 1 and end[1] <= second]
        if not known or (end := max(known)) in used:
            continue
        used.add(end)
        first, last, _, _, ids = spans[end[2]]
        if second - end[1] <= (ALIVE + high - number) * (last - first + 1) / ids + 2:
            yield end[2], place, back


def counts_by_two(run):
    """Whether all numbers are even or all are odd, and most steps are 2."""
    steps = [later - earlier for earlier, later in itertools.pairwise(sorted({number for _, number in run}))]
    return all(step % 2 == 0 for step in steps) and max(8, len(steps) / 2) <= steps.count(2)


def begins_between(run, following):
    """Whether a run begins between two numbers of the run before, and the higher one is dated before the lower one."""
    ordered = sorted((number, second) for second, number in run)
    number, second = min((number, second) for second, number in following)
    pace = max((max(ids)[0] - min(ids)[0] + 1) / len(ids) for ids in (run, following))
    return any(
        after < before and low < number < high and 0 <= second - before <= (ALIVE + number - low - 1) * pace + 2
        for (low, before), (high, after) in itertools.pairwise(ordered)
    )


def check_shown(ids):
    """Check that the runs, gaps and steps are those of the plain model."""
    shown = shown_by(ids)
    runs_shown = [(*run[:6], *run[8:]) for run in listed(shown.runs)]
    assert (runs_shown, ranges(shown.gaps), listed(shown.steps), listed(shown.jumps)) == model(ids)
    assert shown.gaps.number == len(shown.gaps.first)


NUMBERS = st.sampled_from([0, 0, BLOCK - 6, BLOCK + PART_STEP - 4, 2 * BLOCK - 3, RUN_STEP + 5, 2**32 - 12])
IDS = st.sets(
    st.tuples(
        st.integers(0, 2),
        st.builds(int.__add__, st.sampled_from([0, 0, 150]), st.integers(0, 8)),
        st.builds(int.__add__, NUMBERS, st.integers(0, 11)),
    ),
    min_size=1,
    max_size=60,
)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=60)


def restarted(steps, start, restart_at):
    """A generator that counts from a number, and starts again from there after some IDs."""
    ids, second, number = [], 0, start
    for place, (wait, step) in enumerate(steps):
        second, number = second + wait, start if place == restart_at else number + step
        ids.append((0, second, number))
    return set(ids)


def at_one_time(steps, others, wait):
    """Two processes that count from 0."""
    return {(0, 5, 0)} | restarted(steps, 0, -1) | {(0, second + wait, n) for _, second, n in restarted(others, 0, -1)}


def by_two(steps, start):
    """A process whose numbers are mostly 2 apart."""
    return {(0, 5 + place // 3, number) for place, number in enumerate(itertools.accumulate(steps, initial=start))}


MADE = IDS | st.one_of(
    st.builds(restarted, STEPS, st.sampled_from([0, BLOCK - 20]), st.integers(0, 80)),
    st.builds(at_one_time, STEPS, STEPS, st.integers(0, 6)),
    st.builds(by_two, st.lists(st.sampled_from([2, 2, 2, 2, 4, 6, 1]), min_size=8, max_size=40),
              st.sampled_from([0, 1, BLOCK - 9])),
)  # fmt: skip


@settings(max_examples=150)
@given(MADE)
@example({(0, 5, 7), (0, 5, 9), (0, 5, 50_000_000), (0, 99, 10), (0, 99, 50_000_003)})
@example({(0, 5, BLOCK - 6), (0, 5, BLOCK - 1), (0, 6, BLOCK - 4), (0, 7, BLOCK), (0, 9, BLOCK + 2)})
@example({(0, n // 30_000, n) for n in (*range(65_530, 65_534), *range(65_540, 65_542))})
def test_spans_of_any_ids_shows_what_single_ids_show(ids):
    """Runs, gaps and steps are those of the plain model, whatever the order of seconds and numbers is."""
    check_shown(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_spans_of_processes_that_share_a_pid_shows_what_single_ids_show(kind):
    """As above for the processes that `test_lives` knows."""
    made = generator_of(3, kind)
    ids = {(0, second, number) for second, number in made.ids}
    check_shown(ids)


@given(IDS, st.integers(1, 5))
def test_spans_list_the_largest_gaps_and_the_largest_of_each_generator(ids, most):
    """The others are counted."""
    every, few = shown_by(ids), shown_by(ids, most)
    ordered = sorted(ranges(every.gaps), key=lambda gap: (gap[1] - gap[2], gap))
    of_generators = {gap[0]: gap for gap in reversed(ordered)}
    assert set(ranges(few.gaps)) == set(ordered[:most]) | set(of_generators.values())
    assert few.gaps.number == len(ordered)


def words_of(ids):
    """Return the words of IDs as the columns of `spans_of_words`, as Spark makes them."""
    masks = {}
    for generator, second, number in ids:
        key = (generator, second, number >> spans.WORD_SHIFT)
        masks[key] = masks.get(key, 0) | 1 << number % 32
    return np.array([(*key, mask) for key, mask in masks.items()], np.int64).reshape(-1, 4).T


@given(IDS, st.randoms(use_true_random=False))
def test_spans_have_the_numbers_of_their_words_in_any_order(ids, chance):
    """No number is in two spans, and no span could go on."""
    words = words_of(ids)
    made = listed(spans.spans_of_words(*words[:, chance.sample(range(len(words[0])), len(words[0]))]))
    assert made == listed(spans.spans_of_words(*words))
    assert sorted(id for span in made for id in numbers_of(span)) == sorted(ids)
    assert not {(scope, second, high + 1) for scope, second, _, high in made} & set(ids)


def numbers_of(span):
    scope, second, low, high = span
    return [(scope, second, number) for number in range(low, high + 1)]


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
    """Lists are cut to the largest, and counts are added, in whichever order and grouping the parts are merged."""
    made = []
    for scope, counts, gaps in parts:
        counted = [facts.Counted(check, f"{scope} {n}", count, n) for n, (check, count) in enumerate(counts)]
        ranges = [facts.Gap("offset", f"{scope} {n}", 5, 5 + size, size + 1) for n, size in enumerate(gaps)]
        repeated = facts.Counted("duplicate_ids", "table", len(counts), 5, text=f"{scope}" if scope % 2 else None)
        kinds = [facts.KindRow("v1", "mac", 1 + len(gaps)), facts.KindRow("null", None, scope % 3)]
        made.append(facts.part_of([*counted, repeated], gaps=ranges, kinds=kinds))
    with mock.patch.object(facts, "MAX_SCOPES", 2):
        whole = facts.merged(made, 3)
        assert whole.lengths["gaps"] == sum(len(gaps) for _, _, gaps in parts)
        repeated = sum(len(counts) for _, counts, _ in parts)
        assert sum(one.count for one in whole.counts if one.check == "duplicate_ids") == repeated
        assert {one.x for one in whole.counts if one.check == "duplicate_ids"} <= {5}  # no sum
        every = sum(n for _, counts, _ in parts for _, n in counts)
        assert sum(one.count for one in whole.counts) == every + repeated
        assert ("v1", "mac", sum(1 + len(gaps) for _, _, gaps in parts)) in whole.kinds
        chance.shuffle(made)
        some = chance.randint(1, len(made))
        grouped = [facts.merged(part, 3) for part in (made[:some], made[some:]) if part]
        assert facts.merged(grouped, 3) == whole
