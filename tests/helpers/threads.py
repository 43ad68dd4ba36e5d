"""Calls that run at the same time."""

import threading


def at_once(*calls):
    """Run calls in threads that start together, and return their results in order; an error is one, too."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def run(place, call):
        barrier.wait(60)
        try:
            results[place] = call()
        except Exception as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
