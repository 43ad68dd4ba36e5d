"""python kafka_worker.py SETTINGS: a worker of a group. It polls, handles, publishes and commits until SIGTERM.

SETTINGS is JSON: ``address``, ``topic``, ``to``, ``states`` (a file), ``group``, ``member``. With ``transaction``,
outputs and offsets are in one transaction of Kafka, as the guide to consumers shows. With ``end``, the worker kills
itself after this step: poll, read, handled, stored, published or committed.
"""

import json
import os
import signal
import sys

from confluent_kafka import Consumer, KafkaException, Producer

from msgid.kafka import Record
from msgid.processing import Processor, SqliteStore
from msgid.testing import steps

settings = json.loads(sys.argv[1])
client = {"bootstrap.servers": settings["address"]}
in_transaction = settings.get("transaction", False)
producer = Producer({**client, **({"transactional.id": settings["member"]} if in_transaction else {"linger.ms": 0})})
ending = []


def step(name):
    """End the process here if the test asks for it."""
    if name == settings.get("end"):
        os.kill(os.getpid(), signal.SIGKILL)


def count(state, message, context):
    """Number the orders of a customer."""
    state = (state or 0) + 1
    context.publish({"number": state, "order": message.body.decode()})
    return state


def publish(outputs):
    for output in outputs:
        body = json.dumps({"input": output.input_id, **output.body})
        producer.produce(settings["to"], body, output.id, headers={"message_id": output.id})
    if not in_transaction and producer.flush(30) > 0:
        raise TimeoutError("the broker has not acknowledged all outputs")


names = {"Read": "read", "RunHandler": "handled", "AppendAll": "stored", "Publish": "published"}


def handle(event):
    """Handle an event as `Processor.handle` does, one step after another, and commit it."""
    step("poll")
    for name in steps(processor, Record.from_consumer(event).message()):
        step(names.get(name, name))
    try:
        consumer.commit(event, asynchronous=False)
    except KafkaException as error:  # another worker has the partition now, and gets the message again
        print("not committed:", error, flush=True)
    step("committed")


def handle_in_transaction(events):
    """Handle events, and commit their outputs and offsets together."""
    producer.begin_transaction()
    try:
        processor.handle_many(Record.from_consumer(event).message() for event in events)
        step("published")
        offsets = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
    except BaseException:
        producer.abort_transaction(30)
        raise
    step("committed")


signal.signal(signal.SIGTERM, lambda number, frame: ending.append(number))
if in_transaction:
    producer.init_transactions(60)
consumer = Consumer(
    {
        **client,
        "group.id": settings["group"],
        "group.instance.id": settings["member"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
    }
)
consumer.subscribe([settings["topic"]])
processor = Processor(SqliteStore(settings["states"]), count, publish, name="count")
print("ready", flush=True)
while not ending:
    if in_transaction:
        if events := [event for event in consumer.consume(200, timeout=0.5) if event.error() is None]:
            handle_in_transaction(events)
        continue
    event = consumer.poll(0.5)
    if event is not None and event.error() is None:
        handle(event)
consumer.close()
