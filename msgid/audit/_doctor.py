"""The makers of the IDs of a table, and the probability that two of their generators make an equal ID."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout
from msgid._validate import check_installed, is_number, quote
from msgid.audit._makers import COUNT_FROM_0, MSGID, UNKNOWN, Sample, fingerprint, function_of, joined, key_of
from msgid.errors import InvalidMessageId
from msgid.ids._bytes import check_several, plain
from msgid.ids.message_id import MessageId
from msgid.ids.node import shared_by
from msgid.ids.parsing import parse

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from msgid.audit._makers import Fingerprint
    from msgid.audit.definitions import Format

_RANDOM_STARTS: Final = 1 << 31
"""The number of first sequence numbers of a default `msgid.Generator`."""
_DAY: Final = 86_400


class Maker(NamedTuple):
    """A client that made IDs of the table.

    Attributes:
        clients: The possible clients; ``unknown`` if no known client makes such IDs.
        ids: Number of rows.
        generators: Number of different generators: of nodes and pids, or of addresses.
        evidence: Why, for the generator with the most IDs.
    """

    clients: tuple[str, ...]
    ids: int
    generators: int
    evidence: str


class Diagnosis(NamedTuple):
    """The findings of `doctor` about the generators of a table's IDs.

    Attributes:
        rows: Number of rows with a value.
        makers: Makers of the IDs; the one with the most IDs is first.
        shared_nodes: Nodes that several machines have, with the reason.
        ids_per_second: The most IDs that one generator made in one second.
        collision_risk: The probability that a generator of the table and a second process with its node and pid, such
            as a copy of its container, make an equal ID within a day: the highest one of all generators. Both start in
            the same second. The generator makes as many IDs per second as in its busiest second, the other process half
            as many; see `collision_risk`. It is 1 for clients that count from 0. It is 0 for IDs of version 0, of
            functions and of random nodes.
    """

    rows: int
    makers: list[Maker]
    shared_nodes: dict[str, str]
    ids_per_second: int
    collision_risk: float

    def to_json(self) -> str:
        """Return the diagnosis as JSON."""
        makers = [maker._asdict() for maker in self.makers]
        return json.dumps({**self._asdict(), "makers": makers}, indent=2)

    def __str__(self) -> str:
        lines = [_counted(self.rows, "ID")]
        for maker in self.makers:
            named = joined(maker.clients)
            ids, generators = _counted(maker.ids, "ID"), _counted(maker.generators, "generator")
            lines.append(f"{named}: {ids} of {generators} ({maker.evidence})")
        lines += [f"shared node {node}: {reason}" for node, reason in self.shared_nodes.items()]
        if self.ids_per_second:  # else no ID has a second and a counter
            lines.append(f"busiest second of a generator: {_counted(self.ids_per_second, 'ID')}")
            copy = "a copy of a generator, with its node and pid and at half its rate,"
            lines.append(f"risk that {copy} repeats an ID within a day: {self.collision_risk:.2g}")
        return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)


def doctor(ids: Iterable[Any], times: Iterable[int | None] | None = None) -> Diagnosis:
    """Return who made IDs: the client by its fingerprints, shared nodes, and the risk of collisions.

    A fingerprint does not prove the client. The IDs of several clients look alike; then the result names them all. With
    the messages' times, some of them can be told apart.

    Args:
        ids: IDs as `msgid.parse` accepts them; None is left out. Text with the digits as the client wrote them.
        times: The messages' own times in milliseconds since 1970, as their producers set them, in the same order.

    Returns:
        The diagnosis; ``print`` it. It has the number of ``rows``, the ``makers`` of the IDs, the ``shared_nodes`` with
        the reasons, ``ids_per_second`` and ``collision_risk``.

    Raises:
        TypeError: if ``ids`` is a single text or bytes.
        ValueError: if ``times`` has another length.

    >>> from msgid import Generator
    >>> generator = Generator(node="56:f7:e7:1c:36:1b", pid=1, clock=lambda: 1_800_000_000, sequence=0)
    >>> print(doctor(generator.generate_batch(50)))
    50 IDs
    RocketMQ gRPC of Java, Go, Python or Node.js: 50 IDs of 1 generator (the sequence is counted from 0: 0 is seen)
    busiest second of a generator: 50 IDs
    risk that a copy of a generator, with its node and pid and at half its rate, repeats an ID within a day: 1
    """
    check_several(ids)
    generators, malformed = _grouped(ids, times)
    told = [(sample, fingerprint(sample)) for sample in generators]
    parsed = [id for sample in generators for id in sample.ids]
    nodes = {id.node for id in parsed if isinstance(id, MessageId) and id.origin == "mac"}
    shared = {layout.format_mac(node): reason for node in sorted(nodes) if (reason := shared_by(node))}
    most = max((_busiest(sample) for sample in generators), default=0)
    risks = [_risk(sample, found) for sample, found in told]
    return Diagnosis(
        rows=len(parsed) + malformed,
        makers=_makers(told, malformed),
        shared_nodes=shared,
        ids_per_second=most,
        collision_risk=max(risks, default=0.0),
    )


def _grouped(ids: Iterable[Any], times: Iterable[int | None] | None) -> tuple[list[Sample], int]:
    """Return the IDs of each generator, and the number of values that are not IDs."""
    groups: dict[object, tuple[list[Any], list[str], list[int | None]]] = defaultdict(lambda: ([], [], []))
    malformed = 0
    pairs = ((id, None) for id in ids) if times is None else zip(ids, times, strict=True)
    for value, time in pairs:
        if value is None:
            continue
        given = plain(value)
        try:
            id = parse(given)  # type: ignore[arg-type]
        except InvalidMessageId:
            malformed += 1
            continue
        parsed, texts, moments = groups[key_of(id)]
        parsed.append(id)
        texts.append(given if isinstance(given, str) else id.hex)
        moments.append(time)
    # The IDs of a function have a node and pid each. They are one sample.
    samples: dict[object, Sample] = {}
    for key, (parsed, texts, moments) in groups.items():
        name = function_of(parsed) if isinstance(parsed[0], MessageId) else None
        sample = samples.setdefault(name or key, Sample([], [], []))
        sample.ids.extend(parsed)
        sample.texts.extend(texts)
        sample.times.extend(moments)
    return list(samples.values()), malformed


def _makers(told: list[tuple[Sample, Fingerprint]], malformed: int) -> list[Maker]:
    """Return a row for each set of clients, the most IDs first."""
    rows: dict[tuple[str, ...], Maker] = {}
    for sample, found in sorted(told, key=lambda one: -len(one[0].ids)):
        earlier = rows.get(found.clients, Maker(found.clients, 0, 0, found.evidence))
        rows[found.clients] = earlier._replace(ids=earlier.ids + len(sample.ids), generators=earlier.generators + 1)
    if malformed:
        earlier = rows.get((UNKNOWN,), Maker((UNKNOWN,), 0, 0, "not an ID"))
        rows[(UNKNOWN,)] = earlier._replace(ids=earlier.ids + malformed)
    return sorted(rows.values(), key=lambda maker: (-maker.ids, maker.clients))


def _busiest(sample: Sample) -> int:
    """Return the most IDs of one second; 0 if the IDs do not contain a second."""
    return max(Counter(id.seconds for id in set(sample.ids) if isinstance(id, MessageId)).values(), default=0)


def _risk(sample: Sample, found: Fingerprint) -> float:
    """Return the risk that a second process with the node and pid of a generator makes an equal ID within a day."""
    if not isinstance(sample.ids[0], MessageId) or sample.ids[0].origin != "mac":
        return 0.0
    if found.clients == (MSGID,):
        rate = _busiest(sample)
        return collision_risk([rate, rate / 2], _DAY)
    return float(COUNT_FROM_0.issuperset(found.clients))


def doctor_file(
    path: str | PathLike[str] | IO[bytes],
    id: str | None = None,
    timestamp: str | None = None,
    *,
    format: Format | None = None,
) -> Diagnosis:
    """Return who made the IDs of a file, as `doctor` does.

    Args:
        path: A file as `audit_file` reads it.
        id: Column of IDs. Default: that of a known table, or the lines of a text file.
        timestamp: Column of the messages' own times. Default: that of a known table.
        format: The format of the file, as for `audit_file`.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file cannot be read, or does not have a column.
    """
    check_installed("a diagnosis of a file", "arrow", "numpy", "pyarrow")

    from msgid.audit._columns import audited, micros, plain_column
    from msgid.audit._files import read_file
    from msgid.audit._options import columns_in

    table, columns = audited(read_file(path, format), columns_in("doctor", {"id": id or "id", "timestamp": timestamp}))
    if columns.id is None:
        raise ValueError(f"cannot tell who made the IDs: the table must have a column of IDs, got {table.column_names}")
    times = None
    if columns.timestamp is not None:
        moments, known = (column.tolist() for column in micros("timestamp", plain_column(table[columns.timestamp])))
        times = [micro // 1000 if is_known else None for micro, is_known in zip(moments, known, strict=True)]
    return doctor(plain_column(table[columns.id]).to_pylist(), times)


def collision_risk(rates: Iterable[float], seconds: float) -> float:
    """Return the probability that processes with the same node and pid, such as containers, make an equal ID.

    All processes start in the same second, each at a random sequence number below 2**31 as `msgid.Generator` does, and
    make IDs at constant rates. So in second ``t``, a process makes the numbers from ``start + rate * t`` on, one for
    each ID. Two processes make an equal ID in a second if these ranges overlap: if the distance of their numbers is
    below the rate of the process that is behind. The distance changes by the difference of the rates in each second, so
    a faster counter overtakes a slower one. From all start distances, those of a window of ``rate + other_rate - 1 +
    (seconds - 1) * (rate - other_rate)`` numbers, modulo 2**32, lead to an equal ID. The difference of two random
    numbers below 2**31 has a triangular distribution, and its share in the window is the probability of the pair.

    For two processes with whole rates, the result is exact. Rates below 1 are given too high a risk. Of more
    processes, the pairs are taken as independent. This is the Poisson approximation of the birthday problem (R.
    Arratia, L. Goldstein, L. Gordon, "Two moments suffice for Poisson approximations", 1989). Simulations of up to
    30 processes differ by at most 0.03. Equal rates never cross; those of running processes always differ.

    Args:
        rates: IDs per second of each process, each 0 or more.
        seconds: How long the processes run, in seconds, 1 or more.

    Raises:
        TypeError, ValueError: if an argument has the wrong type or is out of range.

    >>> collision_risk([100, 100], 86_400) < 1e-6  # they do not cross
    True
    >>> round(collision_risk([1000, 3000], 86_400), 3), round(collision_risk([1000, 3000], 25 * 86_400), 3)
    (0.077, 1.0)
    """
    try:
        listed = list(rates)
    except TypeError:
        raise TypeError(f"rates must be an iterable of numbers, got {quote(rates)}") from None
    counts = sorted(Counter(_number("rates", rate, 0) for rate in listed).items())
    seconds = _number("seconds", seconds, 1)
    pairs = [(rate, rate, count * (count - 1) // 2) for rate, count in counts if count > 1]
    pairs += [(slow, fast, n * m) for (slow, n), (fast, m) in itertools.combinations(counts, 2)]
    log_apart = 0.0
    for slow, fast, count in pairs:
        risk = _pair_risk(slow, fast, seconds)
        if risk >= 1:
            return 1.0
        log_apart += count * math.log1p(-risk)
    return abs(math.expm1(log_apart))


def _number(name: str, value: object, least: int) -> float:
    if not is_number(value):
        raise TypeError(f"{name} must be a number, got {quote(value)}")
    if not least <= value < math.inf:
        raise ValueError(f"{name} must be finite, and {least} or more, got {quote(value)}")
    return float(value)


def _pair_risk(slow: float, fast: float, seconds: float) -> float:
    """Return the probability that a slower and a faster process with random starts make an equal ID."""
    if slow == 0:
        return 0.0
    # The difference of the starts, the faster less the slower one. Half a number more on each side counts both ends.
    width = max(slow + fast - 1, 1) + (fast - slow) * (seconds - 1)
    if width >= layout.UINT32_SPAN:
        return 1.0
    high = slow - 0.5
    # After 2**32 numbers, the faster counter wraps and comes from behind.
    return sum(
        _share_below(high + wrapped) - _share_below(high - width + wrapped) for wrapped in (0, layout.UINT32_SPAN)
    )


def _share_below(distance: float) -> float:
    """Return how many differences of two random starts are from 0 to ``distance``, as a share; negative below 0."""
    share = max(-1.0, min(1.0, distance / _RANDOM_STARTS))
    return share - share * abs(share) / 2
