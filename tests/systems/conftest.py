"""The systems that these tests start, once per run, and the seed of their random choices."""

import random

import pytest
from systems.brokers import KAFKA, Kafka
from systems.maven import class_path
from systems.rocketmq_broker import ROCKETMQ, ROCKETMQ_CLIENT, RocketMQ
from systems.spark_cluster import SparkCluster, java_or_skip


@pytest.fixture
def seed(request):
    """Return the seed of a test's random choices, and print it: that of ``--seed``, or a new one for faults."""
    asked = request.config.getoption("--seed")
    if asked is None:
        asked = random.SystemRandom().randrange(1_000_000) if request.node.get_closest_marker("faults") else 0
    print(f"\n{request.node.name}: --seed {asked}", flush=True)
    return asked


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """Return a running Kafka broker."""
    pytest.importorskip("confluent_kafka")
    broker = Kafka(class_path("kafka", KAFKA), tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def rocketmq(tmp_path_factory):
    """Return a running broker of RocketMQ."""
    servers, client = class_path("rocketmq", ROCKETMQ, "javac"), class_path("rocketmq-client", ROCKETMQ_CLIENT)
    broker = RocketMQ(servers, client, tmp_path_factory.mktemp("rocketmq"))
    try:
        broker.start()
        yield broker
    finally:
        broker.end()


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
