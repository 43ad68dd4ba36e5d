"""The order in which `process` handles the messages of a key in one micro-batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")
pytest.importorskip("numpy")

from spark_ext.streaming._processing.handling import in_order

COLUMNS = [st.integers(), st.floats(), st.text(), st.binary(), st.decimals(), st.datetimes(), st.lists(st.integers())]
ARRIVALS = st.sampled_from(COLUMNS).flatmap(
    lambda values: st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.tuples(st.none() | values)), min_size=1, max_size=6
    )
)


@given(ARRIVALS, st.randoms(use_true_random=False))
def test_order_of_messages_does_not_depend_on_the_order_of_rows(arrivals, chance):
    """Two rows of one ID and time with other bodies: in each run one of them is handled first, by its body."""
    shuffled = chance.sample(arrivals, len(arrivals))
    assert list(map(repr, in_order(shuffled, ["x"]))) == list(map(repr, in_order(arrivals, ["x"])))


@given(ARRIVALS)
def test_messages_are_ordered_by_time_and_id_first(arrivals):
    """Bodies decide only between messages of one time and ID."""
    assert [one[:2] for one in in_order(arrivals, ["x"])] == sorted(one[:2] for one in arrivals)
