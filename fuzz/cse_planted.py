"""Planted faults in real functions, of which the checks of `cse` must accept none.

    python fuzz/cse_planted.py wrong --count 24
    python fuzz/cse_planted.py zero --count 300
    python fuzz/cse_planted.py right --count 1000

`wrong` plants faults of each kind in functions of the data sets and in the programs below; `zero` replaces
computations that a choice would share by zero; `right` runs random choices, all of which are right. A fault
counts as accepted if the check says "validated yes"; "not checked" is no acceptance. Nothing that is shared
explains a planted fault, so the check accepts none; how many of them its runs tell apart is counted too, and
of those that they do not how many a much longer search tells apart. Faults that z3 proves to compute the same
are not planted: the operation is compared with the planted one for all operands that the function's own
operations, flags, ranges and the branches that lead there allow.

The exit status is 1 if a planted fault of the kinds is accepted, more than 2 % of the zeros are, or a right
choice is called wrong.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro
from cse_faults import KINDS, PROGRAMS, Fault, faults

from irgym.base.errors import ProgramError
from irgym.core.cost import Validation
from irgym.envs.cse.checking.validation import Comparison, compared
from irgym.envs.cse.compiling.scorer import function_at, module_at
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.envs.cse.ir.modules import ModuleText
from irgym.envs.cse.ir.types import type_of
from irgym.envs.cse.programs.preparing import prepared
from irgym.envs.cse.task import CseTask


@dataclass(frozen=True)
class Options:
    """Options of the test."""

    what: Annotated[Literal["wrong", "zero", "right"], tyro.conf.Positional]
    """Faults of all kinds, zeros, or nothing."""
    count: int = 0
    """Number of faults of each kind, zeros, or choices; by default the number for which the bars are set."""
    seconds: float = 540.0
    """Processor time after which to stop, in seconds."""
    inputs: int = 4
    """Number of random inputs of each check, by default that of `tune`."""
    seed: int = 0
    """Seed of functions, faults, choices and inputs."""
    datasets: tuple[str, ...] = ("kernels", "packages")
    """Data sets, of which both splits are used."""


COUNTS = {"wrong": 24, "zero": 300, "right": 1000}


@dataclass(frozen=True)
class Subject:
    """A function to plant faults in."""

    name: str
    module: ModuleText
    analysed: Analysed

    @property
    def lines(self) -> list[str]:
        """Lines of the original function."""
        return self.analysed.sharing.lines(())

    def checked(self, lines: Sequence[str], options: Options) -> Validation:
        """Return the outcome of the check for other lines."""
        return Comparison(self.module, self.analysed, options.inputs, options.seed).compare(lines, {}, {})


def subjects(options: Options, rng: random.Random) -> Iterator[tuple[Subject, CseTask | None]]:
    """Yield the programs above, then random functions of the data sets."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "programs.c"
        file.write_text(PROGRAMS)
        module = ModuleText.read(prepared(str(file), "x86-64").decode())
    if options.what == "wrong":
        for name in module.functions:
            yield Subject(name, module, analysed(module, name)), None
    uris = [uri for dataset in map(CSE.dataset, options.datasets) for uri in (*dataset.train, *dataset.test)]
    rng.shuffle(uris)
    for uri in uris:
        try:
            task = CSE.task(uri)
        except ProgramError:
            continue
        if task.names:
            path = str(task.module)
            yield Subject(uri, module_at(path), function_at(path, task.analysed.function.name)), task


def plant_wrong(options: Options) -> int:
    """Plant faults of all kinds; return the number of accepted ones."""
    rng = random.Random(options.seed)
    planted: Counter[str] = Counter()
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    accepted = 0
    for subject, _ in subjects(options, rng):
        if time.process_time() > options.seconds or all(planted[kind] >= options.count for kind in KINDS):
            break
        if len(subject.lines) > 1500:
            continue
        here: Counter[str] = Counter()
        found = list(faults(subject.lines, subject.analysed))
        rng.shuffle(found)
        for fault in found:
            most = 2 if subject.name.startswith("cse:") else 6
            if planted[fault.kind] >= options.count or here[fault.kind] >= most:
                continue
            here[fault.kind] += 1
            planted[fault.kind] += 1
            said = subject.checked(fault.lines, options)
            outcome = "not checked"
            if not said.ok:
                outcome = "told apart by a run"
            elif said.inputs:
                outcome = "missed by runs" if witnessed(subject, fault, options) else "without a witness"
            outcomes[fault.kind][outcome] += 1
            if said.ok and said.inputs:
                print(f"{outcome}: {fault.kind}: {subject.name}: {fault.told}", flush=True)
            accepted += said.checked
    for kind, tally in outcomes.items():
        print(
            f"{kind:<18} {planted[kind]:>3} planted: "
            + ", ".join(f"{count} {what}" for what, count in tally.items())
        )
    print(f"{sum(planted.values())} planted faults, {accepted} accepted; bar 0 of 200, 20 of each kind")
    return accepted


def witnessed(subject: Subject, fault: Fault, options: Options) -> bool:
    """Say whether a much longer search finds a world in which a fault shows."""
    return any(
        not subject.checked(fault.lines, replace(options, inputs=4 * options.inputs, seed=seed)).ok
        for seed in range(1000, 1003)
    )


def plant_zeros(options: Options) -> int:
    """Replace computations by zero; return the number accepted beyond 2 %."""
    rng = random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    for subject, task in subjects(options, rng):
        if time.process_time() > options.seconds or outcomes.total() >= options.count:
            break
        if task is None:
            continue
        candidate = rng.choice(subject.analysed.candidates)
        name, _ = rng.choice(candidate.replaced)
        lines = [_zeroed(line, name, subject) for line in subject.lines]
        if lines == subject.lines:
            continue
        said = subject.checked(lines, options)
        outcome = "rejected" if not said.ok else "accepted" if said.checked else "not checked"
        outcomes[outcome] += 1
        if outcome == "accepted":
            print(f"accepted: {subject.name}: {name} is zero", flush=True)
    whole = max(outcomes.total(), 1)
    print(f"{whole} zeros: " + ", ".join(f"{count} {what}" for what, count in outcomes.items()))
    print(f"{100 * outcomes['accepted'] / whole:.1f} % accepted; bar 2 %")
    return max(outcomes["accepted"] - whole * 2 // 100, 0)


def _zeroed(line: str, name: str, subject: Subject) -> str:
    kind = type_of(subject.analysed.values.made[name])
    if not line.startswith(f"  {name} = ") or not kind:
        return line
    return f"  {name} = select i1 true, {kind} zeroinitializer, {kind} zeroinitializer"


def plant_nothing(options: Options) -> int:
    """Check random choices; return the number called wrong."""
    rng = random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    for _, task in subjects(options, rng):
        if time.process_time() > options.seconds or outcomes.total() >= options.count:
            break
        if task is None:
            continue
        share = rng.random()
        shared = tuple(place for place in range(len(task.names)) if rng.random() < share) or (0,)
        said = compared(str(task.module), task.analysed.function.name, shared, options.inputs, options.seed)
        outcome = (
            "wrong"
            if not said.ok
            else "validated"
            if said.checked
            else "in part"
            if said.unseen
            else "not checked"
        )
        outcomes[outcome] += 1
        if outcome == "wrong":
            print(f"called wrong: {task.uri}: {shared}: {said.detail}", flush=True)
    print(
        f"{outcomes.total()} right choices: "
        + ", ".join(f"{count} {what}" for what, count in outcomes.items())
    )
    return outcomes["wrong"]


def main(options: Options) -> None:
    """Plant, and print the outcomes."""
    options = replace(options, count=options.count or COUNTS[options.what])
    plant = {"wrong": plant_wrong, "zero": plant_zeros, "right": plant_nothing}[options.what]
    sys.exit(1 if plant(options) else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
