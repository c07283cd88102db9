"""What modules are checked on: random arguments, and how far rounding may take each result from there.

The original runs as it is, with coarser rounding, and on arguments that differ in their last bits. Its code
is generated in another way than a candidate's: in a quarter of the time, and so that what XLA:CPU's code
generator does wrong may show, too. That it would be noticed if a candidate's results were others is tried
with results of the original itself: on its arguments turned round, and with a number of each left out.

No candidate is to blame for what that takes: each compilation and each run has the time limit of a call.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from irgym.envs.hlo.executable import compile_coarser, compile_module
from irgym.envs.hlo.inputs import perturbed, random_arguments, turned, without_greatest
from irgym.envs.hlo.rounding import Exactness
from irgym.measure.checking.expected import Expected, exactly, rounded
from irgym.measure.checking.numbers import Array
from irgym.measure.checking.problem import Problem, best_problem, problem
from irgym.measure.machine import restart_clock

TOLERANCE = (
    "each number within a few times what coarser rounding does to it in the original on XLA:CPU; whole"
    " numbers and what is only moved equal, but for those that rounding flips"
)
"""What is allowed, in words."""

DRAWS = 3
"""How many arguments are drawn, at all scales, until wrong answers show: on some a whole layer is idle."""

_APART = 1_000_003
"""Between the seeds of these."""


class Original:
    """A program as written, compiled quickly, as it is and with coarser rounding.

    Args:
        proto: Serialized HloModuleProto.
        passes: Whether XLA:CPU runs its own simplifications too.

    Raises:
        ProgramError: It cannot run.
        CompileFailure: XLA:CPU refused it.
    """

    def __init__(self, proto: bytes, passes: bool = True) -> None:
        self._proto = proto
        restart_clock()
        self._executable = compile_module(proto, passes, quickly=True)
        restart_clock()
        self._coarser, self._exactness = compile_coarser(proto)

    def problem(self, seed: int) -> Problem:
        """Return arguments on which wrong answers show, where that can be had, and what is right there.

        Args:
            seed: Seed of the first arguments drawn.

        Raises:
            ProgramError: It fails as it runs.
        """
        found: list[Problem] = []
        for place in range(DRAWS):
            found.append(best_problem(lambda scale, one=seed + place * _APART: self._drawn(one, scale)))
            if not found[-1].blind:
                break
        return min(found, key=lambda one: len(one.blind))

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Return the results."""
        restart_clock()
        return self._executable.run(arguments)

    def expected(self, arguments: Sequence[Array], seed: int) -> list[Expected]:
        """Return what the results on some arguments must be.

        Args:
            arguments: The arguments.
            seed: Seed of the changes in their last bits.
        """
        changed = perturbed(arguments, seed)
        samples = [self._coarser.run(arguments), self._coarser.run(changed), self.run(changed)]
        return [
            rounded(one, [sample[place] for sample in samples])
            if level is Exactness.ROUNDED
            else exactly(one, keeps_zeros=level is Exactness.MOVED)
            for place, (one, level) in enumerate(zip(self.run(arguments), self._exactness, strict=True))
        ]

    def _drawn(self, seed: int, scale: float) -> Problem:
        """Return the problem of random arguments.

        Signed arguments exercise more, but may leave a program's domain where no root of a parameter is in
        sight: if they lead to NaN, positive ones are taken.
        """
        arguments = random_arguments(self._proto, seed, scale=scale)
        if any(_has_nan(one) for one in self.run(arguments)):
            arguments = random_arguments(self._proto, seed, positive=True, scale=scale)
        return problem(
            arguments,
            self.expected(arguments, seed),
            {"the results on arguments turned round": self.run(turned(arguments))},
            {"the results with a number of each argument left out": self.run(without_greatest(arguments))},
        )


_original = lru_cache(maxsize=1)(Original)


@lru_cache(maxsize=4)
def problem_of(proto: bytes, seed: int, passes: bool) -> Problem:
    """Return what a program is checked on; the last ones are kept for its next candidates."""
    return _original(proto, passes).problem(seed)


def _has_nan(values: Array) -> bool:
    return bool(np.any(values != values))
