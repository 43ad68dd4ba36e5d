"""Functions created in the catalog of a session are those that statements create."""

import json

import pytest
from helpers.versions import since

from spark_ext.sql import _session_catalog, registration
from spark_ext.sql.functions import Definition, definitions

pytestmark = [pytest.mark.spark, since(4, 0)]


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


def test_functions_created_in_the_catalog_equal_those_of_statements(session, spark, monkeypatch):
    """Types, text, settings and called functions are equal, so that a query cannot tell the two ways apart."""
    registration.register(session)
    in_catalog = {one.name: stored(session, one.name) for one in definitions()}
    other = spark.newSession()
    monkeypatch.setattr(registration, "create_like", lambda *_: False)
    registration.register(other)
    assert in_catalog == {one.name: stored(other, one.name) for one in definitions()}
    numbering = [stored(one, "msgid_assign") for one in (session, other)]
    leases = {one.pop("sqlFunction.expression") for one in numbering}
    assert len(leases) == 2
    assert numbering[0] == numbering[1]
    assert in_catalog["msgid_parse"]["sqlConfig.spark.sql.session.timeZone"] == "UTC"


def test_register_creates_the_functions_in_the_catalog(session, monkeypatch):
    """`register` writes a statement for its model alone."""
    statements = []
    run = session.sql
    monkeypatch.setattr(session, "sql", lambda text: statements.append(text.split("(")[0]) or run(text))
    registration.register(session)
    assert [text.split()[-1] for text in statements] == ["msgid_checksum_ok"]


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
    assert not _session_catalog.create_like(session, "msgid_checksum_ok", list(definitions()))
    monkeypatch.undo()


def test_definition_with_an_unknown_type_creates_nothing(session):
    """One definition that Spark rejects leaves the catalog as it was."""
    session.sql("CREATE TEMPORARY FUNCTION msgid_checksum_ok(payload BINARY) RETURN true")
    wrong = [Definition("msgid_good", "id STRING", "id", "STRING"), Definition("msgid_bad", "id STRING", "id", "TEXT")]
    assert not _session_catalog.create_like(session, "msgid_checksum_ok", wrong)
    assert not session.catalog.functionExists("msgid_good")
