"""Examples of UUIDs that were not written for this library have the right counts."""

import uuid

import pytest
from helpers.documented_uuids import EXAMPLES, selectors_object

for _name in ("numpy", "pyarrow", "duckdb", "polars"):
    pytest.importorskip(_name)
audit = pytest.importorskip("msgid.audit")


def counts(report):
    return [(one.check, one.count) for one in report.findings]


def texts(frame):
    """Return the values of the column of UUIDs, as the package itself reads them."""
    import pyarrow as pa

    column = pa.table(frame.select("id") if hasattr(frame, "to_series") else frame)["id"]
    return [uuid.UUID(bytes=one) if isinstance(one, bytes) else one for one in column.to_pylist()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_documented_example_of_uuids_has_the_right_counts(name):
    """All rows are IDs, none is twice, and the one that the other side lacks is found."""
    rows, whole, rest, _ = EXAMPLES[name]()
    report = audit.audit_table(whole, id="id")
    assert (report.rows, counts(report)) == (rows, [])
    assert counts(audit.audit_ids([str(one) for one in texts(whole)] * 2)) == [("duplicate_ids", rows)]
    assert counts(audit.compare(whole, whole, id="id")) == []
    assert counts(audit.compare(whole, rest, id="id")) == [("lost_messages", 1)]
    assert counts(audit.compare(rest, whole, id="id")) == [("extra_messages", 1)]


def test_documented_column_of_objects_is_refused_by_its_name():
    with pytest.raises(ValueError, match=r"'uuid_obj' is of the type Object.* of Polars: cast it to text"):
        audit.audit_table(selectors_object().whole, id="uuid_obj")
