"""Iggy's names in the paths of segments: the same as by the folders of the path, counted from its end."""

import random

import pytest

from spark_ext.formats._iggy_files import segment_names

PARTS = ("streams", "mystreams", "topics", "partitions", "1", "orders", "é%20", "123456789", "1234567890", "", "١")
NAMES = (
    f"{0:020d}.log",
    f"{17:020d}.log",
    "1.2.log",
    "9" * 18 + ".log",
    "9" * 19 + ".log",
    "x.log",
    ".log",
    "7",
    "١.log",
)


def is_number(text):
    """Check whether a text has only the digits 0 to 9."""
    return text != "" and all(character in "0123456789" for character in text)


def expected(path):
    """Return the source and the names by the folders."""
    *folders, name = path.split("/")
    stem = name.removesuffix(".log")
    segment = int(stem) if name.endswith(".log") and is_number(stem) and int(stem) < 10**18 else None
    if len(folders) >= 6:
        streams, stream, topics, topic, partitions, partition = folders[-6:]
        is_named = streams.endswith("streams") and (topics, partitions) == ("topics", "partitions")
        if is_named and stream and topic and is_number(partition) and len(partition) <= 9:
            return f"iggy:{stream}/{topic}#{int(partition)}", stream, topic, int(partition), segment
    return "iggy:" + ("/".join(folders) or path), None, None, None, segment


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("s3://b/streams/1/topics/2/partitions/3/00000000000000000004.log", ("iggy:1/2#3", "1", "2", 3, 4)),
        ("streams/shop/topics/orders/partitions/0/5.log", ("iggy:shop/orders#0", "shop", "orders", 0, 5)),
        ("/data/00000000000000000004.log", ("iggy:/data", None, None, None, 4)),
        ("streams/1/topics/2/partitions/x/1.log", ("iggy:streams/1/topics/2/partitions/x", None, None, None, 1)),
        ("5.log", ("iggy:5.log", None, None, None, 5)),
        ("streams/1/topics/2/partitions/3/1.index", ("iggy:1/2#3", "1", "2", 3, None)),
        ("streams/1/topics/2/partitions/3/new\nline.log", ("iggy:1/2#3", "1", "2", 3, None)),
    ],
)
def test_segment_names_of_a_path_are_those_of_its_folders(path, names):
    """Stream, topic, partition and first offset are in the path; a name that is not there is None."""
    assert segment_names(path) == names == expected(path)


def test_segment_names_of_any_path_are_those_of_its_folders():
    """Folders of other names, too few of them, and numbers that are too long give None."""
    chance = random.Random(7)
    for _ in range(3000):
        made = ["streams", "1", "topics", "2", "partitions", "3"]
        for _ in range(chance.randrange(3)):
            made[chance.randrange(6)] = chance.choice(PARTS)
        inside = "/".join([*chance.choice((["", "a"], [], ["s3:", "", "b"])), *made, chance.choice(NAMES)])
        outside = "/".join([*chance.choices(PARTS, k=chance.randrange(4)), chance.choice(NAMES)])
        for path in (inside, outside):
            assert segment_names(path) == expected(path), path
