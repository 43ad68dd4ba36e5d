"""The makers of the IDs of a table, and the probability that two of their generators make an equal ID."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout
from msgid.audit.definitions import COUNTED_FROM_0, is_generator
from msgid.errors import InvalidMessageId
from msgid.ids.carriers import values_of
from msgid.ids.checked_bytes import is_uuid, uuid_bytes
from msgid.ids.message_id import MessageId
from msgid.ids.node import shared_by
from msgid.ids.parsing import parse
from msgid.ids.uuids import uuid_facts
from msgid.ids.v0 import BrokerOffsetId, ClientUniqueId
from msgid.shared.validate import INT32_MAX, check_installed, is_number, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    from msgid.audit.definitions import Format
    from msgid.ids.parsing import AnyId

UNKNOWN: Final = "unknown"
BROKER: Final = "RocketMQ broker"
JAVA_REMOTING: Final = "RocketMQ Java remoting"
GO_REMOTING: Final = "RocketMQ Go remoting"
JAVA_GRPC: Final = "RocketMQ Java gRPC"
GO_GRPC: Final = "RocketMQ Go gRPC"
PYTHON_GRPC: Final = "RocketMQ Python gRPC"
OLD_PYTHON: Final = "RocketMQ Python gRPC before 5.0.2"
NODE_GRPC: Final = "RocketMQ Node.js gRPC"
CSHARP: Final = "RocketMQ C#"
RUST: Final = "RocketMQ Rust"
OLD_CPP: Final = "RocketMQ C++ before 2026"
CPP_REMOTING: Final = "RocketMQ C++ remoting 1.2"
RUST_REMOTING: Final = "rocketmq-rust"
IGGY_NUMBER: Final = "Iggy Java, Node.js or HTTP"
IGGY_HALVES: Final = "Iggy C#"
MSGID: Final = "msgid"

_GRPC: Final = (JAVA_GRPC, GO_GRPC, PYTHON_GRPC, NODE_GRPC)
_RANDOM: Final = (JAVA_GRPC, PYTHON_GRPC)
"""The clients that take a random node without a network card, and count from 0; C# counts from 1."""
COUNT_FROM_0: Final = frozenset({*_GRPC, CSHARP, RUST, OLD_CPP, OLD_PYTHON})
"""The clients of version 1 that count from 0 or 1, in each process."""

_JAVA_LOADERS: Final = {
    0x30946E09: "of the clients 4.9.8 and 5.4.0",
    0x18B4AAC2: "of the application class loader of Java 8",
}
"""The class-loader hashes that Java remoting clients have in every start."""
_FUNCTIONS: Final = {"position": "position_id", "derived": "derive_id", "assigned": "assign_id"}
_FEWEST_TIMES: Final = 20
"""With fewer times, that none of them is behind its ID says little."""
_FEWEST_IN_A_ROW: Final = 10
"""With fewer numbers from 1 on, number 0 may be in another table."""
_YEARS: Final = 50 * 366 * 86_400
"""Seconds since 2021 that are plausible for a time."""
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
        ids: IDs as `msgid.parse` accepts them; None and other missing values are left out. Text with the digits as the
            client wrote them.
        times: The messages' own times in milliseconds since 1970, as their producers set them, in the same order.

    Returns:
        The diagnosis; ``print`` it. It has the number of ``rows``, the ``makers`` of the IDs, the ``shared_nodes`` with
        the reasons, ``ids_per_second`` and ``collision_risk``.

    Raises:
        TypeError: if ``ids`` is a single text or bytes, or a table.
        ValueError: if ``times`` has another length.

    >>> from msgid import Generator
    >>> generator = Generator(node="56:f7:e7:1c:36:1b", pid=1, clock=lambda: 1_800_000_000, sequence=0)
    >>> print(doctor(generator.generate_batch(50)))
    50 IDs
    RocketMQ gRPC of Java, Go, Python or Node.js: 50 IDs of 1 generator (the sequence is counted from 0: 0 is seen)
    busiest second of a generator: 50 IDs
    risk that a copy of a generator, with its node and pid and at half its rate, repeats an ID within a day: 1
    """
    generators, others = _grouped(values_of(ids), times)
    fingerprints = [(sample, fingerprint(sample)) for sample in generators]
    parsed = [id for sample in generators for id in sample.ids]
    nodes = {id.node for id in parsed if isinstance(id, MessageId) and id.origin == "mac"}
    shared = {layout.format_mac(node): reason for node in sorted(nodes) if (reason := shared_by(node))}
    most = max((_busiest(sample) for sample in generators), default=0)
    risks = [_risk(sample, guess) for sample, guess in fingerprints]
    return Diagnosis(
        rows=len(parsed) + len(others),
        makers=_makers(fingerprints, others),
        shared_nodes=shared,
        ids_per_second=most,
        collision_risk=max(risks, default=0.0),
    )


def _grouped(ids: Iterable[Any], times: Iterable[int | None] | None) -> tuple[list[Sample], list[object]]:
    """Return the IDs of each generator, and the values that are not IDs."""
    groups: dict[tuple[object, ...], list[tuple[AnyId, str, int | None]]] = defaultdict(list)
    others: list[object] = []
    pairs = ((id, None) for id in ids) if times is None else zip(ids, times, strict=True)
    for value, time in pairs:
        if value is None:
            continue
        try:
            id = parse(value)
        except InvalidMessageId:
            others.append(value)
            continue
        groups[key_of(id)].append((id, value if isinstance(value, str) else id.hex, time))
    # The IDs of a function have a node and pid each, and are one sample. A run of `assign_id` has a node of its own.
    samples: dict[object, list[tuple[AnyId, str, int | None]]] = defaultdict(list)
    for key, rows in groups.items():
        name = function_of([id for id, _, _ in rows])
        samples[(name, *key[:2]) if name == _FUNCTIONS["assigned"] else name or key] += rows
    return [Sample(*map(list, zip(*rows, strict=True))) for rows in samples.values()], others


def _makers(fingerprints: list[tuple[Sample, Fingerprint]], others: list[object]) -> list[Maker]:
    """Return a row for each set of clients, the most IDs first."""
    rows: dict[tuple[str, ...], Maker] = {}
    for sample, guess in sorted(fingerprints, key=lambda one: -len(one[0].ids)):
        earlier = rows.get(guess.clients, Maker(guess.clients, 0, 0, guess.evidence))
        rows[guess.clients] = earlier._replace(ids=earlier.ids + len(sample.ids), generators=earlier.generators + 1)
    for guess, count in Counter(map(_order_of_uuid, others)).items():
        earlier = rows.get(guess.clients, Maker(guess.clients, 0, 0, guess.evidence))
        rows[guess.clients] = earlier._replace(ids=earlier.ids + count)
    return sorted(rows.values(), key=lambda maker: (-maker.ids, maker.clients))


def _order_of_uuid(value: object) -> Fingerprint:
    """Return in which order a producer wrote the bytes of a UUID into an Iggy message, as evidence of the client.

    >>> _order_of_uuid("0a000000-0000-0080-007c-b1a0c0f09801").clients
    ('Iggy Java, Node.js or HTTP',)
    """
    unknown = Fingerprint((UNKNOWN,), "not an ID")
    if not is_uuid(value):
        return unknown
    raw = uuid_bytes(value)
    if not _fits(raw) and _fits(raw[::-1]):
        return Fingerprint((IGGY_NUMBER,), 'UUIDs whose bytes are last to first: read them with uuid="number"')
    if not _fits(raw) and _fits(raw[8:] + raw[:8]):
        return Fingerprint((IGGY_HALVES,), "UUIDs whose halves are exchanged")
    return unknown


def _fits(raw: bytes) -> bool:
    """Return whether 16 bytes have the variant of RFC 9562 and one of its versions."""
    return uuid_facts(raw).version is not None


def _busiest(sample: Sample) -> int:
    """Return the most IDs of one second; 0 if the IDs do not contain a second."""
    return max(Counter(id.seconds for id in set(sample.ids) if isinstance(id, MessageId)).values(), default=0)


def _risk(sample: Sample, guess: Fingerprint) -> float:
    """Return the risk that a second process with the node and pid of a generator makes an equal ID within a day."""
    if not isinstance(sample.ids[0], MessageId) or sample.ids[0].origin != "mac":
        return 0.0
    if guess.clients == (MSGID,):
        rate = _busiest(sample)
        return collision_risk([rate, rate / 2], _DAY)
    return float(COUNT_FROM_0.issuperset(guess.clients))


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
    check_installed("a diagnosis of a file", "arrow", "duckdb", "pyarrow")

    from msgid.audit._run import ids_and_times

    return doctor(*ids_and_times(path, id, timestamp, format))


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


# --- Fingerprints: which client made the IDs of a generator ---
# The rules are what running clients showed, and what the source of others says. A fingerprint tells clients apart; it
# does not prove one.


class Sample(NamedTuple):
    """The IDs of one generator, in the order of the table.

    Attributes:
        ids: The IDs, parsed.
        texts: Their texts as the table has them.
        times: The messages' own times in milliseconds since 1970, or None.
    """

    ids: list[Any]
    texts: list[str]
    times: list[int | None]


class Fingerprint(NamedTuple):
    """The clients that may have made IDs, and the evidence."""

    clients: tuple[str, ...]
    evidence: str


def joined(clients: Sequence[str]) -> str:
    """Return the names of possible clients, in a few words.

    >>> joined((GO_GRPC, NODE_GRPC)), joined((MSGID,))
    ('RocketMQ gRPC of Go or Node.js', 'msgid')
    """
    if len(clients) == 1:
        return clients[0]
    if not all(client in _GRPC for client in clients):
        return f"{', '.join(clients[:-1])} or {clients[-1]}"
    languages = [client.removeprefix("RocketMQ ").removesuffix(" gRPC") for client in clients]
    return f"RocketMQ gRPC of {', '.join(languages[:-1])} or {languages[-1]}"


def key_of(id: AnyId) -> tuple[object, ...]:
    """Return what the IDs of one generator have in common."""
    if isinstance(id, MessageId):
        return ("v1", id.node, id.pid)
    if isinstance(id, ClientUniqueId):
        return ("v0", id._host_bytes, id.pid, id.loader_hash)
    return ("broker", id._host_bytes, id.port)


def fingerprint(sample: Sample) -> Fingerprint:
    """Return who may have made the IDs of one generator.

    >>> import msgid
    >>> made = msgid.Generator(sequence=2**30).generate_batch(3)
    >>> fingerprint(Sample(made, [str(id) for id in made], [None] * 3)).clients
    ('msgid',)
    """
    first = sample.ids[0]
    if isinstance(first, BrokerOffsetId):
        return Fingerprint((BROKER,), "an address, a port and an offset in a commit log")
    rules = _OF_V1 if isinstance(first, MessageId) else _OF_V0
    guess = next((guess for rule in rules if (guess := rule(sample))), None)
    return guess or Fingerprint((UNKNOWN,), _seen(sample))


def _seen(sample: Sample) -> str:
    """Return what the IDs of one generator have, in words."""
    first = sample.ids[0]
    if isinstance(first, MessageId):
        return f"version 1; the lowest sequence number is {min(id.sequence for id in sample.ids):,}"
    elapsed = min(id.elapsed_ms for id in sample.ids)
    return f"version 0; the class-loader hash is {first.loader_hash:08X}, the least time in a month {elapsed:,} ms"


def function_of(ids: Sequence[Any]) -> str | None:
    """Return the function that made IDs of version 1 from an input; None if a generator made them, or a client.

    The IDs are of one node and pid, or of several that no generator made.
    """
    first = ids[0]
    name = _FUNCTIONS.get(first.origin) if isinstance(first, MessageId) else None
    if name is None or len({(id.node, id.pid) for id in ids}) > 1:
        return name
    if first.origin == "assigned":  # a run has one second
        pairs = sorted({(id.seconds, id.sequence) for id in ids})
        is_one = first.seconds != pairs[-1][0] and all(a[1] < b[1] for a, b in itertools.pairwise(pairs))
    else:
        numbers = [id.sequence for id in ids]
        is_one = is_generator(first.origin == "derived", first.pid, min(numbers), max(numbers))
    return None if is_one else name


def _functions(sample: Sample) -> Fingerprint | None:
    name = function_of(sample.ids)
    if name is None:
        return None
    first, function = sample.ids[0], f"{MSGID} {name}"
    # Partitions are counted from 0. So one pid above 0, with a number counted from 0, may be that of a process.
    is_one = first.origin == "assigned" and first.pid > 0 and len({(id.node, id.pid) for id in sample.ids}) == 1
    if is_one and len(sample.ids) > 1 and min(id.sequence for id in sample.ids) < COUNTED_FROM_0:
        return Fingerprint((function, *_RANDOM), f"the node declares {name}, as one random node in eight does")
    return Fingerprint((function,), f"the node declares {name}")


def _little_endian(sample: Sample) -> Fingerprint | None:
    swapped = [int.from_bytes(id.seconds.to_bytes(4, "big"), "little") for id in sample.ids]
    sequences = [int.from_bytes(id.sequence.to_bytes(4, "big"), "little") for id in sample.ids]
    # IDs of one second are close to each other in either order of the bytes, but then their numbers are not.
    is_large = max(id.sequence for id in sample.ids) > COUNTED_FROM_0
    is_other = is_large or not _are_close([id.seconds for id in sample.ids])
    if _are_close(swapped) and max(sequences) < COUNTED_FROM_0 and is_other:
        return Fingerprint((OLD_CPP,), "seconds and sequence are little-endian")
    return None


def _whole_thousands(sample: Sample) -> Fingerprint | None:
    seconds = {id.seconds for id in sample.ids}
    is_mixed = any(text != text.upper() for text in sample.texts)
    if all(second % 1000 == 0 for second in seconds) and (len(seconds) > 1 or is_mixed):
        return Fingerprint((RUST,), "the seconds are those of the month times 1,000")
    return None


def _counted_from_0(sample: Sample) -> Fingerprint | None:
    numbers = sorted({id.sequence for id in sample.ids})
    if numbers[0] >= COUNTED_FROM_0:
        return None
    evidence = f"the sequence is counted from 0: {numbers[0]:,} is seen"
    if sample.ids[0].node == 0:
        return Fingerprint((NODE_GRPC,), "the node is zero, as without a network card that is named eth*")
    is_random = sample.ids[0].origin == "random"
    if is_random and numbers[0] == 0:
        return Fingerprint(_RANDOM, f"the node is random, and {evidence}, which speaks against C#")
    if numbers[0] == 1 and numbers[-1] == len(numbers) >= _FEWEST_IN_A_ROW:
        return Fingerprint((CSHARP,), "the sequence is counted from 1, and none is missing")
    if is_random:
        return Fingerprint((*_RANDOM, CSHARP), f"the node is random, and {evidence}; number 0 would speak against C#")
    times = [(id, time) for id, time in zip(sample.ids, sample.times, strict=True) if time is not None]
    clients: tuple[str, ...] = _GRPC
    if times and any(id.seconds > time // 1000 - layout.EPOCH_UNIX for id, time in times):
        return Fingerprint((JAVA_GRPC,), f"seconds are ahead of the message's time, and {evidence}")
    if len(times) >= _FEWEST_TIMES:
        clients = clients[1:]
        whole = all(time % 1000 == 0 for _, time in times)
        clients = (PYTHON_GRPC,) if whole else tuple(one for one in clients if one != PYTHON_GRPC)
        evidence += "; times are whole seconds" if whole else "; times have milliseconds, none is behind its ID"
    return Fingerprint(clients, evidence)


def _random_start(sample: Sample) -> Fingerprint | None:
    numbers = sorted({id.sequence for id in sample.ids})
    if sample.ids[0].origin not in ("mac", "random"):
        return None
    starts = 1 + sum(later - earlier > COUNTED_FROM_0 for earlier, later in itertools.pairwise(numbers))
    if numbers[-1] >= layout.UINT32_SPAN // 2 + COUNTED_FROM_0 or sample.ids[0].seconds >= _YEARS:
        return None
    # A process that starts again has another start. IDs whose numbers are all far apart are not counted at all.
    if 2 * starts > len(numbers) > 1:
        return None
    return Fingerprint((MSGID,), f"the sequence has a random start: {numbers[0]:,} is seen")


def _without_version(sample: Sample) -> Fingerprint | None:
    """Read 16 bytes as the fields after the version byte of version 1."""
    raw = {bytes(id) for id in sample.ids}
    if len(raw) == 1 or any(len(one) != layout.BODY_LENGTH for one in raw):
        return None
    bodies = [MessageId.from_body(one) for one in raw]
    if len({(id.node, id.pid) for id in bodies}) > 1:
        return None
    if max(id.sequence for id in bodies) >= COUNTED_FROM_0 or not _are_close([id.seconds for id in bodies]):
        return None
    return Fingerprint((OLD_PYTHON,), "version 1 without its first byte, 01; the sequence is counted from 0")


def _ambiguous(sample: Sample) -> Fingerprint | None:
    if not all(id.ambiguous for id in sample.ids):
        return None
    return Fingerprint((CPP_REMOTING,), "little-endian fields, or a broker's offset of 2^40 or more that ends in 00")


def _loader(sample: Sample) -> Fingerprint | None:
    ids = sample.ids
    if any(id.elapsed_ms >= 31 * 86_400_000 for id in ids):
        return Fingerprint((UNKNOWN,), "the time is after the end of a month")
    whole = all(id.elapsed_ms % 1000 == 0 for id in ids)
    loader = ids[0].loader_hash
    if loader in _JAVA_LOADERS:
        return Fingerprint((JAVA_REMOTING,), f"the class-loader hash {loader:08X} is that {_JAVA_LOADERS[loader]}")
    if loader == 0:
        evidence = "the class-loader hash is 0, and the times are whole seconds"
        return Fingerprint((GO_REMOTING,), evidence) if whole else None
    if len(set(ids)) > 1 and not whole and loader > INT32_MAX:
        if any(text != text.upper() for text in sample.texts):
            return None
        return Fingerprint((RUST_REMOTING,), f"the hash {loader:08X} has 32 bits; Java's class-loader hashes have 31")
    if len(set(ids)) > 1 and not whole:
        return Fingerprint((JAVA_REMOTING,), "a class-loader hash that the IDs share, and times in milliseconds")
    # Java's hash codes of objects have 31 bits, and its IDs upper-case digits. Most digests have lower-case ones.
    is_java = loader <= INT32_MAX and sample.texts[0] == sample.texts[0].upper() and not ids[0].may_be_uuid
    if is_java and not whole:
        return Fingerprint(
            (JAVA_REMOTING,), "one ID in upper case, with a class-loader hash and a time in milliseconds"
        )
    return None


def _are_close(seconds: Sequence[int]) -> bool:
    """Return whether seconds since 2021 are plausible, and within a month of each other."""
    return max(seconds) < _YEARS and max(seconds) - min(seconds) < 31 * 86_400


_Rules = tuple["Callable[[Sample], Fingerprint | None]", ...]
_OF_V1: Final[_Rules] = (_functions, _little_endian, _whole_thousands, _counted_from_0, _random_start)
_OF_V0: Final[_Rules] = (_without_version, _ambiguous, _loader)
