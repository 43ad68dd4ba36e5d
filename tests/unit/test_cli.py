"""The command ``msgid``: in the process of the tests, or as a user runs it where streams and the environment matter."""

import contextlib
import importlib
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from threading import TIMEOUT_MAX

import pytest
from helpers import vector_files as vectors
from helpers.commands import invoke

import msgid
from msgid import iggy
from msgid.processing import Message, Processor, SqliteStore
from msgid.retention.cleaner import OsFiles
from msgid.shared.validate import to_install

pytest.importorskip("click")
pytest.importorskip("rich")

V1 = "0156F7E71C361B21BC024CCDBE00000000"
BAD_INTERVAL = f"interval must be more than 0 and at most {TIMEOUT_MAX:.0f} seconds, got 0"
INVOICE = "01DF8354A8161BB5AE024CCDBE2DFA320C"
ORDER = "013B0121EF30BE0000024CCDBE000004D2"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
BROKER = "7F0000010000238F000000000001E240"
PROGRAM = [sys.executable, "-m", "msgid"]


def run(*arguments, stdin=None):
    """Return the exit code and the output of a command in this process; an unhandled error fails the test."""
    result = invoke([str(one) for one in arguments], input=stdin, env={"COLUMNS": "100"}, catch_exceptions=False)
    return result.exit_code, result.output


def typed(*arguments, **environment):
    """Run the command in a process of its own."""
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, env={**os.environ, **environment})


def test_generate_prints_one_id_per_line_or_writes_them_into_a_file(tmp_path):
    """The default is one ID; all IDs are valid and different."""
    file = tmp_path / "ids.txt"
    assert msgid.is_valid(run("generate")[1].strip())
    assert run("generate", "-n", 100_000, "--output", file) == (0, "")
    lines = run("generate", "-n", "3")[1].split() + file.read_text().split()
    assert len(set(lines)) == len(lines) == 100_003
    assert all(map(msgid.is_valid, lines))
    assert run("generate", "-n", "0") == (0, "")


def on_terminal(command):
    """Return what a command writes to standard output that is a terminal."""
    ours, theirs = pty.openpty()
    subprocess.run(command, check=True, env={**os.environ, "TERM": "xterm"}, stdout=theirs)
    os.close(theirs)
    shown = os.read(ours, 100_000)
    os.close(ours)
    return shown


def test_the_layouts_that_clean_names_are_those_that_are_read():
    """The command names them without reading the package of Iggy."""
    cli = importlib.import_module("msgid.cli")
    (layout,) = [one for one in cli.clean.params if one.name == "layout"]
    assert tuple(layout.type.choices) == ("auto", *iggy.LAYOUTS)


def test_a_small_command_imports_neither_the_readers_nor_the_packages_of_tables():
    code = "import sys, msgid.cli; print([n for n in ('rich', 'duckdb', 'msgid.iggy', 'pyarrow') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_progress_on_a_terminal_names_the_step_its_share_and_the_rows(tmp_path):
    """The line is removed at the end. A thread shows it after a second, so the connection is asked directly here."""
    from msgid.audit.duck import Duck, Limits

    duck = Duck(Limits(progress=True))
    duck.show_rows_of(duck.kept("numbers", "SELECT * FROM range(1000)"))
    assert (duck._progress.step, duck._progress.rows) == (1, 1_000)
    duck.close()


def test_inspect_on_a_terminal_is_coloured():
    assert "\x1b[" not in run("inspect", V1)[1]
    assert b"\x1b[" in on_terminal([*PROGRAM, "inspect", V1])


def test_generate_into_a_closed_pipe_ends_silently():
    """``msgid generate -n 10000000 | head -1`` ends together with head."""
    command = [*PROGRAM, "generate", "-n", "10000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert msgid.is_valid(process.stdout.readline().decode().strip())
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(60)


def test_inspect_of_an_id_shows_every_field_with_its_meaning():
    out = run("inspect", V1)[1]
    for shown in ("01", "56F7E71C361B", "21BC", "024CCDBE", "00000000"):
        assert f" {shown} " in out
    for shown in ("version", "node", "56:f7:e7:1c:36:1b", "mac", "pid", "8636", "38587838", "2022-03-23 14:50:38Z"):
        assert shown in out
    out = run("inspect", BROKER)[1]
    for shown in ("v0-broker-offset", "7F000001", "127.0.0.1", "port", "9103", "offset", "123456"):
        assert shown in out
    out = run("inspect", "C0A8F001103E214D29547ACFD6E30000")[1]
    for shown in ("v0-client-unique", "192.168.240.1", "loader_hash", "2060441315", "day 24 of the month, 20:20"):
        assert shown in out
    near = ["--near", "2021-10-03T00:00:00Z", "--timezone", "Asia/Shanghai"]
    status, out = run("inspect", "--json", "-", *near, stdin=f"{V1}\nC0A8F001103E214D29547ACFD6E30000\n{'F' * 32}")
    shown = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [one.get("made") for one in shown] == [None, "2021-09-24T12:20:41.315000+00:00", None]
    assert (status, "cannot tell the time of" in shown[2]["error"]) == (1, True)


def test_inspect_of_a_uuid_shows_its_version_and_time():
    uuid = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
    made = "2022-02-22T19:22:22+00:00"
    assert run("inspect", uuid) == (0, f"UUID of version 1, node 9f:6b:de:ce:d8:46  {uuid}  made {made}\n")
    fields = json.loads(run("inspect", "--json", uuid)[1])
    assert (fields["kind"], fields["version"], fields["time"]) == ("uuid", 1, made)


@pytest.mark.parametrize("id", [V1, BROKER, "c232ab00-9414-11ec-b3c8-9f6bdeced846"])
def test_inspect_names_the_id_inside_a_line_of_a_log(id):
    status, out = run("inspect", f"ERROR [msgId={id}, topic=orders]")
    assert (status, out.endswith(f"; it contains {id}: pass that alone\n")) == (1, True)


def test_inspect_of_standard_input_reports_bad_lines():
    """A malformed line is reported with its number, the other IDs are shown, and the exit status is 1."""
    given = f"{V1}\r\nnonsense\n\n{V1.lower()}\n".encode() + b"\xff\xfe\0"
    done = subprocess.run([*PROGRAM, "inspect", "--json", "-"], input=given, capture_output=True)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [(one["line"], one.get("kind")) for one in objects]
    assert kinds == [(1, "v1"), (2, None), (3, None), (4, "v1"), (5, None)]
    assert objects[1]["error"].startswith("invalid message id 'nonsense': must have 32, 34, 56 or 58 hex digits, got 8")
    said = done.stderr.decode().splitlines()
    assert said == [f"line {one['line']}: {one['error']}" for one in objects if "error" in one]
    assert done.returncode == 1


def test_inspect_as_json_has_every_field():
    """All real IDs are printed as one JSON object per line, with the fields of `msgid.parse`."""
    status, out = run("inspect", "--json", "-", stdin="\n".join(row.id for row in vectors.REAL_IDS))
    assert status == 0
    names = ["mac", "pid", "seconds", "sequence", "origin", "port", "offset", "loader_hash", "elapsed_ms", "counter"]
    for row, line in zip(vectors.REAL_IDS, out.splitlines(), strict=True):
        shown, id = json.loads(line), msgid.parse(row.id)
        assert (shown["input"], shown["kind"], shown["canonical"]) == (row.id, id.kind, id.canonical)
        assert shown["version"] == id.version
        for name in names:
            assert shown.get(name) == getattr(id, name, None)


def test_node_without_arguments_shows_what_is_stamped():
    assert run("node")[1].strip() == str(msgid.explain_node())
    shown = json.loads(typed("node", "--json", MSGID_NODE="aa:bb:cc:dd:ee:ff").stdout)
    assert (shown["mac"], shown["source"]) == ("aa:bb:cc:dd:ee:ff", "environment")


@pytest.mark.parametrize("command", ["generate", "node"])
def test_invalid_node_of_the_environment_is_one_line(command):
    done = typed(command, MSGID_NODE="x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: MSGID_NODE must be aa:bb:cc:dd:ee:ff, mac or random, got 'x'\n"


def expired_segment(folder):
    """Write an expired segment and an active one; return the path of the policy."""
    for offset in (0, 1):
        message = iggy.Message.new(b"x", id=1, offset=offset, timestamp=1_700_000_000_000_000, layout="m45")
        (folder / f"{offset:020d}.log").write_bytes(iggy.encode(message, "m45"))
    policy = folder / "policy.toml"
    policy.write_text("default_expiry = 60\n")
    return policy


@pytest.mark.skipif(os.name != "posix", reason="the test closes a descriptor by a shell")
def test_closed_output_is_one_line_before_the_command_starts(tmp_path):
    """Nothing is deleted whose report nobody can read."""
    policy = expired_segment(tmp_path)
    program = [*PROGRAM, "clean", str(tmp_path), "--policy", str(policy), "--apply"]
    result = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *program], stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"Error: cannot write the output: standard output is closed\n")
    assert len(list(tmp_path.glob("*.log"))) == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system does not have a full device")
@pytest.mark.parametrize("arguments", [["generate"], ["generate", "-n", "100000"], ["inspect", V1], ["node"]])
def test_output_to_a_full_disk_is_one_line(arguments):
    """The command ends with status 1 and the reason, also if the output is in the last buffer."""
    with open("/dev/full", "wb") as full:
        result = subprocess.run([*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"Error: [Errno 28] No space left on device\n")
    if arguments[0] == "generate":
        assert run(*arguments, "--output", "/dev/full") == (1, "Error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_command_without_its_extra_says_what_to_install(missing):
    """One line without a traceback; ``--version`` works all the same."""
    program = (
        f"import sys; sys.modules['{missing}'] = None; sys.argv[1:] = {{}}; from msgid.__main__ import main; main()"
    )
    command = [sys.executable, "-c", program.format([])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == f"msgid: the command line needs {missing}: {to_install('cli')}\n"
    shown = subprocess.check_output([sys.executable, "-c", program.format(["--version"])], text=True)
    assert shown.startswith(f"msgid {msgid.__version__}, ")


def test_version_names_the_backend_and_why_it_is_not_the_compiled_one():
    expected = "compiled core" if msgid.backend == "c" else "pure Python: MSGID_PURE asks for the reference"
    assert typed("--version").stdout == f"msgid {msgid.__version__}, {expected}\n"
    pure = typed("--version", MSGID_PURE="1").stdout
    assert pure == f"msgid {msgid.__version__}, pure Python: MSGID_PURE asks for the reference\n"


def test_clean_of_odd_times_and_names_reports_what_was_removed(tmp_path):
    """A time that no calendar has, and a name that is not text, do not end the report after the removal."""
    folder = tmp_path / os.fsdecode(b"topics/\xff/partitions/1")
    folder.mkdir(parents=True)
    for offset, timestamp in ((0, 1_700_000_000_000_000), (1, (1 << 64) - 1), (2, 0)):
        message = iggy.Message.new(b"x", id=1, offset=offset, timestamp=timestamp, layout="m45")
        (folder / f"{offset:020d}.log").write_bytes(iggy.encode(message, "m45"))
    policy = tmp_path / "policy.toml"
    policy.write_text("default_expiry = 60\n")
    done = typed("clean", str(tmp_path), "--policy", str(policy), "--apply", PYTHONIOENCODING="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("1 of 3 segments, 46 bytes: removed\n")


def test_clean_that_cannot_remove_a_segment_fails(tmp_path, monkeypatch):
    """A job that calls the command learns of segments that stay."""
    policy = expired_segment(tmp_path)
    monkeypatch.setattr(OsFiles, "remove", lambda _, path: os.listdir(f"{path}/none"))
    status, printed = run("clean", tmp_path, "--policy", policy, "--apply")
    assert (status, len(list(tmp_path.glob("*.log")))) == (1, 2)
    assert "Error: not all expired segments could be removed: the table has the reasons" in printed


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["position", "kafka://orders/3", "1234", "--at", "1648047038"], ORDER),
        (["position", "kafka://orders/3", "1234", "--at", "1648047038.9"], ORDER),
        (["position", "kafka://orders/3", "1234", "--at", "2022-03-23T23:50:38+09"], ORDER),
        (["derive", V1, "invoice"], INVOICE),
        (["derive", V1, "invoice", "1"], str(msgid.derive_id(INVOICE, 1))),
        (["derive", V1.lower(), "invoice", "--at", "1648047038"], INVOICE),
        (["derive", "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE", "order-17"], str(msgid.derive_id(UUID, "order-17"))),
        (["translate", BROKER.lower()], f"00{BROKER}"),
        (["translate", V1.lower()], V1),
    ],
)
def test_command_prints_the_id_that_the_function_returns(arguments, printed):
    assert run(*arguments) == (0, f"{printed}\n")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["position", "log", "1", "--at", "yesterday"], 2, "got 'yesterday'"),
        (["position", "log", "1", "--at", "2022-03-23T14:50:38"], 2, "with an offset from UTC"),
        (["position", "log", "1", "--at", "\u0663"], 2, "must be Unix seconds"),
        (["position", "log", "1", "--at", "nan"], 1, "got nan"),
        (["position", "log", "1", "--at", "1700000000000"], 1, "milliseconds?"),
        (["position", "log", "281474976710656", "--at", "1"], 1, "offset must be 0 to 281474976710655"),
        (["position", "log", "-1", "--at", "0"], 1, "offset must be 0 to 281474976710655, got -1"),
        (["position", "log", "\u0663", "--at", "0"], 2, "must be a whole number"),
        (["position", "log", "1"], 2, "Missing option '--at'"),
        (["derive", "order-17", "invoice"], 1, "'order-17'"),
        (["generate", "--node", "here"], 1, "got 'here'"),
        (["generate", "-n", "-1"], 2, "-1"),
        (["generate", "-n", "1.5"], 2, "must be a whole number"),
        (["generate", "-n", "\u0663"], 2, "must be a whole number"),
        (["inspect"], 2, "pass one or more IDs"),
        (["inspect", "C0A8F001103E214D29547ACFD6E30000", "--near", "inf"], 1, "got inf"),
        (["inspect", "nope"], 1, "argument 1: invalid message id 'nope'"),
        (["translate"], 2, "pass one or more IDs"),
        (["translate", V1, "no-id"], 1, "argument 2: invalid message id 'no-id'"),
        (["clean", ".", "--policy", "policy.toml"], 1, "no segments in .: it must hold files such as 0000"),
        (["clean", ".", "--policy", "off.toml"], 1, "the policy off.toml is not enabled: no segment is looked at"),
        (["clean", ".", "--policy", "wrong.toml"], 1, f"Error: {BAD_INTERVAL}"),
    ],
)
def test_wrong_argument_is_one_line_that_quotes_it(arguments, status, said, tmp_path, monkeypatch):
    """Numbers have ASCII digits, standard input is read once, and a job of the cleaner that finds nothing fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text("default_expiry = 60\n")
    (tmp_path / "wrong.toml").write_text("interval = 0\n")
    (tmp_path / "off.toml").write_text("enabled = false\n")
    code, out = run(*arguments, stdin="")
    assert (code, said in out) == (status, True), out


def test_generate_of_a_node_stamps_it():
    """``--node`` is that of `Generator`: an address, or random bits, which differ from run to run."""

    def made(node):
        return msgid.parse(run("generate", "--node", node)[1].strip())

    assert made("56:f7:e7:1c:36:1b").mac == "56:f7:e7:1c:36:1b"
    random = [made("random") for _ in range(2)]
    assert {id.origin for id in random} == {"random"}
    assert random[0].node != random[1].node


def commands():
    """Return the commands of both command lines with the examples of their help."""
    from msgid.cli import msgid as ids

    groups = {"msgid": ids}
    with contextlib.suppress(ImportError):
        groups["python -m spark_ext"] = importlib.import_module("spark_ext.cli").spark_ext
    for name, group in groups.items():
        for command in group.commands.values():
            yield name, command, re.findall(r"^  (?!Examples)(.+)$", command.epilog or "", re.MULTILINE)


def test_help_of_each_command_has_examples_with_options_that_exist(tmp_path, monkeypatch):
    """Click parses each example; the files that it names exist here."""
    import click

    monkeypatch.chdir(tmp_path)
    for file in ("policy.toml", "ids.txt", "orders.csv", "orders.parquet", "key"):
        (tmp_path / file).touch()
    for name, command, examples in commands():
        assert examples, f"{name} {command.name} --help lacks examples"
        for example in examples:
            (typed,) = re.findall(rf"(?:^|= |\| )(?:MSGID_NODE=random )?{name} {command.name}(?= |$)([^|<>]*)", example)
            arguments = [*shlex.split(re.sub(r"/var/iggy/streams|/data/landed", str(tmp_path), typed))]
            command.make_context(command.name, arguments, parent=click.Context(click.Group()))


def test_doctor_names_the_clients_of_a_file(tmp_path):
    """The command reads lines or a table; a missing column is one line."""
    pytest.importorskip("pyarrow")
    (tmp_path / "ids.txt").write_text("\n".join(msgid.Generator(sequence=1 << 30).generate_batch(50).hex()))
    assert "msgid: 50 IDs of 1 generator" in run("doctor", tmp_path / "ids.txt")[1]
    made = json.loads(run("doctor", vectors.REAL_IDS_FILE, "--json")[1])
    assert ["RocketMQ broker"] in [maker["clients"] for maker in made["makers"]]
    for arguments in ([vectors.REAL_IDS_FILE, "--id", "nothing"], ["missing"]):
        status, out = run("doctor", *arguments)
        assert (status, out.count("\n")) == (1, 1)


def test_doctor_takes_ids_without_any_other_package(monkeypatch):
    """IDs as arguments need only the extra ``cli``; a file needs more, and the error says so."""
    for package in ("duckdb", "numpy", "pyarrow"):
        monkeypatch.setitem(sys.modules, package, None)
    assert "2 IDs\n" in run("doctor", V1, BROKER)[1]
    assert "1 ID\n" in run("doctor", V1)[1]
    assert "a diagnosis of a file needs duckdb: pip install 'msgid[arrow]'" in run("doctor", __file__)[1]
    status, out = run("doctor", V1, __file__)
    assert (status, "pass one FILE, or valid IDs" in out) == (2, True)


def test_grouped_help_has_each_option_once_below_its_task():
    import click

    from msgid.shared.command_line import Grouped

    grouped = [(name, command) for name, command, _ in commands() if isinstance(command, Grouped)]
    assert "audit" in [command.name for _, command in grouped]
    for name, command in grouped:
        context = click.Context(command, info_name=name)
        options = [one.name for one in command.get_params(context) if one.param_type_name == "option"]
        text = command.get_help(context)
        named = [option for names in command.groups.values() for option in names]
        assert sorted(named) == sorted(name for name in options if not name.endswith("help")), command.name
        assert all(text.count(f"\n{title}:\n") == 1 for title in command.groups), text


def test_byte_order_mark_of_standard_input_is_skipped():
    """Windows writes one in front of a file."""
    assert run("translate", "-", stdin=b"\xef\xbb\xbf" + V1.encode() + b"\n") == (0, f"{V1}\n")


def test_summaries_of_the_commands_are_whole_at_80_columns():
    assert "..." not in invoke(["-h"], terminal_width=80).output.partition("Commands:")[2]


def test_store_show_prints_each_state_of_a_key_as_a_value(tmp_path):
    """One line per version; a file that is missing is not created, and a state in an encoding of its own is bytes."""
    path = tmp_path / "states.db"
    assert run("store", "show", path, "shop") == (1, f"Error: cannot open {path}: the file is missing\n")
    assert not path.exists()
    other = tmp_path / "env=prod.db"  # a path, not a connection string
    other.touch()
    assert run("store", "show", other, "shop") == (1, f"Error: {other} is not the file of a SqliteStore\n")
    assert other.stat().st_size == 0
    for name, options in (("plain", {}), ("own", {"dumps": lambda state: b"\x80"})):
        processor = Processor(SqliteStore(path), lambda *_: {"seen": 1}, list, name=name, **options)
        processor.handle(Message("orders-1", "shop", None))
    shown = run("store", "show", path, "shop")[1].splitlines()
    assert shown == ["own, version 1, by orders-1: b'\\x80'", "plain, version 1, by orders-1: {'seen': 1}"]
    assert run("store", "show", path, "other") == (1, "Error: no states of key other\n")
    encoded = {"dumps": bytes, "loads": bytes}
    for name, body in (("m", b'{"$map": [[{"$map": []}, 1]]}'), ("z", b'{"$zoned": 5}')):
        processor = Processor(
            SqliteStore(path), lambda state, message, context: message.body, list, name=name, **encoded
        )
        processor.handle(Message("order\n\x1b[2J", "two", body))
        (line,) = [one for one in run("store", "show", path, "two")[1].splitlines() if one.startswith(name)]
        assert line == f"{name}, version 1, by 'order\\n\\x1b[2J': {body!r}"


def stored(path, *handlers):
    """Return a file of states: three messages of two keys for each handler."""
    for name in handlers:
        processor = Processor(SqliteStore(path), lambda *_: {"seen": 1}, list, name=name)
        processor.handle_many([Message(f"orders-{number}", "shop" if number else "b\x1b", None) for number in range(3)])
    return path


def test_store_list_counts_the_keys_and_messages_of_each_handler(tmp_path):
    """A handler that is unknown is an error; text of senders is one line without control characters."""
    path = stored(tmp_path / "states.db", "count", "bill")
    lines = "bill: 2 keys, 3 messages kept, 0 forgotten\ncount: 2 keys, 3 messages kept, 0 forgotten\n"
    assert run("store", "list", path) == (0, lines)
    assert run("store", "list", path, "--handler", "count") == (0, lines.splitlines(keepends=True)[1])
    assert run("store", "list", path, "--handler", "other") == (1, f"Error: no handler other in {path}\n")
    keys = run("store", "list", path, "--keys", "--handler", "bill")
    assert keys == (0, "bill, 'b\\x1b': version 1, 1 message\nbill, shop: version 2, 2 messages\n")
    listed = [json.loads(line) for line in run("store", "list", path, "--keys", "--json")[1].splitlines()]
    assert listed[1] == {"handler": "bill", "key": "shop", "version": 2, "entries": 2}
    assert len(listed) == 4
    counted = [json.loads(line) for line in run("store", "list", path, "--json")[1].splitlines()]
    assert counted[0] == {"handler": "bill", "keys": 2, "entries": 3, "forgotten": 0}


@pytest.mark.parametrize("file", ["msgid.toml", "pyproject.toml"])
def test_options_of_an_audit_have_defaults_in_a_file(tmp_path, monkeypatch, file):
    """An option of the command line wins. A wrong file is one line, and commands that delete do not have defaults."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("log,number\na,1\na,3\n")
    table = "audit" if file == "msgid.toml" else "tool.msgid.audit"
    (tmp_path / file).write_text(f'[{table}]\nsource = ["log"]\noffset = "number"\nfail-on = "error"\n')
    assert "missing_offsets" in run("audit", "table.csv")[1]
    assert run("audit", "table.csv")[0] == 3
    assert run("audit", "table.csv", "--fail-on", "error", "--allow", "missing_offsets=1")[0] == 0
    assert "must be a column of the table, got 'id'" in run("audit", "table.csv", "--offset", "id")[1]
    for text, error in (
        (f"[{table}]\nsorce = 1\n", "audit does not have the option 'sorce'"),
        (f"[{table.replace('audit', 'clean')}]\napply = true\n", "must have tables of audit and trace, got 'clean'"),
        (f"[{table}\n", f"cannot read {file}: "),
    ):
        (tmp_path / file).write_text(text)
        status, out = run("audit", "table.csv")
        assert (status, out.count("\n"), error in out) == (1, 1, True)
    (tmp_path / file).write_text("[tool.other]\n" if file == "pyproject.toml" else "")
    assert run("node")[0] == 0


def test_store_that_the_reader_may_not_write_to_is_refused(tmp_path, monkeypatch):
    """SQLite would leave files of the reader beside it, and keep its owner from writing."""
    path = stored(tmp_path / "states.db", "count")
    before = os.listdir(tmp_path)
    monkeypatch.setattr("os.access", lambda file, mode: False)
    assert "keep its owner out: run the command as its owner" in run("store", "list", path)[1]
    assert os.listdir(tmp_path) == before


def test_keys_of_a_store_are_read_in_parts(tmp_path, monkeypatch):
    """The parts hold each key once, also if the last part is full."""
    store = SqliteStore(stored(tmp_path / "states.db", "count"))
    for part in (1, 2, 3):
        monkeypatch.setattr("msgid.processing._sql._CHUNK", part)
        assert [(one.key, one.entries) for one in store.keys(handler=None)] == [("b\x1b", 1), ("shop", 2)]


def test_store_forget_deletes_a_key_only_with_apply(tmp_path):
    path = stored(tmp_path / "states.db", "count", "bill")
    dry = "the state of shop and 2 messages: would be deleted; --apply deletes them\n"
    assert run("store", "forget", path, "shop", "--handler", "bill") == (0, dry)
    assert len(run("store", "show", path, "shop")[1].splitlines()) == 4
    done = (0, "the state of shop and 2 messages: deleted\n")
    assert run("store", "forget", path, "shop", "--handler", "bill", "--apply") == done
    shown = [json.loads(line) for line in run("store", "show", path, "shop", "--json")[1].splitlines()]
    assert [(one["handler"], one["id"], one["state"]) for one in shown] == [
        ("count", "orders-1", {"seen": 1}), ("count", "orders-2", {"seen": 1}),
    ]  # fmt: skip
    assert run("store", "forget", path, "other", "--apply") == (1, "Error: no states of key other\n")
    gone = json.loads(run("store", "forget", path, "shop", "--apply", "--json")[1])
    assert gone == {"key": "shop", "handler": None, "entries": 2, "deleted": True}


@pytest.mark.parametrize(
    "command", [("list",), ("show", "shop"), ("forget", "shop", "--apply")], ids=lambda one: one[0]
)
def test_wrong_path_of_a_store_is_one_line(tmp_path, command):
    """A missing file, a folder, a file of another program, and a server that does not answer."""
    name, *rest = command
    (tmp_path / "notes.txt").write_text("notes of a meeting\n" * 100)
    for place in (tmp_path / "missing.db", tmp_path, tmp_path / "notes.txt", "host=/missing dbname=x"):
        code, output = run("store", name, place, *rest)
        assert (code, output.count("\n")) == (1, 1), output
        assert output.startswith("Error: ")
