"""Files that are cut off, empty or larger than memory; an end by Ctrl-C or a kill, and a full temporary folder."""

import contextlib
import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from helpers.commands import invoke

from msgid import layout

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
zstandard = pytest.importorskip("zstandard")
pytest.importorskip("duckdb")

POSITIONS = ["--source", "topic", "--source", "partition", "--offset", "offset", "--timestamp", "timestamp"]
PLAIN = ["csv", "tsv", "jsonl", "txt"]
BINARY = ["parquet", "arrow"]
READERS = [*PLAIN, *(f"{form}.{more}" for form in PLAIN for more in ("gz", "zst")), *BINARY]
LIMIT = 1 << 30
BESIDE_LIMIT = 300_000_000
"""Bytes of a process beside its limit."""
LEAST = "256MiB"
"""The least limit that the command takes."""
LARGE = 10 << 30
NEEDED = 30_000_000_000
"""Free bytes of the disk for a large file, and for the temporary files of its audit."""
PART = 32 << 20
"""Bytes that a large file repeats."""
PAYLOAD = "x" * 900

WITH_SIGINT = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Starts a command that Ctrl-C ends, also where the tests run in the background of a shell."""
MEASURED = """
import os, re, subprocess, sys, time
child, own, ended = subprocess.Popen(sys.argv[2:]), 0, 0
while not ended:
    with open(f"/proc/{child.pid}/status") as status:
        found = re.search(r"RssAnon:\\s+(\\d+)", status.read())
    own = max(own, int(found[1]) if found else 0)
    time.sleep(0.02)
    ended, status, usage = os.wait4(child.pid, os.WNOHANG)
open(sys.argv[1], "w").write(f"{usage.ru_maxrss * 1024} {own * 1024} {os.waitstatus_to_exitcode(status)}")
"""
"""Runs a command, and writes to a file its peak of memory, that without the pages of files, and its exit status. The
system counts the memory of a parent as the least peak of its children, and this parent is small."""


def rows(count):
    """Rows of 4 logs without faults, from a multiple of 4 on."""
    for n in range(count):
        id = layout.pack(0x163E00AA01, 7, 200_000_000 + n // 1000, n).hex().upper()
        yield {
            "id": id, "topic": "orders", "partition": n % 4, "offset": n // 4,
            "timestamp": 1_790_000_000_000 + n, "payload": PAYLOAD,
        }  # fmt: skip


def text_of(form, count):
    """The bytes of a text file: its header, and its rows."""
    if form == "txt":
        return b"", "".join(f"{row['id']}\n" for row in rows(count)).encode()
    if form == "jsonl":
        return b"", "".join(f"{json.dumps(row)}\n" for row in rows(count)).encode()
    cell = "," if form == "csv" else "\t"
    names = cell.join(next(rows(1))) + "\n"
    return names.encode(), "".join(cell.join(map(str, row.values())) + "\n" for row in rows(count)).encode()


def packed(data, more):
    """Bytes that are compressed as an ending says."""
    return gzip.compress(data, 1) if more == "gz" else zstandard.compress(data) if more == "zst" else data


def table_of(count):
    return pa.Table.from_pylist(list(rows(count)))


def write(path, count):
    """Write a file of a form that its name tells."""
    form, _, more = path.name.partition(".")[2].partition(".")
    if form in BINARY:
        with writer_of(path, table_of(1).schema) as writer:
            writer.write_table(table_of(count))
        return
    path.write_bytes(packed(b"".join(text_of(form, count)), more))


def writer_of(path, schema):
    if path.suffix == ".parquet":
        return pq.ParquetWriter(path, schema, compression="none", use_dictionary=False)
    return pa.ipc.new_file(str(path), schema)


def columns_of(path):
    return [] if ".txt" in path.name else POSITIONS


@pytest.fixture
def in_tmp_path(tmp_path, monkeypatch):
    """Work in an empty folder, because an error shows at most 64 characters of a path."""
    monkeypatch.chdir(tmp_path)


def check_one_line(done, part):
    """Check that a command ended with one line that has a text: the name of the file, or of a missing column."""
    assert done.stderr.count("\n") == 1, done.stderr
    assert (done.exit_code, done.stdout) == (1, "")
    assert part in done.stderr


@pytest.mark.usefixtures("in_tmp_path")
@pytest.mark.parametrize("size", [1_000, pytest.param(200_000, marks=pytest.mark.volume)])
@pytest.mark.parametrize("reader", READERS)
def test_file_that_is_cut_is_refused_in_one_line(reader, size):
    """The line of a text is named. A text of IDs that is cut has one malformed ID, because a line may be any text."""
    path = Path(f"a.{reader}")
    write(path, size)
    data = path.read_bytes()
    middle = len(data) // 2
    line = None
    if path.suffix[1:] in PLAIN:
        start = data.rindex(b"\n", 0, middle) + 1
        line = data.count(b"\n", 0, start) + 1
        middle = start + 40  # behind the ID, and within a row
    path.write_bytes(data[: middle if reader != "txt" else start + 10])
    done = invoke(["audit", str(path), *columns_of(path)])
    if reader == "txt":
        assert done.exit_code == 0, done.stderr
        assert "malformed_ids" in done.stdout
        return
    check_one_line(done, path.name)
    if line is not None:
        assert f"line {line:,}" in done.stderr


@pytest.mark.usefixtures("in_tmp_path")
@pytest.mark.parametrize("reader", READERS)
def test_empty_file_is_refused_in_one_line(reader):
    """A text of IDs may be without lines: it has 0 rows. JSON lines without lines are a table without columns."""
    path = Path(f"a.{reader}")
    path.touch()
    done = invoke(["audit", str(path), *columns_of(path)])
    if reader == "txt":
        assert (done.exit_code, done.stderr) == (0, "")
    else:
        check_one_line(done, "offset" if reader == "jsonl" else path.name)


@pytest.mark.usefixtures("in_tmp_path")
@pytest.mark.parametrize("reader", READERS)
def test_file_without_rows_has_a_report(reader):
    """The header of CSV, and the schema of Parquet and Arrow, name the columns. JSON lines without lines do not."""
    path = Path(f"a.{reader}")
    if reader in BINARY:
        with writer_of(path, table_of(1).schema):
            pass
    else:
        form, _, more = reader.partition(".")
        path.write_bytes(packed(text_of(form, 0)[0], more))
    done = invoke(["audit", str(path), *columns_of(path), "--json"])
    if reader.startswith("jsonl"):
        check_one_line(done, "offset")
        return
    assert (done.exit_code, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["rows"], report["findings"]) == (0, [])


def large(path):
    """Write a file of 10 GB of repeated rows, which is smaller if it is compressed; return its numbers of rows."""
    form, _, more = path.name.partition(".")[2].partition(".")
    in_part = PART // (35 if form == "txt" else 1_000)
    if form in BINARY:
        table = table_of(in_part)
        repeats = LARGE // table.nbytes
        with writer_of(path, table.schema) as writer:
            for _ in range(repeats):
                writer.write_table(table)
        return in_part, repeats
    header, part = text_of(form, in_part)
    repeats = LARGE // len(part)
    head, body = packed(header, more) if header else b"", packed(part, more)
    with path.open("wb") as file:  # members of gzip and frames of Zstandard follow each other
        file.write(head)
        for _ in range(repeats):
            file.write(body)
    return in_part, repeats


def command(path, folder, *more):
    limits = ["--memory", "1GiB", "--temp-dir", str(folder), "--quiet"]
    return [sys.executable, "-m", "msgid", "audit", str(path), *limits, *more]


def measured(tmp_path, arguments, **options):
    """Run a command; return its output, its errors, and its peak of memory.

    An Arrow file is mapped: its pages count for the process, and the system removes them when it needs memory.
    """
    peak = tmp_path / "peak"
    run = [sys.executable, "-c", MEASURED, str(peak), *arguments]
    done = subprocess.run(run, capture_output=True, text=True, **options)
    memory, own, status = map(int, peak.read_text().split())
    assert status == 0, done.stderr
    return done.stdout, done.stderr, own if any(one.endswith(".arrow") for one in arguments) else memory


@pytest.fixture
def folder(tmp_path):
    """Return an empty folder for temporary files, which must be empty in the end."""
    place = tmp_path / "temporary"
    place.mkdir()
    yield place
    assert list(place.iterdir()) == []


@pytest.fixture
def room(tmp_path):
    """Delete large files at once, and skip the test if the disk is too small for them."""
    if shutil.disk_usage(tmp_path).free < NEEDED:
        pytest.skip("a file of 10 GB needs a disk with 30 GB of free space")
    yield
    for path in tmp_path.glob("a.*"):
        path.unlink()


def check_large(output, distinct, repeats):
    """Check the numbers of a report: each row but the first of its kind repeats it."""
    report = json.loads(output)
    counts = Counter()
    for finding in report["findings"]:
        counts[finding["check"]] += finding["count"]
    repeated = distinct * (repeats - 1)
    assert report["rows"] == distinct * repeats
    assert counts["duplicate_ids"] == repeated
    assert counts.keys() == {"duplicate_ids", *(["duplicate_messages"] if report["logs"] else [])}
    assert set(counts.values()) == {repeated}


@pytest.mark.volume
@pytest.mark.parametrize("reader", READERS)
def test_file_of_10_gb_is_audited_within_the_limit(tmp_path, folder, room, reader):
    path = tmp_path / f"a.{reader}"
    made = large(path)
    output, errors, memory = measured(tmp_path, command(path, folder, *columns_of(path), "--json"))
    assert errors == ""
    check_large(output, *made)
    assert memory < LIMIT + BESIDE_LIMIT


@pytest.mark.volume
@pytest.mark.parametrize("reader", PLAIN)
def test_10_gb_of_standard_input_are_audited_within_the_limit(tmp_path, folder, room, reader):
    """A pipe is read once: another process decompresses 10 GB into it."""
    path = tmp_path / f"a.{reader}.gz"
    made = large(path)
    arguments = command(
        "-", folder, *columns_of(path), "--format", {"jsonl": "json", "txt": "text"}.get(reader, reader)
    )
    with subprocess.Popen(["gzip", "-dc", str(path)], stdout=subprocess.PIPE) as source:
        output, errors, memory = measured(tmp_path, [*arguments, "--json"], stdin=source.stdout)
    assert errors == ""
    check_large(output, *made)
    assert memory < LIMIT + BESIDE_LIMIT


# --- An end from outside ---


def many_rows(path, count=1_000_000):
    """Write rows with UUIDs, which take more memory than the least limit, and each row twice."""
    import numpy as np

    number = np.arange(count)
    starts = np.char.mod("%08x-0000-4000-8000-", number * 7919 % (1 << 32))
    table = pa.table({
        "id": np.char.add(starts, np.char.mod("%012x", number)), "topic": pa.repeat("orders", count),
        "partition": number % 4, "offset": number // 4, "timestamp": 1_790_000_000_000 + number,
    })  # fmt: skip
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.write_table(table)


def started(arguments, **options):
    """Start a command that Ctrl-C ends."""
    run = [sys.executable, "-c", WITH_SIGINT, *arguments]
    return subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def wait_for(process, is_there):
    """Wait until something is there; fail if the process ends before."""
    while not is_there():
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)


def unread_bytes(pipe):
    """Return the number of bytes in a pipe that the other end has not read."""
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def files_in(folder):
    """Return the files in a folder with their sizes; files that are removed meanwhile are left out."""
    found = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                found[path.name] = path.stat().st_size
    return found


def check_interrupted(process):
    """Check that a process ends by Ctrl-C, with its status and without a traceback."""
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors + output
    assert errors.count("\n") <= 1, errors


@pytest.mark.kills
def test_interrupt_while_reading_leaves_nothing(folder):
    """The pipe stays open, so the command still waits for rows."""
    header, part = text_of("csv", 5_000)
    process = started(command("-", folder, *POSITIONS, "--format", "csv"), stdin=subprocess.PIPE)
    process.stdin.buffer.write(header + part)
    process.stdin.flush()
    wait_for(process, lambda: unread_bytes(process.stdin) == 0)
    process.send_signal(signal.SIGINT)
    process.wait(100)
    check_interrupted(process)


@pytest.mark.kills
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_interrupt_in_the_middle_leaves_nothing(tmp_path, folder, form):
    """The command has begun to write temporary files."""
    path = tmp_path / f"a.{form}"
    written(path)
    process = started(command(path, folder, *POSITIONS, "--memory", LEAST))
    wait_for(process, lambda: sum(files_in(folder).values()) > 0)
    process.send_signal(signal.SIGINT)
    check_interrupted(process)


def written(path):
    """Write the rows as Parquet, or as CSV."""
    many_rows(path.with_suffix(".parquet"))
    if path.suffix == ".csv":
        from pyarrow import csv

        with pq.ParquetFile(path.with_suffix(".parquet")) as file, csv.CSVWriter(path, file.schema_arrow) as writer:
            for batch in file.iter_batches():
                writer.write_batch(batch)


@pytest.mark.kills
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_interrupt_while_a_list_is_written_leaves_nothing(tmp_path, folder, form):
    """A list that is not complete is not left behind either."""
    path, lists = tmp_path / "a.parquet", tmp_path / "lists"
    lists.mkdir()
    many_rows(path)
    more = ["--rows", f"duplicate_messages={lists / f'repeated.{form}'}"]
    process = started(command(path, folder, *POSITIONS, *more))
    wait_for(process, lambda: any(lists.iterdir()))
    process.send_signal(signal.SIGINT)
    check_interrupted(process)
    assert list(lists.iterdir()) == []


@pytest.mark.kills
def test_files_of_a_killed_process_are_removed_by_the_next(tmp_path, folder):
    path, small = tmp_path / "a.parquet", tmp_path / "b.csv"
    many_rows(path)
    write(small, 10)
    process = started(command(path, folder, *POSITIONS, "--memory", LEAST))
    wait_for(process, lambda: sum(files_in(folder).values()) > 0)
    process.kill()
    process.communicate()
    assert files_in(folder)
    subprocess.run(command(small, folder, *POSITIONS), check=True, capture_output=True)


@pytest.mark.kills
def test_full_temporary_folder_is_one_line(tmp_path):
    """The folder is a file system of 8 MB."""
    path, full = tmp_path / "a.parquet", tmp_path / "full"
    full.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(full)]
    if shutil.which("mount") is None or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        many_rows(path)
        run = command(path, full.name, *POSITIONS, "--memory", LEAST)  # an error shows 64 characters of a path
        done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert f"no room for temporary files in '{full.name}'" in done.stderr
        assert list(full.iterdir()) == []
    finally:
        subprocess.run(["umount", str(full)], check=True)
