"""Logs have the report that a plain model of single messages has: counts, examples, ranges and the lines of logs."""

import itertools
import random
import secrets
from datetime import datetime, timedelta, timezone

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
audit = pytest.importorskip("msgid.audit")

BLOCK = 1 << 16
STARTS = (0, BLOCK - 4, 3 * BLOCK - 2, 2**40, 2**48 - 9)
"""Offsets around the ends of blocks, and the last ones."""
CHECKS = ("missing_offsets", "duplicate_messages", "conflicting_messages", "late_messages", "time_backwards")
LONE = [(1, 0, None, 5), (2, 0, None, 9), (3, 0, None, 4)]
ACROSS = [(BLOCK - 1, 0, 5, 9), (BLOCK, 0, None, None), (3 * BLOCK, 0, 3, 8)]
REPEATED_BEFORE = [(5, 0, 10, None), (5, 0, 20, None), (6, 0, 15, None)]
REPEATED_LATE = [(5, 0, None, 3), (5, 0, None, 9), (6, 0, None, 4)]
REPEATED_AT_A_BORDER = [(BLOCK - 1, 0, 10, 7), (BLOCK - 1, 1, 20, 2), (BLOCK, 0, 15, 3), (BLOCK, 0, 9, 1)]
UNTIMED_BETWEEN = [(5, 0, 9, None), (5, 0, 4, None), (6, 0, None, None), (7, 0, 5, None), (8, 0, 3, None)]
EXAMPLES = [LONE, ACROSS, REPEATED_BEFORE, REPEATED_LATE, REPEATED_AT_A_BORDER, UNTIMED_BETWEEN]


def rows_of(chance):
    """The rows of a log: offset, content, time and landing time."""

    def moment():
        return None if chance.random() < 0.2 else chance.randrange(10)

    starts = chance.sample(STARTS, chance.choice((1, 1, 2)))
    return [
        (chance.choice(starts) + chance.randrange(8), chance.randrange(3), moment(), moment())
        for _ in range(chance.randrange(1, 40))
    ]


def least(values):
    return min((value for value in values if value is not None), default=None)


def moment(micros):
    return None if micros is None else datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=micros)


def model(name, rows):
    """The line of a log, its missing ranges, and the count and example of each fault, message by message."""
    of_offset = {}
    for row in rows:
        of_offset.setdefault(row[0], []).append(row)
    offsets = sorted(of_offset)
    missing = [(name, a + 1, b - 1, b - a - 1) for a, b in itertools.pairwise(offsets) if b - a > 1]
    times = {offset: least(row[2] for row in of_offset[offset]) for offset in offsets}
    landed = {offset: least(row[3] for row in of_offset[offset]) for offset in offsets}
    contents = {offset: len({row[1] for row in of_offset[offset]}) for offset in offsets}
    late, back, before = {}, {}, None
    for place, offset in enumerate(offsets):
        after = least(landed[later] for later in offsets[place + 1 :])
        if landed[offset] is not None and after is not None and after < landed[offset]:
            late[offset] = landed[offset] - after
        if times[offset] is not None:
            if before is not None and times[offset] < before:
                back[offset] = before - times[offset]
            before = times[offset]
    repeated = {offset: len(of_offset[offset]) - contents[offset] for offset in offsets}
    changed = {offset: contents[offset] - 1 for offset in offsets}
    widest = min(missing, key=lambda gap: (-gap[3], gap[1]), default=(0, 0, 0, 0))
    latest = min(late, key=lambda offset: (-late[offset], offset), default=None)
    first_back = min(back, default=None)
    counts = {
        "missing_offsets": (sum(gap[3] for gap in missing), widest[1], widest[2]),
        "duplicate_messages": (sum(repeated.values()), least(o for o in offsets if repeated[o]), None),
        "conflicting_messages": (sum(changed.values()), least(o for o in offsets if changed[o]), None),
        "late_messages": (len(late), latest, late.get(latest)),
        "time_backwards": (len(back), first_back, back.get(first_back)),
    }
    known = [row[2] for row in rows if row[2] is not None]
    ends = offsets[0], offsets[-1], moment(min(known, default=None)), moment(max(known, default=None))
    line = (name, len(rows), *ends, *(counts[check][0] for check in CHECKS[:4]))
    return line, missing, {(check, name): count for check, count in counts.items() if count[0]}


def example_of(check, x, y):
    span = f"{x}" if x == y else f"{x} to {y}"
    return audit.CHECKS[check].example.format(x=x, y=y, seconds=(y or 0) / 1e6, span=span)


def check_logs(seed, number):
    """Audit the rows of many logs as one table, in any order, and compare each log with its model."""
    chance = random.Random(seed)
    logs = {f"log {n:04}": rows for n, rows in enumerate([*EXAMPLES, *(rows_of(chance) for _ in range(number))])}
    rows = [(name, *row) for name, of_log in logs.items() for row in of_log]
    chance.shuffle(rows)
    log, offset, content, time, landed = zip(*rows, strict=True)
    kind = pa.timestamp("us", "UTC")
    table = pa.table(
        {"log": log, "n": offset, "body": content, "at": pa.array(time, kind), "in": pa.array(landed, kind)}
    )
    report = audit.audit_table(table, source="log", offset="n", content="body", timestamp="at", landed="in",
                               max_gaps=1_000_000)  # fmt: skip
    lines, gaps, counted = [], [], {}
    for name, of_log in logs.items():
        line, missing, counts = model(name, of_log)
        lines.append(line)
        gaps += missing
        counted |= {key: (count, example_of(key[0], x, y)) for key, (count, x, y) in counts.items()}
    note = f"seed {seed}"
    assert sorted(map(tuple, report.logs)) == lines, note
    assert sorted((gap.scope, gap.first, gap.last, gap.count) for gap in report.gaps) == sorted(gaps), note
    assert {(one.check, one.scope): (one.count, one.example) for one in report.findings} == counted, note
    return report, logs


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=pytest.mark.volume)])
def test_logs_have_the_report_of_single_messages(rounds):
    """Of 200 random logs per round, and of rows that once were counted wrong, across blocks too."""
    for _ in range(rounds):
        check_logs(secrets.randbits(32), 200)


def test_rows_of_a_check_are_those_of_the_model():
    """`rows_of` has each missing range, and each row of a repeated, conflicting, late or backward message."""
    report, logs = check_logs(7, 40)
    ranges = report.rows_of("missing_offsets").to_pylist()
    missing = sorted(gap for name, rows in logs.items() for gap in model(name, rows)[1])
    assert [tuple(row.values()) for row in ranges] == missing
    for check, place in {"duplicate_messages": 0, "conflicting_messages": 1}.items():
        expected = []
        for name, rows in logs.items():
            for offset in {row[0] for row in rows}:
                contents = [row[1] for row in rows if row[0] == offset]
                faults = len(contents) - len(set(contents)), len(set(contents)) - 1
                expected += [(name, offset, content) for content in contents] if faults[place] else []
        found = [(row["log"], row["n"], row["body"]) for row in report.rows_of(check).to_pylist()]
        assert sorted(found) == sorted(expected)
        assert [pair[:2] for pair in found] == sorted(pair[:2] for pair in expected)
    for check in ("late_messages", "time_backwards"):
        count = sum(one.count for one in report.findings if one.check == check)
        rows = report.rows_of(check).to_pylist()
        assert len({(row["log"], row["n"]) for row in rows}) == count
