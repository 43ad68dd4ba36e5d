#!/bin/sh
# Guess: the partitions of a consumer of a share group that was killed are read by the others at once, because a share group
#   does not give a partition to one consumer alone.
# Version: Kafka 4.4.0 (KRaft, one broker), confluent-kafka 2.16.1.
# Behaviour: the killed consumer stays a member for the session timeout of 45 seconds, and partitions are assigned to it. With
#   two partitions, its successor reads one of them, and nobody reads the other one until then.
# Output seen on 2026-11-29:
#   partitions read in the first 20 seconds: 1 of 2
#   partitions read after 90 seconds: 2 of 2
. "$(dirname "$0")/_kafka.sh"
start_kafka
cat > "$folder/killed.py" <<'END'
import sys
from confluent_kafka import ShareConsumer

consumer = ShareConsumer({"bootstrap.servers": sys.argv[1], "group.id": "workers", "log_level": 0})
consumer.subscribe(["orders"])
while True:
    if list(consumer.poll(1.0)):
        print("ready", flush=True)
END
"$python" - "$address" "$folder/killed.py" > "$folder/seen" <<'END'
import subprocess, sys, time
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

address = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(address)
for done in admin.create_topics([NewTopic("orders", 2, 1)]).values():
    done.result(30)
entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
group = ConfigResource(ConfigResource.Type.GROUP, "workers", incremental_configs=[entry])
for done in admin.incremental_alter_configs([group]).values():
    done.result(30)
producer = Producer(address)


def produce():
    for partition in (0, 1):
        producer.produce("orders", b"5", partition=partition)
    producer.flush(30)


produce()
killed = subprocess.Popen([sys.executable, sys.argv[2], sys.argv[1]], stdout=subprocess.PIPE)
killed.stdout.readline()
time.sleep(5)
killed.kill()
killed.wait()
produce()
consumer, read, start = ShareConsumer({**address, "group.id": "workers", "log_level": 0}), set(), time.time()
consumer.subscribe(["orders"])
for seconds, words in ((20, "in the first 20 seconds"), (90, "after 90 seconds")):
    while time.time() < start + seconds:
        read |= {event.partition() for event in consumer.poll(1.0) if event.offset() > 0}
    print(f"partitions read {words}: {len(read)} of 2")
END
finish <<'END'
partitions read in the first 20 seconds: 1 of 2
partitions read after 90 seconds: 2 of 2
END
