"""Rules for the scripts, styles and pages of the console, and that each of them can say no."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.house_rules import ROOT, Source, files_have_one_subject

FOLDER = ROOT / "gateway" / "console"
# By `make vendor` and `make console`.
MADE = ("vendor.js", "console.js")
# A template of a page has its markup, its conditions and its words in one line.
LINE_CHARACTERS_MAX = 140
# Each makes markup, or a program, of a text.
_MAKES_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc"
    r"|\beval\(|new Function|setAttribute\(\s*[\"'`]on"
)
_ADDRESS = re.compile(r"(?:https?|wss?)://[^\s\"'`)]*|(?<=[\"'(])//[\w.-]+\.\w+")
# Names of formats, and this machine itself.
_NO_REQUEST = ("http://www.w3.org/", "http://localhost")

Rule = Callable[[Source], Iterator[str]]


def written() -> list[Source]:
    paths = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".js", ".css", ".html", ".svg"))
    return [_source(path) for path in paths if path.name not in MADE]


def _source(path: Path) -> Source:
    return Source(path.relative_to(ROOT).as_posix(), path.read_text())


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(source.text.splitlines(), start=1))


def text_is_never_markup(source: Source) -> Iterator[str]:
    """Texts of strangers become nodes: no script reads a string as HTML or as a program."""
    for number, line in _lines(source):
        if not line.lstrip().startswith(("//", "*", "/*")) and (found := _MAKES_MARKUP.search(line)):
            yield f"line {number}: {found[0]} reads a text as markup or as a program"


def nothing_comes_from_elsewhere(source: Source) -> Iterator[str]:
    """No font, script, picture or request leaves the gateway's own origin."""
    for number, line in _lines(source):
        for found in _ADDRESS.findall(line):
            if not found.startswith(_NO_REQUEST):
                yield f"line {number}: {found} is elsewhere"


def files_introduce_themselves(source: Source) -> Iterator[str]:
    if source.path.endswith((".js", ".css")) and not source.text.startswith(("// ", "/* ")):
        yield "the file opens without a sentence that says what it is"


def lines_fit_the_page(source: Source) -> Iterator[str]:
    for number, line in _lines(source):
        if len(line) > LINE_CHARACTERS_MAX:
            yield f"line {number}: {len(line)} characters, the limit is {LINE_CHARACTERS_MAX}"


RULES: tuple[Rule, ...] = (
    text_is_never_markup,
    nothing_comes_from_elsewhere,
    files_introduce_themselves,
    lines_fit_the_page,
    files_have_one_subject,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_files_of_the_console_keep_the_rule(rule: Rule) -> None:
    sources = written()
    assert {"gateway/console/modules/app.js", "gateway/console/base.css"} <= {each.path for each in sources}
    found = [f"{source.path} {complaint}" for source in sources for complaint in rule(source)]
    assert found == [], "\n".join(found)


BAD: list[tuple[Rule, str]] = [
    (text_is_never_markup, "frame.innerHTML = text"),
    (text_is_never_markup, "eval(text)"),
    (text_is_never_markup, "node.setAttribute('onclick', text)"),
    (nothing_comes_from_elsewhere, "@import url(https://fonts.example/a.css)"),
    (nothing_comes_from_elsewhere, 'import "//cdn.example/x.js"'),
    (files_introduce_themselves, "export const a = 1;"),
    (lines_fit_the_page, "/" * (LINE_CHARACTERS_MAX + 1)),
    (files_have_one_subject, "// x\n" * 401),
]


@pytest.mark.parametrize(("rule", "text"), BAD, ids=lambda value: getattr(value, "__name__", None))
def test_the_rule_says_no(rule: Rule, text: str) -> None:
    assert list(rule(Source("gateway/console/x.js", text)))


def test_every_rule_has_a_case_it_refuses() -> None:
    assert {rule for rule, _ in BAD} == set(RULES)
