"""Plants single faults in modules outside the core and shows which of them no test notices.

    python -m tests.mutation supervisor.engine supervisor/journal
        a sample of the faults of each of these modules; the name of a package means all in it.
    python -m tests.mutation --since origin/main
        the modules that have changed since; `make mutants` does this.
    python -m tests.mutation --survivors supervisor.journal
        only the faults that survived before and have no verdict: after a test was written.
    python -m tests.mutation --table
        no hunt: counts the verdicts again, after a person has judged, and writes docs/mutants.md.

Tests are taken from tests/mutation/tests_for.toml. Survivors are added to tests/mutation/verdicts, where a
person judges them, and the counts to docs/mutants.md. A sample of 12 in each module takes hours on two
processors; all faults (there are thousands) would take days.
"""

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.mutation import hunt, table, verdicts
from tests.mutation.faults import faults_of, sample
from tests.mutation.registry import modules_below, modules_since, registered_tests
from tests.mutation.slot import Slot
from tests.mutation.table import Counts
from tests.simulation.mutant import Mutant, source_of


def main() -> None:
    chosen = _arguments().parse_args()
    modules = modules_since(chosen.since) if chosen.since else modules_below(chosen.modules)
    if chosen.table:
        rows = table.read(table.PAGE.read_text())
        table.update({module: hunt.recounted(rows[module], module, {}) for module in rows})
        return
    tried = [module for module in modules if registered_tests(module)]
    for module in modules:
        if module not in tried:
            print(f"no tests are registered for {module}: add some to tests/mutation/tests_for.toml")
    if chosen.list:
        for fault in (fault for module in modules for fault in _chosen(module, chosen)):
            print(f"{fault.name} {fault.scope}: {fault.anchor}")
        return
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True)
        )
        slots: list[Slot] = []
        for module in tried:
            faults = _chosen(module, chosen)
            if faults and not slots:
                slots = [Slot(Path(folder, str(number))) for number in range(chosen.slots)]
                for slot in slots:
                    stack.callback(slot.close)
            if faults:
                _hunt(module, faults, slots, chosen.survivors)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--since", metavar="REV", help="modules changed since this git revision")
    parser.add_argument("--sample", type=int, default=12, metavar="N", help="faults per module (12)")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="another seed draws another sample (1)"
    )
    parser.add_argument(
        "--slots", type=int, default=2, metavar="N", help="copies that are judged at once (2)"
    )
    parser.add_argument("--survivors", action="store_true", help="faults without a verdict only")
    parser.add_argument("--list", action="store_true", help="print the faults and plant none")
    parser.add_argument("--table", action="store_true", help="write docs/mutants.md from the verdicts")
    return parser


def _chosen(module: str, chosen: argparse.Namespace) -> list[Mutant]:
    faults = faults_of(module, source_of(module))
    if not chosen.survivors:
        return sample(faults, chosen.sample, chosen.seed)
    open_ones = {key for key, each in verdicts.read(module).items() if each.kind == "survived"}
    return [fault for fault in faults if verdicts.key_of(fault) in open_ones]


def _hunt(module: str, faults: Sequence[Mutant], slots: Sequence[Slot], is_repeated: bool) -> None:
    findings = hunt.judge_all(faults, registered_tests(module), slots)
    hunt.keep_verdicts(module, faults_of(module, source_of(module)), findings)
    if is_repeated:
        before = table.read(table.PAGE.read_text()).get(module, Counts())
        counts = hunt.recounted(before, module, findings)
    else:
        counts = hunt.counted(module, findings)
    table.update({module: counts})
    print(f"{module}: {counts.killed + counts.timed_out} of {counts.tried} noticed", flush=True)


if __name__ == "__main__":
    main()
