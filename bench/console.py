"""The console in a real browser: a long answer, many sessions, long sessions, and the size of what is sent.

An answer of 2,000 deltas at 200 a second comes from the model over HTTP, through supervisor and gateway, to
the page. Beside it another page gets the same deltas at the same times and renders the whole text with marked
and DOMPurify on every frame, as many consoles do. Script time is what the browser counts as such, of a page.
"""

import contextlib
import gzip
import shlex
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from bench.goals import Outcome, rounds_asked, tell
from bench.pretend import pretend_service
from bench.report import table
from ipc.places import find_places, make_private
from supervisor.core.records import MessageAccepted, MessageDropped
from supervisor.journal.journal import Journal
from tests.console.console_page import ARGUMENTS, CHROMIUM, TIMEOUT_MS, ConsolePage
from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.house_rules import ROOT
from tests.service import Service, settings_for

TITLE = "The console, beside a page that renders the whole answer again"
ROUNDS = 3
DELTAS, DELTAS_PER_SECOND = 2_000, 200
SESSIONS = (100, 10_000)
EVENTS = (100, 20_000)
TURNS = (400, 1_000)
SCRIPTS_BYTES_MAX = 60_000
_PATIENCE_SECONDS = 180.0
_PACKAGES = ROOT / "vendor" / "node_modules"
# The ways of Markdown that answers have, until there are as many words as deltas.
_PART = (
    "## Part\n\nSome **bold** and *quiet* words with `code` and a [link](https://example.org/page).\n\n"
    "1. first thing to do\n2. second thing to do\n\n"
    "```python\ndef part(number):\n    return number + 1\n```\n\n"
)
_RERENDER = """([words, interval]) => new Promise((resolve) => {
  const frame = document.body.appendChild(document.createElement("div"));
  const began = performance.now();
  let text = "", taken = 0;
  const draw = () => {
    const due = Math.min(words.length, Math.floor((performance.now() - began) / interval));
    if (due > taken) {
      text += words.slice(taken, due).join("");
      taken = due;
      frame.innerHTML = DOMPurify.sanitize(marked.parse(text));
    }
    if (taken < words.length) requestAnimationFrame(draw); else resolve();
  };
  requestAnimationFrame(draw);
})"""
_WATCH_TASKS = """window.longest = 0;
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
}).observe({ entryTypes: ["longtask"] })"""


def _words() -> list[str]:
    tokens = [token for line in _PART.splitlines(keepends=True) for token in _split(line)]
    return (tokens * (DELTAS // len(tokens) + 1))[:DELTAS]


def _split(line: str) -> list[str]:
    pieces = [piece + " " for piece in line.split(" ")]
    return [*pieces[:-1], pieces[-1][:-1]]


class Counted:
    """The script time of a page, as the browser counts it."""

    def __init__(self, page: Page) -> None:
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")

    def script_seconds(self) -> float:
        found = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in found if each["name"] == "ScriptDuration"))

    def heap_bytes(self) -> float:
        self._session.send("HeapProfiler.collectGarbage")
        return float(self._session.send("Runtime.getHeapUsage")["usedSize"])


def _streamed(page: ConsolePage, service: Service, session: str) -> tuple[float, float]:
    """Script milliseconds of one answer in the console, and its longest task.

    The end is awaited at the supervisor: a driver that looks into the page meanwhile is script, too.
    """
    page.open(f"/#/talk/{session}")
    expect(page.page.get_by_text(f"{session} is new")).to_be_visible()
    counted = Counted(page.page)
    page.page.evaluate(_WATCH_TASKS)
    text = "".join(_words())
    before = counted.script_seconds()
    client = page.gateway.client()
    words = f"[[slow interval={1 / DELTAS_PER_SECOND} text={shlex.quote(text)}]]"
    client.post(f"/api/sessions/{session}/messages", json={"text": words}).raise_for_status()
    service.listen(session).ending(f"{session}/1", _PATIENCE_SECONDS)
    spent = counted.script_seconds() - before
    expect(page.turns("done")).to_be_visible()
    return spent * 1000, float(page.page.evaluate("window.longest"))


def _rerendered(browser: Browser) -> float:
    page = browser.new_page()
    for script in ("marked/lib/marked.umd.js", "dompurify/dist/purify.min.js"):
        page.add_script_tag(content=(_PACKAGES / script).read_text())
    counted = Counted(page)
    before = counted.script_seconds()
    page.evaluate(_RERENDER, [_words(), 1000 / DELTAS_PER_SECOND])
    spent = counted.script_seconds() - before
    page.close()
    return spent * 1000


def _fill(home: Path, sessions: int, events: int) -> None:
    """Sessions with a message that was dropped, and one with many of them."""
    places = find_places(str(home))
    make_private(places.state)
    journal = Journal.open(places.journal, places.lock)
    names = [f"session-{number}" for number in range(sessions)]
    for begin in range(0, sessions, 200):
        journal.commit_now([each for name in names[begin : begin + 200] for each in _message(name, 1)])
    for begin in range(1, events, 400):
        numbers = range(begin, min(begin + 400, events), 2)
        journal.commit_now([each for seq in numbers for each in _message("long", seq)])
    journal.close()


def _message(session: str, seq: int) -> list[MessageAccepted | MessageDropped]:
    id, at = f"m_{session}_{seq}", time.time()
    accepted = MessageAccepted(
        session=session, at=at, seq=seq, message=id, key=id, kind="text", text="words " * 20, busy="queue"
    )
    return [accepted, MessageDropped(session=session, at=at, seq=seq + 1, message=id, by="bench")]


@contextlib.contextmanager
def _filled(folder: Path, sessions: int, events: int) -> Iterator[GatewayProcess]:
    _fill(folder, sessions, events)
    with pretend_service(folder, 1, spares=1) as (places, _), GatewayProcess(places) as gateway:
        yield gateway


def _opened(page: ConsolePage) -> float:
    """Milliseconds from the request of the page to its newest message and its list of sessions."""
    began = time.perf_counter()
    page.page.goto("about:blank")
    page.open("/#/talk/long")
    expect(page.page.locator(".aside").last).to_be_visible()
    expect(page.page.locator(".session-row").nth(50)).to_be_attached()
    return (time.perf_counter() - began) * 1000


def _measure_opening(folder: Path, browser: Browser, rounds: int) -> Outcome:
    with (
        _filled(folder / "few", SESSIONS[0], EVENTS[0]) as few,
        _filled(folder / "many", SESSIONS[1], EVENTS[1]) as many,
    ):
        pages = [ConsolePage(browser, gateway).login(session="long") for gateway in (many, few)]
        pairs = [[_opened(page) for page in pages] for _ in range(rounds * 3)]
        for page in pages:
            page.context.close()
    what = f"open {SESSIONS[1]:,} sessions, {EVENTS[1]:,} events"
    return Outcome(what, [pair[0] for pair in pairs], [pair[1] for pair in pairs], "ms", "at most", 2)


def _measure_heap(page: ConsolePage, service: Service) -> Outcome:
    """The heap of a page that has followed so many turns of one session."""
    page.open("/#/talk/many")
    listener = service.listen("many")
    counted, heaps = Counted(page.page), []
    for number in range(1, TURNS[1] + 1):
        service.say("many", f"turn {number}")
        listener.ending(f"many/{number}")
        if number in TURNS:
            expect(page.turns("done").last).to_contain_text(f"You said: turn {number}")
            heaps.append(counted.heap_bytes() / 2**20)
    return Outcome(f"heap after {TURNS[1]:,} turns", [heaps[1]], [heaps[0]], "MiB", "at most", 1.2)


def _tell_size() -> None:
    scripts = sorted((ROOT / "gateway" / "console").glob("*.js"))
    sizes = [len(gzip.compress(path.read_bytes(), mtime=0)) for path in scripts]
    verdict = "met" if sum(sizes) <= SCRIPTS_BYTES_MAX else "not met"
    table(
        "Scripts, gzip",
        [["files", "bytes", "goal", ""], [f"{len(sizes)}", f"{sum(sizes):,}", "60,000", verdict]],
    )


def measure(rounds: int) -> list[Outcome]:
    expect.set_options(timeout=TIMEOUT_MS)
    _tell_size()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
        opening = _measure_opening(Path(folder), browser, rounds)
        with FakeModel() as model:
            home = Path(folder, "service")
            with (
                Service(home, settings_for(model, workers="count = 2")) as service,
                GatewayProcess(service.places) as gateway,
            ):
                page = ConsolePage(browser, gateway).login()
                streams = [(_streamed(page, service, f"s-{n}"), _rerendered(browser)) for n in range(rounds)]
                heap = _measure_heap(page, service)
                page.context.close()
        browser.close()
    longest = max(longest for (_, longest), _ in streams)
    table("Longest task while an answer streams", [["ms", "goal", ""], _task_row(longest)])
    ours, limit = [ours for (ours, _), _ in streams], [other for _, other in streams]
    answer = Outcome(f"script of {DELTAS:,} deltas", ours, limit, "ms", "at most", 0.05)
    return [answer, opening, heap]


def _task_row(longest: float) -> list[str]:
    # Tasks below 50 ms are not reported by the browser.
    return [f"{longest:.0f}" if longest else "below 50", "50", "met" if longest <= 50 else "not met"]


if __name__ == "__main__":
    if not _PACKAGES.is_dir():
        raise SystemExit("marked and DOMPurify are not installed: npm ci --prefix vendor")
    tell(TITLE, measure(rounds_asked(ROUNDS)))
