"""The result of a command that acts: a sentence for a person, or one line of JSON for a program."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from hermesctl.neutral import json_text
from hermesctl.render import aside, one_line


def acting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command that acts the option --json; the command gets it as `form`."""
    option = click.option("--json", "form", flag_value="json", default="words", help="Print one JSON object.")
    return option(command)


def tell(form: str, sentence: str, **fields: object) -> None:
    """Prints the sentence, or the fields."""
    if form == "json":
        print_object(fields)
    else:
        print(one_line(sentence), flush=True)


def steps(form: str) -> Callable[[str], None]:
    """Returns where a command with several steps reports each: beside the object where one is printed."""
    return aside if form == "json" else print


def print_object(fields: Mapping[str, object]) -> None:
    print(json_text(fields), flush=True)
