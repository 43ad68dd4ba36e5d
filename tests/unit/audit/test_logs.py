"""Logs from blocks of offsets show what a plain model of single messages shows."""

import itertools
import random
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
spans = pytest.importorskip("msgid.audit._spans")
logs = pytest.importorskip("msgid.audit._logs")
Rules = pytest.importorskip("msgid.audit._options").Rules

BLOCK = 1 << spans.BLOCK_SHIFT
NAMES = ["a", "b"]
OFFSETS = st.builds(int.__add__, st.sampled_from([0, BLOCK - 4, 3 * BLOCK - 2, 2**40]), st.integers(0, 7))
MOMENTS = st.none() | st.integers(0, 9)
ROWS = st.lists(st.tuples(st.integers(0, 1), OFFSETS, st.integers(0, 2), MOMENTS, MOMENTS), min_size=1, max_size=50)


def columns_of(rows):
    def moments(place):
        return np.array([logs.NEVER if row[place] is None else row[place] for row in rows], np.int64)

    log, offset, content = (np.array([row[place] for row in rows], np.int64) for place in range(3))
    return logs.LogRows(log, offset, content, moments(3), moments(4), moments(3))


def moment(micros):
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=micros)


def least(values):
    return min((value for value in values if value is not None), default=None)


def model(rows):
    """The logs, the ranges and the counts of rows, message by message."""
    listed, gaps, counted = [], [], {}
    for log, name in enumerate(NAMES):
        held = {}
        for row in rows:
            if row[0] == log:
                held.setdefault(row[1], []).append(row)
        if not held:
            continue
        offsets = sorted(held)
        missing = [("offset", name, a + 1, b - 1, b - a - 1) for a, b in itertools.pairwise(offsets) if b - a > 1]
        gaps += missing
        times = {offset: least(row[3] for row in held[offset]) for offset in offsets}
        landed = {offset: least(row[4] for row in held[offset]) for offset in offsets}
        contents = {offset: len({row[2] for row in held[offset]}) for offset in offsets}
        late, back, before = {}, {}, None
        for place, offset in enumerate(offsets):
            after = least(landed[later] for later in offsets[place + 1 :])
            if landed[offset] is not None and after is not None and after < landed[offset]:
                late[offset] = landed[offset] - after
            if times[offset] is not None:
                if before is not None and times[offset] < before:
                    back[offset] = before - times[offset]
                before = times[offset]
        repeated = {offset: len(held[offset]) - contents[offset] for offset in offsets}
        changed = {offset: contents[offset] - 1 for offset in offsets}
        widest = min(missing, key=lambda gap: (-gap[4], gap[2]), default=None)
        latest = min(late, key=lambda offset: (-late[offset], offset), default=None)
        counts = {
            "missing_offsets": (sum(gap[4] for gap in missing), *(widest or [0] * 4)[2:4]),
            "duplicate_messages": (sum(repeated.values()), least(o for o in offsets if repeated[o]), None),
            "conflicting_messages": (sum(changed.values()), least(o for o in offsets if changed[o]), None),
            "late_messages": (len(late), latest, late.get(latest)),
            "time_backwards": (len(back), least(back), back.get(least(back))),
        }
        counted |= {(check, name): count for check, count in counts.items() if count[0]}
        known = [moment(row[3]) for row in rows if row[0] == log and row[3] is not None]
        numbers = [counts[check][0] for check in list(counts)[:4]]
        ends = (offsets[0], offsets[-1], min(known, default=None), max(known, default=None))
        listed.append((name, sum(map(len, held.values())), *ends, *numbers))
    return sorted(listed), sorted(gaps), counted


def shown(facts):
    counted = {(one.check, one.scope): (one.count, one.x, one.y) for one in facts.found}
    return sorted(map(tuple, facts.logs)), sorted(map(tuple, facts.gaps)), counted


@given(ROWS)
@example([(0, 1, 0, None, 5), (0, 2, 0, None, 9), (0, 3, 0, None, 4)])
@example([(0, BLOCK - 1, 0, 5, 9), (0, BLOCK, 0, None, None), (0, 3 * BLOCK, 0, 3, 8), (1, 0, 0, 1, 1)])
def test_blocks_of_logs_show_what_single_messages_show(rows):
    """Counts, examples, ranges and the lines of logs are those of the plain model, across blocks too."""
    assert shown(logs.log_facts(columns_of(rows), NAMES, Rules(max_gaps=1_000))) == model(rows)


@given(ROWS, st.randoms(use_true_random=False))
@example([(0, offset, 0, None, None) for offset in (BLOCK - 1, BLOCK, BLOCK + 2)], random.Random(1))
def test_blocks_of_logs_may_be_made_in_any_tasks(rows, chance):
    """Blocks are the same if each is made by itself, and the facts do not depend on their order."""
    messages = logs.messages_of(columns_of(rows))
    of_block = np.cumsum(spans.starts_of(messages.log, messages.offset >> spans.BLOCK_SHIFT))
    numbers = list(range(1, int(of_block[-1]) + 1))
    chance.shuffle(numbers)
    parts = []
    for n in numbers:
        log = messages.log == messages.log[of_block == n][0]
        after, earlier = log & (of_block > n), log & (of_block < n) & (messages.timestamp != logs.NEVER)
        ends = min(messages.landed[after].tolist(), default=logs.NEVER), [logs.NEVER, *messages.timestamp[earlier]][-1]
        part = [column[of_block == n] for column in messages[:8]]
        parts.append(logs.blocks_of(logs.Messages(*part, *(np.full(len(part[0]), end) for end in ends))))
    joined = logs.Blocks(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    gaps, rules = [], Rules(max_gaps=1_000)
    for rest in (0, 1):  # a span may reach into the next block of its part
        part = (messages.offset >> spans.BLOCK_SHIFT) // 2 % 2 == rest
        own = spans.spans_of(messages.log[part], 0 * messages.log[part], messages.offset[part])
        gaps.append(logs.gaps_in(own, rules))
    assert shown(logs.facts_of_blocks(NAMES, joined, spans.merged_gaps(gaps, 1_000), rules)) == model(rows)
