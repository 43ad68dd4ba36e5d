"""Simulated clusters whose tables have known faults.

The truth is the part of the faults that the table can show. It follows from the simulation, which knows the process
that made each ID and each row that was lost, and never from the table.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from msgid import layout
from msgid.audit.definitions import AHEAD_S, CLOCK_JUMP
from msgid.ids.parsing import is_valid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

START = 1_780_000_000
"""The first second of the simulation, Unix time."""
FAULTS = (
    "lost start", "lost middle", "lost end", "lost single", "duplicates", "double write", "conflicts", "restarts",
    "clock back", "clock jump", "shared mac", "malformed", "null", "late", "broker clock", "task retry",
)  # fmt: skip


@dataclass
class Row:
    """A row of the table; ``run`` and ``sequence`` name the process that made its ID."""

    id: str | None
    source: str
    offset: int
    timestamp: float
    landed: float
    content: str
    run: tuple[str, int] | None = None
    sequence: int = 0
    seconds: int = 0


@dataclass
class Producer:
    """A process that makes IDs; each restart increases its run number."""

    node: int
    pid: int
    restarts_at_zero: bool
    random: random.Random
    skew: int = 0
    run: int = 0
    sequence: int = 0
    down_until: float = 0
    name: str = ""

    def __post_init__(self) -> None:
        self.name = f"{layout.format_mac(self.node)}/{self.pid}"
        self.sequence = self.first()

    def first(self) -> int:
        """Return the sequence number at which a process starts."""
        # Processes of msgid start at random numbers: here always far apart.
        return 0 if self.restarts_at_zero else self.random.randrange(1 << 9) << 22

    def restart(self, now: float) -> None:
        """Start a new run, after 90 seconds without IDs."""
        self.run, self.sequence, self.down_until = self.run + 1, self.first(), now + 90

    def make(self, now: float, row: Row) -> None:
        """Write the next ID into a row."""
        row.seconds = int(now) + self.skew
        row.run, row.sequence = (self.name, self.run), self.sequence
        row.id = layout.pack(self.node, self.pid, row.seconds - layout.EPOCH_UNIX, self.sequence).hex().upper()
        self.sequence += 1


@dataclass
class Cluster:
    """The simulation: its rows as they land, and the rows that are lost."""

    seed: int
    faults: tuple[str, ...] = ()
    messages: int = 400
    name: str = ""
    rows: list[Row] = field(default_factory=list)
    truth: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.lost: list[Row] = []
        self.shared: set[str] = set()
        self._make_rows()
        for fault in ("lost start", "lost middle", "lost end", "lost single"):
            if fault in self.faults:
                self._lose(fault)
        self._spoil_ids()
        if "late" in self.faults:
            for row in self.random.sample(self.rows, 4):
                row.landed += 60 + self.random.randrange(60)
        if "broker clock" in self.faults:
            row = self.random.choice(self.rows)
            row.timestamp -= 500
        self._repeat_rows()
        self._find_truth()

    def _producers(self) -> list[Producer]:
        number = self.random.randrange(1 << 20) << 4
        made: list[Producer] = []
        for place in range(self.random.randint(2, 4)):
            # Card addresses, in containers, where every process has the pid 1.
            node = 0x00_16_3E_00_00_00 + ((number + place) & 0xFFFFFF)
            made.append(Producer(node, self.random.choice((1, 1, 4711)), place % 2 == 0, self.random))
        if "shared mac" in self.faults:
            made.append(Producer(made[1].node, made[1].pid, False, self.random))
            # Another process on the same address: its runs have numbers of their own.
            made[-1].run, made[-1].sequence = 1000, 3 << 30
            self.shared.add(layout.format_mac(made[1].node))
        return made

    def _make_rows(self) -> None:
        producers = self._producers()
        logs = [f"{self.name}kafka:kafka/orders/{n}" for n in range(self.random.randint(1, 3))]
        offsets = {log: self.random.choice((0, 0, 7, 5_000_000_000, 65_500)) for log in logs}
        now = float(START + self.random.randrange(10_000_000))
        events: dict[int, Callable[[], object]] = {}

        def restart() -> None:
            for producer in producers[:2]:
                producer.restart(now)

        if "restarts" in self.faults:
            events[self.messages // 2] = restart
        if "clock back" in self.faults:
            events[self.messages // 4] = lambda: setattr(producers[0], "skew", -self.random.randint(20, 40))
        if "clock jump" in self.faults:
            events[self.messages // 3] = lambda: setattr(producers[-1], "skew", 200_000)
        for number in range(self.messages):
            now += self.random.choice((0.01, 0.2, 1.5))
            if number in events:
                events[number]()
            up = [producer for producer in producers if producer.down_until <= now]
            while not up:
                now += 30
                up = [producer for producer in producers if producer.down_until <= now]
            log = self.random.choice(logs)
            row = Row(None, log, offsets[log], now, (now // 30 + 1) * 30, f"order {number} of {self.seed}")
            up[number % len(up)].make(now, row)
            offsets[log] += 1
            self.rows.append(row)

    def _of_log(self) -> list[Row]:
        log = self.random.choice(sorted({row.source for row in self.rows}))
        return [row for row in self.rows if row.source == log]

    def _lose(self, fault: str) -> None:
        rows = self._of_log()
        size = 1 if fault == "lost single" else min(self.random.randint(2, 12), len(rows) // 4)
        first = {"lost start": 0, "lost end": len(rows) - size}.get(fault)
        if first is None:
            first = self.random.randrange(len(rows) // 3, 2 * len(rows) // 3)
        gone = {id(row) for row in rows[first : first + size]}
        self.rows = [row for row in self.rows if id(row) not in gone]

    def _spoil_ids(self) -> None:
        spoiled = self.random.sample(self.rows, 6)
        if "malformed" in self.faults:
            for row, text in zip(spoiled, ("order-", "0" * 33, "", "0G" * 17, "07" * 17), strict=False):
                row.id, row.run = (f"{text}{row.offset}" if text == "order-" else text), None
        if "null" in self.faults:
            spoiled[5].id = spoiled[5].run = None
        if "task retry" in self.faults:
            # A task of a job with assigned IDs ran twice on other rows: two messages have one ID.
            first, second = [row for row in self.rows if row.run is not None][3:5]
            second.id, second.run = first.id, None
            self.truth["conflicting_ids"]["table"] += 1

    def _repeat_rows(self) -> None:
        copies = []
        if "duplicates" in self.faults:
            copies += [replace(row) for row in self.random.sample(self.rows, 5)]
        if "double write" in self.faults:
            first = self.random.randrange(len(self.rows) // 2)
            copies += [replace(row) for row in self.rows[first : first + 40]]
        held = {(row.source, row.offset) for row in self.rows}
        assert len(held) == len(self.rows)
        for copy in copies:
            self.truth["duplicate_messages"][copy.source] += 1
            if copy.id:
                self.truth["duplicate_ids"]["table"] += 1
        if "conflicts" in self.faults:
            for row in self.random.sample(self.rows, 3):
                copies.append(replace(row, content=row.content + " changed"))
                self.truth["conflicting_messages"][row.source] += 1
                if row.id:
                    self.truth["conflicting_ids"]["table"] += 1
        for copy in copies:
            copy.landed += 3600
        self.rows += copies
        malformed = {"", *(row.id for row in self.rows if row.id is not None and not is_valid(row.id))}
        self.truth["malformed_ids"]["table"] = sum(row.id in malformed for row in self.rows)
        self.truth["missing_ids"]["table"] = sum(row.id is None for row in self.rows)
        self.random.shuffle(self.rows)

    def _find_truth(self) -> None:
        self.gaps: list[tuple[str, str, int, int]] = []
        logs: dict[str, dict[int, list[Row]]] = defaultdict(dict)
        for row in self.rows:
            logs[row.source].setdefault(row.offset, []).append(row)
        for log, held in logs.items():
            self._holes("missing_offsets", "offset", log, sorted(held))
            ordered = [held[offset] for offset in sorted(held)]
            landed = [min(row.landed for row in rows) for rows in ordered]
            late = sum(any(other < mine for other in landed[place:]) for place, mine in enumerate(landed))
            times = [rows[0].timestamp for rows in ordered]
            back = sum(b < a for a, b in itertools.pairwise(times))
            self.truth["late_messages"][log] += late
            self.truth["time_backwards"][log] += back
        runs: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for row in self.rows:
            if row.run is not None:
                runs[row.run][row.sequence] = row.seconds
            if row.run is not None and row.seconds - AHEAD_S > row.landed:
                self.truth["future_ids"]["table"] += 1
        self.runs = Counter(name for name, _ in runs)
        for (name, _), made in runs.items():
            self._holes("missing_sequences", "sequence", name, sorted(made))
            seconds = [made[sequence] for sequence in sorted(made)]
            for a, b in itertools.pairwise(seconds):
                self.truth["clock_backwards"][name] += b < a
                self.truth["clock_jump"][name] += b - a > CLOCK_JUMP.total_seconds()
        for node in self.shared:
            self.truth["shared_node"][node] = 2
        self.expected = {
            (check, scope): count for check, scopes in self.truth.items() for scope, count in scopes.items() if count
        }

    def _holes(self, check: str, kind: str, scope: str, numbers: Iterable[int]) -> None:
        for a, b in itertools.pairwise(numbers):
            if b - a > 1:
                self.truth[check][scope] += b - a - 1
                self.gaps.append((kind, scope, a + 1, b - 1))

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns of Python values."""

        def moment(seconds: float) -> datetime:
            return datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=round(seconds * 1000))

        return {
            "id": [row.id for row in self.rows],
            "source": [row.source for row in self.rows],
            "offset": [row.offset for row in self.rows],
            "timestamp": [moment(row.timestamp) for row in self.rows],
            "landed": [moment(row.landed) for row in self.rows],
            "content": [row.content for row in self.rows],
        }


def with_all_faults(seed: int) -> Cluster:
    """Return a cluster of 4,000 messages with all faults but one.

    A clock that goes far ahead before a restart hides which run was first, so that fault is left out.
    """
    return Cluster(seed, tuple(fault for fault in FAULTS if fault != "clock jump"), messages=4_000)


def simulated(seed, name=""):
    """Return one of many small clusters: every sixth is without a fault, and the others have some."""
    chance = random.Random(seed * 7919)
    faults = () if seed % 6 == 0 else tuple(chance.sample(FAULTS, chance.randint(1, 6)))
    if "restarts" in faults:  # a clock that went far ahead of a restart hides which process was first
        faults = tuple(fault for fault in faults if fault != "clock jump")
    return Cluster(seed, faults, name=name)
