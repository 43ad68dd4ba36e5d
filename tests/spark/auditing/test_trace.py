"""`spark_ext.trace`: the rows of one message, by filters that files are skipped by."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import msgid
import spark_ext

pytestmark = pytest.mark.spark

OWN = "0156F7E71C361B21BC024CCDBE00000007"


@pytest.mark.parametrize("form", [str, str.lower, bytes.fromhex, lambda id: id[2:].lower()])
def test_rows_of_a_message_and_of_its_outputs_are_found(spark, tmp_path, form):
    """Text in either case, bytes, and the digits of a UUID."""
    ids = [OWN, str(msgid.derive_id(OWN, "output 1")), OWN[:-1] + "8"]
    pq.write_table(pa.table({"id": [form(id) for id in ids], "amount": [1, 2, 3]}), tmp_path / "a.parquet")
    rows = spark_ext.trace(OWN, spark.read.parquet(str(tmp_path))).collect()
    has_child = form(OWN) != OWN[2:].lower()  # a child is not searched without its version
    assert {(row.amount, row.trace) for row in rows} == {(1, "message"), *([(2, "output 1")] if has_child else [])}


@pytest.mark.parametrize("id", ["orders/1:700", str(msgid.position_id("kafka:kafka/orders/1", 700, 1_700_000_000))])
def test_row_of_a_position_is_found(spark, id):
    """The same offset of another log is another message."""
    df = spark.createDataFrame(
        [("orders", 1, 700), ("orders", 2, 700), ("orders", 1, 701)], "topic string, partition int, offset long"
    )
    assert [row.partition for row in spark_ext.trace(id, df).collect()] == [1]


def test_position_is_found_by_offsets_of_each_type_that_an_audit_reads(spark):
    """A type that is not read is refused: else no row would be found, and no error."""
    rows = spark.createDataFrame([("orders", 1, 700), ("orders", 1, 701)], "topic string, partition int, n long")
    for type in ("string", "decimal(20,0)"):
        df = rows.selectExpr("topic", "partition", "n", f"CAST(n AS {type}) AS offset")
        assert [row.n for row in spark_ext.trace("orders/1:700", df).collect()] == [700], type
    for expression, says in {
        "CAST(n AS double) AS offset": "offset must be a column of integers, got double: cast it to bigint",
        "array(n) AS offset": "offset must be a column of integers, got array<bigint>: cast it to bigint",
    }.items():
        with pytest.raises(ValueError, match=says):
            spark_ext.trace("orders/1:700", rows.selectExpr("topic", "partition", expression))


@pytest.mark.parametrize("form", [str, str.lower, bytes.fromhex])
def test_one_of_five_files_is_read(spark, tmp_path, form):
    """The pages of the other files are overwritten: a query that read them would fail. Their statistics stay."""
    for number in range(5):
        path = tmp_path / f"{number}.parquet"
        ids = [form(f"{OWN[:-3]}{number}{n:02X}") for n in range(50)]
        pq.write_table(pa.table({"id": ids}), path, compression="zstd")
        if number != 0:
            raw = bytearray(path.read_bytes())
            end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
            raw[4:end] = b"\xff" * (end - 4)
            path.write_bytes(raw)
    df = spark.read.parquet(str(tmp_path))
    rows = spark_ext.trace(OWN, df).select(F.input_file_name().alias("file")).collect()
    assert [row.file.rpartition("/")[2] for row in rows] == ["0.parquet"]
    with pytest.raises(Exception, match=r"(?i)parquet|corrupt|page"):
        df.agg({"id": "max"}).where("`max(id)` = ''").collect()


def test_table_that_cannot_be_searched_is_refused(spark):
    """A number is not an ID."""
    with pytest.raises(ValueError, match="`id` must be a column of text or binary, got 'id' of int"):
        spark_ext.trace(OWN, spark.createDataFrame([(5,)], "id int"))


def test_id_in_a_column_of_char_is_found(spark):
    """The spaces at its end belong to the type, and not to the ID."""
    spark.sql("DROP TABLE IF EXISTS traced_ids")
    spark.sql("CREATE TABLE traced_ids (id CHAR(40), amount INT) USING parquet")
    spark.sql(f"INSERT INTO traced_ids VALUES ('{OWN}', 1), ('{OWN[:-1]}8', 2)")
    assert [(row.amount, row.trace) for row in spark_ext.trace(OWN, spark.table("traced_ids")).collect()] == [
        (1, "message")
    ]


@pytest.mark.details
def test_shop_on_spark_has_each_row_of_its_parcel(spark):
    """Rows of Kafka become messages; the parcel has a redelivery, a dead letter and a redrive; another one is lost."""
    own = [{"key": "message_id", "value": OWN.lower().encode()}]
    places = [("orders", 699, []), ("orders", 702, own), ("orders", 704, own), ("orders.dead", 9, own),
              ("orders", 900, own)]  # fmt: skip
    rows = [(topic, 1, offset, 1_700_000_000, b"shop 5", b"parcel", headers) for topic, offset, headers in places]
    kafka = spark.createDataFrame(
        rows,
        "topic string, partition int, offset long, seconds long, key binary, value binary, "
        "headers array<struct<key: string, value: binary>>",
    ).withColumn("timestamp", F.timestamp_seconds("seconds"))
    messages = spark_ext.messages(kafka, "kafka")
    assert {(row.topic, row.offset, row.trace) for row in spark_ext.trace(OWN.lower(), messages).collect()} == {
        (topic, offset, "message") for topic, offset, headers in places if headers
    }
    assert spark_ext.trace("orders/1:700", messages).count() == 0
    assert [row.offset for row in spark_ext.trace("orders/1:699", messages).collect()] == [699]
    parcel = str(msgid.derive_id(OWN, "output 0"))
    outputs = spark.createDataFrame([(parcel, OWN), ("other", "else")], "id string, input_id string")
    assert [row.trace for row in spark_ext.trace(OWN, outputs).collect()] == ["output 0"]
