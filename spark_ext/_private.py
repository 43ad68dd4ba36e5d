"""All uses of interfaces of Spark that are not public, one function each.

Each function has the reason, the versions on which its test ran, and what happens where the interface is missing. No
other module uses such an interface; a test checks it. Prefer a public interface, also a slower one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    Under = Callable[[Callable[[str], "str | None"]], Mapping[str, str]]
    """Returns settings. The argument is a function that returns the value of a setting."""

FILE_SINK_LOG: Final = "_spark_metadata"
"""The folder in which Spark's own file sink lists its files.

Reason: a table with this folder belongs to that sink, and Spark ignores files that others add. Spark 3.5 to 4.3.
If Spark renames the folder, such a table is no longer refused.
"""

_DEFAULT: Final = ("fs.defaultFS", "spark.hadoop.fs.defaultFS")


class Unresolved(ValueError):
    """Hadoop cannot resolve a path."""


def is_classic(spark: SparkSession) -> bool:
    """Return whether a session has Spark's JVM behind Py4J.

    Reason: Spark Connect hides the JVM, and a client of Connect may lack Py4J. Spark 3.5 to 4.3.
    If the attribute is missing, the session is treated as one of Spark Connect.
    """
    return hasattr(spark, "_jsparkSession")


def use_own_python(spark: SparkSession | None) -> None:
    """Let the workers of a local master run this interpreter, or the one that ``spark.pyspark.python`` names.

    Reason: they run the ``python3`` of the path, which lacks the packages of an environment that is not activated.
    PySpark reads the setting in ``spark-submit`` alone, not from a session's builder. Spark 3.5 to 4.3.
    If the attribute is missing, the workers run the ``python3`` of the path.
    """
    if spark is None or not is_classic(spark):
        return
    context: Any = spark.sparkContext
    chosen = spark.conf.get("spark.pyspark.python", None) or sys.executable
    is_local = context.master == "local" or context.master.startswith("local[")
    is_default = not os.environ.get("PYSPARK_PYTHON") and getattr(context, "pythonExec", None) == "python3"
    if is_local and is_default and chosen:
        context.pythonExec = chosen


OTHER_PYTHON: Final = "PYTHON_VERSION_MISMATCH"
"""The condition of the error of a Python worker whose minor version is not the driver's.

Reason: PySpark raises it in the worker, so that only Spark's own error reaches the driver. Spark 3.5 to 4.3.
If Spark renames it, the error is Spark's first line.
"""


def silence_of_driver_worker() -> Callable[[], None]:
    """Return a function that keeps Spark's Python worker on the driver from printing its steps. It travels by value.

    Reason: for each stateful query, this worker prints the schema and the text of the function on standard error.
    Spark 4.0 to 4.3. If Spark renames the module, the lines are printed.
    """

    def silence() -> None:
        import __main__

        name = getattr(getattr(__main__, "__spec__", None), "name", None)
        if name == "pyspark.sql.streaming.transform_with_state_driver_worker":
            __main__.print = lambda *_, **__: None

    return silence


STATE_CLIENT: Final = "pyspark.sql.streaming.stateful_processor_api_client"
"""The module that a Python worker needs for a function with state.

Reason: its import fails if `protobuf` is older than the code that PySpark has generated, and the worker then ends
without a word. Spark 4.0 to 4.3. If Spark renames it, `process` and `deduplicate` of a stream raise `WorkerError`.
"""
SESSION_FILES: Final = re.compile(r"/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/")
"""The folder, in the path of a file on an executor, of the files that ``addArtifacts`` of a session brings.

Reason: the tasks of a stream over Spark Connect do not get these files, and Spark does not say so. Spark 4.3.
If Spark renames the folder, such a stream ends with an error of its first task.
"""
_LOCAL: Final = re.compile(r"local(\[.*\])?")


class Workers(NamedTuple):
    """Python workers that may have other packages than the driver."""

    application: str
    tasks: int
    """The number of tasks that run at once."""


def workers_of(spark: SparkSession) -> Workers | None:
    """Return the Python workers of a session; None for those of a local master, which run on the driver's machine.

    Reason: no public function of a session of Spark Connect returns its application or its number of cores. Spark 3.5
    to 4.3. If the settings are missing, the session has its own ID and three tasks.
    """
    if is_classic(spark):
        context: Any = spark.sparkContext
        if _LOCAL.fullmatch(context.master):
            return None
        return Workers(f"{context.applicationId} {context.pythonExec}", context.defaultParallelism)
    if _LOCAL.fullmatch(spark.conf.get("spark.master", None) or ""):
        return None
    remote: Any = spark
    return Workers(str(remote.session_id), int(spark.conf.get("spark.default.parallelism", None) or 3))


def ignored_wheels(spark: SparkSession) -> list[str]:
    """Return the wheels in ``--py-files``, which PySpark leaves out of the path of the workers without a word.

    Reason: the list of extensions is in PySpark's code alone. Spark 3.5 to 4.3. Empty over Spark Connect.
    """
    if not is_classic(spark) or ".whl" in getattr(spark.sparkContext, "PACKAGE_EXTENSIONS", ()):
        return []
    names = (spark.sparkContext.getConf().get("spark.submit.pyFiles") or "").split(",")
    return [os.path.basename(name) for name in names if name.endswith(".whl")]


def driver_worker_problem(spark: SparkSession, packages: Sequence[str]) -> str | None:
    """Return why the Python worker that Spark starts on the driver cannot run; None if it can, or if it is unknown.

    Reason: for a function with state, the JVM of the driver runs the workers' interpreter in its own folder, so a
    relative path that an archive brings to executors may be missing there. Spark 4.0 to 4.3. None over Spark Connect.
    """
    if not is_classic(spark):
        return None
    context: Any = spark.sparkContext
    program = "import sys, " + ", ".join(packages) + "; print('%d.%d' % sys.version_info[:2])"
    paths = [path for path in (context.environment.get("PYTHONPATH"),) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **dict.fromkeys(("PYTHONHOME",), "")}
    environment = {name: value for name, value in environment.items() if value}
    try:
        done = subprocess.run(
            [context.pythonExec, "-c", program],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
        )
    except OSError as error:
        return f"the workers' interpreter {context.pythonExec!r} is missing in {os.getcwd()}: {error.strerror}"
    if done.returncode:
        return f"{context.pythonExec}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'it ended'}"
    return None


def default_filesystem(spark: SparkSession) -> str | None:
    """Return Spark's default file system, such as ``hdfs://node:8020``.

    Reason: Hadoop's configuration files are not in ``spark.conf``. Spark 3.5 to 4.3.
    Over Spark Connect, only the session's own settings are known; None if they lack it.
    """
    if not is_classic(spark):
        return next((address for name in _DEFAULT if (address := spark.conf.get(name, None))), None)
    internal: Any = spark
    return str(internal._jsparkSession.sessionState().newHadoopConf().get(_DEFAULT[0]))


def qualified_path(spark: SparkSession, path: str) -> str | None:
    """Return the URL of a relative path in Spark's working folder, which may differ from Python's.

    Reason: no public function returns that folder. Spark 3.5 to 4.3. None over Spark Connect.

    Raises
    ------
    Unresolved
        If Hadoop cannot resolve the path.
    """
    if not is_classic(spark):
        return None
    from py4j.protocol import Py4JJavaError

    internal: Any = spark
    settings = internal._jsparkSession.sessionState().newHadoopConf()
    try:
        named = internal._jvm.org.apache.hadoop.fs.Path(path)
        return str(named.getFileSystem(settings).makeQualified(named).toString())
    except Py4JJavaError as error:
        raise Unresolved(str(error.java_exception)) from None


_EVENT_TIME: Final = "spark.watermarkDelayMs"
_WATERMARK: Final = "EventTimeWatermark"


def watermark_of(df: DataFrame) -> dict[str, int] | None:
    """Return the columns of a stream that have a watermark, and its delay in milliseconds; None without a watermark.

    Reason: Spark refuses a second watermark when the query runs. The mark of a column alone does not show one, because
    Spark stores it in Parquet files too; the plan shows it. Spark 4.0 to 4.3. If Spark renames one of them, its own
    error comes when the query runs.
    """
    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        df.explain(extended=True)
    if _WATERMARK not in plan.getvalue():
        return None
    return {field.name: field.metadata[_EVENT_TIME] for field in df.schema if _EVENT_TIME in field.metadata}


_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_WORKER: Final = "pyspark.sql.connect.streaming.worker.foreach_batch_worker"


def running_query(spark: SparkSession) -> str | None:
    """Return the ID of the streaming query that runs the current micro-batch.

    Reason: ``foreachBatch`` does not pass it. Spark 3.5 to 4.3. None if it is unknown: outside a query, in another
    thread, and over Spark Connect. Then `write_once` needs ``app_id``.
    """
    from pyspark.sql.utils import is_remote

    return None if is_remote() else spark.sparkContext.getLocalProperty(_QUERY_ID)


def read_by_batch(spark: SparkSession, batch_id: int) -> str | None:
    """Return a digest of what a micro-batch reads: the offsets of its sources, and the files of a source of files.

    A replay has the same ones, also in a copy of the checkpoint. A batch of the same number after an older checkpoint
    has others, unless it reads the same rows.

    Reason: ``foreachBatch`` passes neither the query nor its offsets; the sessions of all queries share a list of them,
    with the folders of their checkpoints. Spark 4.0 to 4.3. None outside a query, in another thread, over Spark
    Connect, and if Spark renames one of the members. Then a batch is known by its number alone.
    """
    query = running_query(spark)
    if query is None:
        return None
    internal: Any = spark
    try:
        id = internal._jvm.java.util.UUID.fromString(query)
        root = internal._jsparkSession.sharedState().activeStreamingQueries().get(id).resolvedCheckpointRoot()
        settings = internal._jsparkSession.sessionState().newHadoopConf()

        def lines_of(*names: str) -> list[str]:
            paths = [internal._jvm.org.apache.hadoop.fs.Path(f"{root}/{name}") for name in names]
            path = next((one for one in paths if one.getFileSystem(settings).exists(one)), paths[0])
            file = path.getFileSystem(settings).open(path)
            try:
                return bytes(internal._jvm.org.apache.commons.io.IOUtils.toByteArray(file)).decode().splitlines()
            finally:
                file.close()

        content = lines_of(f"offsets/{batch_id}")[2:]  # behind the version, and the time and settings of the plan
        for source, offset in enumerate([*content]):
            if match := _FILES.fullmatch(offset):  # the number of an entry in the log of the source
                log = f"sources/{source}/{match[1]}"
                content += [line for line in lines_of(log, f"{log}.compact") if f'"batchId":{match[1]}}}' in line]
    except Exception:  # Py4J's errors for a missing member or file
        return None
    return hashlib.blake2b("\n".join(content).encode(), digest_size=16).hexdigest()


_FILES: Final = re.compile(r'\{"logOffset":(\d+)\}')
"""The offset of a source of files."""


def running_plan(df: DataFrame) -> tuple[str, int]:
    """Return the run of the streaming query that runs this code, and a number that equal plans of the run share.

    Reason: a query names its jobs by its run, and Spark does not tell the run otherwise. Over Spark Connect, each run
    has its own process for ``foreachBatch``. Spark 3.5 to 4.3.
    Empty text and 0 where the run is unknown: outside a query, in another thread, and if Spark renames the module of
    that process. Then a second write of one batch to one table is taken for a replay.
    """
    if is_classic(df.sparkSession):
        if running_query(df.sparkSession) is None:
            return "", 0
        run = str(df.sparkSession.sparkContext.getLocalProperty("spark.jobGroup.id"))
    elif getattr(sys.modules["__main__"].__spec__, "name", None) == _BATCH_WORKER:
        run = str(os.getpid())
    else:
        return "", 0
    return run, df.semanticHash()


_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]")


def conditions_of(error: BaseException) -> set[str]:
    """Return Spark's error conditions of an error and of its causes, such as ``FAILED_READ_FILE.NO_HINT``.

    Reason: ``getCondition()`` returns the outer condition alone (``STREAM_FAILED``), and Py4J's errors do not have it.
    The text of an error has each condition in square brackets. Spark 3.5 to 4.3.
    If the text lacks them, an unreadable file stops its job with Spark's error.

    >>> conditions_of(RuntimeError("[STREAM_FAILED] Query: [FAILED_READ_FILE.NO_HINT] Encountered error [id = 7]")) == {
    ...     "STREAM_FAILED", "FAILED_READ_FILE.NO_HINT"}
    True
    """
    outer = getattr(error, "getCondition", getattr(error, "getErrorClass", lambda: None))()
    return {*_CONDITION.findall(str(error)), *([outer] if outer else [])}


def words_of(error: BaseException, condition: str) -> str:
    r"""Return the words of an error condition in one line.

    Reason: the text of an error of Java has a stack trace around them, and Py4J's errors have nothing else. Spark 4.1.
    If the text lacks the condition, this is its first line.

    >>> words_of(RuntimeError("o7.save.\n: x.E: [BAD] row:\n - k : -1\n\tat x.y(z)\nCaused by: x.E: [BAD] row"), "BAD")
    '[BAD] row: - k : -1'
    """
    text = str(error)
    start = text.find(f"[{condition}]")
    if start < 0:
        return text.strip().split("\n")[0]
    words = re.split(r"\n\s+at |\nCaused by|\n\n|\nJVM stacktrace| SQLSTATE: ", text[start:], maxsplit=1)[0]
    return " ".join(words.split())


def is_java_error(error: BaseException) -> bool:
    """Return whether an error of Java lacks an exception of PySpark, so that its text is a stack trace.

    Reason: PySpark converts most errors of Java, and the command line prints one line for the others. Spark 3.5 to 4.3.
    If Py4J is missing (a client of Spark Connect), such errors do not occur.
    """
    try:
        from py4j.protocol import Py4JJavaError
    except ImportError:
        return False
    return isinstance(error, Py4JJavaError)


_TRACED: Final = "Traceback (most recent call last):"
_CAUSE: Final = re.compile(r"^(?:Caused by)?: (?:[\w.$]*\.)?(\w+(?:: .*)?)$", re.MULTILINE)


def cause_of(error: BaseException) -> str:
    r"""Return the innermost cause of an error of Spark in one line.

    Reason: PySpark keeps the causes of an error of Java as a stack trace in its text. Spark 3.5 to 4.3.
    An error of Python in a worker or a data source is the line after its traceback. If the text lacks both, this is its
    first line.

    >>> cause_of(RuntimeError("o7.save.\n: org.apache.spark.SparkException: failed\nCaused by: java.io.EOFException"))
    'EOFException'
    >>> cause_of(RuntimeError("failed: Traceback (most recent call last):\n  File 'a'\nValueError: no path\n\n"))
    'ValueError: no path'
    """
    text = str(error)
    traced = text.rpartition(_TRACED)[2].splitlines() if _TRACED in text else []
    for line in traced:
        if line and not line[0].isspace():
            return line
    causes: list[str] = _CAUSE.findall(text)
    return causes[-1] if causes else text.strip().split("\n")[0]


_UNREADABLE: Final = re.compile(r"Encountered error while reading file (\S+)\.\s")


def unreadable_file(error: BaseException) -> str | None:
    """Return the file that Spark cannot read.

    Reason: the file is in the words of the condition ``FAILED_READ_FILE`` alone. Spark 4.0 to 4.3.
    None if the words differ; then the command line prints the cause without the file.

    >>> unreadable_file(RuntimeError("Encountered error while reading file file:///in/a%20b.csv. File is short."))
    '/in/a b.csv'
    >>> unreadable_file(RuntimeError("Encountered error while reading file file:/in/a.parquet. Could not read footer."))
    '/in/a.parquet'
    """
    match = _UNREADABLE.search(str(error))
    return None if match is None else re.sub("^file:(//)?", "", unquote(match[1]))


def python_error_in(error: BaseException, pattern: str) -> str | None:
    r"""Return the words of an error of this package that was raised in a worker or in ``foreachBatch``.

    Reason: Spark keeps a Python error only as the text of its own error. Spark 3.5 to 4.3.
    None if the text does not match; then the job ends with Spark's error.

    Parameters
    ----------
    error : Exception
        Spark's error.
    pattern : str
        Regular expression of the error's name and words, from which the first group is returned.

    >>> python_error_in(RuntimeError("in worker:\nValueError: buckets must be 8\n at X"), r"ValueError: (buckets .*)")
    'buckets must be 8'
    """
    match = re.search(pattern, str(error))
    return None if match is None else match[1].strip()


def is_lost_commit(error: BaseException) -> bool:
    """Return whether a commit of Iceberg failed because other commits came first, so that it may succeed later.

    Reason: Spark does not have a condition for it; the name of Iceberg's exception is in the text of the error and of
    its causes. Iceberg 1.11 on Spark 4.1. If the name changes, the batch fails, and a later run writes it.
    """
    return "org.apache.iceberg.exceptions.CommitFailedException" in str(error)


_SQL_FUNCTION: Final = "sqlFunction."
"""The class that Spark names for a function in SQL, and the prefix of its properties."""
_PARAMETERS: Final = f"{_SQL_FUNCTION}inputParam"
_COMMENT: Final = f"{_SQL_FUNCTION}comment"
_CALL: Final = re.compile(r"\b(_?msgid_\w+)\(")
_ONLY_PART: Final = "000"
"""The number that Spark puts before each part of the stored form. Here the form has one part."""


class SqlDefinition(Protocol):
    """The definition of an SQL function."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def returns(self) -> str: ...
    @property
    def deterministic(self) -> bool: ...
    @property
    def comment(self) -> str: ...
    @property
    def statement(self) -> str: ...


def create_like(spark: SparkSession, model: SqlDefinition, wanted: Sequence[SqlDefinition], under: Under) -> bool:
    """Create temporary functions as copies of a function that a statement has created.

    Reason: Spark parses and analyzes the body of each function when a statement creates it, and again in each query.
    The statement of the model runs in a session of its own, so the settings of ``spark`` stay as they are for its other
    queries. Spark 4.0 to 4.3. Where the classes of Spark's JVM differ, or Spark Connect hides them, this returns False,
    and statements must create the functions.

    Args:
        spark: The session that gets the functions.
        model: A function with a short body.
        wanted: The functions.
        under: Gives the settings for the statement, which Spark stores with the functions.

    Returns:
        Whether the functions were created.
    """
    if not is_classic(spark):
        return False
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        _create(spark, model, wanted, under)
    except (Py4JError, PySparkException, AttributeError, TypeError, ValueError):
        return False
    return True


def _create(spark: SparkSession, model: SqlDefinition, wanted: Sequence[SqlDefinition], under: Under) -> None:
    internal: Any = spark  # the stubs know nothing of the JVM
    session, jvm = internal._jsparkSession, internal._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    classes, identifier = catalyst.catalog, catalyst.FunctionIdentifier
    stored, file = classes.CatalogFunction, classes.FunctionResourceType.fromString("file")
    resource, read = classes.FunctionResource, classes.SQLFunction.fromCatalogFunction
    sequence, parser = jvm.org.apache.spark.api.python.PythonUtils.toSeq, session.sessionState().sqlParser()

    private = session.newSession()
    for key, value in under(private.conf().get).items():
        private.conf().set(key, value)
    private.sql(model.statement)
    form = private.sessionState().catalog().lookupFunctionInfo(identifier(model.name)).getUsage()
    functions = []
    for one in wanted:
        parts = sequence([resource(file, _ONLY_PART + stored_like(form, one))])
        functions.append(read(stored(identifier(one.name), _SQL_FUNCTION, parts), parser))
    for function in functions:
        session.sessionState().catalog().registerSQLScalarFunction(function, True)


def stored_like(model: str, wanted: SqlDefinition) -> str:
    """Return the form in which Spark stores a function: everything but its definition is that of a model.

    Args:
        model: Stored form of the model, JSON. It has settings of the session, which Spark stores with a function.
        wanted: The definition.

    Raises:
        ValueError: if the form of the model is not JSON, or has other properties than are known here.
    """
    properties = json.loads(model)
    own = {
        _PARAMETERS: wanted.parameters,
        f"{_SQL_FUNCTION}returnType": wanted.returns,
        f"{_SQL_FUNCTION}expression": wanted.body,
        f"{_SQL_FUNCTION}deterministic": str(wanted.deterministic).lower(),
        _COMMENT: wanted.comment,
        "referredTempFunctionsNames": json.dumps(sorted(set(_CALL.findall(wanted.body)))),
    }
    if not own.keys() <= properties.keys():
        raise ValueError(f"cannot store {wanted.name}: this Spark has other properties, got {model!r}")
    form = {**properties, **own}
    if not wanted.parameters:
        del form[_PARAMETERS]
    return json.dumps(form)


def leave_out_logs_of_calls() -> None:
    """Leave out of the logs the traceback of each call to the JVM that an interrupt ends.

    Reason: Py4J logs it by its own loggers and by the root logger. Spark 4.0 to 4.3; elsewhere the traceback is logged.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.root.addFilter(lambda record: "py4j" not in record.pathname)
