"""Features of a function and of its candidates, as policies observe them."""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from irgym.core.target import NUMBERS, Target
from irgym.envs.cse.estimates.cost_test import REGISTERS, passes
from irgym.envs.cse.estimates.estimate import ESTIMATED, Estimate
from irgym.envs.cse.estimates.estimator import Estimator
from irgym.envs.cse.estimates.facts import Facts, Surroundings
from irgym.envs.cse.estimates.liveness import CLASSES
from irgym.envs.cse.estimates.uses import USES
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.ir.candidates import Candidate

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
"""Kinds of operations; one further kind covers all others."""

NUMBERED = 26 + len(USES)
"""Number of a candidate's features besides its kind and its register class."""

STATIC = len(OPERATIONS) + 1 + len(CLASSES) + NUMBERED + 2 * (ESTIMATED + 1)
"""Number of a candidate's features that do not depend on the choice."""

CANDIDATE = STATIC + 4
"""Number of a candidate's features: `STATIC`, and how many of its operands, users and overlapping candidates
are shared."""

FUNCTION = 8 + 2 * len(CLASSES) + NUMBERS + 2 * ESTIMATED
"""Number of a function's features: sizes, register pressure, registers, the target's features, and the
estimates of sharing nothing and sharing all."""

_KINDS = {opcode: place for place, opcodes in enumerate(OPERATIONS) for opcode in opcodes}


def scaled(number: float) -> float:
    """Return the scaled logarithm of a count, mostly below 1."""
    return math.log2(1.0 + number) / 8


def signed(number: float) -> float:
    """Return the logarithm of a difference's magnitude, with its sign."""
    return math.copysign(math.log1p(abs(number)), number)


class Features:
    """Features of a function.

    Args:
        analysed: The function.
        surroundings: Facts about its candidates.
        estimator: Estimates its choices.
        target: The target.
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
        """Features of the function, shape [FUNCTION]."""
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
            sum(1 for facts in around.facts if facts.across_calls),
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
        """Features of each candidate that do not depend on the choice, shape [N, STATIC]."""
        facts = self._surroundings.facts
        rows = [
            [*self._row(candidate, facts[place]), *self._estimated_gain(place)]
            for place, candidate in enumerate(self._analysed.candidates)
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
        """Return the estimated savings of a candidate when it is shared first, and when it is shared last."""
        (nothing, alone), (all_shared, without) = self._estimates
        first = nothing.numbers - alone[place].numbers
        last = without[place].numbers - all_shared.numbers
        whole = max(nothing.cost, 1.0)
        shares = (20 * first[0] / whole, 20 * last[0] / whole)
        return [*map(signed, first), *map(signed, last), *shares]

    @cached_property
    def _estimates(self) -> tuple[tuple[Estimate, list[Estimate]], tuple[Estimate, list[Estimate]]]:
        """Estimates of sharing nothing and each single candidate; then of sharing all and all but each."""
        every = range(len(self._analysed.candidates))
        return self._estimator.around(()), self._estimator.around(every)

    @cached_property
    def _gains(self) -> float:
        return sum(facts.cost * facts.saved for facts in self._surroundings.facts) or 1.0

    @cached_property
    def overlaps(self) -> NDArray[np.float32]:
        """Share of the first candidate's blocks in which the second is live too, shape [N, N]."""
        kept = [facts.kept for facts in self._surroundings.facts]
        found = np.zeros((len(kept), len(kept)), dtype=np.float32)
        for first, blocks in enumerate(kept):
            for second, other in enumerate(kept):
                if first != second:
                    found[first, second] = len(blocks & other) / len(blocks)
        return found

    @cached_property
    def holds(self) -> NDArray[np.float32]:
        """1 where the second candidate is an operand of the first, shape [N, N]."""
        return _matrix([facts.holds for facts in self._surroundings.facts])

    @cached_property
    def alike(self) -> NDArray[np.float32]:
        """1 where two candidates need the same register class, shape [N, N]."""
        kinds = np.array([facts.register for facts in self._surroundings.facts])
        return (kinds[:, None] == kinds[None, :]).astype(np.float32)


def _matrix(rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    found = np.zeros((len(rows), len(rows)), dtype=np.float32)
    for place, row in enumerate(rows):
        found[place, list(row)] = 1
    return found
