"""The headers of Iggy's messages: the 15 kinds, their values and their limits."""

import pytest
from helpers.iggy_frames import DOCUMENTS

from msgid import iggy
from msgid.iggy import Header, HeaderKind, Message


def test_header_kinds_have_the_names_and_codes_of_the_document():
    assert {str(kind): int(kind) for kind in HeaderKind} == DOCUMENTS["header_kinds"]


@pytest.mark.parametrize(
    ("value", "kind", "raw"),
    [
        (b"\x00\xff", HeaderKind.RAW, "00ff"),
        ("é", HeaderKind.STRING, "c3a9"),
        (True, HeaderKind.BOOL, "01"),
        (-1, HeaderKind.INT8, "ff"),
        (-2, HeaderKind.INT16, "feff"),
        (1, HeaderKind.INT32, "01000000"),
        (250000, HeaderKind.INT64, "90d0030000000000"),
        (-(1 << 127), HeaderKind.INT128, "00" * 15 + "80"),
        (255, HeaderKind.UINT8, "ff"),
        (1, HeaderKind.UINT16, "0100"),
        (1 << 31, HeaderKind.UINT32, "00000080"),
        ((1 << 64) - 1, HeaderKind.UINT64, "ff" * 8),
        ((1 << 128) - 1, HeaderKind.UINT128, "ff" * 16),
        (1.5, HeaderKind.FLOAT32, "0000c03f"),
        (-0.0, HeaderKind.FLOAT64, "0000000000000080"),
    ],
)
def test_header_of_each_kind_encodes_and_reads_back(value, kind, raw):
    header = Header.of(value, kind)
    assert (header.raw.hex(), header.value, type(header.value)) == (raw, value, type(value))
    assert iggy.decode(
        iggy.encode(Message.new(b"", id=1, headers={"k": header}, layout="m45"), "m45"), "m45"
    ).headers == {"k": header}


@pytest.mark.parametrize(
    ("error", "value", "kind"),
    [
        (ValueError, 128, HeaderKind.INT8),
        (ValueError, -1, HeaderKind.UINT128),
        (ValueError, 1 << 63, None),
        (ValueError, "", None),
        (ValueError, b"", None),
        (ValueError, "x" * 256, None),
        (ValueError, 1e39, HeaderKind.FLOAT32),
        (TypeError, None, None),
        (TypeError, [], None),
        (TypeError, "1", HeaderKind.INT8),
        (TypeError, 1, HeaderKind.BOOL),
        (TypeError, True, HeaderKind.INT8),
    ],
)
def test_header_that_cannot_be_encoded_raises(error, value, kind):
    with pytest.raises(error, match="header"):
        Header.of(value, kind)


@pytest.mark.parametrize("key", ["", "k" * 256, "é" * 128])
def test_header_key_of_0_or_256_bytes_raises_value_error(key):
    """The length of a key is counted in UTF-8 bytes."""
    with pytest.raises(ValueError, match="a header's key must have 1 to 255 bytes"):
        Message.new(b"", id=1, headers={key: 1})
