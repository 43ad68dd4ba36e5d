"""Brokers on the loopback interface: started in a folder of their own, and ended with it."""

from __future__ import annotations

import base64
import contextlib
import signal
import socket
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

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
START_SECONDS = 120


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Kafka:
    """One Kafka broker, which is its own controller.

    Args:
        class_path: The class path of the broker.
        folder: An empty folder for its settings, its data and its output.
    """

    def __init__(self, class_path: str, folder: Path) -> None:
        self._java = ["java", "-Xmx512m", "-cp", class_path]
        self._folder = folder
        self._settings = folder / "server.properties"
        port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        self._settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder), encoding="utf-8")
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings)]
        subprocess.run(command, check=True, capture_output=True, timeout=START_SECONDS)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the broker and wait until it answers."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        with (self._folder / "output").open("ab") as output:
            command = [*self._java, "kafka.Kafka", str(self._settings)]
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self._folder)
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                client.list_topics(timeout=2)
                return
            except KafkaException:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise AssertionError((self._folder / "output").read_text(errors="replace")[-2000:]) from None

    def signal(self, number: int) -> None:
        """Send a signal to the broker."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End the broker with SIGKILL."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the broker with SIGTERM, or with SIGKILL if it goes on for half a minute."""
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(30)
        self.kill()

    def create_topic(self, topic: str, partitions: int = 2) -> None:
        """Create a topic."""
        from confluent_kafka.admin import AdminClient, NewTopic

        client = AdminClient({"bootstrap.servers": self.address})
        for done in client.create_topics([NewTopic(topic, partitions, 1)]).values():
            done.result(60)
