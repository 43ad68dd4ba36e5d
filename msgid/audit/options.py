"""The arguments of audits and comparisons, documented once: the columns of a table, and the rules of an audit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msgid.audit.definitions import CLOCK_JUMP, HOLES, MAX_GAPS, check_names
from msgid.shared.moments import aware, duration
from msgid.shared.validate import UINT32_MAX, integer, quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from msgid.audit.definitions import Holes
    from msgid.audit.duck import Limits


class ColumnNames(TypedDict, total=False):
    """The columns of a table, as keyword arguments.

    A table of this library's jobs, or of the connectors of Kafka and RocketMQ, needs none: its columns are known. So
    are columns named as the arguments. A column that is not named is found by its name. An empty name, or an empty
    list, turns it off.

    Attributes:
        id: Column of IDs, as text or binary; None if the table has positions alone.
        source: Columns whose values, joined by ``/``, name the log. Without any, the table is one log.
        offset: Column of offsets in the log. Without it, IDs of the origin ``position`` give the positions.
        timestamp: Column of the messages' own times: timestamps, milliseconds since 1970, or text that names its offset
            from UTC.
        content: Columns by which rows of one ID or offset are compared.
        incarnation: Column that names the incarnation of a log that was deleted and created again. Each one is a log
            of its own.
    """

    id: str | None
    source: str | Sequence[str] | None
    offset: str | None
    timestamp: str | None
    content: str | Sequence[str] | None
    incarnation: str | None


class AuditOptions(ColumnNames, total=False):
    """The columns and the rules of an audit, as keyword arguments: those of `ColumnNames`, and these.

    Attributes:
        landed: Column of the times at which the rows were written.
        parent: Column of the IDs from which derived IDs were made.
        holes: Offsets that are missing without a loss. ``markers``: the topic has transactions, so a single offset may
            be a marker, and a longer gap may be an aborted transaction, which is a finding of severity ``info``.
            ``committed``: the same, but no transaction was aborted, so a longer gap is a loss. ``compacted``: any
            offset may be missing. Default: each missing offset is a loss.
        producers: With ``markers`` or ``committed``: the number of producers whose transactions may end at the same
            time in one log. A gap of so many offsets may be their markers. Default: 1.
        without: Names of checks that are not made.
        not_before: Earliest time of an ID that is not a finding, an aware datetime.
        clock_jump: Time between two IDs of a generator beyond which its clock has jumped forward, as a timedelta or as
            text. Default: ``"1 day"``.
        max_gaps: Number of missing ranges that the report lists; the findings count all. Default: 10,000.
        timezone: Offset from UTC of times as text that do not name theirs: ``UTC``, or such as ``+02:00``. Default:
            such a time is not read.
        memory: Bytes of memory that the audit may take, as a number or as text such as ``"1GiB"``. Default: a quarter
            of the machine's, at most 4 GiB. On Spark, the session decides.
        temp_dir: Folder of temporary files. Default: that of the system. On Spark, the session decides.
    """

    landed: str | None
    parent: str | None
    holes: Holes | None
    producers: int
    without: Sequence[str]
    not_before: datetime | None
    clock_jump: timedelta | str
    max_gaps: int
    timezone: str | None
    memory: int | str | None
    temp_dir: str | None


COLUMNS: Final = ("id", "source", "offset", "timestamp", "content", "incarnation")
"""The names of `ColumnNames`."""
_COLUMNS_OF_AUDIT: Final = (*COLUMNS, "landed", "parent")
_RULES: Final = ("holes", "producers", "without", "not_before", "clock_jump", "max_gaps", "timezone")
_WITH_MARKERS: Final = ("markers", "committed")
"""The values of ``holes`` of a topic with transactions."""
_LIMITS: Final = ("memory", "temp_dir", "progress")


def columns_in(function: str, options: Mapping[str, Any], *, is_audit: bool = False) -> dict[str, Any]:
    """Return the arguments that name columns, all of them; None for those that are not given.

    Args:
        function: The name of the public function, for the error.
        options: Its keyword arguments.
        is_audit: Whether they are `AuditOptions`, or `ColumnNames`.

    Raises:
        TypeError: if an argument has another name.
    """
    names = _COLUMNS_OF_AUDIT if is_audit else COLUMNS
    for name in options:
        if name not in names and not (is_audit and name in (*_RULES, *_LIMITS)):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return {name: options.get(name, "id" if name == "id" else None) for name in _COLUMNS_OF_AUDIT}


@dataclass(frozen=True)
class Rules:
    """The rules of an audit.

    Attributes:
        holes: The offsets that are missing without a loss.
        producers: The number of producers whose markers may stand side by side.
        without: The checks that the caller leaves out.
        earliest: The earliest Unix second of an ID that is not a finding, or None.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        max_gaps: Number of ranges to list.
        timezone: The offset from UTC of times that do not name theirs, or None.
    """

    holes: Holes | None = None
    producers: int = 1
    without: tuple[str, ...] = ()
    earliest: int | None = None
    clock_jump: int = CLOCK_JUMP // timedelta(seconds=1)
    max_gaps: int = MAX_GAPS
    timezone: str | None = None

    @property
    def shortest(self) -> int:
        """The number of offsets of the shortest gap that is a finding."""
        return 1 + self.producers if self.holes in _WITH_MARKERS else 1


def rules_in(options: Mapping[str, Any]) -> Rules:
    """Return the rules that a caller names.

    Raises:
        TypeError, ValueError: if an argument is not allowed.

    >>> rules_in({"clock_jump": "1 minute", "holes": "markers"}).clock_jump
    60
    """
    given = {name: options[name] for name in _RULES if options.get(name) is not None}
    holes, without, not_before = given.get("holes"), given.get("without", ()), given.get("not_before")
    if holes is not None and holes not in HOLES:
        raise ValueError(f"holes must be {', '.join(HOLES[:-1])} or {HOLES[-1]}, got {quote(holes)}")
    producers = integer("producers", given.get("producers", 1), 1, 1_000_000)
    if "producers" in given and holes not in _WITH_MARKERS:
        raise ValueError(f"producers needs holes to be {' or '.join(_WITH_MARKERS)}, got {quote(holes)}")
    names = (without,) if isinstance(without, str) else tuple(without)
    check_names("without", names)
    jump = duration("clock_jump", given.get("clock_jump", CLOCK_JUMP), positive=True) // timedelta(seconds=1)
    if not 1 <= jump <= UINT32_MAX:
        raise ValueError(f"clock_jump must be 1 second to 136 years, got {given['clock_jump']}")
    earliest = None if not_before is None else int(aware("not_before", not_before).timestamp())
    most = integer("max_gaps", given.get("max_gaps", MAX_GAPS), 0, 1_000_000)
    return Rules(holes, producers, names, earliest, jump, most, _timezone(given.get("timezone")))


def _timezone(value: object) -> str | None:
    """Return an offset from UTC as it follows a time, or None.

    Raises:
        ValueError: if the value is not an offset. The name of a zone has other offsets in other months.

    >>> _timezone("UTC"), _timezone("-03:30")
    ('+00:00', '-03:30')
    """
    if value is None or (isinstance(value, str) and value.upper() in ("UTC", "Z")):
        return None if value is None else "+00:00"
    if not isinstance(value, str) or not _OFFSET_FROM_UTC.fullmatch(value):
        raise ValueError(f"timezone must be UTC or an offset such as +02:00, got {quote(value)}")
    return value


def limits_in(options: Mapping[str, Any]) -> Limits:
    """Return what an audit may use of the machine.

    Raises:
        TypeError, ValueError: if an argument is not allowed.
    """
    from msgid.audit.duck import Limits

    memory = options.get("memory")
    if memory is not None:
        memory = _bytes_of(memory)
    return Limits(memory, options.get("temp_dir"), bool(options.get("progress")))


def _bytes_of(value: object) -> int:
    """Return a number of bytes, given as an integer or as text.

    >>> _bytes_of("1.5GiB"), _bytes_of("512 MB")
    (1610612736, 512000000)
    """
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if isinstance(value, str) and not match:
        raise ValueError(f"memory must be bytes, or text such as 1GiB or 500MB, got {quote(value)}")
    if match:
        number, unit = match.groups()
        value = int(float(number) * _UNITS[unit.upper()])
    return integer("memory", value, LEAST_MEMORY, 1 << 60)


LEAST_MEMORY: Final = 256 << 20
"""The fewest bytes of memory that an audit takes."""
_OFFSET_FROM_UTC: Final = re.compile(r"[+-](?:0\d|1[0-7]):[0-5]\d|[+-]18:00", re.ASCII)
_UNITS: Final = {
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?B)", re.ASCII | re.IGNORECASE)
