"""Put old faults back, one at a time, and print how many schedules the simulation needs to see each of them.

    PYTHONPATH=tests python -m simulation.mutations

A fault is a replacement in the text of one module, in a process of its own. A fault that no schedule sees is an error:
the judge would be blind for it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

PROCESSING = "msgid.processing"
FAULTS = {
    "a key goes on after a failed message": (
        f"{PROCESSING}.flow",
        "if stops and message.key in stops and index",
        "if False and index",
    ),
    "a key goes on in the next transaction of a call": (
        f"{PROCESSING}.flow",
        "stopped.update((key, error) for key, (_, error) in stops.items())",
        "pass",
    ),
    "the tasks of one key do not wait for each other": (
        f"{PROCESSING}.async_processor",
        "if self._processor in outer:",
        "if True:",
    ),
    "a cancelled task lets the tasks behind it go first": (
        f"{PROCESSING}.async_processor",
        "if waiting and not self._loop.is_closed():",
        "if False:",
    ),
    "the server does not end a silent transaction": (
        "msgid.shared.postgres_limits",
        "IDLE_TIMEOUT: Final = 30",
        "IDLE_TIMEOUT: Final = 7860",
    ),
    "a store takes entries of an old version": (
        f"{PROCESSING}.memory",
        "if (newest.version, unpack(newest.before)) != (append.version, append.before):",
        "if False:",
    ),
    "a key that another worker has changed is not handled again": (
        f"{PROCESSING}.flow",
        "return sorted(index for chain in lost.values() for index in chain.indexes)",
        "return []",
    ),
    "a duplicate does not publish its outputs again": (
        f"{PROCESSING}.flow",
        "outputs = [output for outcome in done for output in outcome.outputs]",
        "outputs = [output for outcome in done if outcome.kind == 'new' for output in outcome.outputs]",
    ),
    "a redelivered message runs the new version of its handler": (
        f"{PROCESSING}.flow",
        "return None if earlier.outputs is None else _DUPLICATE",
        "return None",
    ),
    "outputs are not compared with those of the first time": (
        f"{PROCESSING}.flow",
        "if ran.fingerprint == earlier.fingerprint:",
        "if True:",
    ),
    "forget deletes entries whose outputs are not published": (
        f"{PROCESSING}.memory",
        "set(unpublished.values())",
        "set()",
    ),
    "a batch after a restored checkpoint counts as written": (
        "spark_ext.tables.writers",
        'if writer.read is not None and not {writer.read, "", None} & {*reads}:',
        "if False:",
    ),
    "a batch that was published and not recorded is written again": (
        "spark_ext.tables.iceberg",
        "if not bases:",
        "if True:",
    ),
}
"""The module, its text and the fault in its place."""
_PROGRAM = """
import importlib.machinery, sys
module, right, wrong = sys.argv[1:4]
whole = importlib.machinery.SourceFileLoader.get_code
def get_code(self, name):
    if name != module:
        return whole(self, name)
    source = self.get_source(name)
    assert source.count(right) == 1, (module, right)
    return compile(source.replace(right, wrong), self.path, "exec", dont_inherit=True)
importlib.machinery.SourceFileLoader.get_code = get_code
sys.argv[1:] = ["--first", "--runs", sys.argv[4]]
from simulation import processing
sys.exit(processing.main())
"""


def main():
    """Run the simulation with each fault; return 1 if it does not see one."""
    parser = argparse.ArgumentParser(prog="python -m simulation.mutations", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3000, help="the greatest number of schedules; default: 3000")
    arguments, unseen = parser.parse_args(), 0
    for name, fault in FAULTS.items():
        command = [sys.executable, "-c", _PROGRAM, *fault, str(arguments.runs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
        unseen += done.returncode == 0
        seen = "not seen" if done.returncode == 0 else "seen"
        print(f"{seen} in {lines[-1].split(' from')[0]}: {name}", flush=True)
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
