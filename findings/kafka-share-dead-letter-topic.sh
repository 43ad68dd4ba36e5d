#!/bin/sh
# Guess: a share group whose setting `errors.deadletterqueue.topic.name` was accepted writes its dead letters to that topic.
# Version: Kafka 4.4.0 (KRaft, one broker), confluent-kafka 2.16.1.
# Behaviour: the setting is accepted for a topic that the broker never writes to. It writes only to a topic whose name begins
#   with `dlq.` and whose setting `errors.deadletterqueue.group.enable` is true. Else the record is gone after its last
#   delivery. No client gets an error, and only the broker's log has a line.
# Output seen on 2026-11-29:
#   orders.dead: accepted, 0 dead letters
#   dlq.orders: accepted, 0 dead letters
#   dlq.enabled: accepted, 1 dead letters
. "$(dirname "$0")/_kafka.sh"
start_kafka
"$python" - "$address" > "$folder/seen" <<'END'
import sys, time
from confluent_kafka import AcknowledgeType, Consumer, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

address = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(address)
topics = {"orders.dead": "true", "dlq.orders": "false", "dlq.enabled": "true"}
made = [NewTopic(name, 1, 1, config={"errors.deadletterqueue.group.enable": on}) for name, on in topics.items()]
for done in admin.create_topics([NewTopic("orders", 1, 1), *made]).values():
    done.result(30)
producer = Producer(address)
producer.produce("orders", b"5")
producer.flush(30)
for topic in topics:
    settings = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": topic}
    entries = [ConfigEntry(*one, incremental_operation=AlterConfigOpType.SET) for one in settings.items()]
    group = ConfigResource(ConfigResource.Type.GROUP, f"group {topic}", incremental_configs=entries)
    for done in admin.incremental_alter_configs([group]).values():
        done.result(30)
    own = {"group.id": f"group {topic}", "share.acknowledgement.mode": "explicit", "log_level": 0}
    consumer = ShareConsumer({**address, **own})
    consumer.subscribe(["orders"])
    end, rejected = time.time() + 60, False
    while not rejected and time.time() < end:
        for event in consumer.poll(1.0):
            consumer.acknowledge(event, AcknowledgeType.REJECT)
            rejected = True
        assert not any(consumer.commit_sync().values())
    consumer.close()
    reader = Consumer({**address, "group.id": f"reader {topic}", "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    letters, end = 0, time.time() + 15
    while time.time() < end and not letters:
        event = reader.poll(1)
        letters += event is not None and event.error() is None
    reader.close()
    print(f"{topic}: {'accepted' if rejected else 'not read'}, {letters} dead letters", flush=True)
END
finish <<'END'
orders.dead: accepted, 0 dead letters
dlq.orders: accepted, 0 dead letters
dlq.enabled: accepted, 1 dead letters
END
