"""The docstrings of the compiled core equal those of the reference, from which its header file is generated."""

import inspect
from pathlib import Path

import pytest
from helpers import backends

from msgid.ids import _native

HEADER = Path(_native.__file__).with_name("_docstrings.h")
NAMES = (
    "Core", "Core._of", "Core.hex", "Minter", "Minter.generate", "Minter.generate_hex", "parse", "is_valid", "rows",
    "hex_rows", "hex_list",
)  # fmt: skip
SIGNATURES = {
    "Core._of": "($type, raw, /)",
    "Minter.generate": "($self, /)",
    "Minter.generate_hex": "($self, /)",
    "parse": "($module, /, value)",
    "is_valid": "($module, /, value)",
    "rows": "($module, prefix, parts, /)",
    "hex_rows": "($module, prefix, parts, /)",
    "hex_list": "($module, prefix, parts, /)",
}


@pytest.fixture(scope="module")
def reference():
    """Return the docstrings of the reference, by the names of the compiled objects."""
    with backends.backend("python") as msgid:
        homes = [msgid.ids._base, msgid.ids._pure_minter, msgid.ids.parsing, msgid.ids._batch_bytes]
        return {name: inspect.getdoc(found(homes, name)) for name in NAMES}


def found(homes, name):
    """Return the object of a dotted name, from the first of the modules that has it."""
    first, *rest = name.split(".")
    thing = next(getattr(home, first) for home in homes if hasattr(home, first))
    for part in rest:
        thing = getattr(thing, part)
    return thing


def header(docstrings):
    """Return the docstrings as C: one macro for each, with the signature that `inspect` reads."""
    lines = [
        "/* The docstrings of the reference, for the compiled core. Written by:",
        " * pytest tests/unit/ids/test_native_docstrings.py --update-golden */",
    ]
    for name, docstring in docstrings.items():
        text = f"{name.rpartition('.')[2]}{SIGNATURES[name]}\n--\n\n{docstring}" if name in SIGNATURES else docstring
        lines.append(f"#define DOC_{name.replace('.', '_').upper()} \\")
        parts = text.splitlines(keepends=True)
        for part in parts:
            escaped = part.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'    "{escaped}"' + (" \\" if part is not parts[-1] else ""))
    return "\n".join(lines) + "\n"


def test_header_of_docstrings_is_that_of_the_reference(reference, request):
    if request.config.getoption("--update-golden"):
        HEADER.write_text(header(reference), encoding="utf-8")
    if not HEADER.exists():
        pytest.skip("the wheel does not have the C source")
    assert HEADER.read_text(encoding="utf-8") == header(reference)


@pytest.mark.skipif(_native.native is None, reason="the compiled core is not there, or not wanted")
@pytest.mark.parametrize("name", NAMES)
def test_compiled_docstring_is_that_of_the_reference(reference, name):
    """``help()`` shows the same arguments, results, errors and examples on both backends."""
    assert inspect.getdoc(found([_native.native], name)) == reference[name]
