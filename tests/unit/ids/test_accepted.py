"""Every function that takes an ID accepts every form of it, and gives one answer for all of them."""

import pickle
import uuid
from importlib.util import find_spec

import pytest

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

V1 = "0156F7E71C361B21BC024CCDBE00000007"
ZEROS = "0156F7E71C361B21BC024CCDBE00000000"
V0 = "7F0000010000238F000000000001E240"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"

# Forms of the bytes of an ID; of the text only those that keep its letters.
TEXTS = {"text": str, "lower": str.lower, "np.str_": np.str_, "Arrow text": pa.scalar}
BINARY = {
    "bytes": bytes, "bytearray": bytearray, "memoryview": memoryview, "np.bytes_": np.bytes_, "np.void": np.void,
    "Arrow binary": pa.scalar,
}  # fmt: skip


def forms(msgid, text):
    """Return an ID of version 0 or 1 in every form."""
    raw = bytes.fromhex(text)
    yield "value", msgid.parse(text)
    for name, form in TEXTS.items():
        yield name, form(text)
    for name, form in BINARY.items():
        yield name, form(raw)
    if len(raw) == 16:
        yield "with its version", f"00{text}"


def functions(msgid):
    """Return the functions that take an ID; each returns something that can be compared."""
    from msgid.audit import audit_ids
    from msgid.ids.checked_bytes import header_identity, identity
    from msgid.processing import MemoryStore, Message, Processor

    def audited(id):
        return {(finding.check, finding.count) for finding in audit_ids([id, "f" * 36]).findings}

    def processed(id):
        seen = []
        processor = Processor(MemoryStore(), lambda state, message, context: seen.append(message.id), list, name="h")
        kinds = [processor.handle(Message(id, "key", None)).kind for _ in range(2)]
        return seen[0], kinds

    return {
        "parse": msgid.parse,
        "pickle": lambda id: pickle.loads(pickle.dumps(msgid.parse(id))),
        "type of bytes": lambda id: type(bytes(msgid.parse(id))),
        "is_valid": msgid.is_valid,
        "derive_id": lambda id: msgid.derive_id(id, "x", at=1_700_000_000),
        "derive_id without time": lambda id: msgid.derive_id(id, "x"),
        "parse_batch": lambda id: [column.tolist() for column in msgid.parse_batch([id])],
        "parse_batch of objects": lambda id: [c.tolist() for c in msgid.parse_batch(np.array([id, None], object))],
        "identity": identity,
        "audit_ids": audited,
        "Processor": processed,
        "header": lambda id: header_identity(id) if not is_bytes_of_v0(id) else identity(id),
    }


def is_bytes_of_v0(id):
    """A header's 16 bytes are not read as an ID, because any text of 16 letters would be one."""
    raw = id.as_py() if hasattr(id, "as_py") else id
    return not isinstance(raw, str) and hasattr(raw, "__len__") and len(bytes(raw)) == 16


@pytest.mark.parametrize("text", [V1, V0, ZEROS])
def test_every_function_gives_one_answer_for_every_form_of_an_id(msgid, text):
    """Text in either case, bytes, values, and scalars of NumPy and Arrow."""
    for name, function in functions(msgid).items():
        answers = {form: function(id) for form, id in forms(msgid, text)}
        first = answers["text"]
        assert all(answer == first for answer in answers.values()), (name, answers)


def test_every_function_that_takes_other_identities_takes_a_uuid_in_every_form(msgid):
    """Text in either case and `uuid.UUID`; a UUID is not a message ID."""
    for name, function in functions(msgid).items():
        ids = [UUID, UUID.upper(), uuid.UUID(UUID), np.str_(UUID), pa.scalar(UUID)]
        if name in ("parse", "pickle", "type of bytes"):
            reasons = set()
            for id in ids:
                with pytest.raises(msgid.InvalidMessageId) as error:
                    function(id)
                reasons.add(error.value.reason)
            assert len(reasons) == 1
        else:
            answers = [function(id) for id in ids]
            assert all(answer == answers[0] for answer in answers), name


@pytest.mark.parametrize("value", [None, 7, 7.5, True, object(), [V1], {}, np.int64(5), pa.scalar(5), float("nan")])
def test_a_value_of_another_type_is_refused_in_the_same_words(msgid, value):
    """By `parse`, `MessageId`, `derive_id` and messages; a batch and `is_valid` say False."""
    from msgid.processing import Message, run

    reasons = set()
    for function in (
        msgid.parse,
        msgid.MessageId,
        msgid.translate_v0,
        lambda id: msgid.derive_id(id, "x"),
        lambda id: run(lambda state, message, context: None, None, Message(id, "key", None)),
    ):
        with pytest.raises(msgid.InvalidMessageId) as error:
            function(value)
        reasons.add(error.value.reason)
    assert len(reasons) == 1
    assert reasons.pop().startswith("must be text, bytes or an ID, got ")
    assert msgid.is_valid(value) is False
    assert msgid.parse_batch([value]).valid.tolist() == [False]


@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_batch_of_ids_is_valid_in_every_container(msgid, count):
    """An `IdBatch`, lists of values, NumPy arrays of text, bytes and objects, masked arrays, and Arrow arrays.

    An audit finds the same generator in each of them.
    """
    from msgid.audit import audit_ids, audit_table

    batch = msgid.generate_batch(count)
    texts, values = batch.hex(), list(batch)
    raw = [bytes(id) for id in values]
    expected = [column.tolist() for column in msgid.parse_batch(texts)]
    assert all(expected[-1])
    arrow = pa.array(texts, pa.string())
    report = audit_ids(texts).to_json()
    for ids in (
        batch, values, tuple(raw), np.array(texts, "U34"), np.array(texts, object), np.array(raw, "V17"),
        np.array(texts, "S34"), np.ma.array(np.array(texts, "U34"), mask=False), batch.to_numpy(),
        np.ma.array(np.array(raw, object), mask=False), np.ma.array(batch.to_numpy(), mask=False),
        arrow, arrow.dictionary_encode(), arrow.cast(pa.string_view()), pa.array(raw, pa.binary(17)), list(arrow),
    ):  # fmt: skip
        assert [column.tolist() for column in msgid.parse_batch(ids)] == expected
        assert audit_ids(ids).to_json() == report
    assert [column.tolist() for column in msgid.parse_batch(iter(values))] == expected
    assert audit_ids(iter(values)).to_json() == report
    for ids in (batch, tuple(values)):
        assert audit_table({"id": ids}).to_json() == report


def test_a_masked_element_is_null(msgid):
    """Also in an array of bytes with one masked byte."""
    masked = np.ma.array([V1, V1, V0], mask=[False, True, False])
    assert msgid.parse_batch(masked).valid.tolist() == [True, False, True]
    assert msgid.parse_batch(masked).sequence.tolist() == [7, 0, 0]
    rows = np.ma.array(np.frombuffer(bytes.fromhex(V1) * 2, np.uint8).reshape(2, 17), mask=False)
    rows[1, 3] = np.ma.masked
    assert msgid.parse_batch(rows).valid.tolist() == [True, False]


def test_a_missing_id_of_an_audit_is_null_in_every_container(msgid):
    """Masked, NaN, or NA and NaN of pandas: missing, and neither malformed nor a duplicate."""
    from msgid.audit import audit_ids

    ids = [V1, None, V0, None]
    mask = [id is None for id in ids]
    rows = np.ma.array(
        np.frombuffer(bytes.fromhex(V1 + V1 + ZEROS[:-1] + "8" + V1), np.uint8).reshape(4, 17), mask=False
    )
    rows[1, 3] = rows[3] = np.ma.masked
    containers = [np.ma.array([id or V1 for id in ids], mask=mask), np.array(ids, object), [V1, float("nan"), V0, None]]
    containers += [rows, np.ma.array(np.array([id or V1 for id in ids], "S34"), mask=mask)]
    if find_spec("pandas"):
        import pandas

        containers += [pandas.Series(ids, dtype=kind) for kind in ("object", "string", "string[pyarrow]", "category")]
    for container in containers:
        assert [(finding.check, finding.count) for finding in audit_ids(container).findings] == [("missing_ids", 2)]


@pytest.mark.parametrize("one", [V1, bytes.fromhex(V1), bytearray(17), memoryview(bytes(17))])
def test_a_single_id_in_place_of_several_is_refused(msgid, one):
    """Its characters are not IDs."""
    from msgid.audit import audit_ids

    for function in (msgid.parse_batch, audit_ids):
        with pytest.raises(TypeError, match="ids must be an iterable"):
            function(one)
