"""The clients that made IDs, by their fingerprints; the risk of collisions; the command ``msgid doctor``."""

import itertools
import json
import math
import random
import uuid
from collections import defaultdict
from unittest import mock

import pytest
from helpers import makers
from helpers import vector_files as vectors
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid.audit import _doctor, collision_risk, doctor

RECORDED = vectors.ROCKETMQ["ids"]
GRPC = ("RocketMQ Java gRPC", "RocketMQ Go gRPC", "RocketMQ Python gRPC", "RocketMQ Node.js gRPC")
PARENT = "0156F7E71C361B21BC024CCDBE00000000"
MAC = 0x56F7E71C361B
SECONDS = 185_993_209  # of November 2026


def recorded():
    """Return the rows of each client that ran against a broker."""
    rows = defaultdict(list)
    for row in RECORDED:
        rows[row["client"]].append(row)
    return rows


def named(client):
    """Return the name that `doctor` gives to a recorded client."""
    if "msgid" in client:
        return "msgid"
    language, protocol, *_ = client.split()
    name = {"java": "Java", "go": "Go", "python": "Python", "node": "Node.js"}[language]
    return f"RocketMQ {name} {'gRPC' if protocol == 'grpc' else protocol}"


def counted(numbers, node=MAC, pid=7, second=lambda n: SECONDS + n // 100):
    """Return IDs of version 1 with these sequence numbers."""
    return [msgid.MessageId.from_fields(node=node, pid=pid, seconds=second(n), sequence=n) for n in numbers]


@pytest.mark.parametrize("client", recorded())
def test_recorded_client_is_among_the_named_ones(client):
    """Each client that ran against a broker is named, and with the messages' times no impossible one is."""
    rows = recorded()[client]
    for times in (None, [row["born"] for row in rows]):
        (maker,) = doctor([row["id"] for row in rows], times).makers
        assert named(client) in maker.clients
        assert maker.clients in ((named(client),), GRPC)
        assert maker.ids == len(rows)


@given(st.randoms(use_true_random=False), st.sampled_from(sorted(recorded())), st.integers(2, 4))
def test_client_is_named_from_any_of_its_ids(draw, client, fewest):
    """A part of a client's IDs in any order names the same client, as long as a generator has several in it."""
    rows = [row for row in recorded()[client] if row["pid"] == recorded()[client][0]["pid"]]
    part = draw.sample(rows, draw.randint(fewest, len(rows)))
    (maker,) = doctor(row["id"] for row in part).makers
    assert named(client) in maker.clients


@pytest.mark.parametrize(
    ("ids", "client"),
    [
        ([f"{id}".lower() for id in counted(range(10, 50), second=lambda n: 1_895_000_000)], "RocketMQ Rust"),
        (counted([start + n for start in (1 << 30, 77_000_000, 2_000_000_000) for n in range(16)]), "msgid"),
        (msgid.Generator(node="random").generate_batch(50), "msgid"),
        ([msgid.derive_id(id, "x") for id in counted(range(50))], "msgid derive_id"),
        ([msgid.position_id("log", n, 1_700_000_000) for n in range(50)], "msgid position_id"),
        (counted([1_073_754_321]), "msgid"),  # no other client starts its sequence at a random number
        ([msgid.ClientUniqueId("10.0.0.1", 1, 0x18B4AAC2, 5_000, 0).hex.lower()], "RocketMQ Java remoting"),
    ],
)  # fmt: skip
def test_client_is_told_by_its_fingerprint(ids, client):
    """The traces that each client leaves name it, also those that the samples below lack."""
    (maker,) = doctor(ids).makers
    assert (maker.clients, maker.ids) == ((client,), len(ids))


REAL = {
    "v0_uniq_ipv4_java": ("RocketMQ Java remoting",),
    "v0_uniq_ipv4_java_pid0": ("RocketMQ Java remoting",),
    "v0_uniq_ipv6_java": ("RocketMQ Java remoting",),
    "v0_uniq_ipv6_java_pid0": ("RocketMQ Java remoting",),
    "v0_uniq_ipv4_aliyun_api_doc": ("RocketMQ Java remoting",),
    "v0_uniq_ipv4_go": ("RocketMQ Go remoting",),
    "v0_uniq_ipv4_elixir": ("RocketMQ Go remoting",),  # the client for Elixir does as Go's
    "v0_uniq_ipv4_cpp_LE_1.2.x": ("RocketMQ C++ remoting 1.2",),
    "v0_offset_ipv4": ("RocketMQ broker",),
    "v0_offset_ipv6": ("RocketMQ broker",),
    "v0_bornhost_offset_ipv4_newlife": ("RocketMQ broker",),  # made by a client, in the broker's form
    "v1": GRPC,
    "v1_aliyun_api_doc": GRPC,
}
"""The clients of each kind of the real IDs, as the kind or the source of the row says."""


@pytest.mark.parametrize("row", vectors._rows("real_ids.tsv"), ids=lambda row: row["id"])
def test_one_real_id_names_its_client(row):
    """One ID of a form that a client makes names the client: each of the 107 real ones."""
    (maker,) = doctor([row["id"]]).makers
    assert maker.clients == REAL[row["kind"]]


def test_the_born_time_of_one_real_id_names_java():
    """`MessageViewImpl` is Java's, whose seconds are ahead of the message's time."""
    assert doctor(["01EA2C235B8585B70D08C1575B00000015"], [1_756_347_739_198]).makers[0].clients == GRPC
    ahead = counted([21])
    assert doctor(ahead, [(SECONDS + 1_609_459_200) * 1000 - 1]).makers[0].clients == ("RocketMQ Java gRPC",)


@pytest.mark.parametrize(
    ("id", "evidence"),
    [
        (counted([4_000_000_000])[0], "version 1; the lowest sequence number is 4,000,000,000"),
        (msgid.ClientUniqueId("10.0.0.1", 1, 0x80000000, 1_001, 0),
         "version 0; the class-loader hash is 80000000, the least time in a month 1,001 ms"),
        (msgid.ClientUniqueId("10.0.0.1", 1, 5, 31 * 86_400_000, 0), "the time is after the end of a month"),
        ("0a000001000100000005000003e90000",
         "version 0; the class-loader hash is 00000005, the least time in a month 1,001 ms"),
        (uuid.UUID("74b158ca-ddb3-498f-90a9-1eec1c6197ae").hex.upper(),
         "version 0; the class-loader hash is 498F90A9, the least time in a month 518,790,241 ms"),
    ],
)  # fmt: skip
def test_evidence_of_an_unknown_client_is_what_was_seen(id, evidence):
    """The text says what the IDs have; it does not claim that nobody makes such IDs."""
    (maker,) = doctor([id]).makers
    assert (maker.clients, maker.evidence) == (("unknown",), evidence)


@pytest.mark.parametrize("first", [0x07, 0x0B, 0x0F, 0xFF])
def test_random_node_of_another_program_is_not_a_function_of_msgid(first):
    """`uuid.getnode` may declare any origin: numbers that are counted at one node and pid are a generator's."""
    ids = counted(range(60), node=first << 40 | 0x42_AC_11_00_02, second=lambda n: SECONDS + n // 20)
    assert doctor(ids).makers[0].clients == GRPC
    later = counted(range(1 << 30, (1 << 30) + 60), node=first << 40, second=lambda n: SECONDS + n // 20)
    assert doctor(later).makers[0].clients[0] != "msgid"


def test_functions_of_msgid_are_named_beside_a_foreign_generator():
    """IDs of one origin may be of both."""
    derived = [msgid.derive_id(PARENT, name) for name in range(20)]
    assigned = [
        msgid.MessageId.from_fields(node=0x07_00_00_00_00_01, pid=part, seconds=9, sequence=n)
        for part in range(3)
        for n in range(5)
    ]
    foreign = counted(range(60), node=0x0F_42_AC_11_00_02)
    found = {one.clients[0]: (one.ids, one.generators) for one in doctor([*derived, *foreign, *assigned]).makers}
    assert found == {GRPC[0]: (60, 1), "msgid derive_id": (20, 1), "msgid assign_id": (15, 1)}


@pytest.mark.parametrize("client", makers.CLIENTS)
def test_client_is_named_in_samples_of_50_ids(client):
    """At least 19 of 20 samples name the client, from the start of a process and from later."""
    named = [doctor(ids).makers[0] for ids, _ in (makers.sample(client, seed) for seed in range(20))]
    expected = makers.CLIENTS[client][1]
    assert sum(maker.clients == expected and maker.ids >= 48 for maker in named) >= 19


@pytest.mark.parametrize("kind", makers.FOREIGN)
def test_foreign_ids_are_unknown(kind):
    """Of each of 20 samples of 50 IDs of another kind, nearly all are unknown; one in thousands may look like an ID."""
    for seed in range(20):
        found = doctor(makers.foreign(kind, seed)).makers
        assert found[0].clients == ("unknown",)
        assert found[0].ids >= 48


@pytest.mark.parametrize(
    "ids",
    [counted(range(0, 100, 2)), counted(range(1, 100, 2)), counted([*range(50), *range(50)]), counted([1, 2, 3])],
)
def test_rows_of_one_queue_and_redelivered_ones_do_not_name_a_language(ids):
    """Every second number, as one of two queues gets them, and repeated IDs say nothing of the client."""
    assert doctor(ids).makers[0].clients == GRPC


def test_times_tell_clients_apart():
    """Java's seconds are ahead of the clock; Python's times are whole seconds; others have milliseconds."""
    ids = counted(range(100))
    at = [(id.seconds + 1_609_459_200) * 1000 for id in ids]
    assert doctor(ids, [time - 300 for time in at]).makers[0].clients == ("RocketMQ Java gRPC",)
    assert doctor(ids, at).makers[0].clients == ("RocketMQ Python gRPC",)
    assert doctor(ids, [time + 300 for time in at]).makers[0].clients == ("RocketMQ Go gRPC", "RocketMQ Node.js gRPC")
    assert doctor(ids[:19], [time + 300 for time in at[:19]]).makers[0].clients == GRPC


def test_table_of_several_clients_names_each_with_its_rows():
    """A table of mixed IDs has one row for each client; rows without an ID are not counted."""
    mixed = [*counted(range(30)), *counted(range(1 << 30, (1 << 30) + 20), pid=8), None, "oops"]
    found = doctor(mixed)
    assert [(maker.clients, maker.ids) for maker in found.makers] == [(GRPC, 30), (("msgid",), 20), (("unknown",), 1)]
    assert found.rows == 51


def test_shared_nodes_and_the_busiest_second_are_named():
    """A repeated ID counts once in its second."""
    first = counted(range(100, 200), node=0xACDE48001122, second=lambda n: SECONDS)
    again = counted(range(50), node=0xACDE48001122, second=lambda n: SECONDS + 60)
    found = doctor([*first, *again, *first[:3]])
    assert (found.rows, found.ids_per_second) == (153, 100)
    assert list(found.shared_nodes) == ["ac:de:48:00:11:22"]
    assert json.loads(found.to_json())["ids_per_second"] == 100


def repeats(rates, seconds, starts):
    """Return whether two processes make an equal number in one second: the seconds are looked at one by one."""
    for second in range(seconds):
        numbers = [(start + rate * second) % 2**32 for start, rate in zip(starts, rates, strict=True)]
        for one, other in itertools.combinations(range(len(rates)), 2):
            behind = (numbers[one] - numbers[other]) % 2**32
            if behind < rates[other] or 2**32 - behind < rates[one]:
                return True
    return False


@pytest.mark.parametrize("processes", [2, 3, 8])
def test_collision_risk_agrees_with_a_simulation(processes):
    """Over random rates and durations, as many simulations repeat an ID as the formula says: within five deviations."""
    draw, expected, variance, hits = random.Random(processes), 0.0, 0.0, 0
    for _ in range(1_000):
        seconds = draw.choice([1, 2, 5, 20])
        rates = [int(10 ** draw.uniform(0, 8)) for _ in range(processes)]
        risk = collision_risk(rates, seconds)
        hits += repeats(rates, seconds, [draw.randrange(2**31) for _ in rates])
        expected, variance = expected + risk, variance + risk * (1 - risk)
    assert abs(hits - expected) < 5 * variance**0.5 + (0 if processes == 2 else 0.03 * expected)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 6), st.integers(1, 12))
def test_collision_risk_of_two_processes_is_exact(one, other, seconds, starts):
    """For few starts, the formula gives the share of all of them, up to the rounding of one distance."""
    every = list(itertools.product(range(starts), repeat=2))
    hits = sum(repeats((one, other), seconds, pair) for pair in every)
    with mock.patch.object(_doctor, "_RANDOM_STARTS", starts):
        assert collision_risk([one, other], seconds) == pytest.approx(hits / len(every), abs=starts**-2)


def test_collision_risk_of_a_diagnosis_is_that_of_a_copy():
    """Clients that count from 0 repeat IDs for certain; those of `msgid` rarely in a day; random nodes not at all."""
    assert doctor(counted(range(50))).collision_risk == 1.0
    started = range(1 << 30, (1 << 30) + 50)
    assert doctor(counted(started)).collision_risk == collision_risk([50, 25], 86_400)
    assert doctor(msgid.Generator(node="random").generate_batch(50)).collision_risk == 0.0
    assert doctor([str(uuid.uuid4())] * 2).collision_risk == 0.0
    assert str(doctor(["order-1"])) == "1 ID\nunknown: 1 ID of 0 generators (not an ID)"
    assert str(collision_risk([5], 1)) == "0.0"  # not -0.0
    assert collision_risk([], 1) == collision_risk([0, 7], 1e9) == 0.0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([3, -1], 60), "rates must be finite, and 0 or more, got -1"),
        (([3, math.nan], 60), "rates must be finite, and 0 or more, got nan"),
        ((["3"], 60), "rates must be a number, got '3'"),
        (([True, 1], 60), "rates must be a number, got True"),
        (([3, 4], 0), "seconds must be finite, and 1 or more, got 0"),
        (([3, 4], math.inf), "seconds must be finite, and 1 or more, got inf"),
        (([3, 4], None), "seconds must be a number, got None"),
        ((3, 60), "rates must be an iterable of numbers, got 3"),
    ],
)
def test_collision_risk_of_a_wrong_argument_raises(arguments, error):
    with pytest.raises((TypeError, ValueError)) as raised:
        collision_risk(*arguments)
    assert str(raised.value) == error


def test_doctor_of_one_text_or_too_few_times_raises():
    """A single text is not a table, and each ID needs its time."""
    with pytest.raises(TypeError, match="an iterable of texts"):
        doctor("0156F7E71C361B21BC024CCDBE00000000")
    with pytest.raises(ValueError, match=r"argument 2 is shorter"):
        doctor(counted(range(2)), [1])
    assert doctor([]).makers == []


def test_table_in_place_of_ids_is_refused_and_missing_values_are_no_ids():
    """The names and the columns of a frame are not IDs; NaN, NULL of Arrow and NaT stand for no ID."""
    pa = pytest.importorskip("pyarrow")
    id = "0156F7E71C361B21BC024CCDBE00000007"
    for table in (pa.table({"id": [id]}), {"id": [id]}):
        with pytest.raises(TypeError, match=r"got a table of type \w+: pass its column of IDs"):
            doctor(table)
    for ids in (pa.array([id, None]), [id, float("nan"), None]):
        assert doctor(ids).rows == 1


SENT = uuid.UUID("0198f0c0-a0b1-7c00-8000-00000000000a")


@pytest.mark.parametrize(
    ("shown", "client"),
    [
        (str(SENT), "unknown"),
        (str(uuid.UUID(bytes=SENT.bytes[::-1])), "Iggy Java, Node.js or HTTP"),
        (uuid.UUID(bytes=SENT.bytes[::-1]), "Iggy Java, Node.js or HTTP"),
        (str(uuid.UUID(bytes=SENT.bytes[8:] + SENT.bytes[:8])), "Iggy C#"),
        (str(uuid.UUID(int=0)), "unknown"),
    ],
)
def test_order_of_the_bytes_of_a_uuid_is_evidence_of_its_producer(shown, client):
    """A UUID of a version that is valid only in another order was written in that order."""
    (maker,) = doctor([shown, None]).makers
    assert (maker.clients, maker.ids, maker.generators) == ((client,), 1, 0)


def test_process_with_a_node_that_looks_assigned_is_named_beside_the_function():
    """One second of a client without a network card is not told from a partition of `assign_id`."""
    ids = counted(range(50), node=0x07_42_AC_11_00_02, second=lambda n: SECONDS)
    assert doctor(ids).makers[0].clients == ("msgid assign_id", "RocketMQ Java gRPC", "RocketMQ Python gRPC")
    assert "RocketMQ Java gRPC, RocketMQ Python gRPC" not in str(doctor(counted(range(50), pid=0, node=0x07 << 40)))
    run = counted(range(50), node=0x07 << 40, pid=0, second=lambda n: SECONDS)
    assert doctor(run).makers[0].clients == ("msgid assign_id",)
    assert "msgid assign_id, RocketMQ Java gRPC or RocketMQ Python gRPC: 50 IDs" in str(doctor(ids))


def test_zero_node_says_why():
    """Node.js takes the address of a card that is named eth* alone."""
    (maker,) = doctor(counted(range(5), node=0)).makers
    assert maker.evidence == "the node is zero, as without a network card that is named eth*"
