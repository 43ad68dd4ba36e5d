"""The systems that these tests start, once per run."""

import pytest
from systems.brokers import KAFKA, Kafka
from systems.maven import class_path
from systems.spark_cluster import SparkCluster, java_or_skip


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """Return a running Kafka broker."""
    pytest.importorskip("confluent_kafka")
    broker = Kafka(class_path("kafka", KAFKA), tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory):
    """Return a running standalone cluster of Spark with three workers."""
    java_or_skip()
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
