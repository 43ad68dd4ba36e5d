"""The compiled core and the reference: the selection, and no leaks or crashes in C."""

import gc
import shutil
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from helpers.commands import python

import msgid
from msgid import MessageId, layout
from msgid.ids import _native

V1 = "0156F7E71C361B21BC024CCDBE00000000"
native = _native.native
compiled_only = pytest.mark.skipif(native is None, reason="the compiled core is not there, or not wanted")


def test_backend_under_test_is_the_one_of_its_functions(msgid):
    """Tests of IDs get the functions of the requested backend, and so do imports within them."""
    assert sys.modules["msgid"] is msgid
    assert msgid.MessageId is sys.modules["msgid.ids.message_id"].MessageId
    assert ("built-in" in repr(msgid.generate_hex)) == (msgid.backend == "c")


@pytest.mark.parametrize(("value", "backend"), [("1", "python"), ("yes", "python"), ("0", None), ("", None)])
def test_msgid_pure_of_any_value_but_0_forces_the_reference(value, backend):
    result = python("import msgid; print(msgid.backend, msgid.is_valid(msgid.generate_hex()))", MSGID_PURE=value)
    default = "c" if _built() else "python"
    assert result.stdout == f"{backend or default} True\n"


def _built():
    return (Path(_native.__file__).parent / f"_speedups{sysconfig.get_config_var('EXT_SUFFIX')}").exists()


def test_import_without_the_compiled_core_is_silent(tmp_path):
    package = Path(msgid.__file__).parent
    shutil.copytree(package, tmp_path / "msgid", ignore=shutil.ignore_patterns("_speedups*.so", "_speedups*.pyd"))
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import msgid; from msgid.ids import _native
print(msgid.backend, len(msgid.generate_hex()), _native.REASON)
"""
    result = python(program, MSGID_PURE="")
    assert (result.stdout, result.stderr) == ("python 34 the compiled core was not built for this interpreter\n", "")


def test_import_of_a_core_that_does_not_load_warns_once():
    """A compiled core that cannot be loaded is a defect of the installation, so the reason is shown."""
    program = """
import importlib.abc, importlib.machinery, sys, warnings
class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "msgid.ids._native._speedups":
            return importlib.machinery.ModuleSpec(name, self)
    def exec_module(self, module):
        raise ImportError("undefined symbol: _Py_HashBytes")
sys.meta_path.insert(0, Broken())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import msgid
    msgid.backend
from msgid.ids import _native
print(msgid.backend, len(caught), caught[0].category.__name__, caught[0].message, sep="|")
print(_native.REASON)
"""
    result = python(program, MSGID_PURE="")
    reason = "the compiled core cannot be loaded: undefined symbol: _Py_HashBytes"
    assert result.stdout == f"python|1|RuntimeWarning|msgid runs in pure Python: {reason}\n{reason}\n", result.stderr


def test_core_with_other_numbers_than_the_source_is_not_used(monkeypatch):
    """C repeats the numbers of `msgid.layout`: if one of them changes only there, an older core is not used."""
    monkeypatch.setenv("MSGID_PURE", "")
    monkeypatch.setattr(_native, "_speedups", SimpleNamespace(LAYOUT=_native._layout()), raising=False)
    assert _native._load() == (_native._speedups, "")
    for name in _native._NUMBERS:
        with monkeypatch.context() as patched:
            patched.setattr(layout, name, getattr(layout, name) + 1)
            assert _native._load()[0] is None
    for name in _native._FIELDS:
        field = layout.FIELDS[name]
        for other in (field._replace(start=field.start - 1), field._replace(stop=field.stop + 1)):
            with monkeypatch.context() as patched:
                patched.setitem(layout.FIELDS, name, other)
                assert _native._load()[0] is None
    assert native is None or _native._layout() == native.LAYOUT


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


@compiled_only
@pytest.mark.parametrize("name", BAD_CALLS)
def test_inner_function_with_bad_arguments_raises(name):
    """C checks what Python passes to it: a wrong value never ends the process."""
    for arguments in BAD_CALLS[name]:
        with pytest.raises((TypeError, ValueError, BufferError, MemoryError)):
            getattr(native, name)(*arguments)


@pytest.mark.details
def test_millions_of_ids_leave_no_memory_behind():
    """After 4 M IDs are made, read, compared and copied, the process is as large as after the first ones."""
    pytest.importorskip("pyarrow")

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
    for _ in range(2):  # 4 IDs each
        work(count)
    gc.collect()
    assert process.memory_info().rss - before < 8 * 2**20  # the smallest object has 16 bytes


@compiled_only
def test_value_of_the_core_made_empty_or_extended_raises_type_error():
    """The constructors cannot be bypassed, and the classes cannot be subclassed."""
    with pytest.raises(TypeError):
        object.__new__(MessageId)
    with pytest.raises(TypeError):
        native.Core()
    for base in (MessageId, native.Core):
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Mine", (base,), {})
    with pytest.raises(TypeError):
        MessageId._of("text")
    with pytest.raises(TypeError):
        MessageId._of(bytes(30))
    unfinished = msgid.Generator.__new__(msgid.Generator)
    for call in (unfinished.generate, unfinished.generate_hex, lambda: unfinished._reserve(1)):
        with pytest.raises(TypeError, match="not initialised"):
            call()
    with pytest.raises(TypeError):
        unfinished._begin(int, None, None)
