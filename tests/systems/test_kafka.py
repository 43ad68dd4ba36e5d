"""Kafka: what real clients and a real broker say about the IDs, and consumers that end after each step."""

import asyncio
import json
import signal
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest
from systems.faults import Program

import msgid
from msgid.errors import InvalidMessage
from msgid.kafka import Record

pytestmark = pytest.mark.systems

PROGRAMS = Path(__file__).parents[1] / "programs"


def topic_of(kafka, partitions=2):
    """Create a topic with a new name."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, partitions)
    return name


def produce(kafka, topic, records):
    """Send (key, value, headers), and return the acknowledged positions."""
    from confluent_kafka import Producer

    acknowledged = []

    def report(error, message):
        assert error is None
        acknowledged.append((message.topic(), message.partition(), message.offset()))

    producer = Producer({"bootstrap.servers": kafka.address})
    for key, value, headers in records:
        producer.produce(topic, value, key, headers=headers, on_delivery=report)
        producer.poll(0)
    producer.flush(60)
    return acknowledged


def consume(kafka, topic, count, **options):
    """Return the first messages of a topic, and the events at the ends of its partitions."""
    from confluent_kafka import Consumer, KafkaError

    settings = {"bootstrap.servers": kafka.address, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.partition.eof": True, **options})
    consumer.subscribe([topic])
    messages, ends, until = [], [], time.monotonic() + 90
    while (len(messages) < count or not ends) and time.monotonic() < until:
        event = consumer.poll(1)
        if event is not None and event.error() is None:
            messages.append(event)
        elif event is not None:
            assert event.error().code() == KafkaError._PARTITION_EOF
            ends.append(event)
    consumer.close()
    return messages, ends


def test_ids_of_all_clients_are_the_ids_of_the_acknowledged_positions(kafka):
    """Each client reads the same record, so it gives the same ID; a header's ID wins over the position."""
    topic = topic_of(kafka)
    own = msgid.generate_hex()
    sent = [(b"%d" % n, b"%d" % n if n % 5 else None, {"message_id": own} if n == 7 else None) for n in range(60)]
    acknowledged = produce(kafka, topic, sent)
    messages, _ = consume(kafka, topic, len(sent))
    records = [Record.from_consumer(message) for message in messages]
    assert sorted((r.topic, r.partition, r.offset) for r in records) == sorted(acknowledged)
    ids = {record.message_id() for record in records}
    assert len(ids) == len(sent)
    assert own in ids
    assert {record.value for record in records} == {value for _, value, _ in sent}

    async def from_aiokafka():
        aiokafka = pytest.importorskip("aiokafka")
        consumer = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=kafka.address, auto_offset_reset="earliest")
        await consumer.start()
        found = []
        while len(found) < len(sent):
            found += [record for part in (await consumer.getmany(timeout_ms=1000)).values() for record in part]
        await consumer.stop()
        return [Record.from_consumer(message) for message in found]

    others = asyncio.run(from_aiokafka())
    assert sorted(others, key=lambda r: (r.partition, r.offset)) == sorted(
        records, key=lambda r: (r.partition, r.offset)
    )
    assert {record.message_id() for record in others} == ids


def test_event_at_the_end_of_a_partition_is_not_a_record(kafka):
    """An error event has an offset, but no message: it raises with the event's text."""
    topic = topic_of(kafka, 1)
    produce(kafka, topic, [(b"k", b"v", None)])
    _, [end] = consume(kafka, topic, 1)
    with pytest.raises(InvalidMessage, match=r"cannot make a record of an error event: .*_PARTITION_EOF"):
        Record.from_consumer(end)


def worker(kafka, tmp_path, topic, to, member, **settings):
    """Return a worker of a group, which is not started yet."""
    named = {"address": kafka.address, "topic": topic, "to": to, "states": str(tmp_path / "states.db")}
    given = json.dumps({**named, "group": "workers", "member": member, **settings})
    return Program([sys.executable, str(PROGRAMS / "kafka_worker.py"), given], tmp_path / f"{member}.log")


def outputs_of(kafka, topic, least):
    """Return the outputs of a topic by their ID, and how often each is there; the same ID has the same content."""
    bodies, times, until = {}, Counter(), time.monotonic() + 120
    while time.monotonic() < until and len(bodies) < least:
        bodies, times = {}, Counter()
        for message in consume(kafka, topic, least)[0]:
            record = Record.from_consumer(message)
            assert bodies.setdefault(record.message_id(), record.value) == record.value
            times[record.message_id()] += 1
    return {id: json.loads(body) for id, body in bodies.items()}, times


# What is published when a worker ends after a step: by itself, and after the next worker; and what that one handles.
STEPS = {"poll": (0, 3, 3), "handled": (0, 3, 3), "stored": (0, 3, 3), "published": (1, 4, 3), "committed": (1, 3, 2)}


@pytest.mark.parametrize("step", STEPS)
def test_consumer_that_ends_after_a_step_loses_nothing(kafka, tmp_path, step):
    """The next worker gets the uncommitted messages, and publishes an output again only if it was published before."""
    topic, to = topic_of(kafka, 1), topic_of(kafka, 1)
    produce(kafka, topic, [(b"k", b"%d" % n, None) for n in range(3)])
    first = worker(kafka, tmp_path, topic, to, "first", group=topic, end=step)
    first.start()
    assert first.wait(60) == -signal.SIGKILL
    before, after, handled = STEPS[step]
    assert len(consume(kafka, to, before)[0]) == before
    second = worker(kafka, tmp_path, topic, to, "first", group=topic)
    second.start()
    try:
        bodies, times = outputs_of(kafka, to, 3)
    finally:
        second.stop()
    assert sorted(body["number"] for body in bodies.values()) == [1, 2, 3]
    assert times.total() == after
    assert before + handled == after
