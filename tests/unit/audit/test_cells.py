"""Generators from cells, as the driver of Spark audits them, have the runs, gaps and steps of their single IDs."""

import random

import pytest

from msgid import layout

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
runs = pytest.importorskip("msgid.audit._runs")
read_ids = pytest.importorskip("msgid.audit._ids").read_ids
_cells = pytest.importorskip("spark_ext.auditing._cells")
clusters = pytest.importorskip("helpers.clusters")

JUMP = 86_400


def grouped(points):
    """The cells and words of IDs, as Spark groups them."""
    cells, words = {}, {}
    for generator, second, number in zip(*(column.tolist() for column in points), strict=True):
        cells.setdefault((generator, number >> 16, second), []).append(number)
        word = (generator, number >> 16, second, number >> 5)
        words[word] = words.get(word, 0) | 1 << (number & 31)
    rows = [(*key, min(held), max(held), len(held)) for key, held in cells.items()]
    random.Random(3).shuffle(rows)
    return _cells.Cells(*np.array(rows, np.int64).T), words


def read(words, blocks):
    chosen = {tuple(block) for block in blocks.tolist()}
    rows = [(key[0], key[2], key[3], mask) for key, mask in words.items() if key[:2] in chosen]
    return _cells.Words(*(np.array(rows, np.int64).reshape(-1, 4).T))


def listed(shown):
    return [sorted(zip(*(column.tolist() for column in part), strict=True)) for part in shown]


def same(points):
    cells, words = grouped(points)
    simple = _cells.shown_by_cells(cells, JUMP)
    more = _cells.shown_by_words(read(words, simple.torn), read(words, simple.short), JUMP)
    assert listed(_cells.joined(simple.shown, more)) == listed(runs.shown_by(points, JUMP))
    return simple


def points_of_ids(texts):
    ids = read_ids(pa.chunked_array([texts]))
    a, b, _ = ids.keys
    pairs = np.unique(np.stack([a[ids.is_v1], b[ids.is_v1]], axis=1), axis=0)
    _, codes = runs.named_by(pairs[:, 0])
    seconds = (pairs[:, 1] >> np.uint64(32)).astype(np.int64) + layout.EPOCH_UNIX
    return runs.Points(codes, seconds, (pairs[:, 1] & np.uint64(layout.UINT32_MASK)).astype(np.int64))


def test_cells_of_simulated_generators_show_what_their_ids_show():
    """Restarts, clock steps, shared addresses and losses follow from cells and the words of the blocks they name."""
    torn = short = 0
    for seed in range(60):
        cluster = clusters.simulated(seed)
        simple = same(points_of_ids(pa.array(cluster.columns()["id"])))
        torn, short = torn + len(simple.torn), short + len(simple.short)
    assert torn
    assert short


def test_cells_across_blocks_and_far_runs_show_what_their_ids_show():
    """Losses across blocks of 65,536 numbers, runs far apart and a second of two runs follow from cells too."""
    near = [(0, 1 + n // 30_000, n) for n in range(60_000, 70_000) if not 65_500 <= n < 65_600]
    lost_block = [(1, 9 + n // 100_000, n) for n in (*range(100), *range(200_000, 200_100))]
    far = [(2, 5, n) for n in (1, 2, 4, (1 << 20) + 10, (1 << 20) + 11)]
    both = [(3, 5, n) for n in (7, 9, 50_000_000, 50_000_002)] + [(3, 200_000, n) for n in (10, 50_000_003)]
    back = [(4, 100 - n, n) for n in range(50)] + [(4, 300, n) for n in range(20)]
    points = runs.Points(*np.array([*near, *lost_block, *far, *both, *back], np.int64).T)
    simple = same(points)
    assert simple.ids < len(points.seconds)
    assert set(simple.torn[:, 0].tolist()) == {4}
