"""The hunt through one module: plants faults in the slots and keeps the verdicts."""

import ast
import queue
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.mutation import verdicts
from tests.mutation.slot import Finding, Outcome, Slot
from tests.mutation.table import Counts
from tests.mutation.verdicts import Key, Verdict, key_of
from tests.simulation.mutant import Mutant, source_of

# A run with a fault may take so many times as long as one without, and at least so long.
_TIMES_AS_LONG = 4
_SECONDS_MIN = 20.0
_SECONDS_MAX = 600.0
_NOTICED = (Outcome.KILLED, Outcome.TIMED_OUT)


def seconds_without_fault(tests: list[str], slot: Slot) -> float:
    began = time.monotonic()
    finding = slot.judged(tests, _SECONDS_MAX)
    if finding.outcome is not Outcome.SURVIVED:
        shown = slot.output.read_text()
        raise SystemExit(f"{shown}\nWithout any fault: {finding.outcome.value}. Mend these tests first.")
    return time.monotonic() - began


def judge_all(faults: Sequence[Mutant], tests: list[str], slots: Sequence[Slot]) -> dict[Mutant, Finding]:
    """Prints each finding when it is known."""
    seconds = max(_SECONDS_MIN, _TIMES_AS_LONG * seconds_without_fault(tests, slots[0]))
    free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
    for slot in slots:
        free.put(slot)

    def judge(fault: Mutant) -> Finding:
        slot = free.get()
        try:
            text = ast.unparse(fault.applied_to(source_of(fault.module)))
            finding = slot.judged_with(fault.module, text, tests, seconds)
        finally:
            free.put(slot)
        print(
            f"{finding.outcome.value}: {fault.name} {fault.scope}: {fault.anchor} {finding.test}", flush=True
        )
        return finding

    with ThreadPoolExecutor(len(slots)) as threads:
        return dict(zip(faults, threads.map(judge, faults), strict=True))


def keep_verdicts(module: str, all_faults: Sequence[Mutant], findings: dict[Mutant, Finding]) -> None:
    """Adds the survivors to the file of the module; removes what is noticed now, or no longer in the code."""
    present = {key_of(fault) for fault in all_faults}
    kept: dict[Key, Verdict] = {key: each for key, each in verdicts.read(module).items() if key in present}
    for fault, finding in findings.items():
        if finding.outcome is Outcome.SURVIVED:
            kept.setdefault(key_of(fault), Verdict("survived", ""))
        else:
            kept.pop(key_of(fault), None)
    verdicts.write(module, kept)


def counted(module: str, findings: dict[Mutant, Finding]) -> Counts:
    """By the verdicts as they are kept."""
    kept = verdicts.read(module)
    outcomes = Counter(finding.outcome for finding in findings.values())
    survivors = [fault for fault, finding in findings.items() if finding.outcome is Outcome.SURVIVED]
    kinds = Counter(kept[key_of(fault)].kind for fault in survivors)
    return Counts(
        tried=sum(outcomes.values()) - outcomes[Outcome.NOT_LOADED],
        killed=outcomes[Outcome.KILLED],
        timed_out=outcomes[Outcome.TIMED_OUT],
        equivalent=kinds["equivalent"],
        accepted=kinds["accepted"],
        survived=kinds["survived"],
    )


def recounted(before: Counts, module: str, findings: dict[Mutant, Finding]) -> Counts:
    """The row of a module after its survivors were tried again, or judged by a person."""
    kept = Counter(each.kind for each in verdicts.read(module).values())
    timed_out = before.timed_out + sum(finding.outcome is Outcome.TIMED_OUT for finding in findings.values())
    left = kept["equivalent"] + kept["accepted"] + kept["survived"]
    return Counts(
        tried=before.tried,
        killed=before.tried - timed_out - left,
        timed_out=timed_out,
        equivalent=kept["equivalent"],
        accepted=kept["accepted"],
        survived=kept["survived"],
    )
