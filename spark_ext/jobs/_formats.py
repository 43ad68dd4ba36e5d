"""The input of a job: its format, which the endings of its files show, and errors and warnings about it."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TextIO

from msgid.audit._readers import Unreadable
from msgid.audit._readers import format_of as format_of_ending
from spark_ext._filesystem import PathError, filesystem, literal
from spark_ext.tables.table_formats import format_of_table, table_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMATS: Final = ("csv", "tsv", "json", "parquet", "text")
EVERY_FILE: Final = {"ignoreCorruptFiles": False, "ignoreMissingFiles": False}
"""Options that override settings of the session which skip files in silence."""
_ENDINGS: Final = {"csv": "csv", "tsv": "tsv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_LAST_LETTER: Final = re.compile(r"[A-Za-z0-9](?=[^A-Za-z0-9/]*$)")
"""The last letter or digit of a file's name."""
_HIDDEN: Final = re.compile(r"/(?:\.|_[^/=]*(?:/|$))")
"""Files and folders that Spark skips."""
_PATTERN: Final = re.compile(r"[*?\[{]")


class BadInput(ValueError):
    """The options of a job do not fit its input. The message names the option and the values that are allowed."""


class InputWarning(UserWarning):
    """A job reads its input otherwise than the files look. No value is lost."""


@contextmanager
def warnings_to(show: Callable[[str], None], *kinds: type[Warning]) -> Iterator[None]:
    """Pass the text of each warning of some kinds to a function."""
    others = warnings.showwarning

    def showwarning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, kinds):
            show(str(message))
        else:
            others(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.showwarning = showwarning
        for kind in kinds:
            warnings.simplefilter("default", kind)
        yield


def guess_format(path: str) -> str:
    """Guess a format by the ending of a path, without the ending of a compression; ``text`` if it is unknown.

    >>> guess_format("logs/ids.tsv.gz"), guess_format("ids.txt")
    ('tsv', 'text')
    """
    endings = [
        suffix[1:].lower() for suffix in PurePath(path).suffixes if suffix.lower() not in (".gz", ".bz2", ".zst")
    ]
    return _ENDINGS.get(endings[-1], "text") if endings else "text"


def check_ending(path: str) -> None:
    """Check that the ending of a file is known, or that it does not have one.

    Raises:
        BadInput: if it is unknown, such as that of a page or a spreadsheet.
    """
    try:
        format_of_ending(PurePath(path).name)
    except Unreadable as error:
        if _names_in(path) is None and not _PATTERN.search(path):
            raise BadInput(f"cannot read {path}: {error}") from None


def formats_in(path: str) -> set[str]:
    """Return the formats of a file, or of the files of a folder that Spark reads, by their endings.

    If the folder itself has an ending, it is the format.
    """
    guessed = guess_format(path)
    names = _names_in(path) if guessed == "text" else None
    return {guessed} if names is None else {guess_format(name) for name in names if _is_read(name)}


def warn_of_folders(path: str) -> None:
    """Warn of files that Spark does not read because of their folder: only folders of values, ``name=value``, are read.

    Spark itself leaves them out in silence.

    Raises:
        BadInput: if a folder of values is beside another folder with files, which Spark cannot read.
    """
    names = _names_in(path)
    unread = [name for name in names or () if not _is_read(name)]
    values = [name for name in names or () if "/" in name[1:] and _is_read(name)]
    if unread and values:
        raise BadInput(
            f"cannot read {path}: it has folders of values, such as {values[0].split('/')[1]}, and other folders, "
            f"such as {unread[0].split('/')[1]}. Pass one of the folders, or a pattern such as {path}/*=*"
        )
    if unread:
        text = f"files in folders of {path} are not read, such as {unread[0][1:]}; {path}/* reads them too"
        warnings.warn(f"{len(unread):,} {text}", InputWarning, stacklevel=2)


def _is_read(name: str) -> bool:
    """Check whether Spark reads a file of a folder: it is in the folder, or in folders of values."""
    return all("=" in part for part in name.split("/")[1:-1])


def _names_in(folder: str) -> list[str] | None:
    """Return the paths of the files in a folder, each after a slash, without those that Spark skips.

    Return None for any other path, and for a store that only Spark can reach.
    """
    import pyarrow.fs as pafs

    try:
        files, inner = filesystem(folder)
        if files.get_file_info(inner).type != pafs.FileType.Directory:
            return None
        inside = files.get_file_info(pafs.FileSelector(inner, recursive=True))
    except (PathError, OSError):
        return None
    names = [info.path[len(inner.rstrip("/")) :] for info in inside if info.type == pafs.FileType.File]
    return sorted(name for name in names if not _HIDDEN.search(name))


def format_of(path: str) -> str:
    """Return the format of a file, or of all files in a folder, by their endings; ``text`` for unknown endings.

    Raises:
        BadInput: if the files have several formats, or the folder does not have files.
    """
    found = formats_in(path)
    is_open = not PurePath(path).suffix and bool(_PATTERN.search(path)) and pattern_of(path) == path
    if len(found) != 1 or is_open:
        raise BadInput(f"cannot tell the format of {path}: pass --format {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    return found.pop()


def pattern_of(path: str) -> str:
    """Return the pattern of a path: a file or folder with its name, or else the path itself, which may be a pattern.

    The pattern of a file has a group, because Spark's streams take a path without one for a folder.
    """
    import pyarrow.fs as pafs

    try:
        files, inner = filesystem(path)
        kind = files.get_file_info(inner).type
    except (PathError, OSError):
        return path
    pattern = path if kind == pafs.FileType.NotFound else literal(path)
    return _LAST_LETTER.sub(r"[\g<0>]", path) if kind == pafs.FileType.File and pattern == path else pattern


def is_table(path: str) -> bool:
    """Check whether a folder holds a table of any table format."""
    return holds_table(path) or formats_in(path) == {"parquet"}


def holds_table(path: str) -> bool:
    """Check whether an input is a table with a log; False for a store that only Spark can reach."""
    try:
        return table_format(format_of_table(path)).has_log
    except (PathError, OSError):
        return False
