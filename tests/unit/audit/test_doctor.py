"""The clients that made IDs, by their fingerprints; the risk of collisions; the command ``msgid doctor``."""

import itertools
import json
import random
import uuid
from collections import defaultdict

import pytest
from helpers import makers
from helpers import vector_files as vectors
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid.audit import collision_risk, doctor
from msgid.audit._doctor import _overlap

RECORDED = vectors.ROCKETMQ["ids"]
GRPC = ("RocketMQ Java gRPC", "RocketMQ Go gRPC", "RocketMQ Python gRPC", "RocketMQ Node.js gRPC")
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
        (counted(range(1, 51)), "RocketMQ C#"),
        (counted(range(1, 51), node=0x03_00_00_00_00_05), "RocketMQ C#"),
        (counted(range(50), node=0), "RocketMQ Node.js gRPC"),
        ([str(id)[2:] for id in counted(range(50))], "RocketMQ Python gRPC before 5.0.2"),
        (counted(range(50), second=lambda n: 1_895_000_000 + n // 10 * 1000), "RocketMQ Rust"),
        ([f"{id}".lower() for id in counted(range(10, 50), second=lambda n: 1_895_000_000)], "RocketMQ Rust"),
        (counted((n << 24 for n in range(50)), second=lambda n: int.from_bytes(SECONDS.to_bytes(4, "little"), "big")),
         "RocketMQ C++ before 2026"),
        (counted(range(1 << 30, (1 << 30) + 50)), "msgid"),
        (counted([start + n for start in (1 << 30, 77_000_000, 2_000_000_000) for n in range(16)]), "msgid"),
        (msgid.Generator(node="random").generate_batch(50), "msgid"),
        ([msgid.derive_id(id, "x") for id in counted(range(50))], "msgid derive_id"),
        ([msgid.position_id("log", n, 1_700_000_000) for n in range(50)], "msgid position_id"),
        ([msgid.BrokerOffsetId("10.0.0.1", 10911, n * 300) for n in range(50)], "RocketMQ broker"),
    ],
)  # fmt: skip
def test_client_is_told_by_its_fingerprint(ids, client):
    """The traces that each client leaves name it: of running clients, and of the source of others."""
    (maker,) = doctor(ids).makers
    assert (maker.clients, maker.ids) == ((client,), len(ids))


@pytest.mark.parametrize("client", makers.CLIENTS)
def test_client_is_named_in_samples_of_50_ids(client):
    """At least 19 of 20 samples name the client, from the start of a process and from later."""
    named = [doctor(ids).makers[0] for ids, _ in (makers.sample(client, seed) for seed in range(20))]
    expected = makers.CLIENTS[client][1]
    assert sum(maker.clients == expected and maker.ids >= 48 for maker in named) >= 19


def test_clients_are_named_in_at_least_95_of_100_mixed_samples():
    """Samples of all clients, each from another process."""
    names = list(makers.CLIENTS)
    samples = [makers.sample(names[seed % len(names)], seed) for seed in range(1_000, 1_200)]
    right = sum(doctor(ids).makers[0].clients == expected for ids, expected in samples)
    assert right >= 190


@pytest.mark.parametrize("kind", makers.FOREIGN)
def test_foreign_ids_are_unknown(kind):
    """Of each of 20 samples of 50 IDs of another kind, nearly all are unknown; one in thousands may look like an ID."""
    for seed in range(20):
        found = doctor(makers.foreign(kind, seed)).makers
        assert found[0].clients == ("unknown",)
        assert found[0].ids >= 48


@pytest.mark.parametrize("start", ["random", "zero"])
@pytest.mark.parametrize("ids", [2, 50, 1_000])
def test_collision_risk_of_a_diagnosis_agrees_with_simulated_processes(start, ids):
    """Two processes with one node and pid make IDs in one second: the share of pairs that make an equal one."""
    first = (1 << 30, (1 << 30) + ids) if start == "random" else (0, ids)
    found = doctor(counted(range(*first), second=lambda n: SECONDS))
    draw, rounds, hits = random.Random(ids), 200_000, 0
    for _ in range(rounds):
        one, other = (draw.randrange(1 << 31) if start == "random" else 0 for _ in range(2))
        hits += abs(one - other) < ids
    assert found.collision_risk == pytest.approx(hits / rounds, abs=1e-4)


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


def test_restarts_repetitions_and_shared_nodes_are_counted():
    """A sequence that goes back while the time goes on is a restart; an ID that is there twice is repeated."""
    first = counted(range(100, 200), node=0xACDE48001122, second=lambda n: SECONDS)
    again = counted(range(50), node=0xACDE48001122, second=lambda n: SECONDS + 60)
    found = doctor([*first, *again, *first[:3]])
    assert (found.restarts, found.repeated, found.ids_per_second) == (1, 3, 100)
    assert list(found.shared_nodes) == ["ac:de:48:00:11:22"]
    assert json.loads(found.to_json())["repeated"] == 3


@pytest.mark.parametrize(("processes", "ids", "starts"), [(2, 1, 50), (2, 10, 200), (5, 3, 300), (23, 1, 365)])
def test_collision_risk_agrees_with_a_simulation(processes, ids, starts):
    """The formula gives the share of draws in which two random starts are less than ``ids`` apart."""
    draw = random.Random(processes * 1000 + starts)
    rounds, hits = 20_000, 0
    for _ in range(rounds):
        numbers = sorted(draw.randrange(starts) for _ in range(processes))
        hits += any(later - earlier < ids for earlier, later in itertools.pairwise(numbers))
    assert _overlap(processes, ids, starts) == pytest.approx(hits / rounds, abs=0.015)


@given(st.integers(2, 4), st.integers(1, 4), st.integers(1, 9))
def test_collision_risk_is_exact(processes, ids, starts):
    """For few starts, the formula gives the share of all of them."""
    every = list(itertools.product(range(starts), repeat=processes))
    hits = sum(any(abs(one - other) < ids for one, other in itertools.combinations(numbers, 2)) for numbers in every)
    assert _overlap(processes, ids, starts) == pytest.approx(hits / len(every))


def test_collision_risk_is_that_of_the_client():
    """Clients that count from 0 repeat IDs for certain; those of `msgid` hardly ever; no other risk is guessed."""
    assert doctor(counted(range(50))).collision_risk == 1.0
    assert 0 < doctor(counted(range(1 << 30, (1 << 30) + 50))).collision_risk < 1e-6
    assert doctor(counted(range(1 << 30, (1 << 30) + 50))).collision_risk == collision_risk(2, 50)
    assert doctor([str(uuid.uuid4())] * 2).collision_risk == 0.0
    assert str(collision_risk(1, 5)) == "0.0"  # not -0.0
    assert collision_risk(1_000_000_000, 1) == 1.0


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [((0, 1), "0"), ((2, 0), "0"), ((2.5, 1), "2.5"), ((2, 2**31 + 1), "2147483649"), ((2, 1, "no"), "'no'")],
)
def test_collision_risk_of_a_wrong_argument_raises(arguments, quoted):
    """A wrong argument is an error that quotes it."""
    with pytest.raises((TypeError, ValueError), match=f"got {quoted}"):
        collision_risk(*arguments)


def test_doctor_of_one_text_or_too_few_times_raises():
    """A single text is not a table, and each ID needs its time."""
    with pytest.raises(TypeError, match="an iterable of texts"):
        doctor("0156F7E71C361B21BC024CCDBE00000000")
    with pytest.raises(ValueError, match=r"argument 2 is shorter"):
        doctor(counted(range(2)), [1])
    assert doctor([]).makers == []
