"""Describes a wrong command line in our own sentences: click's errors use terms of its own."""

import re

import click

from hermesctl.parameters import quoted

_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)


def sentences(error: click.UsageError) -> tuple[str, str]:
    """The fault and the hint."""
    help = f"{error.ctx.command_path if error.ctx else 'hermesctl'} --help"
    match error:
        case click.NoSuchOption():
            near = error.possibilities or ()
            hint = f"did you mean {near[0]}?" if near else f"{help} lists the options"
            return f"there is no option {quoted(error.option_name)} here", hint
        case click.MissingParameter():
            return f"{_named(error)} is missing", help
        case click.BadParameter():
            return f"{_named(error)} {error.message}", help
        case click.BadOptionUsage():
            wants = "takes no value" if "does not take a value" in error.message else "needs a value"
            return f"{error.option_name} {wants}", help
    return _other(error, help)


def _other(error: click.UsageError, help: str) -> tuple[str, str]:
    message = error.format_message()
    if extra := _EXTRA.fullmatch(message):
        hint = f"put a text with spaces in quotes; {help}" if _takes_text(error) else help
        return f"{quoted(extra[1])} is one argument too many", hint
    if message == "Missing command.":
        return "a command is missing", help
    if error.ctx is not None and (unknown := re.fullmatch(r"No such command '(.*?)'\..*", message)):
        return _no_command(error.ctx, unknown[1], help)
    return message, help


def _takes_text(error: click.UsageError) -> bool:
    params = error.ctx.command.params if error.ctx else ()
    return any(isinstance(param, click.Argument) and param.name == "text" for param in params)


def _no_command(ctx: click.Context, name: str, help: str) -> tuple[str, str]:
    import difflib

    assert isinstance(ctx.command, click.Group)
    near = difflib.get_close_matches(name, ctx.command.list_commands(ctx), n=1, cutoff=0.5)
    hint = f"did you mean `{ctx.command_path} {near[0]}`?" if near else f"{help} lists the commands"
    return f"there is no command {quoted(f'{ctx.command.name} {name}')}", hint


def _named(error: click.BadParameter) -> str:
    """The parameter as the help shows it: --limit, or SESSION."""
    param = error.param
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    if param is None:
        return "an argument"
    return param.human_readable_name.replace("|", " or ")
