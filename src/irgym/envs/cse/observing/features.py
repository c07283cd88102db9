"""What policies see of a function and of its candidates, as numbers."""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from irgym.core.target import NUMBERS, Target
from irgym.envs.cse.estimates.estimator import ESTIMATED, Estimate, Estimator
from irgym.envs.cse.heuristics import REGISTERS, passes
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.candidates import Candidate
from irgym.envs.cse.ir.facts import Facts, Surroundings
from irgym.envs.cse.ir.liveness import CLASSES
from irgym.envs.cse.ir.uses import USES

OPERATIONS = (
    ("load",),
    ("getelementptr",),
    ("add", "sub", "and", "or", "xor", "shl", "lshr", "ashr"),
    ("mul",),
    ("udiv", "sdiv", "urem", "srem"),
    ("icmp", "fcmp"),
    ("select",),
    ("zext", "sext", "trunc", "bitcast", "ptrtoint", "inttoptr"),
    ("fadd", "fsub", "fmul", "fneg"),
    ("fdiv", "frem", "call"),
    ("sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc"),
)
"""Kinds of operations; one more are all others."""

NUMBERED = 26 + len(USES)
"""Numbers of a candidate beside its kind and its register's class."""

STATIC = len(OPERATIONS) + 1 + len(CLASSES) + NUMBERED + 2 * (ESTIMATED + 1)
"""Numbers of a candidate that no choice changes."""

CANDIDATE = STATIC + 4
"""Numbers of a candidate: these, and how much of what it holds, or is in, or overlaps with, is shared."""

FUNCTION = 8 + 2 * len(CLASSES) + NUMBERS + 2 * ESTIMATED
"""Numbers of a function: sizes, registers that are needed, registers that there are, the target's, and what
sharing nothing and sharing all is estimated to come to."""

_KINDS = {opcode: place for place, opcodes in enumerate(OPERATIONS) for opcode in opcodes}


def scaled(number: float) -> float:
    """Return a count as policies see it: its logarithm, mostly below 1."""
    return math.log2(1.0 + number) / 8


def signed(number: float) -> float:
    """Return a difference as policies see it: its logarithm, with its sign."""
    return math.copysign(math.log1p(abs(number)), number)


class Features:
    """What is seen of a function.

    Args:
        analysed: The function.
        surroundings: The same, seen from its candidates.
        estimator: Estimates its choices.
        target: What code is made for.
    """

    def __init__(
        self, analysed: Analysed, surroundings: Surroundings, estimator: Estimator, target: Target
    ) -> None:
        self._analysed = analysed
        self._surroundings = surroundings
        self._estimator = estimator
        self._target = target

    @cached_property
    def function(self) -> NDArray[np.float32]:
        """What is seen of the whole, shape [FUNCTION]."""
        analysed, around = self._analysed, self._surroundings
        blocks = [analysed.function.blocks[place] for place in analysed.flow.order]
        registers = REGISTERS[self._target.name]
        counts = (
            len(blocks),
            sum(len(block.instructions) for block in blocks),
            len(analysed.candidates),
            analysed.left_out,
            len(analysed.flow.loops),
            max(analysed.flow.depths.values()),
            sum(around.calls.values()),
            sum(1 for one in around.facts if one.across_calls),
        )
        needed = [around.pressure[kind] / max(registers[kind][1], 1) / 4 for kind in CLASSES]
        there = [registers[kind][1] / 32 for kind in CLASSES]
        (nothing, _), (all_shared, _) = self._estimates
        estimated = (*map(signed, nothing.numbers), *map(signed, all_shared.numbers))
        return np.array(
            [*map(scaled, counts), *needed, *there, *self._target.numbers, *estimated], dtype=np.float32
        )

    @cached_property
    def candidates(self) -> NDArray[np.float32]:
        """What is seen of each candidate whatever is shared, shape [N, STATIC]."""
        facts = self._surroundings.facts
        rows = [
            [*self._row(one, facts[place]), *self._estimated_gain(place)]
            for place, one in enumerate(self._analysed.candidates)
        ]
        return np.array(rows, dtype=np.float32).reshape(-1, STATIC)

    def _row(self, candidate: Candidate, facts: Facts) -> list[float]:
        lasting, whole = REGISTERS[self._target.name].get(facts.register, (0, 0))
        there = lasting if facts.across_calls else whole
        gain = facts.cost * facts.saved
        kind = np.zeros(len(OPERATIONS) + 1 + len(CLASSES))
        kind[_KINDS.get(candidate.opcode, len(OPERATIONS))] = 1
        if facts.register in CLASSES:
            kind[len(OPERATIONS) + 1 + CLASSES.index(facts.register)] = 1
        return [
            *kind,
            scaled(facts.cost),
            scaled(facts.made),
            scaled(facts.saved),
            facts.saved / (facts.made + facts.saved),
            scaled(len(candidate.leaders)),
            scaled(len(candidate.replaced)),
            scaled(len(facts.kept)),
            len(facts.kept) / len(self._analysed.flow.order),
            facts.pressure / max(there, 1) / 4,
            float(facts.pressure >= whole),
            float(facts.pressure >= lasting),
            float(facts.across_calls),
            facts.depth_made / 4,
            facts.depth_saved / 4,
            scaled(facts.users),
            facts.folded,
            facts.constants / 3,
            scaled(len(facts.within)),
            scaled(len(facts.holds)),
            float(passes(facts, self._target.name)),
            scaled(gain),
            gain / self._gains,
            facts.alive,
            facts.freed / 2,
            facts.usual / max(there, 1) / 4,
            math.log2(facts.bits) / 8,
            *facts.uses,
        ]

    def _estimated_gain(self, place: int) -> list[float]:
        """Return what sharing a candidate is estimated to save, as the first one and as the last one."""
        (nothing, alone), (all_shared, without) = self._estimates
        first = nothing.numbers - alone[place].numbers
        last = without[place].numbers - all_shared.numbers
        whole = max(nothing.cost, 1.0)
        shares = (20 * first[0] / whole, 20 * last[0] / whole)
        return [*map(signed, first), *map(signed, last), *shares]

    @cached_property
    def _estimates(self) -> tuple[tuple[Estimate, list[Estimate]], tuple[Estimate, list[Estimate]]]:
        """Estimates of sharing nothing, and each candidate; and of sharing all, and all but each."""
        every = range(len(self._analysed.candidates))
        return self._estimator.around(()), self._estimator.around(every)

    @cached_property
    def _gains(self) -> float:
        return sum(one.cost * one.saved for one in self._surroundings.facts) or 1.0

    @cached_property
    def overlaps(self) -> NDArray[np.float32]:
        """What share of the blocks that one's value is live in another's is live in too, shape [N, N]."""
        kept = [one.kept for one in self._surroundings.facts]
        found = np.zeros((len(kept), len(kept)), dtype=np.float32)
        for first, own in enumerate(kept):
            for second, other in enumerate(kept):
                if first != second:
                    found[first, second] = len(own & other) / len(own)
        return found

    @cached_property
    def holds(self) -> NDArray[np.float32]:
        """Which candidates hold which: 1 where the second is an operand of the first, shape [N, N]."""
        return _matrix([one.holds for one in self._surroundings.facts])

    @cached_property
    def alike(self) -> NDArray[np.float32]:
        """Which candidates need registers of one class, shape [N, N]."""
        kinds = np.array([one.register for one in self._surroundings.facts])
        return (kinds[:, None] == kinds[None, :]).astype(np.float32)


def _matrix(rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    found = np.zeros((len(rows), len(rows)), dtype=np.float32)
    for place, row in enumerate(rows):
        found[place, list(row)] = 1
    return found
