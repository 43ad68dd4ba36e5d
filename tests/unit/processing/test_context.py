"""The context of a handler: its values are equal on every machine and keep their types."""

import math
import random
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid import MessageId
from msgid.processing import Context, MemoryStore, Message, Processor
from msgid.processing.context import fingerprint, run
from msgid.processing.errors import MissingTime
from msgid.processing.strict_json import canonical, dumps, loads, own_copy, read

V1 = "0156F7E71C361B21BC024CCDBE00000000"
V0 = "7F0000010000238F000000000001E240"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"


def noisy(state, message, context):
    """Publish all values of a context."""
    context.publish({"id": str(context.new_id()), "random": context.random.random(), "of": message.id})
    message.body.append("changed")
    state.append("changed")
    return state


@pytest.mark.parametrize("id", [V1, V1.lower(), V0, "00" + V0])
def test_outputs_have_the_ids_that_derive_id_gives(id):
    """An output's ID is `msgid.derive_id` of the input's, for both versions and every spelling."""
    context = Context(Message(id, "key", None))
    assert context.publish("x") == str(msgid.derive_id(id, "output 0"))
    assert context.new_id() == msgid.derive_id(id, "new 1")


def test_outputs_of_uuids_and_other_text_have_ids_of_their_own():
    parents = [UUID, "orders-0-42", "orders-0-43", "Orders-0-42", "\x01" + "a" * 16]
    ids = [Context(Message(parent, "key", None)).publish("x") for parent in parents]
    assert len(set(ids)) == len(ids)
    assert all(msgid.is_valid(id) for id in ids)


def test_run_leaves_the_callers_state_and_message_as_they_are():
    """A handler can change its arguments: the next attempt starts from the original values."""
    state, message = ["first"], Message("orders-0-42", "key", ["body"])
    before = run(noisy, state, message)
    assert (state, message.body) == (["first"], ["body"])
    assert run(noisy, state, message) == before


def test_publish_copies_the_body():
    context = Context(Message(V1, "key", None))
    body = {"sizes": [1, (2, 3)]}
    context.publish(body)
    body["sizes"].append(4)
    context.outputs.pop().body["sizes"].append(5)
    assert context.outputs[0].body == {"sizes": [1, [2, 3]]}


@pytest.mark.parametrize(
    "id", [V0, UUID, "orders-0-42", msgid.derive_id(UUID, "order 17"), str(msgid.derive_id(V0, 1))]
)
def test_now_of_a_message_without_a_time_raises(id):
    with pytest.raises(MissingTime, match="does not have a time: neither its ID nor its timestamp contains one"):
        Context(Message(id, "key", None)).now  # noqa: B018
    assert Message(id, "key", None).at is None
    assert Context(Message(id, "key", None, 0)).now == datetime(1970, 1, 1, tzinfo=timezone.utc)


def test_random_numbers_are_the_golden_ones():
    """``random()`` gives these numbers for this ID, in each spelling, on every version of Python and every machine."""
    for spelling in (V1, V1.lower()):
        chance = Context(Message(spelling, "key", None)).random
        assert type(chance) is random.Random
        assert [chance.random() for _ in range(3)] == GOLDEN


GOLDEN = [0.8353620516748528, 0.24040162081039995, 0.6910032737830808]


def without_fold(moment):
    """Return a time in ISO 8601."""
    return moment.replace(fold=0)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters()),
    st.sampled_from(["$bytes", "$dict", "$map", "$", "\ud800", "\ud83d\ude00", "\\ud83d"]),
    st.binary(max_size=20),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.datetimes(timezones=st.sampled_from([None, timezone.utc, timezone(timedelta(hours=5, minutes=30))])).map(
        without_fold
    ),
    st.dates(),
    st.times().map(without_fold),
    st.timedeltas(),
    st.datetimes(timezones=st.sampled_from([ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")])),
    st.uuids(),
    st.integers(0, (1 << 128) - 1).map(lambda number: MessageId(b"\1" + number.to_bytes(16, "big"))),
)
keys = st.one_of(scalars, st.sampled_from(["$bytes", "$dict", "$map", "$decimal"]))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=12,
)


@given(values)
def test_json_comes_back_as_it_was(value):
    """Every value that can be written is read as an equal value, bytes and decimals among them."""
    assert exact(loads(dumps(value))) == exact(value)
    assert exact(own_copy(value)) == exact(value)
    assert unordered(read(canonical(value))) == unordered(value)


@given(values, values)
def test_canonical_json_is_equal_for_equal_values_alone(one, other):
    """Two values have the same bytes if and only if they are the same value, in any order of a dict's names."""
    assert (canonical(one) == canonical(other)) == (unordered(one) == unordered(other))
    assert canonical(reversed_names(one)) == canonical(one)


def exact(value):
    """Return a text of a value in which 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return [(exact(key), exact(held)) for key, held in value.items()]
    if isinstance(value, list):
        return [exact(held) for held in value]
    return (type(value).__name__, repr(value))


def unordered(value):
    if isinstance(value, dict):
        return ("dict", frozenset((unordered(key), unordered(held)) for key, held in value.items()))
    if isinstance(value, list):
        return ("list", tuple(unordered(held) for held in value))
    return (type(value).__name__, repr(value))


def reversed_names(value):
    if isinstance(value, dict):
        return {key: reversed_names(held) for key, held in reversed(value.items())}
    if isinstance(value, list):
        return [reversed_names(held) for held in value]
    return value


def test_binary_is_never_written_as_the_text_of_a_literal():
    """Bytes are base64 under the name $bytes, in values and in keys of a map."""
    assert dumps({"raw": b"hi"}) == b'{"raw":{"$bytes":"aGk="}}'
    for value in ({b"hi": 1, 2: None}, {(1, (b"hi",)): 1, (): 2}):
        assert loads(dumps(value)) == value == read(canonical(value))
    assert math.isnan(loads(dumps(float("nan"))))
    assert dumps([date(2024, 1, 2), time(3, 4), Decimal("1.50")]) == (
        b'[{"$date":"2024-01-02"},{"$time":"03:04:00"},{"$decimal":"1.50"}]'
    )


def test_values_of_other_types_keep_type_and_value():
    """A time keeps the rules of its zone, and an ID is an ID: in a state, in an output and as a key."""
    noon = datetime(2024, 3, 30, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert (loads(dumps(noon)) + timedelta(days=1)).isoformat() == "2024-03-31T12:00:00+02:00"
    twice = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    assert loads(dumps(twice)).utcoffset() == timedelta(hours=1)
    at_noon = time(12, tzinfo=timezone(timedelta(hours=2)))
    assert loads(dumps(at_noon)) == at_noon == read(canonical(at_noon))
    read_by_older_arrow = datetime(2024, 1, 1, tzinfo=PytzUtc())
    assert loads(dumps(read_by_older_arrow)) == read_by_older_arrow == read(canonical(read_by_older_arrow))
    ids = {MessageId(V1): [uuid.UUID(int=7)]}
    assert exact(loads(dumps(ids))) == exact(ids) == exact(read(canonical(ids)))
    assert exact(read(canonical([bytearray(b"x"), Counter("aa"), Text("a")]))) == exact([b"x", {"a": 2}, "a"])


@dataclass
class Point:
    x: int


class Color(str, Enum):
    RED = "red"


class Text(str):
    """A subclass, as NumPy and others have them."""


class PytzUtc(tzinfo):
    """UTC of pytz, in which PyArrow 18 and pandas 2 return times."""

    def __str__(self):
        return "UTC"

    def utcoffset(self, _):
        return timedelta(0)


class OtherZone(tzinfo):
    """A zone of another library."""

    def utcoffset(self, _):
        return timedelta(hours=1)


@pytest.mark.parametrize(
    ("value", "cure"),
    [
        ({1, 2}, "a set as JSON: .*; pass sorted"),
        (object(), "an? object as JSON: .*; pass values that JSON can represent, or pass dumps and loads"),
        ({"a": print}, "a builtin_function_or_method as JSON"),
        ([Point(1)], r"a Point as JSON: .*; pass dataclasses\.asdict"),
        (Color.RED, "a Color as JSON: .*; pass its value"),
        ({Color.RED: 1}, "a Color as JSON"),
        (memoryview(b"x"), r"a memoryview as JSON: .*; pass bytes\(value\)"),
        ((number for number in [1]), r"a generator as JSON: .*; pass list\(values\)"),
        (time(12, tzinfo=ZoneInfo("Europe/Berlin")), r"a time as JSON: .*; use a datetime\.timezone"),
        (datetime(2024, 1, 1, tzinfo=OtherZone()), r"a datetime as JSON: .*; use a zoneinfo\.ZoneInfo"),
    ],
)
def test_json_of_another_type_raises(value, cure):
    """A type that JSON cannot hold is refused by name with the cure, where it is published or stored."""
    with pytest.raises(TypeError, match=f"(?s)cannot write {cure}"):
        dumps(value)
    with pytest.raises(TypeError, match=f"(?s)cannot write {cure}"):
        Context(Message(V1, "key", None)).publish(value)


@pytest.mark.parametrize("body", [memoryview(b"x"), (number for number in [1])])
def test_body_that_no_attempt_can_have_for_itself_is_refused(body):
    """A generator would be empty at the second attempt."""
    with pytest.raises(TypeError, match=r"cannot write a (memoryview|generator) as JSON: .*; pass "):
        run(lambda state, message, context: None, None, Message("id", "key", [body]))


@pytest.mark.parametrize("text", ["", " ", "{", "1 2", "[1,]", '{"a":1}x', "nul"])
def test_loads_of_text_that_is_not_json_raises(text):
    """Text that no state has is an error, also after a whole value."""
    with pytest.raises(ValueError, match=r"line 1 column \d"):
        loads(text.encode())
    assert loads(b' {"a": [1, 2]}\n') == {"a": [1, 2]}


def test_fingerprint_tells_outputs_apart():
    """Bodies, topics, IDs and order count; the order of names in a body does not."""
    body = {"a": 1, "b": b"x"}
    bodies = body, {"a": 1, "b": b"y"}, {"a": True, "b": b"x"}
    others = [written(), *(written((one, topic)) for one in bodies for topic in ("t", "null", None))]
    others += [written((body, "t"), (body, "t")), written((body, "t"), id="another message")]
    assert len({fingerprint(outputs) for outputs in others}) == len(others)
    assert fingerprint(others[1]) == fingerprint(written(({"b": b"x", "a": 1}, "t")))
    assert all(len(fingerprint(outputs)) == 16 for outputs in others)


def written(*outputs, id="a message"):
    context = Context(Message(id, "key", None))
    for body, topic in outputs:
        context.publish(body, topic)
    return context.end()


def test_an_output_after_the_handler_has_returned_is_an_error():
    """A thread or a timer that publishes later would lose its output."""
    contexts, published = [], []
    processor = Processor(MemoryStore(), lambda *call: contexts.append(call[2]), published.extend, name="late")
    assert processor.handle(Message("orders-1", "key", None)).kind == "new"
    with pytest.raises(RuntimeError, match="publish was called after the handler of 'orders-1' had returned"):
        contexts[0].publish("late")
    assert published == []
