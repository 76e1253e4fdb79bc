"""`python -m bench [--quick]`: every measurement in turn, then one table of ratios and goals."""

import argparse

from bench import accept, decide, fork, interrupt, journal, relay, worker_memory
from bench.goals import Outcome, tell
from bench.report import table

_BENCHES = (accept, journal, relay, fork, worker_memory, decide, interrupt)
# Run by name: what each needs or takes on two cores.
_APART = {
    "bench.kill_tree": "ten minutes; --rivals PYTHON tries other frameworks too",
    "bench.stt": "two minutes, and the weights of the speech model (hermesctl models pull)",
    "bench.recovery": "some minutes; it builds a journal of 100,000 turns",
    "bench.restart": "a minute",
    "bench.hosts": "three minutes, and PostgreSQL (make programs)",
    "bench.sessions": "two minutes",
    "bench.catch_up": "a minute; it has no goal as a ratio",
    "bench.gateway": "three minutes; it opens 6,000 connections",
    "bench.console": "five minutes, chromium, and npm's packages (npm ci --prefix vendor)",
    "bench.mcp": "two minutes",
    "bench.acp": "two minutes",
    "bench.hosted": "ten minutes, and hermes-agent (python -m tests.agents_real.peers hermes-agent)",
    "bench.hermesctl_start": "half a minute; it has no goal",
}
# Rounds of a quick look: enough to see a ratio that is far off, too few for a fine one.
_QUICK_SHARE = 5
_QUICK_ROUNDS_MIN = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Our path beside raw limits.")
    parser.add_argument("--quick", action="store_true", help=f"a {_QUICK_SHARE}th of the rounds")
    share = _QUICK_SHARE if parser.parse_args().quick else 1
    outcomes: list[Outcome] = []
    for bench in _BENCHES:
        found = bench.measure(max(_QUICK_ROUNDS_MIN, bench.ROUNDS // share))
        tell(bench.TITLE, found)
        outcomes += found
    heads, columns = ["", "ratio", "goal", ""], (0, 6, 7, 8)
    rows = [outcome.row() for outcome in outcomes]
    table("Ratios of p50", [heads, *([row[column] for column in columns] for row in rows)])
    table("Run apart", [["python -m …", "takes"], *(list(row) for row in _APART.items())])


if __name__ == "__main__":
    main()
