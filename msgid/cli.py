"""The command line ``msgid``: its commands of IDs are in `msgid.shared.command_line`."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import json
import os
import re
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import msgid as library
from msgid.audit.definitions import FORMATS, HOLES
from msgid.audit.facts import plural
from msgid.ids._native import version_line
from msgid.shared.command_line import ID_COMMANDS, Grouped, examples
from msgid.shared.moments import UNIX_EPOCH
from msgid.shared.validate import shown, toml_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from msgid.audit.definitions import Format, Severity
    from msgid.iggy.wire import Layout

_LAYOUTS = ("auto", "previous", "m45", "batch24", "h56-crc", "h56-xxh3", "h64", "batch256")
"""The layouts of Iggy's logs: a test compares them with those that are read, whose import takes a while."""
INTERRUPTED = 130
"""The exit status after Ctrl-C, as a shell reports it."""
AUDIT_FAILED = 3
"""The exit status of ``audit`` if ``--fail-on`` found something."""

NOT_FOUND, WRONG_INPUT = 1, 2
"""The exit statuses of ``trace`` without a message, and with an input that it cannot read."""


CONFIGURED = ("audit", "trace")
"""The commands whose options can have defaults in a file. None of them deletes anything."""


def settings_of(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the file of a folder that has defaults, and its tables: ``msgid.toml``, or a part of ``pyproject.toml``.

    Raises:
        click.ClickException: if the file is not TOML.
    """
    for file, keys in (("msgid.toml", ()), ("pyproject.toml", ("tool", "msgid"))):
        try:
            data = (folder / file).read_bytes()
            table = toml_of(data) if all(key.encode() in data for key in keys) else {}
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise click.ClickException(f"cannot read {file}: {error}") from None
        for key in keys:
            table = table.get(key, {})
        if table:
            return file, table
    return "", {}


class Commands(click.Group):
    """Commands that end with one line if an input is refused, or the system cannot write their output."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and write the rest of its output."""
        if sys.stdout is None:
            raise click.ClickException("cannot write the output: standard output is closed")
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except click.UsageError:
            raise
        except (click.ClickException, FileNotFoundError, ImportError, ValueError) as error:
            raise click.ClickException(self._with_options(ctx, str(error))) from None
        except KeyboardInterrupt:  # Click would end the command with status 1
            click.echo("Aborted!", err=True)
            sys.exit(INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # Click ends the command without a message
            with contextlib.suppress(OSError, ValueError):
                # Python writes the rest of the output at its exit, which would fail with a second message.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.ClickException(self._with_options(ctx, str(error))) from None
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, and read its defaults if it can have some."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in CONFIGURED:
            ctx.default_map = self._defaults()
        return name, command, rest

    def _defaults(self) -> dict[str, dict[str, Any]]:
        """Return the defaults of the current folder, by command and by the names of Click."""
        defaults: dict[str, dict[str, Any]] = {}
        file, tables = settings_of(Path())
        for name, given in tables.items():
            if name not in CONFIGURED or not isinstance(given, dict):
                raise click.ClickException(f"{file} must have tables of {' and '.join(CONFIGURED)}, got {name!r}")
            options = [one for one in self.commands[name].params if isinstance(one, click.Option)]
            known = {text.lstrip("-"): str(one.name) for one in options for text in one.opts if text.startswith("--")}
            wrong = [option for option in given if option not in known]
            if wrong:
                raise click.ClickException(f"{file}: {name} does not have the option {wrong[0]!r}")
            defaults[name] = {known[option]: value for option, value in given.items()}
        return defaults

    def _with_options(self, ctx: click.Context, text: str) -> str:
        """Return the text of an error with the options of the command in place of the arguments of Python."""
        command = self.commands.get(ctx.invoked_subcommand or "", self)
        options = {one.name: one.opts[-1] for one in command.params if isinstance(one, click.Option)}
        return re.sub("`([a-z_]+)`", lambda argument: options.get(argument[1], argument[0]), text)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message=version_line(library.__version__))
def msgid() -> None:
    """Make and read message IDs, audit messages, and delete expired ones."""


for _command in ID_COMMANDS:
    msgid.add_command(_command)


@msgid.command(
    epilog=examples("msgid clean /var/iggy/streams --policy policy.toml",
                    "msgid clean /var/iggy/streams --policy policy.toml --apply")
)  # fmt: skip
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--policy", required=True, type=click.Path(exists=True, dir_okay=False), help="TOML file with the expiry times."
)
@click.option("--layout", type=click.Choice(_LAYOUTS), default="auto", help="Layout; default: auto.")
@click.option("--apply", is_flag=True, help="Delete expired segments; without it, only report them (dry run).")
@click.option("--allow-gaps", is_flag=True, help="Close a segment also if offsets before the next segment are missing.")
def clean(folder: str, policy: str, layout: Layout, apply: bool, allow_gaps: bool) -> None:
    """Report or delete expired Iggy segments.

    The segments are those in a FOLDER. Without --apply, nothing is deleted.

    The policy sets default_expiry, in seconds or as text such as "7 days" (0: never), and the expiry of single topics
    under [topics]. A topic has the name of its folder: 2, or 1/2 in stream 1. An entry that does not match one topic is
    an error.

    Stop the server first: it keeps deleted files open. A segment is kept, with the reason, if the time of a message is
    missing, before the year 2000 or in the future.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from msgid.retention import RetentionPolicy
    from msgid.retention.cleaner import Cleaner

    cleaner = Cleaner(folder, RetentionPolicy.load(policy), layout=layout, allow_gaps=allow_gaps)
    report = cleaner.clean(apply=apply)
    table = Table()
    for name in ("segment", "messages to", "bytes", "latest", ""):
        table.add_column(name, overflow="fold")
    for file in report:
        segment = file.segment
        latest = "" if segment.latest is None else _shown_time(segment.latest)
        verdict = "expired" if file.expired else ("kept" if segment.closed else "open")
        last = "" if segment.last_offset is None else f"{segment.last_offset:,}"
        shown = file.path.encode(errors="backslashreplace").decode()
        row = (shown, last, f"{segment.size:,}", latest, "\n".join(filter(None, (verdict, file.reason))))
        table.add_row(*map(Text, row))
    if not report and not cleaner.policy.enabled:
        raise click.ClickException(f"the policy {policy} is not enabled: no segment is looked at")
    if not report:
        raise click.ClickException(f"no segments in {folder}: it must hold files such as {0:020}.log")
    Console().print(table)
    gone = [file.segment.size for file in report if (file.removed if apply else file.expired)]
    done = "removed" if apply else "would be removed; --apply removes them"
    click.echo(f"{len(gone):,} of {len(report):,} segments, {sum(gone):,} bytes: {done}")
    if apply and any(file.expired and not file.removed for file in report):
        raise click.ClickException("not all expired segments could be removed: the table has the reasons")


@msgid.group(epilog=examples("msgid store list states.db", "msgid store show states.db 'customer 7'"))
def store() -> None:
    """Look at the states of a `Processor`, and delete those of a key.

    STORE is the file of a SqliteStore, or the connection string of a PostgresStore.
    """


_handler = click.option("--handler", help="Only this handler.  [default: all handlers]")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


@contextlib.contextmanager
def _store_errors(location: str, action: str) -> Iterator[None]:
    """Print an error of a store in one line: a wrong path, a file of another program, a server that does not answer."""
    try:
        yield
    except (click.ClickException, OSError):
        raise
    except Exception as error:
        if not isinstance(error, ValueError | ImportError | RuntimeError) and not _is_of_database(error):
            raise
        reason = " ".join(str(error).split())
        is_of_sqlite = type(error).__module__ == "sqlite3"
        raise click.ClickException(f"cannot {action} {location}: {reason}" if is_of_sqlite else reason) from None


def _is_of_database(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("sqlite3", "psycopg")


def _print_rows(rows: Iterable[Any], as_json: bool, line: Callable[[Any], str]) -> int:
    """Print named tuples as lines or as JSON, and return their number."""
    count = 0
    for row in rows:
        count += 1
        click.echo(json.dumps(row._asdict()) if as_json else line(row))
    return count


@store.command("list", epilog=examples("msgid store list states.db", "msgid store list states.db --keys --json"))
@click.argument("location", metavar="STORE")
@click.option("--keys", is_flag=True, help="List the keys, each with its newest version and its kept messages.")
@_handler
@_as_json
def list_store(location: str, keys: bool, handler: str | None, as_json: bool) -> None:
    """List the handlers with their numbers of keys and messages, or the keys.

    Nothing is changed. A kept message is known as a duplicate. Of a forgotten message, only a hash is kept.
    """
    with _store_errors(location, "list"):
        opened = _opened_store(location)
        sizes = [one for one in opened.handlers() if handler in (None, one.handler)]
        if handler is not None and not sizes:
            raise click.ClickException(f"no handler {handler} in {location}")
        if keys:
            _print_rows(
                opened.keys(handler=handler), as_json,
                lambda one: f"{shown(one.handler)}, {shown(one.key)}: version {one.version}, "
                f"{plural(one.entries, 'message')}",
            )  # fmt: skip
        else:
            _print_rows(
                sizes, as_json,
                lambda one: f"{shown(one.handler)}: {plural(one.keys, 'key')}, {plural(one.entries, 'message')} kept, "
                f"{one.forgotten:,} forgotten",
            )  # fmt: skip


@store.command(
    epilog=examples("msgid store forget states.db 'customer 7'", "msgid store forget states.db 'customer 7' --apply")
)
@click.argument("location", metavar="STORE")
@click.argument("key")
@_handler
@click.option("--apply", is_flag=True, help="Delete; without it, only count (dry run).")
@_as_json
def forget(location: str, key: str, handler: str | None, apply: bool, as_json: bool) -> None:
    """Delete the state of a KEY and its handled messages.

    Stop the workers that handle messages of the key first. A message of the key that is redelivered later is new.
    """
    with _store_errors(location, "forget a key of"):
        opened = _opened_store(location)
        versions = opened.history(key, handler=handler)
        if not versions:
            raise click.ClickException(f"no states of key {key}")
        count = len({(one.handler, one.version) for one in versions if one.id is not None})
        if apply:
            count = opened.forget_key(key, handler=handler)
    if as_json:
        click.echo(json.dumps({"key": key, "handler": handler, "entries": count, "deleted": apply}))
    else:
        done = "deleted" if apply else "would be deleted; --apply deletes them"
        click.echo(f"the state of {shown(key)} and {count:,} messages: {done}")


@store.command(epilog=examples("msgid store show states.db 'customer 7'"))
@click.argument("location", metavar="STORE")
@click.argument("key")
@_as_json
def show(location: str, key: str, as_json: bool) -> None:
    """Show the versions of a KEY: the state after each, and the message that made it.

    Nothing is changed. In JSON, a state that is not JSON itself is text, as Python shows it.
    """
    from msgid.processing import loads

    with _store_errors(location, "show"):
        versions = _opened_store(location).history(key)
    for version in versions:
        state = version.state or b"null"
        with contextlib.suppress(ValueError):  # the user's own encoding stays bytes
            state = loads(state)
        if as_json:
            click.echo(json.dumps({**version._asdict(), "state": state}, default=repr))
            continue
        maker = shown(version.id) if version.id else "a forgotten message"
        click.echo(f"{shown(version.handler)}, version {version.version}, by {maker}: {state!r}")
    if not versions:
        raise click.ClickException(f"no states of key {key}")


def _opened_store(location: str) -> Any:
    """Return the store of a file, or of a connection string; it must exist."""
    from msgid.processing import PostgresStore, SqliteStore

    if not location:
        raise click.ClickException("a store must be the path of a file or a connection string, got ''")
    if os.path.exists(location) or not ("=" in location or "://" in location):
        if not os.path.exists(location):
            raise click.ClickException(f"cannot open {location}: the file is missing")
        if not os.access(location, os.W_OK):
            raise click.ClickException(
                f"cannot open {location}: you may not write to it, and SQLite would leave files beside it that keep "
                "its owner out: run the command as its owner, or give it a copy of the file and of its -wal"
            )
        _check_store(location)
        return SqliteStore(location)
    return PostgresStore(location, create=False)


def _check_store(file: str) -> None:
    """Refuse a file that a `SqliteStore` would create, or would add its tables to."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(f"{Path(file).absolute().as_uri()}?mode=ro", uri=True)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'msgid_store'").fetchone():
            raise click.ClickException(f"{file} is not the file of a SqliteStore")


def _shown_time(micros: int) -> str:
    """Return a moment as text; the number itself if no calendar has it."""
    try:
        return f"{UNIX_EPOCH + timedelta(microseconds=micros):%F %TZ}"
    except OverflowError:
        return f"{micros} microseconds"


_ID, _SOURCE, _OFFSET, _TIMESTAMP, _CONTENT, _INCARNATION = (
    click.option("--id", help="The column of IDs.  [default: id; of a text file, its lines]"),
    click.option("--source", multiple=True, help="The column that names the log; several are joined by '/'."),
    click.option("--offset", help="The column of offsets in the log."),
    click.option("--timestamp", help="The column of the messages' own times."),
    click.option("--content", multiple=True, help="A column by which rows of one ID or offset are compared."),
    click.option(
        "--incarnation", help="The column that names the incarnation of a log: it was deleted and created again."
    ),
)
_AUDIT_OPTIONS = (
    _ID,
    _SOURCE,
    _OFFSET,
    _TIMESTAMP,
    click.option("--landed", help="The column of the times at which the rows were written."),
    _CONTENT,
    click.option("--parent", help="The column of the IDs from which derived IDs were made."),
    _INCARNATION,
    click.option("--timezone", metavar="OFFSET", help="Offset from UTC of times as text without one, such as UTC."),
    click.option("--holes", type=click.Choice(HOLES), help="Offsets that are missing without a loss."),
    click.option("--producers", type=int, help="With --holes: producers whose markers may stand side by side."),
    click.option("--without", multiple=True, metavar="CHECK", help="A check that is not made."),
    click.option("--sent", metavar="FILE", help="Name the messages of this file that are not in the table."),
    click.option(
        "--sent-column",
        "sent_columns",
        multiple=True,
        metavar="OPTION=COLUMN",
        help="The column of an option in the file of --sent.",
    ),
    click.option(
        "--digests", nargs=2, metavar="SENT TABLE", help="Folders of digests: only blocks that differ are compared."
    ),
    click.option("--report", type=click.Path(dir_okay=False), help="Write the report to this file, as one HTML page."),
    click.option("--openmetrics", type=click.Path(dir_okay=False), help="Write the counts to this file: OpenMetrics."),
    click.option("--json", "as_json", is_flag=True, help="Print the report as JSON."),
    click.option("--fail-on", type=click.Choice(["error", "warning"]), help="Exit with status 3 on such findings."),
    click.option(
        "--allow",
        multiple=True,
        metavar="CHECK=N",
        help="With --fail-on: up to N messages of a check are not a failure.",
    ),
)


AUDIT_GROUPS = {
    "Input": ("format",),
    "Columns": ("id", "source", "offset", "timestamp", "landed", "content", "parent", "incarnation", "timezone"),
    "Checks": ("holes", "producers", "without", "sent", "sent_columns", "digests"),
    "Report": ("report", "openmetrics", "as_json", "fail_on", "allow", "quiet"),
}
"""The options of ``audit`` by task, those of Spark's command, too."""
_AUDIT_GROUPS = {
    **AUDIT_GROUPS,
    "Input": ("format", "delimiter", "header"),
    "Report": ("report", "rows", "openmetrics", "as_json", "fail_on", "allow", "quiet"),
    "Limits": ("memory", "temp_dir"),
}


def audit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of ``audit``, which are the same for `msgid` and `spark_ext`."""
    for option in reversed(_AUDIT_OPTIONS):
        command = option(command)
    return command


SENT_COLUMN_ALONE = "--sent-column needs --sent"


def compared_columns(columns: dict[str, Any], sent_columns: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of ``compare`` for the options of ``audit`` with ``--sent``."""
    for name in ("landed", "parent", "incarnation", "holes", "producers", "without"):
        if columns.pop(name, None):
            raise click.UsageError(f"cannot use --{name} with --sent")
    pairs = [pair.partition("=") for pair in sent_columns]
    wrong = [pair for pair, (name, _, column) in zip(sent_columns, pairs, strict=True) if not name or not column]
    if wrong:
        raise click.UsageError(f"--sent-column must be OPTION=COLUMN, got {wrong[0]!r}")
    named: dict[str, Any] = {}
    for name, _, column in pairs:
        named[name] = [*named.get(name, ()), column] if name in ("source", "content") else column
    return {**columns, "sent_columns": named or None}


class AuditOutput(NamedTuple):
    """Where the report of ``audit`` goes, and what ends the command with status 3: its options of these names."""

    report: str | None
    openmetrics: str | None
    as_json: bool
    fail_on: Severity | None
    allow: dict[str, int]

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> AuditOutput:
        """Take the options of the output out of all options of the command, before anything is read."""
        from msgid.audit.definitions import check_names

        allow = {}
        for text in options.pop("allow"):
            name, _, number = text.partition("=")
            if not number.isdecimal():
                raise click.UsageError(f"--allow must be CHECK=N, such as late_messages=10, got {text!r}")
            try:
                check_names("--allow", [name])
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            allow[name] = int(number)
        if allow and not options["fail_on"]:
            raise click.UsageError("--allow needs --fail-on")
        taken = {name: options.pop(name) for name in cls._fields if name != "allow"}
        return cls(**taken, allow=allow)

    def check_inputs(self, *inputs: str | None, more: Iterable[str] = ()) -> None:
        """Refuse to write a file twice, in no folder, or one that is an input of the command or in an input folder.

        Args:
            inputs: The inputs of the command.
            more: Further files that it writes.
        """
        for file in more:
            check_written("rows", file, inputs)
        files = {option: file for option in ("report", "openmetrics") if (file := getattr(self, option)) is not None}
        if "" in files.values():
            raise click.UsageError("--report and --openmetrics must name files, got ''")
        if len({Path(file).resolve() for file in files.values()}) < len(files):
            raise click.UsageError(f"--report and --openmetrics must be two files, got {self.report!r} twice")
        for option, file in files.items():
            check_written(option, file, inputs)

    def finish(self, report: Any) -> None:
        """Print a report, write its files, and exit with status 3 if it has findings of a severity."""
        at = datetime.now(timezone.utc).isoformat(sep=" ", timespec="seconds")
        typed = click.get_current_context().meta["typed"].encode(errors="backslashreplace").decode()
        getattr(report, "local", report).title = f"{typed}, {at}, msgid {library.__version__}"
        click.echo(report.to_json() if self.as_json else report)
        try:
            if self.report:
                report.to_html(self.report)
            if self.openmetrics:
                write_whole(self.openmetrics, report.to_openmetrics())
        except OSError as error:
            raise click.ClickException(f"cannot write the report: {error}") from None
        failure = report.failure(self.fail_on, self.allow) if self.fail_on else None
        if failure:
            click.echo(f"audit failed: {failure}", err=True)
            sys.exit(AUDIT_FAILED)


def check_written(option: str, file: str, inputs: Iterable[str | None]) -> None:
    """Refuse a file to write without a folder, or one that is an input or a store, or that a pattern would read."""
    folder = Path(file).absolute().parent
    if not file or not folder.is_dir() or Path(file).is_dir():
        raise click.UsageError(f"--{option} must name a file in a folder that exists, got {file!r}")
    is_stream = os.path.exists(file) and not os.path.isfile(file)  # a pipe or a terminal
    if not is_stream and not os.access(folder, os.W_OK):
        raise click.UsageError(f"--{option} must name a file in a folder that you may write to, got {file!r}")
    written = Path(file).resolve()
    for one in filter(None, inputs):
        read = re.sub("^(?:file|sqlite):", "", one)
        is_pattern = glob.has_magic(read) and not os.path.exists(read)
        fitting = glob.glob(read, recursive=True) if is_pattern else [read]
        if (is_pattern and _fits(file, read)) or any(_is_in(written, Path(each).resolve()) for each in fitting):
            raise click.UsageError(f"--{option} must not be a file of the input, got {file!r}")


def _fits(file: str, pattern: str) -> bool:
    """Return whether a file, which may be new, fits a pattern, so that the next run would read it."""
    path, pattern = os.path.abspath(file), os.path.abspath(pattern)
    if "**" in pattern:  # any number of folders
        return any(fnmatch.fnmatch(path, one) for one in (pattern, pattern.replace("**/", "")))
    return PurePath(path).match(pattern)


def _is_in(written: Path, read: Path) -> bool:
    return written.is_relative_to(read) or (written.exists() and read.exists() and written.samefile(read))


def write_whole(path: str, text: str) -> None:
    """Write a file so that a reader, such as a collector of metrics, sees it whole or not at all."""
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a terminal
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    hidden = f"{path}.{os.getpid()}.tmp"
    try:
        with open(hidden, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(hidden, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def input_of(file: str) -> Any:
    """Return a path, or standard input for ``-``."""
    return sys.stdin.buffer if file == "-" else file


def inputs_of(files: tuple[str, ...]) -> Any:
    """Return one path, several of them, or standard input for ``-``."""
    if len(files) == 1:
        return input_of(files[0])
    if "-" in files:
        raise click.UsageError("standard input must be the only input, got also files")
    return [Path(file) for file in files]  # a list of texts would be IDs


_format = click.option(
    "-f", "--format", type=click.Choice(FORMATS), help="The format of FILE.  [default: by its ending or first bytes]"
)


class _Rows(NamedTuple):
    """The files of ``--rows``, by their checks."""

    files: dict[str, str]

    @classmethod
    def read(cls, texts: Iterable[str]) -> _Rows:
        """Read the option, before anything else is read."""
        from msgid.audit.definitions import check_names
        from msgid.audit.lists import check_ending

        pairs = [text.partition("=") for text in texts]
        for text, (_, _, file) in zip(texts, pairs, strict=True):
            if not file:
                raise click.UsageError(f"--rows must be CHECK=FILE, such as missing_offsets=lost.csv, got {text!r}")
        check_names("--rows", [check for check, _, _ in pairs])
        files = {check: file for check, _, file in pairs}
        if len(files) < len(pairs) or len({Path(file).resolve() for file in files.values()}) < len(files):
            raise click.UsageError(f"--rows must name each check and each file once, got {' and '.join(texts)}")
        for file in files.values():
            check_ending(Path(file))
        return cls(files)

    def write(self, report: Any) -> None:
        """Write the rows of each check."""
        for check, file in self.files.items():
            report.write_rows(check, file)


@msgid.command(
    cls=Grouped, groups=_AUDIT_GROUPS,
    epilog=examples("msgid audit ids.txt", "msgid audit orders.parquet --report audit.html",
                    "msgid audit orders.csv --source topic --source partition --offset offset --fail-on error",
                    "msgid audit 'day=*/*.parquet' --rows missing_offsets=lost.csv", "zcat ids.gz | msgid audit -")
)  # fmt: skip
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@audit_options
@_format
@click.option("--delimiter", metavar="CHARACTER", help="The character between two cells of CSV.  [default: ,]")
@click.option("--no-header", "header", is_flag=True, flag_value=False, default=True,
              help="CSV without a header: the columns are column0, column1 and so on.")  # fmt: skip
@click.option("--rows", multiple=True, metavar="CHECK=FILE", help="Write the rows of a check: CSV, JSON or Parquet.")
@click.option("--memory", metavar="SIZE", help="Memory to take, such as 1GiB.  [default: a quarter, at most 4 GiB]")
@click.option("--temp-dir", type=click.Path(exists=True, file_okay=False), help="The folder of temporary files.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
def audit(
    files: tuple[str, ...],
    id: str | None,
    source: tuple[str, ...],
    content: tuple[str, ...],
    sent: str | None,
    sent_columns: tuple[str, ...],
    digests: tuple[str, str] | None,
    format: Format | None,
    delimiter: str | None,
    header: bool,
    rows: tuple[str, ...],
    quiet: bool,
    **options: Any,
) -> None:
    """Find lost, duplicated and late messages in FILEs.

    A FILE is text with one ID per line, CSV, TSV, JSON lines, Parquet or Arrow, a folder or a pattern of such files, or
    the output folder of a job; '-' is standard input. Several FILEs are one table. The columns of such outputs, and of
    tables of Kafka and RocketMQ, are known, and so are columns named id, source, offset, timestamp, landed and content.
    An option that names one of them leaves the others known; an empty name turns one off. With --sent, the FILEs are
    compared with a file of the messages that a producer had acknowledged, or of all messages of a queue.
    """
    output = AuditOutput.taken_from(options)
    lists = _Rows.read(rows)
    output.check_inputs(*files, sent, *(digests or ()), more=lists.files.values())
    named = {**({} if id is None else {"id": id}), "source": source or None, "content": content or None, **options}
    named["progress"] = not quiet and sys.stderr.isatty()
    if sent == "-" and "-" in files:
        raise click.UsageError("only one of FILE and --sent can be standard input")
    read: dict[str, Any] = {"format": format, "delimiter": delimiter, "header": header}
    if sent is None and digests is None:
        if sent_columns:
            raise click.UsageError(SENT_COLUMN_ALONE)
        from msgid.audit import audit_file

        result = audit_file(inputs_of(files), **read, **named)
    else:
        from msgid.audit import compare

        left = None if sent is None else input_of(sent)
        columns = compared_columns(named, sent_columns)
        result = compare(left, inputs_of(files), digests=digests, **read, **columns)
    lists.write(result)
    output.finish(result)


@msgid.command(
    epilog=examples("msgid trace 0156F7E71C361B21BC024CCDBE00000000 orders.parquet outputs/",
                    "msgid trace orders/1:700 orders.parquet --store sqlite:states.db")
)  # fmt: skip
@click.argument("given", metavar="ID")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option("--store", metavar="STORE", help="sqlite:PATH, or the connection string of PostgreSQL.")
@_ID
@_SOURCE
@_OFFSET
@_TIMESTAMP
@_CONTENT
@_format
@click.option("--report", metavar="FILE", help="Write the story to this file, as one HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print the story as JSON.")
def trace(
    given: str, inputs: tuple[str, ...], store: str | None, report: str | None, as_json: bool, **options: Any
) -> None:
    """Print what happened to one message.

    ID is the ID in any spelling, a UUID, 0x and the digits of its bytes, RocketMQ's offset ID, or a position such as
    orders/1:700. Each INPUT is as for audit, and a table of its own. The times are in UTC.

    The exit status is 0 if the message was found, 1 if not, and 2 if an input is wrong, or if the message was not found
    and an input could not be read. Standard input is not an input, and --id and --offset are for all inputs.
    """
    try:
        from msgid.audit import trace as traced

        named = {name: value for name, value in options.items() if value not in (None, ())}
        if report is not None:
            check_written("report", report, [*inputs, store])
        with _store_errors(store or "", "read"):
            opened = None if store is None else _opened_store(store.removeprefix("sqlite:"))
            story = traced(given, list(inputs), store=opened, **named)
        if report is not None:
            story.to_html(report)
    except Exception as error:
        if not isinstance(error, click.ClickException | OSError | ImportError | ValueError):
            raise
        reason = " ".join((error.message if isinstance(error, click.ClickException) else str(error)).split())
        click.echo(f"Error: {reason}", err=True)
        sys.exit(WRONG_INPUT)
    click.echo(story.to_json() if as_json else story)
    sys.exit(0 if story.exists else WRONG_INPUT if story.unread else NOT_FOUND)


@msgid.command(
    epilog=examples("msgid doctor ids.txt", "msgid doctor orders.parquet --id order_id --json",
                    "msgid doctor 0156F7E71C361B21BC024CCDBE00000000")
)  # fmt: skip
@click.argument("given", nargs=-1, required=True, metavar="FILE | ID...")
@click.option("--id", help="The column of IDs.  [default: id; of a text file, its lines]")
@click.option("--timestamp", help="The column of the messages' own times, which tells some clients apart.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_format
def doctor(given: tuple[str, ...], id: str | None, timestamp: str | None, as_json: bool, format: Format | None) -> None:
    """Print which clients made the IDs of a FILE, or given IDs.

    It also prints the probability that a copy of a generator repeats an ID within a day.

    FILE is as for audit, and needs the extra arrow; given IDs do not. The traces that a client leaves in its IDs name
    it; they prove nothing.
    """
    from msgid.audit import _doctor

    if all(map(library.is_valid, given)):
        diagnosis = _doctor.doctor(given)
    elif len(given) > 1:
        raise click.UsageError("pass one FILE, or valid IDs")
    else:
        diagnosis = _doctor.doctor_file(input_of(given[0]), id, timestamp, format=format)
    click.echo(diagnosis.to_json() if as_json else diagnosis)
