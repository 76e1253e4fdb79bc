"""Calls that are denied before all rules, because they would destroy the host or the user's home.

This is a seat belt against a model's blunder, not a boundary: a command line has many ways to do the same in
other words. The boundary is the cell (docs/isolation.md).

- rm, recursively, of `/`, of the home folder, or of all that is in one of them
- a write to a block device, by a redirection, by dd, tee, cp and the like, or by the tools write and edit
- mkfs and its relatives, and programs that change partitions
- shutdown, reboot, halt, poweroff, also through systemctl and init
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from worker.command_lines import line_of

_DEVICE = (
    r"/dev/(?:(?:sd|hd|vd|xvd)[a-z]\d*|nvme\d\w*|mmcblk\d\w*|(?:loop|dm-|md|sr|nbd|zram|ram)\d+\w*"
    r"|mapper/[^\s;&|]+|disk/[^\s;&|]+)"
)
_DEVICE_PATH = re.compile(_DEVICE)
_REDIRECTED = re.compile(r">[|>&]?\s*[\"']?(/[^\s;&|<>()\"']+)")
_BETWEEN_COMMANDS = re.compile(r"[;&|\n()`]+|(?<!\S)[{}](?!\S)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_WRAPPERS = frozenset(
    ["sudo", "doas", "env", "nohup", "nice", "ionice", "time", "exec", "command", "setsid", "busybox"]
)
_FORMATTERS = frozenset(
    [
        "mke2fs",
        "mkswap",
        "mkdosfs",
        "wipefs",
        "blkdiscard",
        "fdisk",
        "sfdisk",
        "cfdisk",
        "sgdisk",
        "gdisk",
        "parted",
    ]
)
_WRITERS = frozenset(["tee", "cp", "mv", "install", "shred", "truncate", "badblocks"])
_ENDERS = frozenset(["shutdown", "reboot", "poweroff", "halt"])
_SHELLS = frozenset(["sh", "bash", "dash", "zsh"])
_WRITING_TOOLS = ("write", "edit", "write_file", "patch")
_HOME_WORDS = ("~", "$HOME", "${HOME}")


def danger(tool: str, given: Mapping[str, Any]) -> str:
    """Returns what the call would do to the host; "" when nothing of the list."""
    folder = given.get("folder") or given.get("workdir")
    if (line := line_of(given.get("command"))) is not None:
        return _danger_of_line(line, folder if isinstance(folder, str) else "")
    paths = [given.get(name) for name in ("path", "file_path", "filePath")]
    if tool in _WRITING_TOOLS and any(isinstance(path, str) and _is_device(path) for path in paths):
        return "it writes to a block device"
    return ""


def _danger_of_line(line: str, folder: str) -> str:
    if any(map(_is_device, _REDIRECTED.findall(line))):
        return "it writes to a block device"
    pieces = _BETWEEN_COMMANDS.split(line)
    return next((found for piece in pieces if (found := _danger_of_command(_words(piece), folder))), "")


def _words(piece: str) -> list[str]:
    try:
        words = shlex.split(piece)
    except ValueError:  # the other quote is in another piece
        words = piece.replace('"', " ").replace("'", " ").split()
    while words and (
        _ASSIGNMENT.fullmatch(words[0]) or words[0] in _WRAPPERS or words[0] in ("$", "then", "do", "else")
    ):
        words = words[1:]
    return words


def _danger_of_command(words: Sequence[str], folder: str) -> str:
    if not words:
        return ""
    program, given = words[0].rpartition("/")[2], words[1:]
    if program in _ENDERS or (program in ("init", "telinit") and given[:1] in (["0"], ["6"])):
        return "it ends the host"
    if program == "systemctl" and not _ENDERS.isdisjoint(given):
        return "it ends the host"
    if program in _FORMATTERS or program.partition(".")[0] == "mkfs":
        return "it makes or erases a file system"
    if program == "dd" and any(_is_device(word.removeprefix("of=")) for word in given if word[:3] == "of="):
        return "it writes to a block device"
    if program in _WRITERS and any(map(_is_device, given)):
        return "it writes to a block device"
    if program in _SHELLS and any(word[:1] == "-" and word[-1:] == "c" for word in given):
        return _danger_of_line(" ; ".join(given), folder)
    is_removal = program == "rm" and any(map(_is_recursive, given))
    if is_removal and any(_is_everything(word, folder) for word in given if not word.startswith("-")):
        return "it removes everything in / or in the home folder"
    return ""


def _is_recursive(word: str) -> bool:
    return word == "--recursive" or (word[:1] == "-" and word[:2] != "--" and not {"r", "R"}.isdisjoint(word))


def _is_everything(word: str, folder: str) -> bool:
    for name in _HOME_WORDS:
        if word == name or word.startswith(name + "/"):
            word = os.path.expanduser("~") + word[len(name) :]
    path = os.path.join(folder, word)
    # Relative to a folder that is not known, it may be anything.
    if not path.startswith("/"):
        return False
    path = os.path.normpath(path.removesuffix("*")).replace("//", "/")
    return path in ("/", os.path.expanduser("~"))


def _is_device(path: str) -> bool:
    return bool(_DEVICE_PATH.fullmatch(os.path.normpath(path).replace("//", "/")))
