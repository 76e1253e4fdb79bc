"""Completion scripts and their protocol: bash in a way of our own, zsh and fish as click does it."""

import os
import re
from typing import ClassVar

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

VARIABLE = "_HERMESCTL_COMPLETE"
# Characters that are special to a shell inside a word, or at its beginning.
_SPECIAL = re.compile(r"""([\s"'\\$`&;|<>()*?\[\]{}!]|^[~#])""")

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' type value
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(ShellComplete):
    """Uses the line as typed: bash itself would break names such as telegram:42 at the colon."""

    name: ClassVar[str] = "bash"
    source_template: ClassVar[str] = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        if not words or line[-1:].isspace():
            return words[1:], ""
        return words[1:-1], words[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{self._typed_next(str(item.value))}"

    def _typed_next(self, value: str) -> str:
        """Bash puts the result in place of the text after the last break in the word."""
        line = os.environ.get("COMP_LINE", "")
        word = re.split(r"(?<!\\)\s", line)[-1]
        if word[:1] in ("'", '"'):
            return value
        escaped = _SPECIAL.sub(r"\\\1", value)
        breaks = [sign for sign in ":=" if sign in os.environ.get("COMP_WORDBREAKS", "") and sign in word]
        kept = max((word.rindex(sign) + 1 for sign in breaks), default=0)
        return escaped[kept:] if escaped.startswith(word[:kept]) else escaped


add_completion_class(Bash)
