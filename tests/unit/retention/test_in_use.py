"""The cleaner leaves alone what another process holds open, and knows topics by the names that it is given."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from msgid import iggy
from msgid.retention import Cleaner, InvalidPolicy, OsFiles, RetentionPolicy, SegmentsInUse

NOW = 1_700_000_000_000_000
POLICY = RetentionPolicy(default_expiry=60)
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows open files")

_HOLDER = """
import sys
for line in sys.stdin:
    mode, _, path = line.rstrip("\\n").partition(" ")
    file = open(path, mode) if mode else None
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def other():
    """Start another process that opens one file at a time."""
    program = [sys.executable, "-S", "-c", _HOLDER]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.stdin.close()
        process.wait(30)


@pytest.fixture
def held(other):
    """Return a function that lets the other process hold a file open."""

    def tell(line):
        other.stdin.write(f"{line}\n")
        assert other.stdout.readline() == "done\n"

    @contextmanager
    def held(path, mode):
        tell(f"{mode} {path}")
        try:
            yield other.pid
        finally:
            tell("")

    return held


def segments(root, topic="1", count=3):
    folder = root / "streams" / "1" / "topics" / topic / "partitions" / "0"
    folder.mkdir(parents=True)
    for first in range(0, 2 * count, 2):
        made = [iggy.Message.new(b"a", id=1, offset=first + n, timestamp=NOW, layout="m45") for n in range(2)]
        (folder / f"{first:020d}.log").write_bytes(iggy.encode_log(made, "m45"))
        (folder / f"{first:020d}.index").write_bytes(b"")
    return folder


def cleaner(folder, policy=POLICY, **options):
    return Cleaner(folder, policy, clock=lambda: NOW + 10**12, **options)


def names(folder):
    return sorted(path.name for path in folder.rglob("*.*"))


@linux
@pytest.mark.parametrize("inner", ["streams", "streams/1/topics/1/partitions/0"])
@pytest.mark.parametrize("mode", ["ab", "r+b"])
@pytest.mark.parametrize("file", [f"{4:020d}.log", f"{4:020d}.index"])
def test_cleaner_of_segments_that_another_process_can_write_to_deletes_nothing(tmp_path, held, inner, mode, file):
    """A server holds its active segment open. It serves its open files further, so nothing is deleted under it."""
    folder, other = segments(tmp_path), segments(tmp_path, "2")
    before = names(tmp_path)
    with held(folder / file, mode) as pid:
        says = rf"process {pid} \(python.*\) can write to .*{file}, so a server may be running"
        with pytest.raises(SegmentsInUse, match=says) as error:
            cleaner(tmp_path / inner).clean(apply=True)
        assert "\n" not in str(error.value)
        assert names(tmp_path) == before
        assert [found.expired for found in cleaner(folder).clean()] == [True, True, False]
        assert sum(found.removed for found in cleaner(folder, allow_open=True).clean(apply=True)) == 2
    assert sum(found.removed for found in cleaner(other).clean(apply=True)) == 2


@linux
@pytest.mark.parametrize("file", ["logs/iggy-server.log", "state/log", "metadata/journal.wal"])
def test_cleaner_beside_a_server_that_holds_its_own_files_deletes_nothing(tmp_path, held, file):
    """Old servers open a segment for each write alone, but their log stays open."""
    folder, path = segments(tmp_path), tmp_path / file
    path.parent.mkdir()
    path.write_bytes(b"")
    with held(path, "ab"), pytest.raises(SegmentsInUse, match=os.path.basename(file)):
        cleaner(folder).clean(apply=True)
    with held(path, "rb"):
        assert sum(found.removed for found in cleaner(folder).clean(apply=True)) == 2


@linux
def test_cleaner_keeps_the_segment_that_another_process_reads(tmp_path, held):
    """The others are deleted. The path may lead over a link, and the file may have a second name there."""
    folder = segments(tmp_path)
    (tmp_path / "link").symlink_to(folder)
    with held(folder / f"{0:020d}.log", "rb") as pid:
        report = cleaner(tmp_path / "link").clean(apply=True)
        assert [found.removed for found in report] == [False, True, False]
        assert report[0].reason.startswith(f"it is in use: process {pid} (python")
        assert report[1].reason is None
    assert f"{0:020d}.index" in names(folder)
    assert not (folder / f"{2:020d}.index").exists()


def test_cleaner_looks_at_the_processes_once_and_only_before_a_deletion(tmp_path):
    """A dry run and a run without expired segments do not look."""
    for topic in "123":
        segments(tmp_path, topic)
    looks = []

    class Counting(OsFiles):
        def holders(self, paths):
            looks.append(len(paths))
            return []

    fresh = Cleaner(tmp_path, POLICY, clock=lambda: NOW, files=Counting())
    fresh.clean(apply=True)
    late = cleaner(tmp_path, files=Counting())
    late.clean()
    assert looks == []
    late.clean(apply=True)
    assert looks == [18]
    cleaner(tmp_path, files=Counting(), allow_open=True).clean(apply=True)
    assert looks == [18]


def test_own_process_may_hold_segments_open(tmp_path):
    """A service may clean the segments that it reads or writes itself."""
    folder = segments(tmp_path)
    with open(folder / f"{0:020d}.log", "rb"), open(folder / f"{4:020d}.log", "ab"):
        assert sum(found.removed for found in cleaner(folder).clean(apply=True)) == 2


@pytest.mark.parametrize("topics", [{"orders": 0}, {"shop/orders": 0}, {"1/2": 0}, {"2": 0}])
def test_policy_of_names_is_that_of_the_folders_in_the_map(tmp_path, topics):
    """A server's folders are numbers. Names that the policy does not use are ignored."""
    kept, gone = segments(tmp_path, "2"), segments(tmp_path, "3")
    policy = RetentionPolicy(default_expiry=60, topics=topics)
    given = {"orders": "2", "shop/orders": "1/2", "later": "1/99"}
    cleaner(tmp_path, policy, names=given).clean(apply=True)
    assert (len(names(kept)), len(names(gone))) == (6, 2)


@pytest.mark.parametrize(
    ("topics", "given", "says"),
    [
        ({"orders": 0}, {}, r"folders of topics in .* \(1/1, 1/2, 1/3, 1/10, 1/11, \.\.\.\), got 'orders'"),
        ({"orders": 0}, {"orders": "1/99"}, r"got 'orders' \(in names '1/99'\)"),
        ({"1/2": 0, "orders": 0}, {"orders": "2"}, r"each topic once, got '1/2' and 'orders' \(in names '2'\) for 1/2"),
        ({"1/2\n": 0}, {}, r"got '1/2\\n'"),
    ],
)
def test_key_of_a_policy_that_matches_no_folder_deletes_nothing(tmp_path, topics, given, says):
    """The error is one line with the key and a few of the folders."""
    for topic in ("1", "2", "3", "10", "11", "12"):
        segments(tmp_path, topic)
    before, careful = names(tmp_path), cleaner(tmp_path, RetentionPolicy(60, topics), names=given)
    with pytest.raises(InvalidPolicy, match=says) as error:
        careful.clean(apply=True)
    assert "\n" not in str(error.value)
    assert names(tmp_path) == before


@pytest.mark.parametrize("given", [["orders"], {"orders": 2}, {1: "2"}, "orders=2"])
def test_map_of_names_that_is_no_map_of_texts_raises(tmp_path, given):
    """A number in place of its text would match no folder."""
    with pytest.raises(TypeError, match="names must be a mapping of names to numbers such as '1/2', got"):
        cleaner(tmp_path, names=given)


@linux
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_processes_of_another_user_are_not_seen(tmp_path, held):
    """The look is as far as permissions allow, and an error of it ends no run."""
    folder = segments(tmp_path)
    with held(folder / f"{4:020d}.log", "ab"):
        tmp_path.chmod(0o755)
        look = f"holders([{str(folder / f'{4:020d}.log')!r}])"
        code = f"import os; from msgid.retention._holders import holders; os.setuid(65534); print({look})"
        program = [sys.executable, "-c", code]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
