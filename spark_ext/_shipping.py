"""Functions on their way to Spark's Python workers, which may lack the packages of the driver or have other versions.

A function travels as bytes in a small function that needs neither `msgid` nor `spark_ext`. In the worker, that function
compares the versions and then loads the bytes. So a worker that cannot run them says why in one line. Spark also starts
a Python worker on the driver for a stateful function, without the files of ``--py-files`` and ``addArtifacts``; it only
declares the state, so it never loads the bytes.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle

import msgid
from spark_ext._private import (
    OTHER_PYTHON,
    SESSION_FILES,
    STATE_CLIENT,
    cause_of,
    conditions_of,
    driver_worker_problem,
    ignored_wheels,
    python_error_in,
    silence_of_driver_worker,
    words_of,
    workers_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    State = tuple[str, str, tuple[str, ...]]
    """A value of a stateful function: its name, the method of Spark's handle that declares it, and its types."""

WORKER_ERROR: Final = "the Python of a worker "
"""The start of each error about a worker's packages."""
_GUIDE: Final = "The guide to clusters shows how executors get the packages"
_PACKAGES: Final = ("numpy", "pyarrow")
_OF_STATE: Final = ("pandas", "google.protobuf", STATE_CLIENT)
_MAX_TASKS: Final = 32
_WORKER_FIELDS: Final = "host string, python string, version string, backend string, file string, missing string"
_checked: set[tuple[str, bool]] = set()


class WorkerError(RuntimeError):
    """The Python of Spark's workers lacks a package, or has another version of it than the driver.

    Examples
    --------
    >>> issubclass(WorkerError, RuntimeError)
    True
    """


class CoreNote(UserWarning):
    """The workers run another core of `msgid` than the driver; results are equal, and speed differs.

    Examples
    --------
    >>> issubclass(CoreNote, UserWarning)
    True
    """


def shipped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for Spark's workers that compares their `msgid` with the driver's before it runs."""
    load = _loader(function)

    def call(value: Any, *more: Any) -> Any:  # Spark counts the named arguments
        return load()(value, *more)

    return call


def shipped_processor(processor: Any, states: Sequence[State]) -> Any:
    """Return a stateful processor that declares its state on the driver without the packages of the workers.

    Parameters
    ----------
    processor : StatefulProcessor
        the processor; it may declare ``states`` and no others.
    states : sequence of State
        its values in Spark's state store.
    """
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    load, declared, silence = _loader(processor), tuple(states), silence_of_driver_worker()

    class Handle:
        def __init__(self, values: dict[str, Any]) -> None:
            self._values = values

        def getValueState(self, name: str, *_: Any) -> Any:
            return self._values[name]

        getListState = getMapState = getValueState

    # A class in a function travels with its code, so the driver's worker does not import its module.
    class Shipped(StatefulProcessor):
        def __reduce__(self) -> Any:
            return received, ()

        def init(self, handle: Any) -> None:
            self._values = {name: getattr(handle, method)(name, *types) for name, method, types in declared}
            self._inner: Any = None

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            if self._inner is None:
                self._inner = load()
                self._inner.init(Handle(self._values))
            yield from self._inner.handleInputRows(key, rows, timerValues)

        def close(self) -> None:
            if self._inner is not None:
                self._inner.close()

    def received() -> Any:
        silence()
        return Shipped()

    return received()


def _loader(value: Any) -> Callable[[], Any]:
    """Return a function that loads a value in a worker. It refers to nothing in this module, so it travels by value."""
    payload: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    expected, start, guide = msgid.__version__, WORKER_ERROR, _GUIDE
    loaded: list[Any] = []

    def load() -> Any:
        if loaded:
            return loaded[0]
        import pickle
        import platform
        import sys

        where = f"{sys.executable} on {platform.node()}"
        try:
            import msgid

            if msgid.__version__ != expected:
                raise RuntimeError(
                    f"{start}has msgid {msgid.__version__}, and the driver has {expected}: {msgid.__file__}, {where}"
                )
            loaded.append(pickle.loads(payload))
        except ImportError as error:
            raise RuntimeError(f"{start}cannot load a function: {error}; {where}. {guide}") from error
        return loaded[0]

    return load


def worker_error_in(error: BaseException) -> str | None:
    """Return the words of a worker that could not run a function, in an error of Spark."""
    return python_error_in(error, f"RuntimeError: ({WORKER_ERROR}.*)")


def check_workers(spark: SparkSession, *, stateful: bool = False) -> None:
    """Check, once per application, that the Python workers of a cluster have what functions need.

    A job of at most 32 tasks asks them. The workers of a local master are not asked: they run the driver's interpreter.

    Parameters
    ----------
    spark : SparkSession
        the session.
    stateful : bool
        whether a function with state will run.

    Raises
    ------
    WorkerError
        if a worker lacks a package, or has another version of `msgid` or another minor version of Python.
    """
    running = workers_of(spark)
    if running is None or {(running.application, stateful), (running.application, True)} & _checked:
        return
    wheels = ignored_wheels(spark)
    if wheels:
        raise WorkerError(f"{WORKER_ERROR}lacks {', '.join(wheels)}: Spark ignores a wheel in --py-files. {_GUIDE}")
    missing = driver_worker_problem(spark, _OF_STATE[:-1]) if stateful else None
    if missing is not None:
        raise WorkerError(f"{WORKER_ERROR}on the driver cannot run: {missing}. {_GUIDE}")
    tasks = min(max(running.tasks, 1), _MAX_TASKS)
    ask = _asking((*_PACKAGES, *(_OF_STATE if stateful else ())))
    try:
        answers = spark.range(0, tasks, 1, tasks).mapInArrow(ask, _WORKER_FIELDS).collect()
    except Exception as error:
        raise WorkerError(_explained(error)) from None
    workers = [row.asDict() for row in answers]
    _judge(workers)
    if stateful and any(SESSION_FILES.search(f"{worker['file']} {worker['python']}") for worker in workers):
        raise WorkerError(
            f"{WORKER_ERROR}cannot run a stream: Spark does not give it the files of addArtifacts. Start the server of "
            f"Spark Connect with the packages. {_GUIDE}"
        )
    _checked.add((running.application, stateful))


def _asking(packages: tuple[str, ...]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    names = [field.split()[0] for field in _WORKER_FIELDS.split(", ")]

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import platform
        import sys

        import pyarrow as pa

        missing = None
        for name in (*packages, "msgid", "spark_ext"):
            try:
                importlib.import_module(name)
            except Exception as error:  # another version of a package may raise anything
                missing = f"{name}: {error}"
                break
        core = sys.modules.get("msgid")
        facts = [getattr(core, name, None) for name in ("__version__", "backend", "__file__")]
        values = [platform.node(), sys.executable, *facts, missing]
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([value], pa.string()) for value in values], names=names)

    return ask


def _explained(error: Exception) -> str:
    """Return why no task could tell what a worker has, in one line."""
    conditions = conditions_of(error)
    if OTHER_PYTHON in conditions:
        return f"{WORKER_ERROR}has another minor version than the driver: {words_of(error, OTHER_PYTHON)}"
    return f"{WORKER_ERROR}cannot run: {cause_of(error)}. {_GUIDE}"


def _judge(workers: list[dict[str, Any]]) -> None:
    """Raise for the first worker that cannot run functions; warn about another core.

    Raises
    ------
    WorkerError
        if a worker lacks a package or has another version.
    """
    for worker in sorted(workers, key=str):
        where = f"{worker['python']} on {worker['host']}"
        if worker["version"] not in (None, msgid.__version__):
            raise WorkerError(
                f"{WORKER_ERROR}has msgid {worker['version']}, and the driver has {msgid.__version__}: {where}"
            )
        if worker["missing"]:
            raise WorkerError(f"{WORKER_ERROR}cannot import {worker['missing']}; {where}. {_GUIDE}")
    other = sorted({worker["host"] for worker in workers if worker["backend"] != msgid.backend})
    if other:
        cores = {"c": "the C core", "python": "the pure-Python reference"}
        theirs = next(worker["backend"] for worker in workers if worker["host"] == other[0])
        note = f"run {cores[theirs]} of msgid, and the driver {cores[msgid.backend]}"
        warnings.warn(f"the workers on {', '.join(other[:3])} {note}", CoreNote, stacklevel=3)
