"""Recipes of docs/cookbook.md, run as printed: their files, settings and commands, and what is seen.

Three things of a recipe cannot be as printed in a test: the address of the model, folders below /srv, and
programs that are installed elsewhere. `Recipe.replaced` puts others in their place, everywhere in the recipe.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.service import Service
from tests.waiting import until

_PAGE = Path(__file__).resolve().parents[1] / "docs" / "cookbook.md"
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
# The last path in backquotes before a block of code is its file.
_FILE = re.compile(r"`((?:/[\w.-]+)*/?(?:agents|shop|tools|opencode)/[\w.-]+)`")
_READING = ("questions", "why")
_SEEN_SECONDS_MAX = 150.0


@dataclass(frozen=True)
class Command:
    line: str
    seen: str

    def is_seen(self, output: str) -> bool:
        """Whether the output is as printed: `…` is any text, and columns may be wider."""
        pattern = r"\s+".join(".*".join(map(re.escape, word.split("…"))) for word in self.seen.split())
        return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


@dataclass(frozen=True)
class Recipe:
    text: str

    def replaced(self, *pairs: tuple[str, str]) -> "Recipe":
        text = self.text
        for printed, here in pairs:
            assert printed in text, f"{printed} is not in the recipe"
            text = text.replace(printed, here)
        return Recipe(text)

    @property
    def settings(self) -> str:
        (settings,) = self._blocks("toml")
        return settings

    @property
    def files(self) -> dict[str, str]:
        """The files that the recipe prints, by the path that is named last before each."""
        found = {}
        for block in _BLOCK.finditer(self.text):
            if block[1] in ("python", "sh", "json"):
                found[_FILE.findall(self.text[: block.start()])[-1]] = block[2]
        return found

    @property
    def commands(self) -> list[Command]:
        (console,) = self._blocks("console")
        parts = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
        return [Command(*part.split("\n", 1)) for part in parts]

    def _blocks(self, language: str) -> list[str]:
        return [block[2] for block in _BLOCK.finditer(self.text) if block[1] == language]

    def play(self, service: Service) -> None:
        """Runs the commands in order; those that only read are repeated until they show what is printed."""
        for command in self.commands:
            program, *arguments = shlex.split(command.line)
            assert program == "hermesctl"
            output = ""

            def is_seen(arguments: list[str] = arguments, command: Command = command) -> bool:
                nonlocal output
                done = service.hermesctl(*arguments, timeout=_SEEN_SECONDS_MAX)
                output = done.stdout + done.stderr
                return command.is_seen(done.stdout)

            try:
                is_as_printed = until(is_seen, _SEEN_SECONDS_MAX) if arguments[0] in _READING else is_seen()
            except AssertionError:
                is_as_printed = False
            assert is_as_printed, f"{command.line} printed:\n{output}"


def recipe(title: str) -> Recipe:
    """The section of the page with this title."""
    sections = re.split(r"^## ", _PAGE.read_text(), flags=re.MULTILINE)[1:]
    (found,) = [section for section in sections if section.splitlines()[0] == title]
    return Recipe(found)


def titles() -> list[str]:
    return re.findall(r"^## (.*)$", _PAGE.read_text(), flags=re.MULTILINE)
