"""Shared helpers for tests of generators: ways to make IDs, and threads that run concurrently."""

import threading

NOON = 1_700_000_000


def mint(generator, how):
    """Make IDs in the named way and return their bytes."""
    if how == "generate":
        return [bytes(generator.generate())]
    if how == "generate_hex":
        return [bytes.fromhex(generator.generate_hex())]
    return [bytes(id) for id in generator.generate_batch(int(how.split()[-1]))]


def place(raw):
    """Return the second and the sequence of an ID from its bytes."""
    return int.from_bytes(raw[9:13], "big"), int.from_bytes(raw[13:], "big")


def run_threads(count, work):
    """Run ``work(n)`` in ``count`` threads at once and return the results."""
    results, barrier = [None] * count, threading.Barrier(count)

    def body(n):
        barrier.wait()
        results[n] = work(n)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
