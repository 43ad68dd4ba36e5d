"""A soak of two brokers: a RocketMQ consumer and a Kafka share group, while consumers and brokers are killed in turn.

``--minutes 120`` sets its length; a short run has one kill per minute. Handlers fail at random, and programs redrive
the dead letters.
"""

import json
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from systems.faults import Fault, Program, inflict
from systems.soak_programs import DEAD, GROUP, LOCK_SECONDS, ORDERS, OUTPUTS
from systems.test_kafka_faults import rows_of
from systems.test_rocketmq import audited, checks

import msgid
import spark_ext
from msgid.audit import compare
from msgid.processing import Processor, SqliteStore

pytestmark = [pytest.mark.systems, pytest.mark.faults]

RATE, CUSTOMERS, BAD_IN = 10, 50, 100
"""Orders per second and broker; customers; one order in so many is bad until it is redriven."""
FAULTS, APART_SECONDS = 30, 60
"""The most kills of a run, and the least time from one to the next."""
DONE_SECONDS = 1800
HERE = Path(__file__).parent


def kills(seed, seconds):
    """Return kills of consumers and brokers in turn, at times that the seed decides within a duration."""
    chance = random.Random(seed)
    targets = ["kafka consumer", "rocketmq consumer", "kafka broker", "rocketmq broker"]
    count = min(FAULTS, int(seconds / APART_SECONDS))
    away = [round(chance.uniform(0, 8), 1) for _ in range(count)]
    apart = max(0.0, seconds - sum(away)) / (count + 1)
    return [
        Fault(round(apart * chance.uniform(0.7, 1.1), 1), "kill", targets[n % len(targets)], away[n])
        for n in range(count)
    ]


def prepare(kafka, rocketmq):
    """Create the topics and groups of both brokers."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.address})
    dead = NewTopic(DEAD, 1, config={"errors.deadletterqueue.group.enable": "true"})
    for done in admin.create_topics([NewTopic(ORDERS, 2), NewTopic(OUTPUTS, 2), dead]).values():
        done.result(60)
    settings = {
        "share.auto.offset.reset": "earliest",
        "share.isolation.level": "read_committed",
        "share.record.lock.duration.ms": str(LOCK_SECONDS * 1000),
        "errors.deadletterqueue.topic.name": DEAD,
    }
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    group = ConfigResource(ConfigResource.Type.GROUP, GROUP, incremental_configs=entries)
    for done in admin.incremental_alter_configs([group]).values():
        done.result(60)
    for topic in (ORDERS, OUTPUTS):
        rocketmq.ask("create", topic, type="NORMAL", queues=2)
    rocketmq.ask("create", f"%DLQ%{GROUP}", type="NORMAL", queues=1)
    for group, retries in ((GROUP, "3"), ("letters", "16")):
        rocketmq.mqadmin("updateSubGroup", "-c", "check", "-g", group, "-r", retries)


def programs_of(kafka, rocketmq, folder):
    """Return a producer, a consumer and a program for dead letters of each broker."""

    def program(name, file, role, address, *arguments):
        command = [sys.executable, str(HERE / file), role, address, *map(str, arguments)]
        return Program(command, folder / f"{name}.out", HOME=str(folder), PYTHONPATH=str(HERE.parent))

    def producer(name, file, address):
        files = [folder / f"{name}.{end}" for end in ("orders", "acknowledged")]
        return program(f"{name} producer", file, "produce", address, ORDERS, *files, 0.9 / RATE)

    own = "soak_programs.py"
    return {
        "kafka producer": producer("kafka", "kafka_programs.py", kafka.address),
        "kafka consumer": program("kafka consumer", own, "share", kafka.address, folder),
        "kafka letters": program("kafka letters", own, "letters", kafka.address, folder),
        "rocketmq producer": producer("rocketmq", "rocketmq_programs.py", rocketmq.address),
        "rocketmq consumer": program("rocketmq consumer", own, "receive", rocketmq.address, folder),
        "rocketmq letters": program("rocketmq letters", own, "redrive", rocketmq.address, folder),
    }


def test_no_message_is_lost_or_handled_twice(
    kafka_source, spark, kafka_of_its_own, rocketmq_of_its_own, tmp_path, seed, request
):
    """Each acknowledged order is in its topic and was counted once; the audits find nothing but resent messages."""
    seconds = 60 * request.config.getoption("--minutes")
    orders = {name: write_orders(tmp_path / f"{name}.orders", int(RATE * seconds)) for name in ("kafka", "rocketmq")}
    prepare(kafka_of_its_own, rocketmq_of_its_own)
    programs = programs_of(kafka_of_its_own, rocketmq_of_its_own, tmp_path)
    began = time.monotonic()

    def tend():
        for name, program in programs.items():
            if program.wait(0) not in (None, 0, -signal.SIGKILL):  # an error, as after a time without the broker
                print(f"    {name} ended, {time.monotonic() - began:.0f} s", flush=True)
                program.start()

    try:
        for program in programs.values():
            program.start()
        targets = {"kafka broker": kafka_of_its_own, "rocketmq broker": rocketmq_of_its_own, **programs}
        inflict(kills(seed, seconds), targets, tend)
        end = max(time.monotonic(), began + seconds) + DONE_SECONDS
        while missing := sum(missing_of(tmp_path, name, orders[name]) for name in orders):
            assert time.monotonic() < end, missing
            tend()
            time.sleep(1)
        print(f"  all were handled after {time.monotonic() - began:.0f} s", flush=True)
        time.sleep(2 * LOCK_SECONDS)  # open messages are delivered again, and must be duplicates
    finally:
        for program in programs.values():
            program.kill()
    judge_kafka(spark, kafka_of_its_own, tmp_path, orders["kafka"])
    judge_rocketmq(rocketmq_of_its_own, tmp_path, orders["rocketmq"])


def write_orders(file, count):
    """Write orders for a producer: ID, customer and body; return the customer and the body by ID."""
    generator = msgid.Generator()
    orders = [
        [generator.generate_hex(), f"customer-{n % CUSTOMERS}", f"bad order {n}" if n % BAD_IN == 7 else f"order {n}"]
        for n in range(count)
    ]
    file.write_text(json.dumps(orders), encoding="utf-8")
    return {id: (customer, body) for id, customer, body in orders}


def lines_of(file):
    """Return the words of each whole line of a file that a killed program may have written."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [line.split() for line in text.splitlines()]


def counts_of(folder, name):
    """Return how many orders of each customer were handled, as the states say."""
    processor = Processor(SqliteStore(folder / f"{name}.db"), lambda state, message, context: None, print, name="count")
    histories = {f"customer-{n}": processor.history(f"customer-{n}") for n in range(CUSTOMERS)}
    return {customer: int(versions[-1].state) for customer, versions in histories.items() if versions}


def missing_of(folder, name, orders):
    """Return the number of orders that are not acknowledged, or not handled."""
    sent = len(lines_of(folder / f"{name}.acknowledged"))
    return len(orders) - sent or len(orders) - sum(counts_of(folder, name).values())


def judge_outputs(name, orders, states, outputs):
    """Check that each order has one output and one number: pairs of ID and body."""
    bodies, again = {}, Counter()
    for id, body in outputs:
        assert bodies.setdefault(id, body) == body, id
        again[id] += 1
    made = [json.loads(body) for body in bodies.values()]
    assert sorted((output["customer"], output["order"]) for output in made) == sorted(orders.values())
    for customer, count in Counter(customer for customer, _ in orders.values()).items():
        numbers = sorted(output["number"] for output in made if output["customer"] == customer)
        assert numbers == list(range(1, count + 1)), customer
        assert states[customer] == count, customer
    print(f"  {name}: {len(orders)} orders, {len(bodies)} outputs, {len(outputs) - len(bodies)} sent again", flush=True)


def judge_deliveries(name, kinds, redriven):
    """Print what the consumer did; no message was new twice, as the consumer and the redrives say."""
    print(f"  {name}: deliveries {dict(Counter(kind for _, kind in kinds))}, {len(redriven)} redriven", flush=True)
    assert redriven, "no dead letter was redriven"
    new = Counter(id for id, kind in kinds if kind == "new")
    assert [id for id, count in new.items() if count > 1] == []


def judge_kafka(spark, broker, folder, orders):
    """Land the topic with Spark, and compare table, outputs and states with the orders."""
    read = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.address)
    rows = read.option("subscribe", ORDERS).option("includeHeaders", "true").load()
    spark_ext.write_once(spark_ext.messages(rows, "kafka"), 0, str(folder / "landed"), app_id="soak")
    table = spark_ext.read_table(spark, str(folder / "landed"))
    ids = {(row.partition, row.offset): row.id for row in table.select("partition", "offset", "id").collect()}
    acknowledged = [id for (id,) in lines_of(folder / "kafka.acknowledged")]
    assert sorted(acknowledged) == sorted(orders)
    assert sorted(map(str, ids.values())) == sorted(orders)
    report = spark_ext.audit(table)
    assert checks(report.local) == {}
    place = sorted(place for place in ids if place[0] == 0)[5]
    report = spark_ext.audit(table.where(f"NOT (partition = 0 AND offset = {place[1]})"))
    assert checks(report.local)["missing_offsets"] == 1  # the judge is not blind
    redriven = lines_of(folder / "kafka.redriven")
    lines = lines_of(folder / "kafka.handled")
    kinds = [(str(ids[int(partition), int(offset)]), kind) for partition, offset, _, kind, _ in lines]
    judge_deliveries("kafka", [*kinds, *((id, kind) for id, kind in redriven)], redriven)
    print(f"  kafka: acknowledgements {dict(Counter(line[-1] for line in lines))}", flush=True)
    pairs = [(record.message_id(), record.value) for record in rows_of(broker, OUTPUTS, lambda: None)]
    judge_outputs("kafka", orders, counts_of(folder, "kafka"), pairs)


def judge_rocketmq(broker, folder, orders):
    """Compare the broker's log, outputs and states with the orders."""
    landed, outputs = [], []
    for record in broker.records():
        if record.topic in (ORDERS, OUTPUTS):
            (landed if record.topic == ORDERS else outputs).append(record.row(broker.name))
    acknowledged = [id for (id,) in lines_of(folder / "rocketmq.acknowledged")]
    assert sorted(acknowledged) == sorted(orders)
    sent = {id: body.encode() for id, (_, body) in orders.items()}
    assert {row["properties"]["UNIQ_KEY"]: row["body"] for row in landed} == sent
    redriven = lines_of(folder / "rocketmq.mended")
    again = len(landed) - len(orders)
    print(f"  rocketmq: {len(landed)} rows landed, {again} again, {len(redriven)} redriven", flush=True)
    found = checks(audited(landed))
    assert found == ({"duplicate_ids": again} if again else {})
    compared = compare(acknowledged, [row["properties"]["UNIQ_KEY"] for row in landed])
    assert [one.id for one in compared.differences if one.fault == "lost"] == []
    queue = sorted((row for row in landed if row["queueId"] == 0), key=lambda row: row["queueOffset"])
    assert checks(audited([row for row in landed if row is not queue[5]]))["missing_offsets"] == 1
    kinds = [(id, kind.replace(" ", "-")) for id, _, kind, *_ in lines_of(folder / "rocketmq.handled")]
    judge_deliveries("rocketmq", kinds, redriven)
    pairs = [(row["properties"]["UNIQ_KEY"], row["body"]) for row in outputs]
    judge_outputs("rocketmq", orders, counts_of(folder, "rocketmq"), pairs)
