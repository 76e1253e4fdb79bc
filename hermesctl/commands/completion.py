"""`hermesctl completion`: prints the script with which a shell completes our commands, names and ids."""

import click

from hermesctl.parameters import one_of

SHELLS = ("bash", "zsh", "fish")
_EXAMPLES = """\b
Examples:
  hermesctl completion bash > ~/.local/share/bash-completion/completions/hermesctl
  hermesctl completion zsh > "${fpath[1]}/_hermesctl"
  hermesctl completion fish > ~/.config/fish/completions/hermesctl.fish

\b
For this shell only:
  source <(hermesctl completion bash)
"""


@click.command(epilog=_EXAMPLES)
@click.argument("shell", **one_of(SHELLS, "SHELL"))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete hermesctl's commands, sessions and ids.

    It is loaded from a file, as the examples show, or by `source`.
    """
    from click.shell_completion import get_completion_class

    from hermesctl.shells import VARIABLE

    kind = get_completion_class(shell)
    assert kind is not None, shell
    print(kind(ctx.find_root().command, {}, "hermesctl", VARIABLE).source(), end="")
