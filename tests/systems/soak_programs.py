"""Consumers of the soak, which may be killed at any moment: ``soak_programs.py ROLE ADDRESS FOLDER``.

The folder has one file of states per broker. Handlers fail at random. A bad order fails until a program redrives its
dead letter.
"""

import json
import random
import sys
import time
from pathlib import Path

from systems.rocketmq_programs import Identified, patient

import msgid.kafka
import msgid.rocketmq
from msgid.processing import Processor, SqliteStore

GROUP, ORDERS, OUTPUTS, DEAD = "soak", "orders", "outputs", "dlq.orders"
FAIL_CHANCE, TWICE_CHANCE = 0.05, 0.3
LOCK_SECONDS, INVISIBLE_SECONDS = 15, 10


def processor_of(store, publish, is_mended):
    """Return a processor whose handler numbers the orders of a customer, and fails at random."""

    def count(state, message, context):
        if not is_mended(message) and (message.body.startswith(b"bad") or random.random() < FAIL_CHANCE):
            raise RuntimeError("the handler failed")
        number = (state or 0) + 1
        context.publish({"number": number, "customer": message.key, "order": message.body.decode()})
        return number

    return Processor(SqliteStore(store), count, publish, name="count", attempts=1, keep_outputs=True)


class Notes:
    """A file of lines. Each line is in the file before the next step."""

    def __init__(self, folder, name):
        self._file = (folder / name).open("a", encoding="utf-8")

    def write(self, *words):
        """Append a line."""
        print(*words, file=self._file, flush=True)


def publisher(address):
    """Return a function that sends outputs to Kafka, and returns once all are acknowledged."""
    from confluent_kafka import KafkaException, Producer

    def raise_refusal(error, message):
        if error is not None:
            raise KafkaException(error)

    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "on_delivery": raise_refusal})

    def publish(outputs):
        for output in outputs:
            producer.produce(OUTPUTS, json.dumps(output.body), output.id, headers={"message_id": output.id})
        if producer.flush(30) > 0:
            raise TimeoutError("the broker has not acknowledged all outputs")

    return publish


def share(address, folder):
    """Handle the records of a share group, and acknowledge each of them, as the guide does."""
    from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

    processor = processor_of(folder / "kafka.db", publisher(address), lambda message: False)
    notes = Notes(folder, "kafka.handled")

    def decide(event, until):
        if time.monotonic() > until:
            return AcknowledgeType.RELEASE, "not tried"
        try:
            message = msgid.kafka.Record.from_consumer(event).message()
            return AcknowledgeType.ACCEPT, processor.handle(message).kind
        except Exception as error:
            return AcknowledgeType.RELEASE, type(error).__name__

    settings = {"bootstrap.servers": address, "group.id": GROUP, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer({**settings, "max.poll.records": 50})
    consumer.subscribe([ORDERS])
    while True:
        try:
            events = list(consumer.poll(1.0))
            until = time.monotonic() + LOCK_SECONDS / 2
            for event in events:
                if event.error() is not None:
                    raise KafkaException(event.error())
                decision, kind = decide(event, until)
                consumer.acknowledge(event, decision)
                refused = [error for error in consumer.commit_sync().values() if error is not None]
                outcome = "refused" if refused else decision.name
                notes.write(event.partition(), event.offset(), event.delivery_count(), kind.replace(" ", "-"), outcome)
        except KafkaException as error:  # the broker is away, and delivers open records again
            print(repr(error), file=sys.stderr, flush=True)
            time.sleep(1)


def letters(address, folder):
    """Handle the record at the first place of each dead letter of the share group, some of them twice."""
    from confluent_kafka import Consumer, TopicPartition

    processor = processor_of(folder / "kafka.db", publisher(address), lambda message: True)
    notes = Notes(folder, "kafka.redriven")
    settings = {"bootstrap.servers": address, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**settings, "group.id": "letters"})
    consumer.subscribe([DEAD])

    def record_of(letter):
        about = {name.removeprefix("__dlq.errors."): value.decode() for name, value in letter.headers() if value}
        place = TopicPartition(about["topic"], int(about["partition"]), int(about["offset"]))
        reader = Consumer({**settings, "group.id": "unused"})
        reader.assign([place])
        try:
            while (event := reader.poll(1.0)) is None or event.error() is not None:
                pass
            assert event.offset() == place.offset, (event.offset(), place)
            return msgid.kafka.Record.from_consumer(event)
        finally:
            reader.close()

    while True:
        letter = consumer.poll(1.0)
        if letter is None or letter.error() is not None:
            continue
        message = record_of(letter).message()
        for _ in range(1 + (random.random() < TWICE_CHANCE)):
            notes.write(message.id, processor.handle(message).kind)
        consumer.commit(letter, asynchronous=False)


def simple_consumer(address, group, topic):
    """Return a started consumer of RocketMQ."""
    import rocketmq

    proxy = rocketmq.ClientConfiguration(address, rocketmq.Credentials())
    consumer = rocketmq.SimpleConsumer(proxy, group, {topic: rocketmq.FilterExpression()}, await_duration=3)
    patient(consumer.startup)
    return consumer


def sender(address, topic):
    """Return a started producer of RocketMQ."""
    import rocketmq

    producer = rocketmq.Producer(rocketmq.ClientConfiguration(address, rocketmq.Credentials()), [topic])
    patient(producer.startup)
    return producer


def receive(address, folder):
    """Receive, handle, publish and acknowledge, for ever."""
    producer, consumer = sender(address, OUTPUTS), simple_consumer(address, GROUP, ORDERS)
    mended, notes = folder / "rocketmq.mended", Notes(folder, "rocketmq.handled")

    def publish(outputs):
        for output in outputs:
            producer.send(Identified(OUTPUTS, json.dumps(output.body).encode(), output.id, output.body["customer"]))

    def is_mended(message):
        is_bad = message.body.startswith(b"bad")
        return is_bad and mended.exists() and message.id in mended.read_text(encoding="utf-8").split()

    processor = processor_of(folder / "rocketmq.db", publish, is_mended)
    while True:
        for received in patient(lambda: consumer.receive(16, INVISIBLE_SECONDS)):
            try:
                kind = processor.handle(msgid.rocketmq.Record.from_consumer(received).message()).kind
                consumer.ack(received)
                notes.write(received.message_id, received.delivery_attempt, kind, "ACK")
            except Exception as error:  # not acknowledged, so it is delivered again
                notes.write(received.message_id, received.delivery_attempt, type(error).__name__, "-")


def redrive(address, folder):
    """Send each dead letter of the consumer to its first topic again, with its ID."""
    producer, consumer = sender(address, ORDERS), simple_consumer(address, "letters", f"%DLQ%{GROUP}")
    notes = Notes(folder, "rocketmq.mended")
    while True:
        for letter in patient(lambda: consumer.receive(16, 30)):
            try:
                message = msgid.rocketmq.Record.from_consumer(letter).message()
                notes.write(message.id)
                producer.send(Identified(ORDERS, message.body, message.id, message.key))
                consumer.ack(letter)
            except Exception as error:  # the dead letter is delivered again
                print(repr(error), file=sys.stderr, flush=True)


if __name__ == "__main__":
    roles = {"share": share, "letters": letters, "receive": receive, "redrive": redrive}
    roles[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
