"""Report: the rows of a check, as a table or as a file: lost ranges, and the messages of each fault with their rows."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgid import layout
from msgid.audit._roles import identity_of_parent
from msgid.audit.definitions import MALFORMED_KIND
from msgid.audit.duck import literal
from msgid.audit.reduction import COUNTED_STARTS
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from os import PathLike

    from msgid.audit._roles import Roles
    from msgid.audit.duck import Duck
    from msgid.audit.facts import Finding
    from msgid.audit.options import Rules
    from msgid.audit.reduction import Reduction, Relations

_OF_LOGS: Final = ("duplicate_messages", "conflicting_messages", "late_messages", "time_backwards")
_OF_IDS: Final = {"duplicate_ids": "n > contents", "conflicting_ids": "contents > 1"}
_WRITTEN: Final = {
    ".csv": "FORMAT csv, HEADER true", ".json": "FORMAT json", ".jsonl": "FORMAT json", ".ndjson": "FORMAT json",
    ".parquet": "FORMAT parquet",
}  # fmt: skip
"""How DuckDB writes a file, by its ending."""


class Lists:
    """The rows of each check of an audit. The connection, and so the relations of the statements, live as long."""

    def __init__(
        self, roles: Roles, relations: Relations, reduction: Reduction, rules: Rules, findings: list[Finding]
    ) -> None:
        self._roles, self._relations, self._reduction, self._rules = roles, relations, reduction, rules
        self._findings = findings

    def __call__(self, check: str) -> Any:
        """Return the rows of a check as an Arrow table."""
        return self._roles.duck.table(self._query(check))

    def write(self, check: str, path: str | PathLike[str]) -> None:
        """Write the rows of a check to a file."""
        write(self._roles.duck, self._query(check), path)

    def _query(self, check: str) -> str:
        """Return the query of the rows of a check, in the order of their logs, offsets or IDs."""
        self._add_functions()
        relation = self._reduction.relation
        if check == "missing_offsets":
            faults = f"SELECT log, low, high, n FROM {relation('faults')} WHERE fault = 'missing_offsets'"
            return f'SELECT {self._names("f.log")} AS log, low AS "first", high AS "last", n AS "count" FROM ({faults}) AS f ORDER BY 1, 2'  # noqa: E501
        if check in _OF_LOGS:
            return self._of_logs(check)
        if check == "missing_sequences":
            return self._sequences()
        with_ids, identity = self._roles.rows_with_ids(), self._identity()
        if check in _OF_IDS:
            return self._repeated_ids(check, with_ids)
        conditions = {
            "missing_ids": "key IS NULL AND value IS NULL",
            "malformed_ids": f"key IS NULL AND (value = '' OR msgid_kind(value) = {literal(MALFORMED_KIND)})",
            "ambiguous_ids": f"key IS NULL AND msgid_kind(value) = {literal(layout.KIND_AMBIGUOUS)}",
            "future_ids": "future = 1",
        }
        if check in conditions:
            return f"SELECT whole.* FROM ({with_ids}) AS r WHERE {conditions[check]}"
        if check == "v0_month_wrap":
            wrapped = f"SELECT identity FROM {relation('odd')} WHERE msgid_wraps(identity, near)"
            return f"SELECT whole.* FROM ({with_ids}) AS r WHERE key IS NULL AND {identity} IN ({wrapped})"
        if check == "orphan_ids":
            with_parents = self._roles.rows_with_ids(identity_of_parent())
            same = "o.key = r.key AND o.place = r.place AND o.parent = r.parent"
            orphan = f"SELECT 1 FROM {relation('orphans')} AS o WHERE {same}"
            return f"SELECT whole.* FROM ({with_parents}) AS r WHERE EXISTS ({orphan})"
        return self._of_findings(check)

    def _names(self, log: str) -> str:
        """Return the name of a log, by its number."""
        if self._roles.columns.offset is None:
            return f"msgid_node({log})"
        return self._roles.name_of(log)

    def _identity(self) -> str:
        """Return the identity of any value but a version-1 ID, in SQL."""
        return "CASE WHEN is_uuid THEN value ELSE {identity} END".format_map(self._relations.words)

    def _of_logs(self, check: str) -> str:
        faults = f"(SELECT log, low, wrong FROM {self._reduction.relation('faults')} WHERE fault = '{check}')"
        by = {"late_messages": ", f.wrong / 1e6 AS seconds_late", "time_backwards": ", f.wrong / 1e6 AS seconds_back"}
        rows = f"({self._roles.rows_in_logs()})" if self._roles.columns.offset is not None else None
        if rows is None:  # the IDs are the positions
            positions = self._reduction.relation("positions")
            return (
                f'SELECT {self._names("p.log")} AS log, p.off AS "offset", count(*) AS rows FROM {positions} AS p '
                f"JOIN {faults} AS f ON f.log = p.log AND f.low = p.off GROUP BY p.log, p.off ORDER BY 1, 2"
            )
        return (
            f"SELECT {self._names('r.log')} AS msgid_log, r.off AS msgid_offset{by.get(check, '')}, whole.* "
            f"FROM {rows} AS r JOIN {faults} AS f ON f.log = r.log AND f.low = r.off ORDER BY r.log, r.off"
        )

    def _repeated_ids(self, check: str, with_ids: str) -> str:
        condition, parts, identity = _OF_IDS[check], [], self._identity()
        if self._reduction.has("repeated_ids"):
            of = f"(SELECT key, place FROM {self._reduction.relation('repeated_ids')} WHERE {condition})"
            parts.append(
                f"SELECT r.key AS number, r.place, NULL AS text, whole FROM ({with_ids}) AS r "
                f"JOIN {of} AS o ON o.key = r.key AND o.place = r.place"
            )
        if self._reduction.has("repeated_others"):
            of = f"(SELECT identity FROM {self._reduction.relation('repeated_others')} WHERE {condition})"
            parts.append(
                f"SELECT NULL AS number, NULL AS place, o.identity AS text, whole FROM "
                f"(SELECT {identity} AS identity, whole FROM ({with_ids}) WHERE key IS NULL AND value <> '') AS r "
                f"JOIN {of} AS o ON o.identity = r.identity"
            )
        union = (
            " UNION ALL ".join(parts)
            or f"SELECT 0 AS number, 0 AS place, '' AS text, whole FROM ({with_ids}) WHERE false"
        )
        return f"SELECT whole.* FROM ({union}) ORDER BY text, number, place"

    def _sequences(self) -> str:
        """Return the missing ranges of sequence numbers, all of them."""
        import pyarrow as pa

        from msgid.audit.runs import facts_of_words

        rules = replace(self._rules, max_gaps=1 << 40)
        spans = self._reduction.text("spans", counted=COUNTED_STARTS)
        duck = self._roles.duck
        facts = duck.facts(spans, lambda *columns: facts_of_words(columns, rules), "node")
        gaps = [gap for part in facts for gap in part.gaps]
        names = ("scope", "first", "last", "count")
        table = pa.table({name: [getattr(gap, name) for gap in gaps] for name in names})
        name = duck.new_name("sequences")
        duck.register(name, table)
        return f'SELECT scope AS generator, "first", "last", "count" FROM {name} ORDER BY 1, 2'

    def _of_findings(self, check: str) -> str:
        """Return the findings of a check about generators and nodes, one row per finding."""
        import pyarrow as pa

        duck, findings = self._roles.duck, [one for one in self._findings if one.check == check]
        names = ("scope", "count", "example", "meaning")
        types = {"count": pa.int64()}
        table = pa.table(
            {name: pa.array([getattr(one, name) for one in findings], types.get(name, pa.string())) for name in names}
        )
        name = duck.new_name("findings")
        duck.register(name, table)
        return f"SELECT * FROM {name}"

    def _add_functions(self) -> None:
        """Make the functions of Python that some lists need functions of SQL."""
        from msgid.audit.odd_values import is_of_month_before, kind_of_text

        def nodes(values: Any) -> Any:
            import pyarrow as pa

            return pa.array([layout.format_mac(one) for one in values.to_pylist()], pa.string())

        def kinds(values: Any) -> Any:
            import pyarrow as pa

            return pa.array([kind_of_text(one).kind if one else None for one in values.to_pylist()], pa.string())

        def wraps(values: Any, near: Any) -> Any:
            import pyarrow as pa

            pairs = zip(values.to_pylist(), near.to_pylist(), strict=True)
            read = ((kind_of_text(value).elapsed_ms, moment) for value, moment in pairs)
            return pa.array([ms is not None and is_of_month_before(ms, moment) for ms, moment in read], pa.bool_())

        duck = self._roles.duck
        if not duck.has_function("msgid_kind"):
            duck.function("msgid_node", nodes, "BIGINT", "VARCHAR")
            duck.function("msgid_kind", kinds, "VARCHAR", "VARCHAR")
            duck.function("msgid_wraps", wraps, ["VARCHAR", "BIGINT"], "BOOLEAN")


def write(duck: Duck, query: str, path: str | PathLike[str]) -> None:
    """Write the rows of a query to a file of CSV, JSON lines or Parquet, by its ending: whole, or not at all.

    Args:
        duck: The connection.
        query: The query.
        path: The file. A file that exists is replaced.

    Raises:
        ValueError: if the ending is another one.
        OSError: if the file cannot be written.
    """
    target = Path(path)
    check_ending(target)
    hidden = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        duck.run(f"COPY ({query}) TO {literal(hidden)} ({_WRITTEN[target.suffix.lower()]})")
        os.replace(hidden, target)
    finally:
        hidden.unlink(missing_ok=True)


def check_ending(path: Path) -> None:
    """Raise ValueError if a file of rows has an ending that is not written."""
    if path.suffix.lower() not in _WRITTEN:
        raise ValueError(f"the file of rows must end with {', '.join(_WRITTEN)}, got {quote(str(path))}")
