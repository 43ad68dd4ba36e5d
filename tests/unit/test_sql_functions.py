"""The file of the SQL functions is what the script writes from the column functions. PySpark is needed, Java is not."""

import json
import re
import sys

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql import functions as pyspark_functions

from spark_ext._private import create_like, stored_like
from spark_ext.columns import reading
from spark_ext.sql import registration

sql_functions = pytest.importorskip("sql_functions", reason="the tests run outside the repository")
from sql_layout import file_of, laid_out  # noqa: E402

Definition = registration.Definition


def test_file_is_what_the_script_writes():
    """After an intended change, run the script and review the diff: it changes results for users of SQL."""
    written = file_of(sql_functions.definitions())
    assert sql_functions.FILE.read_text(encoding="ascii") == written, "run python scripts/sql_functions.py"


def test_definitions_of_the_file_are_those_of_the_script():
    """Each part comes back, and only the white space of a body differs."""
    read, made = registration.definitions(), list(sql_functions.definitions())
    assert [one._replace(body="") for one in read] == [one._replace(body="") for one in made]
    assert [re.sub(r"\s", "", one.body) for one in read] == [re.sub(r"\s", "", one.body) for one in made]


@pytest.mark.parametrize("text", ["'a, (b'", "CASE WHEN a THEN 'x AND y' ELSE f(b, ')') END", "f('it\\\\'s', 'AND')"])
def test_layout_leaves_texts_alone(text):
    """White space, brackets and words in a text are not code."""
    long = f"concat({', '.join([text] * 30)})"
    lines = laid_out(long)
    assert len(lines) > 1
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", long)
    assert all(literal in "\n".join(lines) for literal in re.findall(r"'(?:[^'\\]|\\.)*'", text))


def test_column_functions_make_columns_again_after_the_script():
    """The script replaces functions of the modules only while it writes."""
    assert reading.F is pyspark_functions
    assert reading.hex_text.__module__ == "spark_ext.columns.identity"


MODEL = Definition("msgid_checksum_ok", "payload BINARY", "payload IS NULL", "BOOLEAN", comment="Return nothing.")
FORM = {
    "sqlFunction.inputParam": "payload BINARY",
    "sqlFunction.returnType": "BOOLEAN",
    "sqlFunction.expression": "payload IS NULL",
    "sqlFunction.deterministic": "true",
    "sqlFunction.comment": "Return nothing.",
    "referredTempFunctionsNames": "[]",
    "sqlConfig.spark.sql.session.timeZone": "UTC",
}
"""The properties in which Spark stores a function, without those that the functions here do not change."""


def test_stored_form_is_that_of_the_model_with_another_definition():
    """Settings that Spark stored with the model stay; the functions that the body calls are listed."""
    body = "msgid_b(_msgid_a(msgid_new.id)) + _msgid_a('\"')"
    wanted = Definition("msgid_new", "id STRING", body, "STRUCT<a: INT NOT NULL>", comment="It's new.")
    assert json.loads(stored_like(json.dumps(FORM), wanted)) == {
        "sqlFunction.inputParam": "id STRING",
        "sqlFunction.returnType": "STRUCT<a: INT NOT NULL>",
        "sqlFunction.expression": body,
        "sqlFunction.deterministic": "true",
        "sqlFunction.comment": "It's new.",
        "referredTempFunctionsNames": '["_msgid_a", "msgid_b"]',
        "sqlConfig.spark.sql.session.timeZone": "UTC",
    }


def test_stored_form_without_parameters_has_none_of_the_model():
    """A function without parameters does not list them, and one of new values is not deterministic."""
    form = json.loads(stored_like(json.dumps(FORM), Definition("msgid_new", "", "uuid()", "STRING", False)))
    assert "sqlFunction.inputParam" not in form
    assert form["sqlFunction.deterministic"] == "false"


@pytest.mark.parametrize(
    "form", ["", "not JSON", json.dumps({name: text for name, text in FORM.items() if not name.endswith("Names")})]
)
def test_stored_form_of_an_unknown_kind_raises(form):
    """A version of Spark that stores functions in another form gets no function in a form of its own."""
    with pytest.raises(ValueError, match=r"Expecting value|this Spark has other properties, got"):
        stored_like(form, MODEL)


def test_session_without_a_jvm_gets_its_functions_by_statements(monkeypatch):
    """The client of Spark Connect does not have a catalog here, and may lack Py4J."""
    monkeypatch.setitem(sys.modules, "py4j.protocol", None)
    assert not create_like(object(), MODEL, [MODEL], lambda get: {})
