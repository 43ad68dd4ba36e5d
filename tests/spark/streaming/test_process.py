"""`process`: the same handler on Spark has the outputs that it has in Python."""

import json
import random
from datetime import timedelta

import pytest
import shooting_range
from helpers.streams import run_to_end
from pyspark.sql import functions as F

import msgid
import spark_ext as ids
from msgid.processing import MemoryStore, Message, Processor
from msgid.processing.strict_json import canonical

pytestmark = pytest.mark.spark

START = 1_700_000_000
SCHEMA = "id string, player string, kind string, position int, at timestamp"


def shots(count, players=3, seed=1):
    """Messages of several players, some of them twice, a line each."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        kind = "move" if chance.random() < 0.2 else "fire"
        made.append(
            {
                "id": str(msgid.position_id("range", number, START + number)),
                "player": f"player {number % players}",
                "kind": kind,
                "position": chance.randrange(shooting_range.FIELD),
            }
        )
    return made


def expected(batches):
    """Return the outputs that Python's processor publishes, batch by batch, in the order in which Spark handles one."""
    published = {}
    store = MemoryStore()
    processor = Processor(
        store, shooting_range.shoot, lambda outputs: published.update((output.id, output) for output in outputs)
    )
    for batch in batches:
        for line in sorted(batch, key=lambda line: (Message(line["id"], "", None).at, line["id"])):
            body = {"kind": line["kind"], "position": line["position"]}
            processor.handle(Message(line["id"], line["player"], body))
    return {(output.id, output.number, output.input_id, canonical(output.body)) for output in published.values()}


def put(folder, name, lines):
    """Move a file of messages into a folder, whole."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps(line) + "\n" for line in lines))
    hidden.rename(folder / name)


def handle(spark, folder, **options):
    """Handle the new files of the folder ``in``; return all outputs so far."""
    df = spark.readStream.schema("id string, player string, kind string, position int").json(str(folder / "in"))
    run_to_end(ids.process(df, "player", shooting_range.shoot, **options), folder)
    return spark.read.parquet(str(folder / "out")).collect()


def contents(rows):
    return {(row.id, row.number, row.input_id, row.body) for row in rows}


def test_process_of_a_handler_gives_the_outputs_of_the_processor(spark, rocksdb, tmp_path):
    """Over batches and a restart: what Python publishes; a duplicate has the outputs that it had the first time."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(shooting_range)
    made = shots(40)
    batches = [made[:20], [*made[10:], *made[:5]]]
    put(tmp_path / "in", "1.json", batches[0])
    handle(spark, tmp_path)
    put(tmp_path / "in", "2.json", batches[1])
    rows = handle(spark, tmp_path)
    assert contents(rows) == contents([row for row in rows if row.kind == "new"]) == expected(batches)
    again = {line["id"] for line in (*made[10:20], *made[:5])}
    assert {row.input_id for row in rows if row.kind == "duplicate"} == {
        row.input_id for row in rows if row.input_id in again
    }
    assert {row.key for row in rows} == {"player 0", "player 1", "player 2"}


@pytest.mark.details
def test_process_of_a_forgotten_message_is_too_late(spark, rocksdb, tmp_path):
    """A message that is redelivered after its time is reported, not handled; a newer one is handled."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(shooting_range)
    made = shots(4, players=1)
    put(tmp_path / "in", "1.json", made[:3])
    handle(spark, tmp_path, retention=timedelta(milliseconds=1))
    put(tmp_path / "in", "2.json", [made[3]])
    handle(spark, tmp_path, retention=timedelta(milliseconds=1))
    put(tmp_path / "in", "3.json", [made[0]])
    rows = handle(spark, tmp_path, retention=timedelta(milliseconds=1))
    (late,) = [row for row in rows if row.kind == "too late"]
    assert (late.input_id, late.id, late.number) == (made[0]["id"], None, None)
    assert contents([row for row in rows if row.kind == "new"]) == expected([made])


@pytest.mark.details
def test_process_of_a_malformed_row_is_kept_with_its_reason(spark, rocksdb, tmp_path):
    """No ID, an empty one, no key, a line that is not JSON, a reason of its own: the others are handled."""
    (good,) = shots(1)
    bad = [{**good, "id": None}, {**good, "id": ""}, {**good, "player": None}, {**good, "kind": "poisoned"}]
    put(tmp_path / "in", "1.json", [good, *bad])
    put(tmp_path / "in", "2.json", [])
    (tmp_path / "in" / "3.json").write_text('{"id": half\n')
    schema = "id string, player string, kind string, position int, _corrupt_record string"
    df = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    df = df.withColumn("why", F.when(F.col("kind") == "poisoned", "checksum"))

    def handler(state, message, context):
        context.publish(sorted(message.body))

    run_to_end(ids.process(df, "player", handler, reason="why"), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert [json.loads(row.body) for row in rows if row.kind == "new"] == [["kind", "position"]]
    malformed = [row for row in rows if row.kind == "malformed"]
    assert {row.reason for row in malformed} == {"no id", "no key", "the line does not fit the format", "checksum"}
    assert len(malformed) == len(rows) - 1 == 5
    whole = {row.reason: json.loads(row.body) for row in malformed}
    assert whole["no key"] == {**good, "player": None, "_corrupt_record": None, "why": None}
    assert whole["the line does not fit the format"]["_corrupt_record"] == '{"id": half'


def test_process_on_another_state_store_is_refused(spark, default_state_store, tmp_path):
    """At once, saying what to set."""
    df = spark.readStream.schema("id string, player string").json(str(tmp_path))
    with pytest.raises(ValueError, match=r"needs the RocksDB state store: .*, or spark-submit --conf spark\.sql\."):
        ids.process(df, "player", shooting_range.shoot)
