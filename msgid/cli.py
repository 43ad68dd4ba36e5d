"""The command line: ``msgid generate``, ``inspect``, ``node``, ``expire`` and ``completion``."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import IO, TYPE_CHECKING, NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

import msgid as library
from msgid._validate import UNIX_EPOCH
from msgid.ids import _display
from msgid.ids._native import version_line
from msgid.iggy._wire import ALIASES, LAYOUTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from msgid.ids.parsing import AnyId
    from msgid.iggy._wire import Layout

_CHUNK = 65_536


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message=version_line(library.__version__))
def msgid() -> None:
    """Mint message ids, take them apart, and see which node they carry."""


@msgid.command()
@click.option("-n", "--number", default=1, show_default=True, type=click.IntRange(min=0), help="How many ids.")
@click.option(
    "-o", "--output", type=click.File("w", lazy=False), default="-", help="Where to; default: standard output."
)
def generate(number: int, output: IO[str]) -> None:
    """Mint ids, one a line."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Nothing is drawn for a batch that is done at once, nor over ids that go to the same terminal.
    hidden = not console.is_terminal or number <= _CHUNK or output.isatty()
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("minting", total=number)
        for start in range(0, number, _CHUNK):
            count = min(_CHUNK, number - start)
            output.write("\n".join(library.generate_batch(count).hex()) + "\n")
            progress.advance(task, count)


class _Line(NamedTuple):
    number: int
    text: str


@msgid.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def inspect(ids: tuple[str, ...], as_json: bool) -> None:
    """Take ids of any version apart. '-' reads them from standard input, one a line.

    A malformed one is reported with its line number (as an argument, its place); the rest goes on, and the exit
    status is 1.
    """
    if not ids:
        raise click.UsageError("give one or more ids, or - to read them from standard input")
    console = Console(highlight=False)
    failed = False
    for line in _lines(ids):
        try:
            id = library.parse(line.text)
        except library.InvalidMessageId as error:
            failed = True
            if as_json:
                click.echo(json.dumps({"line": line.number, "input": line.text, "error": str(error)}))
            click.echo(f"line {line.number}: {error}", err=True)
            continue
        if as_json:
            click.echo(json.dumps({"line": line.number, "input": line.text, **_display.values(id)}))
        else:
            console.print(Text.assemble(id.kind, "  ", (id.hex, "bold")), soft_wrap=True)
            console.print(_drawn(id))
    sys.exit(1 if failed else 0)


def _lines(ids: Iterable[str]) -> Iterator[_Line]:
    number = 0
    for id in ids:
        # Bytes that are no text become escapes, so that a bad line is one bad line and not the end of the run.
        if id == "-":
            stream = sys.stdin.buffer
            texts: Iterable[str] = (raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace") for raw in stream)
        else:
            texts = (id,)
        for text in texts:
            number += 1
            yield _Line(number, text)


@msgid.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def node(as_json: bool) -> None:
    """Say which MAC address is stamped on the ids minted here, and why that one."""
    try:
        choice = library.explain_node()
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    if not as_json:
        click.echo(choice)
        return
    passed_over = [candidate._asdict() for candidate in choice.passed_over]
    fields = {"mac": choice.mac, "origin": choice.origin, **choice._asdict(), "passed_over": passed_over}
    click.echo(json.dumps(fields))


@msgid.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL.

    In ~/.bashrc: eval "$(msgid completion bash)"; in ~/.zshrc the same with zsh; with fish, write the script to
    ~/.config/fish/completions/msgid.fish.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(msgid, {}, "msgid", "_MSGID_COMPLETE").source())


@msgid.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--policy", required=True, type=click.Path(exists=True, dir_okay=False), help="A TOML file: what expires."
)
@click.option("--layout", type=click.Choice(["auto", *ALIASES, *LAYOUTS]), default="auto", help="Of Iggy's bytes.")
@click.option("--apply", is_flag=True, help="Remove the expired segments. Default: only report them.")
@click.option("--allow-gaps", is_flag=True, help="A segment is closed also if offsets before the next one are missing.")
def expire(folder: str, policy: str, layout: Layout, apply: bool, allow_gaps: bool) -> None:
    """Report which of Iggy's segments in a FOLDER have expired, and with --apply remove them.

    The policy has default_expiry in seconds (0: never), and expiries by topic under [topics].
    """
    from msgid.retention import InvalidPolicy, RetentionPolicy
    from msgid.retention.cleaner import Cleaner

    try:
        cleaner = Cleaner(folder, RetentionPolicy.load(policy), layout=layout, allow_gaps=allow_gaps)
        report = cleaner.clean(dry_run=not apply)
    except (InvalidPolicy, OSError) as error:
        raise click.ClickException(str(error)) from None
    table = Table()
    for name in ("segment", "messages to", "bytes", "latest", ""):
        table.add_column(name, overflow="fold")
    for found in report:
        segment = found.segment
        latest = "" if segment.latest is None else _shown_time(segment.latest)
        verdict = "expired" if found.expired else ("kept" if segment.closed else "open")
        last = "" if segment.last_offset is None else f"{segment.last_offset:,}"
        shown = found.path.encode(errors="backslashreplace").decode()
        row = (shown, last, f"{segment.size:,}", latest, "\n".join(filter(None, (verdict, found.reason))))
        table.add_row(*map(Text, row))
    if report:
        Console().print(table)
    gone = [found.segment.size for found in report if (found.removed if apply else found.expired)]
    done = "removed" if apply else "would be removed; --apply removes them"
    click.echo(f"{len(gone):,} of {len(report):,} segments, {sum(gone):,} bytes: {done}")


def _shown_time(micros: int) -> str:
    """Return a moment as text; the number itself if no calendar has it."""
    try:
        return f"{UNIX_EPOCH + timedelta(microseconds=micros):%F %TZ}"
    except OverflowError:
        return f"{micros} microseconds"


def _drawn(id: AnyId) -> Table:
    """Draw an id as its fields, each with its name and meaning under it, like the figure in RocketMQ's document."""
    table = Table()
    parts = _display.parts(id)
    for part, colour in zip(parts, _display.COLOURS, strict=False):
        table.add_column(part.digits, style=colour, header_style=f"bold {colour}", overflow="fold")
    table.add_row(*(f"{part.name}\n{part.meaning}" for part in parts))
    return table
