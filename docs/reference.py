"""Write the reference pages: one entry for each public name. A test compares the pages with ``__all__``.

python docs/reference.py
"""

from __future__ import annotations

import sys
from collections import Counter
from importlib import import_module
from inspect import getdoc
from itertools import chain
from pathlib import Path

PAGES = Path(__file__).parent / "pages" / "reference"
BY_HAND = ("index.md", "commands.md", "commands-spark.md")
"""Pages that this script does not write."""
NUMPY_STYLE = (
    "    options:",
    "      docstring_style: numpy",
    "      docstring_options: { warn_unknown_params: false, warn_missing_types: false }",
)
"""The options of an entry in `spark_ext`; those in ``mkdocs.yml`` are for docstrings in Google's style."""
# Each module, with what its pages are about. A module with groups has a page for each and an overview.
MODULES: dict[str, str] = {
    "msgid": "IDs in Python.",
    "msgid.iggy": "Messages of Iggy, as its files, requests and answers hold them.",
    "msgid.kafka": "Records of Kafka.",
    "msgid.rocketmq": "Records of RocketMQ.",
    "msgid.danube": "Messages of Danube.",
    "msgid.schemas": "Schemas of payloads, their versions and compatibility.",
    "msgid.retention": "Policies, segments and the cleaner.",
    "msgid.processing": "Handlers that may run twice.",
    "msgid.testing": "Tests that each store of states must pass; they need pytest.",
    "msgid.audit": "Find lost, duplicated and late messages in a table.",
    "spark_ext": "IDs, messages and state on Spark. A function of a column takes a `Column` or a column's name.",
    "spark_ext.testing": "Tests that each message format and each table format must pass; they need pytest.",
}


# Where Spark refuses SQL functions: a statement, the condition in its error, and another statement that works.
REFUSED: tuple[tuple[str, str, str], ...] = (
    (
        "SELECT id FROM orders ORDER BY msgid_kind(id)",
        "UNSUPPORTED_SQL_UDF_USAGE",
        "SELECT id, msgid_kind(id) AS kind FROM orders ORDER BY kind",
    ),
    (
        "SELECT id FROM orders SORT BY msgid_kind(id)",
        "UNSUPPORTED_SQL_UDF_USAGE",
        "SELECT id FROM (SELECT id, msgid_kind(id) AS kind FROM orders) SORT BY kind",
    ),
    (
        "SELECT id FROM orders DISTRIBUTE BY msgid_kind(id)",
        "UNSUPPORTED_SQL_UDF_USAGE",
        "SELECT id FROM (SELECT id, msgid_kind(id) AS kind FROM orders) DISTRIBUTE BY kind",
    ),
    (
        "SELECT transform(array(id), x -> msgid_kind(x)) AS kinds FROM orders",
        "UNSUPPORTED_FEATURE.LAMBDA_FUNCTION_WITH_SQL_UDF",
        "SELECT collect_list(msgid_kind(x)) AS kinds FROM (SELECT explode(array(id)) AS x FROM orders)",
    ),
    (
        "SELECT * FROM VALUES (msgid_kind('01'))",
        "INVALID_INLINE_TABLE.CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE",
        "SELECT msgid_kind(id) FROM VALUES ('01') AS t(id)",
    ),
    (
        "CREATE VIEW kinds AS SELECT msgid_kind(id) AS kind FROM orders",
        "INVALID_TEMP_OBJ_REFERENCE",
        "CREATE OR REPLACE TEMPORARY VIEW kinds AS SELECT msgid_kind(id) AS kind FROM orders",
    ),
    (
        "CREATE TABLE kinds (id STRING, kind STRING DEFAULT msgid_kind('01')) USING parquet",
        "UNSUPPORTED_SQL_UDF_USAGE",
        "SELECT id, msgid_kind(id) AS kind FROM orders",
    ),
)


# The names of a module that most users need. Its overview starts with them.
FIRST: dict[str, str] = {
    "msgid": "generate parse is_valid position_id derive_id generate_batch parse_batch",
    "msgid.iggy": "read_log decode_poll Message SendMessages",
    "msgid.schemas": "check_schema SchemaRegistry Schema from_confluent",
    "msgid.retention": "RetentionPolicy is_expired Cleaner",
    "msgid.processing": "Processor AsyncProcessor Message SqliteStore PostgresStore MemoryStore",
    "msgid.audit": "audit_file audit_table audit_ids compare trace doctor",
    "spark_ext": "position_id derive_id try_parse_id is_valid_id deduplicate write_once read_table upsert_postgres "
    "audit compare trace",
}


# The modules one level down that have public names: types of results, the values of a contract, and rare commands.
BELOW: dict[str, tuple[str, ...]] = {
    "msgid": ("ids.bulk",),
    "msgid.audit": ("definitions", "facts", "story"),
    "msgid.iggy": ("commands", "message"),
    "msgid.processing": ("store",),
    "msgid.retention": ("cleaner",),
    "spark_ext": ("auditing.spark_report", "tables.upsert"),
}


# The names of a module by task. A module that is not here has one page, with its names in alphabetical order.
GROUPS: dict[str, dict[str, str]] = {
    "msgid": {
        "Make IDs": "generate generate_hex Generator reseed position_id derive_id",
        "Read IDs": "parse is_valid translate_v0",
        "Kinds of IDs": "MessageId ClientUniqueId BrokerOffsetId",
        "Many IDs": "generate_batch parse_batch IdBatch ids.bulk.IdColumns",
        "Hide addresses": "pseudonymize",
        "The node of new IDs": "explain_node backend",
        "Messages": "MessageState",
        "Errors": "InvalidMessageId InvalidMessage TruncatedMessage",
    },
    "msgid.iggy": {
        "Read messages": "decode decode_log read_log decode_poll PollResponse",
        "Read tables": "decode_table read_tables",
        "Messages": "Message Header HeaderKind HeaderKey message.Batch Producer",
        "Write messages": "encode encode_log encode_poll checksum id_value id_text",
        "Requests and their answers": "SendMessages Partitioning commands.CreateStream commands.CreateTopic "
        "commands.Stream commands.Topic",
        "JSON": "to_json from_json",
        "Constants": "LAYOUTS",
    },
    "msgid.schemas": {
        "Check payloads": "check_schema frame unframe",
        "Versions of a schema": "SchemaRegistry Schema check_compatibility",
        "Other registries": "SchemaSource from_confluent from_lookup",
        "Errors": "InvalidSchema IncompatibleSchema",
    },
    "msgid.retention": {
        "Policies": "RetentionPolicy is_expired decide Segment InvalidPolicy",
        "The cleaner": "Cleaner cleaner.SegmentFile",
    },
    "msgid.audit": {
        "Audit a table": "audit_table audit_file audit_ids AuditOptions ColumnNames",
        "Compare two sides": "compare digest merge_digests",
        "One message": "trace story.Trace story.Event",
        "Who made the IDs": "doctor collision_risk",
        "The report": "Report facts.Finding facts.Gap definitions.Severity",
        "The checks": "CHECKS",
    },
    "msgid.processing": {
        "Handle messages": "Processor AsyncProcessor run",
        "Messages and outcomes": "Message Outcome Output Context Handler",
        "Stores": "MemoryStore SqliteStore PostgresStore",
        "A store of your own": "Store store.Version store.Entry store.Reading store.Append dumps loads",
        "What went wrong": "DeadLetter BatchFailed ChangedBody ChangedOutputs InvalidStore MissingTime TooLate "
        "TooManyFailures",
    },
    "spark_ext": {
        "Make IDs": "position_id derive_id assign_ids assign_id generate_id",
        "Read IDs": "parse_id try_parse_id is_valid_id id_kind id_time id_origin time_key",
        "Version 0": "parse_v0 try_parse_v0 translate_v0 try_translate_v0 v0_time",
        "Other forms of an ID": "id_to_binary id_from_binary id_to_uuid id_from_uuid",
        "Messages": "messages check_schema id_from_iggy_id",
        "Duplicates and handlers": "deduplicate rows_too_late process",
        "Sinks": "write_once read_table upsert_postgres tables.upsert.Upserted PostgresError TableConflict",
        "Audits": "audit auditing.spark_report.AuditReport",
        "Two sides": "compare digest",
        "One message": "trace",
        "Retention": "is_expired segment_report",
        "SQL": "register",
        "Message formats of your own": "register_message_format MessageFormat FormatOption",
        "Table formats of your own": "register_table_format TableFormat",
    },
}


def pages() -> dict[str, str]:
    """Return the text of each page by its file's name."""
    written = {"sql.md": _sql()}
    for module, lead in MODULES.items():
        tasks = grouped(module)
        if module in GROUPS:
            written |= {_file(module, task): _entries(module, task, listed) for task, listed in tasks.items()}
            rows = [f"| [{task}]({_file(module, task)}) | {_links(module, listed)} |" for task, listed in tasks.items()]
            table = [*_first(module), "| task | names |", "|---|---|", *rows]
        else:
            table = _list(module, tasks[""])
        written[_file(module)] = "\n".join([f"# {module}", "", lead, "", *table, ""])
    written[_file("msgid.audit", "The checks")] += _checks()
    return written


def navigation() -> list[dict[str, str | list[str | dict[str, str]]]]:
    """Return the part of the site's navigation with the pages of the modules."""
    sections: list[dict[str, str | list[str | dict[str, str]]]] = []
    for module in MODULES:
        overview = f"reference/{_file(module)}"
        tasks: list[str | dict[str, str]] = [
            {task: f"reference/{_file(module, task)}"} for task in GROUPS.get(module, ())
        ]
        sections.append({module: [overview, *tasks] if tasks else overview})
    return sections


def _file(module: str, task: str | None = None) -> str:
    """Return the name of a module's page, or of the page of a task."""
    return f"{module}.md" if task is None else f"{module}/{task.lower().replace(' ', '-')}.md"


def names(module: str) -> list[str]:
    """Return the public names of a module and of those below it, functions and classes before constants."""
    below = (f"{one}.{name}" for one in BELOW.get(module, ()) for name in import_module(f"{module}.{one}").__all__)
    return sorted([*import_module(module).__all__, *below], key=lambda name: (name.isupper(), name))


def grouped(module: str) -> dict[str, list[str]]:
    """Return the public names of a module by task; a module without groups has one without a title.

    Raises:
        ValueError: if a public name is in no group or in two, or a name is not public.
    """
    public = names(module)
    if module not in GROUPS:
        return {"": public}
    groups = {title: listed.split() for title, listed in GROUPS[module].items()}
    listed, wanted = Counter(chain.from_iterable(groups.values())), Counter(public)
    if wrong := sorted((listed - wanted) | (wanted - listed)):
        raise ValueError(f"GROUPS[{module!r}] must have each public name once; see {', '.join(wrong)}")
    return groups


def _entries(module: str, task: str, listed: list[str]) -> str:
    return "\n".join([f"# {task}", "", f"[`{module}`](../{_file(module)})", "", *_list(module, listed), ""])


def _list(module: str, listed: list[str]) -> list[str]:
    """Return the entries of names, which mkdocstrings fills in."""
    options = NUMPY_STYLE if module.startswith("spark_ext") else ()
    return [line for name in listed for line in (f"::: {module}.{name}", *options, "")][:-1]


def _first(module: str) -> list[str]:
    """Return the part of an overview with the names that most users need, if the module has such names."""
    if module not in FIRST:
        return []
    things = {name: getattr(import_module(module), name) for name in FIRST[module].split()}
    rows = [f"| {_links(module, [name])} | {_summary(thing)} |" for name, thing in things.items()]
    return ["| start with | it does |", "|---|---|", *rows, "", "## More", ""]


def _summary(thing: object) -> str:
    return (getdoc(thing) or "").partition("\n")[0]


def _links(module: str, listed: list[str]) -> str:
    return ", ".join(f"[`{name}`][{module}.{name}]" for name in listed)


def _checks() -> str:
    from msgid.audit import CHECKS

    lines = [
        "",
        "A check runs if the table has the columns that it needs. `counter` means IDs that carry a sequence number,",
        "and `sent` a comparison with the sent messages.",
        "",
        "| check | severity | needs | a finding means |",
        "|---|---|---|---|",
        *(f"| `{name}` | {one.severity} | {', '.join(one.needs)} | {one.meaning} |" for name, one in CHECKS.items()),
    ]
    return "\n".join([*lines, ""])


def _sql() -> str:
    sys.path.append(str(Path(__file__).parents[1] / "scripts"))
    from sql_functions import EXAMPLES, FUNCTIONS, said_of

    from spark_ext.columns.making import assign_id, generate_id

    lines = [
        "# SQL functions",
        "",
        "`spark_ext.register(spark)` creates these functions in a session. Each is the column function in the last",
        "column, which describes arguments and errors. [Some places](#where-spark-refuses-them) do not allow",
        "such functions.",
        "",
        "| SQL | result | column function |",
        "|---|---|---|",
    ]
    calls = {f"`{name}({', '.join(one.parameters)})`": one.function for name, one in FUNCTIONS.items()}
    calls["`msgid_assign()`"] = assign_id
    calls["`msgid_generate()`"] = generate_id
    for call, function in calls.items():
        public = function.__name__
        lines.append(f"| {call} | {said_of(function)} | [`{public}`][spark_ext.{public}] |")
    lines += [
        "",
        "## Examples",
        "",
        "Times are in UTC, and `hex` makes bytes visible.",
        "",
        "| call | result |",
        "|---|---|",
    ]
    lines += [f"| `{call}` | {'NULL' if result is None else f'`{result}`'} |" for call, result in EXAMPLES.values()]
    lines += [
        "",
        "A struct becomes columns in an outer query: `SELECT p.* FROM (SELECT msgid_parse(id) AS p FROM orders)`.",
        "",
        "## Where Spark refuses them",
        "",
        "Spark 4.3 does not allow SQL functions in these places. Column functions of Python do not have",
        "this limit. `WHERE`, `GROUP BY`, `HAVING`, `JOIN ... ON`, windows, `CASE` and `INSERT ... SELECT` allow both.",
        "",
        "| refused | condition of the error | instead |",
        "|---|---|---|",
    ]
    lines += [f"| `{refused}` | `{condition}` | `{instead}` |" for refused, condition, instead in REFUSED]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    written = pages()
    for old in PAGES.rglob("*.md"):
        if old.relative_to(PAGES).as_posix() not in {*written, *BY_HAND}:
            old.unlink()
    for name, text in written.items():
        (PAGES / name).parent.mkdir(exist_ok=True)
        (PAGES / name).write_text(text, encoding="utf-8")
