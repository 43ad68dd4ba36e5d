"""Fingerprints: which client made the IDs of a generator. Pure rules on the IDs' fields and texts.

The rules are what running clients showed, and what the source of others says. A fingerprint tells clients apart; it
does not prove one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout
from msgid._validate import INT32_MAX
from msgid.audit.definitions import COUNTED_FROM_0, is_generator
from msgid.ids.message_id import MessageId
from msgid.ids.v0 import BrokerOffsetId, ClientUniqueId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
MSGID: Final = "msgid"

_GRPC: Final = (JAVA_GRPC, GO_GRPC, PYTHON_GRPC, NODE_GRPC)
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
    found = next((found for rule in rules if (found := rule(sample))), None)
    return found or Fingerprint((UNKNOWN,), _seen(sample))


def _seen(sample: Sample) -> str:
    """Return what the IDs of one generator have, in words."""
    first = sample.ids[0]
    if isinstance(first, MessageId):
        return f"version 1; the lowest sequence number is {min(id.sequence for id in sample.ids):,}"
    elapsed = min(id.elapsed_ms for id in sample.ids)
    return f"version 0; the class-loader hash is {first.loader_hash:08X}, the least time in a month {elapsed:,} ms"


def function_of(ids: Sequence[Any]) -> str | None:
    """Return the function that made IDs of version 1 from an input; None if a generator made them.

    The IDs are of one node and pid, or of several that no generator made.
    """
    first = ids[0]
    name = _FUNCTIONS.get(first.origin)
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
    return Fingerprint((f"{MSGID} {name}",), f"the node declares {name}") if name else None


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
        return Fingerprint((NODE_GRPC,), "the node is zero, as before its look-up has ended")
    if sample.ids[0].origin == "random":
        return Fingerprint((CSHARP,), f"the node is random, and {evidence}")
    if numbers[0] == 1 and numbers[-1] == len(numbers) >= _FEWEST_IN_A_ROW:
        return Fingerprint((CSHARP,), "the sequence is counted from 1, and none is missing")
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
