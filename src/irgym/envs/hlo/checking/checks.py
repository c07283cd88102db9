"""What modules are checked on: random arguments, and how far rounding may take each result from there.

The original runs as it is, with coarser rounding, and on arguments that differ in their last bits. Its code
is generated in another way than a candidate's: in a quarter of the time, and so that what XLA:CPU's code
generator does wrong may show, too. That it would be noticed if a candidate's results were others is tried
with results of the original itself: on its arguments turned round, and with a number of each left out.

Further arguments hold special numbers: NaN, infinities, zeros of both signs, subnormal numbers, ties, and
the extremes of integers. XLA leaves open what some operations make of these, and its simplifications change
it. So numbers on which the original itself differs by how it is compiled say nothing there.

No candidate is to blame for what that takes: each compilation and each run has the time limit of a call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np

from irgym.base.errors import ProgramError, explained
from irgym.envs.hlo.checking.inputs import parameters, perturbed, random_arguments, turned, without_greatest
from irgym.envs.hlo.checking.rounding import Exactness
from irgym.envs.hlo.checking.special import with_special_numbers
from irgym.envs.hlo.compiling.engine import Module, PassFailure, load_engine
from irgym.envs.hlo.compiling.executable import Executable, compile_coarser, compile_module, compile_stablehlo
from irgym.envs.hlo.programs.uris import STABLEHLO
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.expected import Expected, exactly, rounded
from irgym.measure.checking.numbers import Array, is_fractional, numbers_of
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
        self._coarser, self._exactness, self._text = compile_coarser(proto)
        self._passes = passes

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

    @cached_property
    def has_open_loops(self) -> bool:
        """Whether a loop runs until something computed ends it, which special numbers may never do."""
        return "stablehlo.while" in self._text and load_engine().from_proto(self._proto).open_loops() > 0

    def special(self, seed: int) -> list["Special"]:
        """Return problems whose arguments hold special numbers, as far as the program takes them.

        None for a program with open loops. Code from elsewhere gets no NaN and no infinities: LAPACK may not
        return. Integers that are promised to be distinct or sorted stay as they are.
        """
        if self.has_open_loops:
            return []
        whole = not any(promise in self._text for promise in _PROMISES)
        positive = [one.positive for one in parameters(self._proto)]
        ordinary = random_arguments(self._proto, seed)
        found: list[Special] = []
        for finite in (True,) if "custom_call" in self._text else (True, False):
            inputs, changed = (
                with_special_numbers(one, seed, finite, whole and not finite, positive)
                for one in (ordinary, perturbed(ordinary, seed))
            )
            try:
                found.append(Special(self._special_problem(inputs, changed), changed))
            except ProgramError:
                continue  # the program refuses such numbers itself
        return found

    def compiled_alike(self, special: "Special") -> Problem:
        """Return a special problem again, leaving open too what differs when compiled as candidates are."""
        return self._special_problem(special.problem.inputs, special.changed, self._alike)

    @cached_property
    def _alike(self) -> Executable:
        restart_clock()
        return compile_module(self._proto, self._passes)

    def _special_problem(
        self, inputs: Sequence[Array], changed: Sequence[Array], *variants: Executable
    ) -> Problem:
        """Return what results on special numbers must be; what depends on the compilation is left open.

        Args:
            inputs: The arguments.
            changed: The same ones, changed in the last bits of those numbers that are not special.
            variants: The original, compiled in further ways.
        """
        restart_clock()
        alike = [variant.run(inputs) for variant in (self._coarser, *variants)]
        moved = [self._coarser.run(changed), self._executable.run(changed)]
        expected = [
            rounded(one, [sample[place] for sample in (*alike, *moved)])
            if level is Exactness.ROUNDED
            else _steady(one, [sample[place] for sample in alike], level)
            for place, (one, level) in enumerate(zip(self.run(inputs), self._exactness, strict=True))
        ]
        return Problem(inputs, expected)

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


_PROMISES = ("unique_indices = true", "indices_are_sorted = true")


def _steady(values: Array, samples: Sequence[Array], level: Exactness) -> Expected:
    """Expect what the original computed where it computes the same however it is compiled."""
    if not is_fractional(values.dtype):
        return rounded(values, samples)
    numbers = numbers_of(values)
    ignored = np.zeros(numbers.shape, np.bool_)
    for sample in map(numbers_of, samples):
        unlike = ~((numbers == sample) | (np.isnan(numbers) & np.isnan(sample)))
        ignored |= unlike | (np.signbit(numbers) != np.signbit(sample)) & ~np.isnan(numbers)
    return Expected(values, ignored=ignored, keeps_zeros=level is Exactness.MOVED)


@dataclass(frozen=True)
class Special:
    """Arguments with special numbers.

    Attributes:
        problem: The arguments, and what the results must be.
        changed: The same arguments, changed in the last bits of the other numbers.
    """

    problem: Problem
    changed: Sequence[Array]


_original = lru_cache(maxsize=1)(Original)


@lru_cache(maxsize=4)
def problem_of(proto: bytes, seed: int, passes: bool) -> Problem:
    """Return what a program is checked on; the last ones are kept for its next candidates."""
    return _original(proto, passes).problem(seed)


@lru_cache(maxsize=4)
def special_problems_of(proto: bytes, seed: int, passes: bool) -> list[Special]:
    """Return problems of special numbers; see `Original.special`."""
    return _original(proto, passes).special(seed)


_PACKED = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
"""Types of which a byte holds several numbers, in some places."""


@lru_cache(maxsize=1)
def check_source(source: str, proto: bytes, seed: int) -> None:
    """Make sure that what is checked computes what the user's file does, run as it is.

    StableHLO is compiled by jaxlib without any change. HLO goes to TensorFlow's XLA:CPU, which takes it as it
    is, while jaxlib takes it as StableHLO only; unless it calls what TensorFlow does not have, as LAPACK.

    Args:
        source: The file.
        proto: HloModuleProto of the program that was read from it.
        seed: Seed of the arguments.

    Raises:
        ProgramError: It computes something else.
        CompileFailure: XLA:CPU refuses the file.
        StorageError: The file cannot be read.
    """
    problems = [
        problem_of(proto, seed, True),
        *(one.problem for one in special_problems_of(proto, seed, True)),
    ]
    restart_clock()
    if Path(source).suffix.lower() in STABLEHLO:
        with explained(f"cannot read {source}", "check the path and its permissions"):
            content = Path(source).read_bytes()
        run = compile_stablehlo(content, proto).run
    else:
        run = partial(
            _run_as_hlo, load_engine().from_proto(proto), [one.values for one in problems[0].expected]
        )
    for one in problems:
        results = run(one.inputs)
        found = Agreement() if results is None else one.judge(results)
        if not found.ok:
            raise ProgramError(f"{source}, run as it is, computes something else than here ({found.detail})")


def _run_as_hlo(module: Module, like: Sequence[Array], arguments: Sequence[Array]) -> list[Array] | None:
    """Return a module's results by TensorFlow's XLA:CPU; None where it does not run there."""
    if any(one.dtype.name in _PACKED for one in (*like, *arguments)):
        return None
    try:
        data = module.execute(b"".join(one.tobytes() for one in arguments))
    except PassFailure:
        return None
    results: list[Array] = []
    for one in like:
        results.append(np.frombuffer(data[: one.nbytes], one.dtype).reshape(one.shape))
        data = data[one.nbytes :]
    return results


def compiled_alike(proto: bytes, passes: bool, special: Special) -> Problem:
    """Return a special problem, less strict; see `Original.compiled_alike`."""
    return _original(proto, passes).compiled_alike(special)


def _has_nan(values: Array) -> bool:
    return bool(np.any(values != values))
