"""Measure growth: batches of 1 to 10 M IDs, and 1 to 8 threads at once.

python bench/growth.py [--chart bench/growth.svg]
"""

from __future__ import annotations

import argparse
import threading
import time
import timeit

from rounds import alternate, machine, table

import msgid

SIZES = [10**n for n in range(8)]
FORMS = {"to_bytes()": "to_bytes", "to_hex_bytes()": "to_hex_bytes", "hex()": "hex"}
THREADS = (1, 2, 4, 8)
EACH = 400_000


def sizes() -> dict[str, dict[int, float]]:
    """Measure ns per ID by the size of the batch, for each form."""
    grown: dict[str, dict[int, float]] = {form: {} for form in FORMS}
    for size in SIZES:
        timers = {
            form: timeit.Timer(f"generate_batch({size}).{method}()", "from msgid import generate_batch")
            for form, method in FORMS.items()
        }
        number = max(1, 200_000 // size)
        for form, ns in alternate(timers, number=number, rounds=5).items():
            grown[form][size] = ns / size
    return grown


def threads() -> dict[int, float]:
    """Measure ns per ID over all threads that share one generator."""
    best = dict.fromkeys(THREADS, float("inf"))

    def work() -> None:
        generate = msgid.generate_hex
        for _ in range(EACH):
            generate()

    for _ in range(5):
        for count in THREADS:
            workers = [threading.Thread(target=work) for _ in range(count)]
            start = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            best[count] = min(best[count], (time.perf_counter() - start) / (count * EACH) * 1e9)
    return best


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chart", help="draw the chart into this SVG file")
    arguments = parser.parse_args()
    print(f"{machine()}; msgid.backend: {msgid.backend}\n")
    by_size, by_threads = sizes(), threads()
    rows = [[f"{size:,}", *(f"{by_size[form][size]:.1f}" for form in FORMS)] for size in SIZES]
    print(table(["ids a batch", *(f"`{form}`, ns an id" for form in FORMS)], rows) + "\n")
    rows = [[str(count), f"{ns:.1f}"] for count, ns in by_threads.items()]
    print(table(["threads", "`generate_hex()` in a loop, ns an id over all"], rows))
    if arguments.chart:
        from charts import lines

        lines(by_size, by_threads, arguments.chart)


if __name__ == "__main__":
    main()
