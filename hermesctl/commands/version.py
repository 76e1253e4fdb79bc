"""`hermesctl version`: which release this is; asks nobody, so it works when nothing runs."""

import click

_EXAMPLES = """\b
Examples:
  hermesctl version
"""


@click.command(epilog=_EXAMPLES)
def version() -> None:
    """Print the version."""
    click.echo(f"hermes-supervisor {installed_version()}")


def installed_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("hermes-supervisor")
    except metadata.PackageNotFoundError:
        return "0.1.0+source"
