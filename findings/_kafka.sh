# Start Kafka 4.4.0 from Maven on 127.0.0.1 with a client from PyPI, both in a temporary folder. The programs read this file.
set -eu
folder=$(mktemp -d)
server=
trap 'test -z "$server" || kill -9 "$server" 2> /dev/null; rm -rf "$folder"' EXIT

start_kafka() {
    python3 -m venv "$folder/venv"
    python="$folder/venv/bin/python"
    "$python" -m pip install -q confluent-kafka==2.16.1
    cat > "$folder/pom.xml" <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>findings</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.4.0</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.5</version></dependency>
  </dependencies>
</project>
END
    mvn -q -B -f "$folder/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/jars"
    set -- $("$python" -c '
import socket
probes = [socket.socket() for _ in range(2)]
for probe in probes:
    probe.bind(("127.0.0.1", 0))
print(*(probe.getsockname()[1] for probe in probes))')
    address="127.0.0.1:$1"
    cat > "$folder/server.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$2
listeners=PLAINTEXT://127.0.0.1:$1,CONTROLLER://127.0.0.1:$2
advertised.listeners=PLAINTEXT://127.0.0.1:$1
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$folder/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
END
    java -Xmx512m -cp "$folder/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA -c "$folder/server.properties" \
        > "$folder/format.log" 2>&1 || { cat "$folder/format.log"; exit 1; }
    java -Xmx512m -cp "$folder/jars/*" kafka.Kafka "$folder/server.properties" > "$folder/server.log" 2>&1 &
    server=$!
    "$python" - "$address" <<'END'
import sys, time
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

admin, end = AdminClient({"bootstrap.servers": sys.argv[1], "log_level": 0}), time.time() + 120
while True:
    try:
        admin.list_topics(timeout=2)
        break
    except KafkaException:
        if time.time() > end:
            raise
END
}

# Compare what was seen with the text on the standard input, and fail if they differ.
finish() {
    cat > "$folder/expected"
    diff "$folder/expected" "$folder/seen" && cat "$folder/seen"
}
