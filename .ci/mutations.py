"""Break the code in one place at a time, and print which tests notice.

    python .ci/mutations.py                                  # all mutations but those that need Spark
    python .ci/mutations.py --spark --only sinks             # those whose group is named, with Spark
    python .ci/mutations.py --revision v0.2.0                # the code and the tests of another commit

Each mutation runs in a copy of a commit, first with the tests of the default run, and then with all tests of the same
folders. A mutation whose old text is missing does not fit the commit, and must be written anew.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = "msgid/ids/_native/_speedups.c"
SCAN = "msgid/iggy/records/_scan.c"
IDS, IGGY, PROCESSING = "tests/unit/ids", "tests/unit/iggy", "tests/unit/processing"
COLUMNS = "tests/spark/columns"
LIMIT = 1200
"""The seconds after which the tests of a mutation that never end are stopped."""


class Mutation(NamedTuple):
    """One change of one place, and the tests that should notice it; the first ones are the most likely to."""

    group: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def of(group: str, *changes: tuple[str, ...], tests: tuple[str, ...]) -> list[Mutation]:
    """Return the mutations of a group: (the broken rule, the file, the old text, the new text)."""
    return [Mutation(group, breaks, file, old, new, tests) for breaks, file, old, new in changes]


MUTATIONS = [
    *of(
        "core",
        ("G is a hex digit", CORE, "EACH(0x80 - 7)", "EACH(0x80 - 8)"),
        ("characters above 127 are read as hex", CORE, "| all) & EACH(0x80);", ") & EACH(0x80);"),
        ("IDs of unequal length compare as equal", CORE, "order = (a->length > b->length) - (a->length < b->length);",
         "order = 0;"),
        ("the clock may go back", CORE, "if (now > self->second) {", "if (now != self->second) {"),
        ("a wrapped sequence keeps its second", CORE, "        self->second++;\n        self->sequence = 0;",
         "        self->sequence = 0;"),
        ("a bulk goes past the end of the sequence", CORE, "uint64_t taken = count < left ? count : left;",
         "uint64_t taken = count;"),
        ("a raw system call is not seen", CORE, "    life = page;\n", ""),
        ("a first ID is made in a new child without a begin", CORE, "&& self->life != 0;", ";"),
        ("a copy keeps the arguments", CORE, "self->made == begun ? self->why : COPIED", "self->why"),
        ("a clock that goes far back is followed", CORE, "self->second - now > MAX_BEHIND &&", "0 &&"),
        ("cached digits of a text outlive their second", CORE, "(uint64_t)(uint32_t)second << 24 | sequence >> 8;",
         "sequence >> 8;"),
        ("the hash of an ID may be an error", CORE, "return hash == -1 ? -2 : hash;", "return -1;"),
        ("any type may be made of bytes", CORE,
         "return PyType_Check(type) && ((PyTypeObject *)type)->tp_dealloc == core_dealloc;",
         "return PyType_Check(type);"),
        tests=(f"{IDS}/test_parsing.py", f"{IDS}/test_message_id.py", f"{IDS}/test_generator.py", IDS),
    ),
    *of(
        "scanner",
        ("a checksum is not compared", SCAN, "row->sum = found == checksum;", "row->sum = 1;"),
        ("state 40 is known", SCAN, "state == 20 || state == 30;", "state == 20 || state == 30 || state == 40;"),
        ("headers may be longer than their frame", SCAN, "if (headers > size - 45)", "if (headers > size)"),
        ("reserved bytes may be set", SCAN, "if (scan->layout == H64 && u64(at + 56))", "if (0)"),
        ("a frame may be longer than its batch", SCAN, "    if (size > room)\n", "    if (0)\n"),
        ("payloads of 241 bytes have another sum", SCAN, "length <= 240 ? xxh3_middle", "length <= 241 ? xxh3_middle"),
        ("a remainder of a CRC is skipped", SCAN, "    for (; length; at++, length--)\n        crc",
         "    for (; length > 1; at++, length--)\n        crc"),
        ("the sum of a batch leaves its producer out", SCAN, "size_t head = at[52] ? 59 : 44", "size_t head = 44"),
        tests=(f"{IGGY}/test_scan.py", f"{IGGY}/test_layouts.py", IGGY),
    ),
    *of(
        "segments",
        ("a torn message is joined with the next", "msgid/iggy/records/decoding.py",
         "needed, next_position = self._after_torn(data, position, known)", "pass"),
        ("torn bytes end a log", "msgid/iggy/records/decoding.py",
         "            if is_last:\n", "            if True:\n"),
        ("a search checks every long record", "msgid/iggy/records/searching.py", "if cost > self.left:", "if False:"),
        ("a part starts where the index says", "msgid/iggy/index.py",
         ".reason is None", ".reason is not ..."),
        ("a stream reads the active segment", "spark_ext/formats/_iggy_files.py",
         "if segment.first < by_folder", "if segment.first <= by_folder"),
        tests=(f"{IGGY}/test_torn.py", IGGY, "tests/spark/formats/test_iggy_files.py"),
    ),
    *of(
        "ids",
        ("a position's pid is cut", "msgid/ids/derived.py", "checked_offset >> _SEQUENCE_BITS, checked_offset & layout.UINT32_MASK",
         "0, checked_offset & layout.UINT32_MASK"),
        ("parent and name are not separated", "msgid/ids/derived.py", 'parent + b"\\0" + name', "parent + name"),
        ("a derived ID ignores the parent's time", "msgid/ids/derived.py", "seconds = own or 0", "seconds = 0"),
        ("seconds round up", "msgid/shared/moments.py", "return math.floor(at) - EPOCH_UNIX",
         "return math.ceil(at) - EPOCH_UNIX"),
        ("the year 10000 is allowed", "msgid/shared/moments.py", "<= at < UNIX_SECONDS_MAX + 1:",
         "<= at <= UNIX_SECONDS_MAX + 1:"),
        ("a fork child's pid is not looked at", "msgid/ids/_pure_minter.py", "self._pid == os.getpid()", "True"),
        ("an emulator's advice is trusted", "msgid/ids/_pure_minter.py", "page.madvise(_NO_ADVICE)", "raise OSError"),
        ("a container uses its card", "msgid/ids/node.py",
         "process.pid_namespace not in {None, _FIRST_PID_NAMESPACE}", "False"),
        ("every generator uses the card", "msgid/ids/node.py", "not process.is_default or", ""),
        ("a copy of a snapshot uses the card", "msgid/ids/node.py", "    if process.is_copy:", "    if False:"),
        ("the reference repeats a second", "msgid/ids/_sequence.py", "second, sequence = second + 1, 0",
         "second, sequence = second, 0"),
        ("translated text keeps its case", "msgid/ids/parsing.py", "v0.hex().upper()", "v0.hex()"),
        ("a host keeps its zone", "msgid/ids/v0.py", 'if getattr(address, "scope_id", None):', "if False:"),
        tests=(f"{IDS}/test_derived.py", f"{IDS}/test_v0.py", f"{IDS}/test_sequence.py", IDS),
    ),
    *of(
        "messages",
        ("a Kafka partition may have 33 bits", "msgid/kafka.py", "in_range(self.partition, 0, INT32_MAX)",
         "in_range(self.partition, 0, 2 * INT32_MAX)"),
        ("the first header with the ID wins", "msgid/kafka.py", "return (values[-1] or", "return (values[0] or"),
        ("a Danube ID of 65 bits is read", "msgid/danube.py", "if max(producer, offset) > UINT64_MAX:", "if False:"),
        ("a Danube message needs no ID", "msgid/danube.py", 'if not read.HasField("msg_id"):', "if False:"),
        ("unlogged IDs are those with any offset 0", "msgid/danube.py", "if offset == 0}", "if offset >= 0}"),
        ("a frame without its magic byte is read", "msgid/schemas/validation.py", "if magic != _MAGIC:", "if False:"),
        ("an unknown containment is compatible", "msgid/schemas/compatibility.py", 'if answer == "yes":', 'if answer != "no":'),
        ("a changed logical type is compatible", "msgid/schemas/compatibility.py", "        if changed:", "        if False:"),
        ("an unknown logical type is a change", "msgid/schemas/compatibility.py", "not in LOGICAL_READERS", "in ()"),
        ("a reader needs valid defaults", "msgid/schemas/_avro.py", '("default", "aliases", "doc")', '("aliases", "doc")'),
        tests=("tests/unit/test_kafka.py", "tests/unit/test_danube.py", "tests/unit/schemas"),
    ),
    *of(
        "processing",
        ("a stale version is appended", "msgid/processing/memory.py",
         "(newest.version, unpack(newest.before)) != (append.version, append.before)", "False"),
        ("an entry keeps the state after it", "msgid/processing/memory.py",
         "entry.at, entry.fingerprint, before, entry.outputs", "entry.at, entry.fingerprint, None, entry.outputs"),
        ("entries of the limit itself are forgotten", "msgid/processing/memory.py", "id is not None and entry.stored_at < before",
         "id is not None and entry.stored_at <= before"),
        ("a forgotten message is new", "msgid/processing/memory.py",
         "forgotten[hash_of(handler, key, id)] = entry.stored_at", "pass"),
        ("SQLite does not notice a lost race", "msgid/processing/sqlite.py", "_change(connection, _INSERT, new) < len(rows):",
         "_change(connection, _INSERT, new) < 0:"),
        ("a child uses the store of its parent", "msgid/processing/store.py", "if os.getpid() != process:", "if False:"),
        ("a child opens the file of its parent", "msgid/processing/sqlite.py", "if inherited and _file", "if os.path.islink(self._path) and _file"),
        ("Spark forgets entries of the limit itself", "spark_ext/streaming/_processing/history.py",
         "stored >= self._horizon_ms", "stored > self._horizon_ms"),
        tests=(f"{PROCESSING}/test_stores.py", f"{PROCESSING}/test_processor.py", PROCESSING),
    ),
    *of(
        "processing",
        ("a message with a deleted entry is handled again", "msgid/processing/flow.py", "return None if forgotten is None else Decision(",
         "return None if True else Decision("),
        ("changed outputs are a duplicate", "msgid/processing/flow.py", "if ran.fingerprint == earlier.fingerprint:",
         "if True:"),
        ("a key goes on after a failure", "msgid/processing/flow.py", "if stops and message.key in stops", "if False and message.key"),
        ("a handler's failure is final at once", "msgid/processing/flow.py", "if number >= self.attempts or", "if True or"),
        ("a lost race is not tried again", "msgid/processing/flow.py", "if not stored}", "if stored is None}"),
        ("the order of names in outputs counts", "msgid/processing/strict_json.py", "ensure_ascii=False, sort_keys=True)", "ensure_ascii=False)"),
        tests=(f"{PROCESSING}/test_processor.py", PROCESSING),
    ),
    *of(
        "state",
        ("a page is never divided", "spark_ext/streaming/_state/bucket_log.py",
         "behind = np.searchsorted(ends, np.arange(page, entries.bytes + 1, page)) + 1", "behind = np.empty(0, np.intp)"),
        ("hashes with one first half are divided", "spark_ext/streaming/_state/bucket_log.py",
         "starts = np.searchsorted(entries.high, entries.high[behind[behind < len(entries)]])",
         "starts = behind[behind < len(entries)]"),
        ("a merge rewrites every page", "spark_ext/streaming/_state/bucket_log.py",
         "return bool(is_well and 2 * page[\"bytes\"] >= self._sizes.page)", "return False"),
        ("a merge keeps a page with expired entries", "spark_ext/streaming/_state/bucket_log.py",
         "return bool(is_well and ", "return bool("),
        ("a merge keeps a page that another one touches", "spark_ext/streaming/_state/bucket_log.py",
         "and (bound is None or page[\"last\"] < bound):", "and True:"),
        ("a merge takes the runs in another order", "spark_ext/streaming/_state/bucket_log.py",
         "for _, part in sorted(ready, key=lambda item: item[0])", "for _, part in sorted(ready, key=lambda item: -item[0])"),
        ("old runs are asked first", "spark_ext/streaming/_state/bucket_log.py", "in reversed(self.runs):", "in self.runs:"),
        ("replaced pages stay stored", "spark_ext/streaming/_state/bucket_log.py",
         "                    self._values.put(number, None)\n", "                    pass\n"),
        ("an expired run stays", "spark_ext/streaming/_state/bucket_log.py", "if run.latest < self._dead or ", "if "),
        ("an expired payload stays", "spark_ext/streaming/_state/bucket_log.py",
         " or (run.latest < self._bare and run.pages[\"payloads\"].any()):", ":"),
        ("an entry is found after its time", "spark_ext/streaming/_state/bucket_log.py",
         "        index[hit[listed.time[index[hit]] < self._dead]] = -1\n", ""),
        ("a filter lacks a probe of the look-up", "spark_ext/streaming/_state/bucket_log.py",
         "bits[_bit(words, probe, np.array(len(bits)))] = 1", "bits[_bit(words, probe + 1, np.array(len(bits)))] = 1"),
        ("an ID is needed from its first time on", "spark_ext/streaming/_labelling.py",
         "last = time[np.append(starts, len(order))[1:] - 1]", "last = time[starts]"),
        ("the last content of an ID is remembered", "spark_ext/streaming/_labelling.py",
         "    first_content[known] = entries.payloads().view(np.uint64)[index[known]]\n", ""),
        tests=("tests/unit/test_state_log.py", "tests/unit/test_seen_ids.py"),
    ),
    *of(
        "audit",
        ("numbers of two spans are those of one", "msgid/audit/_spans.py",
         "starts[1:] |= spans.low[1:] != spans.high[:-1] + 1", "starts[1:] |= spans.low[1:] > spans.high[:-1] + 2"),
        ("spans that meet are not divided", "msgid/audit/runs.py", "    spans = divided(spans)\n", ""),
        ("missing offsets between blocks are not found", "msgid/audit/reduce.sql",
         "FROM {borders} WHERE low - high_before > 1", "FROM {borders} WHERE low < high_before"),
        ("a later block does not make a message late", "msgid/audit/reduce.sql",
         "least(n.landed_after, b.landed_after)", "n.landed_after"),
        ("equal times go back", "msgid/audit/reduce.sql",
         "WHERE s.sent < coalesce(m.sent, s.sent_before)", "WHERE s.sent <= coalesce(m.sent, s.sent_before)"),
        ("the last time of a repeated message counts", "msgid/audit/reduce.sql",
         "WHERE s.sent < coalesce(m.sent, s.sent_before)", "WHERE s.sent < s.sent_before"),
        ("times of two blocks are not compared", "msgid/audit/reduce.sql", "WHERE own.sent < before.sent", "WHERE own.sent <> own.sent"),
        ("a UUID in upper case is another ID", "msgid/audit/reduce.sql",
         "UNION ALL SELECT value, n, CAST(NULL AS BIGINT) FROM {uuids}", ""),
        ("the first repeated row of a log is no example", "msgid/audit/reduce.sql", "ELSE 0 END DESC, low) AS place", "ELSE 0 END DESC, low DESC) AS place"),
        ("a run that begins in another run does not count as a shared pid", "msgid/audit/runs.py",
         "or run.begin < ends.get(run.generator, run.begin):", "or False:"),
        ("a node that declares derived is no generator's", "msgid/audit/definitions.py", "& (is_derived | ", "& (False | "),
        ("a faster counter does not overtake a slower one", "msgid/audit/_doctor.py",
         "width = max(slow + fast - 1, 1) + (fast - slow) * (seconds - 1)", "width = max(slow + fast - 1, 1)"),
        ("an open quotation mark takes the rows after it", "msgid/audit/_text_files.py", '"strict_mode": True', '"strict_mode": False'),
        ("the last row of a lost message gives its time", "msgid/audit/compare.sql", "AS id, min(time)", "AS id, max(time)"),
        ("a content of one side alone is not a change", "msgid/audit/compare.sql", "of_sent = 0 OR of_table", "of_sent = 0 AND of_table"),
        ("changed messages of a block are not read", "msgid/audit/compare.sql", " OR sum(lower) <> 0 OR sum(upper) <> 0", ""),
        ("NULL does not keep its place in a hash", "msgid/audit/sides.py", "|| {value}, '-')", "|| {value}, '')"),
        tests=("tests/unit/audit",),
    ),
    *of(
        "audit",
        ("the order of the contents is that of their columns' names", "spark_ext/auditing/_roles.py", 'f"{index:04}"', "name"),
        tests=("tests/spark/auditing/test_comparisons.py",),
    ),
    *of(
        "retention",
        ("a message expires a microsecond late", "msgid/retention/policy.py", "seconds * MICROSECONDS <= now",
         "seconds * MICROSECONDS < now"),
        ("0 expires at once", "msgid/retention/policy.py", "return seconds != NEVER and timestamp", "return timestamp"),
        ("an interval of 0 is allowed", "msgid/retention/policy.py", "and 0 < self.interval", "and 0 <= self.interval"),
        ("a link is followed", "msgid/retention/_disk.py", "facts = os.lstat(path)", "facts = os.stat(path)"),
        tests=("tests/unit/retention",),
    ),
    *of(
        "columns",
        ("an offset of 49 bits is shifted", "spark_ext/columns/making.py", "F.shiftright(valid, 32).bitwiseOR(1 << 16), 32)",
         "F.shiftright(valid, 33).bitwiseOR(1 << 16), 32)"),
        ("assigned seconds lose their first digit", "spark_ext/columns/making.py", "(1 << 64 if seconds >> 31 else 0)",
         "(1 << 64 if seconds >> 32 else 0)"),
        tests=(f"{COLUMNS}/test_making.py", COLUMNS),
    ),
    *of(
        "columns",
        ("dashes of a UUID may stand anywhere", "spark_ext/columns/id_text.py",
         "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", "[0-9A-Fa-f-]{36}"),
        ("an ID of bytes keeps its case", "spark_ext/columns/reading.py", "F.when(is_id(text), F.upper(text))",
         "F.when(is_id(text), text)"),
        tests=(f"{COLUMNS}/test_columns.py", COLUMNS),
    ),
    *of(
        "columns",
        ("a span is in a month that does not have it", "spark_ext/columns/v0.py",
         "F.when((moment <= latest) & (moment < start(months + 1)), F.lit(0))", "F.when(moment <= latest, F.lit(0))"),
        tests=(f"{COLUMNS}/test_making.py", COLUMNS),
    ),
    *of(
        "columns",
        ("expiry is off by one at the boundary", "spark_ext/columns/expiry.py", "micros_of(sent) <= present",
         "micros_of(sent) < present"),
        ("0 expires at once", "spark_ext/columns/expiry.py", "(seconds != F.lit(NEVER)) & due)", "due)"),
        tests=(f"{COLUMNS}/test_expiry.py", COLUMNS),
    ),
    *of(
        "columns",
        ("an empty text is an identity", "spark_ext/columns/identity.py", "F.when(F.octet_length(text) == 0, null_text())",
         "F.when(F.octet_length(text) == -1, null_text())"),
        tests=(f"{COLUMNS}/test_identity.py", COLUMNS),
    ),
    *of(
        "sinks",
        ("a batch is written again", "spark_ext/tables/parquet.py",
         'is_written = _is_complete(files, f"{base}/{inner}")', "is_written = False"),
        ("an incomplete folder counts as written", "spark_ext/tables/parquet.py",
         "        if not _is_complete(files, folder):\n            raise", "        if False:\n            raise"),
        ("another query may write", "spark_ext/tables/parquet.py", '    check_query(writer, path, said["query"])\n', ""),
        ("a lower number counts as written", "spark_ext/tables/writers.py", "if batch_id < last:", "if False:"),
        ("an older checkpoint is not noticed", "spark_ext/tables/parquet.py",
         "if is_written or _LAST.get((path, writer.name)) != batch_id - 1:", "if False:"),
        ("an older checkpoint is noticed in a replay alone", "spark_ext/tables/parquet.py",
         "if is_written or _LAST.get((path, writer.name)) != batch_id - 1:", "if is_written:"),
        ("a batch after a restored checkpoint counts as written", "spark_ext/tables/writers.py",
         "if writer.read is not None and", "if False and"),
        ("a batch is written without its mark", "spark_ext/tables/parquet.py", '    _mark(files, f"{base}/{hidden}")\n', ""),
        ("partition columns may change", "spark_ext/tables/parquet.py", 'if said["partition_by"] != list(partition_by):',
         "if False:"),
        ("a second call is taken for a replay", "spark_ext/tables/sinks.py", "last[0] == batch_id and last != written:",
         "False:"),
        ("a batch is written under two names", "spark_ext/tables/sinks.py", "(batch_id, writer.name, (plan,",
         '(batch_id, "", (plan,'),
        tests=("tests/spark/tables/test_sinks_parquet.py",),
    ),
    *of(
        "sinks",
        ("another query counts as written", "spark_ext/tables/writers.py",
         "not {writer.query", "False and not {writer.query"),
        ("a commit whose answer is lost is another one's", "spark_ext/tables/delta.py",
         'return bool(last.get("write") == said["write"])', "return False"),
        tests=("tests/spark/tables/test_sinks_delta.py",),
    ),
    *of(
        "sinks",
        ("an earlier row replaces a later one", "spark_ext/tables/upsert.py",
         "= ROW({excluded}) WHERE {later}", "= ROW({excluded})"),
        ("text is ordered by the language of the database", "spark_ext/tables/upsert.py",
         """' COLLATE "C"' if re.fullmatch""", "'' if re.fullmatch"),
        ("a transaction keeps its locks", "spark_ext/tables/upsert.py",
         "for setting in settings)", "for setting in settings[:1])"),
        ("an earlier row is a conflict", "spark_ext/tables/upsert.py", "(_NOT_EARLIER if target.latest_by else \"\")", '""'),
        ("a type that rounds is taken", "spark_ext/tables/upsert.py", '("numeric.*", "numeric")', '("numeric.*", "numeric.*")'),
        tests=("tests/spark/tables/test_upsert.py",),
    ),
    *of(
        "sinks",
        ("a lower number is published", "spark_ext/tables/iceberg.py",
         "        check_batch(writer, self._name, batch_id, last)\n", ""),
        ("an unknown batch is published", "spark_ext/tables/iceberg.py", "if not is_known:", "if False:"),
        ("another query counts as published", "spark_ext/tables/iceberg.py",
         "            check_query(writer, self._name, query)\n", "            pass\n"),
        ("another driver's rows are reported", "spark_ext/tables/iceberg.py",
         "return published == staged", "return True"),
        tests=("tests/spark/tables/test_iceberg_records.py",),
    ),
    *of(
        "streams",
        ("a length is not separated from its text", "spark_ext/columns/fingerprint.py", 'F.lit(":"), plain)', 'F.lit(""), plain)'),
        ("the text of a float is compared", "spark_ext/columns/fingerprint.py", "_ended(F.xxhash64(value))", "_ended(value)"),
        ("the scale of a decimal counts", "spark_ext/columns/fingerprint.py", 'F.btrim(with_point, F.lit("0"))', "with_point"),
        ("the order of a map counts", "spark_ext/columns/fingerprint.py", "_listed(F.array_sort(entries))",
         "_listed(entries)"),
        tests=("tests/spark/columns/test_fingerprint.py",),
    ),
]  # fmt: skip


def run(command: list[str], folder: Path, timeout: int = LIMIT) -> subprocess.CompletedProcess[str]:
    """Run a command in a copy, where Python finds the packages of the copy first."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )


def build(folder: Path) -> None:
    """Compile the C of a copy."""
    done = run([sys.executable, "-c", "import setuptools; setuptools.setup()", "build_ext", "--inplace"], folder)
    if done.returncode:
        sys.exit(done.stderr)


def is_caught(mutation: Mutation, folder: Path, *options: str) -> bool:
    """Check whether the tests of a mutation fail; a run that does not end counts as a failure."""
    tests = [name for name in mutation.tests if (folder / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, *tests]
    try:
        code = run(command, folder).returncode
    except subprocess.TimeoutExpired:
        return True
    # Below 0, the interpreter crashed. INTERRUPTED: the tests cannot be collected.
    if code > pytest.ExitCode.INTERRUPTED:
        sys.exit(f"pytest ended with {code}: {mutation.breaks}")
    return code != 0


def result_of(mutation: Mutation, folder: Path, *, night: bool) -> str:
    """Apply a mutation, run its tests, and take it back."""
    path = folder / mutation.file
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before.count(mutation.old) != 1:
        return "does not fit"
    path.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        if path.suffix == ".c":
            build(folder)
        if is_caught(mutation, folder):
            return "default"
        return "nightly" if night and is_caught(mutation, folder, "-m", "") else "missed"
    finally:
        path.write_text(before, encoding="utf-8")
        if path.suffix == ".c":
            build(folder)


def main() -> None:
    """Print a table with a row per mutation; the exit code is 1 if no test notices one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", default="HEAD", help="the commit whose code and tests run")
    parser.add_argument(
        "--only",
        action="append",
        choices=sorted({one.group for one in MUTATIONS}),
        help="a group of mutations; repeat it for several",
    )
    parser.add_argument("--spark", action="store_true", help="the mutations that need Spark, too")
    parser.add_argument("--default", action="store_true", help="the default tests alone")
    arguments = parser.parse_args()
    missed = 0
    print("| group | the mutation | noticed by |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = subprocess.run(["git", "archive", arguments.revision], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        build(folder)
        for mutation in MUTATIONS:
            if arguments.only and mutation.group not in arguments.only:
                continue
            if mutation.tests[0].startswith("tests/spark") and not arguments.spark:
                continue
            result = result_of(mutation, folder, night=not arguments.default)
            missed += result == "missed"
            print(f"| {mutation.group} | {mutation.breaks} | {result} |", flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
