"""Every sink over every type of Spark with its edge values, through a crash and a replay in another time zone."""

import pytest
from helpers.edges import CASES, ZONES, edge_rows, plain_rows, session_zone

import spark_ext as ids
from spark_ext.tables import delta, parquet

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_write_once_keeps_every_value(spark, tmp_path, monkeypatch, format):
    """Each row is in the table once and unchanged, after a crash before the commit and a replay in another zone."""
    path, rows = str(tmp_path / "table"), edge_rows(spark)
    expected = plain_rows(rows.toArrow())
    home, commit = {"parquet": (parquet, "_rename"), "delta": (delta, "_commit")}[format]
    for zone, crashes in ((ZONES[0], True), (ZONES[1], False), (ZONES[2], False)):
        with session_zone(spark, zone), monkeypatch.context() as patch:
            if crashes:
                patch.setattr(home, commit, lambda *_: (_ for _ in ()).throw(OSError("the driver is killed")))
                with pytest.raises(OSError, match="is killed"):
                    ids.write_once(rows, 0, path, format=format, app_id="a")
            else:
                assert ids.write_once(rows, 0, path, format=format, app_id="a") is (zone == ZONES[1])
    read = ids.read_table(spark, path).select(*(f"`{name.replace('`', '``')}`" for name in rows.columns))
    assert plain_rows(read.toArrow()) == expected
    assert len(expected) == len(CASES)
