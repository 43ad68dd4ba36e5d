"""States as they are stored: whole, or as differences to one base state."""

import random

from hypothesis import given
from hypothesis import strategies as st

from msgid.processing import Append, SqliteStore
from msgid.processing._sql import Held, rows_of
from msgid.processing.store import pack, unpack
from msgid.testing import add, entry


@given(st.binary(max_size=2000), st.binary(max_size=2000))
def test_pack_is_undone_by_unpack(state, base):
    """Whole or as differences: every state comes back."""
    assert unpack(pack(state)) == state
    assert unpack(pack(state, base), base) == state


@given(st.lists(st.binary(max_size=600), min_size=1, max_size=30), st.integers(0, 5), st.integers(1, 4))
def test_differences_are_to_one_base_of_bounded_age(states, deltas, each):
    """A state before a message is read in two steps, however many entries an append has or came before."""
    held, version, before, bases = Held(None, None, None), 0, None, {}
    for start in range(0, len(states), each):
        entries = [entry(str(number), state) for number, state in enumerate(states[start : start + each])]
        rows = rows_of(Append("key", version, before, entries, held), deltas)
        bases |= {number: unpack(state) for number, state in rows.bases}
        for (_, made, *_, base, packed, _), expected in zip(rows.entries, [before, *states[start:]], strict=False):
            assert (None if packed is None else unpack(packed, bases.get(base))) == expected
            assert base is None or (deltas and 0 <= made - 1 - base <= deltas)
        version, packed, base = rows.head
        before = entries[-1].state
        assert unpack(packed) == before
        held = Held(packed, base, bases.get(base))


def test_deltas_take_less_room(tmp_path):
    """Large states with small differences take a fraction of the file, and bases go with their entries."""
    sizes = []
    for deltas in (0, 50):
        path = tmp_path / f"{deltas}.db"
        store = SqliteStore(path, deltas=deltas)
        state = random.Random(1).randbytes(16_000)
        for number in range(100):
            add(store, f"id{number}", state + b"%d" % number, stored_at=number)
        assert store.forget(70) == 70
        kept = store._connection().execute("SELECT count(*) FROM msgid_bases").fetchone()[0]
        assert kept <= (2 if deltas else 0)
        store.close()
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0] / 2
