"""Splits a command line of bash into its commands, as far as that can be done without running it.

Only plain lines are split: words, quotes, and commands joined by `;`, `&`, `|` and line ends. A line with
anything that bash expands or nests (`$`, backticks, backslashes, parentheses, redirections of files) is not
split at all: the reader of the result must then assume that the line runs any command.
"""

import re
import shlex
from dataclasses import dataclass

# Redirections that write no file.
_HARMLESS = re.compile(r"(?:[12]?>&[12]|[12&]?>>?[ \t]*/dev/null)(?=[\s;&|]|$)")
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+")
_RESERVED = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "function",
        "select",
        "time",
        "coproc",
        "in",
    ]
)
# Programs that run another one, which stands among their arguments.
_RUNNERS = frozenset(
    [
        ".",
        "bash",
        "builtin",
        "busybox",
        "command",
        "dash",
        "doas",
        "env",
        "eval",
        "exec",
        "find",
        "ionice",
        "nice",
        "nohup",
        "setsid",
        "sh",
        "source",
        "stdbuf",
        "sudo",
        "timeout",
        "xargs",
        "zsh",
    ]
)


@dataclass(frozen=True)
class CommandLine:
    """`commands` as they are written, then without their quotes; `has_runner`: one of them runs others."""

    commands: tuple[str, ...]
    unquoted: tuple[str, ...]
    has_runner: bool


def line_of(command: object) -> str | None:
    """Returns a command as a line, if it is one or a list of words; some agents give the latter."""
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return shlex.join(command)
    return command if isinstance(command, str) else None


def split(line: str) -> CommandLine | None:
    """Returns the commands of a line; None when they are not certain."""
    pieces = _pieces(line)
    commands = [command for piece in pieces or () if (command := piece.strip())]
    if not commands:
        return None
    programs = [command.split(maxsplit=1)[0] for command in commands]
    if not all(_PROGRAM.fullmatch(program) and program not in _RESERVED for program in programs):
        return None
    return CommandLine(
        tuple(commands),
        tuple(" ".join(shlex.split(command)) for command in commands),
        any(program.rpartition("/")[2] in _RUNNERS for program in programs),
    )


def _pieces(line: str) -> list[str] | None:
    """Returns the texts between the operators; None for a line that is not plain."""
    pieces, piece, at = [], "", 0
    while at < len(line):
        each = line[at]
        starts_word = not piece or piece[-1].isspace()
        if each in "'\"":
            end = line.find(each, at + 1)
            quoted = line[at : end + 1]
            if end < 0 or (each == '"' and any(special in quoted for special in "$`\\")):
                return None
            piece, at = piece + quoted, end + 1
        elif (each in ">&" or (each in "12" and starts_word)) and (found := _HARMLESS.match(line, at)):
            piece, at = piece + " ", found.end()
        elif each in "$`\\()<>" or (each == "#" and starts_word):
            return None
        elif each in ";&|\n":
            pieces.append(piece)
            piece, at = "", at + 1
        elif not each.isprintable() and each != "\t":
            return None
        else:
            piece, at = piece + each, at + 1
    return [*pieces, piece]
