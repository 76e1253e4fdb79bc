"""Guards against what grows without end."""

from tests.simulation.mutant import mutants

MUTANTS_OF_BOUNDS = mutants(
    "turns",
    ("attempts_speak_without_end", "    if characters > limit:\n", "    if False:\n"),
    ("attempts_speak_less_than_they_may", "    if characters > limit:", "    if characters >= limit:"),
)
