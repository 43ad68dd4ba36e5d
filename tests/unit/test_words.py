"""The words of the source: each word that had several meanings names one thing, and a name says what its value is."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from helpers.imports import folder_of, modules_of

MODULES = {**modules_of("msgid", folder_of("msgid")), **modules_of("spark_ext", folder_of("spark_ext"))}

# Names with one meaning, each with the only modules that may define it.
ONE_MEANING = {
    "NEVER": {"msgid.retention.policy"},
    "Record": {"msgid.kafka", "msgid.rocketmq"},  # a message as its broker's client has it
    "Run": {"spark_ext.streaming._state.bucket_log"},  # sorted pages
    "check_schema": {"msgid.schemas.validation", "spark_ext.formats.message_table"},  # in Python, and as a column
    "compare": {"msgid.audit.comparison", "spark_ext.auditing.comparison"},  # in Python, and on Spark
    "decide": {"msgid.retention.policy"},
}
# Words that name no class, function, argument, attribute, variable or constant, and what to write.
AVOIDED = {
    "minter": "generator",
    "found": "name the value",
    "made": "name the value",
    "told": "name the value",
    "held": "name the value",
}
# The class that the C core has too, and the status of HTTP and of a command.
KEPT = {"Minter", "NOT_FOUND", "_NOT_FOUND"}
# A place is a log and an offset in it, as the glossary says. Only modules that handle messages speak of it.
OF_PLACES = {
    "msgid.audit.story", "msgid.audit.tracing", "msgid.danube", "msgid.kafka", "msgid.rocketmq",
    "spark_ext.formats.kafka",
}  # fmt: skip
# Programs beside the packages, which an installation does not have.
ROOT = Path(__file__).parents[2]
PROGRAMS = {
    path.relative_to(ROOT).as_posix(): path
    for folder in ("bench", "scripts", "docs", "fuzz", ".ci")
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def defined(path):
    """Yield each name that a file defines, and whether it is a local variable."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {id(target) for statement in tree.body for target in ast.walk(statement) if is_statement(statement)}
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, False
            case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, False
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, id(node) not in constants


def is_statement(statement):
    """Return whether a statement of a module defines constants."""
    return isinstance(statement, ast.Assign | ast.AnnAssign)


@cache
def names():
    """Return the module, the name and whether it is a local variable, for each name of the source."""
    return sorted({(module, *name) for module, path in {**MODULES, **PROGRAMS}.items() for name in defined(path)})


def test_names_with_one_meaning_are_defined_once():
    modules = defaultdict(set)
    for module, name, is_local in names():
        if module in MODULES and name.lstrip("_") in ONE_MEANING and not is_local:
            modules[name.lstrip("_")].add(module)
    assert modules == ONE_MEANING


def test_words_without_a_meaning_of_their_own_are_not_names():
    """Neither in the packages nor in the programs beside them; local variables are names too."""
    words = {(module, name) for module, name, _ in names() if name not in KEPT and words_of(name) & AVOIDED.keys()}
    assert sorted(words) == []


def test_place_has_the_meaning_of_the_glossary():
    """An index, a position in bytes and a folder have names of their own."""
    named = {module for module, name, _ in names() if words_of(name) & {"place", "places"}}
    assert sorted(named - OF_PLACES) == []
    glossary = (ROOT / "docs" / "pages" / "glossary.md").read_text(encoding="utf-8")
    assert "| place | a log and an offset in it |" in glossary


def words_of(name):
    return set(re.findall("[a-z]+", name.lower()))
