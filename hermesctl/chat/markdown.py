"""Draws Markdown in the terminal's own colours, nothing centred, without terminal control sequences."""

import re
from collections.abc import Iterator
from functools import lru_cache
from io import StringIO
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from hermesctl.neutral import neutral

# A styled piece of a line, in the form of the screen: style and text.
Fragment = tuple[str, str]
Line = list[Fragment]

_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.h1": "bold",
        "markdown.h2": "bold",
        "markdown.h3": "bold italic",
        "markdown.h4": "italic",
        "markdown.h5": "italic",
        "markdown.h6": "italic",
        "markdown.block_quote": "dim italic",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.hr": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "dim underline",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    },
)
# Below this the layout itself needs the space; the window cuts the text instead.
_WIDTH_MIN = 20
# Some hundred lines of code take hundredths of a second to draw; an endless block must not delay the keys.
_BLOCK_CHARACTERS_MAX = 20_000
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)", re.MULTILINE)


class _Code(CodeBlock):
    """Code is indented by two, in the terminal's colours, on its own background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        syntax = Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)
        yield Padding(syntax, (0, 0, 0, 2))


class _Heading(Heading):
    """A heading is a bold line at the left, like any other line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Calm(Markdown):
    """Shows HTML tags as text, and keeps line breaks."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
    }

    def __init__(self, markup: str) -> None:
        super().__init__(markup, hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
        self.parsed = parser.parse(markup)
        for token in self.parsed:
            for child in token.children or ():
                child.type = "hardbreak" if child.type == "softbreak" else child.type


def markdown_lines(text: str, width: int) -> list[Line]:
    """Draws a text block by block: while it grows, only the last block is drawn again."""
    lines: list[Line] = []
    *finished, last = [*_blocks(text)] or [""]
    for block in finished:
        lines += [*_kept_lines(block, width), []]
    return lines + _block_lines(last, width)


# Finished blocks: several screens of answers. The growing block is not cached, because it would fill the
# cache.
@lru_cache(maxsize=1000)
def _kept_lines(text: str, width: int) -> tuple[Line, ...]:
    return tuple(_block_lines(text, width))


def _block_lines(text: str, width: int) -> list[Line]:
    """Draws a block of Markdown no wider than `width`; one that is too long is shown as plain text."""
    if len(text) > _BLOCK_CHARACTERS_MAX:
        return [[("", piece)] for line in neutral(text).split("\n") for piece in _chopped(line, width)]
    console = Console(
        file=StringIO(), width=max(width, _WIDTH_MIN), theme=_THEME, legacy_windows=False, emoji=False
    )
    lines = [_fragments(segments) for segments in console.render_lines(_Calm(neutral(text)), pad=False)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def plain_lines(text: str, width: int) -> list[str]:
    """Wraps plain text by its width in terminal cells."""
    console = Console(file=StringIO(), width=width, legacy_windows=False)
    return [line.plain.rstrip() for line in Text(text).wrap(console, width)]


def _chopped(line: str, width: int) -> list[str]:
    if line.isascii():
        return [line[begin : begin + width] for begin in range(0, len(line), width)] or [""]
    return chop_cells(line, width)


def _blocks(text: str) -> Iterator[str]:
    """Splits at blank lines; a fence, a list and a table are never divided."""
    block: list[str] = []
    fence = ""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        block.append(line)
        found = _FENCE.match(line)
        if found and not fence:
            fence = found.group(1)
        elif found and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        following = next((each for each in lines[index + 1 : index + 4] if each.strip()), "")
        if not fence and not line.strip() and any(map(str.strip, block)) and not _goes_on(following):
            yield "\n".join(block)
            block = []
    if any(map(str.strip, block)):
        yield "\n".join(block)


def _goes_on(line: str) -> bool:
    """True when a line after a blank one may belong to the list before it."""
    return bool(re.match(r"\s|[-*+] |\d+[.)] ", line))


def _fragments(segments: list[Segment]) -> Line:
    """Returns the line without trailing fill."""
    line = [(_style(segment.style), segment.text) for segment in segments if segment.text.strip("\n")]
    while line and not line[-1][1].strip():
        line.pop()
    if line:
        line[-1] = (line[-1][0], line[-1][1].rstrip())
    return line


@lru_cache(maxsize=500)
def _style(style: Style | None) -> str:
    """Returns a style in the notation of the screen."""
    if style is None:
        return ""
    words = [word for word in ("bold", "dim", "italic", "underline", "strike") if getattr(style, word)]
    for prefix, color in (("fg", style.color), ("bg", style.bgcolor)):
        if color is not None and not color.is_default:
            number = color.number if color.number is not None and color.number < 16 else None
            words.append(f"{prefix}:{_ANSI[number] if number is not None else color.get_truecolor().hex}")
    return " ".join(words)


_ANSI = [
    *("ansiblack", "ansired", "ansigreen", "ansiyellow", "ansiblue", "ansimagenta", "ansicyan", "ansigray"),
    *("ansibrightblack", "ansibrightred", "ansibrightgreen", "ansibrightyellow"),
    *("ansibrightblue", "ansibrightmagenta", "ansibrightcyan", "ansiwhite"),
]
