"""Planted faults in real functions, of which the checks of `cse` must accept none.

Faults of each kind are planted in the programs of `planting.py`, and in functions of the data sets. A
fault counts as accepted if the check says "validated yes"; "not checked" is no acceptance. Nothing that
is shared explains a planted fault, so the check accepts none; how many of them its runs tell apart is
counted too, and for one of a seed that they do not tell apart, whether a much longer search does. Faults
that z3 proves to compute the same are not planted: the operation is compared with the planted one for all
operands that the function's own operations, flags, ranges and the branches that lead there allow.
"""

import random
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fuzz.cse.planting import PROGRAMS, Fault, faults
from fuzz.cse.subjects import INPUTS, Subject, some, subject_of
from fuzz.fuzzer import Tally
from irgym.envs.cse.ir.analysis import analysed
from irgym.envs.cse.programs.preparing import prepared
from irgym.llvmir.ir.modules import ModuleText

ALIKE = 2
"""Greatest number of faults of one kind in a function."""

LONGEST = 1500
"""Greatest number of lines of a function."""


@cache
def programs() -> Sequence[Subject]:
    """Return the functions of `PROGRAMS`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "programs.c"
        file.write_text(PROGRAMS)
        module = ModuleText.read(prepared(str(file), "x86-64").decode())
    return [Subject(name, module, analysed(module, name)) for name in module.functions]


def run(seed: int) -> Tally:
    """Plant faults in a function: of the programs if the seed is even, else of the data sets."""
    tally = Tally()
    if seed % 2:
        for task in some(seed // 2, 1, tally):
            plant(subject_of(task), seed, tally)
    else:
        plant(programs()[seed // 2 % len(programs())], seed, tally)
    return tally


def plant(subject: Subject, seed: int, tally: Tally) -> None:
    """Plant faults in a function, and check each."""
    if len(subject.lines) > LONGEST:
        return
    searched = False
    for fault in faults(subject.lines, subject.analysed, random.Random(seed), ALIKE):
        said = subject.checked(fault.lines, INPUTS, seed)
        outcome = "not checked"
        if not said.ok:
            outcome = "told apart by runs"
        elif said.inputs:
            outcome = "missed by runs"
            if not searched:
                searched = True
                outcome = "told apart by many runs" if witnessed(subject, fault) else "missed by many runs"
        accepted = f"accepted: {fault.kind}: {subject.name}: {fault.told}" if said.checked else ""
        tally.add(outcome, accepted)
        tally.reach("kinds of faults", [fault.kind])


def witnessed(subject: Subject, fault: Fault) -> bool:
    """Say whether a much longer search finds a world in which a fault shows."""
    return any(not subject.checked(fault.lines, 4 * INPUTS, seed).ok for seed in range(1000, 1003))
