"""Computations that a choice would share, replaced by zero: the checks of `cse` may accept few."""

import random

from fuzz.cse.subjects import INPUTS, Subject, some, subject_of
from fuzz.fuzzer import Tally
from irgym.llvmir.ir.types import type_of

EACH = 4
"""Functions of a seed."""

BARS = {"accepted": 0.02}
"""Greatest share of the zeros that may be accepted."""


def run(seed: int) -> Tally:
    """Replace a computation in some functions."""
    rng, tally = random.Random(seed), Tally(bars=BARS)
    for subject in map(subject_of, some(seed, EACH, tally)):
        candidate = rng.choice(subject.analysed.candidates)
        name, _ = rng.choice(candidate.replaced)
        lines = [zeroed(line, name, subject) for line in subject.lines]
        if lines == subject.lines:
            continue
        said = subject.checked(lines, INPUTS, seed)
        tally.add("rejected" if not said.ok else "accepted" if said.checked else "not checked")
        if said.checked:
            tally.remarks.append(f"{subject.name}: accepted though {name} is zero")
    return tally


def zeroed(line: str, name: str, subject: Subject) -> str:
    """Return a line, with zero in place of a result if it computes that."""
    kind = type_of(subject.analysed.values.made[name])
    if not line.startswith(f"  {name} = ") or not kind:
        return line
    return f"  {name} = select i1 true, {kind} zeroinitializer, {kind} zeroinitializer"
