"""The imports between the modules of a package, from its source."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

__all__ = ["folder_of", "imports_in", "modules_of", "named_in"]


def folder_of(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    return Path(spec.origin).parent


def modules_of(package: str, folder: Path) -> dict[str, Path]:
    """Return the source file of each module of a package by the module's full name."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [package, *path.relative_to(folder).with_suffix("").parts]
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imports_in(source: str, module: str, known: set[str]) -> set[str]:
    """Return the names of the known modules that a module's source imports, in functions too.

    ``from package import name`` is an import of the submodule ``package.name`` if there is one, and of ``package``
    otherwise. An import under ``if TYPE_CHECKING:`` counts too: a reader must follow it.
    """
    found = set()
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names if alias.name in known}
        if not isinstance(statement, ast.ImportFrom):
            continue
        assert not statement.level, f"a relative import in {module}"
        base = statement.module
        for alias in statement.names:
            name = f"{base}.{alias.name}"
            found.add(name if name in known else base)
    return (found & known) - {module}


def named_in(source: str, module: str, known: set[str]) -> set[str]:
    """Return the names of the known modules that a module's source has as text: it may import them when it runs."""
    texts = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    return {text for text in texts if isinstance(text, str) and "." in text and text in known} - {module}
