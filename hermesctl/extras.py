"""Optional packages of some commands: where one is missing, a sentence names the extra that provides it."""

from collections.abc import Iterator
from contextlib import contextmanager

from hermesctl.errors import CommandError
from hermesctl.exit_codes import Exit


@contextmanager
def extra(name: str, fault: str) -> Iterator[None]:
    """Wraps the imports of a command."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise CommandError(
            f"{fault}: there is no package {missing}", f"pip install 'hermes-supervisor[{name}]'", Exit.USAGE
        ) from None
