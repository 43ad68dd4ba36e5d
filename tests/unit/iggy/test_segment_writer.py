"""Rows of segments written as segments again, in every layout: no message is changed, and none becomes unreadable."""

import random

import pytest
from helpers.iggy_files import messages

from msgid import iggy

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from spark_ext.formats._iggy_writer import IggyWriter
from spark_ext.formats.iggy_source import IggyReader

LAYOUTS = list(iggy.LAYOUTS)
SAME = ("offset", "timestamp", "id", "payload")


def written(folder, made, layout):
    folder.mkdir()
    (folder / f"{made[0].offset:020d}.log").write_bytes(iggy.encode_log(made, layout))
    return folder


def batches(folder, layout):
    reader = IggyReader({"path": str(folder), "layout": layout})
    return [batch for part in reader.partitions() for batch in reader.read(part)]


def rows(folder, layout):
    return [row for batch in batches(folder, layout) for row in batch.to_pylist()]


def rewrite(source, given, target, layout):
    writer = IggyWriter(str(target), layout, False)
    writer.commit([writer.write(iter(batches(source, given)))])


@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("given", LAYOUTS)
def test_rows_of_a_layout_are_written_in_another(given, to, tmp_path):
    """The written messages are read again, with right checksums."""
    made = messages(random.Random(given + to), given, 20)
    rewrite(written(tmp_path / "in", made, given), given, tmp_path / "out", to)
    before, after = rows(tmp_path / "in", given), rows(tmp_path / "out", to)
    assert [[row[name] for name in SAME] for row in after] == [[row[name] for name in SAME] for row in before]
    assert [[value for _, value in row["headers"]] for row in after] == [
        [value for _, value in sorted(row["headers"])] for row in before
    ]
    assert {row["layout"] for row in after} == {to}
    assert all(row["checksum_ok"] is not False for row in after)


@pytest.mark.parametrize("given", LAYOUTS[1:])
@pytest.mark.parametrize("to", LAYOUTS)
def test_wrong_checksum_is_kept_or_refused(given, to, tmp_path):
    """Damage is not hidden by a new checksum."""
    made = [iggy.Message.new(b"x" * 50, id=n + 1, offset=n, timestamp=5, layout=given) for n in range(3)]
    source = written(tmp_path / "in", made, given)
    (file,) = source.iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    if given == to and given in ("m45", "batch24"):
        rewrite(source, given, tmp_path / "out", to)
        assert [row["checksum_ok"] for row in rows(tmp_path / "out", to)] == [True, True, False]
    else:
        with pytest.raises(ValueError, match=r"cannot write the message of offset [02] in the layout"):
            rewrite(source, given, tmp_path / "out", to)
        assert list((tmp_path / "out").glob("*.log")) == []


def test_row_that_is_not_a_message_is_refused(tmp_path):
    """The error has the reason of the row."""
    made = [iggy.Message.new(b"x", id=1, offset=n) for n in range(3)]
    source = written(tmp_path / "in", made, "m45")
    (file,) = source.iterdir()
    file.write_bytes(file.read_bytes() + b"half")
    with pytest.raises(ValueError, match="cannot write a row as a message: invalid message: half a message of 4 bytes"):
        rewrite(source, "m45", tmp_path / "out", "m45")
