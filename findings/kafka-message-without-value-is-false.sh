#!/bin/sh
# Guess: `if message:` skips only the None of a poll that timed out.
# Version: Kafka 4.4.0 (KRaft, one broker), confluent-kafka 2.16.1.
# Behaviour: a message has the length of its value. So `if message:` skips tombstones and messages with an empty value, and
#   a loop that is written like that never sees them.
# Output seen on 2026-11-29:
#   value b'5': True
#   value b'': False
#   value None: False
. "$(dirname "$0")/_kafka.sh"
start_kafka
"$python" - "$address" > "$folder/seen" <<'END'
import sys, time
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

address = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(address)
for done in admin.create_topics([NewTopic("orders", 1, 1)]).values():
    done.result(30)
producer = Producer(address)
for value in (b"5", b"", None):
    producer.produce("orders", value, key=b"shop")
producer.flush(30)
consumer = Consumer({**address, "group.id": "g", "auto.offset.reset": "earliest"})
consumer.subscribe(["orders"])
seen, end = 0, time.time() + 60
while seen < 3 and time.time() < end:
    message = consumer.poll(1)
    if message is not None and message.error() is None:
        seen += 1
        print(f"value {message.value()}: {bool(message)}")
consumer.close()
END
finish <<'END'
value b'5': True
value b'': False
value None: False
END
