"""Take a picture of every built page, on a desktop and on a phone.

usage: python tools/screenshots.py FOLDER
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from chromium import chromium
from toc import ROOT, page_names

WIDTHS = (1440, 390)


def take(browser, name, width, folder):
    """One page at one width, from top to bottom."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((ROOT / "_build" / "html" / f"{name}.html").as_uri())
    page.evaluate("window.MathJax?.startup?.promise.then(() => 0)")
    path = folder / f"{name.replace('/', '-')}-{width}.png"
    page.screenshot(path=path, full_page=True)
    page.close()
    print(path)


def main(folder):
    """All pages."""
    if chromium() is None:
        sys.exit("No Chromium here: nothing can be taken.")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        for name in page_names():
            for width in WIDTHS:
                take(browser, name, width, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
