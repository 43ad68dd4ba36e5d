"""The headers of many messages as columns: the headers and errors of decoding one message after the other."""

import pytest
from helpers.iggy_frames import BAD_HEADERS, framed, header
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid import iggy
from msgid.iggy.headers import Header, HeaderKey, HeaderKind, encode_headers
from msgid.iggy.records.decoding import headers_of_row
from msgid.iggy.records.rows import ROW, Row
from msgid.iggy.records.scanning import scan
from msgid.iggy.wire import LAYOUTS

pytest.importorskip("pyarrow")

KEYS = st.text(min_size=1, max_size=3)
VALUES = st.one_of(
    st.binary(min_size=1, max_size=5),
    st.text(min_size=1, max_size=5),
    st.booleans(),
    st.integers(-9, 9),
    st.floats(width=32),
).map(Header.of)
TYPED_KEYS = KEYS | st.integers(0, 3).map(HeaderKey.of) | st.booleans().map(HeaderKey.of)


def reference(raw, layout):
    """Return the headers of each message, or its error, decoded one after the other."""
    found = scan(raw, LAYOUTS[layout].code)
    read = []
    for row in map(Row._make, ROW.iter_unpack(found.rows)):
        try:
            headers = headers_of_row(raw, row)
        except msgid.InvalidMessage as error:
            read.append((None, str(error)))
        else:
            read.append(([(str(key), {"kind": str(one.kind), "value": one.raw}) for key, one in headers.items()], None))
    return read


def columns(raw, layout):
    """Return the same of the table."""
    found = iggy.decode_table(raw, layout)
    errors = {message.row: str(message.error) for message in found.malformed}
    return [(held, errors.get(row)) for row, held in enumerate(found.table["headers"].to_pylist())]


def h64_frame(block):
    """Return an ``h64`` message with bytes as its headers."""
    return bytes(48) + len(block).to_bytes(4, "little") + (1).to_bytes(4, "little") + bytes(8) + b"p" + block


def mutated(data, block):
    """Return bytes with a few changes, most of them at a length or kind."""
    raw = bytearray(block)
    for _ in range(data.draw(st.integers(0, 2))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from([0, 1, 2, 3, 7, 16, 128, 255]))
    return bytes(raw) + data.draw(st.sampled_from([b"", b"", b"\1", b"\2\1\0\0\0"]))


@given(st.data(), st.sampled_from(["m45", "h64"]))
def test_header_columns_of_mutated_headers_are_those_of_one_message_at_a_time(data, layout):
    """Every check of one message's headers is a check of the columns, with the same error."""
    typed = layout == "h64"
    keys = TYPED_KEYS if typed else KEYS
    blocks = [
        encode_headers(headers, typed=typed)
        for headers in data.draw(st.lists(st.dictionaries(keys, VALUES, max_size=4), max_size=6))
    ]
    twice = data.draw(st.booleans())
    blocks = [mutated(data, block * 2 if twice else block) for block in blocks]
    raw = b"".join(h64_frame(block) if typed else framed(block) for block in blocks)
    assert columns(raw, layout) == reference(raw, layout)


BLOCKS = [
    header(),
    header(kind=3, value=b"\1"),
    header(kind=6, value=b"123"),
    header(kind=6, value=b"1234"),
    header(value=b"vv", value_length=3),
    header() + header(b"l") + header(),
    header() + header(b"l", 1),
    header(value=b"v" * 256),
    header()[:5],
    *(block for block, _, _ in BAD_HEADERS),
]


@pytest.mark.parametrize("layout", ["m45", "h64"])
def test_header_columns_with_each_error_are_those_of_one_message_at_a_time(layout):
    """One malformed message does not change the headers of the messages beside it."""
    typed = [b"".join((b"\2", block)) for block in BLOCKS] + [b"\3" + header(b"\1"), b"\3" + header(), b"\0" + header()]
    raw = b"".join(map(h64_frame, typed)) if layout == "h64" else b"".join(map(framed, BLOCKS))
    assert columns(raw, layout) == reference(raw, layout)
    assert sum(error is not None for _, error in reference(raw, layout)) > len(BLOCKS) / 2


@pytest.mark.parametrize("count", [63, 64, 65, 300])
def test_header_columns_of_a_message_with_many_headers_are_complete(count):
    """Only its bytes limit the number of headers of one message."""
    many = {f"k{n}": Header.of(n) for n in range(count)}
    raw = b"".join(framed(encode_headers(one)) for one in ({"a": Header.of("x")}, many, {}, {"b": Header.of(1)}))
    assert columns(raw, "m45") == reference(raw, "m45")
    assert [len(held) for held, _ in columns(raw, "m45")] == [1, count, 0, 1]


@pytest.mark.parametrize("more", [0, 70])
def test_header_keys_with_one_text_make_a_message_malformed_in_a_table(more):
    """A map has each key once: no header is lost in silence, and the next message is whole."""
    key = HeaderKey.of(5, HeaderKind.INT32)
    headers = {str(key): Header.of(1), key: Header.of(2)} | {f"k{n}": Header.of(n) for n in range(more)}
    made = [iggy.Message.new(b"p", id=n, headers=one, layout="h64") for n, one in enumerate((headers, {key: 2}))]
    raw = iggy.encode_log(made, "h64")
    (_, error), (held, none) = columns(raw, "h64")
    assert error.startswith("invalid message: two headers whose keys are the text 'int32:5' in a table, at byte 65")
    assert ([key for key, _ in held], none) == (["int32:5"], None)
    assert iggy.decode_log(raw)[0].headers == made[0].headers


def test_header_columns_of_an_upgraded_file_know_which_keys_have_a_kind():
    """One table can have messages of both forms of headers."""
    headers = {"k": Header.of("v"), "n": Header.of(5)}
    made = [
        iggy.encode_log([iggy.Message.new(b"p", id=n, offset=n, headers=headers, layout=name)], name)
        for n, name in enumerate(("h56-xxh3", "h64"))
    ]
    found = iggy.decode_table(b"".join(made), "auto")
    expected = [("k", {"kind": "string", "value": b"v"}), ("n", {"kind": "int64", "value": (5).to_bytes(8, "little")})]
    assert found.layouts == ["h56-xxh3", "h64"]
    assert found.table["headers"].to_pylist() == [expected, expected]
