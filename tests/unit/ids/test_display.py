"""Notebooks show IDs as tables of the fields, in the colours of the command line."""

import re
from html.parser import HTMLParser

import pytest

V1 = "0156F7E71C361B21BC024CCDBE00000000"
V0 = {
    "7F0000010000238F000000000001E240": ["7F000001", "0000238F", "000000000001E240"],
    "C0A8F001103E214D29547ACFD6E30000": ["C0A8F001", "103E", "214D2954", "7ACFD6E3", "0000"],
}


class Table(HTMLParser):
    """Return the texts of the cells by row, and their colours."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.colours, self.open = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag == "br":
            self.rows[-1][-1] += "\n"
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
            self.colours += re.findall("color:(#[0-9a-f]{6})", dict(attributes)["style"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data


def test_html_of_an_id_shows_each_field_with_its_meaning(msgid):
    """The digits of each field are above its name and meaning, in the field's own colour."""
    table = Table(msgid.parse(V1)._repr_html_())
    assert table.rows[0] == ["01", "56F7E71C361B", "21BC", "024CCDBE", "00000000"]
    assert table.rows[1] == [
        "version\n1",
        "node\n56:f7:e7:1c:36:1b\nmac",
        "pid\n8636",
        "seconds\n38587838\n2022-03-23 14:50:38Z",
        "sequence\n0",
    ]
    assert table.colours == table.colours[:5] * 2
    assert len(set(table.colours)) == 5


@pytest.mark.parametrize("text", V0)
def test_html_of_a_version_0_id_has_its_own_fields(msgid, text):
    assert Table(msgid.parse(text)._repr_html_()).rows[0] == V0[text]


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (5, 5), (10, 10), (11, 11), (1000, 11)])
def test_html_of_a_batch_shows_its_ends(msgid, count, shown):
    """A short batch is shown completely; a long one as its first five IDs, an ellipsis, and its last five."""
    batch = msgid.generate_batch(count)
    html = batch._repr_html_()
    head, *rows = Table(html).rows
    assert f"IdBatch of {count}" in html
    assert head == ["version", "node", "pid", "seconds", "sequence"]
    assert len(rows) == shown
    texts = ["".join(row) for row in rows]
    if count > 10:
        assert texts[5] == "…" * 5
        assert texts[:5] + texts[6:] == [str(batch[n]) for n in (0, 1, 2, 3, 4, -5, -4, -3, -2, -1)]
    else:
        assert texts == list(map(str, batch))
