"""The programs that `systems.kills` kills: workers of a store, and the queries of a driver that write to the sinks."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import msgid
from msgid.processing import Message, PostgresStore, Processor, SqliteStore, loads

NAME = "kills"
KEYS = 12
ROWS = 200
"""Rows of a file for the queries."""
SINKS = ("orders", "latest", "delta", "parquet")
_START = 1_700_000_000


# Messages. Each one follows from its place, so that a judge knows them all.


def number_at(partition, place):
    """Return the number of the message at a place of a partition; one of twenty is delivered again."""
    while place and _hash(partition, place) % 20 == 0:
        place = max(0, place - 1 - _hash(place, partition) % 50)
    return place


def message_at(partition, place):
    number = number_at(partition, place)
    key = _hash("key", number) % (2 * KEYS)
    key = f"{partition}-{key if key < KEYS else 0}"  # half of the messages have one key
    return Message(str(msgid.position_id(partition, number, _START)), key, {"n": number})


def _hash(*values):
    return int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:6], "big")


def chain(state, message, context):
    """Return a state that depends on all messages of a key and on their order."""
    time.sleep(0.001)
    state = state or {"count": 0, "chain": ""}
    made = {"count": state["count"] + 1, "chain": f"{_hash(state['chain'], message.body['n']):x}"}
    context.publish({**made, "n": message.body["n"], "key": message.key})
    return made


# Workers.


def open_store(folder, kind, address):
    if kind == "sqlite":
        return SqliteStore(folder / "states.db", timeout=20)
    return PostgresStore(address, timeout=60, lock_timeout=20, idle_timeout=5)


def number_in(path):
    """Return the number in a file, or 0."""
    return int(path.read_text()) if path.exists() else 0


def replace(path, text):
    """Write a file in one step."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)


def note_error(folder, who, error):
    """Append an error to the list for the judge."""
    text = " ".join(str(error).split())
    line = json.dumps([who, type(error).__name__, text]) + "\n"
    with (folder / "errors.jsonl").open("a") as file:
        file.write(line)


def work(folder, kind, address, partition):
    """Handle a partition from its committed place; the offset is committed after the outputs are published."""
    outputs = os.open(folder / f"outputs-{partition}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    committed, chance = folder / f"committed-{partition}", random.SystemRandom()

    def publish(made):
        for output in made:
            os.write(outputs, f"{json.dumps([output.id, output.body])}\n".encode())
            time.sleep(0.001)

    def handler(state, message, context):
        if chance.random() < 0.003:
            raise ConnectionError("the handler fails")
        return chain(state, message, context)

    processor = Processor(open_store(folder, kind, address), handler, publish, name=NAME, attempts=1)
    place = number_in(committed)
    while True:
        end = number_in(folder / "limit")
        if place >= end:
            if (folder / "over").exists():
                return
            time.sleep(0.05)
            continue
        size = chance.choice([1, 1, 5, 20])
        batch = [message_at(partition, one) for one in range(place, min(place + size, end))]
        if size == 1:
            processor.handle(batch[0])
        else:
            processor.handle_many(batch, batch=chance.choice([3, 1000]))
        place += len(batch)
        if chance.random() < 0.5:
            time.sleep(0.02)
        replace(committed, str(place))
        if chance.random() < 0.005:
            processor.forget(older_than="300 seconds")


# Queries.


def rows_of_file(number):
    """Return the rows of a file; one of ten was in a file before."""
    rows = []
    for place in range(number * ROWS, (number + 1) * ROWS):
        one = place - _hash("again", place) % (3 * ROWS) if _hash("row", place) % 10 == 0 else place
        one = max(one, 0)
        rows.append({"id": str(msgid.position_id("orders", one, _START)), "k": one % 7, "n": one, "text": f"row {one}"})
    return rows


def latest_columns(n):
    """Return the key and the version of a row: versions of a key come in no order."""
    return n % 1009, n * 7919 % 1_000_003


def land(folder, address):
    """Write the files to each sink; run to the end if the faults are over."""
    import killing
    from pyspark.sql import functions as F

    import spark_ext

    spark = killing.session("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    is_over = (folder / "over").exists()

    def write(name):
        def write_batch(batch, number):
            (folder / f"writing-{name}").touch()
            if name == "orders":
                spark_ext.upsert_postgres(batch, address, "orders", lock_timeout=60, idle_timeout=10)
            elif name == "latest":
                rows = batch.select((F.col("n") % 1009).alias("key"), (F.col("n") * 7919 % 1_000_003).alias("version"))
                rows = rows.withColumn("text", F.concat_ws(" ", "key", "version"))
                spark_ext.upsert_postgres(
                    rows, address, "latest", "key", latest_by="version", lock_timeout=60, idle_timeout=10
                )
            else:
                spark_ext.write_once(batch, number, str(folder / name), format=name, partition_by=("k",))

        return write_batch

    queries = {}
    for name in SINKS:
        rows = spark.readStream.schema("id string, k int, n long, text string")
        rows = rows.option("maxFilesPerTrigger", 30 if is_over else 3)
        queries[name] = (
            rows.json(str(folder / "in"))
            .writeStream.foreachBatch(write(name))
            .option("checkpointLocation", str(folder / f"checkpoint-{name}"))
            .trigger(**({"availableNow": True} if is_over else {"processingTime": "5 seconds"}))
            .start()
        )
    while any(query.isActive for query in queries.values()):
        for name, query in queries.items():
            if not query.isActive and query.exception() is not None:
                note_error(folder, name, query.exception())
                os._exit(1)
        time.sleep(0.1)
    spark.stop()


def main():
    program, folder, *rest = sys.argv[1:]
    folder = Path(folder)
    if program == "land":
        land(folder, *rest)
        return
    try:
        work(folder, *rest)
    except Exception as error:
        note_error(folder, "worker", error)
        raise


# The judge.


def judge_store(folder, kind, address, partitions):
    """Compare the states and the outputs of a store with those of one worker without faults; return their numbers."""
    from msgid.processing import MemoryStore

    store, places, handled = open_store(folder, kind, address), number_in(folder / "limit"), 0
    published, again = 0, 0
    for partition in partitions:
        assert number_in(folder / f"committed-{partition}") == places, f"{partition} is not at its end"
        expected, memory = [], MemoryStore()
        processor = Processor(memory, _chain, expected.extend, name=NAME)
        messages = [message_at(partition, place) for place in range(places)]
        processor.handle_many(messages)
        right, firsts = {output.id: output.body for output in expected}, {}
        lines = (folder / f"outputs-{partition}.jsonl").read_text().splitlines()
        for line in lines:
            id, body = json.loads(line)
            assert right.get(id) == body, f"{partition}: output {id} is {body}, and must be {right.get(id)}"
            firsts.setdefault(id, body)
        assert firsts.keys() == right.keys(), f"{partition}: {len(right.keys() - firsts.keys())} outputs are missing"
        for key in {message.key for message in messages}:
            counts = [body["count"] for body in firsts.values() if body["key"] == key]
            assert counts == [*range(1, len(counts) + 1)], f"{key}: its outputs are not in order: {counts}"
            newest, wanted = store.history(key, handler=NAME)[-1], memory.history(key, handler=NAME)[-1]
            assert (newest.version, loads(newest.state)) == (wanted.version, loads(wanted.state)), key
        handled += len({message.id for message in messages})
        published += len(firsts)
        again += len(lines) - len(firsts)
    store.close()
    return {"messages": handled, "outputs": published, "published again": again}


def _chain(state, message, context):
    sleep, time.sleep = time.sleep, lambda _: None
    try:
        return chain(state, message, context)
    finally:
        time.sleep = sleep


def judge_sinks(folder, address, files):
    """Compare each table with the rows of the files; return the numbers of rows."""
    import killing
    import psycopg

    import spark_ext

    rows = [tuple(row.values()) for number in range(files) for row in rows_of_file(number)]
    versions = {}
    for _, _, n, _ in rows:
        key, version = latest_columns(n)
        versions[key] = max(version, versions.get(key, -1))
    with psycopg.connect(address) as connection:
        orders = connection.execute("SELECT id, k, n, text FROM orders").fetchall()
        assert sorted(orders) == sorted(set(rows)), "orders"
        latest = connection.execute("SELECT key, version, text FROM latest").fetchall()
        assert sorted(latest) == sorted((key, version, f"{key} {version}") for key, version in versions.items())
        for side in ("orders_conflicts", "latest_conflicts"):
            assert connection.execute(f"SELECT * FROM {side}").fetchall() == [], side
    spark = killing.session("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    for name in ("delta", "parquet"):
        held = spark_ext.read_table(spark, str(folder / name)).select("id", "k", "n", "text").collect()
        assert Counter(map(tuple, held)) == Counter(rows), name
    spark.stop()
    return {"rows in files": len(rows), "orders": len(orders), "latest": len(latest), "delta, parquet": len(rows)}


if __name__ == "__main__":
    main()
