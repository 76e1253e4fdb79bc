"""Python and the packages: as new as the release asks for."""

import re
import sys
from importlib import metadata

from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good

_PYTHON_LEAST = (3, 11)
_PACKAGE = "hermes-supervisor"
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)$")
# The extras for users; those of developers are not checked.
_EXTRAS = ("embedded", "gateway", "tui", "voice")


def python(around: Surroundings) -> Finding:
    found = sys.version.split()[0]
    if sys.version_info < _PYTHON_LEAST:
        return bad("python", found, "use Python 3.11 or later: make PYTHON=/path/to/python3 run")
    return good("python", f"{found}, {sys.executable}")


def packages(around: Surroundings) -> Finding:
    try:
        version, wanted = metadata.version(_PACKAGE), metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return care("packages", f"{_PACKAGE} is not installed here", "pip install -e . in its folder")
    faults = [fault for line in wanted if (fault := _fault(line))]
    if faults:
        return bad("packages", "; ".join(faults), f"pip install --upgrade {_PACKAGE}")
    absent = [extra for extra in _EXTRAS if any(_fault(line) for line in _of_extra(extra, wanted))]
    without = f", without {' and '.join(absent)}" if absent else ""
    return good("packages", f"{_PACKAGE} {version} and all it needs{without}")


def _of_extra(extra: str, wanted: list[str]) -> list[str]:
    """The requirements that one extra adds."""
    lines = (line.partition(";") for line in wanted)
    return [line for line, _, marker in lines if f'extra == "{extra}"' in marker]


def _fault(requirement: str) -> str:
    """Returns the fault of one package; requirements of extras and other forms are not checked."""
    match = _REQUIREMENT.match(requirement.strip())
    if match is None:
        return ""
    name, least = match.groups()
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} is {found}, {least} is needed" if _numbers(found) < _numbers(least) else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:4])
