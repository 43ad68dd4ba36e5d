"""Seeded queues with transactions, compaction, lives, retention and restarts, and their tables with known faults."""

import itertools
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

import pyarrow as pa
from helpers.lives import KINDS as PROCESSES
from helpers.lives import START, generator_of

import msgid
from msgid import layout

QUEUES = ("plain", "committed", "aborted", "compacted", "lives", "retention")
OPTIONS = {"committed": {"holes": "committed"}, "aborted": {"holes": "markers"}, "compacted": {"holes": "compacted"}}
COLUMNS = {"source": "source", "offset": "offset", "timestamp": "at", "content": "body"}
AT = datetime(2021, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=START)
MONTH = datetime(2026, 1, 1, tzinfo=timezone.utc)
NODE = "00:16:3e:00:00:01"
NAMES = {**COLUMNS, "landed": "landed"}
"""The columns of the tables."""
V0 = "version 0"
"""The processes of a client that writes the milliseconds of the month in its own time zone, around a month's end."""


@dataclass
class Row:
    """A row of a table; ``made`` is the second and the number of its version-1 ID, or None."""

    log: str
    life: int
    offset: int
    id: str
    at: datetime
    body: str
    landed: datetime
    made: tuple[int, int] | None = None


@dataclass
class Queue:
    """A queue of some logs, what a reader sees of it, and the table in which it landed.

    Args:
        kind: How its offsets are used, one of `QUEUES`.
        number: The number of the queue in a table of several, whose logs and processes differ.

    Attributes:
        rows, landed: The messages that a reader of committed messages sees; the rows of the table.
        faults: The fault, the log and its life, and the offset. ``processes``: how those that made the IDs start.
    """

    seed: int
    kind: str
    number: int = 0
    rows: list = field(default_factory=list)

    def __post_init__(self):
        self.chance = random.Random(f"{self.seed} {self.kind}")
        self.processes = self.chance.choice((*PROCESSES, V0))
        sent = list(self._sent())
        self.recreated = sent[len(sent) // 2][0]
        self.retained = sent[self.chance.randint(0, len(sent) // 2) if self.kind == "retention" else 0][0]
        names = [f"kafka:kafka/t{self.number}/{number}" for number in range(self.chance.randint(1, 3))]
        logs = defaultdict(list)
        for at, id, made in sent:
            life = int(self.kind == "lives" and at >= self.recreated)
            logs[self.chance.choice(names), life].append((at, id, made))
        for (log, life), messages in sorted(logs.items()):
            self._fill(log, life, messages)
        self.landed, self.faults = list(self.rows), set()

    def _sent(self):
        """Yield the time and the ID of each message, in the order of their times."""
        at = AT if self.processes != V0 else MONTH - timedelta(seconds=self.chance.randint(0, 60))
        if self.processes == V0:
            zone = timezone(timedelta(hours=self.chance.randint(-12, 14)))
            for counter in range(self.chance.randint(20, 200)):
                at += timedelta(milliseconds=self.chance.randint(0, 900))
                local = at.astimezone(zone)
                elapsed = local - local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
                made = elapsed // timedelta(milliseconds=1)
                yield at, msgid.ClientUniqueId("10.0.0.1", 7 + self.number, 0x30946E09, made, counter).hex, None
            return
        self.generator = generator_of(self.seed, self.processes)
        ids = dict.fromkeys(self.generator.ids)
        if self.processes == "alone":  # a few are enough
            ids = itertools.islice(ids, self.chance.randint(20, 100))
        for second, number in sorted(ids, key=lambda id: id[0]):
            own = AT + timedelta(seconds=second - START)
            at = max(at, own) + timedelta(milliseconds=self.chance.randint(0, 50))
            yield at, layout.pack(0x00163E000001 + self.number, 1, second, number).hex(), (second, number)

    def _fill(self, log, life, messages):
        offset = self.chance.choice((0, 0, 65_400, 1 << 33))
        rows = []
        waiting = iter(messages)
        while transaction := list(itertools.islice(waiting, self.chance.randint(1, 6))):
            is_aborted = self.kind == "aborted" and self.chance.random() < 0.3
            for at, own, counted in transaction:
                id, made = (own, counted) if self.chance.random() > 0.01 else (f"order-{log}-{life}-{offset}", None)
                landed = AT + timedelta(seconds=((at - AT) // timedelta(seconds=30) + 1) * 30)
                if not is_aborted:
                    rows.append(Row(log, life, offset, id, at, f"body {self.chance.randint(0, 9)}", landed, made))
                offset += 1
            offset += self.kind in ("committed", "aborted")  # the marker
        if self.kind == "compacted":
            rows = [row for row in rows if self.chance.random() < 0.3]
        self.rows += [row for row in rows if row.at >= self.retained]

    def damage(self):
        """Lose, change, repeat, delay and add messages, and set the clocks of the queue and of the table back."""
        inner = [row for before, row, after in zip(self.rows, self.rows[1:], self.rows[2:], strict=False)
                 if self._name(before) == self._name(row) == self._name(after)]  # fmt: skip
        chosen = self.chance.sample(inner, min(len(inner), 14))
        lost, altered, repeated, conflicting = chosen[:4], chosen[4:6], chosen[6:8], chosen[8:10]
        moved = {id(row) for row in chosen[10:]}
        gone = {id(row) for row in (*lost, *altered)}
        self.landed = [self._delayed(row) if id(row) in moved else row for row in self.rows if id(row) not in gone]
        for row in repeated:
            self.landed.append(replace(row, landed=row.landed + timedelta(hours=1)))
        for row in altered:
            own = {"id": f"other {row.log} {row.offset}", "made": None}
            self.landed.append(replace(row, **({"body": "other"} if self.chance.random() < 0.5 else own)))
        for row in conflicting:
            self.landed.append(replace(row, body="a second body", landed=row.landed + timedelta(hours=1)))
        last = self.rows[-1]
        extra = replace(last, offset=last.offset + 5, id=f"extra {last.log}", body="extra", made=None)
        self.landed.append(extra)
        self.chance.shuffle(self.landed)
        changed = (*altered, *conflicting)
        for fault, rows in (("lost", lost), ("changed", changed), ("duplicate", repeated), ("extra", [extra])):
            self.faults |= {(fault, self._name(row), row.offset) for row in rows}
        self.lost = lost

    def _delayed(self, row):
        """A row that landed late or early, or whose time was set back."""
        seconds = timedelta(seconds=self.chance.randint(60, 600))
        choice = self.chance.choice(("late", "early", "back"))
        if choice == "back" and self.kind != "lives":  # the time names the life
            return replace(row, at=row.at - seconds)
        return replace(row, landed=row.landed + (seconds if choice == "late" else -seconds))

    def _name(self, row):
        return f"{row.log}@{self.recreated.isoformat()}" if row.life else row.log

    @property
    def options(self):
        """The arguments of an audit that know the queue."""
        if self.kind == "lives":
            return {"incarnation": "life"}
        return OPTIONS.get(self.kind, {})

    @property
    def complete_until(self):
        """The moment before which all messages have landed."""
        times = [row.at for row in self.lost]
        return min(times) if times else max(row.at for row in self.rows)

    def table(self, rows):
        """Rows as a table; in one of four queues, times are text in several time zones."""
        zones = [timezone(timedelta(minutes=minutes)) for minutes in (0, 330, 840, -720)]

        def times(values):
            if self.seed % 4:
                return pa.array(list(values), pa.timestamp("us", "UTC"))
            return pa.array([value.astimezone(self.chance.choice(zones)).isoformat() for value in values], pa.string())

        life = self.recreated.isoformat()
        return pa.table({
            "source": pa.array([row.log for row in rows], pa.string()),
            "life": pa.array([life if row.life else None for row in rows], pa.string()),
            "offset": pa.array([row.offset for row in rows], pa.int64()),
            "id": pa.array([self._spelled(row.id) for row in rows], pa.string()),
            "at": times(row.at for row in rows),
            "landed": times(row.landed for row in rows),
            "body": pa.array([row.body for row in rows], pa.string()),
        })  # fmt: skip

    def _spelled(self, id):
        return id.upper() if id.startswith("01") and self.chance.random() < 0.5 else id

    # --- what an audit of some rows must find ---------------------------------------------------------------------

    def gaps(self, rows):
        """The missing offsets of each log and life, by ranges, that the audit may call a loss."""
        if self.kind == "compacted":
            return set()
        shortest = 2 if self.kind in ("committed", "aborted") else 1
        logs = defaultdict(set)
        for row in rows:
            logs[self._name(row)].add(row.offset)
        return {
            (name, a + 1, b - 1)
            for name, offsets in logs.items()
            for a, b in itertools.pairwise(sorted(offsets))
            if b - a > shortest
        }

    def expected(self, rows):
        """The findings about messages and single IDs: their numbers by check and scope."""
        found = Counter()
        for name, first, last in self.gaps(rows):
            found["missing_offsets", name] += last - first + 1
        logs, by_id = defaultdict(lambda: defaultdict(list)), defaultdict(list)
        for row in rows:
            logs[self._name(row)][row.offset].append(row)
            by_id[row.id].append(row)
            found["malformed_ids", "table"] += row.id.startswith(("order", "other", "extra"))
            is_future = row.made is not None and AT + timedelta(seconds=row.made[0] - START - 1) > row.landed
            found["future_ids", "table"] += is_future
        for held in by_id.values():
            found["duplicate_ids", "table"] += len(held) - len({row.body for row in held})
            found["conflicting_ids", "table"] += len({row.body for row in held}) - 1
        for name, held in logs.items():
            ordered = [held[offset] for offset in sorted(held)]
            for same in ordered:
                found["duplicate_messages", name] += len(same) - len({row.body for row in same})
                found["conflicting_messages", name] += len({row.body for row in same}) - 1
            landed = [min(row.landed for row in same) for same in ordered]
            after = list(itertools.accumulate(reversed(landed), min))[::-1]
            found["late_messages", name] += sum(own > least for own, least in zip(landed, after[1:], strict=False))
            times = [min(row.at for row in same) for same in ordered]
            found["time_backwards", name] += sum(b < a for a, b in itertools.pairwise(times))
        return {key: count for key, count in found.items() if count}


def several(seeds, kind="plain"):
    """Return queues with faults, and one table of them in which times are of one type."""
    queues = [Queue(4 * seed + 1, kind, number) for number, seed in enumerate(seeds)]
    for queue in queues:
        queue.damage()
    return queues, pa.concat_tables([queue.table(queue.landed) for queue in queues])
