"""Rows of segments written as segments again, in every layout: no message is changed, and none becomes unreadable."""

import random
from dataclasses import replace

import pytest
from helpers.iggy_files import messages

from msgid import iggy
from msgid.iggy._records.encoding import own_checksum

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
    made = [
        replace(one, headers={key: value for key, value in one.headers.items() if isinstance(key, str)})
        for one in messages(random.Random(given + to), given, 20)
    ]
    made = [replace(one, checksum=own_checksum(one, given)) for one in made]
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
    made = [iggy.Message.new(b"x", id=1, offset=n, layout="m45") for n in range(3)]
    source = written(tmp_path / "in", made, "m45")
    (file,) = source.iterdir()
    file.write_bytes(file.read_bytes() + b"half")
    with pytest.raises(ValueError, match="cannot write a row as a message: invalid message: half a message of 4 bytes"):
        rewrite(source, "m45", tmp_path / "out", "m45")


def test_header_key_that_may_not_be_text_is_refused(tmp_path):
    """A row has the text int32:5 for the number 5, too: another message would be written."""
    key = iggy.HeaderKey.of(5, iggy.HeaderKind.INT32)
    source = written(tmp_path / "in", [iggy.Message.new(b"x", id=1, headers={key: 1}, layout="h64")], "h64")
    with pytest.raises(
        ValueError, match="cannot write the header 'int32:5' of offset 0: its key may be of another kind"
    ):
        rewrite(source, "h64", tmp_path / "out", "h64")


@pytest.mark.parametrize("offsets", [(5, 4), (3, 3), (0, 1, 2, 1), (2, 0)])
def test_rows_whose_offsets_do_not_rise_are_refused(offsets, tmp_path):
    """The offsets of a log rise."""
    table = iggy.decode_table(
        iggy.encode_log([iggy.Message.new(b"x", id=1, offset=n, layout="m45") for n in offsets], "m45")
    ).table
    writer = IggyWriter(str(tmp_path), "m45", False)
    with pytest.raises(ValueError, match=r"offset \d comes after \d: sort rows by offset"):
        writer.write(iter([table.slice(n, 1) for n in range(len(offsets))]))
    assert list(tmp_path.iterdir()) == []


def test_rows_of_two_logs_are_refused(tmp_path):
    """A segment holds messages of one partition, within a task and among tasks."""
    sources = [
        written(tmp_path / name, [iggy.Message.new(b"x", id=1, offset=n, layout="m45")], "m45")
        for n, name in enumerate("ab")
    ]
    both = [batch for source in sources for batch in batches(source, "m45")]
    writer = IggyWriter(str(tmp_path / "out"), "m45", False)
    with pytest.raises(ValueError, match="cannot write messages of two logs to one folder"):
        writer.write(iter(both))
    with pytest.raises(ValueError, match="cannot write messages of two logs to one folder"):
        writer.commit([writer.write(iter([batch])) for batch in both])
    assert list((tmp_path / "out").iterdir()) == []
