"""The systems that these tests start, once per run, and the seed of their random choices."""

import os
import random
from glob import glob

import pytest
from systems.brokers import KAFKA, SPARK_KAFKA, Kafka
from systems.maven import class_path
from systems.rocketmq_broker import started
from systems.spark_cluster import SparkCluster, java_or_skip


@pytest.fixture
def seed(request):
    """Return the seed of a test's random choices, and print it: that of ``--seed``, or a new one for faults."""
    asked = request.config.getoption("--seed")
    if asked is None:
        asked = random.SystemRandom().randrange(1_000_000) if request.node.get_closest_marker("faults") else 0
    print(f"\n{request.node.name}: --seed {asked}", flush=True)
    return asked


def running_kafka(folder):
    """Start a Kafka broker, and end it with the fixture."""
    pytest.importorskip("confluent_kafka")
    broker = Kafka(class_path("kafka", KAFKA), folder)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """Return the Kafka broker of all tests."""
    yield from running_kafka(tmp_path_factory.mktemp("kafka"))


@pytest.fixture
def kafka_of_its_own(tmp_path_factory):
    """Return a Kafka broker that no other test uses."""
    yield from running_kafka(tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def rocketmq(tmp_path_factory):
    """Return a running broker of RocketMQ. A broker that has seen a transaction takes half a core without work."""
    yield from started(tmp_path_factory.mktemp("rocketmq"))


@pytest.fixture
def rocketmq_of_its_own(tmp_path_factory):
    """Return a broker of RocketMQ that no other test uses."""
    yield from started(tmp_path_factory.mktemp("rocketmq"))


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


@pytest.fixture(scope="session")
def kafka_source():
    """Let Spark's JVM find Spark's Kafka source: its own JAR files, not those that Spark has."""
    folder = class_path("spark-kafka", SPARK_KAFKA).removesuffix("*")
    files = [file for artifact in SPARK_KAFKA for file in glob(f"{folder}{artifact.split(':')[1]}-[0-9]*.jar")]
    assert len(files) == len(SPARK_KAFKA), files
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {os.pathsep.join(files)} pyspark-shell"


@pytest.fixture(scope="session")
def spark(kafka_source, spark):
    """Return the session of all Spark tests, with Spark's Kafka source."""
    return spark
