"""A writer, cleaners and a reader on one folder: no message is read twice, and none is lost without a report."""

import random

import pytest
from helpers.soak import FolderReader, Soak

from msgid import iggy

pytest.importorskip("pyarrow")
LAYOUTS = [name for name, facts in iggy.LAYOUTS.items() if facts.checksum]


@pytest.mark.parametrize("seed", range(3))
def test_soak_of_300_steps_reads_every_message_once_or_reports_it(tmp_path, seed):
    """Every message is read once or reported, also after restarts; the seed decides the order of the steps."""
    soak = Soak(tmp_path, random.Random(seed), FolderReader, LAYOUTS)
    soak.run(300)
    assert soak.kills > 5
    assert soak.removals > 5
    assert len(soak.delivered) > 100


def test_soak_of_threads_for_2_seconds_reads_every_message_once_or_reports_it(tmp_path):
    """Two cleaners, a writer and a reader at the same time."""
    soak = Soak(tmp_path, random.Random(4), FolderReader, LAYOUTS[:3])
    soak.run_threads(2)
    assert soak.removals > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_soak_of_5_000_steps_reads_every_message_once_or_reports_it(tmp_path, seed):
    """The run is long enough that every partition is deleted and written many times."""
    Soak(tmp_path, random.Random(100 + seed), FolderReader, LAYOUTS).run(5_000)


@pytest.mark.soak
def test_soak_of_threads_for_3_minutes_reads_every_message_once_or_reports_it(tmp_path):
    """Two cleaners, a writer and a reader at the same time."""
    Soak(tmp_path, random.Random(5), FolderReader, LAYOUTS).run_threads(180)
