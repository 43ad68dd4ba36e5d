"""The systems that these tests start, once per run."""

import pytest
from systems.brokers import KAFKA, Kafka
from systems.maven import class_path


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """Return a running Kafka broker."""
    pytest.importorskip("confluent_kafka")
    broker = Kafka(class_path("kafka", KAFKA), tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()
