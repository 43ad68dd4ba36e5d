"""The SQL functions return the same results as the column functions, also for hostile input."""

import pytest
from helpers.versions import since
from pyspark.errors import AnalysisException, PySparkException
from sql_functions import EXAMPLES, FUNCTIONS, example_of

import msgid
import spark_ext
from spark_ext._settings import settings

pytestmark = [pytest.mark.spark, since(4, 0)]

V1 = "0156F7E71C361B21BC024CCDBE00000000"
BROKER = "7F0000010000238F000000000001E240"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"


OF_THE_CASTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.binaryOutputStyle": "UTF-8",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
}
"""The settings on which the text of an example depends."""


@pytest.fixture(scope="module")
def registered(spark):
    """Return the session with the functions registered."""
    assert spark_ext.register(spark) == [*FUNCTIONS, "msgid_assign", "msgid_generate"]
    return spark


def test_functions_that_a_session_lists_are_the_public_ones(registered):
    """``SHOW FUNCTIONS`` leaves out those that only others call."""
    listed = [row.function for row in registered.sql("SHOW FUNCTIONS LIKE 'msgid*'").collect()]
    assert sorted(listed) == sorted([*FUNCTIONS, "msgid_assign", "msgid_generate"])


@since(4, 2)
def test_description_of_each_function_says_what_it_returns(registered):
    """``DESCRIBE FUNCTION`` shows comments since Spark 4.2."""
    for name, (function, *_) in FUNCTIONS.items():
        lines = [row[0] for row in registered.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect()]
        (said,) = [line.split(":", 1)[1].strip() for line in lines if line.startswith("Comment:")]
        assert said.startswith(("Parse", "Return"))
        first = function.__doc__.split("\n\n")[0].replace("\n    ", " ")
        assert said == f"{first} Example: {example_of(name)}"


def test_example_of_each_function_gives_what_it_says(registered, other_settings):
    """The reference and `DESCRIBE FUNCTION` show one example of each function."""
    assert EXAMPLES.keys() == FUNCTIONS.keys()
    calls = ", ".join(f"CAST({call} AS STRING) AS {name}" for name, (call, _) in EXAMPLES.items())
    with settings(registered, OF_THE_CASTS):
        shown = registered.sql(f"SELECT {calls}").first().asDict()
    assert shown == {name: result for name, (_, result) in EXAMPLES.items()}


@pytest.mark.details
def test_msgid_assign_never_repeats_an_id(registered, tmp_path):
    """Neither two statements, two calls, the branches of a CASE, nor the batches of a stream give an ID twice."""
    numbers = registered.range(1000)
    numbers.createOrReplaceTempView("numbers")
    statement = (
        "SELECT msgid_assign() AS one, msgid_assign() AS two, "
        "CASE WHEN id % 2 = 0 THEN msgid_assign() ELSE msgid_assign() END AS three FROM numbers"
    )
    made = str(tmp_path / "made")

    def write(batch, number):  # over Spark Connect, it runs in a process of the server
        batch.selectExpr(f"{number} AS batch", "msgid_assign() AS one").write.mode("append").parquet(made)

    for _ in range(2):
        numbers.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    stream = registered.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    stream.writeStream.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
    rows = [row for _ in range(2) for row in registered.sql(statement).collect()]
    batches = registered.read.parquet(made)
    assert batches.select("batch").distinct().count() > 1
    rows += batches.select("one").collect()
    ids = [msgid.MessageId(value) for row in rows for value in row]
    assert len(set(ids)) == len(ids) == 2 * 3 * 1000 + 2 * 1000
    assert {id.origin for id in ids} == {"assigned"}


@pytest.mark.details
def test_msgid_assign_in_another_query_of_a_dataframe_has_another_node(registered):
    """A plan keeps the seed of `uuid()`, also one that Spark Connect has cached; the time of each query is its own."""
    df = registered.sql("SELECT msgid_assign() AS id FROM range(3)")
    first, second = ({row.id for row in one.collect()} for one in (df, df.where("true")))
    assert (len(first), first & second) == (3, set())


def test_msgid_assign_numbers_the_rows_of_one_call(registered):
    """One call in one statement has one node and one time, however often a task runs."""
    made = registered.sql("SELECT msgid_assign() AS id FROM range(0, 300, 1, 3)")
    ids = [msgid.MessageId(row.id) for row in made.collect()]
    assert len({(id.mac, id.seconds) for id in ids}) == 1
    assert sorted((id.pid, id.sequence) for id in ids) == [(pid, row) for pid in range(3) for row in range(100)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("msgid_parse('x')", "invalid message id 'x': must have 32, 34, 56 or 58 hex digits, got 1 characters"),
        (f"msgid_parse_v0('{V1}')", "must be of version 0, got version 1"),
        ("msgid_derive('x', 'y')", "invalid message id 'x'"),
        ("msgid_position('log', -1, now())", "offset must be 0 to 281474976710655, got -1"),
        (f"msgid_derive_at('{V1}', 'y', -62135596801)", "at must be Unix seconds within the years 1 to 9999, got -621"),
    ],
)
def test_sql_of_invalid_ids_raises_what_columns_raise(registered, ansi, call, message):
    """SQL and columns raise the same error condition and message."""
    with pytest.raises(PySparkException, match=message) as caught:
        registered.sql(f"SELECT {call}").collect()
    assert caught.value.getCondition() == "USER_RAISED_EXCEPTION"
    quoted = call.replace("'x'", "CAST(NULL AS STRING)").replace("-1", "CAST(NULL AS BIGINT)")
    if quoted != call:
        assert registered.sql(f"SELECT {quoted}").first()[0] is None


def test_sql_functions_in_a_plan_are_inlined(registered, connect):
    """A query plan contains the expressions of the functions, no function calls, and no Python."""
    if connect:
        pytest.skip("the plan is the server's")
    df = registered.createDataFrame([(V1,)], "id string").selectExpr("msgid_time(id)", "msgid_kind(id)")
    plan = df._jdf.queryExecution().executedPlan().toString()
    assert "crc32" in plan
    assert "Python" not in plan


def test_sql_that_generates_makes_a_new_id_per_row(registered):
    """``msgid_generate`` returns valid IDs, also in a statement without a table."""
    rows = registered.sql("SELECT id, msgid_generate() AS made FROM range(100)").collect()
    assert len({row.made for row in rows}) == 100
    assert {msgid.parse(row.made).origin for row in rows} <= {"mac", "random"}
    assert msgid.is_valid(registered.sql("SELECT msgid_generate()").first()[0])


TEXT_MOMENT = "'2024-03-23 14:50:38'"
AT_A_MOMENT = [
    "msgid_position('log', 1, {})",
    f"msgid_derive_at('{V1}', 'name', {{}})",
    f"msgid_v0_time('{CLIENT}', {{}}, 'UTC')",
    "msgid_is_expired({}, 1, timestamp_seconds(0))",
    "msgid_is_expired(timestamp_seconds(0), 1, {})",
]


@pytest.mark.details
def test_sql_functions_of_a_moment_without_a_zone_raise(registered, ansi):
    """A date or a timestamp without a time zone is rejected before the query runs, and text when it is read."""
    for call in AT_A_MOMENT:
        for at in ("date'2024-03-23'", "timestamp_ntz'2024-03-23 14:50:38'"):
            with pytest.raises(AnalysisException, match="cannot cast"):
                _ = registered.sql(f"SELECT {call.format(at)}").schema
        with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
            registered.sql(f"SELECT {call.format(TEXT_MOMENT)}").collect()
    row = registered.sql(
        "SELECT msgid_position('log', 1, timestamp_seconds(1648047038)) AS at, "
        "msgid_position('log', 1, 1648047038) AS unix"
    ).first()
    assert row.at == row.unix == str(msgid.position_id("log", 1, 1_648_047_038))


WRONG_TYPES = [
    *(f"msgid_position({arguments})" for arguments in ("'a', 'x', 5", "'a', true, 5", "true, 1, 5", "'a', 1, 1e30")),
    *(f"msgid_position({arguments})" for arguments in ("X'41', 1, 5", "'a', 1, '2024-01-01'", "'a', '7', '5'")),
    f"msgid_derive('{V1}', true)",
    f"msgid_derive('{V1}', 1.5D)",
    "msgid_derive(5, 'a')",
    f"msgid_derive_at('{V1}', 'a', 'x')",
    *(f"msgid_{name}(5)" for name in ("parse", "kind", "time", "to_binary", "from_uuid", "translate_v0")),
    *(f"msgid_{name}(5)" for name in ("try_parse", "is_valid", "from_iggy_id")),
    f"msgid_v0_time('{CLIENT}', 'x', 'UTC')",
    f"msgid_v0_time('{CLIENT}', 5, 5)",
    *(f"msgid_is_expired({arguments})" for arguments in ("'x', 5, 5", "5, 'x', 5", "5, 1e30, 5", "5, 5, 'x'")),
]


@pytest.mark.details
def test_sql_functions_of_wrong_types_are_the_same_with_and_without_ansi_mode(registered):
    """Neither a silent NULL nor another ID: what a function returns or raises never depends on ANSI mode."""
    results = []
    for ansi in ("true", "false"):
        with settings(registered, {"spark.sql.ansi.enabled": ansi}):
            results.append({call: outcome_of(registered, call) for call in WRONG_TYPES})
    assert results[0] == results[1]
    assert results[0]["msgid_position('a', 1, '2024-01-01')"] == "CAST_INVALID_INPUT"


def outcome_of(spark, call):
    """Return the value of a call, or the condition of its error."""
    try:
        return spark.sql(f"SELECT {call}").first()[0]
    except PySparkException as error:
        return error.getCondition()


@pytest.mark.parametrize(
    ("case", "ansi"), [(("1.7", r"1\.7"), "true"), (("double('NaN')", "NaN"), "false")], indirect=["ansi"]
)
def test_sql_position_of_an_offset_that_is_not_an_integer_raises(registered, ansi, case):
    """A fraction or NaN as an offset raises an error and is not rounded."""
    offset, shown = case
    with pytest.raises(PySparkException, match=f"offset must be 0 to 281474976710655, got {shown}"):
        registered.sql(f"SELECT msgid_position('log', {offset}, 0)").collect()


@pytest.mark.details
def test_sql_functions_of_binary_ids_agree_with_those_of_text(registered, ansi):
    """The functions that read fields or make an ID, whose plans are large; `test_equality` has the others."""
    df = registered.createDataFrame([(id,) for id in (V1, BROKER, CLIENT, f"00{BROKER}")], "id string")
    calls = ("msgid_try_parse({})", "msgid_try_parse_v0({})", "msgid_derive({}, 'invoice')")
    for call in calls:  # a query for each: the generated code of all of them is more than Java takes
        made = [f"{call.format(held)} <=> {call.format('id')}" for held in ("unhex(id)", "lower(id)")]
        assert {value for row in df.selectExpr(*made).collect() for value in row} == {True}, call


def test_sql_functions_of_text_as_long_as_bytes_take_it_as_text(registered):
    """Text of 16, 17, 28 and 29 characters is not read as the bytes of an ID."""
    texts = (
        "orders-0-42-abcd",
        "orders-0-42-abc\n",
        "orders-0-4\tabc\r\n",
        "orders-0-42-abcde",
        "Bestellung-0-42 für den Kund",
        "z" * 28,
        "z" * 29,
    )
    df = registered.createDataFrame([(text,) for text in texts], "id string")
    assert {row[0] for row in df.selectExpr("msgid_kind(id)").collect()} == {None}
    for text in texts[1::4]:
        df = registered.createDataFrame([(text,)], "id string")
        with pytest.raises(PySparkException, match=f"invalid message id ['\"]{text[:10]}"):
            df.selectExpr("msgid_parse(id)").collect()


def test_register_in_another_session_of_the_application_works(registered, connect):
    """Each session gets its own functions; the sessions share ``format("iggy")``."""
    if connect:
        pytest.skip("newSession() is not there through Connect")
    other = registered.newSession()
    assert spark_ext.register(other) == spark_ext.register(registered)
    assert other.sql(f"SELECT msgid_kind('{V1}')").first()[0] == "v1"
