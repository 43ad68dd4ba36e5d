"""Parquet, Delta without its JAR and a small format pass the tests of `spark_ext.testing`."""

import json
from typing import ClassVar
from uuid import uuid4

import pytest
from pyspark.sql.types import StructType

import spark_ext
from spark_ext.tables.table_formats import table_format
from spark_ext.testing import TableFormatTests

pytestmark = pytest.mark.spark


class TestParquet(TableFormatTests):
    """One folder per batch."""

    format = table_format("parquet")
    options: ClassVar = {"partition_by": ("k",)}


class TestDelta(TableFormatTests):
    """The package `deltalake` commits the files of Spark."""

    format = table_format("delta")
    options: ClassVar = {"partition_by": ("k",)}


class Orc(spark_ext.TableFormat):
    """Each batch is a folder of ORC files, which a rename makes visible."""

    name = "orc"

    def is_table(self, path):
        files, folder = self.filesystem(path)
        return files.get_file_info(f"{folder}/_orc_table").is_file

    def is_written(self, batch_id, path, writer):
        files, folder = self.filesystem(path)
        return files.get_file_info(f"{folder}/{writer.name}-{batch_id}/_SUCCESS").is_file

    def write_batch(self, df, batch_id, path, writer, partition_by, storage_options):
        if self.is_written(batch_id, path, writer):
            return False
        return self.write_part(df, path, f"{writer.name}-{batch_id}")

    def write_rows(self, df, path, mode, partition_by):
        files, folder = self.filesystem(path)
        if mode == "error" and self.is_table(path):
            raise FileExistsError(path)
        if mode == "overwrite":
            files.delete_dir(folder)
        self.write_part(df, path, f"rows-{uuid4().hex}")

    def write_part(self, df, path, part):
        files, folder = self.filesystem(path)
        if self.is_table(path) and self.read(df.sparkSession, path, None).dtypes != df.dtypes:
            raise spark_ext.TableConflict(f"cannot write to {path}: the columns must stay as they are")
        hidden = f".writing-{uuid4().hex}"
        df.write.orc(f"{path}/{hidden}")
        with files.open_output_stream(f"{folder}/_orc_table") as out:
            out.write(df.schema.json().encode())
        try:
            files.move(f"{folder}/{hidden}", f"{folder}/{part}")
        except OSError:  # another driver was first
            files.delete_dir(f"{folder}/{hidden}")
            return False
        return True

    def read(self, spark, path, storage_options):
        files, folder = self.filesystem(path)
        with files.open_input_file(f"{folder}/_orc_table") as file:
            columns = file.read().decode()
        return spark.read.schema(StructType.fromJson(json.loads(columns))).orc(f"{path}/*")


class TestSmallFormat(TableFormatTests):
    """A format in one class."""

    format = Orc()
