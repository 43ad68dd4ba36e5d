"""The layout numbers that C repeats: a core with a different number is not used."""

from types import SimpleNamespace

import pytest

from msgid import layout
from msgid.ids import _native

NUMBERS = _native._layout()


@pytest.fixture(autouse=True)
def _wanted(monkeypatch):
    """Make the environment request the compiled core."""
    monkeypatch.setenv("MSGID_PURE", "")


def test_core_with_the_same_numbers_is_used(monkeypatch):
    monkeypatch.setattr(_native, "_speedups", SimpleNamespace(LAYOUT=dict(NUMBERS)), raising=False)
    assert _native._load() == (_native._speedups, "")


def test_source_with_one_other_number_does_not_use_the_core(monkeypatch):
    """If a number changes only in `msgid.layout`, an older core is not used."""
    monkeypatch.setattr(_native, "_speedups", SimpleNamespace(LAYOUT=dict(NUMBERS)), raising=False)
    for name in _native._NUMBERS:
        with monkeypatch.context() as patched:
            patched.setattr(layout, name, getattr(layout, name) + 1)
            assert _native._load()[0] is None
    for name in _native._PLACES:
        field = layout.FIELDS[name]
        for other in (field._replace(start=field.start - 1), field._replace(stop=field.stop + 1)):
            with monkeypatch.context() as patched:
                patched.setitem(layout.FIELDS, name, other)
                assert _native._load()[0] is None


@pytest.mark.skipif(_native.native is None, reason="the compiled core is not there, or not wanted")
def test_core_repeats_every_number():
    assert _native.native.LAYOUT == NUMBERS
