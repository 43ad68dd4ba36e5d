"""The words of the source: each word that had several meanings names one thing, and a name says what its value is."""

import ast
import re
from collections import defaultdict

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
# Words that name no class, function, argument, attribute or constant, and what to write.
AVOIDED = {
    "minter": "generator",
    "told": "name the value",
    "held": "name the value",
}
# The class that the C core has too.
KEPT = {"Minter"}


def defined():
    """Yield the module and the name of each class, function, argument, attribute and constant."""
    for module, path in MODULES.items():
        inside = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for node in inside:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    yield module, name
                case ast.arg(arg=name):
                    yield module, name
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    yield module, name
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield module, target.id


NAMES = sorted(set(defined()))


def test_names_with_one_meaning_are_defined_once():
    found = defaultdict(set)
    for module, name in NAMES:
        if name.lstrip("_") in ONE_MEANING:
            found[name.lstrip("_")].add(module)
    assert found == ONE_MEANING


def test_words_without_a_meaning_of_their_own_are_not_names():
    words = {
        (module, name, word)
        for module, name in NAMES
        if name not in KEPT
        for word in re.findall("[a-z]+", name.lower())
    }
    assert sorted(one for one in words if one[2] in AVOIDED) == []
