"""Kafka: what real clients and a real broker say about the IDs, and a group of consumers that are killed."""

import asyncio
import json
import random
import subprocess
import sys
import time
import uuid

import pytest

import msgid
from msgid.errors import InvalidMessage
from msgid.kafka import Record

pytestmark = pytest.mark.systems

KILLS = 5


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


# A worker of a group: poll, handle, publish, commit. It is killed at any moment.
WORKER = """
import sys
from confluent_kafka import Consumer, Producer
from msgid.kafka import Record
from msgid.processing import Message, Processor, SqliteStore

address, topic, to, path = sys.argv[1:]
producer = Producer({"bootstrap.servers": address, "linger.ms": 0})

def count(state, message, context):
    state = (state or 0) + 1
    context.publish({"number": state, "order": message.body})
    return state

def publish(outputs):
    for output in outputs:
        import json
        producer.produce(to, json.dumps(output.body).encode(), output.id.encode(), headers={"message_id": output.id})
    assert producer.flush(30) == 0

consumer = Consumer({"bootstrap.servers": address, "group.id": "workers", "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, "session.timeout.ms": 6000})
consumer.subscribe([topic])
processor = Processor(SqliteStore(path), count, publish, name="count")
print("ready", flush=True)
while True:
    event = consumer.poll(1)
    if event is None or event.error():
        continue
    record = Record.from_consumer(event)
    processor.handle(Message(record.message_id(), record.key.decode(), record.value.decode()))
    consumer.commit(event, asynchronous=False)
"""


def test_group_of_consumers_that_are_killed_publishes_one_output_per_order(kafka, tmp_path, seed):
    """Outputs may be published again, but with the same ID and the same content; and none is missing."""
    chance = random.Random(seed)
    topic, to = topic_of(kafka), topic_of(kafka)
    orders = [f"order {n}" for n in range(2500)]
    produce(kafka, topic, [(f"customer {n % 7}".encode(), order.encode(), None) for n, order in enumerate(orders)])

    def start():
        program = [sys.executable, "-c", WORKER, kafka.address, topic, to, str(tmp_path / "states.db")]
        return subprocess.Popen(program, stdout=subprocess.DEVNULL)

    workers = [start(), start()]
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(1, 4))
            place = chance.randrange(2)
            workers[place].kill()
            workers[place].wait()
            workers[place] = start()
        messages, until = {}, time.monotonic() + 120
        while time.monotonic() < until and len(messages) < len(orders):
            for message in consume(kafka, to, len(orders))[0]:
                body = json.loads(message.value())
                assert messages.setdefault(message.key().decode(), body) == body, f"seed {seed}"
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert sorted(body["order"] for body in messages.values()) == sorted(orders), f"seed {seed}"
    for customer in range(7):
        own = orders[customer::7]
        numbers = sorted(body["number"] for body in messages.values() if body["order"] in own)
        assert numbers == list(range(1, len(own) + 1)), f"seed {seed}"
