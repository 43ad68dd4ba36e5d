"""Check the built site in a browser: ``python docs/check_site.py`` after ``mkdocs build``.

Each page is opened in headless Chromium at 390 and 1280 pixels, light and dark. A broken link or image, an error in the
browser's console, a page that is wider than the screen, and a diagram with little contrast are faults.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

SITE = Path(__file__).parents[1] / "build" / "site"
WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
LEAST_CONTRAST = 4.5
"""The least ratio of luminance between text and background, as WCAG asks for."""
LEAST_TEXT = 10
"""The least height of a diagram's text on the smallest screen, in pixels."""


_DARKEST = 0.04045
"""The share of a channel up to which its luminance is linear."""


class _Page(HTMLParser):
    """The links of a page, and the names of its parts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and name in ("id", "name"):
                self.names.add(value)


def broken_links(site: Path) -> list[str]:
    """Return each link of the site's pages to a file or a part of a page that does not exist."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address, part = urldefrag(link)
            if urlsplit(link).scheme or link.startswith("//") or path.name == "404.html":
                continue
            target = Path(os.path.normpath(path.parent / unquote(address))) if address else path
            target = target / "index.html" if target.is_dir() else target
            wanted = unquote(part)
            if not target.exists() or (wanted and target in pages and wanted not in pages[target].names):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site on a free port, and return its address."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def browser() -> Iterator[Any]:
    """Start headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def faults_of_page(driver: Any, address: str, scheme: str) -> list[str]:
    """Return the faults of one page in one colour scheme: it is loaded once, and looked at in each width."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get(address)
    faults = [f"console: {entry['message']}" for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    shown = "slate" if scheme == "dark" else "default"
    if driver.execute_script("return document.body.dataset.mdColorScheme") != shown:
        faults.append(f"the page is not {scheme}")
    # The header covers large images, and parts of the page would move for a while after each change of the width.
    driver.execute_script("""
        const rules = ".md-header { visibility: hidden } * { transition: none !important }";
        document.head.appendChild(document.createElement("style")).textContent = rules;
    """)
    for width in WIDTHS:
        phone = width == min(WIDTHS)  # its scroll bars lie over the page
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        if wide > width:
            faults.append(f"{wide} pixels wide at {width}")
        for image in driver.find_elements("css selector", "article img"):
            faults += [f"{fault} at {width}" for fault in _faults_of_image(driver, image)]
    return faults


def _faults_of_image(driver: Any, image: Any) -> list[str]:
    name = image.get_attribute("src").rpartition("/")[2]
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'}); return arguments[0].decode()", image)
    if not driver.execute_script("return arguments[0].naturalWidth", image):
        return [f"{name} is not shown"]
    if not name.endswith(".svg"):
        return []
    measured = contrast(image.screenshot_as_png)
    faults = [] if measured >= LEAST_CONTRAST else [f"{name} has a contrast of {measured:.1f}"]
    scale = driver.execute_script("return arguments[0].width / arguments[0].naturalWidth", image)
    if "/bench/" not in image.get_attribute("src") and 12 * scale < LEAST_TEXT:
        faults.append(f"the text of {name} is {12 * scale:.1f} pixels high")
    return faults


def contrast(png: bytes) -> float:
    """Return the contrast between the corner of a picture and the hundredth of its pixels that differs most from it."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    size = picture.width * picture.height
    background = _luminance(*picture.getpixel((0, 0)))
    luminances = [(_luminance(*colour), count) for count, colour in picture.getcolors(size)]
    ratios = [((max(each, background) + 0.05) / (min(each, background) + 0.05), count) for each, count in luminances]
    left = size // 100
    for ratio, count in sorted(ratios, reverse=True):
        left -= count
        if left <= 0:
            return ratio
    return 1.0


def _luminance(*channels: int) -> float:
    """Return the relative luminance of a colour by the formula of WCAG."""
    shares = (channel / 255 for channel in channels)
    linear = [share / 12.92 if share <= _DARKEST else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def copied_text(driver: Any, address: str) -> str:
    """Return what the copy button of a page's first session copies."""
    driver.get(address)
    return str(
        driver.execute_script(
            "const code = document.querySelector('.highlight .gp').closest('code');"
            "code.setAttribute('data-md-copying', ''); const text = code.innerText;"
            "code.removeAttribute('data-md-copying'); return text.trim()"
        )
    )


def search_results(driver: Any, address: str, word: str) -> int:
    """Return how many results the search of a page shows; 0 after a minute without one."""
    from selenium.common.exceptions import TimeoutException, WebDriverException
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(address)
    driver.execute_script("document.querySelector('#__search').click()")
    wait = WebDriverWait(driver, 60, ignored_exceptions=[WebDriverException])  # the field appears after a while
    count = "return document.querySelectorAll('.md-search-result__item').length"
    try:
        wait.until(lambda driver: driver.find_element("css selector", ".md-search__input").send_keys(word) is None)
        return int(wait.until(lambda driver: driver.execute_script(count)))
    except TimeoutException:
        return 0


def main(site: Path = SITE) -> int:
    """Print the faults of the site, and return how many there are."""
    faults = [f"broken link in {link}" for link in broken_links(site)]
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html")
    with served(site) as address:
        for scheme in SCHEMES:
            with browser() as driver:  # a new one, because the site stores the scheme of its first visit
                for page in pages:
                    page_faults = faults_of_page(driver, f"{address}/{page}", scheme)
                    faults += [f"{page}, {scheme}: {fault}" for fault in page_faults]
                copied = copied_text(driver, f"{address}/tutorial/ids.html")
                for start in (f"{address}/index.html", f"{site.as_uri()}/index.html"):  # served, and from the folder
                    if not search_results(driver, start, "watermark"):
                        faults.append(f"the search of {start} finds nothing")
                if ">>>" in copied or "(34, 17, 1)" in copied:
                    faults.append(f"the copy button copies {copied!r}")
    print(*faults, sep="\n")
    print(f"{len(pages)} pages, {len(WIDTHS)} widths, {len(SCHEMES)} colour schemes: {len(faults)} faults")
    return len(faults)


if __name__ == "__main__":
    sys.exit(min(1, main()))
