"""A producer of Kafka, and a stream of Spark that lands a topic; both may be killed: ``kafka_programs.py ROLE ...``."""

import json
import sys
import time
from functools import partial
from pathlib import Path

PAUSE_SECONDS = 0.02


def produce(address, topic, orders, acknowledged, pause=PAUSE_SECONDS):
    """Send the orders that are not acknowledged, each with its ID, and write down each acknowledgement."""
    from confluent_kafka import Producer

    known = set(Path(acknowledged).read_text(encoding="utf-8").split()) if Path(acknowledged).exists() else set()
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "message.timeout.ms": 600_000})
    with open(acknowledged, "a", encoding="utf-8") as file:

        def report(id, error, message):
            if error is None:
                file.write(id + "\n")
                file.flush()

        for id, customer, order in json.loads(Path(orders).read_text(encoding="utf-8")):
            if id not in known:
                headers = {"message_id": id}
                producer.produce(topic, order, customer, headers=headers, on_delivery=partial(report, id))
                producer.poll(float(pause))
                time.sleep(float(pause))
        sys.exit(producer.flush(600) > 0)


def land(address, topic, folder):
    """Write the topic to a table, one batch after another, until the process ends."""
    from pyspark.sql import SparkSession

    import spark_ext

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.driver.memory": "600m"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    options = {"kafka.bootstrap.servers": address, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 400}
    rows = spark.readStream.format("kafka").options(**options, includeHeaders="true", subscribe=topic).load()

    def write(batch, number):
        spark_ext.write_once(batch, number, f"{folder}/landed")

    query = spark_ext.messages(rows, "kafka").writeStream.foreachBatch(write)
    query = query.option("checkpointLocation", f"{folder}/checkpoint").trigger(processingTime="1 second")
    query.start().awaitTermination()


if __name__ == "__main__":
    {"produce": produce, "land": land}[sys.argv[1]](*sys.argv[2:])
