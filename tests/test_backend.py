"""The compiled core and the reference: which runs, that both hold, and that the C neither leaks nor crashes."""

import gc
import os
import subprocess
import sys
import sysconfig
import tracemalloc
from pathlib import Path

import psutil
import pytest

import msgid
from msgid import MessageId, _native, layout, rows

V1 = "0156F7E71C361B21BC024CCDBE00000000"
native = _native.native
compiled_only = pytest.mark.skipif(native is None, reason="the compiled core is not there, or not wanted")


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True
    )


def test_backend_names_what_runs():
    """`msgid.backend` is "c" or "python", and so are the things that it names."""
    assert msgid.backend == ("python" if native is None else "c")
    assert ("built-in" in repr(msgid.generate_hex)) == (msgid.backend == "c")


@pytest.mark.parametrize(("value", "backend"), [("1", "python"), ("yes", "python"), ("0", None), ("", None)])
def test_msgid_pure_forces_the_reference(value, backend):
    """MSGID_PURE=1 asks for pure Python; 0 and nothing do not."""
    result = run("import msgid; print(msgid.backend, msgid.is_valid(msgid.generate_hex()))", MSGID_PURE=value)
    default = "c" if _built() else "python"
    assert result.stdout == f"{backend or default} True\n"


def _built():
    return (Path(msgid.__file__).parent / f"_speedups{sysconfig.get_config_var('EXT_SUFFIX')}").exists()


def test_without_the_compiled_core_nothing_is_said():
    """Where it was not compiled, or from another version of the source, the reference runs in silence."""
    for broken in ("sys.modules['msgid._speedups'] = None", "import types; stale = types.ModuleType('s');"
                   "stale.LAYOUT = (); sys.modules['msgid._speedups'] = stale"):  # fmt: skip
        result = run(
            f"import sys; {broken}; import msgid; print(msgid.backend, len(msgid.generate_hex()))", MSGID_PURE=""
        )
        assert (result.stdout, result.stderr) == ("python 34\n", "")


@pytest.mark.slow
def test_the_tests_pass_on_the_reference():
    """What holds of the compiled core holds of pure Python: the same tests, with MSGID_PURE=1."""
    if native is None:
        pytest.skip("this is that run")
    tests = Path(__file__).parent
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow and not spark",
        str(tests),
    ]
    result = subprocess.run(
        command, cwd=tests.parent, env={**os.environ, "MSGID_PURE": "1"}, stdout=subprocess.PIPE, text=True
    )
    assert result.returncode == 0, result.stdout[-10_000:]
    assert " passed" in result.stdout


@compiled_only
def test_both_write_the_same_rows():
    """The compiled rows are the reference's, in steps and backwards, over the whole range of each field."""
    reference = {name: getattr(_reference(), name) for name in ("rows", "hex_rows", "hex_list")}
    prefix = bytes(range(9))
    for parts in (
        (),
        ((0, 0, 1, 0),),
        ((2**32 - 1, 2**32 - 3, 1, 3), (2**32, 0, 1, 300)),
        ((-1, 1000, -7, 100), (5, 0, 1000, 20)),
    ):
        for name, write in reference.items():
            assert getattr(native, name)(prefix, parts) == write(prefix, parts)


def _reference():
    """The module of rows as it is without the compiled core."""
    spec = rows.__spec__
    import importlib.util
    from unittest import mock

    with mock.patch.object(_native, "native", None):
        plain = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plain)
    return plain


BAD_CALLS = {
    "rows": [(), (b"x", ()), (bytes(9), []), (bytes(9), ((1, 2),)), (bytes(9), (None,)), (bytes(9), ((0, 0, 1, -1),)),
             (bytes(9), ((0, 0, 1, 2**62),)), ("text", ())],
    "hex_rows": [(bytes(8), ()), (bytes(9), ((0, 0, 1, 2**60),))],
    "hex_list": [(bytes(9), ((0, "x", 1, 1),)), (bytes(9), ((0, 0, 1, -5),))],
    "bind": [(), (int, None, None), (object(), None, None)],
    "read_texts": [(), ((),), ([],) * 7, ((V1,), *[bytearray(1)] * 6), ((), *[b""] * 6)],
    "read_rows": [(), (b"", b"", True, *[bytearray(0)] * 6), (b"", bytes(8), True, *[bytearray(3)] * 6),
                  (b"abc", (9).to_bytes(8, "little") * 2, True, *[bytearray(9)] * 6),
                  (1, 2, True, *[bytearray(0)] * 6)],
}  # fmt: skip
BAD_ARGUMENTS = [(name, arguments) for name, many in BAD_CALLS.items() for arguments in many]


@compiled_only
@pytest.mark.parametrize(("name", "arguments"), BAD_ARGUMENTS, ids=[str(n) for n in range(len(BAD_ARGUMENTS))])
def test_bad_arguments_raise_and_leave_nothing_behind(name, arguments):
    """Even inner functions, called with nonsense, raise; thousands of times over, they keep no memory."""
    function = getattr(native, name)

    def call():
        with pytest.raises((TypeError, ValueError, BufferError, MemoryError)):
            function(*arguments)

    call()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(2_000):
        try:
            function(*arguments)
        except Exception:
            continue
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


def test_ten_million_ids_leave_no_memory_behind():
    """10 M ids minted, read, compared, copied and thrown away: the process is no larger than after the first."""

    def work(count):
        batch = msgid.generate_batch(count)
        for id in batch:
            str(id)
        for text in batch.hex():
            msgid.parse(text)
            msgid.is_valid(text)
        for _ in range(count):
            hash(msgid.generate()) == msgid.generate_hex()  # noqa: B015
        batch.to_bytes()
        msgid.parse_batch(batch.to_arrow())
        for bad in ("x", None, V1[:-1] + "G"):
            for _ in range(count // 100):
                msgid.is_valid(bad)

    process = psutil.Process()
    count = 500_000 if native is not None else 50_000
    work(count)
    gc.collect()
    before = process.memory_info().rss
    for _ in range(5):  # 4 ids each
        work(count)
    gc.collect()
    assert process.memory_info().rss - before < 20 * 2**20


@compiled_only
def test_reference_counts_of_the_types_stay():
    """Ids hold their type while they live, and let go of it: also in batches, copies and failed calls."""
    before = sys.getrefcount(MessageId)
    ids = [msgid.generate() for _ in range(1000)]
    assert sys.getrefcount(MessageId) >= before + 1000
    del ids
    for _ in range(1000):
        msgid.parse(V1)
        MessageId._of(bytes.fromhex(V1))
    assert abs(sys.getrefcount(MessageId) - before) < 10


@compiled_only
def test_values_of_the_core_cannot_be_made_empty_or_extended():
    """There is no way round the constructors, and no class below the kinds."""
    with pytest.raises(TypeError):
        object.__new__(MessageId)
    with pytest.raises(TypeError):
        native.Core()
    with pytest.raises(TypeError):
        type("Mine", (MessageId,), {})
    with pytest.raises(TypeError):
        MessageId._of("text")
    with pytest.raises(TypeError):
        MessageId._of(bytes(30))


@compiled_only
def test_an_unfinished_generator_is_an_error_and_no_crash():
    """A generator whose ``__init__`` has not run says so."""
    unfinished = msgid.Generator.__new__(msgid.Generator)
    for call in (unfinished.generate, unfinished.generate_hex, lambda: unfinished._reserve(1)):
        with pytest.raises(TypeError, match="not initialised"):
            call()
    with pytest.raises(TypeError):
        unfinished._begin(int, None, None, 0)


@compiled_only
def test_the_layout_is_the_one_of_the_source():
    """The C repeats the numbers that must be constants there; they are compared at import."""
    assert native.LAYOUT == (layout.EPOCH_UNIX, 1, 17, 9, 16, 28)


def test_subinterpreters_mint_by_themselves():
    """Each interpreter of a process has its own types and generators, and its ids are its own."""
    program = """
import sys, msgid
try:
    import _interpreters as interpreters
    execute = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    execute = interpreters.run_string
WORK = '''
import gc, msgid
generator = msgid.Generator(node=1)
assert len({generator.generate() for _ in range(1000)}) == 1000
assert msgid.parse(generator.generate_hex()).node == 1
assert not msgid.is_valid("x")
gc.collect()
'''
for _ in range(3):
    interpreter = interpreters.create()
    failed = execute(interpreter, WORK)
    assert not failed, failed
    interpreters.destroy(interpreter)
print(msgid.generate() < msgid.generate())
"""
    result = run(program)
    assert (result.stdout, result.returncode) == ("True\n", 0), result.stderr
