"""Write the reference pages: one entry for each public name. A test compares the pages with ``__all__``.

python docs/reference.py
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

PAGES = Path(__file__).parent / "pages" / "reference"
# Each page has a title, a first sentence and a list of modules.
CONTENTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "msgid": ("msgid", "IDs in Python.", ("msgid",)),
    "formats": (
        "Message formats",
        "The formats that IDs travel in. Malformed input raises `msgid.InvalidMessage`.",
        ("msgid.iggy", "msgid.danube", "msgid.kafka", "msgid.rocketmq"),
    ),
    "schemas": ("Schemas", "Schemas of payloads, their versions and compatibility.", ("msgid.schemas",)),
    "retention": ("Retention", "Policies, segments and the cleaner.", ("msgid.retention",)),
    "processing": ("Processing", "Handlers that may run twice.", ("msgid.processing",)),
    "audit": (
        "Audit",
        "Find lost, duplicated and late messages in a table.",
        ("msgid.audit", "msgid.audit.demonstration"),
    ),
    "spark_ext": (
        "spark_ext",
        "IDs, messages and state on Spark. A function of a column takes a `Column` or a column's name.",
        ("spark_ext",),
    ),
}


def pages() -> dict[str, str]:
    """Return the text of each page by its file's name."""
    written = {f"{page}.md": _page(*content) for page, content in CONTENTS.items()}
    return {**written, "sql.md": _sql()}


def names(module: str) -> list[str]:
    """Return the public names of a module, functions and classes before constants."""
    return sorted(import_module(module).__all__, key=lambda name: (name.isupper(), name))


def _page(title: str, lead: str, modules: tuple[str, ...]) -> str:
    lines = [f"# {title}", "", lead]
    for module in modules:
        style = ["    options:", "      docstring_style: numpy"] if module.startswith("spark_ext") else []
        if module != title:
            lines += ["", f"## `{module}`"]
        for name in names(module):
            lines += ["", f"::: {module}.{name}", *style]
    return "\n".join([*lines, ""])


def _sql() -> str:
    from spark_ext.columns.making import assign_id, generate_id
    from spark_ext.sql.functions import FUNCTIONS, said_of

    lines = [
        "# SQL functions",
        "",
        "`spark_ext.register(spark)` creates these functions in a session. Each is the column function in the last",
        "column, which describes arguments and errors. The [tutorial](../tutorial/spark.md#sql) has examples, and says",
        "where Spark does not allow such functions.",
        "",
        "| SQL | result | column function |",
        "|---|---|---|",
    ]
    calls = {f"`{name}({', '.join(one.parameters)})`": one.function for name, one in FUNCTIONS.items()}
    calls["`msgid_assign()`"] = assign_id
    calls["`msgid_generate(x)`, where `x` is any column"] = generate_id
    for call, function in calls.items():
        public = function.__name__
        lines.append(f"| {call} | {said_of(function)} | [`{public}`](spark_ext.md#spark_ext.{public}) |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
