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


# The names of a module by task. A module that is not here has its names in alphabetical order.
GROUPS: dict[str, dict[str, str]] = {
    "msgid": {
        "Make IDs": "generate generate_hex generate_batch Generator position_id derive_id",
        "Read IDs": "parse is_valid translate_v0 MessageId ClientUniqueId BrokerOffsetId parse_batch IdBatch IdColumns",
        "Hide addresses": "pseudonymize",
        "The node of new IDs": "explain_node NodeChoice backend",
        "Messages": "MessageState normalize_name",
        "Errors": "InvalidMessageId InvalidMessage TruncatedMessage",
    },
    "msgid.iggy": {
        "Read messages": "decode decode_log read_log decode_table read_tables decode_poll detect Message Header "
        "HeaderKind HeaderKey Batch Producer PollResponse Detection",
        "Write messages": "encode encode_log encode_poll checksum id_value id_text",
        "Requests and their answers": "SendMessages Partitioning CreateStream CreateTopic Stream Topic",
        "JSON": "to_json from_json messages_from_json",
        "Parts of a large segment": "split_points boundary read_part Split Boundary",
        "Constants": "LAYOUTS",
    },
    "msgid.processing": {
        "Handle messages": "processor Processor AsyncProcessor run Message Outcome Output Context Random Handler",
        "Stores": "MemoryStore SqliteStore PostgresStore Store Version Entry Reading Append Forgetting dumps loads",
        "What went wrong": "DeadLetter BatchFailed ChangedOutputs InvalidStore MissingTime TooLate",
    },
    "spark_ext": {
        "Make IDs": "position_id derive_id assign_ids assign_id generate_id",
        "Read IDs": "parse_id try_parse_id is_valid_id id_kind id_time id_mac id_origin time_key",
        "Version 0": "parse_v0 try_parse_v0 translate_v0 try_translate_v0 v0_time",
        "Other forms of an ID": "id_to_binary id_from_binary id_to_uuid id_from_uuid",
        "Messages": "messages iggy_message try_iggy_message iggy_messages try_iggy_messages danube_message "
        "try_danube_message danube_id id_from_iggy_id id_to_iggy_id message_state checksum_ok normalize_name "
        "try_normalize_name check_schema",
        "Duplicates and handlers": "deduplicate rows_too_late process check_checkpoint OldCheckpoint",
        "Sinks": "write_once read_table upsert_postgres Upserted PostgresError TableConflict TableBusy MissingRows",
        "Audits": "audit audit_batches compare digest AuditReport",
        "Retention": "is_expired segment_report clean CleanedSegment",
        "SQL": "register",
        "Workers": "WorkerError CoreNote",
        "Formats of your own": "register_message_format MessageFormat FormatOption register_table_format TableFormat "
        "Writer JudgedSegment",
    },
}


def pages() -> dict[str, str]:
    """Return the text of each page by its file's name."""
    written = {f"{page}.md": _page(*content) for page, content in CONTENTS.items()}
    return {**written, "sql.md": _sql()}


def names(module: str) -> list[str]:
    """Return the public names of a module, functions and classes before constants."""
    return sorted(import_module(module).__all__, key=lambda name: (name.isupper(), name))


def grouped(module: str) -> dict[str, list[str]]:
    """Return the public names of a module by task. A name that `GROUPS` lacks is in a group without a title.

    Raises:
        ValueError: if `GROUPS` has a name that is not public, or twice.
    """
    groups = {title: listed.split() for title, listed in GROUPS.get(module, {}).items()}
    known = [name for listed in groups.values() for name in listed]
    public = names(module)
    if wrong := sorted({name for name in known if known.count(name) > 1 or name not in public}):
        raise ValueError(f"GROUPS[{module!r}] has a name that is not public, or twice: {', '.join(wrong)}")
    return {"": [name for name in public if name not in known], **groups}


def _page(title: str, lead: str, modules: tuple[str, ...]) -> str:
    lines = [f"# {title}", "", lead]
    for module in modules:
        options = ["      docstring_style: numpy"] if module.startswith("spark_ext") else []
        if module != title:
            lines += ["", f"## `{module}`"]
        for task, listed in grouped(module).items():
            if task:
                lines += ["", f"{'##' if module == title else '###'} {task}"]
            deeper = ["      heading_level: 4"] if task and module != title else []
            style = ["    options:", *options, *deeper] if options or deeper else []
            for name in listed:
                lines += ["", f"::: {module}.{name}", *style]
    return "\n".join([*lines, ""])


def _sql() -> str:
    from spark_ext.columns.making import assign_id, generate_id
    from spark_ext.sql.examples import EXAMPLES
    from spark_ext.sql.functions import FUNCTIONS, said_of

    lines = [
        "# SQL functions",
        "",
        "`spark_ext.register(spark)` creates these functions in a session. Each is the column function in the last",
        "column, which describes arguments and errors. The [tutorial](../tutorial/spark.md#sql) says where Spark does",
        "not allow such functions.",
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
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
