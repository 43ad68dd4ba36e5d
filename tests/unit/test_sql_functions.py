"""The text of the SQL functions: a golden file shows each change in a diff. This needs PySpark but not Java.

After an intended change, write the file again: pytest tests/unit/test_sql_functions.py --update-golden
"""

import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from helpers.sql_layout import NOTES, laid_out, shortened
from pyspark.sql import functions as pyspark_functions

from spark_ext._private import create_like, stored_like
from spark_ext.columns import _dialect
from spark_ext.columns._dialect import F, SqlText, sql_text
from spark_ext.sql.functions import Definition, definitions

GOLDEN = Path(__file__).parents[1] / "vectors" / "functions.sql"


def statements():
    """The statements of `spark_ext.register`."""
    return [one.statement for one in definitions()]


def test_sql_functions_equal_the_golden_file(request):
    """Every SQL function equals the file; an intended change also changes the file."""
    text = "\n".join([NOTES, *(f"{laid_out(sql)};\n" for sql in statements())])
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text, encoding="ascii")
    assert GOLDEN.read_text(encoding="ascii") == text, "run pytest with --update-golden if the change is meant"


def test_layout_of_a_statement_changes_white_space_alone():
    """The golden file changes the white space of a statement, and shortens two parts; all else stays."""
    for sql in statements():
        assert re.sub(r"\s", "", laid_out(sql)) == re.sub(r"\s", "", shortened(sql))


def test_unknown_function_in_sql_raises():
    """An unknown function raises an error where it is named, not later in Spark."""
    with sql_text(), pytest.raises(AttributeError, match=r"cannot write F\.sqrt in SQL"):
        _ = F.sqrt
    with sql_text():
        assert str(F.upper(SqlText("id"))) == "upper(id)"


def test_functions_in_the_list_are_pysparks():
    """Each function in the list is one that PySpark has, and a statement that SQL users get calls it."""
    written = " ".join(statements())
    for name in _dialect._SAME_IN_SQL:
        assert hasattr(pyspark_functions, name)
        assert f"{name}(" in written


def test_sql_text_as_bool_raises():
    """``and``, ``or``, ``not`` and ``if`` on SQL text are an error, as they are on a Column."""
    with pytest.raises(ValueError, match="cannot use SQL text as a bool"):
        bool(SqlText("id") == SqlText("other"))


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
