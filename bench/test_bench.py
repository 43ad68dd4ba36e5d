"""Benchmarks for pytest-benchmark: the time of each operation, to compare with an earlier run.

pytest bench/test_bench.py
pytest bench/test_bench.py --benchmark-save=before, and later --benchmark-compare
"""

import pickle
import subprocess
import sys
import threading
import tracemalloc

import pytest

import msgid

TEXT = "0156F7E71C361B21BC024CCDBE00000000"
BATCH = msgid.generate_batch(1_000_000)


@pytest.mark.benchmark(group="single")
@pytest.mark.parametrize("call", [msgid.generate, msgid.generate_hex], ids=["generate", "generate_hex"])
def test_single(benchmark, call):
    benchmark(call)


@pytest.mark.benchmark(group="string")
@pytest.mark.parametrize("call", [str, repr, bytes, hash], ids=lambda call: call.__name__)
def test_string(benchmark, call):
    benchmark(call, msgid.MessageId(TEXT))


@pytest.mark.benchmark(group="parse")
@pytest.mark.parametrize("call", [msgid.parse, msgid.is_valid, msgid.MessageId], ids=["parse", "is_valid", "MessageId"])
def test_parse(benchmark, call):
    benchmark(call, TEXT)


@pytest.mark.benchmark(group="field")
@pytest.mark.parametrize("name", ["mac", "pid", "seconds", "time", "sequence", "origin", "uuid", "time_key"])
def test_field(benchmark, name):
    id = msgid.MessageId(TEXT)
    benchmark(lambda: getattr(id, name))


@pytest.mark.benchmark(group="derived")
def test_position_id(benchmark):
    benchmark(msgid.position_id, "kafka://orders/3", 1234, 1_700_000_000)


@pytest.mark.benchmark(group="derived")
def test_derive_id(benchmark):
    benchmark(msgid.derive_id, msgid.MessageId(TEXT), "invoice")


@pytest.mark.benchmark(group="pickle")
def test_pickle(benchmark):
    id = msgid.MessageId(TEXT)
    benchmark(lambda: pickle.loads(pickle.dumps(id)))


@pytest.mark.benchmark(group="batch of 1 M")
@pytest.mark.parametrize("form", ["to_bytes", "to_hex_bytes", "hex", "to_numpy", "to_arrow"])
def test_batch(benchmark, form):
    benchmark(getattr(BATCH, form))


@pytest.mark.benchmark(group="read 1 M")
@pytest.mark.parametrize("form", ["texts of Arrow", "binaries of Arrow", "a list of texts"])
def test_parse_batch(benchmark, form):
    ids = {
        "texts of Arrow": lambda: BATCH.to_arrow(hex=True),
        "binaries of Arrow": BATCH.to_arrow,
        "a list of texts": BATCH.hex,
    }[form]()
    benchmark(msgid.parse_batch, ids)


@pytest.mark.benchmark(group="threads: 4 x 50 000")
def test_threads(benchmark):
    def mint():
        for _ in range(50_000):
            msgid.generate_hex()

    def run():
        threads = [threading.Thread(target=mint) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    benchmark(run)


@pytest.mark.benchmark(group="import", min_rounds=10)
@pytest.mark.parametrize("program", ["pass", "import msgid", "import msgid; msgid.generate()"])
def test_import(benchmark, program):
    benchmark(lambda: subprocess.run([sys.executable, "-c", program], check=True))


def test_memory_of_an_id():
    """Return the bytes per value of a list of values, including the list's slot."""
    ids = list(BATCH[:1000])
    tracemalloc.start()
    ids = list(BATCH[:100_000])
    size = tracemalloc.get_traced_memory()[0] / len(ids)
    tracemalloc.stop()
    print(f"\n{msgid.backend}: {size:.0f} bytes a MessageId")
