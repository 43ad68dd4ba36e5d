"""RocketMQ under faults: a producer, two consumers and the broker are killed and paused while messages flow."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from systems.rocketmq_broker import started

import msgid
from msgid.audit import audit_table
from msgid.rocketmq import Record

pytestmark = [pytest.mark.systems, pytest.mark.faults]

ORDERS, CUSTOMERS, FAULTS = 2500, 7, 24
KINDS = ("kill broker", "pause broker", "kill consumer", "pause consumer", "kill producer", "pause producer")
PAUSES = {"broker": (1, 5), "consumer": (13, 16), "producer": (1, 5)}
"""Seconds of a pause. A consumer is away for longer than its messages are invisible, so another gets them."""
DONE_SECONDS = 300


@pytest.fixture
def broker(tmp_path):
    """Return a broker that only this test uses."""
    yield from started(tmp_path / "rocketmq")


def schedule(seed):
    """Yield the seconds before each fault, what it does to whom, the victim's number and the seconds of a pause."""
    chance = random.Random(seed)
    kinds = [*KINDS, *(chance.choice(KINDS) for _ in range(FAULTS - len(KINDS)))]
    chance.shuffle(kinds)
    for kind in kinds:
        what, _, whom = kind.partition(" ")
        seconds = chance.uniform(*PAUSES[whom]) if what == "pause" else 0
        yield chance.uniform(0.5, 5), what, whom, chance.randrange(2), seconds


class Programs:
    """The producer and the consumers: started again whenever they end, or are killed."""

    def __init__(self, broker, folder):
        program = str(Path(__file__).with_name("rocketmq_programs.py"))
        self._environment = {**os.environ, "HOME": str(folder)}
        self._folder = folder
        consumer = ["consume", broker.address, "orders", "outputs", str(folder / "states.db")]
        producer = ["produce", broker.address, "orders", str(folder / "orders.json"), str(folder / "acknowledged")]
        arguments = {("consumer", 0): consumer, ("consumer", 1): consumer, ("producer", 0): producer}
        self._commands = {name: [sys.executable, program, *rest] for name, rest in arguments.items()}
        self._running = {name: self._start(name) for name in self._commands}

    def _start(self, name):
        with (self._folder / f"{name[0]}-{name[1]}.out").open("ab") as output:
            return subprocess.Popen(self._commands[name], stderr=output, stdout=output, env=self._environment)

    def tend(self):
        """Start programs again that have ended, except a producer that has sent everything."""
        for name, process in self._running.items():
            if process.poll() not in {None, 0}:
                self._running[name] = self._start(name)

    def victim(self, whom, number):
        return self._running[whom, number if whom == "consumer" else 0]

    def end(self):
        for process in self._running.values():
            process.kill()
            process.wait()


def strike(broker, programs, what, whom, number, seconds):
    """Let one fault happen, and return once the victim runs again."""
    if whom == "broker" and what == "kill":
        broker.kill()
        broker.start()
    elif whom == "broker":
        broker.pause()
        time.sleep(seconds)
        broker.resume()
    elif what == "kill":
        programs.victim(whom, number).kill()
        programs.victim(whom, number).wait()
    elif programs.victim(whom, number).poll() is None:
        programs.victim(whom, number).send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        programs.victim(whom, number).send_signal(signal.SIGCONT)
    programs.tend()


def report_of(rows):
    """Return the audit of rows as a consumer gets them."""
    names = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "body")
    columns = {name: [row[name] for row in rows] for name in names}
    properties = pa.array([list(row["properties"].items()) for row in rows], pa.map_(pa.string(), pa.string()))
    return audit_table(pa.table({**columns, "properties": properties}))


def checks(report):
    return {finding.check: finding.count for finding in report.findings}


def test_orders_through_faults_have_one_output_each(broker, tmp_path, seed):
    """Nothing that was acknowledged is lost, and no order has two outputs; the audit finds resent messages alone."""
    generator = msgid.Generator()
    orders = [[generator.generate_hex(), f"customer-{n % CUSTOMERS}", f"order {n}"] for n in range(ORDERS)]
    (tmp_path / "orders.json").write_text(json.dumps(orders), encoding="utf-8")
    for topic in ("orders", "outputs"):
        broker.ask("create", topic, type="NORMAL", queues=2)
    programs = Programs(broker, tmp_path)
    try:
        for wait, *fault in schedule(seed):
            time.sleep(wait)
            what, whom, number, seconds = fault
            victim = f"{whom} {number}" if whom == "consumer" else whom
            print(f"  after {wait:.1f} s: {what} {victim}", f"for {seconds:.1f} s" if seconds else "", flush=True)
            strike(broker, programs, *fault)
        end = time.monotonic() + DONE_SECONDS
        outputs = []
        while len({row["msgId"] for row in outputs}) < ORDERS and time.monotonic() < end:
            time.sleep(3)
            programs.tend()
            outputs = broker.rows("pull", "outputs")
    finally:
        programs.end()
    acknowledged = (tmp_path / "acknowledged").read_text(encoding="utf-8").split()
    landed, outputs = broker.rows("pull", "orders"), broker.rows("pull", "outputs")
    print(f"  {len(acknowledged)} acknowledged, {len(landed)} landed, {len(outputs)} outputs", flush=True)
    judge(orders, acknowledged, landed, outputs)


def judge(orders, acknowledged, landed, outputs):
    """Compare what was acknowledged with what landed, and ask the audit."""
    sent = {id: (customer, order) for id, customer, order in orders}
    assert sorted(acknowledged) == sorted(sent)
    assert {Record.of(row).original: row["body"].decode() for row in landed} == {id: sent[id][1] for id in sent}
    resent = {"duplicate_ids": len(landed) - len(sent)} if len(landed) > len(sent) else {}
    assert checks(report_of(landed)) == resent
    bodies = {}
    for row in outputs:
        assert bodies.setdefault(row["msgId"], row["body"]) == row["body"]
    made = [json.loads(body) for body in bodies.values()]
    assert sorted((output["customer"], output["order"]) for output in made) == sorted(sent.values())
    for customer in {customer for customer, _ in sent.values()}:
        numbers = sorted(output["number"] for output in made if output["customer"] == customer)
        assert numbers == list(range(1, len(numbers) + 1)), customer
    again = len(outputs) - len(bodies)
    assert checks(report_of(outputs)) == ({"duplicate_ids": again} if again else {})
    # The judge is not blind: a row that is lost, and a row that is written twice, are found.
    queue = [row for row in landed if row["queueId"] == landed[0]["queueId"]]
    lost = sorted(queue, key=lambda row: row["queueOffset"])[len(queue) // 2]
    assert checks(report_of([row for row in landed if row is not lost]))["missing_offsets"] == 1
    assert checks(report_of([*landed, lost]))["duplicate_messages"] == 1
