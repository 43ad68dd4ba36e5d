"""A signal handler raises an error in the middle of a fork, as Ctrl-C does: nothing repeats, and nothing hangs."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")

# While the process forks, another thread holds all locks that a child must not inherit. A profile function raises at
# the first call of a function, where Python runs signal handlers; Python then removes the profile function.
PROGRAM = """
import os, signal, sys, threading
import msgid
from msgid.ids import node
from msgid.schemas import SchemaRegistry

file, function = sys.argv[1:]
registry = SchemaRegistry()
first = msgid.generate()
locked, release = threading.Event(), threading.Event()

def hold():
    with registry._mutex:
        locked.set()
        release.wait(60)

def work():
    node.find_node()
    with registry._mutex:
        pass

def interrupt(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name == function and code.co_filename.endswith(file):
        raise KeyboardInterrupt

threading.Thread(target=hold, daemon=True).start()
locked.wait()
sys.setprofile(interrupt)
pid = os.fork()
sys.setprofile(None)
signal.alarm(20)
if pid == 0:
    made = msgid.generate()
    assert made.pid == os.getpid() & 0xFFFF, (made.pid, os.getpid())
    work()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert msgid.generate().pid == first.pid
release.set()
other = threading.Thread(target=work)
other.start()
other.join()
"""


def test_interrupted_fork_leaves_both_processes_whole():
    """Python prints the error and forks in any case; the second call of each function does what the first left."""
    program = [sys.executable, "-c", PROGRAM, "schemas/registry.py", "_after_fork_in_child"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("KeyboardInterrupt") == 1, done.stderr
