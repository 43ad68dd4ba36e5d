"""The stream source of segment files on a folder that a writer appends to and cleaners delete from."""

import random

import pytest
from helpers.soak import Soak, SparkReader

from msgid import iggy
from spark_ext.formats.iggy_source import IggyDataSource

pytestmark = [pytest.mark.spark, pytest.mark.soak]
LAYOUTS = [name for name, facts in iggy.LAYOUTS.items() if facts.checksum]


def reader(spark, tmp_path):
    spark.dataSource.register(IggyDataSource)
    return lambda folder: SparkReader(spark, folder, tmp_path / "out", tmp_path / "checkpoint")


@pytest.mark.parametrize("seed", range(2))
def test_soak_of_a_stream_with_restarts_reads_every_message_once_or_reports_it(spark, tmp_path, seed):
    """Each read is a separate query that starts from the checkpoint."""
    Soak(tmp_path / "in", random.Random(seed), reader(spark, tmp_path), LAYOUTS[:3]).run(150)


def test_soak_of_a_stream_beside_threads_reads_every_message_once_or_reports_it(spark, tmp_path):
    """Segments are deleted while the stream plans and reads them."""
    Soak(tmp_path / "in", random.Random(3), reader(spark, tmp_path), LAYOUTS[:3]).run_threads(90)
