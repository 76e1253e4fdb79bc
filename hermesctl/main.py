"""Finds the command of a command line; a command's module is imported only when that command is used."""

import os
import sys
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit
from hermesctl.neutral import guard_streams, neutral
from hermesctl.pager import no_pager
from hermesctl.parameters import file, quoted

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Name and one-line help, in reading order; `--help` needs no module to show this.
COMMANDS = {
    "run": "Run the supervisor in the foreground.",
    "start": "Start the supervisor in the background and return when it is ready.",
    "stop": "Stop the supervisor and return when it has ended.",
    "restart": "Stop the supervisor and start it again.",
    "status": "Show the state of the supervisor.",
    "drain": "Begin no new turns; those that run finish.",
    "undrain": "Begin turns again after `hermesctl drain`.",
    "scale": "Change how many turns may run at once, or show it.",
    "send": "Send a message to a session and stream the answer.",
    "chat": "Chat with a session in the terminal.",
    "interrupt": "Stop a running turn now, with everything it has started.",
    "queue": "Show or change the messages that wait behind a running turn.",
    "questions": "List the open questions of agents.",
    "answer": "Answer a question; its turn goes on.",
    "approve": 'Answer a question with "yes".',
    "deny": 'Answer a question with "no".',
    "retry": "Submit the messages of a failed or interrupted turn again.",
    "tail": "Print events as they happen.",
    "cursors": "List how far named clients have read.",
    "sessions": "List the sessions.",
    "turns": "List the turns.",
    "workers": "List the workers: what each one does and costs.",
    "services": "List the services beside the workers.",
    "hosts": "List the hosts that share the journal.",
    "agents": "List the agents, try one, and prepare the interpreter of one.",
    "top": "Watch seats, sessions, queue, services and costs live.",
    "reload": "Read hermes.toml again, live where that is possible.",
    "metrics": "Print the metrics, in Prometheus' text format.",
    "traces": "Send a trace of every turn that ends to an OpenTelemetry collector.",
    "why": "Show the whole history of a message or a turn.",
    "journal": "Maintain the journal, which has all messages and turns.",
    "tokens": "Add, list and revoke the tokens of the gateway.",
    "pair": "Print a code that a person exchanges once for a token of the gateway.",
    "models": "List and fetch the weights of the embedded models.",
    "logs": "Show the log of the supervisor.",
    "doctor": "Check this host, and say how to fix what is wrong.",
    "install": "Install the supervisor as a systemd service and start it.",
    "uninstall": "Stop the systemd service and remove its units; data stays.",
    "completion": "Print the script that makes a shell complete hermesctl's commands, sessions and ids.",
    "version": "Print the version.",
}
# A sentence that is wider than the terminal continues indented.
_INDENT = 4
_EXAMPLES = """\b
Examples:
  hermesctl start
  hermesctl send demo "What is the capital of France?"
  hermesctl status
"""


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"hermesctl.commands.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[Any]]":
        """Completes without a command's module: twenty imports are too slow after Tab."""
        from click.shell_completion import CompletionItem

        offered = [CompletionItem(name, help=text) for name, text in COMMANDS.items()]
        matching = [item for item in offered if item.value.startswith(incomplete)]
        return matching + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Caught here because click itself would exit with the code of a bug.
            return _output_closed()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise _unknown(args[0])
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        from hermesctl.commands.version import installed_version

        click.echo(f"hermes-supervisor {installed_version()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--home",
    **file("DIR"),
    envvar="HERMES_SUPERVISOR_HOME",
    help="Folder that holds config, state and sockets of one instance.  [env: HERMES_SUPERVISOR_HOME]",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@no_pager
@click.pass_context
def hermesctl(ctx: click.Context, home: str | None) -> None:
    """Control the hermes supervisor: sessions, turns and the workers that answer them."""
    from ipc.places import find_places

    ctx.obj = find_places(home)


def main() -> NoReturn:
    """Runs one command and exits with its code; every failure is one sentence and a hint."""
    sys.excepthook = _report_bug
    _tolerate_narrow_encodings()
    guard_streams()
    sys.exit(_run())


def _run() -> int:
    from ipc.errors import WireError

    if "_HERMESCTL_COMPLETE" in os.environ:
        import_module("hermesctl.shells")
    try:
        code = hermesctl.main(prog_name="hermesctl", standalone_mode=False)
        sys.stdout.flush()
    except CommandError as error:
        return _complain(error.fault, error.hint, error.code)
    except WireError as error:
        return _complain(error.fault, error.hint, _code_of(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return Exit.USAGE
    except click.UsageError as error:
        from hermesctl.usage_errors import sentences

        return _complain(*sentences(error), Exit.USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), "hermesctl --help", error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return Exit.CTRL_C
    except BrokenPipeError:
        return _output_closed()
    return code if isinstance(code, int) else Exit.DONE


def _complain(fault: str, hint: str, code: int) -> int:
    from hermesctl.render import folded

    lines = [*f"hermesctl: {fault}".splitlines(), f"  hint: {hint}"]
    print(neutral("\n".join(folded(line, _INDENT, sys.stderr) for line in lines)), file=sys.stderr)
    return code


def _output_closed() -> int:
    """Ends without output; the interpreter's own flush at exit finds an open descriptor."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.BROKEN_PIPE


def _code_of(error: Exception) -> int:
    from ipc.errors import FrameTooLarge, PlaceError, Unwritable

    if isinstance(error, FrameTooLarge):
        return Exit.REFUSED
    if isinstance(error, Unwritable):
        return Exit.USAGE
    return Exit.SETTINGS if isinstance(error, PlaceError) else Exit.BUG


def _unknown(name: str) -> CommandError:
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean `hermesctl {near[0]}`?" if near else "hermesctl --help lists the commands"
    return CommandError(f"there is no command {quoted(name)}", hint, Exit.USAGE)


def _report_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Python exits with 1 after this hook."""
    if os.environ.get("HERMES_DEBUG") == "1":
        sys.__excepthook__(kind, error, trace)
        return
    words = " ".join(str(error).split()) or "no message"
    _complain(f"{kind.__name__}: {words}; this is a bug", "HERMES_DEBUG=1 shows where it happened", Exit.BUG)


def _tolerate_narrow_encodings() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
