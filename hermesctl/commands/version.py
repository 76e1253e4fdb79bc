"""`hermesctl version`: prints the release; needs no running supervisor."""

import click

_EXAMPLES = """\b
Examples:
  hermesctl version
  hermesctl version --json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--json", "form", flag_value="json", default="words", help="Print JSON.")
def version(form: str) -> None:
    """Print the version."""
    if form == "json":
        click.echo(f'{{"version": "{installed_version()}"}}')
    else:
        click.echo(f"hermes-supervisor {installed_version()}")


def installed_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("hermes-supervisor")
    except metadata.PackageNotFoundError:
        return "0.1.0+source"
