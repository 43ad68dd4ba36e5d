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


def test_guide_to_audits_finds_the_losses_of_a_landed_topic(broker):
    """Three messages did not land: one inside, the last and the first of a partition, which gaps do not show."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from confluent_kafka import Producer

    broker.create_topic("orders", 2)
    producer = Producer({"bootstrap.servers": broker.address})
    sent = [(n % 3 == 2, n) for n in range(150)]
    for partition, number in sent:
        producer.produce("orders", b"%d" % number, partition=int(partition))
    producer.flush(60)
    positions = [(partition, n) for partition, count in ((0, 100), (1, 50)) for n in range(count)]
    landed = [place for place in positions if place not in {(0, 41), (0, 99), (1, 0)}]
    partitions, offsets = map(list, zip(*landed, strict=True))
    pq.write_table(pa.table({"topic": ["orders"] * 147, "partition": partitions, "offset": offsets}), "landed.parquet")
    (block,) = (block for block in markdown.blocks(markdown.PAGES / "guides" / "compare.md") if block.mark == "cluster")
    code = ">>> import msgid.audit\n" + block.code.replace('"broker:9092"', repr(broker.address))
    markdown.run_text(code, "compare.md", {})


def test_guide_to_consumers(broker):
    """The loop of each client and its dead letters."""
    pytest.importorskip("aiokafka")
    assert pages.run("consume.md", broker.address, {}) == 2


def test_guide_to_share_groups(broker):
    """Deliveries, a refused handler, a dead letter that goes back to its first place, and the audit."""
    assert pages.run("consume-share-group.md", broker.address, {}) == 1


def test_guide_to_workers(kafka_of_its_own, monkeypatch, tmp_path):
    """Batches, transactions and workers, whose groups no other consumer has joined."""
    pytest.importorskip("aiokafka")
    monkeypatch.chdir(tmp_path)
    assert pages.run("consume-workers.md", kafka_of_its_own.address, {}) == 1
