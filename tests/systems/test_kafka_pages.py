"""The guides about Kafka: each block runs against the broker, and prints what the guide shows."""

import pytest
from helpers import markdown
from systems import pages

pytestmark = [pytest.mark.systems, pytest.mark.skipif(not markdown.PAGES.exists(), reason="outside the repository")]


@pytest.fixture
def broker(kafka, monkeypatch, tmp_path):
    """Return a broker without topics, in an empty folder."""
    pages.empty(kafka)
    monkeypatch.chdir(tmp_path)
    return kafka


def test_guide_to_topics_on_spark(broker, spark):
    """Aborted transactions, a topic that is created again, and outputs that are written twice."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert pages.run("kafka-spark.md", broker.address, {"spark": spark}) == 1


def test_guide_to_ids_of_kafka(broker, spark):
    """A producer sends an ID in the header."""
    assert pages.run("kafka.md", broker.address, {"spark": spark}) == 2


def test_guide_to_consumers(broker):
    """The loop of each client, batches, dead letters, transactions, and two workers that end by SIGTERM."""
    pytest.importorskip("aiokafka")
    assert pages.run("consume.md", broker.address, {}) == 2
