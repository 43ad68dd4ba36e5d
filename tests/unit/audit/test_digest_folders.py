"""`msgid.audit.update_digests`: the digest of a day is made once, and again only if its files have changed."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from helpers import vector_files as vectors
from helpers.commands import invoke

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
audit = pytest.importorskip("msgid.audit")
folders = pytest.importorskip("msgid.audit._digest_folders")

DAYS = [f"day=2026-11-2{n}" for n in range(3)]


def write(folder, day, offsets):
    (folder / day).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"offset": list(offsets), "body": ["x"] * len(offsets)}), folder / day / "a.parquet")


@pytest.fixture
def landed(tmp_path):
    """A table of three days, with 10 offsets each."""
    for n, day in enumerate(DAYS):
        write(tmp_path / "landed", day, range(10 * n, 10 * n + 10))
    return tmp_path / "landed"


@pytest.fixture
def digested(monkeypatch):
    """The numbers of rows of the digests that are made."""
    made = []

    def digest(table, **columns):
        result = audit.digest(table, **columns)
        made.append(sum(result["rows"].to_pylist()))
        return result

    monkeypatch.setattr(folders, "digest", digest)
    return made


def whole(folder):
    """The digest of all messages of a folder of digests, merged."""
    return audit.merge_digests([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def test_digest_of_a_day_is_not_made_twice(tmp_path, landed, digested):
    """Only a new day and a changed day are read; the digests together are that of the table."""
    made = tmp_path / "digests"
    assert audit.update_digests(made, landed, offset="offset") == DAYS
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    assert audit.update_digests(made, landed, offset="offset") == []
    assert digested == [10, 10, 10]
    write(landed, "day=2026-11-23", range(30, 35))
    write(landed, DAYS[1], range(10, 18))
    assert audit.update_digests(made, landed, offset="offset") == [DAYS[1], "day=2026-11-23"]
    assert digested[3:] == [8, 5]
    assert {name: made.joinpath(name).read_bytes() for name in before if DAYS[1] not in name} == {
        name: data for name, data in before.items() if DAYS[1] not in name
    }
    assert whole(made) == audit.digest(landed, offset="offset")
    report = audit.compare(None, None, digests=(audit.digest(range(35)), made))
    assert report.failure() == "1 finding of severity error: 2 lost_messages in log"


def test_part_is_made_again_if_one_of_its_files_is_another(tmp_path, landed):
    """Of the same size and name: its time of change differs. A part that is gone keeps its digest."""
    made = tmp_path / "digests"
    audit.update_digests(made, landed, offset="offset")
    os.utime(landed / DAYS[0] / "a.parquet", (1, 1))
    assert audit.update_digests(made, landed, offset="offset") == [DAYS[0]]
    (landed / DAYS[2] / "a.parquet").unlink()
    assert audit.update_digests(made, landed, offset="offset") == []
    assert sum(whole(made)["rows"].to_pylist()) == 30


def test_folders_of_values_are_columns(tmp_path):
    """A column in the names of folders names the log; each folder of files is a part, and so is a file of the root."""
    for topic in ("a", "b"):
        write(tmp_path / "t", f"topic={topic}/day=1", range(3))
    columns = {"source": "topic", "offset": "offset"}
    made = audit.update_digests(tmp_path / "d", tmp_path / "t", **columns)
    assert made == ["topic=a/day=1", "topic=b/day=1"]
    assert whole(tmp_path / "d")["source"].to_pylist() == ["a", "b"]
    pq.write_table(pa.table({"offset": [7]}), tmp_path / "t" / "2026-11-24.parquet")
    pq.write_table(pa.table({"offset": [7]}), tmp_path / "t" / "_hidden.parquet")
    assert audit.update_digests(tmp_path / "e", tmp_path / "t", offset="offset")[0] == "2026-11-24"


def test_tables_in_memory_are_made_once_by_name(tmp_path):
    """They do not show that they have changed, so the caller says so."""
    days = {"1": pa.table({"offset": [0, 1]}), "2": pa.table({"offset": [2]})}
    assert audit.update_digests(tmp_path, days, offset="offset") == ["1", "2"]
    days["2"] = pa.table({"offset": [2, 3]})
    assert audit.update_digests(tmp_path, days, offset="offset") == []
    assert audit.update_digests(tmp_path, days, offset="offset", again=["2"]) == ["2"]
    assert sum(whole(tmp_path)["rows"].to_pylist()) == 4


def test_digest_that_fails_leaves_no_file(tmp_path, landed):
    """The next call makes it."""
    with pytest.raises(ValueError, match="`content` must be a column of the table, got 'no'"):
        audit.update_digests(tmp_path / "d", landed, offset="offset", content="no")
    assert list((tmp_path / "d").iterdir()) == []
    with pytest.raises(ValueError, match="there are not any Parquet files in it"):
        audit.update_digests(tmp_path / "d", tmp_path / "d")
    with pytest.raises(ValueError, match="parts must be a folder, or tables by their names, got '/no/folder'"):
        audit.update_digests(tmp_path / "d", "/no/folder")


@pytest.mark.parametrize("name", ["a/b", "..", "a b=ü", ".hidden", "_x", "%2F"])
def test_names_of_parts_are_names_of_files(tmp_path, name):
    """Each has one visible file in the folder itself."""
    audit.update_digests(tmp_path, {name: pa.table({"offset": [0]})}, offset="offset")
    (file,) = tmp_path.iterdir()
    assert not file.name.startswith((".", "_"))
    assert audit.update_digests(tmp_path, {name: pa.table({"offset": [0]})}, offset="offset") == []
    assert audit.compare(None, None, digests=(tmp_path, tmp_path)).sent == 1


def test_two_writers_at_once_make_the_same_digests(tmp_path, landed, monkeypatch):
    """Both make each part: they meet before each rename, and a reader finds one whole digest of each part."""
    meeting, replace = Barrier(2, timeout=60), os.replace

    def met(*paths):
        meeting.wait()
        replace(*paths)

    monkeypatch.setattr(os, "replace", met)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(audit.update_digests, tmp_path / "made", landed, offset="offset") for _ in range(2)]
        assert [run.result() for run in runs] == [DAYS, DAYS]
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [f"{day}.parquet" for day in DAYS]
    assert whole(tmp_path / "made") == audit.digest(landed, offset="offset")


@pytest.mark.details
def test_digests_after_a_kill_at_any_step_are_those_without_one(tmp_path, landed):
    """A process is killed before or after each step; the next one makes the missing digests, with the same bytes."""
    program = [sys.executable, str(vectors.PROGRAMS / "digests_killed.py"), str(landed), str(tmp_path / "killed")]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    kills = int(done.stdout)
    assert kills == 8 * len(DAYS)
    audit.update_digests(tmp_path / "made", landed, offset="offset")
    for kill in range(kills):
        for path in (tmp_path / "made").iterdir():
            assert (tmp_path / "killed" / str(kill) / path.name).read_bytes() == path.read_bytes()


def test_commands_make_digests_and_compare_them(tmp_path, landed):
    """`msgid digest` prints the new parts, and `audit --digests` reads the rows of differing blocks."""

    def run(*arguments):
        return invoke([str(one) for one in arguments])

    queue = tmp_path / "queue"
    for n, day in enumerate(DAYS):
        write(queue, day, range(10 * n, 10 * n + 10 + (n == 2)))
    for side in (queue, landed):
        done = run("digest", side, "--to", tmp_path / f"{side.name}-digests")
        assert done.stdout.split() == DAYS
    assert run("digest", landed, "--to", tmp_path / "landed-digests").stdout == ""
    digests = (tmp_path / "queue-digests", tmp_path / "landed-digests")
    done = run("audit", landed, "--sent", queue, "--digests", *digests, "--fail-on", "error")
    assert done.exit_code == 3
    assert "lost_messages log 1 offset 30" in " ".join(done.output.split())
    done = run("audit", landed, "--digests", *digests, "--fail-on", "error", "--allow", "lost_messages=1")
    assert (done.exit_code, "lost_messages log 1 0 to 65535" in " ".join(done.output.split())) == (0, True)


def test_digests_that_are_older_than_their_files_are_refused(tmp_path, landed):
    """They would hide a loss. The error names the part and the command, after which the loss is found."""
    queue, made = tmp_path / "landed", tmp_path / "digests"
    sent, command = tmp_path / "sent.parquet", ["audit", str(landed), "--sent", str(queue), "--offset", "offset"]
    pq.write_table(audit.digest(range(30)), sent)
    audit.update_digests(made, landed, offset="offset")
    command += ["--digests", str(sent), str(made), "--fail-on", "error"]
    assert invoke(command).exit_code == 0
    write(landed, DAYS[1], range(11, 20))
    done = invoke(command)
    assert done.exit_code == 1
    assert f"cannot compare the table by digests: the digest of its part '{DAYS[1]}' is older" in done.output
    assert f"'msgid digest {landed} --to {made}'" in done.output
    audit.update_digests(made, landed, offset="offset")
    done = invoke([*command[:2], *command[4:]])
    assert (done.exit_code, "lost_messages" in done.output) == (3, True)
    write(landed, "day=2026-11-30", range(30, 40))
    with pytest.raises(ValueError, match="part 'day=2026-11-30' is missing"):
        audit.compare(None, landed, offset="offset", digests=(sent, made))


def test_digests_whose_files_are_gone_are_refused(tmp_path, landed):
    """They would hide the loss of a whole day. The error names the digest, and without it the loss is found."""
    made, sent = tmp_path / "digests", tmp_path / "sent"
    landed.rename(sent)
    for n, day in enumerate(DAYS):
        write(landed, day, range(10 * n, 10 * n + 10))
    audit.update_digests(made / "landed", landed, offset="offset")
    audit.update_digests(made / "sent", sent, offset="offset")
    digests = (made / "sent", made / "landed")
    assert audit.compare(sent, landed, offset="offset", digests=digests).failure() is None
    (landed / DAYS[1] / "a.parquet").unlink()
    audit.update_digests(made / "landed", landed, offset="offset")
    with pytest.raises(ValueError, match=rf"the files of the digest '.*{DAYS[1]}.parquet' are gone"):
        audit.compare(sent, landed, offset="offset", digests=digests)
    assert audit.compare(None, None, digests=digests).failure() is None
    (made / "landed" / f"{DAYS[1]}.parquet").unlink()
    report = audit.compare(sent, landed, offset="offset", digests=digests)
    assert report.failure() == "1 finding of severity error: 10 lost_messages in log"


@pytest.mark.parametrize("parts", [{"all": ""}, {"first": "day=2026-11-20", "rest": "day=2026-11-2[12]"}])
def test_digests_of_parts_with_other_names_are_told_by_their_files(tmp_path, landed, parts):
    """A part that is a folder is current by any name; digests of tables in memory cannot be checked."""
    made = tmp_path / "digests"
    for name, pattern in parts.items():
        tables = sorted(landed.glob(pattern)) if pattern else [landed]
        named = {f"{name} {n}": table for n, table in enumerate(tables)}
        audit.update_digests(made, named, offset="offset")
    assert audit.compare(None, landed, offset="offset", digests=(made, made)).failure() is None
    memory = tmp_path / "memory"
    audit.update_digests(memory, {"all": pa.table({"offset": range(30)})}, offset="offset")
    assert audit.compare(None, landed, offset="offset", digests=(memory, memory)).failure() is None
