"""Samples of the IDs of the clients without recordings, as their source makes them."""

import random
from datetime import datetime, timedelta, timezone

import msgid
from msgid import layout

GRPC = ("RocketMQ Java gRPC", "RocketMQ Go gRPC", "RocketMQ Python gRPC", "RocketMQ Node.js gRPC")


def _month(chance):
    """The milliseconds since the month began, some time in it."""
    return chance.randrange(27 * 86_400_000)


def _mac(chance):
    return chance.choice((0x00163E000000, 0x0242AC110000, 0x56F7E71C0000, 0xF8FFC2000000)) + chance.randrange(1 << 16)


def _moments(chance, count, second):
    """Seconds of IDs that a process makes at a rate of its own."""
    rate = chance.choice((0.2, 1, 5, 40, 1000))
    return [second + int(place / rate) for place in range(count)]


def _v1(chance, count, numbers, node=None, second=None):
    node = _mac(chance) if node is None else node
    pid = chance.choice((1, 7, chance.randrange(1 << 15)))
    seconds = _moments(chance, count, chance.randrange(150_000_000, 190_000_000)) if second is None else second
    pairs = zip(seconds, numbers, strict=True)
    return [layout.pack(node, pid, at, number).hex().upper() for at, number in pairs]


def _from(chance, count, first, step=1):
    """Numbers of a process that counts from a number, some at its start and some later."""
    begin = chance.choice((0, 0, chance.randrange(100), chance.randrange(500_000)))
    return range(first + begin * step, first + (begin + count) * step, step)


def java_transactions(chance, count):
    return _v1(chance, count, _from(chance, count, 0, 2))


def forked_python(chance, count):
    """A child repeats the numbers of its parent, with the parent's pid."""
    numbers = [*_from(chance, count // 2, 0)] * 2
    return _v1(chance, len(numbers), numbers)


def node_at_once(chance, count):
    return _v1(chance, count, range(count), node=0)


def old_python(chance, count):
    return [id[2:] for id in _v1(chance, count, _from(chance, count, 0))]


def csharp(chance, count):
    """Its node is random at times, and its numbers begin at 1."""
    node = chance.choice((None, 0x03_00_00_00_00_00 | chance.getrandbits(40)))
    return _v1(chance, count, range(1, count + 1), node=node)


def random_node(chance, count):
    """Java and Python without a network card, from the start of a process."""
    node = chance.choice((0x03_00_00_00_00_00, 0x01_00_00_00_00_00)) | chance.getrandbits(40)
    return _v1(chance, count, range(count), node=node)


def random_node_later(chance, count):
    """The same clients, or C#, from later: no number speaks against one of them."""
    return _v1(chance, count, range(90, 90 + count), node=0x03_00_00_00_00_00 | chance.getrandbits(40))


def rocketmq_rust(chance, count):
    """The hash of another project in Rust has its top bit set."""
    at, hash = _month(chance), 1 << 31 | chance.getrandbits(31)
    times = [at + place * chance.choice((1, 7)) + 1 for place in range(count)]
    return [msgid.ClientUniqueId("10.0.0.7", 7, hash, time, place).hex for place, time in enumerate(times)]


def rust(chance, count):
    """Seconds of the month times 1,000, in 32 bits; digits in upper and lower case."""
    seconds = [at * 1_000 % (1 << 32) for at in _moments(chance, count, _month(chance) // 1_000)]
    made = _v1(chance, count, _from(chance, count, 0), second=seconds)
    return [id[:20] + id[20:].lower() for id in made]


def old_cpp(chance, count):
    swapped = [int.from_bytes(number.to_bytes(4, "little"), "big") for number in _from(chance, count, 0)]
    seconds = _moments(chance, count, chance.randrange(150_000_000, 190_000_000))
    return _v1(chance, count, swapped, second=[int.from_bytes(at.to_bytes(4, "little"), "big") for at in seconds])


def made_by_msgid(chance, count):
    node = chance.choice((None, 0x03_00_00_00_00_00 | chance.getrandbits(40)))
    first = chance.randrange(1 << 22, 1 << 31)
    return _v1(chance, count, range(first, first + count), node=node)


def broker(chance, count):
    at = chance.randrange(1 << 34)
    return [msgid.BrokerOffsetId("10.0.0.7", 10911, at + 317 * place).hex for place in range(count)]


CLIENTS = {
    "Java gRPC, transactions": (java_transactions, GRPC),
    "Python gRPC, forked": (forked_python, GRPC),
    "Node.js gRPC, at its start": (node_at_once, ("RocketMQ Node.js gRPC",)),
    "Python gRPC before 5.0.2": (old_python, ("RocketMQ Python gRPC before 5.0.2",)),
    "C#": (csharp, ("RocketMQ C#",)),
    "random node": (random_node, ("RocketMQ Java gRPC", "RocketMQ Python gRPC")),
    "random node, later": (random_node_later, ("RocketMQ Java gRPC", "RocketMQ Python gRPC", "RocketMQ C#")),
    "rocketmq-rust": (rocketmq_rust, ("rocketmq-rust",)),
    "Rust": (rust, ("RocketMQ Rust",)),
    "C++": (old_cpp, ("RocketMQ C++ before 2026",)),
    "msgid": (made_by_msgid, ("msgid",)),
    "broker": (broker, ("RocketMQ broker",)),
}
"""For each client a function that makes a sample, and the clients that `doctor` must name."""


def sample(client, seed, count=50):
    """IDs of a client, and the names that `doctor` must give: in the order of a table or in another."""
    chance = random.Random(f"{client} {seed}")
    make, names = CLIENTS[client]
    ids = make(chance, count)
    if chance.random() < 0.3:
        chance.shuffle(ids)
    return ids, names


def _crockford(number, digits):
    return "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> 5 * place & 31] for place in reversed(range(digits)))


def _foreign(chance, kind):
    at = datetime(2026, 11, 24, tzinfo=timezone.utc) + timedelta(milliseconds=chance.randrange(10**8))
    millis = int(at.timestamp() * 1000)
    bits = chance.getrandbits
    v4 = f"{bits(48):012x}4{bits(12):03x}{8 + bits(2):x}{bits(60):015x}"
    v7 = f"{millis:012x}7{bits(12):03x}{8 + bits(2):x}{bits(60):015x}"
    dashed = f"{v4[:8]}-{v4[8:12]}-{v4[12:16]}-{v4[16:20]}-{v4[20:]}"
    return {
        "UUIDv4": dashed, "UUIDv4, hex": v4, "UUIDv4, HEX": v4.upper(), "UUIDv7, hex": v7,
        "ULID": _crockford(millis << 80 | bits(80), 26), "MD5": f"{bits(128):032x}", "SHA-1": f"{bits(160):040x}",
        "SHA-256": f"{bits(256):064x}", "ObjectId": f"{millis // 1000:08x}{bits(64):016x}",
        "Snowflake": str((millis - 1_288_834_974_657) << 22 | bits(22)), "XXH3": f"{bits(64):016X}",
        "SHA-1, 17 bytes": f"{bits(136):034x}", "natural key": f"order-{bits(20)}", "KSUID": _crockford(bits(135), 27),
        "trace": f"{bits(128):032x}", "empty": "",
    }  # fmt: skip


FOREIGN = tuple(_foreign(random.Random(0), ""))
"""The kinds of foreign IDs."""


def foreign(kind, seed, count=50):
    """IDs of another kind."""
    chance = random.Random(f"{kind} {seed}")
    return [_foreign(chance, kind)[kind] for _ in range(count)]
