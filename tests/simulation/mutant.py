"""What a mutant is: the rules with one guard taken away."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One guard taken away. `source` must occur exactly once in the module."""

    name: str
    module: str
    source: str
    mutated: str


def mutants(module: str, *changes: tuple[str, str, str]) -> tuple[Mutant, ...]:
    return tuple(
        Mutant(name, f"supervisor.core.{module}", source, mutated) for name, source, mutated in changes
    )
