"""Reduce: the facts of a table, by the statements of `reduce.sql`, which DuckDB or Spark runs.

The rule of a log and the rule of an ID are these statements. Only the kinds of odd values and the runs of generators
are computed in Python, from values and words of which each is passed once.
"""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgid import layout
from msgid.audit.definitions import COUNTED, COUNTED_FROM_0, MALFORMED_KIND, MAX_ROWS, MAX_SCOPES, NULL_KIND, TABLE
from msgid.audit.facts import NOTHING, Counted, Facts, Gap, KindRow, LogRow, merged, part_of
from msgid.shared.moments import UNIX_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from msgid.audit.options import Rules

EMPTY: Final = "empty"
"""The reason why an empty value is not an ID."""
UUID_KIND: Final = "uuid"
"""The kind of an ID that is the text of a UUID."""

FIELDS: Final = ("node", "pid", "seconds", "word")
"""The fields of an ID; the last one is its sequence number divided by 32."""


class Engine(Protocol):
    """What runs the statements: DuckDB on one machine, or Spark."""

    def kept(self, name: str, text: str) -> str:
        """Return the name of a relation with the rows of a query, which is run once."""

    def rows(self, text: str) -> list[Any]:
        """Return the rows of a query, which are few."""

    def facts(self, text: str, function: Callable[..., Facts], group: str | None = None) -> Iterable[Facts]:
        """Yield the facts of the rows of a query, some rows at a time; those of one group together."""


@dataclass(frozen=True)
class Relations:
    """The relations of a table: see the comments of `reduce.sql`; None for what the table does not have.

    Attributes:
        base: The rows with their times: ``sent`` and ``landed``.
        placed: The rows by their places.
        contents: The same with their content.
        ids: The rows by their IDs.
        id_contents: The same with their content.
        children: The derived IDs with the identity of their parent: ``node``, ``pid``, ``key``, ``part``, ``place`` and
            ``parent``.
        identities: The identities of all rows: ``identity``.
        names: Returns the names of some logs.
        contents_of_group: The number of different contents in a group of rows.
        words: The engine's words for the fields of an ID, and for the identity of a value.
    """

    base: str
    placed: str | None
    contents: str | None
    ids: str | None
    id_contents: str | None
    children: str | None
    identities: str | None
    names: Callable[[list[Any]], dict[Any, str]]
    contents_of_group: str
    words: dict[str, str]


def statements(file: str) -> dict[str, str]:
    """Read the statements of a file beside this module by their names."""
    data = pkgutil.get_data(__package__, file)
    assert data is not None
    parts = re.split(r"^-- (\w+): .*\n", data.decode(), flags=re.MULTILINE)
    texts = ("\n".join(one for one in text.splitlines() if not one.startswith("--")).strip() for text in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


STATEMENTS: Final = statements("reduce.sql")


class Reduction:
    """The statements of one audit, and the relations that they have made."""

    def __init__(self, engine: Engine, **words: Any) -> None:
        self._engine = engine
        self._words: dict[str, Any] = words

    def text(self, name: str, **more: Any) -> str:
        """Return a statement with its words."""
        return STATEMENTS[name].format_map({**self._words, **more})

    def keep(self, name: str, **more: Any) -> str:
        """Run a statement once; its name is that of the relation in later statements."""
        return self.keep_text(name, self.text(name, **more))

    def keep_text(self, name: str, text: str) -> str:
        """Run a query once, whose relation has a name in later statements."""
        self._words[name] = self._engine.kept(name, text)
        return str(self._words[name])

    def set(self, **words: Any) -> None:
        """Set words of later statements."""
        self._words.update(words)

    def has(self, name: str) -> bool:
        """Return whether a statement has made a relation."""
        return self._words.get(name) is not None

    def relation(self, name: str) -> str:
        """Return the name of the relation that a statement has made."""
        return str(self._words[name])

    def rows(self, name: str, **more: Any) -> list[Any]:
        """Return the rows of a statement."""
        return self._engine.rows(self.text(name, **more))


def facts_of_logs(reduction: Reduction, relations: Relations, rules: Rules, *, is_dated: bool) -> Facts:
    """Return the facts of logs: the logs, their missing ranges, and their findings.

    Args:
        reduction: The statements; the words ``placed`` and ``contents`` are set.
        relations: The relations of the table.
        rules: The rules of the audit.
        is_dated: Whether the rows have landing times.
    """
    for name in ("log_words", "blocks", "borders", "members", "steps", "backwards", "asked", "messages"):
        reduction.keep(name)
    late = ""
    if is_dated:
        reduction.keep("late")
        late = reduction.text("late_faults")
    reduction.keep("faults", late_faults=late, shortest=rules.shortest)
    reduction.keep("counted")
    ((rows, unplaced, number_of_logs),) = reduction.rows("sums")
    totals = {fault: (total, scopes, ranges) for fault, total, scopes, ranges in reduction.rows("totals")}
    largest = reduction.rows("largest", most=MAX_SCOPES) if totals.keys() - {"holes"} else []
    gaps = reduction.rows("gaps", most=rules.max_gaps) if "missing_offsets" in totals else []
    logs = reduction.rows("logs", most=MAX_ROWS)
    names = relations.names([*{row[1] for row in largest} | {row[0] for row in (*logs, *gaps)}])
    counted = []
    for fault, log, total, low, high, wrong in largest:
        y = high if fault == "missing_offsets" else wrong or None
        counted.append(Counted(fault, names[log], total, low, y))
    counted += _rest(counted, totals)
    lengths = {"logs": number_of_logs, "gaps": totals.get("missing_offsets", (0, 0, 0))[2]}
    return part_of(
        counted,
        lengths,
        logs=[
            LogRow(names[log], n, low, high, moment(first), moment(last), *counts)
            for log, n, low, high, first, last, *counts in logs
        ],
        gaps=[Gap("offset", names[log], low, high, n) for log, low, high, n in gaps],
    )._replace(rows=rows, unplaced=unplaced, holes=totals.get("holes", (0, 0, 0))[2])


def _rest(counted: list[Counted], totals: Mapping[str, tuple[int, int, int]]) -> Iterator[Counted]:
    """Yield the counts of the logs beyond those that a report names, by fault."""
    for fault, (total, scopes, _) in totals.items():
        named = [one.count for one in counted if one.check == fault]
        if fault != "holes" and scopes > len(named):
            yield Counted(fault, None, total - sum(named), scopes - len(named))


def moment(micros: int | None) -> datetime | None:
    """Return a moment of microseconds since 1970, or None."""
    from datetime import timedelta

    return None if micros is None else UNIX_EPOCH + timedelta(microseconds=micros)


# --- IDs ---


def _declared(*origins: str) -> str:
    """Return the starts of nodes that declare some origins, as a list in SQL."""
    return ", ".join(str(bits) for bits in range(16) if layout.origin_of(bits << 40) in origins) or "-1"


COUNTED_STARTS: Final = _declared(*COUNTED)
"""The starts of the nodes of generators."""


def facts_of_ids(
    reduction: Reduction, relations: Relations, rules: Rules, *, has_content: bool, rows: int | None
) -> list[Facts]:
    """Return the facts of the IDs of a table, and of the logs if IDs alone give the positions.

    Args:
        reduction: The statements; the words ``ids`` and ``id_contents`` are set.
        relations: The relations of the table.
        rules: The rules of the audit.
        has_content: Whether contents are compared.
        rows: The number of rows; None if it is unknown.
    """
    reduction.keep("words")
    by_start = reduction.rows("origins")
    v1 = sum(n for _, n, _, _ in by_start)
    kinds = [KindRow(layout.KIND_V1, layout.origin_of(declared << 40), n) for declared, n, _, _ in by_start]
    origins = {kind.origin for kind in kinds if kind.origin is not None}
    counted = [*_repeated_ids(reduction, sum(row[2] for row in by_start), has_content)]
    if future := sum(row[3] for row in by_start):
        counted.append(Counted("future_ids", TABLE, future, text=_id_text(*reduction.rows("first_future")[0])))
    parts = [part_of(counted, kinds=kinds)]
    foreign = _keep_foreign(reduction, origins)
    if relations.children is not None:
        parts.append(part_of(_orphans(reduction, relations)))
    if foreign or origins & set(COUNTED):
        from msgid.audit.runs import facts_of_words

        spans = reduction.text("spans", counted=COUNTED_STARTS)
        parts += reduction._engine.facts(spans, lambda *columns: facts_of_words(columns, rules), "node")
    if rows is None:
        ((rows,),) = reduction._engine.rows(f"SELECT count(*) FROM {reduction._words['ids']}")
    parts += _facts_of_others(reduction, rows, v1, has_content)
    if relations.placed is None and "position" in origins:
        positions = reduction.keep("positions", position=_declared("position"))
        # The logs have no contents: all rows of one place repeat its message.
        reduction.set(placed=positions, contents=positions, contents_of_group="CAST(1 AS BIGINT)")
        named = replace(relations, names=lambda nodes: {node: layout.format_mac(node) for node in nodes})
        logs = facts_of_logs(reduction, named, rules, is_dated=False)
        parts.append(logs._replace(rows=0, unplaced=0))
    return parts


def _id_text(node: int, pid: int, seconds: int, word: int, bit: int) -> str:
    """Return the version-1 ID of a word of 32 sequence numbers and a place in it."""
    return layout.pack(node, pid, seconds - layout.EPOCH_UNIX, word * 32 + bit).hex().upper()


def _repeated_ids(reduction: Reduction, repeated: int, has_content: bool) -> Iterator[Counted]:
    """Yield the counts of repeated version-1 IDs; the rows of these alone are read once more."""
    if not repeated:
        return
    reduction.keep("repeated_words")
    reduction.keep("repeated_ids")
    if has_content:
        (numbers,) = reduction.rows("sums_of_repeated", repeated=reduction._words["repeated_ids"])
    else:
        numbers = repeated, 0
    for check, number, condition in zip(
        ("duplicate_ids", "conflicting_ids"), numbers, ("n > contents", "contents > 1"), strict=True
    ):
        if number:
            first = reduction.rows("first_of_repeated", repeated=reduction._words["repeated_ids"], condition=condition)
            yield Counted(check, TABLE, number, text=_id_text(*first[0]))


def _keep_foreign(reduction: Reduction, origins: set[str]) -> bool:
    """Keep the generators whose random node declares the origin of a function; return whether there are any."""
    functions = origins & {"derived", "position"}
    if not functions:
        reduction.set(foreign=f"(SELECT node, pid FROM {reduction.relation('words')} WHERE false)")
        return False
    reduction.keep("generators", declared=_declared(*functions))
    reduction.keep("foreign", derived=_declared("derived"), counted_from_0=COUNTED_FROM_0)
    return bool(reduction._engine.rows(f"SELECT 1 FROM {reduction.relation('foreign')} LIMIT 1"))


def _orphans(reduction: Reduction, relations: Relations) -> Iterator[Counted]:
    words = {"children": relations.children, "identities": relations.identities, "derived": _declared("derived")}
    orphans = reduction.keep("orphans", **words)
    ((number,),) = reduction._engine.rows(f"SELECT count(*) FROM {orphans}")
    if number:
        first = reduction.rows("first_of_repeated", repeated=orphans, condition="true")
        yield Counted("orphan_ids", TABLE, number, text=_id_text(*first[0]))


def _facts_of_others(reduction: Reduction, rows: int, v1: int, has_content: bool) -> Iterator[Facts]:
    """Yield the facts of the values that are not version-1 IDs."""
    yield NOTHING._replace(rows=rows)
    if rows == v1:
        return
    from msgid.audit.odd_values import facts_of_odd

    reduction.keep("texts")
    ((nulls, empty),) = reduction.rows("number_without")
    odd = reduction.keep("odd")
    parts = [*reduction._engine.facts(f"SELECT identity, n, near FROM {odd}", facts_of_odd)]
    yield from parts
    uuids = rows - v1 - nulls - empty - sum(kind.rows for part in parts for kind in part.kinds)
    kinds = (KindRow(NULL_KIND, None, nulls), KindRow(MALFORMED_KIND, EMPTY, empty), KindRow(UUID_KIND, None, uuids))
    counted = [Counted("missing_ids", TABLE, nulls), Counted("malformed_ids", TABLE, empty)]
    counted += _repeated_others(reduction, has_content)
    yield part_of(counted, kinds=[kind for kind in kinds if kind.rows])


def _repeated_others(reduction: Reduction, has_content: bool) -> Iterator[Counted]:
    reduction.keep("uuids")
    others = reduction.keep("others")
    if has_content:
        repeated = reduction.keep("repeated_others")
    else:
        repeated = reduction.keep_text(
            "repeated_others", f"SELECT identity, n, CAST(1 AS BIGINT) AS contents FROM {others} WHERE n > 1"
        )
    (numbers,) = reduction.rows("sums_of_repeated", repeated=repeated)
    for check, number, condition in zip(
        ("duplicate_ids", "conflicting_ids"), numbers, ("n > contents", "contents > 1"), strict=True
    ):
        if number:
            ((first,),) = reduction.rows("first_other", repeated=repeated, condition=condition)
            yield Counted(check, TABLE, number, text=first)


def facts_of(engine: Engine, relations: Relations, rules: Rules, given: dict[str, bool]) -> tuple[Facts, Reduction]:
    """Return the facts of a table, and the statements, whose relations have the rows of each check.

    Args:
        engine: What runs the statements.
        relations: The relations of the table.
        rules: The rules of the audit.
        given: The columns that the table has, by the name of the argument.
    """
    words = {name: getattr(relations, name) for name in ("placed", "contents", "ids", "id_contents")}
    reduction = Reduction(engine, **words, **relations.words, contents_of_group=relations.contents_of_group)
    parts: list[Facts] = []
    if relations.placed is not None:
        parts.append(facts_of_logs(reduction, relations, rules, is_dated=given["landed"]))
    if relations.ids is not None:
        rows = parts[0].rows if parts else None
        of_ids = facts_of_ids(reduction, relations, rules, has_content=given["content"], rows=rows)
        parts += of_ids if relations.placed is None else [part._replace(rows=0) for part in of_ids]
    return merged([*parts, NOTHING._replace(columns=given)], rules.max_gaps), reduction
