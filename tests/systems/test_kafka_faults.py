"""Kafka under faults: broker, producer, two consumers and a stream of Spark are killed and paused as messages flow."""

import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from systems.faults import Program, inflict, schedule
from systems.test_kafka import consume, worker

import msgid
import spark_ext
from msgid.audit import compare
from msgid.kafka import Record

pytestmark = [pytest.mark.systems, pytest.mark.faults]

ORDERS, CUSTOMERS, FAULTS = 2500, 7, 25
DONE_SECONDS = 400
PROGRAM = str(Path(__file__).with_name("kafka_programs.py"))
COMMITTED = {"isolation.level": "read_committed"}


def programs_of(broker, folder, transaction):
    """Return a producer, two workers of a group, and a driver of Spark."""
    files = [str(folder / "orders.json"), str(folder / "acknowledged")]
    commands = {
        "producer": ["produce", broker.address, "orders", *files],
        "driver": ["land", broker.address, "orders", str(folder)],
    }
    given = {"group": "workers", "transaction": transaction}
    return {
        **{
            name: Program([sys.executable, PROGRAM, *command], folder / f"{name}.log", PYSPARK_PYTHON=sys.executable)
            for name, command in commands.items()
        },
        **{name: worker(broker, folder, "orders", "outputs", name, **given) for name in ("worker 1", "worker 2")},
    }


@pytest.mark.parametrize("transaction", [False, True], ids=["plain", "transactions"])
def test_orders_through_faults_have_one_output_each(kafka_source, spark, kafka_of_its_own, tmp_path, seed, transaction):
    """Nothing that was acknowledged is lost, no order has two outputs, and the table has each record once."""
    generator, began = msgid.Generator(), time.monotonic()
    orders = [[generator.generate_hex(), f"customer {n % CUSTOMERS}", f"order {n}"] for n in range(ORDERS)]
    (tmp_path / "orders.json").write_text(json.dumps(orders), encoding="utf-8")
    for topic in ("orders", "outputs"):
        kafka_of_its_own.create_topic(topic)
    programs = programs_of(kafka_of_its_own, tmp_path, transaction)

    def tend():
        for program in programs.values():
            if program.wait(0):  # it ended with an error, as after a time without the broker
                program.start()

    try:
        for program in programs.values():
            program.start()
        targets = {"broker": kafka_of_its_own, **programs}
        inflict(schedule(seed, FAULTS, list(targets)), targets, tend)
        end = time.monotonic() + DONE_SECONDS
        landed, outputs, table = [], [], 0
        while time.monotonic() < end:
            landed, outputs = rows_of(kafka_of_its_own, "orders", tend), rows_of(kafka_of_its_own, "outputs", tend)
            if any((tmp_path / "landed").glob("writer=*/batch=*")):
                table = spark_ext.read_table(spark, str(tmp_path / "landed")).count()
            finished = programs["producer"].wait(0) == 0 and len({row.message_id() for row in outputs}) >= ORDERS
            if finished and table >= len(landed):
                break
            tend()
    finally:
        for program in programs.values():
            program.kill()
    acknowledged = (tmp_path / "acknowledged").read_text(encoding="utf-8").split()
    rows = spark_ext.read_table(spark, str(tmp_path / "landed"))
    lost, again = judge(orders, acknowledged, landed, outputs, transaction)
    judge_table(rows, landed)
    print(
        f"  {len(set(acknowledged))} acknowledged, {len(landed)} landed, {len(outputs)} outputs of {ORDERS} orders, "
        f"{table} rows in the table: {lost} lost, {again} repeated, {time.monotonic() - began:.0f} s",
        flush=True,
    )


def rows_of(broker, topic, tend):
    """Return the records of a topic."""
    count = _count(broker, topic)
    tend()
    return [Record.from_consumer(message) for message in consume(broker, topic, count, **COMMITTED)[0]]


def _count(broker, topic):
    """Return the number of offsets that a topic has, with those of aborted records and of markers."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "nobody"})
    try:
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, each), 60)[1] for each in range(2))
    finally:
        consumer.close()


def judge(orders, acknowledged, landed, outputs, transaction):
    """Compare the acknowledged orders with the records that landed; return the numbers of lost and repeated rows."""
    sent = {id: (customer, order) for id, customer, order in orders}
    assert set(acknowledged) == set(sent)
    compared = compare(acknowledged, [record.message_id() for record in landed])
    assert [one.id for one in compared.differences if one.fault == "lost"] == []
    assert {record.message_id(): record.value.decode() for record in landed} == {id: sent[id][1] for id in sent}
    bodies, times = {}, Counter()
    for record in outputs:
        assert bodies.setdefault(record.message_id(), record.value) == record.value
        times[record.message_id()] += 1
    made = [json.loads(body) for body in bodies.values()]
    assert sorted(body["order"] for body in made) == sorted(order for _, order in sent.values())
    for customer in range(CUSTOMERS):
        own = {order for name, order in sent.values() if name == f"customer {customer}"}
        numbers = sorted(body["number"] for body in made if body["order"] in own)
        assert numbers == list(range(1, len(own) + 1)), customer
    if transaction:  # an order that a killed producer sent twice has its output twice, and no other one
        inputs = Counter(json.loads(record.value)["input"] for record in outputs)
        assert inputs <= Counter(record.message_id() for record in landed)
    return 0, times.total() - len(times)


def judge_table(rows, landed):
    """Compare the table with the topic: each record once; and let the audit look at the table."""
    positions = [(r.topic, r.partition, r.offset) for r in rows.select("topic", "partition", "offset").collect()]
    assert sorted(positions) == sorted((record.topic, record.partition, record.offset) for record in landed)
    again = len(landed) - len({record.message_id() for record in landed})
    report = spark_ext.audit(rows)
    found = {finding.check: finding.count for finding in report.local.findings if finding.check != "synthetic_node"}
    assert found == ({"duplicate_ids": again} if again else {})
    # The judge is not blind: a record that is lost is found.
    place = sorted(record.offset for record in landed if record.partition == 0)[5]
    report = spark_ext.audit(rows.where(f"NOT (partition = 0 AND offset = {place})"))
    assert {finding.check: finding.count for finding in report.local.findings}["missing_offsets"] == 1
