"""`msgid audit` as a user meets it: the columns and files that it takes without options, and those that it refuses."""

import gzip
import io
import json
import os
import subprocess
import sys

import pytest
from helpers.commands import invoke

from msgid import layout

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")

CSV = """\
source,offset,timestamp,landed,content
a,0,2026-01-01T00:00:00Z,2026-01-01T00:01:00Z,x
a,1,2026-01-01T00:00:02Z,2026-01-01T00:01:00Z,y
a,1,2026-01-01T00:00:02Z,2026-01-01T00:01:00Z,z
a,4,2026-01-01T00:00:01Z,2026-01-01T00:00:30Z,z
"""
FOUND = ["missing_offsets", "conflicting_messages", "late_messages", "time_backwards"]
IDS = [layout.pack(0x56F7E71C361B, 7, 100, n).hex().upper() for n in range(4)]


def run(*arguments, input=None):
    return invoke([str(one) for one in arguments], input=input)


def checks(result):
    return [finding["check"] for finding in json.loads(result.stdout)["findings"]]


def as_json():
    rows = [line.split(",") for line in CSV.splitlines()]
    return "".join(json.dumps(dict(zip(rows[0], row, strict=True))) + "\n" for row in rows[1:]).encode()


def as_parquet():
    sink = io.BytesIO()
    rows = [line.split(",") for line in CSV.splitlines()]
    pq.write_table(pa.table(dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))), sink)
    return sink.getvalue()


FORMS = {
    "csv": CSV.encode,
    "tsv": lambda: CSV.replace(",", "\t").encode(),
    "json": as_json,
    "parquet": as_parquet,
    "compressed": lambda: gzip.compress(CSV.encode()),
}


def test_columns_with_the_names_of_the_arguments_need_no_options(tmp_path):
    """All five are used, in the report and in a comparison; other names are not guessed."""
    (tmp_path / "a.csv").write_text(CSV)
    assert checks(run("audit", tmp_path / "a.csv", "--json")) == FOUND
    (tmp_path / "b.csv").write_text(CSV.replace("landed", "arrived").replace("content", "body"))
    assert checks(run("audit", tmp_path / "b.csv", "--json")) == [FOUND[0], "duplicate_messages", FOUND[3]]
    report = audit.compare(tmp_path / "a.csv", {"source": ["a"], "offset": [0], "content": ["w"]})
    assert [(one.fault, one.offset) for one in report.differences] == [("lost", 1), ("lost", 4), ("changed", 0)]


def test_columns_that_are_passed_are_the_only_ones():
    """A caller who names a column names all but the ID."""
    table = pa.table({"id": IDS, "offset": [0, 1, 2, 9], "place": [5, 6, 7, 8]})
    assert [finding.check for finding in audit.audit_table(table).findings] == ["missing_offsets"]
    assert audit.audit_table(table, offset="place").findings == []


@pytest.mark.parametrize("form", FORMS)
def test_standard_input_and_files_without_an_ending_show_their_format(tmp_path, form):
    """A dash is standard input; a name without an ending is read like it."""
    data = FORMS[form]()
    assert checks(run("audit", "-", "--json", input=data)) == FOUND
    (tmp_path / "noending").write_bytes(data)
    assert checks(run("audit", tmp_path / "noending", "--json")) == FOUND
    assert [one.check for one in audit.audit_file(io.BytesIO(data)).findings] == FOUND


def test_lines_of_ids_come_from_standard_input():
    """The commands `audit` and `doctor` read one ID per line; an audit of both sides reads one of them."""
    lines = "\n".join(IDS).encode()
    assert json.loads(run("audit", "-", "--json", input=lines).stdout)["rows"] == 4
    assert json.loads(run("doctor", "-", "--json", input=lines).stdout)["rows"] == 4
    refused = run("audit", "-", "--sent", "-", input=lines)
    assert refused.exit_code == 2
    assert "only one of FILE and --sent" in refused.output


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="the system has no /dev/fd")
@pytest.mark.parametrize("form", FORMS)
def test_pipe_is_read_like_a_file(tmp_path, form):
    """Its bytes cannot be read a second time: `msgid audit <(command)`."""
    data, (reading, writing) = FORMS[form](), os.pipe()
    os.write(writing, data)
    os.close(writing)
    assert [finding.check for finding in audit.audit_file(f"/dev/fd/{reading}").findings] == FOUND
    os.close(reading)


@pytest.mark.parametrize("name", ["a.html", "a.xlsx", "a.csv.zip", "ids.txt.bak"])
def test_file_of_an_unknown_type_is_refused(tmp_path, name):
    """One line names the formats; the option `--format` reads it all the same."""
    (tmp_path / name).write_text(CSV)
    refused = run("audit", tmp_path / name)
    assert refused.exit_code == 1
    assert refused.output.count("\n") == 1
    assert "are not known; pass the format: csv, tsv, json, parquet, arrow, text" in refused.output
    assert checks(run("audit", tmp_path / name, "--format", "csv", "--json")) == FOUND
    with pytest.raises(ValueError, match=r"format must be csv, .* or text, got 'xml'"):
        audit.audit_file(tmp_path / name, format="xml")


@pytest.mark.parametrize(("malformed", "severity"), [(1, "warning"), (2, "warning"), (3, "error"), (4, "error")])
def test_column_of_mostly_malformed_ids_is_an_error(malformed, severity):
    """It is the wrong column or file. NULL does not count, and half of the values is not most of them."""
    report = audit.audit_ids([*["x"] * malformed, *IDS[malformed:], None])
    found = {finding.check: finding for finding in report.findings}
    assert found["malformed_ids"].severity == severity
    assert ("wrong column or the wrong file" in str(report)) == (severity == "error")
    assert (f"{malformed} values malformed" in report.summary) == (severity == "error")
    assert ("wrong column or the wrong file" in report.to_html()) == (severity == "error")


def test_what_was_not_checked_is_in_text_json_and_page(tmp_path):
    report = audit.audit_table(pa.table({"offset": [0, 1]}))
    reasons = {one.reason for one in report.not_checked}
    assert {"without IDs", "without content", "without a landing time", "without a timestamp"} == reasons
    for text in (str(report), report.to_json(), report.to_html()):
        assert all(reason in text for reason in reasons)


@pytest.mark.parametrize("wide", ["18446744073709551616", "-9223372036854775809", "1e400", '"n/a"', "1" * 400])
def test_json_number_that_no_column_holds_is_one_bad_row(tmp_path, wide):
    """The other rows are audited, and each offset is exact."""
    exact = 2**48 - 1
    lines = [f'{{"offset": {value}, "id": "{IDS[0]}"}}' for value in (exact - 3, wide, exact)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    report = audit.audit_file(tmp_path / "a.jsonl")
    assert [(gap.first, gap.last) for gap in report.gaps] == [(exact - 2, exact - 1)]
    assert report.unplaced == 1
    assert any("1 row lacks a source or a valid offset" in note for note in report.notes)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have such names")
def test_file_name_that_is_not_utf8_is_one_error(tmp_path):
    """Inside a folder, one line names the file and the cure; a file of its own is read."""
    name = os.fsencode(tmp_path) + b"/a\xff.parquet"
    pq.write_table(pa.table({"offset": [1]}), tmp_path / "a.parquet")
    os.rename(tmp_path / "a.parquet", name)
    refused = subprocess.run([sys.executable, "-m", "msgid", "audit", tmp_path], capture_output=True, text=True)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "must be UTF-8, got" in refused.stderr
    assert "rename the file" in refused.stderr
    assert audit.audit_file(os.fsdecode(name)).rows == 1


def test_doctor_of_a_table_without_ids_is_one_error(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    assert "must have a column of IDs, got ['source'" in run("doctor", tmp_path / "a.csv").output
