"""The structure of the source: one-way imports, and tests that mirror the packages."""

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from helpers.imports import folder_of, imports_in, modules_of, named_in

TESTS = Path(__file__).parents[1]

PACKAGES = {"msgid": folder_of("msgid"), "spark_ext": folder_of("spark_ext")}
MODULES = {package: modules_of(package, folder) for package, folder in PACKAGES.items()}
EVERY_MODULE = {name: path for modules in MODULES.values() for name, path in modules.items()}


@cache
def imports():
    """Return the modules of both packages that each module imports."""
    known = set(EVERY_MODULE)
    return {name: imports_in(path.read_text(encoding="utf-8"), name, known) for name, path in EVERY_MODULE.items()}


# From the lowest layer to the highest. A module imports its own group and lower layers, but no other group of its
# own layer. "" is the package's own __init__, which exports the public names.
LAYERS = {
    "msgid": [
        ["errors", "layout", "shared"],
        ["shared.arrow_schema", "shared.retrying", "shared.validate"],
        ["shared.moments"],
        ["shared.postgres_limits"],
        ["shared.contents", "ids"],
        ["shared.known_tables", "shared.handler_message", "messages"],
        ["danube", "iggy", "kafka", "rocketmq", "schemas"],
        ["audit", "processing", "retention"],
        ["", "testing"],
        ["shared.command_line"],
        ["cli"],
        ["__main__"],
    ],
    "spark_ext": [
        ["_arguments", "_private", "_registry", "_settings", "streaming._state_store"],
        ["_shipping"],
        ["_compat"],
        ["_filesystem"],
        ["_session", "columns"],
        ["formats", "streaming", "tables"],
        ["auditing", "sql"],
        ["jobs"],
        ["", "testing"],
        ["cli"],
        ["__main__"],
    ],
}

# Modules with the same name, and the reason. Every package has an __init__.
SAME_NAME = {
    "_roles": "the columns of a table as roles of an audit: in DuckDB's SQL, and as columns of Spark",
    "testing": "msgid.testing has the tests of a store, spark_ext.testing those of formats",
    "comparison": "spark_ext.auditing.comparison is msgid.audit.comparison on Spark",
    "tracing": "spark_ext.auditing.tracing is msgid.audit.tracing on Spark",
    "__main__": "python -m msgid, python -m spark_ext",
    "cli": "the command line of each package",
    "danube": "spark_ext.formats.danube is the column form of msgid.danube",
    "errors": "msgid.processing.errors has the errors of handlers alone, msgid.errors those of the whole package",
    "iggy": "spark_ext.formats.iggy is the column form of msgid.iggy",
    "kafka": "spark_ext.formats.kafka is the column form of msgid.kafka",
    "messages": "spark_ext.testing.messages tests what msgid.messages and the formats share",
    "rocketmq": "spark_ext.formats.rocketmq is the column form of msgid.rocketmq",
    "tables": "spark_ext.testing.tables tests the formats in spark_ext.tables",
    "v0": "spark_ext.columns.v0 is the column form of msgid.ids.v0",
}


def room_of(package, module):
    """Return the layer and the group of a module: the longest group with which the module's name starts."""
    inner = module.removeprefix(package).removeprefix(".")
    found = [
        (len(room), layer, room)
        for layer, rooms in enumerate(LAYERS[package])
        for room in rooms
        if inner == room or (room and inner.startswith(f"{room}."))
    ]
    assert found, f"{module} is in no layer: add it to LAYERS"
    return max(found)[1:]


def test_imports_of_all_modules_have_no_cycle():
    """Modules do not import themselves through others, not even in a function or for a type checker."""
    assert list(TopologicalSorter(imports()).static_order())  # it raises for a cycle


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_between_layers_go_one_way(package):
    """Also those that a module makes when it runs, of a module that it names as text."""
    wrong = []
    for module, path in MODULES[package].items():
        layer, room = room_of(package, module)
        named = named_in(path.read_text(encoding="utf-8"), module, set(EVERY_MODULE))
        for imported in (imports()[module] | named) & set(MODULES[package]):
            its_layer, its_room = room_of(package, imported)
            if not (its_layer < layer or its_room == room):
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


def test_imports_of_msgid_never_reach_spark_ext():
    assert [name for name in MODULES["msgid"] if imports()[name] & set(MODULES["spark_ext"])] == []
    assert any(imports()[name] & set(MODULES["msgid"]) for name in MODULES["spark_ext"])


def test_modules_with_an_underscore_are_private_to_their_package():
    """They are imported in their own package, or in the one around it; `msgid.shared` has what both packages share."""
    wrong = []
    for importer, path in EVERY_MODULE.items():
        package = importer if path.name == "__init__.py" else importer.rpartition(".")[0]
        named = named_in(path.read_text(encoding="utf-8"), importer, set(EVERY_MODULE))
        for imported in imports()[importer] | named:
            private = re.match(r"(.*?)\._", imported)
            owner = private[1] if private else package
            if not f"{package}.".startswith(f"{owner}.") and package != owner.rpartition(".")[0]:
                wrong.append(f"{importer} imports {imported}")
    assert sorted(wrong) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_of_a_package_name_existing_modules(package):
    rooms = [room for rooms in LAYERS[package] for room in rooms]
    assert [room for room in rooms if f"{package}.{room}".rstrip(".") not in MODULES[package]] == []


@pytest.mark.parametrize(("tests", "package"), [("unit", "msgid"), ("spark", "spark_ext")])
def test_test_folders_mirror_folders_of_the_package(tests, package):
    root = TESTS / tests
    folders = {path.parent.relative_to(root) for path in root.rglob("test_*.py")}
    assert len(folders) > 1
    assert [str(folder) for folder in folders if not (PACKAGES[package] / folder).is_dir()] == []


# Words of interfaces of Spark that are not public, as they stand in the source.
NOT_PUBLIC = re.compile(
    r"_jvm\b|_jsparkSession\b|\b_jc\b|_jdf\b|_jsc\b|\.catalyst\b|\bpy4j\b|__globPaths__|_spark_metadata|watermarkDelayMs"
    r"|sql\.streaming\.queryId|logOffset|/offsets\b|/commits\b|/sources/|_unparsed_identifier|nameParts|\._expr\b"
    r"|\bin str\(error\)|(?:search|match|findall)\(str\(error\)\)|\\\[[A-Z]\w*_[A-Z]"
)


def test_interfaces_of_spark_that_are_not_public_stand_in_one_module():
    """Only `spark_ext._private` uses Spark's internals, files of checkpoints, or the words of errors."""
    found = {}
    for name, path in MODULES["spark_ext"].items():
        lines = path.read_text(encoding="utf-8").splitlines()
        found[name] = [line.strip() for line in lines if NOT_PUBLIC.search(line) and "print(" not in line]
    assert found.pop("spark_ext._private")
    assert {name: lines for name, lines in found.items() if lines} == {}


DOORS = {"msgid.ids.checked_bytes", "msgid.ids.carriers", "spark_ext.columns.identity"}
"""The doors: of a value and of a column in `msgid`, and of a column in `spark_ext`."""
OF_FILES = {"msgid.audit._frames", "msgid.audit._parquet_files", "msgid.audit.parts",
            "spark_ext.tables.parquet_uuids"}  # fmt: skip
"""They find the type that a file or all files of a folder state; the doors make IDs of it."""
LOOKERS = {
    "msgid.shared.contents": "values of contents",
    "msgid.audit._roles": "names of logs, offsets and times",
    "msgid.audit.sides": "contents",
    "msgid.audit._sources": "values of JSON, whose numbers the door refuses",
    "msgid.audit.tracing": "the stored forms of one ID, by which files are skipped; the door makes the IDs of the rows",
    "msgid.ids.message_id": "the UUID that has the body of a version-1 ID",
    "msgid.iggy.message": "the 16 bytes of an Iggy message, whose meaning its options tell",
    "msgid.processing.strict_json": "values of states",
    "spark_ext.auditing._roles": "times and contents",
    "spark_ext.columns.column_types": "arguments that are not IDs, names of logs, offsets",
    "spark_ext.columns.moment_columns": "times",
    "spark_ext.formats._row_columns": "keys and payloads",
    "spark_ext.jobs.ids_job": "offsets and names of logs",
    "spark_ext.columns.fingerprint": "contents",
    "spark_ext.tables._column_rules": "columns of partitions, and types that a table may widen",
    "spark_ext.tables.upsert": "the order of rows",
}
"""Other modules that look at types in which IDs come, each with the values whose types it looks at."""
_ID_TYPES = {"BinaryType", "StringType", "UUID"}
_ID_NAMES = {"BLOB", "VARCHAR", "UUID", "arrow.uuid"}


def looks_at_types(tree):
    """Return whether code asks for a type in which IDs come: of Python, Arrow, DuckDB or Spark."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "typeof" or re.fullmatch("is_(fixed_size_|large_)?(binary|string)(_view)?", name):
                return True
            inside = ast.walk(node.args[1]) if name == "isinstance" else ()
            if {getattr(one, "attr", getattr(one, "id", "")) for one in inside} & _ID_TYPES:
                return True
        if isinstance(node, ast.Compare):
            parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
            if {getattr(part, "value", None) for part in parts if isinstance(part, ast.Constant)} & _ID_NAMES:
                return True
            if any(isinstance(part, ast.Name) and part.id == "UUID" for part in parts):
                return True
    return False


def test_only_the_doors_look_at_the_type_of_ids():
    """A module that asks for such a type is a door, a reader of files, or says of what other column it asks."""
    found = {name for name, path in EVERY_MODULE.items() if looks_at_types(ast.parse(path.read_text(encoding="utf-8")))}
    assert found - DOORS == OF_FILES | LOOKERS.keys()


def test_module_names_are_used_once():
    """Two modules share a name only if one is another form of the other."""
    places = defaultdict(list)
    for name, path in EVERY_MODULE.items():
        if path.name != "__init__.py" or path.parent not in PACKAGES.values():
            places[name.rpartition(".")[2]].append(name)
    assert {name for name, modules in places.items() if len(modules) > 1} == set(SAME_NAME)
