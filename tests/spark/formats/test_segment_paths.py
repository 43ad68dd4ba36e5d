"""Iggy's names in the paths of segments: the same as by regular expressions."""

import random
import re

import pytest
from pyspark.sql import functions as F

from spark_ext.formats._segment_paths import segment_path

pytestmark = pytest.mark.spark

IN_PATH = re.compile(r"streams/([^/]+)/topics/([^/]+)/partitions/([0-9]{1,9})/[^/]*\Z")
SEGMENT = re.compile(r"(?:\A|/)0*([0-9]{1,18})\.log\Z")
PARTS = ("streams", "mystreams", "topics", "partitions", "1", "orders", "é%20", "123456789", "1234567890", "")
NAMES = (f"{0:020d}.log", f"{17:020d}.log", "1.2.log", "9" * 19 + ".log", "x.log", ".log", "5.index", "7")


def expected(path):
    """Return the names by regular expressions."""
    found, number = IN_PATH.search(path), SEGMENT.search(path)
    stream, topic, partition = found.groups() if found else (None, None, None)
    folder, slash, _ = path.rpartition("/")
    segment = int(number[1]) if number else None
    return stream, topic, None if partition is None else int(partition), folder if slash else path, segment


def test_segment_path_of_any_path_has_the_names_that_its_folders_give(spark):
    """Folders of other names, too few of them, and numbers that are too long give NULL."""
    chance = random.Random(7)
    paths = ["s3://b/streams/1/topics/2/partitions/3/00000000000000000004.log", "streams/1/topics/2/partitions/3/5.log"]
    for _ in range(500):
        made = ["streams", "1", "topics", "2", "partitions", "3"]
        for _ in range(chance.randrange(3)):
            made[chance.randrange(6)] = chance.choice(PARTS)
        paths.append("/".join([*chance.choice((["", "a"], [], ["s3:", "", "b"])), *made, chance.choice(NAMES)]))
        paths.append("/".join([*chance.choices(PARTS, k=chance.randrange(4)), chance.choice(NAMES)]))
    columns = segment_path(F.col("file"))
    df = spark.createDataFrame([(path,) for path in paths], ["file"]).select("file", *columns)
    assert {row[0]: tuple(row[1:]) for row in df.collect()} == {path: expected(path) for path in paths}
