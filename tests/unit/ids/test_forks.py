"""A fork at any moment, by Python or by C code: parent and child have different IDs, and neither waits for ever."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

# `fork(kind)` forks as os.fork does, as C code does, without the hooks that Python runs at a fork, or by a system call,
# without those of the C library.
# `both(kind, work)` calls work() in the child and in the parent, and returns both results.
FORKS = """
import ctypes, itertools, os, pickle, random, signal, sys, threading, time
import msgid

NOON = 1_700_000_000
signal.alarm(60)

def fork(kind):
    libc = ctypes.PyDLL(None)
    clone = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
    forks = {"python": os.fork, "c": libc.fork, "system call": lambda: libc.syscall(clone, signal.SIGCHLD, 0, 0, 0, 0)}
    pid = forks[kind]()
    if pid == 0:
        signal.alarm(20)  # ends a child that waits for ever
    return pid

def report(pid, send, result):
    if pid == 0:
        with os.fdopen(send, "wb") as file:
            pickle.dump(result, file)
        os._exit(0)

def answer(pid, receive, send):
    os.close(send)
    with os.fdopen(receive, "rb") as file:
        child = pickle.load(file)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return child

def both(kind, work):
    receive, send = os.pipe()
    pid = fork(kind)
    if pid == 0:
        report(pid, send, work())
    return answer(pid, receive, send), work()

def check(child, parent, pid_of_child=True):
    assert not set(child) & set(parent), f"{len(set(child) & set(parent))} ids of the child are the parent's"
    assert len(set(child)) == len(child) and len(set(parent)) == len(parent)
    assert list(child) == sorted(child) and list(parent) == sorted(parent)
    pids = {msgid.parse(text).pid for text in parent}
    assert len(pids) == 1 and pids.isdisjoint(msgid.parse(text).pid for text in child), "the child has its parent's pid"

kind = sys.argv[1]
"""

PROGRAMS = {
    "between two ids, of a fork, or while the clock is read": """
one = msgid.Generator(node=1, pid=7, sequence=0, clock=lambda: NOON)
for generator in (msgid.Generator(), one, msgid.Generator()):
    minted = [generator.generate_hex() for _ in range(100)]
    def work():
        some = [generator.generate_hex() for _ in range(500)]
        some += [str(generator.generate()) for _ in range(500)]
        return some + generator.generate_batch(500).hex()
    child, parent = both(kind, work)
    check(child, minted + parent)
    assert {msgid.parse(text).node for text in child} == {1} or generator is not one

generator = msgid.Generator(clock=lambda: NOON)
first = [generator.generate_hex()]
child, parent = both(kind, lambda: both(kind, lambda: [generator.generate_hex() for _ in range(300)]))
check(*child)
check(child[0] , parent[1])
check(child[1], parent[0])

# As a signal handler does that forks while generate() reads the clock. The child mints in the handler, or after it.
for in_handler, method in itertools.product((False, True), ("generate_hex", "generate", "generate_batch")):
    armed, pipe, inner = [], os.pipe(), []
    def clock():
        if armed:
            armed.clear()
            armed_pid.append(fork(kind))
            if armed_pid[-1] == 0 and in_handler:
                inner.extend(generator.generate_hex() for _ in range(10))
        return NOON
    armed_pid = []
    generator = msgid.Generator(clock=clock)
    def mint():
        made = getattr(generator, method)(*([300] if method == "generate_batch" else []))
        return made.hex() if method == "generate_batch" else [str(made)]
    before = [generator.generate_hex() for _ in range(10)]
    armed.append(True)
    made = mint() + [text for _ in range(300) for text in mint()]
    report(armed_pid[0], pipe[1], (inner + made))
    check(answer(armed_pid[0], *pipe), before + made)
""",
    "while threads make ids": """
generator, stop = msgid.Generator(), threading.Event()
def work():
    while not stop.is_set():
        generator.generate_batch(1)
        generator.generate_hex()
threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(30):
    child, parent = both(kind, lambda: [generator.generate_hex() for _ in range(300)])
    check(child, parent)
stop.set()
""",
    "during the first id of another thread": """
threading.Thread(target=msgid.generate, daemon=True).start()
time.sleep(float(sys.argv[2]))
child, parent = both(kind, lambda: [msgid.generate_hex() for _ in range(300)])
check(child, parent)
""",
}


# Python itself does not survive a fork by C code while other threads wait for the interpreter's lock.
@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        (moment, kind)
        for moment in PROGRAMS
        for kind in ("python", "c", *["system call"] * (sys.platform == "linux"))
        if kind == "python" or "thread" not in moment
    ],
)
def test_fork_never_repeats_an_id_and_never_waits(msgid, moment, kind):
    delays = ["0", "0.001", "0.003", "0.006", "0.01", "0.015"] if "another thread" in moment else ["0"]
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", FORKS + PROGRAMS[moment], kind, delay],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for delay in delays
    ]
    for process in running:
        output = process.communicate(timeout=100)[0]
        assert process.returncode == 0, output
