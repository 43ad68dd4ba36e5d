"""Brokers on the loopback interface: started in a folder of their own, and ended with it."""

from __future__ import annotations

import base64
import contextlib
import socket
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

from systems.faults import Program

if TYPE_CHECKING:
    from pathlib import Path

KAFKA = ["org.apache.kafka:kafka_2.13:4.4.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"]
# The Kafka source of Spark 4.2, the latest that is published, and the versions that it is compiled with.
SPARK_KAFKA = [
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
]
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
START_SECONDS = 600


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Kafka(Program):
    """One Kafka broker, which is its own controller; an empty folder has its settings, its data and its output."""

    def __init__(self, class_path: str, folder: Path) -> None:
        java, settings = ["java", "-Xmx512m", "-cp", class_path], folder / "server.properties"
        port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder), encoding="utf-8")
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        subprocess.run(command, check=True, capture_output=True, timeout=START_SECONDS)
        super().__init__([*java, "kafka.Kafka", str(settings)], folder / "output")

    def start(self) -> None:
        """Start the broker and wait until it answers."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        super().start()
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                client.list_topics(timeout=2)
                return
            except KafkaException:
                if time.monotonic() > end or not self.is_alive:
                    raise AssertionError(self._output.read_text(errors="replace")[-2000:]) from None

    def create_topic(self, topic: str, partitions: int = 2) -> None:
        """Create a topic."""
        from confluent_kafka.admin import AdminClient, NewTopic

        client = AdminClient({"bootstrap.servers": self.address})
        for done in client.create_topics([NewTopic(topic, partitions, 1)]).values():
            done.result(60)
