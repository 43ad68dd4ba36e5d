"""Copies of a process make different IDs: children of any kind, snapshots, and processes that look alike.

`copy()` starts a child by a raw system call, so neither Python nor the C library runs a hook. If `blind` is loaded, the
kernel does not clear memory either: the child is then what a snapshot is that was restored twice.
"""

import os
import platform
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
of_linux = pytest.mark.skipif(sys.platform != "linux", reason="the system calls are those of Linux")

CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
TOOLS = f"""
import ctypes, itertools, json, os, signal, sys, threading, time
NOON = 1_700_000_000
signal.alarm(60)
libc = ctypes.PyDLL(None, use_errno=True)
KINDS = dict(python=os.fork, c=libc.fork)
if sys.platform == "linux":
    KINDS["call"] = lambda: libc.syscall({CLONE}, signal.SIGCHLD, 0, 0, 0, 0)
def start(kind):
    "Fork as os.fork does, as C code does, without the hooks of Python, or by a system call, without those of C."
    child = KINDS[kind]()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for ever
    return child
def report(child, pipe, result):
    if child == 0:
        with os.fdopen(pipe[1], "w") as file:
            json.dump(result, file)
        os._exit(0)
def answer(child, pipe):
    os.close(pipe[1])
    with os.fdopen(pipe[0]) as file:
        result = json.load(file)
    os.waitpid(child, 0)
    return result
def copy(work, kind="call"):
    "Call work() in a copy of this process and return its result."
    pipe = os.pipe()
    child = start(kind)
    if child == 0:
        try:
            report(child, pipe, work())
        finally:
            os._exit(1)  # work() has raised an error
    return answer(child, pipe)
def distinct(*lists):
    flat = [text for one in lists for text in one]
    assert len(set(flat)) == len(flat), f"{{len(flat) - len(set(flat))}} IDs are equal"
def check(child, parent):
    distinct(child, parent)
    assert list(child) == sorted(child) and list(parent) == sorted(parent)
    pids = [{{msgid.parse(text).pid for text in made}} for made in (child, parent)]
    assert len(pids[1]) == 1 and pids[0].isdisjoint(pids[1]), "the child has its parent's pid"
"""
MADVISE = "int madvise(void *a, unsigned long n, int advice) { return 0; }"
"""A kernel that accepts every advice and follows none, as old emulators do."""


@pytest.fixture(scope="module")
def blind(tmp_path_factory):
    """Return the environment in which no memory is cleared at a fork."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler, or no such system call")
    folder = tmp_path_factory.mktemp("blind")
    (folder / "madvise.c").write_text(MADVISE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "madvise.so", folder / "madvise.c"], check=True)
    others = os.environ.get("LD_PRELOAD", "")  # the sanitizers come first
    return {"LD_PRELOAD": f"{others} {folder / 'madvise.so'}".strip()}


def run(program, *before, **environment):
    """Run a program in a process of its own and return its output."""
    command = [*before, sys.executable, "-W", "ignore", "-c", TOOLS + program]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


CARD = """
from msgid.ids import node
node._list_cards = lambda: node.Cards("interface", (node.Interface("eth0", "00:16:3e:01:02:03", True),))
import msgid
"""
FLEET = (
    CARD
    + """
import random
from msgid.ids import generator
first, real = os.getpid(), os.getpid
# All processes look alike: they have one card and equal clocks, begin at number 0, and their pids end in equal bits.
os.getpid = lambda: 1 if IN_CONTAINER or real() == first else 1 | real() << 16
namespace = 4026532201 if IN_CONTAINER else node._FIRST_PID_NAMESPACE
node._this_process = lambda is_default: node.Process(os.getpid(), namespace, is_default, True, node._is_copy)
generator._random_start = lambda: 0
now, chance = [NOON], random.Random()
generators = [msgid, *(msgid.Generator(node=named, clock=lambda: now[0]) for named in (None, "random"))]

def live(depth):
    "Return the IDs of a process and of its children, between forks, steps of the clock and restored snapshots."
    made = []
    for step in chance.choices(("ids", "clock", "restore", "fork"), k=5):
        if step == "ids":
            for g in generators:
                made += [g.generate_hex(), str(g.generate()), *g.generate_batch(chance.choice((0, 300))).hex()]
        elif step == "clock":
            now[0] += chance.choice((-1, 1)) * 10 ** chance.randrange(7)
        elif step == "restore":
            msgid.reseed()
        elif depth:
            made += copy(lambda: live(depth - 1), chance.choice(list(KINDS)))
    return made

everything = []
for seed in range(15):
    chance.seed(seed)
    everything.append(live(3) if seed % 2 else copy(lambda: live(3), "python"))
distinct(*everything)
print(len(everything), sum(map(len, everything)) > 5_000)
"""
)


@of_linux
@pytest.mark.parametrize("is_in_container", [False, True])
def test_random_fleets_of_look_alike_processes_make_no_id_twice(msgid, is_in_container):
    """Processes that are started, forked and restored, whose clocks go back; each life has a node of its own."""
    assert run(FLEET.replace("IN_CONTAINER", str(is_in_container)), MSGID_NODE="") == "15 True\n"


MOMENTS = {
    # As a signal handler does that forks while generate() reads the clock. The child mints in the handler, or after it.
    "while the clock is read": """
for in_handler, method in itertools.product((False, True), ("generate_hex", "generate", "generate_batch")):
    armed, pipe, inner, child = [], os.pipe(), [], []
    def clock():
        if armed:
            armed.clear()
            child.append(start(kind))
            if child[0] == 0 and in_handler:
                inner.extend(generator.generate_hex() for _ in range(10))
        return NOON
    generator = msgid.Generator(clock=clock)
    def mint():
        made = getattr(generator, method)(*([300] if method == "generate_batch" else []))
        return made.hex() if method == "generate_batch" else [str(made)]
    before = [generator.generate_hex() for _ in range(10)]
    armed.append(True)
    made = mint() + [text for _ in range(300) for text in mint()]
    report(child[0], pipe, inner + made)
    check(answer(child[0], pipe), before + made)
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
    made = lambda: [generator.generate_hex() for _ in range(300)]
    check(copy(made, kind), made())
stop.set()
""",
    "during the first id of another thread": """
for delay in (0, 0.001, 0.003, 0.006, 0.01, 0.015):
    def work():
        threading.Thread(target=msgid.generate, daemon=True).start()
        time.sleep(delay)
        made = lambda: [msgid.generate_hex() for _ in range(300)]
        check(copy(made, kind), made())
    copy(work, "python")
""",
}


# Python itself does not survive a fork by C code while other threads wait for the interpreter's lock.
@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        (moment, kind)
        for moment in MOMENTS
        for kind in ("python", "c", *["call"] * (sys.platform == "linux"))
        if kind == "python" or "thread" not in moment
    ],
)
def test_fork_at_any_moment_repeats_no_id_and_never_waits(msgid, moment, kind):
    run(f"import msgid; kind = {kind!r}\n{MOMENTS[moment]}")


def test_children_of_an_emulator_that_clears_no_page_make_ids_of_their_own(msgid, blind):
    """If every advice is accepted, the page is not trusted: the hook of the fork, or the pid, tells the child."""
    run(
        """
import msgid
generators = [msgid, msgid.Generator(), msgid.Generator(node=1, pid=7, sequence=0)]
def work():
    return [g.generate_hex() for g in generators for _ in range(300)]
distinct(work(), *(copy(work, kind) for kind in ("python", "c", "python")), work())
if msgid.backend == "python":
    distinct(work(), copy(work), copy(work))
""",
        **blind,
    )


SNAPSHOT = """
os.getpid = lambda: 77  # copies of a snapshot have one pid
import msgid
generators = [msgid, msgid.Generator(), msgid.Generator(node="random"), msgid.Generator(clock=lambda: 1.7e9)]
def work():
    return [g.generate_hex() for g in generators for _ in range(5)]
"""


def test_snapshot_before_the_first_id_holds_nothing_random(msgid, blind):
    """Copies of a process that has imported `msgid` and made generators differ without any call."""
    run(SNAPSHOT + "distinct(copy(work), copy(work), work())", **blind)


def test_snapshot_hook_of_a_function_service_reseeds(msgid, blind):
    """Where snapshot_restore_py is installed, a restored process calls `reseed`; without a call, copies repeat IDs."""
    run(
        """
import types
callbacks = []
sys.modules["snapshot_restore_py"] = types.SimpleNamespace(register_after_restore=callbacks.append)
"""
        + SNAPSHOT
        + """
assert callbacks == [msgid.reseed]
before = work()
assert copy(work) == copy(work)
def restored():
    for callback in callbacks:
        callback()
    assert msgid.explain_node().source == "random"
    return work()
distinct(before, copy(restored), copy(restored), work())
""",
        **blind,
    )


def test_reseed_is_of_the_whole_process_and_costs_the_generators_nothing(msgid):
    """Each generator goes on with its IDs, which increase, and those that are not restored are not changed."""
    generators = [msgid.Generator(), msgid.Generator(node=1), msgid.Generator(node="random", sequence=5, pid=3)]
    before = [[g.generate_hex() for _ in range(3)] for g in generators]
    copies = msgid.ids.node._is_copy
    try:
        msgid.reseed()
    finally:
        msgid.ids.node._is_copy = copies
    after = [[g.generate_hex() for _ in range(3)] for g in generators]
    for own in before + after:
        assert [int(text, 16) - int(own[0], 16) for text in own] == [0, 1, 2]
    assert len({text for own in before + after for text in own}) == 18
    assert msgid.parse(after[1][0]).node == 1
    assert msgid.parse(after[2][0]).pid == os.getpid() & 0xFFFF


def test_environment_without_entropy_can_import(msgid):
    """The import draws nothing and reads nothing of the machine; the first ID does."""
    run("""
def forbidden(*arguments):
    raise PermissionError("no entropy here")
allowed = os.urandom
os.urandom = os.getrandom = forbidden
import msgid
generators = [msgid, msgid.Generator(), msgid.Generator(node="random")]
assert not {"psutil", "getmac", "random", "secrets", "uuid"} & set(sys.modules)
for g in generators:
    try:
        g.generate()
    except PermissionError:
        continue
    raise AssertionError("an ID without entropy")
os.urandom = allowed
distinct([g.generate_hex() for g in generators])
""")


@of_linux
def test_pid_namespaces_with_one_card_have_random_nodes(msgid):
    """Two containers with one MAC address and pid 1 do not use the address, unless MSGID_NODE=mac says so."""
    unshare = ["unshare", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this process must not make a PID namespace")
    show = CARD + "print(*[id.hex for id in msgid.generate_batch(50)])"
    runs = [run(show, *unshare, MSGID_NODE="").split() for _ in range(2)]
    ids = [msgid.parse(text) for made in runs for text in made]
    assert len(set(ids)) == 100
    assert {id.pid for id in ids} == {1}
    assert {id.origin for id in ids} == {"random"}
    assert runs[0][0][2:14] != runs[1][0][2:14]
    reason = run(CARD + "print(msgid.explain_node())", *unshare, MSGID_NODE="")
    assert reason.endswith("(random): random bits: in a container, or another PID namespace, pids repeat\n")
    assert msgid.parse(run(show, *unshare, MSGID_NODE="mac").split()[0]).mac == "00:16:3e:01:02:03"


def test_generators_of_one_process_never_share_a_node(msgid):
    """Only the functions of `msgid` use the card, in one interpreter, or one counter could overtake another."""
    run(
        CARD
        + """
import threading
node._this_process = lambda is_default: node.Process(1, None, is_default, node._IS_MAIN_INTERPRETER)
assert msgid.generate().mac == "00:16:3e:01:02:03"
mine, other = msgid.Generator(), msgid.Generator(pid=5, clock=lambda: 1.7e9)
assert {g.explain_node().reason for g in (mine, other)} == {"random bits: the process can have several generators"}
assert len({msgid.generate().node, mine.generate().node, other.generate().node}) == 3
everything = msgid.generate_batch(2**32)
assert mine.generate() not in everything and mine.generate() not in msgid.Generator().generate_batch(2**32)
try:
    import _interpreters as interpreters
    execute = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    execute = interpreters.run_string
for _ in range(3):
    interpreter = interpreters.create()
    failed = execute(interpreter, '''
import msgid
assert msgid.explain_node().reason == "random bits: the process can have several generators", msgid.explain_node()
generator = msgid.Generator(node=1)
assert len({*generator.generate_batch(1000), *(msgid.generate() for _ in range(1000))}) == 2000
assert not msgid.is_valid("x")
''')
    assert not failed, failed
    interpreters.destroy(interpreter)
print(msgid.generate() < msgid.generate())
""",
        MSGID_NODE="",
    )
