"""The page of a report: in a browser, without its script, and for reports of any size."""

import re
import shutil
import unicodedata
from datetime import datetime, timezone

import pytest
from helpers.covering import covering, first_by_default

pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
audit = pytest.importorskip("msgid.audit")
facts = pytest.importorskip("msgid.audit.facts")
story = pytest.importorskip("msgid.audit.story")
report_module = pytest.importorskip("msgid.audit.report")
queues = pytest.importorskip("helpers.queues")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def report():
    return audit.audit_table(queues.several(range(2))[1], **queues.NAMES)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Headless Chromium; the tests are skipped where it or its driver is missing."""
    selenium = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = selenium.Chrome(options, selenium.ChromeService(driver))
    yield opened
    opened.quit()


def set_width(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def test_page_in_a_narrow_browser_cuts_no_table_off(browser, report, tmp_path):
    """Each row is a list of its fields and their names, and nothing has to be scrolled to the side."""
    report.to_html(tmp_path / "audit.html")
    set_width(browser, 390)
    browser.get((tmp_path / "audit.html").as_uri())
    for table in browser.find_elements("css selector", ".wide"):
        width, inside = browser.execute_script("return [arguments[0].clientWidth, arguments[0].scrollWidth]", table)
        assert inside <= width
    cell = browser.find_element("css selector", "table#logs td:nth-child(2)")
    assert browser.execute_script("return getComputedStyle(arguments[0], '::before').content", cell) == '"rows"'


@pytest.mark.parametrize(("width", "scheme"), covering([400, 1600], ["light", "dark"], strength=1))
def test_page_in_a_browser_shows_its_charts(browser, report, tmp_path, width, scheme):
    report.to_html(tmp_path / "audit.html")
    set_width(browser, width)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get((tmp_path / "audit.html").as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    for place, count in (("#findings .share", len(report.findings)), ("#timelines", len(report.logs))):
        charts = browser.find_elements("css selector", f"{place} svg")
        assert len(charts) == count
        assert len({(chart.rect["x"], chart.rect["width"]) for chart in charts}) == 1
        for chart in charts:
            assert chart.is_displayed()
            assert chart.rect["width"] >= 100
            assert chart.rect["height"] >= 12
    assert all(chart.get_attribute("aria-label") for chart in charts)
    marks = browser.find_elements("css selector", "#findings rect.bar, #timelines rect.missing")
    assert len(marks) > len(report.findings)
    assert all(mark.rect["width"] >= 1 for mark in marks)
    colours = "const s = getComputedStyle(document.querySelector('main')); return [s.color, s.backgroundColor]"
    ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in browser.execute_script(colours))
    assert (ink < paper) == (scheme == "light")


def test_page_of_a_story_in_a_browser_shows_hostile_text_as_text(browser, tmp_path):
    """Text of senders neither runs nor makes elements; the page loads nothing, and fits a narrow window."""
    hostile = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">\u202e"
    events = [story.Event(datetime(2026, 5, 28, tzinfo=timezone.utc), "dead letter", hostile, f"{hostile} row 1"),
              story.Event(None, "landed", "landed" * 100, "orders.csv")]  # fmt: skip
    found = story.Trace(hostile, True, events, [hostile])
    path = tmp_path / "story.html"
    text = found.to_html(path)
    assert text == path.read_text(encoding="utf-8")
    assert not re.search("<img|\u202e|https?://", text)
    for width in (390, 1280):
        set_width(browser, width)
        browser.get(path.as_uri())
        assert browser.get_log("browser") == []
        assert "Message <script>" in browser.title
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert len(browser.find_elements("css selector", "#events tbody tr")) == 2
        cell = browser.find_element("css selector", "#events tbody tr td:nth-child(3)")
        assert "onerror" in cell.text
    assert browser.find_element("css selector", "#unchecked li").text.startswith("'<script>")
    assert browser.find_elements("css selector", "main h1, main caption, main [role=region][aria-label]")


def test_page_in_a_browser_sorts_a_table_from_the_keyboard(browser, report, tmp_path):
    """The head of a column is a button: the Enter key sorts the rows by number, and again the other way."""
    report.to_html(tmp_path / "audit.html")
    set_width(browser, 1280)
    browser.get((tmp_path / "audit.html").as_uri())
    button = browser.find_element("xpath", "//table[@id='findings']//th/button[text()='count']")
    place = list(report.findings[0]._fields).index("count") + 1
    for descending in (False, True):
        button.send_keys("\ue007")
        cells = browser.find_elements("css selector", f"table#findings tbody td:nth-child({place})")
        counts = [int(cell.get_attribute("data-value")) for cell in cells]
        assert counts == sorted((finding.count for finding in report.findings), reverse=descending)
    assert browser.get_log("browser") == []


def test_page_shows_small_findings_beside_large_ones():
    """Each has a bar on its own scale, with its share of its log; the ranges of each log stand beside its track."""
    offsets = [*range(10), *range(9_990, 10_000)], [one for one in range(1_000) if one not in (7, 8, 300)]
    rows = {"source": ["a"] * 20 + ["b"] * 997, "offset": [*offsets[0], *offsets[1]]}
    text = audit.audit_table(rows).to_html()
    assert [float(share) for share in re.findall(r"<span>([0-9.]+) %</span>", text)] == [99.8, 0.3]
    assert "9,980 missing: 10 to 9989" in text
    assert "3 missing: 7 to 8, 300" in text


def test_page_of_a_comparison_shows_ranges_and_their_places():
    """Messages that follow each other are one row and one mark; a message without an offset is a row of its own."""
    sent = {"source": ["a"] * 100, "offset": range(100), "content": ["x"] * 100}
    kept = [*range(20), *range(80, 99), 99, 99]
    landed = {"source": ["a"] * 41, "offset": kept, "content": ["y" if one == 85 else "x" for one in kept]}
    text = audit.compare(sent, landed).to_html()
    assert "60 lost: 20 to 79" in text
    assert "1 changed: 85" in text
    assert "1 duplicate: 99" in text
    rows = re.findall(r"<tr>(.*?)</tr>", text[text.index('<table id="differences">') :])
    assert [re.findall(r'value="(\d+)"', row) for row in rows[1:]] == [
        ["20", "79", "60"], ["85", "85", "1"], ["99", "99", "1"],
    ]  # fmt: skip
    assert len(re.findall('<rect class="(?:lost|changed|duplicate)"', text)) == 3
    assert '<table id="gaps">' not in text
    assert 'id="timelines"' not in audit.compare(["x", "y"], ["x"]).to_html()


def test_page_of_a_comparison_has_each_log_as_its_own_whole():
    """The share is that of the log's sent messages; a loss at the end is marked up to the end of the track."""
    checks = (("lost_messages", "a", 20), ("lost_messages", "table", 30), ("lost_messages", "unknown", 40))
    found = [facts.Finding(check, "error", scope, count, None, "") for check, scope, count in checks]
    lost = [facts.Difference("lost", "a", offset, None) for offset in range(90, 100)]
    logs = {"a": report_module.SentLog(200, 50, 99)}
    text = audit.Report(9_000, found, differences=lost, sent=10_000, sent_logs=logs).to_html()
    assert re.findall(r"<span>([0-9.]+) %</span>", text) == ["10", "0.3"]
    assert re.findall(r'<rect class="lost" x="([0-9.]+)%" width="([0-9.]+)%"', text) == [("80.00", "20.00")]
    assert "offsets 50 to 99" in text
    text = audit.Report(9_000, found, differences=lost, sent=10_000).to_html()
    assert "offsets 90 to 99" in text
    assert "The part of each log in which the sides differ." in text


def test_page_without_its_script_has_everything(report):
    """The text of the page has each finding, gap and note, and each meaning once; nothing is loaded from elsewhere."""
    text = re.sub(r"<script>.*?</script>", "", report.to_html(), flags=re.S)
    for finding in report.findings:
        assert f"<td>{finding.check}</td><td>{finding.severity}</td><td>{finding.scope}</td>" in text
        assert text.count(finding.meaning) == 1
    for text_once in (*report.notes, *report.conclusion[1:], "orphan_ids (without a parent)"):
        assert text.count(text_once[1:]) == 1
    assert "All times are in UTC." in text
    assert report.logs[0].first_time.strftime("%Y-%m-%d %H:%M:%SZ") in text
    assert re.findall(r"(?:src|href)=\"([^\"]*)\"", text) == ["data:,"]
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.parametrize("character", first_by_default(['"', "&", "é", "\N{GRINNING FACE}"], 1))
def test_page_of_a_hostile_table_is_escaped_and_small(character):
    """Names are text and not markup, long names are cut, and the page of the largest report stays below 2 MB."""
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    name = "<script>alert(1)</script>" + character * 10_000
    meaning = audit.CHECKS["missing_offsets"].meaning
    large = audit.Report(
        10**15,
        [facts.Finding("missing_offsets", "error", f"{name}{n}", 10**12, name, meaning) for n in range(20_000)],
        [facts.Gap("offset", f"{name}{n}", n, n + 5, 6) for n in range(10_000)],
        [facts.LogRow(f"{name}{n}", 9, 0, 10**12, moment, moment, 1, 2, 3, 4) for n in range(10_000)],
        [facts.GeneratorRow(name, 1, n, 9, moment, moment, 0, 99, 1) for n in range(10_000)],
        [facts.NodeRow(name, "mac", 9, name) for _ in range(10_000)],
        [facts.KindRow("v1", name, n) for n in range(10_000)],
        ["note"],
    )
    text = large.to_html()
    assert len(text.encode()) < 2_000_000
    assert "<script>alert" not in text


@pytest.mark.parametrize("rows", [1_000, 10_000])
def test_page_of_a_large_report_has_a_bounded_number_of_elements(rows):
    """A browser lays out the part on the screen; ten times the logs do not add rows or marks to the page."""
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    finding = facts.Finding("missing_offsets", "error", "a", 1, "5", audit.CHECKS["missing_offsets"].meaning)
    large = audit.Report(
        10**9, [finding] * rows, [facts.Gap("offset", "a", 10 * n, 10 * n + 5, 6) for n in range(rows)],
        [facts.LogRow("a" if n == 0 else f"a{n}", 9, 0, 10**6, moment, moment, 1, 2, 3, 4) for n in range(rows)],
        [facts.GeneratorRow("56:f7:e7:1c:36:1b", n, 1, 9, moment, moment, 0, 99, 1) for n in range(rows)],
    )  # fmt: skip
    differences = [facts.Difference("lost", "a", 2 * n, None) for n in range(rows)]
    other = audit.Report(10**9, [finding], differences=differences, sent=10**9)
    bars, marks, tracks = 300, 200, 30
    for text, heads, lines, shapes in (
        (large.to_html(), 4, 4 * 300, bars + marks + tracks), (other.to_html(), 2, 300 + 1, marks + 1),
    ):  # fmt: skip
        assert text.count("<tr") == heads + lines
        assert text.count("<rect") == shapes
        assert "content-visibility:auto" in text


HOSTILE = [
    "orders\u202e", "orders\u2066", "a\nb", "a\r\tb", "a\x00\x1b[31m", "a\x85", "a\u2028b", "a\ud800", "a\u200b",
    "</script>" * 40, "a" * 1_000_000,
]  # fmt: skip


@pytest.mark.parametrize("odd", HOSTILE, ids=range(len(HOSTILE)))
def test_text_of_others_is_one_safe_line(odd, tmp_path):
    """Control characters, marks of direction and half surrogates are visible escapes; long text is cut."""
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    meaning = audit.CHECKS["missing_offsets"].meaning
    report = audit.Report(
        9, [facts.Finding("missing_offsets", "error", odd, 5, odd, meaning)], [facts.Gap("offset", odd, 3, 7, 5)],
        [facts.LogRow(odd, 9, 0, 12, moment, moment, 5, 0, 0, 0)],
        [facts.GeneratorRow(odd, 1, 1, 9, moment, moment, 0, 99, 1)], [facts.NodeRow(odd, "mac", 9, odd)],
        [facts.KindRow("malformed", odd, 1)], not_checked=[facts.NotChecked("late_messages", odd)], title=odd,
    )  # fmt: skip
    lost = [facts.Difference("lost", odd, 3, odd), facts.Difference("lost", odd, None, odd)]
    compared = audit.Report(9, report.findings, differences=lost, sent=9, title=odd)
    report.to_html(tmp_path / "audit.html")
    for text in (report.to_html(), report._repr_html_(), compared.to_html(), report.to_openmetrics()):
        assert {one for one in text if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} <= {"\n"}
        assert text.count("</script>") <= 1
        assert len(text) < 30_000
    printed = [*str(compared).splitlines(), report.failure()]
    assert len(printed) == 5
    assert all(line.isprintable() and len(line) < 400 for line in printed)


def test_fragment_in_a_notebook_has_no_page_around_it(report):
    text = report._repr_html_()
    assert text.startswith("<style>")
    assert "<html" not in text
    assert "<svg" in text
