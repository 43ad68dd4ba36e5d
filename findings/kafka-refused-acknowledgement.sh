#!/bin/sh
# Guess: `commit_sync` of a share consumer raises an exception if the broker refuses an acknowledgement.
# Version: Kafka 4.4.0 (KRaft, one broker), confluent-kafka 2.16.1.
# Behaviour: it returns. The refusal is a value in the result, and the record is delivered again. A program that ignores the
#   result takes the record for done.
# Output seen on 2026-11-29:
#   raised: no
#   result: INVALID_RECORD_STATE
#   delivered again: yes, delivery 2
. "$(dirname "$0")/_kafka.sh"
start_kafka
"$python" - "$address" > "$folder/seen" <<'END'
import sys, time
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

address = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(address)
for done in admin.create_topics([NewTopic("orders", 1, 1)]).values():
    done.result(30)
settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "15000"}
entries = [ConfigEntry(*one, incremental_operation=AlterConfigOpType.SET) for one in settings.items()]
group = ConfigResource(ConfigResource.Type.GROUP, "slow", incremental_configs=entries)
for done in admin.incremental_alter_configs([group]).values():
    done.result(30)
producer = Producer(address)
producer.produce("orders", b"5")
producer.flush(30)
consumer = ShareConsumer({**address, "group.id": "slow", "share.acknowledgement.mode": "explicit", "log_level": 0})
consumer.subscribe(["orders"])


def first():
    end = time.time() + 60
    while time.time() < end:
        for event in consumer.poll(1.0):
            return event
    raise TimeoutError("no record")


event = first()
time.sleep(20)  # longer than the lock of 15 seconds
consumer.acknowledge(event, AcknowledgeType.ACCEPT)
try:
    (error,) = consumer.commit_sync().values()
    print("raised: no")
    print(f"result: {error and error.args[0].name()}")
except Exception as raised:
    print(f"raised: {type(raised).__name__}")
event = first()
print(f"delivered again: yes, delivery {event.delivery_count()}")
END
finish <<'END'
raised: no
result: INVALID_RECORD_STATE
delivered again: yes, delivery 2
END
