"""Shared helpers for tests of generators: ways to make IDs, and threads and forked children that run concurrently."""

import multiprocessing
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


def run_children(count, work):
    """Run ``work()`` in ``count`` forked children at once and return the results."""
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    children = [context.Process(target=lambda send=send: send.send(work())) for _, send in pipes]
    for child in children:
        child.start()
    results = [receive.recv() if receive.poll(60) else None for receive, _ in pipes]
    for child in children:
        child.join(10)
        if child.is_alive():
            child.kill()
    return results
