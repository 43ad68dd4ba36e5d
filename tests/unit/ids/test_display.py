"""Notebooks show IDs as tables of the fields, in the colours of the command line."""

import re
from xml.etree import ElementTree

import pytest

V1 = "0156F7E71C361B21BC024CCDBE00000000"
V0 = {
    "7F0000010000238F000000000001E240": ["7F000001", "0000238F", "000000000001E240"],
    "C0A8F001103E214D29547ACFD6E30000": ["C0A8F001", "103E", "214D2954", "7ACFD6E3", "0000"],
}


def cells(html):
    """Return the texts of the cells by row."""
    table = ElementTree.fromstring(html.replace("<br>", "\n"))
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_html_of_an_id_shows_each_field_with_its_meaning(msgid):
    """The digits of each field are above its name and meaning, in the field's own colour."""
    html = msgid.parse(V1)._repr_html_()
    assert cells(html)[0] == ["01", "56F7E71C361B", "21BC", "024CCDBE", "00000000"]
    assert cells(html)[1] == [
        "version\n1",
        "node\n56:f7:e7:1c:36:1b\nmac",
        "pid\n8636",
        "seconds\n38587838\n2022-03-23 14:50:38Z",
        "sequence\n0",
    ]
    colours = re.findall("color:(#[0-9a-f]{6})", html)
    assert colours == colours[:5] * 2
    assert len(set(colours)) == 5


@pytest.mark.parametrize("text", V0)
def test_html_of_a_version_0_id_has_its_own_fields(msgid, text):
    assert cells(msgid.parse(text)._repr_html_())[0] == V0[text]


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (5, 5), (10, 10), (11, 11), (1000, 11)])
def test_html_of_a_batch_shows_its_ends(msgid, count, shown):
    """A short batch is shown completely; a long one as its first five IDs, an ellipsis, and its last five."""
    batch = msgid.generate_batch(count)
    html = batch._repr_html_()
    head, *rows = cells(html)
    assert f"IdBatch of {count}" in html
    assert head == ["version", "node", "pid", "seconds", "sequence"]
    assert len(rows) == shown
    texts = ["".join(row) for row in rows]
    if count > 10:
        assert texts[5] == "…" * 5
        assert texts[:5] + texts[6:] == [str(batch[n]) for n in (0, 1, 2, 3, 4, -5, -4, -3, -2, -1)]
    else:
        assert texts == list(map(str, batch))
