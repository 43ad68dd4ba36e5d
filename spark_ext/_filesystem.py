"""Resolve paths and URLs as Spark does: one rule for every function of the package.

- A path without a scheme is on Spark's default file system (``fs.defaultFS``), not on the driver's disk.
- ``s3a://``, ``s3n://`` and ``s3://`` mean the same.
- A URL is not decoded: ``file:///a%20b`` is the folder ``a%20b``, as in Spark.
- Arrow accesses the local disk, S3, Google Cloud Storage, Azure and HDFS; the package fsspec accesses other schemes.
"""

from __future__ import annotations

import os
import posixpath
import re
import xml.etree.ElementTree as ET
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from spark_ext._private import Unresolved, default_filesystem, qualified_path

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(/.*|$)", re.DOTALL)
"""A scheme has at least two letters: one letter is a drive of Windows."""
IN_PATTERNS: Final = re.compile(r"[\\*?\[\]{}]")
"""Characters with a meaning in a path that names several files."""
_SAME: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_ARROW: Final = ("s3", "gs", "abfs", "abfss", "hdfs", "viewfs")
_DBFS: Final = Path("/dbfs")
"""The folder in which Databricks mounts the files of ``dbfs:/``."""


class PathError(ValueError):
    """A path cannot be resolved, or its scheme is not supported."""


def filesystem(path: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a path or URL, and the path in it.

    Raises:
        PathError: if the scheme of the URL is not supported.
    """
    import pyarrow.fs as pafs

    path = resolve(path)
    match = _URL.fullmatch(path)
    if match is None:
        return pafs.LocalFileSystem(), path
    scheme, authority, inner = match[1], match[2] or "", match[3]
    if scheme == "dbfs" and _DBFS.is_dir():
        return pafs.LocalFileSystem(), f"{_DBFS}{inner}"
    # One client per process and server: a client does not work after a fork.
    files, root = _opened(scheme, authority, os.getpid(), os.environ.get("AWS_ENDPOINT_URL"))
    return files, f"{root.rstrip('/')}{inner}".rstrip("/") or "/"


def resolve(path: str) -> str:
    """Return the absolute local path or the URL to which Spark resolves a path or URL.

    Each place has one form: ``s3`` for ``s3a``, no ``file:``, no ``..``, and no double or trailing slash.

    Raises:
        PathError: if the path cannot be resolved.

    >>> resolve("s3a://lake/orders//2026/"), resolve("file:///data/a%20b")
    ('s3://lake/orders/2026', '/data/a%20b')
    """
    check_utf8(path)
    match = _URL.fullmatch(path)
    if match is None:
        path = _qualified(path)
        match = _URL.fullmatch(path)
        if match is None:
            return path
    scheme, authority, inner = match[1].lower(), match[2] or "", match[3]
    inner = posixpath.normpath(inner).replace("//", "/") if inner else ""
    inner = "" if inner == "/" else inner
    if scheme == "file":
        if authority:
            raise PathError(f"a file URL must not name a host, got {path!r}")
        return inner or "/"
    return f"{_SAME.get(scheme, scheme)}:{'//' if match[2] is not None else ''}{authority}{inner}"


def check_utf8(path: str) -> None:
    """Raise a `PathError` for a path that Java and Arrow cannot name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PathError(f"a path must be UTF-8, got {path!r}") from None


def path_of_uri(uri: str) -> str:
    """Return the path of a URI that Spark has encoded, such as ``_metadata.file_path``.

    >>> path_of_uri("file:///data/a%20b")
    'file:///data/a b'
    """
    return unquote(uri)


def literal(path: str) -> str:
    r"""Return the pattern that matches one path alone: Spark's readers take paths as patterns.

    >>> print(literal("/data/a[1].csv"))
    /data/a\[1\].csv
    """
    return IN_PATTERNS.sub(r"\\\g<0>", path)


@lru_cache(maxsize=32)
def _opened(scheme: str, authority: str, process: int, endpoint: str | None) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a URL's scheme and authority, and the path of its root."""
    import pyarrow as pa
    import pyarrow.fs as pafs

    root = f"{scheme}://{authority}/"
    if scheme in _ARROW:
        try:
            opened: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(root)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise PathError(f"cannot use {root}: {error}") from None
        return opened
    try:
        import fsspec

        files, inner = fsspec.core.url_to_fs(root)
    except Exception as error:  # the file systems of fsspec raise errors of any type
        raise PathError(f"cannot use {root}: Arrow does not serve {scheme!r}, and fsspec: {error}") from None
    return pafs.PyFileSystem(pafs.FSSpecHandler(files)), inner


def _qualified(path: str) -> str:
    """Return the URL or absolute path of a path without a scheme."""
    spark = _session()
    if spark is None:
        return _on(_configured(), path)
    default = default_filesystem(spark)
    if posixpath.isabs(path) or Path(path).is_absolute():
        return _on(default, path)
    try:
        return qualified_path(spark, path) or _on(default, path)
    except Unresolved as error:
        raise PathError(f"cannot resolve {path!r}: {error}") from None


def _on(default: str | None, path: str) -> str:
    if default is None or default.startswith("file:"):
        return str(Path(path).absolute())
    if not posixpath.isabs(path):
        raise PathError(f"a path on {default} must be absolute, got {path!r}")
    return f"{default.rstrip('/')}{path}"


def _session() -> Any:
    """Return the active session; None in a Spark worker."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _configured() -> str | None:
    """Return the default file system of Hadoop's configuration folder, which a Spark worker can read too."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    try:
        tree = ET.parse(Path(folder) / "core-site.xml") if folder else None
    except (OSError, ET.ParseError):
        return None
    settings = (
        [] if tree is None else [entry for entry in tree.iter("property") if entry.findtext("name") == "fs.defaultFS"]
    )
    return settings[-1].findtext("value") if settings else None
