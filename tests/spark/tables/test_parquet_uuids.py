"""UUIDs in Parquet files and Delta tables of other writers: text with dashes on Spark, whatever the first file says."""

import uuid

import pytest
from pyspark.sql import Row

import spark_ext
from spark_ext.jobs._input import BadInput, read_rows

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

UUIDS = [uuid.UUID(int=0xF47AC10B58CC4372A5670E02B2C3D479 + n) for n in range(4)]
TEXTS = [*map(str, UUIDS)]
RAW = [one.bytes for one in UUIDS]
ID = "0156F7E71C361B21BC024CCDBE00000007"


def uuids(values):
    return pa.array(values, pa.uuid())


def readers(spark, folder):
    """Return both functions that read foreign files."""
    return {"job": lambda: read_rows(spark, folder, "parquet"), "table": lambda: spark_ext.read_table(spark, folder)}


def test_uuids_are_text_beside_columns_of_every_type(spark, tmp_path):
    """Spark cannot infer the schema of such a file, so the other columns have the types that it would infer."""
    others = {
        "id": pa.array([ID, None]), "flag": pa.array([True, None]), "tiny": pa.array([1, 2], pa.int8()),
        "small": pa.array([1, 2], pa.uint8()), "wide": pa.array([1, 2], pa.uint64()), "real": pa.array([1.5, None]),
        "single": pa.array([1.5, None], pa.float32()), "day": pa.array([1, 2], pa.date32()),
        "amount": pa.array([1, 2], pa.decimal128(20, 2)), "at": pa.array([1, 2], pa.timestamp("us", "UTC")),
        "local": pa.array([1, 2], pa.timestamp("us")), "raw": pa.array([b"x", None]),
        "tags": pa.array([["a"], None]), "extra": pa.array([{"a": 1}, None]),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "kind": pa.array(["a", "a"]).dictionary_encode(), "none": pa.nulls(2),
    }  # fmt: skip
    plain, typed = str(tmp_path / "plain"), str(tmp_path / "typed")
    for folder, more in ((plain, {}), (typed, {"order": uuids([RAW[0], None])})):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table(others | more), f"{folder}/a.parquet")
    for name, read in readers(spark, typed).items():
        rows = read()
        assert rows.drop("order").schema == readers(spark, plain)[name]().schema
        assert [row.order for row in rows.sort("tiny").collect()] == [TEXTS[0], None]
        assert rows.drop("order").sort("tiny").collect() == spark.read.parquet(plain).sort("tiny").collect()


@pytest.mark.details
@pytest.mark.parametrize("first", ["typed", "bytes"])
def test_a_column_is_of_uuids_if_any_file_of_the_folder_says_so(spark, tmp_path, first):
    """Bytes of other lengths have their own identity."""
    (tmp_path / "day=1").mkdir()
    typed = pa.table({"id": uuids(RAW[:2])})
    bare = pa.table({"id": pa.array([*RAW[2:], bytes.fromhex(ID)], pa.binary())})
    tables = (typed, bare) if first == "typed" else (bare, typed)
    for place, table in enumerate(tables):
        pq.write_table(table, tmp_path / "day=1" / f"{place}.parquet")
    for read in readers(spark, str(tmp_path)).values():
        rows = read()
        assert sorted(row.id for row in rows.collect()) == sorted([*TEXTS, ID])
        assert {str(row.day) for row in rows.collect()} == {"1"}
        report = spark_ext.compare(spark.createDataFrame([Row(id=one) for one in [*TEXTS, ID]]), rows)
        assert report.findings.collect() == []


def test_columns_that_are_not_read_beside_uuids_are_named(spark, tmp_path):
    for name, table, message in (
        ("nested", {"o": pa.StructArray.from_arrays([uuids(RAW[:1])], ["id"])}, "'o.id' is of UUIDs inside"),
        ("time", {"id": uuids(RAW[:1]), "t": pa.array([1], pa.time64("us"))}, "'t' is of time64"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        pq.write_table(pa.table(table), folder / "a.parquet")
        with pytest.raises(BadInput, match=message):
            read_rows(spark, str(folder), "parquet")
    folder = tmp_path / "mixed"
    folder.mkdir()
    pq.write_table(pa.table({"id": uuids(RAW[:1])}), folder / "a.parquet")
    pq.write_table(pa.table({"id": TEXTS[:1]}), folder / "b.parquet")
    with pytest.raises(ValueError, match=r"'id' has several types in its files: binary and string \(UUIDs\)"):
        spark_ext.read_table(spark, str(folder))


@pytest.mark.details
def test_uuids_of_a_delta_table_of_delta_rs_are_text(spark, tmp_path):
    """Its log says binary; only the Arrow schema in the footers says UUID."""
    deltalake = pytest.importorskip("deltalake")
    folder = str(tmp_path / "t")
    deltalake.write_deltalake(folder, pa.table({"id": uuids(RAW)}))
    rows = spark_ext.read_table(spark, folder)
    assert sorted(row.id for row in rows.collect()) == sorted(TEXTS)
    assert spark_ext.compare(spark.createDataFrame([(one,) for one in TEXTS], "id string"), rows).findings.count() == 0
