"""Seeded queues with transactions, compaction, lives, retention and restarts, and their tables with known faults."""

import itertools
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

import pyarrow as pa
from helpers.lives import KINDS as PROCESSES
from helpers.lives import generator_of

from msgid import layout

QUEUES = ("plain", "committed", "aborted", "compacted", "lives", "retention")
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
OPTIONS = {"committed": {"holes": "committed"}, "aborted": {"holes": "markers"}, "compacted": {"holes": "compacted"}}
COLUMNS = {"source": "source", "offset": "offset", "timestamp": "at", "content": "body"}


@dataclass
class Queue:
    """A queue of some logs, what a reader sees of it, and the table in which it landed.

    Args:
        seed: Where its numbers come from.
        kind: How its offsets are used, one of `QUEUES`.

    Attributes:
        rows: The messages that a reader of committed messages sees: log, life, offset, ID, time and content.
        landed: The rows of the table.
        faults: The faults of the table: the fault, the log and its life, and the offset.
    """

    seed: int
    kind: str
    rows: list = field(default_factory=list)

    def __post_init__(self):
        self.chance = random.Random(f"{self.seed} {self.kind}")
        made = generator_of(self.seed, self.chance.choice(PROCESSES))
        ids = iter([layout.pack(0x00163E000001, 1, second, number).hex() for second, number in dict.fromkeys(made.ids)])
        self.recreated = AT + timedelta(minutes=90)
        for log in range(self.chance.randint(1, 3)):
            for life in range(2 if self.kind == "lives" else 1):
                self._fill(f"kafka:kafka/t/{log}", life, ids)
        self.landed, self.faults = list(self.rows), set()

    def _fill(self, log, life, ids):
        offset = self.chance.choice((0, 0, 65_400, 1 << 33))
        moment = self.recreated if life else AT
        rows = []
        for _ in range(self.chance.randint(3, 12)):
            size = self.chance.randint(1, 6)
            is_aborted = self.kind == "aborted" and self.chance.random() < 0.3
            for _ in range(size):
                moment += timedelta(milliseconds=self.chance.randint(0, 900))
                id = next(ids, None) or f"order-{log}-{life}-{offset}"
                if not is_aborted:
                    rows.append((log, life, offset, id, moment, f"body {self.chance.randint(0, 9)}"))
                offset += 1
            offset += self.kind in ("committed", "aborted")  # the marker
        if self.kind == "compacted":
            rows = [row for row in rows if self.chance.random() < 0.3]
        if self.kind == "retention":
            rows = rows[self.chance.randint(0, len(rows) // 2) :]
        self.rows += rows

    def damage(self):
        """Lose, change, repeat and add messages."""
        inner = [row for before, row, after in zip(self.rows, self.rows[1:], self.rows[2:], strict=False)
                 if before[:2] == row[:2] == after[:2]]  # fmt: skip
        chosen = self.chance.sample(inner, min(len(inner), 8))
        lost, altered, repeated = chosen[:4], chosen[4:6], chosen[6:]
        self.landed = [row for row in self.rows if row not in lost and row not in altered] + repeated
        for row in altered:
            place = self.chance.choice((3, 5))
            self.landed.append((*row[:place], f"other {self.chance.random()}", *row[place + 1 :]))
        last = self.rows[-1]
        extra = (*last[:2], last[2] + 5, f"extra {self.seed}", last[4], "extra")
        self.landed.append(extra)
        self.chance.shuffle(self.landed)
        for fault, rows in (("lost", lost), ("changed", altered), ("duplicate", repeated), ("extra", [extra])):
            self.faults |= {(fault, *self._name(row), row[2]) for row in rows}

    def _name(self, row):
        return (f"{row[0]}@{self.recreated.isoformat()}" if row[1] else row[0],)

    @property
    def options(self):
        """The arguments of an audit that know the queue."""
        if self.kind == "lives":
            return {"life": self.chance.choice(("life", self.recreated))}
        return OPTIONS.get(self.kind, {})

    def table(self, rows):
        """Rows as a table whose times are text in several time zones."""
        zones = [timezone(timedelta(minutes=minutes)) for minutes in (0, 330, 840, -720)]
        life = self.recreated.isoformat()
        return pa.table({
            "source": pa.array([row[0] for row in rows], pa.string()),
            "life": pa.array([life if row[1] else None for row in rows], pa.string()),
            "offset": pa.array([row[2] for row in rows], pa.int64()),
            "id": pa.array([self._spelled(row[3]) for row in rows], pa.string()),
            "at": pa.array([row[4].astimezone(self.chance.choice(zones)).isoformat() for row in rows], pa.string()),
            "body": pa.array([row[5] for row in rows], pa.string()),
        })  # fmt: skip

    def _spelled(self, id):
        return id.upper() if id.startswith("01") and self.chance.random() < 0.5 else id

    def gaps(self, rows):
        """The missing offsets of each log and life, by ranges."""
        logs = {}
        for row in rows:
            logs.setdefault(self._name(row)[0], set()).add(row[2])
        found = set()
        for name, offsets in logs.items():
            ordered = sorted(offsets)
            found |= {(name, a + 1, b - 1) for a, b in itertools.pairwise(ordered) if b - a > 1}
        return found
