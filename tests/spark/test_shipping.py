"""Functions that travel to workers without the packages of the driver, and what such workers say."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark import cloudpickle

import msgid
from spark_ext import _shipping
from spark_ext._shipping import CoreNote, WorkerError, shipped, shipped_processor
from spark_ext.streaming._labelled_stream import IDS, Seen
from spark_ext.streaming._state.bucket_state import states

pytestmark = pytest.mark.spark

WORKER = """
import pickle, sys
sys.path[:0] = {paths!r}
value = pickle.loads(open({pickled!r}, "rb").read())
try:
    {use}
except RuntimeError as error:
    print(error)
"""


DRIVER_WORKER = "pyspark.sql.streaming.transform_with_state_driver_worker"


@pytest.fixture
def in_worker(tmp_path):
    """Return a function that uses a value in a Python that has PySpark, and only the passed code of msgid."""
    packages = Path(pyspark.__file__).parents[1]
    for name in ("pyspark", "py4j"):
        (tmp_path / name).symlink_to(packages / name)

    def use(value, line, version=None):
        if version is not None:
            (tmp_path / "msgid.py").write_text(f"__version__ = {version!r}")
        (tmp_path / "pickled").write_bytes(cloudpickle.dumps(value))
        program = WORKER.format(paths=[str(tmp_path)], pickled=str(tmp_path / "pickled"), use=line)
        done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return use


def test_worker_without_the_packages_says_so_in_one_line(in_worker):
    """The line names the package, the interpreter, and the guide."""
    said = in_worker(shipped(msgid.parse), "value('x')")
    assert said.startswith("the Python of a worker cannot load a function: No module named 'msgid'; ")
    assert Path(sys.executable).name in said
    assert "guide" in said
    assert "\n" not in said


def test_worker_with_another_version_says_so_in_one_line(in_worker):
    """The line names both versions, before the function raises an error of its own."""
    said = in_worker(shipped(msgid.parse), "value('x')", version="0.1.7")
    assert said.startswith(f"the Python of a worker has msgid 0.1.7, and the driver has {msgid.__version__}: ")


def test_processor_declares_its_state_on_a_driver_without_the_packages(in_worker):
    """Spark's worker on the driver gets no files of --py-files, and only calls ``init``."""
    line = (
        "say = lambda *a: print(a[1]); "
        "handle = type('H', (), {f'get{kind}State': say for kind in ('Value', 'List', 'Map')})()"
        "; value.init(handle); value.close()"
    )
    declared = in_worker(shipped_processor(Seen(1, 8), states(IDS)), line).split()
    assert declared == ["ids_recent", "ids_values"]


def test_shipped_function_is_loaded_once_and_gets_all_arguments():
    """A function of one or of several arguments runs as before."""
    call = cloudpickle.loads(cloudpickle.dumps(shipped(lambda *values: values)))
    assert (call(1), call(1, 2)) == ((1,), (1, 2))


def worker(**changes):
    same = {"host": "a", "python": "/bin/python3", "version": msgid.__version__, "backend": msgid.backend}
    return {**same, "missing": None, **changes}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"version": "0.1.0"}, r"has msgid 0\.1\.0, and the driver has .*: /bin/python3 on b"),
        (
            {"missing": "google.protobuf: No module named 'google'"},
            r"cannot import google\.protobuf: No module .* on b",
        ),
        ({"version": None, "backend": None, "missing": "msgid: No module named 'msgid'"}, "cannot import msgid"),
    ],
)
def test_one_worker_that_differs_is_named(changes, error):
    """The other workers may have all packages."""
    with pytest.raises(WorkerError, match=error):
        _shipping._judge([worker(), worker(host="b", **changes)])


def test_another_core_is_a_warning():
    """A zip file brings the pure-Python reference, which is slower."""
    other = {"c": "python", "python": "c"}[msgid.backend]
    with pytest.warns(CoreNote, match="the workers on b run"):
        _shipping._judge([worker(), worker(host="b", backend=other)])


def test_workers_of_a_local_master_are_not_asked(spark):
    """They run the driver's interpreter, so that no job is needed."""
    before = set(_shipping._checked)
    _shipping.check_workers(spark, stateful=True)
    assert _shipping._checked == before


class Runs:
    """An object that makes the process that loads it the one of a module."""

    def __init__(self, module):
        self.module = module

    def __reduce__(self):
        return exec, (f"import __main__; from importlib.machinery import ModuleSpec as M\n"
                      f"__main__.__spec__ = M({self.module!r}, None)",)  # fmt: skip


@pytest.mark.parametrize(("module", "printed"), [(DRIVER_WORKER, ""), ("a.program", "schema")])
def test_worker_on_the_driver_does_not_print_the_function(in_worker, module, printed):
    """Spark's module prints the function and its schema for each query; loading one of ours ends that there alone."""
    assert importlib.util.find_spec(DRIVER_WORKER) is not None
    assert in_worker([Runs(module), shipped_processor(Seen(1, 8), states(IDS))], "print('schema')") == printed


def test_error_of_a_worker_with_another_python_has_the_versions_in_one_line():
    """Spark's words follow its condition, between the traceback of the worker and the stack trace of Java."""
    words = "Python in worker has different minor version: 3.12 than that in driver: 3.11"
    error = RuntimeError(
        f"job aborted\nTraceback\nPySparkRuntimeError: [PYTHON_VERSION_MISMATCH] {words}\n\n\tat x.Y(Z)"
    )
    expected = "the Python of a worker has another minor version than the driver: [PYTHON_VERSION_MISMATCH] "
    assert _shipping._explained(error) == expected + words
