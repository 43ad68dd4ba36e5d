"""`parse_batch` compared with `msgid.parse` on single IDs, for every form of input."""

import pytest
from helpers.strategies import ids
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

V1 = "0156F7E71C361B21BC024CCDBE00000007"
TEXTS = st.one_of(
    ids.map(str),
    ids.map(lambda id: str(id).lower()),
    ids.map(lambda id: id.canonical),
    st.text(max_size=60),
    st.text("0123456789abcdefABCDEF", min_size=30, max_size=60),
    st.sampled_from(["", V1[:-1], V1 + "0", V1[:-1] + "\n", V1[:-1] + "G", "02" + V1[2:], "０" + V1[1:], "0" * 10_000]),
)
BYTES = st.one_of(ids.map(bytes), ids.map(lambda id: bytes.fromhex(id.canonical)), st.binary(max_size=30))


class Text(str):
    """A subclass of str."""


class Bytes(bytes):
    """A subclass of bytes."""


OTHER_FORMS = st.one_of(
    BYTES.map(bytearray),
    BYTES.map(memoryview),
    BYTES.map(Bytes),
    TEXTS.map(Text),
    TEXTS.map(np.str_),
    BYTES.map(np.bytes_),
)


def expected(msgid, values):
    """Return the expected columns, from `msgid.parse`."""
    rows = []
    for value in values:
        try:
            id = msgid.parse(value)
        except msgid.InvalidMessageId:
            rows.append((0, 0, 0, 0, 0, False))
        else:
            fields = (id.node, id.pid, id.seconds, id.sequence) if id.version == 1 else (0, 0, 0, 0)
            rows.append((id.version, *fields, True))
    return rows


def rows(columns):
    assert [str(column.dtype) for column in columns] == ["uint8", "uint64", "uint16", "uint32", "uint32", "bool"]
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(st.lists(st.one_of(TEXTS, BYTES, OTHER_FORMS, st.none(), st.integers(), st.text().map(list))))
def test_parse_batch_of_any_objects_is_parse_of_each(msgid, values):
    """A list, a generator or an array of objects can contain texts, bytes and any other values."""
    assert rows(msgid.parse_batch(values)) == expected(msgid, values)
    assert rows(msgid.parse_batch(value for value in values)) == expected(msgid, values)
    objects = np.empty(len(values), object)
    for row, value in enumerate(values):
        objects[row] = value
    assert rows(msgid.parse_batch(objects)) == expected(msgid, values)


@given(st.lists(st.one_of(TEXTS, st.none())), st.integers(0, 5), st.integers(0, 5))
def test_parse_batch_of_arrow_text_is_parse_of_each(msgid, values, before, after):
    """Arrow text of every kind is read: with NULLs, sliced, in chunks and dictionary-encoded."""
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert rows(msgid.parse_batch(pa.array(values, kind))) == expected(msgid, values)
    array = pa.array([V1] * before + values + ["x"] * after, pa.string()).slice(before, len(values))
    assert rows(msgid.parse_batch(array)) == expected(msgid, values)
    assert rows(msgid.parse_batch(pa.chunked_array([array, array[:0], array]))) == expected(msgid, values) * 2
    assert rows(msgid.parse_batch(array.dictionary_encode())) == expected(msgid, values)


@pytest.mark.parametrize("text", ["01" + "\u00b0" * 16, "7F" * 15 + "\u00b1", "00" + "\u00f0\u00f1" * 8])
def test_parse_batch_of_text_whose_bytes_look_like_digits_is_invalid(msgid, text):
    """In UTF-8 these characters are bytes that are hex digits but for their top bits."""
    assert len(text.encode()) in (32, 34)
    assert msgid.parse_batch(pa.array([V1, text])).valid.tolist() == [True, False]


@pytest.mark.volume
def test_parse_batch_of_more_text_than_arrow_can_combine(msgid):
    """The column of a table with more than 2 GiB of IDs comes in chunks; here many of them share one text."""
    big = pa.array(["x" * (1 << 20)] * 64)
    found = msgid.parse_batch(pa.chunked_array([*[big] * 32, pa.array([V1, None, "x"])]))
    assert rows(found)[-3:] == expected(msgid, [V1, None, "x"])
    assert (len(found.valid), found.valid.sum()) == (2051, 1)


def test_parse_batch_of_a_dictionary_whose_rows_are_more_text_than_arrow_can_decode(msgid):
    """Each distinct text is parsed once, so the rows may have any size together; also with NULLs and in chunks."""
    values = ["x" * (1 << 20), V1, None]
    array = pa.DictionaryArray.from_arrays(pa.array([0] * 2048 + [1, 2, None], pa.int16()), pa.array(values))
    for column in (array, pa.chunked_array([array])):
        found = msgid.parse_batch(column)
        assert rows(found)[-4:] == expected(msgid, [values[0], V1, None, None])
        assert (len(found.valid), found.valid.sum()) == (2051, 1)


def test_parse_batch_of_a_dictionary_without_values_has_a_row_for_each_null(msgid):
    empty = pa.array([None, None]).cast(pa.dictionary(pa.int8(), pa.string()))
    assert rows(msgid.parse_batch(empty)) == expected(msgid, [None, None])


@given(st.lists(st.one_of(BYTES, st.none())), st.integers(0, 5))
def test_parse_batch_of_arrow_binary_is_parse_of_each(msgid, values, before):
    """Arrow binary contains the bytes of IDs, not their text."""
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert rows(msgid.parse_batch(pa.array([b"x"] * before + values, kind)[before:])) == expected(msgid, values)


@pytest.mark.parametrize("width", [0, 1, 16, 17, 18, 28, 29, 34])
@settings(max_examples=10)  # of each width
@given(data=st.data())
def test_parse_batch_of_fixed_width_rows_is_parse_of_each(msgid, width, data):
    """Fixed-size binary and uint8 rows contain the bytes of an ID if they have the length of one."""
    first = st.sampled_from([b"", b"\0", b"\1", b"\2"]).map(lambda start: start[:width])
    value = first.flatmap(
        lambda start: st.binary(min_size=width - len(start), max_size=width - len(start)).map(start.__add__)
    )
    values = data.draw(st.lists(value, max_size=20))
    matrix = np.frombuffer(b"".join(values), np.uint8).reshape(len(values), width)
    assert rows(msgid.parse_batch(matrix)) == expected(msgid, values)
    assert rows(msgid.parse_batch(np.asfortranarray(matrix))) == expected(msgid, values)
    if width:
        nullable = [*values, None]
        array = pa.array([bytes(width), *nullable], pa.binary(width))[1:]
        assert rows(msgid.parse_batch(array)) == expected(msgid, nullable)


@given(st.lists(TEXTS))
def test_parse_batch_of_numpy_text_is_parse_of_each(msgid, values):
    """NumPy text of either kind is read; it cannot contain trailing zeros, and kind S only ASCII."""
    values = [value.rstrip("\0") for value in values]
    assert rows(msgid.parse_batch(np.array(values, dtype=np.str_))) == expected(msgid, values)
    assert rows(msgid.parse_batch(np.array(values, dtype=np.str_).astype(">U60"))) == expected(
        msgid, [v[:60] for v in values]
    )
    ascii_only = [value for value in values if value.isascii()]
    assert rows(msgid.parse_batch(np.array(ascii_only, dtype=np.bytes_))) == expected(msgid, ascii_only)
    assert rows(msgid.parse_batch(np.array(values, dtype=np.str_)[::2])) == expected(msgid, values[::2])


def test_to_arrow_of_columns_names_them(msgid):
    table = msgid.parse_batch([V1, "x"]).to_arrow()
    assert table.to_pydict() == {
        "version": [1, 0], "node": [0x56F7E71C361B, 0], "pid": [8636, 0],
        "seconds": [38587838, 0], "sequence": [7, 0], "valid": [True, False],
    }  # fmt: skip


def test_parse_batch_of_nothing_gives_empty_columns(msgid):
    for empty in ((), pa.chunked_array([], pa.string()), np.array([], "U34"), pa.nulls(0)):
        assert rows(msgid.parse_batch(empty)) == []
    assert rows(msgid.parse_batch(pa.nulls(2))) == expected(msgid, [None, None])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.array([1, 2]), "a column of text, bytes or UUIDs, got int64: if this column was text"),
        (np.array([1.5]), "a NumPy array of text, .* got float64.*: if this column was text"),
        (pa.array([[V1]]), "a column of text, bytes or UUIDs, got list<.*>: cast it to text"),
        (np.array([1, 2]), "a NumPy array of text, objects, or uint8"),
        (np.zeros((2, 2, 17), np.uint8), "a NumPy array of text"),
        (np.array(V1), "ids must be an iterable of texts or bytes, or an array, got array"),
        (7, "ids must be an iterable"),
    ],
)
def test_parse_batch_of_another_value_raises_type_error(msgid, given, message):
    """A single ID, numbers, and arrays of other shapes raise TypeError."""
    with pytest.raises(TypeError, match=message):
        msgid.parse_batch(given)
