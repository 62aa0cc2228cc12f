"""How fast the what-ifs of the built book are in Chromium, on this machine.

usage: python tools/bench_browser.py

Prints a figure beside its target and judges nothing. Where there is no Chromium, or no
built book, it says so.
"""

import functools
import gzip
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

from chromium import chromium
from toc import page_names

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
sys.path.insert(0, str(ROOT / "lib"))
HEAVY = ("your_rig", "plan_search", "new_hardware")  # they search all plans
DRAWINGS = ("pipeline_timeline", "topology_flow")
UPDATES, MOVES = 60, 200

MOVE = """async (element, turn) => {
  const sliders = [...element.querySelectorAll("input[type=range]")];
  const menus = [...element.querySelectorAll("select")];
  const start = performance.now();
  if (sliders.length) {
    const one = sliders[turn % sliders.length], stops = Number(one.max) + 1;
    one.value = (Number(one.value) + (turn % 2 ? 1 : stops - 1)) % stops;
    one.dispatchEvent(new Event("input", { bubbles: true }));
  } else {
    const one = menus[turn % menus.length];
    one.selectedIndex = (one.selectedIndex + 1) % one.options.length;
    one.dispatchEvent(new Event("input", { bubbles: true }));
  }
  await element.whatIf.answering;
  await new Promise(painted => requestAnimationFrame(() => setTimeout(painted)));
  return performance.now() - start;
}"""

HURRY = """async (element, moves) => {
  let replies = 0;
  element.addEventListener("whatif:shown", () => { replies += 1; });
  const slider = element.querySelector("input[type=range]");
  for (let turn = 0; turn < moves; turn += 1) {
    slider.value = turn % (Number(slider.max) + 1);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise(done => setTimeout(done, 1));
  }
  await element.whatIf.answering;
  return [replies, element.whatIf.engine.memory];
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Serve files without a line for each."""

    def log_message(self, *_):
        """Say nothing."""


def share(times, part):
    """The time that this part of them does not exceed."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def pages():
    """What-ifs by the first page that shows them."""
    from commwall.whatif import WHAT_IFS

    found = {}
    for page in page_names():
        html = (SITE / f"{page}.html").read_text("utf-8")
        for name in WHAT_IFS:
            if f'data-whatif="{name}"' in html:
                found.setdefault(name, page)
    return found


def transferred(browser, site, page):
    """Bytes of a page that nobody touches, each answer packed by gzip."""
    context, answers = browser.new_context(), []
    tab = context.new_page()
    tab.on("response", lambda answer: answers.append(answer))
    tab.goto(f"{site}/{page}.html", wait_until="networkidle")
    sizes = [len(gzip.compress(answer.body(), 6)) for answer in answers]
    urls = " ".join(answer.url for answer in answers)
    context.close()
    return sum(sizes), "pyodide" in urls or ".snap" in urls


def first_answers(browser, site, page, name):
    """Milliseconds from the first touch to the answer, with a cold cache and a warm."""
    context, taken = browser.new_context(), []
    for _ in range(2):
        tab = context.new_page()
        tab.goto(f"{site}/{page}.html", wait_until="networkidle")
        taken.append(tab.locator(f"#whatif-{name}").evaluate(MOVE, 0))
        tab.close()
    context.close()
    return taken


def heap(session):
    """Bytes of the page's own memory that nothing can let go of."""
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(m["value"] for m in metrics if m["name"] == "JSHeapUsedSize")


def updates(browser, site, page, name):
    """Milliseconds of moves one after another, replies to a hurry, memory it left.

    Memory is that of Python and that of the page.
    """
    context = browser.new_context()
    tab = context.new_page()
    session = context.new_cdp_session(tab)
    session.send("Performance.enable")
    tab.goto(f"{site}/{page}.html", wait_until="networkidle")
    element = tab.locator(f"#whatif-{name}")
    element.scroll_into_view_if_needed()
    element.evaluate(MOVE, 0)
    taken = [element.evaluate(MOVE, turn) for turn in range(UPDATES)]
    replies = growth = litter = 0
    if element.locator("input[type=range]").count():
        _, before = element.evaluate(HURRY, MOVES)
        kept = heap(session)
        replies, after = element.evaluate(HURRY, MOVES)
        growth, litter = after - before, heap(session) - kept
    context.close()
    return taken, replies, (growth, litter)


def report(browser, site):
    """All figures, a line each."""
    found = pages()
    for page in dict.fromkeys(found.values()):
        size, early = transferred(browser, site, page)
        words = "Python among it" if early else "no Python among it"
        print(f"{page:<28} {size / 1e3:6.0f} kB untouched, {words} (target 700)")
    for name in ("message_time", "your_rig"):
        cold, warm = first_answers(browser, site, found[name], name)
        print(f"first answer, {name}: cold {cold / 1e3:.2f} s (target 2.5), "
              f"warm {warm / 1e3:.2f} s (target 1.2)")  # fmt: skip
    for name, page in found.items():
        taken, replies, growth = updates(browser, site, page, name)
        target = 2000 if name in HEAVY else 100 if name in DRAWINGS else 33
        print(f"{name:<18} p50 {share(taken, 0.5):5.0f} ms, p95 "
              f"{share(taken, 0.95):5.0f} ms (target {target}); {MOVES} quick moves: "
              f"{replies:3d} replies, memory {growth[0] / 2**20:+.1f} MiB of Python, "
              f"{growth[1] / 2**20:+.1f} MiB of the page (target 0)")  # fmt: skip


def main():
    """Serve the built book and time it."""
    if chromium() is None or not (SITE / "index.html").exists():
        print("no figures of the browser: they need Chromium and `make book`")
        return
    handler = functools.partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site = f"http://127.0.0.1:{server.server_address[1]}"
        with sync_playwright() as playwright:
            options = ["--no-sandbox", "--disable-gpu"]
            browser = playwright.chromium.launch(
                executable_path=chromium(), args=options
            )
            report(browser, site)
            browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
