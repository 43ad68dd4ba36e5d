"""Functions created in the catalog of a session are those that statements create."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.versions import since

import msgid
from spark_ext import _private
from spark_ext.sql import registration
from spark_ext.sql.registration import Definition, definitions

pytestmark = [pytest.mark.spark, since(4, 0)]

MODEL = Definition("msgid_model", "id STRING", "id", "STRING")


@pytest.fixture
def session(spark, connect):
    """A session of its own."""
    if connect:
        pytest.skip("the catalog is the server's")
    return spark.newSession()


def stored(session, name):
    """All that Spark keeps of a function but the time of its creation, with the called functions in order."""
    identifier = session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    properties = json.loads(session._jsparkSession.sessionState().catalog().lookupFunctionInfo(identifier).getUsage())
    properties["referredTempFunctionsNames"] = sorted(json.loads(properties["referredTempFunctionsNames"]))
    del properties["sqlFunction.createTime"]
    return properties


@pytest.mark.details
def test_functions_created_in_the_catalog_equal_those_of_statements(session, spark, monkeypatch):
    """Types, text, settings and called functions are equal, so that a query cannot tell the two ways apart."""
    registration.register(session)
    in_catalog = {one.name: stored(session, one.name) for one in definitions()}
    other = spark.newSession()
    monkeypatch.setattr(registration, "create_like", lambda *_: False)
    registration.register(other)
    assert in_catalog == {one.name: stored(other, one.name) for one in definitions()}
    assert in_catalog["msgid_parse"]["sqlConfig.spark.sql.session.timeZone"] == "UTC"


def test_register_creates_the_functions_in_the_catalog(session, monkeypatch):
    """`register` runs no statement in the session, and changes no setting that another query could see."""
    monkeypatch.setattr(session, "sql", None)
    monkeypatch.setattr(session.conf, "set", None)
    registration.register(session)
    assert session.catalog.functionExists("msgid_kind")


def test_function_of_the_user_with_the_same_name_is_replaced(session):
    """A function in Python, which no statement can replace, makes room for that in SQL."""
    session.udf.register("msgid_is_valid", lambda id: False, "boolean")
    registration.register(session)
    assert session.range(1).selectExpr("msgid_is_valid('7F0000010000238F000000000001E240')").first()[0]


SETTINGS = {
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.session.timeZone": "Asia/Tokyo",
}


@pytest.mark.details
@pytest.mark.parametrize("in_catalog", [True, False], ids=["in the catalog", "by statements"])
def test_functions_mean_the_same_whatever_the_settings_at_their_creation(session, monkeypatch, in_catalog):
    """Backslashes in the text of a function, and names of its parameters, are read as Spark reads them by default."""
    if not in_catalog:
        monkeypatch.setattr(registration, "create_like", lambda *_: False)
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    registration.register(session)
    assert {key: session.conf.get(key) for key in SETTINGS} == SETTINGS
    uuid, word = "'74b158ca-ddb3-498f-b0a9-9eec1c6197ae'", "'orders-0-42-ABCD'"
    asked = ["msgid_position('orders', 7, 0)", f"msgid_is_valid({word})", f"msgid_from_uuid({uuid}) IS NULL"]
    assert tuple(session.range(1).selectExpr(*asked).first()) == (str(msgid.position_id("orders", 7, 0)), False, False)


@pytest.mark.details
def test_threads_that_register_by_statements_leave_the_settings(session, monkeypatch):
    """The second thread finds the settings of the session, and not those that the first one works under."""
    monkeypatch.setattr(registration, "create_like", lambda *_: False)
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(registration.create_functions, session)
        while session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo" and not first.done():
            time.sleep(0.001)
        second = pool.submit(registration.create_functions, session)
        first.result()
        second.result()
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


@pytest.mark.parametrize(
    "hide",
    [
        pytest.param(lambda session: session._jvm.org, id="of other classes"),
        pytest.param(lambda session: object(), id="without a JVM"),
    ],
)
def test_a_session_of_another_inside_gets_its_functions_by_statements(session, monkeypatch, hide):
    """Where the classes of the catalog differ, `register` creates the same functions with statements."""
    monkeypatch.setattr(session, "_jvm", hide(session))
    assert not _private.create_like(session, MODEL, list(definitions()), lambda get: {})
    monkeypatch.undo()


def test_definition_with_an_unknown_type_creates_nothing(session):
    """One definition that Spark rejects leaves the catalog as it was."""
    wrong = [Definition("msgid_good", "id STRING", "id", "STRING"), Definition("msgid_bad", "id STRING", "id", "TEXT")]
    assert not _private.create_like(session, MODEL, wrong, lambda get: {})
    assert not session.catalog.functionExists("msgid_good")
