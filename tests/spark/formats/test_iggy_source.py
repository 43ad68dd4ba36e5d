"""``format("iggy")`` reads the same messages as Python, and malformed bytes as one row."""

import base64
import gzip
import json

import pytest
from helpers import strategies
from helpers import vector_files as vectors
from pyspark.sql import functions as F

import msgid
from msgid import iggy
from spark_ext.formats.iggy_source import IggyDataSource

pytestmark = pytest.mark.spark

DOCUMENTS = [
    bytes.fromhex(row["hex"])
    for row in json.loads((vectors.FOLDER / "iggy.json").read_text())["messages"]
    if row["layout"] == "m45"
]


@pytest.fixture(autouse=True)
def registered(spark):
    spark.dataSource.register(IggyDataSource)


def messages(count, start=0):
    return [
        iggy.Message.new(
            b"p" * (n % 50),
            id=n + 1,
            offset=n,
            timestamp=1_700_000_000_000_000 + n,
            headers={"n": n} if n % 3 == 0 else {},
            layout="m45",
        )
        for n in range(start, start + count)
    ]


def plain(row):
    """Return the fields of a message for a row of the table."""
    return (
        row.offset,
        row.state,
        row.micros,
        bytes(row.id),
        row.checksum,
        {key: (held.kind, bytes(held.value)) for key, held in row.headers.items()},
        bytes(row.payload),
    )


def fields(message):
    """Return the fields of a message with the values of a row."""
    return (
        message.offset,
        None if message.state is None else str(message.state),
        message.timestamp,
        message.id.to_bytes(16, "little"),
        message.checksum,
        {key: (str(kind), raw) for key, (kind, raw) in message.headers.items()},
        message.payload,
    )


def read(spark, path, **options):
    return spark.read.format("iggy").options(**options).load(str(path)).withColumn("micros", F.unix_micros("timestamp"))


def test_source_of_any_file_has_the_messages_of_msgid(spark, tmp_path):
    """Every field of every message equals that of `msgid.iggy`."""
    layout = "previous"
    made = strategies.many(strategies.iggy_messages(layout), 100)
    (tmp_path / f"{0:020d}.log").write_bytes(iggy.encode_log(made, layout))
    rows = sorted(read(spark, tmp_path, layout=layout).collect(), key=lambda row: row.position)
    assert [plain(row) for row in rows] == [fields(message) for message in made]


def test_source_of_a_segment_has_the_names_in_its_path_and_the_text_of_each_id(spark, tmp_path):
    """Also a row of bytes that cannot be decoded has the names; it does not have an ID."""
    folder = tmp_path / "streams" / "1" / "topics" / "orders" / "partitions" / "3"
    folder.mkdir(parents=True)
    made = messages(2, 7)
    (folder / f"{7:020d}.log").write_bytes(iggy.encode_log(made, "m45") + b"half a message")
    rows = read(spark, tmp_path).orderBy("position").collect()
    assert [(row.source, row.stream, row.topic, row.partition, row.segment) for row in rows] == 3 * [
        ("iggy:1/orders#3", "1", "orders", 3, 7)
    ]
    assert [row.id_text for row in rows] == [*(message.id_text for message in made), None]
    assert {row.file for row in rows} == {str(folder / f"{7:020d}.log")}


def test_source_with_the_option_columns_returns_these_columns_in_their_order(spark, tmp_path):
    """The values are those of a query without the option."""
    (tmp_path / f"{0:020d}.log").write_bytes(iggy.encode_log(messages(5), "m45") + b"?")
    names = ["reason", "payload", "offset"]
    some = spark.read.format("iggy").option("columns", "reason, payload,offset").load(str(tmp_path))
    assert some.columns == names
    assert sorted(map(str, some.collect())) == sorted(map(str, read(spark, tmp_path).select(names).collect()))


BROKEN = [
    lambda raw: raw[:-1],
    lambda raw: raw[:8] + b"\x07" + raw[9:],  # an unknown state
    lambda raw: raw[:37] + b"\xff\xff\xff\xff" + raw[41:],  # a length of 4 GB
    lambda raw: bytes(range(7, 200)),
]


def test_source_with_malformed_files_does_not_fail_the_job(spark, tmp_path):
    """The malformed remainder of a file is one poisoned row with its bytes; all other messages are read."""
    begin, bad = iggy.encode_log(messages(5), "m45"), {}
    for number, break_bytes in enumerate(BROKEN):
        bad[number] = break_bytes(iggy.encode(messages(1)[0], "m45"))
        folder = tmp_path / "streams" / "1" / "topics" / "2" / "partitions" / str(number)
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(begin + bad[number])
        (folder / f"{20:020d}.log").write_bytes(iggy.encode_log(messages(5, 20), "m45"))
    rows = read(spark, tmp_path).collect()
    poisoned = {row.partition: row for row in rows if row.reason is not None}
    assert {number: bytes(row.original) for number, row in poisoned.items()} == bad
    for number, row in poisoned.items():
        offsets = sorted(row.offset for row in rows if row.reason is None and row.partition == number)
        assert offsets == [*range(5), *range(20, 25)]
        assert (row.state, row.position) == ("poisoned", len(begin))
        assert row.reason.startswith("invalid message: ")
    assert len(rows) == len(BROKEN) * 11


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layout": "newest"}, "layout must be one of auto, previous, m45"),
        ({"columns": "offset, ofset"}, "columns must be some of file, .*, each once, got 'offset, ofset'"),
        ({"columns": "offset,offset"}, "columns must be some of .*, each once, got 'offset,offset'"),
        ({"columns": ""}, "columns must be some of .*, each once, got ''"),
        ({"splitBytes": "1x"}, "splitBytes must be a number of bytes above 0, got '1x'"),
    ],
)
def test_source_with_bad_options_raises(options, says):
    """The error names the wrong option."""
    with pytest.raises(ValueError, match=says):
        IggyDataSource({"path": "/in", **options}).schema()


def test_source_of_a_missing_path_raises_and_of_an_empty_folder_is_empty(spark, tmp_path):
    """A missing path is an error, and a folder without segments is an empty table."""
    with pytest.raises(Exception, match="no file or folder"):
        read(spark, tmp_path / "nothing").collect()
    (tmp_path / "readme.txt").write_text("x")
    assert read(spark, tmp_path).count() == 0


def mutated(chance, count):
    """Return frames with changed, deleted, repeated or inserted bytes; the same seed gives the same frames."""
    for _ in range(count):
        raw = bytearray(chance.choice(DOCUMENTS))
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(raw) + 1)
            raw[place : place + chance.randint(0, 4)] = chance.randbytes(chance.randint(0, 4))
        yield bytes(raw)


@pytest.mark.volume
def test_source_of_100_000_mutated_messages_has_the_messages_of_msgid(spark):
    """Each of 100,000 messages is equal to Python's, or poisoned with Python's reason."""
    import random

    import spark_ext

    frames = list(mutated(random.Random(7), 100_000))
    df = spark.createDataFrame([(frame,) for frame in frames], "value binary")
    table = spark_ext.messages(df, "iggy-message")
    good = bad = 0
    for row, frame in zip(table.select("id", "offset", "payload", "reason", "original").collect(), frames, strict=True):
        if row.original is not None and not row.reason.startswith("checksum"):
            with pytest.raises(msgid.InvalidMessage):
                fits_the_columns(iggy.decode(frame, "m45"))
            assert (row.reason.startswith("invalid message: "), bytes(row.original)) == (True, frame)
            bad += 1
        else:
            message = iggy.decode(frame, "m45")
            assert (row.id, row.offset, bytes(row.payload)) == (message.id_text, message.offset, message.payload)
            good += 1
    assert min(good, bad) > 1000


def fits_the_columns(message):
    """A value that a bigint or a timestamp cannot hold is an error only on Spark."""
    if message.offset >= 1 << 63 or message.timestamp > 253_402_300_799_999_999:
        raise msgid.InvalidMessage("does not fit")


def test_encrypted_payloads_of_servers_are_decrypted_by_spark(spark, tmp_path):
    """Spark's own function takes nonce, ciphertext and tag as the server stores them."""
    servers = json.loads((vectors.FOLDER / "iggy_servers.json").read_text())["servers"]
    expected = set()
    for number, server in enumerate(servers.values()):
        path = tmp_path / f"streams/1/topics/1/partitions/{number}/{0:020d}.log"
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.decompress(base64.b64decode(server["encrypted"]["log_gz"])))
        expected |= {(number, bytes.fromhex(row["payload"])) for row in server["encrypted"]["polled"]}
    payload = F.try_aes_decrypt("payload", F.lit(bytes(range(32))), F.lit("GCM"))
    rows = spark.read.format("iggy").load(str(tmp_path)).select("partition", payload.alias("payload")).collect()
    assert {(row.partition, bytes(row.payload)) for row in rows} == expected
