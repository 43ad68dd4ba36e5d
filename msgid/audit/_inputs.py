"""Audits of files: text with one ID per line, CSV, TSV, JSON lines, Parquet and Arrow files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgid._known_tables import JOB_TABLES
from msgid._validate import check_installed, quote
from msgid.audit._tables import audit_table

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

    from msgid.audit.report import Report


def audit_file(path: str | PathLike[str], **columns: Any) -> Report:
    r"""Return the report of the lost, repeated and late messages in a file.

    Args:
        path: Text with one ID per line, CSV or TSV with a header, JSON lines, Parquet or Arrow, by its ending; or a
            folder of Parquet files, which may be the output of a job.
        columns: The arguments of `audit_table`.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file does not have a column, or is not a table.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/ids.txt"
    >>> with open(path, "w") as file:
    ...     print("0156F7E71C361B21BC024CCDBE00000007", "not an ID", sep="\\n", file=file)
    >>> audit_file(path).findings[0].check
    'malformed_ids'
    """
    table = read_table(path)
    if table.column_names == ["value"]:
        columns = {"id": "value", **columns}
    return audit_table(table, **columns)


def read_table(path: str | PathLike[str]) -> pa.Table:
    """Return the rows of a file as an Arrow table; a text file has one column, ``value``."""
    check_installed("an audit in Python", "arrow", "numpy", "pyarrow")
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.json as pajson
    import pyarrow.parquet as pq

    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"no file {quote(str(path))}")
    ending = next((part for part in reversed(file.suffixes) if part not in (".gz", ".bz2", ".zst")), "").lower()
    try:
        if file.is_dir():
            return _read_folder(file)
        if ending == ".parquet":
            return pq.read_table(file)
        if ending in (".arrow", ".feather", ".ipc"):
            return pa.ipc.open_file(file).read_all()
        if ending in (".json", ".jsonl", ".ndjson"):
            return pajson.read_json(file)
        if ending in (".csv", ".tsv"):
            with pa.input_stream(file) as stream:
                header = stream.read().split(b"\n", 1)[0].decode("utf-8-sig").rstrip("\r")
            delimiter = "\t" if ending == ".tsv" else ","
            names = [name.strip('"') for name in header.split(delimiter)]
            options = pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
            )
            return pacsv.read_csv(file, parse_options=pacsv.ParseOptions(delimiter=delimiter), convert_options=options)
        with pa.input_stream(file) as stream:
            lines = stream.read().splitlines()
        return pa.table({"value": [line.decode("utf-8", "backslashreplace") for line in lines]})
    except pa.ArrowException as error:
        raise ValueError(f"cannot read {quote(str(path))}: {error}") from None


def _read_folder(folder: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    def read(path: Path) -> pa.Table:
        files = sorted(str(file) for file in path.rglob("*.parquet") if _shown(file.relative_to(path)))
        if not files:
            raise ValueError(f"cannot read {quote(str(path))}: there are not any Parquet files in it")
        partitioning = ds.partitioning(flavor="hive")
        return ds.dataset(files, format="parquet", partitioning=partitioning, partition_base_dir=str(path)).to_table()

    written = next((known for known in JOB_TABLES if (folder / known.folder).is_dir()), None)
    if written is None:
        return read(folder)
    table = read(folder / written.folder)
    if written.only is not None:
        name, value = written.only
        table = table.filter(pc.equal(table[name].cast(pa.string()), value))
    aside = folder / (written.aside or "")
    if written.aside is not None and any(aside.rglob("*.parquet")):
        table = pa.concat_tables([table, read(aside)], promote_options="default")
    return table


def _shown(path: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.parts)
