"""Contents compare as values, in Python and as Arrow columns."""

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import combinations

import pytest

from msgid.shared.contents import codes, fingerprint

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
EQUAL = [
    (-0.0, 0.0),
    (float("nan"), -float("nan")),
    ({"a": 1, "b": None}, {"b": None, "a": 1}),
    ([{"x": -0.0}], [{"x": 0.0}]),
    (Decimal("1.50"), Decimal("1.5")),
    (Decimal("-0.0"), Decimal("0E+3")),
    (bytearray(b"\xff"), b"\xff"),
    (NOON, NOON.astimezone(timezone(timedelta(hours=5)))),
]
OTHER = [
    *(None, "", b"", [], {}, [None], [""], [[]], {"": None}, {"": ""}, "a", b"a", b"\xff", b"\xfe", "\udcff"),
    *(0, 1, -1, 10**30, True, False, 0.5, float("nan"), float("inf"), -float("inf"), Decimal(1), Decimal(10)),
    *(Decimal("1" * 38), Decimal("1" * 37 + "2"), Decimal("NaN"), NOON, NOON.replace(tzinfo=None), NOON.date()),
    *(NOON.time(), NOON - NOON, [["a"], []], [[], ["a"]], ["a", ""], ["", "a"], ["s1:a"], {"a": 1}, {"a": 2}),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_values_have_one_fingerprint(one, other):
    assert fingerprint(one) == fingerprint(other)
    assert len(fingerprint(one)) == 16


def test_other_values_have_other_fingerprints():
    """Any two values that differ have different fingerprints, alone and inside an array."""
    for one, other in combinations(OTHER, 2):
        assert fingerprint(one) != fingerprint(other), (one, other)
        assert fingerprint([one]) != fingerprint([other]), (one, other)


def test_value_without_canonical_form_raises():
    with pytest.raises(TypeError, match="value must have a canonical form, got object"):
        fingerprint([object()])


STRUCT = pa.struct([("x", pa.float64()), ("y", pa.binary())])
COLUMNS = [
    (pa.float64(), [0.0, -0.0, None, float("nan"), float("nan"), 1.0], [0, 0, -1, 1, 1, 2]),
    (pa.float32(), [0.0, -0.0, None, 0.5], [0, 0, -1, 1]),
    (pa.string(), ["", None, "a", "a"], [0, -1, 1, 1]),
    (pa.binary(), [b"\xff", b"\xfe", b"\xff", None], [0, 1, 0, -1]),
    (pa.null(), [None, None], [-1, -1]),
    (
        pa.map_(pa.string(), pa.float64()),
        [[("a", 0.0), ("b", 1.0)], [("b", 1.0), ("a", -0.0)], [], None],
        [0, 0, 1, -1],
    ),
    (pa.list_(pa.list_(pa.string())), [[["a"], []], [[], ["a"]], [[], ["a"]], [None], None], [0, 1, 1, 2, -1]),
    (STRUCT, [{"x": -0.0, "y": None}, {"x": 0.0, "y": None}, {"x": None, "y": None}, None], [0, 0, 1, -1]),
    (pa.list_(pa.map_(STRUCT, pa.int8())), [[[({"x": 0.0, "y": b""}, 1)]], [[({"x": -0.0, "y": b""}, 1)]]], [0, 0]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a", None], [0, 1, 0, -1]),
    (pa.timestamp("ns"), [1, 2, 1, None], [0, 1, 0, -1]),
    (pa.list_(pa.timestamp("ns")), [[1], [2], [1], None], [0, 1, 0, -1]),
]


@pytest.mark.parametrize(("type", "values", "expected"), COLUMNS, ids=[str(type) for type, _, _ in COLUMNS])
@pytest.mark.parametrize("chunks", [1, 2])
def test_codes_of_a_column_are_equal_for_equal_values(type, values, expected, chunks):
    column = pa.chunked_array([pa.array(values, type)] * chunks, type)
    assert codes(column).tolist() == expected * chunks
