"""A producer and a consumer of RocketMQ that may be killed at any moment: ``rocketmq_programs.py ROLE ADDRESS ...``."""

import json
import sys
import time
from pathlib import Path

import rocketmq

from msgid.processing import Processor, SqliteStore
from msgid.rocketmq import Record

PAUSE_SECONDS, INVISIBLE_SECONDS, PATIENCE = 0.03, 10, 30


class Identified(rocketmq.Message):
    """A message whose ID the client does not replace."""

    def __init__(self, topic, body, id, key):
        super().__init__()
        self.topic, self.body, self._id, self.keys = topic, body, id, key

    @property
    def message_id(self):
        return self._id

    @message_id.setter
    def message_id(self, made_by_the_client):
        pass


def patient(call):
    """Call until it succeeds; end the program, to be started again, after many failures in a row."""
    for _ in range(PATIENCE):
        try:
            return call()
        except Exception as error:
            print(repr(error), file=sys.stderr, flush=True)
            time.sleep(1)
    sys.exit("the broker does not answer")


def produce(address, topic, orders, acknowledged, pause=PAUSE_SECONDS):
    """Send the orders that are not acknowledged, each with its ID, and write down each acknowledgement."""
    known = set(Path(acknowledged).read_text(encoding="utf-8").split()) if Path(acknowledged).exists() else set()
    producer = rocketmq.Producer(rocketmq.ClientConfiguration(address, rocketmq.Credentials()), [topic])
    patient(producer.startup)
    with open(acknowledged, "a", encoding="utf-8") as file:
        for id, customer, order in json.loads(Path(orders).read_text(encoding="utf-8")):
            if id in known:
                continue
            next_one = time.monotonic() + float(pause)
            receipt = patient(lambda: producer.send(Identified(topic, order.encode(), id, customer)))  # noqa: B023
            assert receipt.message_id == id
            file.write(id + "\n")
            file.flush()
            time.sleep(max(0, next_one - time.monotonic()))


def consume(address, topic, outputs, store):
    """Receive, handle, publish and acknowledge, for ever."""
    proxy = rocketmq.ClientConfiguration(address, rocketmq.Credentials())
    producer = rocketmq.Producer(proxy, [outputs])
    patient(producer.startup)
    consumer = rocketmq.SimpleConsumer(proxy, f"group-{topic}", {topic: rocketmq.FilterExpression()}, await_duration=3)
    patient(consumer.startup)

    def count(state, message, context):
        number = (state or 0) + 1
        context.publish({"number": number, "customer": message.key, "order": message.body.decode()})
        return number

    def publish(made):
        for output in made:
            producer.send(Identified(outputs, json.dumps(output.body).encode(), output.id, output.body["customer"]))

    processor = Processor(SqliteStore(store), count, publish, name="count")
    while True:
        for received in patient(lambda: consumer.receive(16, INVISIBLE_SECONDS)):
            try:
                processor.handle(Record.from_consumer(received).message())
                consumer.ack(received)
            except Exception as error:  # not acknowledged, so it is delivered again
                print(repr(error), file=sys.stderr, flush=True)


if __name__ == "__main__":
    {"produce": produce, "consume": consume}[sys.argv[1]](*sys.argv[2:])
