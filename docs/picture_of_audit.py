"""Draw the page of the tutorial's audit as a PNG file, with Chromium; the meanings of the findings are left out.

python docs/picture_of_audit.py
"""

from __future__ import annotations

import contextlib
import tempfile
from doctest import DocTestParser
from pathlib import Path
from typing import Any

from check_site import browser

PAGES = Path(__file__).parent / "pages"
TARGET = PAGES / "images" / "audit.png"
SIZE = {"width": 1000, "height": 990, "deviceScaleFactor": 1, "mobile": True}


def main() -> None:
    """Run the tutorial up to the example that writes the page, and draw that page."""
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), browser() as driver:
        for example in DocTestParser().get_examples((PAGES / "tutorial" / "audit.md").read_text(encoding="utf-8")):
            exec(compile(example.source, "tutorial", "exec"), names)
            if "to_html" in example.source:
                break
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
        driver.get(Path("audit.html").absolute().as_uri())
        driver.execute_script("document.getElementById('meanings').remove()")
        driver.save_screenshot(str(TARGET))


if __name__ == "__main__":
    main()
