"""Folders of digests: `update_digests` makes the digest of each part of a table once, such as that of each day.

A part has one file in the folder, `file_of` its name. The file names the input from which it was made, so a part whose
files have changed is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from msgid._validate import check_installed
from msgid.audit._digest_tables import digest, store
from msgid.audit._inputs import dataset_of_files, parquet_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from msgid.audit._block_sums import By

_INPUT: Final = b"msgid.input"
"""The key of the metadata of a file of a digest that has the fingerprint of its input."""


def update_digests(
    folder: str | os.PathLike[str],
    parts: str | os.PathLike[str] | Mapping[str, Any],
    *,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    content: str | Sequence[str] | None = None,
    life: str | datetime | Sequence[datetime] | None = None,
    by: By | None = None,
    again: Iterable[str] = (),
) -> list[str]:
    """Make the digests of the parts of a table that a folder does not have yet, such as those of new days.

    The digest of a part is made once. It is made again if the files of the part have other names, sizes or times of
    change. Digests of parts that are gone are kept. ``compare`` takes the folder as a digest of the whole table, and
    refuses it next to the table if a part is gone.

    Args:
        folder: The folder of the digests, which is created. Each part has one Parquet file in it.
        parts: A folder with Parquet files: each folder in it that has files is a part, such as ``day=2026-11-24``, and
            so is each file of the folder itself. Or tables by their names, each as for `digest`.
        id: Column of IDs, as for `digest`; so are the following arguments.
        source: Columns that name the log.
        offset: Column of offsets in the log.
        timestamp: Column of the messages' own times.
        content: Columns that are hashed too.
        life: The life of a log.
        by: ``offset`` or ``minute``.
        again: Names of parts that are made in any case. A table in memory does not show that it has changed.

    Returns:
        The names of the parts whose digests were made, sorted.

    Raises:
        ValueError: if a column is missing or has the wrong type, or there are not any parts.

    >>> import tempfile
    >>> import msgid.audit
    >>> import pyarrow as pa
    >>> days = {"2026-11-23": pa.table({"offset": [0, 1]}), "2026-11-24": pa.table({"offset": [2, 3]})}
    >>> folder = tempfile.mkdtemp()
    >>> update_digests(folder, days, offset="offset")
    ['2026-11-23', '2026-11-24']
    >>> update_digests(folder, {**days, "2026-11-25": pa.table({"offset": [4]})}, offset="offset")
    ['2026-11-25']
    >>> msgid.audit.compare(None, None, digests=(folder, folder)).sent
    5
    """
    check_installed("a digest in Python", "arrow", "numpy", "pyarrow")
    columns: dict[str, Any] = {
        "id": id,
        "source": source,
        "offset": offset,
        "timestamp": timestamp,
        "content": content,
        "life": life,
    }
    wanted, forced = Path(folder), frozenset(again)
    wanted.mkdir(parents=True, exist_ok=True)
    made = []
    for name, (table, fingerprint) in sorted(_parts_of(parts).items()):
        path = wanted / file_of(name)
        if name not in forced and is_current(path, fingerprint):
            continue
        own = digest(table, **columns, by=by)
        if fingerprint is not None:
            own = own.replace_schema_metadata({_INPUT: fingerprint.encode()})
        store(own, path)
        made.append(name)
    return made


def file_of(name: str) -> str:
    """Return the name of the file of a part's digest.

    >>> file_of("topic=a/day=2026-11-24")
    'topic=a%2Fday=2026-11-24.parquet'
    """
    return f"{quote(name, safe='= ,+@:').lstrip('._') or 'part'}.parquet"


def is_current(path: Path, fingerprint: str | None) -> bool:
    """Return whether the digest of a part is there, and was made of the same input; None stands for any input."""
    return path.exists() and fingerprint in (None, _input_of(path))


def check_current(sides: Iterable[Any], digests: Iterable[Any]) -> None:
    """Raise ValueError if the digests of a folder of files are not those of its files.

    Its files have changed since, a part lacks a digest, or a digest lacks its files.

    Digests show their files if `update_digests` made them of a path. Others cannot be checked, and neither can a side
    that is not a path.

    Args:
        sides: The other side and the table.
        digests: The digests of both.
    """
    for which, side, made in zip(("sent", "the table"), sides, digests, strict=True):
        if all(isinstance(one, str | os.PathLike) and Path(one).exists() for one in (side, made)):
            _check_folder(which, Path(side), Path(made))


def _check_folder(which: str, root: Path, folder: Path) -> None:
    files = parquet_files(folder) if folder.is_dir() else [str(folder)] if folder.suffix == ".parquet" else []
    inputs = {Path(file): _input_of(Path(file)) for file in files}
    held = set(inputs.values()) - {None}
    if not held:
        return
    whole = cache(_fingerprint_of_path)
    parts = _parts_of(root) if root.is_dir() else {root.stem: (root, whole(root))}
    for name, (_, fingerprint) in sorted(parts.items()):
        path = folder / file_of(name)
        is_unknown = inputs.get(path, "") is None
        if fingerprint in held or is_unknown or any(whole(one) in held for one in _above(root, name)):
            continue
        state = "is older than its files" if path.exists() else "is missing"
        raise ValueError(
            f"cannot compare {which} by digests: the digest of its part {name!a} {state}; call update_digests, or run "
            f"'msgid digest {root} --to {folder}' with the same columns"
        )
    left = held - {fingerprint for _, fingerprint in parts.values()}
    if left:
        left -= {whole(one) for name in parts for one in _above(root, name)}
    gone = sorted(str(path) for path, made_of in inputs.items() if made_of in left)
    if gone:  # its messages would count, and cannot be read
        raise ValueError(
            f"cannot compare {which} by digests: the files of the digest {gone[0]!a} are gone; delete that digest, or "
            "compare the digests alone"
        )


def _input_of(path: Path) -> str | None:
    """Return the fingerprint of the files of a digest; None if the digest does not show them."""
    import pyarrow.parquet as pq

    held = (pq.read_schema(path).metadata or {}).get(_INPUT)
    return None if held is None else held.decode()


def _above(root: Path, name: str) -> list[Path]:
    """Return the folders around a part. A digest may be that of one of them."""
    return [one for one in (root / name, *(root / name).parents) if one.is_dir() and one.is_relative_to(root)]


def _parts_of(parts: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, tuple[Any, str | None]]:
    """Return the table of each part by name, and the fingerprint of its files; None for a table in memory."""
    if isinstance(parts, Mapping):
        return {name: (table, _fingerprint_of_path(table)) for name, table in parts.items()}
    root = Path(parts)
    if not root.is_dir():
        raise ValueError(f"parts must be a folder, or tables by their names, got {str(parts)!a}")
    by_part: dict[str, list[str]] = {}
    for file in parquet_files(root):
        place = Path(file).relative_to(root)
        name = place.stem if place.parent == Path() else place.parent.as_posix()
        by_part.setdefault(name, []).append(file)
    return {name: (dataset_of_files(files, root), _fingerprint(files)) for name, files in by_part.items()}


def _fingerprint_of_path(table: Any) -> str | None:
    if not isinstance(table, str | os.PathLike):
        return None
    path = Path(table)
    return _fingerprint(parquet_files(path) if path.is_dir() else [str(path)])


def _fingerprint(files: list[str]) -> str:
    """Return a text that changes with the names, sizes and times of change of some files."""
    held = [(Path(file).name, (info := os.stat(file)).st_size, info.st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()
