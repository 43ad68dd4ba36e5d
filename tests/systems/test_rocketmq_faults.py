"""RocketMQ under faults: a producer, two consumers and the broker are killed, paused and restarted as messages flow."""

import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from systems.faults import Program, inflict, schedule
from systems.test_rocketmq import audited, checks

import msgid
from msgid.audit import compare
from msgid.rocketmq import Record

pytestmark = [pytest.mark.systems, pytest.mark.faults]

ORDERS, CUSTOMERS, FAULTS = 2500, 7, 24
LONGEST_SECONDS = 14  # a consumer is away for longer than its messages are invisible, so another gets them
DONE_SECONDS = 300
PROGRAM = str(Path(__file__).with_name("rocketmq_programs.py"))


def programs_of(broker, folder):
    """Return a producer and two consumers."""
    consume = [sys.executable, PROGRAM, "consume", broker.address, "orders", "outputs", str(folder / "states.db")]
    files = [str(folder / "orders.json"), str(folder / "acknowledged")]
    commands = {"producer": [sys.executable, PROGRAM, "produce", broker.address, "orders", *files]}
    commands |= {"consumer 1": consume, "consumer 2": consume}
    return {name: Program(command, folder / f"{name}.out", HOME=str(folder)) for name, command in commands.items()}


def test_orders_through_faults_have_one_output_each(rocketmq_of_its_own, tmp_path, seed):
    """Nothing that was acknowledged is lost, and no order has two outputs; the audit finds resent messages alone."""
    generator = msgid.Generator()
    orders = [[generator.generate_hex(), f"customer-{n % CUSTOMERS}", f"order {n}"] for n in range(ORDERS)]
    (tmp_path / "orders.json").write_text(json.dumps(orders), encoding="utf-8")
    for topic in ("orders", "outputs"):
        rocketmq_of_its_own.ask("create", topic, type="NORMAL", queues=2)
    programs = programs_of(rocketmq_of_its_own, tmp_path)

    def tend():
        for program in programs.values():
            if program.wait(0) == 1:  # it did not reach the broker for a long time
                program.start()

    try:
        for program in programs.values():
            program.start()
        inflict(
            schedule(seed, FAULTS, ["broker", *programs], longest=LONGEST_SECONDS),
            {"broker": rocketmq_of_its_own, **programs},
            tend,
        )
        end = time.monotonic() + DONE_SECONDS
        outputs = []
        while len({row["msgId"] for row in outputs}) < ORDERS and time.monotonic() < end:
            time.sleep(3)
            tend()
            outputs = rocketmq_of_its_own.rows("pull", "outputs")
    finally:
        for program in programs.values():
            program.kill()
    acknowledged = (tmp_path / "acknowledged").read_text(encoding="utf-8").split()
    landed, outputs = rocketmq_of_its_own.rows("pull", "orders"), rocketmq_of_its_own.rows("pull", "outputs")
    print(f"  {len(acknowledged)} acknowledged, {len(landed)} landed, {len(outputs)} outputs", flush=True)
    judge(orders, acknowledged, landed, outputs)


def lost_of(acknowledged, landed):
    """Return the IDs that were acknowledged and did not land, as the audit names them."""
    compared = compare(acknowledged, [Record.of(row).message_id() for row in landed])
    return [one.id for one in compared.differences if one.fault == "lost"]


def judge(orders, acknowledged, landed, outputs):
    """Compare the acknowledged orders with the rows that landed, and ask the audit."""
    sent = {id: (customer, order) for id, customer, order in orders}
    assert sorted(acknowledged) == sorted(sent)
    assert {Record.of(row).original: row["body"].decode() for row in landed} == {id: sent[id][1] for id in sent}
    assert lost_of(acknowledged, landed) == []
    resent = {"duplicate_ids": len(landed) - len(sent)} if len(landed) > len(sent) else {}
    assert checks(audited(landed)) == resent
    bodies = {}
    for row in outputs:
        assert bodies.setdefault(row["msgId"], row["body"]) == row["body"]
    made = [json.loads(body) for body in bodies.values()]
    assert sorted((output["customer"], output["order"]) for output in made) == sorted(sent.values())
    for customer in {customer for customer, _ in sent.values()}:
        numbers = sorted(output["number"] for output in made if output["customer"] == customer)
        assert numbers == list(range(1, len(numbers) + 1)), customer
    again = len(outputs) - len(bodies)
    assert checks(audited(outputs)) == ({"duplicate_ids": again} if again else {})
    # The judge is not blind: a row that is lost, and a row that is written twice, are found.
    times = Counter(row["msgId"] for row in landed)
    queue = [row for row in landed if row["queueId"] == 0 and times[row["msgId"]] == 1]
    lost = sorted(queue, key=lambda row: row["queueOffset"])[len(queue) // 2]
    others = [row for row in landed if row is not lost]
    assert checks(audited(others))["missing_offsets"] == 1
    assert lost_of(acknowledged, others) == [lost["msgId"]]
    assert checks(audited([*landed, lost]))["duplicate_messages"] == 1
