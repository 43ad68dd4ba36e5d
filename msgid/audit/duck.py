"""Reduce, on one machine: DuckDB within a limit of memory, with temporary files, progress, and an end by Ctrl-C."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import duckdb

from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from msgid.audit.facts import Facts

DEFAULT_MEMORY: Final = 4 << 30
"""The most bytes of memory that an audit takes by default; a quarter of the machine's, if that is less."""
_OWN: Final = 160 << 20
"""Bytes of the process beside DuckDB's: the interpreter, its packages and a chunk of rows."""
_LEAST: Final = 64 << 20
_PREFIX: Final = "msgid-audit-"
_LOCK: Final = "lock"
_CHUNK: Final = 1 << 16
"""The rows of a result that are Python's values at one time."""
_GROUPED: Final = 480
"""Bytes that a row of a group takes in NumPy."""
_SHOWN_AFTER: Final = 1.0
"""Seconds before the first line of progress."""


class Limits:
    """What an audit may use of the machine.

    Args:
        memory: Bytes of memory of the process. Default: a quarter of the machine's, at most 4 GiB.
        temp_dir: Folder of temporary files. Default: that of the system.
        progress: Whether to print progress on standard error.
    """

    def __init__(self, memory: int | None = None, temp_dir: str | None = None, progress: bool = False) -> None:
        self.memory = memory or min(DEFAULT_MEMORY, _memory_of_machine() // 4)
        self.temp_dir = temp_dir
        self.progress = progress


def _memory_of_machine() -> int:
    import psutil

    return int(psutil.virtual_memory().total)


class OutOfRoom(OSError):
    """The audit needs more memory, or more room for temporary files, than it may have."""


class Duck:
    """A connection to DuckDB."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits = limits or Limits()
        parent = Path(limits.temp_dir or tempfile.gettempdir())
        with suppress(OSError):
            _remove_abandoned(parent)
        try:
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            lock = _locked(self._folder / _LOCK)
        except OSError as error:
            raise OutOfRoom(
                f"cannot make a folder of temporary files in {quote(str(parent))}: {error.strerror}"
            ) from None
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        memory = max(limits.memory - _OWN, _LEAST)
        for setting, value in {
            "memory_limit": f"{memory}B", "temp_directory": str(self._folder / "spilled"),
            "preserve_insertion_order": False, "enable_progress_bar": True, "enable_progress_bar_print": False,
            "TimeZone": "UTC",
        }.items():  # fmt: skip
            self._connection.execute(f"SET {setting}={literal(value)}")
        self._names = 0
        self._functions: set[str] = set()
        self._finish = weakref.finalize(self, _closed, self._connection, self._folder, lock)
        self._progress = Progress(self._connection) if limits.progress else None

    def close(self) -> None:
        """Close the connection, and remove the temporary files."""
        self._finish()

    def folder(self) -> Path:
        """Return the folder of temporary files, which is removed at the end."""
        return self._folder

    def new_name(self, prefix: str) -> str:
        """Return a name that no table has."""
        self._names += 1
        return f"{prefix}_{self._names}"

    def register(self, name: str, value: Any) -> None:
        """Make an Arrow table, or an object that exports a stream of Arrow, a relation."""
        self._connection.register(name, value)

    def function(self, name: str, function: Callable[..., Any], takes: str | list[str], returns: str) -> None:
        """Make a function of Arrow arrays one of SQL; its arguments may be NULL."""
        takes = [takes] if isinstance(takes, str) else takes
        self._functions.add(name)
        create: Any = self._connection.create_function  # its types are those of single values
        create(name, function, takes, returns, type="arrow", null_handling="special")

    def has_function(self, name: str) -> bool:
        """Return whether a function was made."""
        return name in self._functions

    def run(self, text: str) -> None:
        """Run a statement without a result."""
        self._fetched(text, (), lambda result: None)

    def rows(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        rows: list[tuple[Any, ...]] = self._fetched(text, parameters, lambda result: result.fetchall())
        return rows

    def kept(self, name: str, text: str) -> str:
        """Return the name of a new table with the rows of a query."""
        name = self.new_name(name)
        if self._progress is not None:
            self._progress.step += 1
        self.run(f"CREATE TABLE {name} AS {text}")
        return name

    def show_rows_of(self, relation: str) -> None:
        """Show the number of rows of a relation beside the progress."""
        if self._progress is not None:
            ((self._progress.rows,),) = self.rows(f"SELECT count(*) FROM {relation}")

    def facts(self, text: str, function: Callable[..., Facts], group: str | None = None) -> Iterator[Facts]:
        """Yield the facts of the rows of a query, some rows at a time.

        Args:
            text: The query.
            function: Returns the facts of some rows, as one array of NumPy per column, or one list of text.
            group: Column whose rows are passed together. Default: any rows are passed together.
        """
        if group is None:
            cursor = self._fetched(text, (), lambda result: result)
            while rows := self._guarded(lambda: cursor.fetchmany(_CHUNK)):
                yield function(*map(list, zip(*rows, strict=True)))
            return
        name = self.kept("grouped", text)
        sizes = self.rows(f"SELECT {group}, count(*) FROM {name} GROUP BY {group} ORDER BY {group}")
        first = size = 0
        for index, (_, number) in enumerate(sizes):
            if number * _GROUPED > self._limits.memory:
                needed = number * _GROUPED / (1 << 20)
                raise OutOfRoom(
                    f"cannot audit the table: one {group} has {number:,} rows of IDs that do not follow one another, "
                    f"which take {needed:,.0f} MiB of memory: allow more with `memory`"
                )
            size += number
            if size >= 16 * _CHUNK or index == len(sizes) - 1:
                ends = f"WHERE {group} BETWEEN {sizes[first][0]} AND {sizes[index][0]}"
                columns = self._fetched(f"SELECT * FROM {name} {ends}", (), lambda result: result.fetchnumpy())
                yield function(*columns.values())
                first, size = index + 1, 0
        self.run(f"DROP TABLE {name}")

    def table(self, text: str) -> Any:
        """Return the rows of a query as an Arrow table."""
        return self._guarded(lambda: self._connection.sql(text).to_arrow_table())

    def _fetched(self, text: str, parameters: Sequence[Any], fetch: Callable[[Any], Any]) -> Any:
        return self._guarded(lambda: fetch(self._connection.execute(text, list(parameters))))

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """Return the result of some work; an end by Ctrl-C and a lack of room have one error each."""
        if self._progress is not None:
            self._progress.start()
        try:
            return work()
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.OutOfMemoryException as error:
            raise OutOfRoom(self._lack_of_room(str(error))) from None
        except RuntimeError as error:
            if str(error) == "Query interrupted":
                raise KeyboardInterrupt from None
            raise
        except duckdb.IOException as error:
            if "No space left" in str(error):
                raise OutOfRoom(self._lack_of_room("max_temp_directory_size")) from None
            raise
        finally:
            if self._progress is not None:
                self._progress.pause()

    def _lack_of_room(self, error: str) -> str:
        parent = quote(str(self._folder.parent))
        if "max_temp_directory_size" in error:
            return f"cannot audit the table: no room for temporary files in {parent}; choose another `temp_dir`"
        mebibytes = self._limits.memory / (1 << 20)
        return f"cannot audit the table within {mebibytes:,.0f} MiB of memory: allow more with `memory`"


def literal(value: object) -> str:
    """Return a value as SQL writes it.

    >>> literal("it's"), literal(5), literal(True)
    ("'it''s'", '5', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Return the name of a column as SQL writes it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _closed(connection: Any, folder: Path, lock: IO[str] | None) -> None:
    with suppress(Exception):
        connection.close()
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        lock.close()


def _locked(path: Path) -> IO[str] | None:
    """Return a new file that is locked as long as its process lives; None where files cannot be locked."""
    file = path.open("w", encoding="utf-8")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        file.close()
        path.unlink()
        return None
    return file


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of processes that were killed: nobody holds their locks."""
    try:
        import fcntl
    except ImportError:
        return
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


class Progress:
    """A line on standard error that says how far the work is.

    Attributes:
        step: The number of the statement that runs.
        rows: The number of rows of the table; None as long as it is unknown.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.step = 0
        self.rows: int | None = None
        self._began = self._step_began = time.monotonic()
        self._running = threading.Event()
        self._is_shown = False
        threading.Thread(target=self._watch, daemon=True).start()

    def start(self) -> None:
        """Show progress from now on."""
        self._step_began = time.monotonic()
        self._running.set()

    def pause(self) -> None:
        """Remove the line."""
        self._running.clear()
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _watch(self) -> None:
        while True:
            self._running.wait()
            time.sleep(0.25)
            if time.monotonic() - self._began < _SHOWN_AFTER or not self._running.is_set():
                continue
            with suppress(Exception):
                share = self._connection.query_progress()
                shown = progress_line(self.step, share, self.rows, time.monotonic() - self._step_began)
                if self._running.is_set():
                    self._is_shown = True
                    sys.stderr.write(f"\r\x1b[K{shown}")
                    sys.stderr.flush()


def progress_line(step: int, share: float, rows: int | None, elapsed: float) -> str:
    """Return the line about a step of the work.

    Args:
        step: The number of the step.
        share: How much of it is done, in percent; below 0 if it is unknown.
        rows: The number of rows of the table, or None.
        elapsed: The seconds since the step began.

    >>> progress_line(3, 25.0, 4_000_000, 2.0), progress_line(1, -1.0, None, 2.0)
    ('step 3: 25 % of 4,000,000 rows, 6 s left in this step', 'step 1: 0 % of the input')
    """
    table = "the input" if rows is None else f"{rows:,} rows"
    left = f", {elapsed * (100 - share) / share:,.0f} s left in this step" if share >= 1 else ""
    return f"step {step}: {max(share, 0):.0f} % of {table}{left}"
