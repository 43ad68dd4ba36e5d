"""The MERGE by the ID of a message, as the guide to sinks has it."""

import random
import uuid

from helpers import markdown

import msgid
import spark_ext

ROWS = 500


def merge_of_page(table, as_bytes):
    """Return the function of the page that merges a batch into a table; its key may be bytes."""
    (block,) = (one for one in markdown.blocks(markdown.PAGES / "guides" / "sinks.md") if "MERGE INTO" in one.code)
    names = {}
    exec(block.code, names)
    key = names["key"]
    names["TABLE"] = table
    if as_bytes:
        names["key"] = lambda id: spark_ext.id_to_binary(key(id))
    return names["merge"]


def ids_of(seed, as_bytes):
    """Return IDs of both versions, and UUIDs if the key is text; each twice, in two spellings."""
    chance = random.Random(seed)
    ids = [str(one) for one in msgid.generate_batch(ROWS)]
    ids += [f"00{chance.getrandbits(128):032X}" for _ in range(ROWS)]
    others = [id.lower() for id in ids[:ROWS]] + [id[2:] for id in ids[ROWS:]]
    if not as_bytes:
        uuids = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(ROWS)]
        ids, others = ids + uuids, others + uuids
    return ids, others


def check_merge(spark, table, as_bytes):
    """Check that batches, their replay and other spellings of their IDs leave each message in the table once.

    A filter by an ID finds its row, and DELETE removes it.
    """
    merge, (ids, others) = merge_of_page(table, as_bytes), ids_of(7, as_bytes)

    def batch(texts, amount):
        return spark.createDataFrame([(text, amount) for text in texts], "id string, amount int")

    half = len(ids) // 2
    first = batch([*ids[:half], *others[:half]], 1)
    for number, rows in enumerate([first, first, batch(others, 2), batch(ids, 3)]):
        merge(rows, number)
    stored = spark.table(table)
    expected = {1: half, 2: len(ids) - half}
    assert {row.amount: row["count"] for row in stored.groupBy("amount").count().collect()} == expected
    literal = f"X'{ids[3]}'" if as_bytes else f"'{ids[3]}'"
    assert stored.where(f"id = {literal}").count() == 1
    spark.sql(f"DELETE FROM {table} WHERE id = {literal}")
    assert stored.where("amount > 0").count() == len(ids) - 1
