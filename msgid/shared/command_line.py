"""The commands of `msgid` that make, show and translate IDs."""

from __future__ import annotations

import json
import re
import shlex
import sys
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

import msgid as library
from msgid.ids import display as _display
from msgid.ids.checked_bytes import is_uuid, uuid_bytes
from msgid.ids.uuids import UuidFacts, uuid_facts
from msgid.shared.moments import EPOCH, moment_of, seconds_since_epoch
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from msgid.ids.batch import IdBatch
    from msgid.ids.parsing import AnyId

_CHUNK = 65_536
_OTHER = "Options"
"""The title of the options of no group."""


def examples(*lines: str) -> str:
    """Return the end of a command's help: lines that a user can type."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


class Grouped(click.Command):
    """A command whose help lists the options by task.

    Args:
        groups: The titles, each with the names of its options. Options in no group come last.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Collection[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command line as it is typed, for the title of its report."""
        ctx.meta["typed"] = shlex.join([*ctx.command_path.split(), *args])
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the titles of their groups."""
        by_group: dict[str, list[tuple[str, str]]] = {title: [] for title in (*self.groups, _OTHER)}
        titles = {name: title for title, names in self.groups.items() for name in names}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                by_group[titles.get(str(option.name), _OTHER)].append(record)
        for title, records in by_group.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class _Moment(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """A time on the command line: Unix seconds, or ISO 8601 text with an offset from UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | datetime:
        if isinstance(value, str) and value.isascii():
            try:
                return float(value)
            except ValueError:
                pass
        try:
            return moment_of("the time", value)
        except library.InvalidMessage:
            self.fail(f"must be Unix seconds or ISO 8601 text with an offset from UTC, got {value!r}", param, ctx)


class Number(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """A whole number in ASCII digits on the command line.

    Args:
        low: The least number, or None.
    """

    name = "integer"

    def __init__(self, low: int | None = None) -> None:
        self._low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number that the text names."""
        if isinstance(value, int):
            return value
        if not re.fullmatch(r"-?[0-9]{1,4000}", value):
            self.fail(f"must be a whole number, got {quote(value)}", param, ctx)
        number = int(value)
        if self._low is not None and number < self._low:
            self.fail(f"must be {self._low} or more, got {number}", param, ctx)
        return number


_TIME = _Moment()
_NUMBER = Number()


@click.command(epilog=examples("msgid generate -n 3", "msgid generate --node random", "msgid generate -n 1000 -o ids"))
@click.option("-n", "--number", default=1, show_default=True, type=Number(0), help="Number of IDs.")
@click.option(
    "-o", "--output", type=click.File("w", lazy=False), default="-", help="Output file; default: standard output."
)
@click.option("--node", help="A MAC address, 'mac' or 'random'.  [default: as 'msgid node' shows]")
def generate(number: int, output: IO[str], node: str | None) -> None:
    """Print new IDs, one per line."""
    make: Callable[[int], IdBatch] = library.generate_batch
    if node is not None:
        make = library.Generator(node=node).generate_batch
    for start in range(0, number, _CHUNK):
        batch = make(min(_CHUNK, number - start))
        output.write("\n".join(batch.hex()) + "\n")
    output.flush()  # Click closes a file without an error if the rest cannot be written


@click.command(
    context_settings={"ignore_unknown_options": True},  # -1 is an offset that is out of range, and not an option
    epilog=examples("msgid position kafka://orders/3 1234 --at 1648047038",
                    "msgid position kafka://orders/3 1234 --at 2022-03-23T14:50:38Z")
)  # fmt: skip
@click.argument("source")
@click.argument("offset", type=_NUMBER)
@click.option("--at", required=True, type=_TIME, help="The message's own time: Unix seconds, or ISO 8601 text.")
def position(source: str, offset: int, at: float | datetime) -> None:
    """Print the ID of the message at an offset of a log.

    The same SOURCE, OFFSET and time give the same ID.
    """
    click.echo(library.position_id(source, offset, at))


@click.command(
    epilog=examples("msgid derive 0156F7E71C361B21BC024CCDBE00000000 invoice 1",
                    "msgid derive 8e884ace-bee4-11e4-8dfc-aa07a5b093db order-17")
)  # fmt: skip
@click.argument("parent")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--at", type=_TIME, help="The output's time: Unix seconds, or ISO 8601 text.  [default: the parent's]")
def derive(parent: str, names: tuple[str, ...], at: float | datetime | None) -> None:
    """Print the ID of an output of a message.

    The same PARENT and NAME give the same ID. PARENT is an ID or a UUID. For a natural key, PARENT is a UUID of your
    own that stands for the set of keys, and NAME is the key. A second NAME is an output of the first output.
    """
    click.echo(library.derive_id(parent, *names, at=at))


class _Line(NamedTuple):
    number: int
    text: str
    source: str
    """``line`` of standard input, or ``argument``."""


@click.command(
    epilog=examples("msgid inspect 0156F7E71C361B21BC024CCDBE00000000", "msgid generate -n 3 | msgid inspect --json -",
                    "msgid inspect C0A8F001103E214D29547ACFD6E30000 --near 2021-10-03T00:00:00+08:00")
)  # fmt: skip
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--near", type=_TIME, help="A time up to 27 days after a version-0 ID: show when a client made it.")
@click.option("--timezone", default="UTC", show_default=True, help="Time zone of the client, for --near.")
def inspect(ids: tuple[str, ...], as_json: bool, near: float | datetime | None, timezone: str) -> None:
    """Show the fields of IDs of any version. '-' reads IDs from standard input, one per line.

    Of a UUID with dashes, the version is shown, and the time and node if it has them. A malformed ID is reported with
    its line number, or its number among the arguments. The other IDs are still shown, and the exit status is 1.
    """

    def show(line: _Line, id: AnyId | UuidFacts) -> None:
        if isinstance(id, UuidFacts):
            time = id.time and id.time.isoformat()
            fields = {"kind": "uuid", **id._asdict(), "time": time}
            shown = f"{id}  {line.text}{f'  made {time}' if time else ''}"
            click.echo(json.dumps({"line": line.number, "input": line.text, **fields}) if as_json else shown)
            return
        near_time = {}
        if near is not None and isinstance(id, library.ClientUniqueId):
            latest = EPOCH + timedelta(seconds=seconds_since_epoch("near", near))
            near_time = {"made": id.time_near(latest, timezone=timezone).isoformat()}
        if as_json:
            click.echo(json.dumps({"line": line.number, "input": line.text, **_display.values(id), **near_time}))
        else:
            near_text = "".join(f"  made {time}" for time in near_time.values())
            click.echo(f"{id.kind}  {click.style(id.hex, bold=True)}{near_text}")
            for field in drawn(id):
                click.echo(field)

    def read(text: str) -> AnyId | UuidFacts:
        return uuid_facts(uuid_bytes(text)) if is_uuid(text) else library.parse(text)

    _for_each(ids, read, show, as_json)


@click.command(
    epilog=examples("msgid translate 7F0000010000238F000000000001E240",
                    "msgid translate - < ids.txt > canonical.txt")
)  # fmt: skip
@click.argument("ids", nargs=-1, metavar="[ID]...")
def translate(ids: tuple[str, ...]) -> None:
    """Print the canonical text of IDs of any version. '-' reads IDs from standard input, one per line.

    The canonical text has upper-case digits and the version in front. Two IDs are the same if and only if their
    canonical texts are equal. A malformed ID is reported with its line number, and the exit status is 1.
    """
    _for_each(ids, library.parse, lambda _, id: click.echo(id.canonical))


_Id = TypeVar("_Id")


def _for_each(
    ids: tuple[str, ...], read: Callable[[str], _Id], show: Callable[[_Line, _Id], None], as_json: bool = False
) -> None:
    """Show each ID; report those that are malformed, and exit with status 1 if there is one."""
    if not ids:
        raise click.UsageError("pass one or more IDs, or - to read them from standard input")
    failed = False
    for line in _lines(ids):
        try:
            show(line, read(line.text))
        except ValueError as error:
            error = _with_id_inside(line.text, error)
            failed = True
            if as_json:
                click.echo(json.dumps({"line": line.number, "input": line.text, "error": str(error)}))
            click.echo(f"{line.source} {line.number}: {error}", err=True)
    sys.exit(1 if failed else 0)


_INSIDE: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{32}(?:[0-9A-Fa-f]{2})?|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    r"(?![0-9A-Za-z])"
)


def _with_id_inside(text: str, error: ValueError) -> ValueError:
    """Return the error of a text that is not an ID; it names an ID or a UUID that the text contains."""
    inside = _INSIDE.search(text)
    if inside is None or inside[0] == text:
        return error
    return ValueError(f"{error}; it contains {inside[0]}: pass that alone")


def _lines(ids: Iterable[str]) -> Iterator[_Line]:
    number = 0
    for id in ids:
        # Bytes that are not valid UTF-8 become escapes, so that a malformed line does not end the run.
        if id == "-":
            stream = sys.stdin.buffer
            texts: Iterable[str] = (raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace") for raw in stream)
        else:
            texts = (id,)
        for index, text in enumerate(texts):
            number += 1
            is_first = id == "-" and index == 0  # Windows writes a byte order mark in front of a file
            yield _Line(number, text.removeprefix("\ufeff") if is_first else text, "line" if id == "-" else "argument")


@click.command(epilog=examples("msgid node", "MSGID_NODE=random msgid node --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def node(as_json: bool) -> None:
    """Show the node of new IDs, and the rule that decided.

    The node is a MAC address, or random bits, which differ from process to process.
    """
    choice = library.explain_node()
    if not as_json:
        click.echo(choice)
        return
    passed_over = [candidate._asdict() for candidate in choice.passed_over]
    fields = {"mac": choice.mac, "origin": choice.origin, **choice._asdict(), "passed_over": passed_over}
    click.echo(json.dumps(fields))


def drawn(id: AnyId) -> list[str]:
    """Return a line for each field of an ID, in colours: its digits, its name and its meaning."""
    parts = _display.parts(id)
    digits, names = (max(map(len, column)) for column in list(zip(*parts, strict=True))[:2])
    return [
        f"  {click.style(part.digits.ljust(digits), fg=colour, bold=True)}  "
        f"{click.style(f'{part.name.ljust(names)}  {part.meaning}', fg=colour)}"
        for part, colour in zip(parts, _display.COLOURS, strict=False)
    ]


ID_COMMANDS = (generate, inspect, position, derive, translate, node)
