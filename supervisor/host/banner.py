"""The text that the service prints when it was started in a terminal."""

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ipc.places import Places
from supervisor.config.settings import Settings


@cache
def own_version() -> str:
    """Return the version of the package; its metadata are parsed once, `status` is asked often."""
    try:
        return version("hermes-supervisor")
    except PackageNotFoundError:
        return "0.1.0+source"


def welcome(places: Places, settings: Settings) -> str:
    """Return the commands to type next."""
    hermesctl = _hermesctl(places)
    model = settings.model.name if settings.model else "the embedded model, which takes a moment to load"
    return (
        f"\nhermes supervisor is ready ({model}). In another terminal:\n\n"
        f'  {hermesctl} send demo "What is the capital of France?"\n'
        f"  {hermesctl} status\n\nCtrl-C stops it.\n"
    )


def console(places: Places, address: str) -> str:
    """Return how to open the console, which is ready a moment later."""
    return f"In a browser: open {address} and enter the code of `{_hermesctl(places)} pair`\n"


def _hermesctl(places: Places) -> str:
    command = Path(sys.executable).with_name("hermesctl")
    hermesctl = str(command) if command.exists() else f"{sys.executable} -m hermesctl"
    # One folder for everything means that it was named with --home, and must be named again.
    return f"{hermesctl} --home {places.state}" if places.config == places.state else hermesctl
