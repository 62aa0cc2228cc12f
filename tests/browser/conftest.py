"""A server for the built book, and a Chromium that reaches nothing else."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from chromium import chromium

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
HERE = Path(__file__).parent
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def pytest_collection_modifyitems(items):
    """Mark these tests, and skip them where there is no Chromium."""
    missing = pytest.mark.skip(reason="no Chromium found on this machine")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if chromium() is None:
                item.add_marker(missing)


class Quiet(SimpleHTTPRequestHandler):
    """Serve files without a line for each."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="session")
def site():
    """Address of a server of the built book."""
    assert (ROOT / "_build" / ".passed").exists(), "no good build: run `make book`"
    handler = functools.partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of a worker."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=OPTIONS)
        yield browser
        browser.close()


class Visit:
    """One page of the book in a fresh browser profile, and what went wrong on it."""

    def __init__(self, browser, site, **options):
        """Prepare to open pages; `options` are those of a browser context."""
        self.site = site
        self.faults = []
        self.context = browser.new_context(**options)
        self.context.route("**/*", self.guard)
        self.page = self.context.new_page()
        self.page.on("console", self.note_console)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("response", self.note_response)

    def guard(self, route):
        """Let through what the book serves; note and stop the rest."""
        if route.request.url.startswith(self.site):
            route.continue_()
        else:
            self.faults.append(f"asks another host: {route.request.url}")
            route.abort()

    def note_console(self, message):
        """Note what the page complains about."""
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def note_response(self, response):
        """Note what the book does not have."""
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")

    def open(self, name):
        """Open a page and wait until it stands still."""
        self.page.goto(f"{self.site}/{name}.html", wait_until="load")
        self.page.wait_for_load_state("networkidle")
        self.page.evaluate("window.MathJax?.startup?.promise.then(() => 0)")
        return self.page


def visits(browser, site):
    """Make visits, and end them when they are not needed any more."""
    made = []

    def start(**options):
        made.append(Visit(browser, site, **options))
        return made[-1]

    yield start
    for one in made:
        one.context.close()


@pytest.fixture
def visit(browser, site):
    """Make visits, and end them after the test."""
    yield from visits(browser, site)


@pytest.fixture(scope="module")
def lasting_visit(browser, site):
    """Make visits that several tests share."""
    yield from visits(browser, site)
