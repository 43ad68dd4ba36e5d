"""The command ``msgid``, run as a user runs it."""

import contextlib
import importlib
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from helpers import vector_files as vectors
from helpers.commands import invoke

import msgid
from msgid import iggy

pytest.importorskip("click")
pytest.importorskip("rich")

V1 = "0156F7E71C361B21BC024CCDBE00000000"
INVOICE = "01DF8354A8161BB5AE024CCDBE2DFA320C"
ORDER = "013B0121EF30BE0000024CCDBE000004D2"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"


def run(*arguments, stdin="", **environment):
    return subprocess.run(
        [sys.executable, "-m", "msgid", *arguments],
        input=stdin if isinstance(stdin, bytes) else stdin.encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", **environment},
    )


def test_generate_of_a_count_prints_one_id_per_line():
    """The default is one ID; all IDs are valid and different."""
    assert msgid.is_valid(run("generate").stdout.decode().strip())
    lines = run("generate", "-n", "100000").stdout.decode().split()
    assert len(set(lines)) == len(lines) == 100_000
    assert all(map(msgid.is_valid, lines))
    assert run("generate", "-n", "0").stdout == b""


def test_generate_into_a_file_writes_the_same_lines(tmp_path):
    """``--output`` writes the same lines to a file, and prints nothing."""
    file = tmp_path / "ids.txt"
    result = run("generate", "-n", "3", "--output", str(file))
    assert (result.stdout, result.stderr, result.returncode) == (b"", b"", 0)
    assert len(file.read_text().split()) == 3


def on_terminal(command):
    """Return what a command writes to standard error if that is a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, check=True, env=environment)
    os.close(theirs)
    try:
        return os.read(ours, 100_000)
    except OSError:  # nothing was written
        return b""
    finally:
        os.close(ours)


def test_generate_on_a_terminal_alone_draws_a_progress_bar(tmp_path):
    """Long runs show their progress if standard error is a terminal; short runs and pipes do not."""
    arguments = [sys.executable, "-m", "msgid", "generate", "-o", str(tmp_path / "ids"), "-n"]
    shown = {}
    for number in ("1000000", "10"):
        shown[number] = on_terminal([*arguments, number])
    assert b"1000000" in shown["1000000"]
    assert shown["10"] == b""
    assert run("generate", "-n", "1000000").stderr == b""


@pytest.mark.parametrize("number", ["-1", "x", "1.5"])
def test_generate_of_a_bad_count_is_a_usage_error(number):
    """An invalid count is a usage error with exit status 2."""
    assert run("generate", "-n", number).returncode == 2


def test_generate_into_a_closed_pipe_ends_silently():
    """``msgid generate -n 10000000 | head -1`` ends together with head."""
    process = subprocess.Popen(
        [sys.executable, "-m", "msgid", "generate", "-n", "10000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert msgid.is_valid(process.stdout.readline().decode().strip())
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(60)


def test_inspect_of_an_id_shows_every_field_with_its_meaning():
    """The digits of each field are above its name and meaning."""
    out = run("inspect", V1).stdout.decode()
    for shown in ("01", "56F7E71C361B", "21BC", "024CCDBE", "00000000"):
        assert f" {shown} " in out
    for shown in ("version", "node", "56:f7:e7:1c:36:1b", "mac", "pid", "8636", "38587838", "2022-03-23 14:50:38Z"):
        assert shown in out
    out = run("inspect", "7F0000010000238F000000000001E240").stdout.decode()
    for shown in ("v0-broker-offset", "7F000001", "127.0.0.1", "port", "9103", "offset", "123456"):
        assert shown in out
    out = run("inspect", "C0A8F001103E214D29547ACFD6E30000").stdout.decode()
    for shown in ("v0-client-unique", "192.168.240.1", "loader_hash", "2060441315", "day 24 of the month, 20:20"):
        assert shown in out


def test_inspect_on_a_terminal_is_coloured():
    """Fields are coloured on a terminal but not in a pipe."""
    assert b"\x1b[" not in run("inspect", V1).stdout
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "msgid", "inspect", V1], stdout=theirs, check=True, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    assert b"\x1b[" in os.read(ours, 100_000)
    os.close(ours)


def test_inspect_of_standard_input_reports_bad_lines():
    """A malformed line is reported with its number, the other IDs are shown, and the exit status is 1."""
    result = run("inspect", "--json", "-", stdin=f"{V1}\r\nnonsense\n\n{V1.lower()}")
    objects = [json.loads(line) for line in result.stdout.decode().splitlines()]
    assert [(o["line"], o.get("kind")) for o in objects] == [(1, "v1"), (2, None), (3, None), (4, "v1")]
    assert objects[1]["error"].startswith(
        "invalid message id 'nonsense': must have 32, 34, 56 or 58 hex digits, got 8 characters"
    )
    assert result.stderr.decode().splitlines() == [
        f"line 2: {objects[1]['error']}",
        f"line 3: {objects[2]['error']}",
    ]
    assert result.returncode == 1


def test_inspect_of_bytes_that_are_not_text_reports_them():
    """A line that is not UTF-8 is one malformed line."""
    result = run("inspect", "--json", "-", stdin=b"\xff\xfe\0\n" + V1.encode() + b"\n")
    assert [json.loads(line).get("kind") for line in result.stdout.decode().splitlines()] == [None, "v1"]
    assert result.returncode == 1


def test_inspect_as_json_has_every_field():
    """All real IDs are printed as one JSON object per line, with the fields of `msgid.parse`."""
    result = run("inspect", "--json", "-", stdin="\n".join(row.id for row in vectors.REAL_IDS))
    assert result.returncode == 0
    for row, line in zip(vectors.REAL_IDS, result.stdout.decode().splitlines(), strict=True):
        shown, id = json.loads(line), msgid.parse(row.id)
        assert shown["input"] == row.id
        assert (shown["kind"], shown["canonical"], shown["version"]) == (id.kind, id.canonical, id.version)
        for name in (
            "mac",
            "pid",
            "seconds",
            "sequence",
            "origin",
            "port",
            "offset",
            "loader_hash",
            "elapsed_ms",
            "counter",
        ):
            assert shown.get(name) == getattr(id, name, None)


def test_inspect_without_ids_is_a_usage_error():
    """Without arguments, the command does not wait for input at a terminal."""
    result = run("inspect")
    assert result.returncode == 2
    assert b"pass one or more IDs" in result.stderr


def test_node_without_arguments_shows_what_is_stamped():
    """The command prints the explanation, or one JSON object."""
    explained = [sys.executable, "-c", "import msgid; print(msgid.explain_node())"]
    shown = [run("node").stdout.decode(), subprocess.run(explained, capture_output=True, text=True).stdout]
    assert len({text[17:] for text in shown}) == 1  # random bits differ between processes
    shown = json.loads(run("node", "--json", MSGID_NODE="aa:bb:cc:dd:ee:ff").stdout)
    assert (shown["mac"], shown["source"]) == ("aa:bb:cc:dd:ee:ff", "environment")
    assert run("node", MSGID_NODE="x").returncode == 1


@pytest.mark.parametrize("command", ["generate", "node"])
def test_invalid_node_of_the_environment_is_one_line(command):
    """The command ends with status 1 and the reason, not with a traceback."""
    result = run(command, MSGID_NODE="x")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr == b"Error: MSGID_NODE must be aa:bb:cc:dd:ee:ff, mac or random, got 'x'\n"


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
    program = [sys.executable, "-m", "msgid", "clean", str(tmp_path), "--policy", str(policy), "--apply"]
    result = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *program], stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"Error: cannot write the output: standard output is closed\n")
    assert len(list(tmp_path.glob("*.log"))) == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system does not have a full device")
@pytest.mark.parametrize("arguments", [["generate"], ["generate", "-n", "100000"], ["inspect", V1], ["node"]])
def test_output_to_a_full_disk_is_one_line(arguments):
    """The command ends with status 1 and the reason, also if the output is in the last buffer."""
    with open("/dev/full", "wb") as full:
        program = [sys.executable, "-m", "msgid", *arguments]
        result = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"Error: [Errno 28] No space left on device\n")
    if arguments[0] == "generate":
        result = run(*arguments, "--output", "/dev/full")
        assert (result.returncode, result.stderr) == (1, b"Error: [Errno 28] No space left on device\n")


def test_version_of_the_command_is_that_of_the_package():
    """``--version`` prints the backend."""
    assert msgid.__version__ in run("--version").stdout.decode()


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_command_without_its_extra_says_what_to_install(missing):
    """A malformed policy gives a message of one line without a traceback."""
    program = f"import sys; sys.modules['{missing}'] = None; from msgid.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == f"msgid: the command line needs {missing}: pip install 'msgid[cli]'\n"


def test_expire_reports_expired_segments_and_deletes_them_when_told_to(tmp_path):
    """The default is a dry run; both runs print the report, and the active segment is kept."""
    policy = expired_segment(tmp_path)
    dry = run("clean", str(tmp_path), "--policy", str(policy))
    assert dry.returncode == 0, dry.stderr
    assert dry.stdout.decode().endswith("1 of 2 segments, 46 bytes: would be removed; --apply removes them\n")
    assert len(list(tmp_path.glob("*.log"))) == 2
    done = run("clean", str(tmp_path), "--policy", str(policy), "--apply")
    assert done.stdout.decode().endswith("1 of 2 segments, 46 bytes: removed\n")
    assert [path.name for path in tmp_path.glob("*.log")] == [f"{1:020d}.log"]
    again = run("clean", str(tmp_path), "--policy", str(policy), "--apply")
    assert again.stdout.decode().endswith("0 of 1 segments, 0 bytes: removed\n")
    policy.write_text("interval = 0\n")
    wrong = run("clean", str(tmp_path), "--policy", str(policy))
    assert (wrong.returncode, wrong.stderr) == (1, b"Error: interval must be more than 0 seconds, got 0\n")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], b"got 'orders'"),
        (["orders=1/9"], b"got 'orders' (in names '1/9')"),
        (["orders"], b"must be NAME=TOPIC, such as orders=1/2, each name once, got 'orders'"),
        (["orders=1/1", "orders=1/2"], b"each name once, got 'orders=1/2'"),
        (["=1/2"], b"got '=1/2'"),
    ],
)
def test_expire_by_names_needs_the_folder_of_each(tmp_path, names, says):
    """A name of the policy stands for the folder that ``--name`` gives."""
    inner = tmp_path / "streams" / "1" / "topics" / "1" / "partitions" / "0"
    inner.mkdir(parents=True)
    policy = expired_segment(inner)
    policy.write_text("default_expiry = 60\n[topics]\norders = 0\n")
    options = [part for name in names for part in ("--name", name)]
    wrong = run("clean", str(tmp_path), "--policy", str(policy), "--apply", *options)
    assert wrong.returncode != 0
    assert says in wrong.stderr
    if not names:
        good = run("clean", str(tmp_path), "--policy", str(policy), "--apply", "--name", "orders=1/1")
        assert good.stdout.decode().endswith("0 of 2 segments, 0 bytes: removed\n"), good.stderr
    assert len(list(inner.glob("*.log"))) == 2


def test_version_names_the_backend_and_why_it_is_not_the_compiled_one():
    """``--version`` prints one line: the version, and the compiled core or the reason for pure Python."""
    expected = "compiled core" if msgid.backend == "c" else "pure Python: MSGID_PURE asks for the reference"
    assert run("--version").stdout.decode() == f"msgid {msgid.__version__}, {expected}\n"
    pure = run("--version", MSGID_PURE="1").stdout.decode()
    assert pure == f"msgid {msgid.__version__}, pure Python: MSGID_PURE asks for the reference\n"


def test_version_without_click_is_printed_all_the_same():
    """``--version`` works without the extra ``cli``."""
    program = "import sys; sys.modules['click'] = None; sys.argv = ['msgid', '--version'];"
    program += "import runpy; runpy.run_module('msgid', run_name='__main__')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.startswith(f"msgid {msgid.__version__}, "), result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(shell):
    """The script calls the command, which prints the possible completions."""
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("needs bash")
    script = run("completion", shell).stdout.decode()
    assert f"_MSGID_COMPLETE={shell}_complete" in script
    answer = run(
        _MSGID_COMPLETE=f"{shell}_complete", COMP_WORDS="msgid ins", COMP_CWORD="ins" if shell == "fish" else "1"
    )
    assert "inspect" in answer.stdout.decode()


def test_expire_of_odd_times_and_names_reports_what_was_removed(tmp_path):
    """A time that no calendar has, and a name that is not text, do not end the report after the removal."""
    from msgid import iggy

    folder = tmp_path / os.fsdecode(b"topics/\xff/partitions/1")
    folder.mkdir(parents=True)
    for offset, timestamp in ((0, 1_700_000_000_000_000), (1, (1 << 64) - 1), (2, 0)):
        message = iggy.Message.new(b"x", id=1, offset=offset, timestamp=timestamp, layout="m45")
        (folder / f"{offset:020d}.log").write_bytes(iggy.encode(message, "m45"))
    policy = tmp_path / "policy.toml"
    policy.write_text("default_expiry = 60\n")
    done = run("clean", str(tmp_path), "--policy", str(policy), "--apply")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().endswith("1 of 3 segments, 46 bytes: removed\n")


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["position", "kafka://orders/3", "1234", "--at", "1648047038"], ORDER),
        (["position", "kafka://orders/3", "1234", "--at", "1648047038.9"], ORDER),
        (["position", "kafka://orders/3", "1234", "--at", "2022-03-23T23:50:38+09"], ORDER),
        (["derive", V1, "invoice"], INVOICE),
        (["derive", V1.lower(), "invoice", "--at", "1648047038"], INVOICE),
        (["derive", "74B158CA-DDB3-498F-B0A9-9EEC1C6197AE", "order-17"], str(msgid.derive_id(UUID, "order-17"))),
        (["translate", "7f0000010000238F000000000001E240"], "007F0000010000238F000000000001E240"),
        (["translate", V1.lower()], V1),
    ],
)  # fmt: skip
def test_command_prints_the_id_that_the_function_returns(arguments, printed):
    """``position``, ``derive`` and ``translate`` print one ID, whatever the zone of the machine is."""
    result = run(*arguments, TZ="Asia/Tokyo")
    assert (result.stdout.decode(), result.stderr.decode()) == (f"{printed}\n", "")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["position", "log", "1", "--at", "yesterday"], 2, "got 'yesterday'"),
        (["position", "log", "1", "--at", "2022-03-23T14:50:38"], 2, "with an offset from UTC"),
        (["position", "log", "1", "--at", "nan"], 1, "got nan"),
        (["position", "log", "1", "--at", "1700000000000"], 1, "milliseconds?"),
        (["position", "log", "281474976710656", "--at", "1"], 1, "offset must be 0 to 281474976710655"),
        (["position", "log", "1"], 2, "Missing option '--at'"),
        (["derive", "order-17", "invoice"], 1, "'order-17'"),
        (["generate", "--node", "here"], 1, "got 'here'"),
        (["translate"], 2, "pass one or more IDs"),
        (["translate", V1, "no-id"], 1, "argument 2: invalid message id 'no-id'"),
    ],
)
def test_wrong_argument_is_one_line_that_quotes_it(arguments, status, said):
    """A wrong value ends the command with one line instead of a traceback."""
    result = run(*arguments)
    assert (result.returncode, said in result.stderr.decode(), b"Traceback" in result.stderr) == (status, True, False)


def test_generate_of_a_node_stamps_it():
    """``--node`` is that of `Generator`: an address, or random bits, which differ from run to run."""
    assert (
        msgid.parse(run("generate", "--node", "56:f7:e7:1c:36:1b").stdout.decode().strip()).mac == "56:f7:e7:1c:36:1b"
    )
    random = {msgid.parse(run("generate", "--node", "random").stdout.decode().strip()) for _ in range(2)}
    assert {id.origin for id in random} == {"random"}
    assert len({id.node for id in random}) == 2


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
    shown = run("doctor", str(tmp_path / "ids.txt")).stdout.decode()
    assert "msgid: 50 IDs of 1 generator" in shown
    made = json.loads(run("doctor", str(vectors.REAL_IDS_FILE), "--json").stdout)
    assert ["RocketMQ broker"] in [maker["clients"] for maker in made["makers"]]
    result = run("doctor", str(vectors.REAL_IDS_FILE), "--id", "nothing")
    assert (result.returncode, result.stderr.decode().count("\n")) == (1, 1)


def test_pseudonymize_hides_addresses_and_keeps_the_rest(tmp_path):
    """Equal nodes stay equal, the other fields stay the same, and a short key is refused."""
    (tmp_path / "key").write_bytes(os.urandom(32))
    (tmp_path / "short").write_bytes(b"short")
    lines = f"{V1}\n{V1.lower()}\n7F0000010000238F000000000001E240\n"
    result = run("pseudonymize", "--key-file", str(tmp_path / "key"), "-", stdin=lines)
    first, second, broker = map(msgid.parse, result.stdout.decode().split())
    assert first == second
    assert (first.pid, first.seconds, first.sequence) == (8636, 38587838, 0)
    assert (first.origin, first.node == 0x56F7E71C361B, broker.port, broker.offset) == ("random", False, 9103, 123456)
    assert str(broker.host) != "127.0.0.1"
    result = run("pseudonymize", "--key-file", str(tmp_path / "short"), V1)
    assert (result.returncode, result.stderr.decode()) == (1, "Error: key must have 16 bytes or more, got 5\n")


def test_grouped_help_has_each_option_once_below_its_task():
    """Only ``--help`` is in no group, and a group does not name an option that is gone."""
    import click

    from msgid._commands import Grouped

    grouped = [(name, command) for name, command, _ in commands() if isinstance(command, Grouped)]
    assert "audit" in [command.name for _, command in grouped]
    for name, command in grouped:
        context = click.Context(command, info_name=name)
        options = [one.name for one in command.get_params(context) if one.param_type_name == "option"]
        text = command.get_help(context)
        named = [option for names in command.groups.values() for option in names]
        assert sorted(named) == sorted(name for name in options if not name.endswith("help")), command.name
        assert all(text.count(f"\n{title}:\n") == 1 for title in command.groups), text


def test_long_work_is_shown_on_a_terminal_alone(tmp_path):
    """On a terminal, `audit` names the file that it reads; without one, standard error is empty."""
    path = tmp_path / "ids.txt"
    path.write_text(msgid.generate_hex())
    command = [sys.executable, "-m", "msgid", "audit", str(path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""
    assert b"auditing" in on_terminal(command)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pseudonymize", "-", "--key-file", "-"], "only one of ID and --key-file can be standard input"),
        (["position", "orders/0", "-1", "--at", "0"], "offset must be 0 to 281474976710655, got -1"),
        (["position", "orders/0", "\u0663", "--at", "0"], "must be a whole number"),
        (["position", "orders/0", "3", "--at", "\u0663"], "must be Unix seconds"),
        (["generate", "-n", "\u0663"], "must be a whole number"),
        (["inspect", "nope"], "argument 1: invalid message id 'nope'"),
        (["clean", ".", "--policy", "policy.toml"], "no segments in .: it must hold files such as 0000"),
    ],
)
def test_odd_input_is_refused(arguments, words, tmp_path, monkeypatch):
    """Standard input is read once; numbers have ASCII digits; a job of the cleaner that finds nothing fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text("default_expiry = 60\n")
    result = invoke(arguments, input="")
    assert result.exit_code != 0
    assert words in result.output


def test_byte_order_mark_of_standard_input_is_skipped():
    """Windows writes one in front of a file."""
    result = invoke(["translate", "-"], input=b"\xef\xbb\xbf0156F7E71C361B21BC024CCDBE00000000\n")
    assert (result.exit_code, result.stdout) == (0, "0156F7E71C361B21BC024CCDBE00000000\n")


def test_summaries_of_the_commands_are_whole_at_80_columns():
    """No summary is cut with dots."""
    assert "..." not in invoke(["-h"], terminal_width=80).output.partition("Commands:")[2]
