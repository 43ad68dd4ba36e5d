"""`spark_ext.trace`: the rows of one message, by filters that files are skipped by."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


def test_files_without_the_message_are_not_read(spark, tmp_path):
    """The pages of the other files are overwritten: a query that read them would fail. Their statistics stay."""
    for number in range(5):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"id": [f"{OWN[:-3]}{number}{n:02X}" for n in range(50)]}), path, compression="zstd")
        if number != 0:
            raw = bytearray(path.read_bytes())
            end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
            raw[4:end] = b"\xff" * (end - 4)
            path.write_bytes(raw)
    df = spark.read.parquet(str(tmp_path))
    assert spark_ext.trace(OWN, df).count() == 1
    with pytest.raises(Exception, match=r"(?i)parquet|corrupt|page"):
        df.agg({"id": "max"}).where("`max(id)` = ''").collect()


def test_table_that_cannot_be_searched_is_refused(spark):
    """A number is not an ID."""
    with pytest.raises(ValueError, match="cast it"):
        spark_ext.trace(OWN, spark.createDataFrame([(5,)], "id int"))
