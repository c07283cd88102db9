"""Checks of modules: arguments, and the results that rounding allows on them.

The tolerance of each result comes from the original: it runs unchanged, with coarser rounding, and on
arguments that differ in their last bits. Its code is generated differently from a candidate's, which takes a
quarter of the time and can reveal errors of XLA:CPU's code generator. To show that the check is sensitive, it
must reject the original's results on reversed arguments and on arguments with one number left out.

Further arguments hold special numbers: NaN, infinities, zeros of both signs, subnormal numbers, ties, and
the extremes of integers. XLA leaves the results of some operations on these open, and its simplifications
change them. Results on which the original itself depends on how it is compiled are therefore not compared.

This time is not charged to the candidate: each compilation and each run gets the full time limit of a call.
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
from irgym.envs.hlo.compiling.engine import Module, load_engine
from irgym.envs.hlo.compiling.executable import Executable, compile_coarser, compile_module, compile_stablehlo
from irgym.envs.hlo.programs.uris import STABLEHLO
from irgym.measure.checking.agreement import Agreement
from irgym.measure.checking.expected import Expected, exactly, rounded
from irgym.measure.checking.numbers import Array, is_fractional, numbers_of
from irgym.measure.checking.problem import Problem, best_problem, problem
from irgym.measure.machine import restart_clock
from irgym.measure.passes.store import PassFailure

TOLERANCE = (
    "each number within a few times the effect of coarser rounding on the original on XLA:CPU; whole and"
    " moved numbers equal, except those that rounding flips"
)
"""The tolerance, in words."""

DRAWS = 3
"""Attempts to draw arguments on which wrong results would show; on some, a whole layer is inactive."""

_APART = 1_000_003
"""Difference between the seeds of these attempts."""


class Original:
    """The original program, compiled quickly, with ordinary and with coarser rounding.

    Args:
        proto: Serialized HloModuleProto.
        passes: Whether XLA:CPU runs its simplifications too.

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
        """Return arguments, on which wrong results show if possible, and the expected results.

        Args:
            seed: Seed of the first attempt.

        Raises:
            ProgramError: It fails as it runs.
        """
        found: list[Problem] = []
        for place in range(DRAWS):
            found.append(best_problem(lambda scale, drawn=seed + place * _APART: self._drawn(drawn, scale)))
            if not found[-1].blind:
                break
        return min(found, key=lambda problem: len(problem.blind))

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Return the results."""
        restart_clock()
        return self._executable.run(arguments)

    def expected(self, arguments: Sequence[Array], seed: int) -> list[Expected]:
        """Return the expected results on some arguments.

        Args:
            arguments: The arguments.
            seed: Seed of the changes to their last bits.
        """
        changed = perturbed(arguments, seed)
        samples = [self._coarser.run(arguments), self._coarser.run(changed), self.run(changed)]
        return [
            rounded(result, [sample[place] for sample in samples])
            if level is Exactness.ROUNDED
            else exactly(result, keeps_zeros=level is Exactness.MOVED)
            for place, (result, level) in enumerate(zip(self.run(arguments), self._exactness, strict=True))
        ]

    @cached_property
    def has_open_loops(self) -> bool:
        """Whether a loop ends on a computed condition, which special numbers may never satisfy."""
        return "stablehlo.while" in self._text and load_engine().from_proto(self._proto).open_loops() > 0

    def special(self, seed: int) -> list["Special"]:
        """Return problems whose arguments hold special numbers, as far as the program accepts them.

        Programs with open loops have none. Programs with custom calls get no NaN and no infinities, on which
        LAPACK may not return. Integers declared distinct or sorted are left alone.
        """
        if self.has_open_loops:
            return []
        whole = not any(promise in self._text for promise in _PROMISES)
        positive = [parameter.positive for parameter in parameters(self._proto)]
        ordinary = random_arguments(self._proto, seed)
        found: list[Special] = []
        for finite in (True,) if "custom_call" in self._text else (True, False):
            inputs, changed = (
                with_special_numbers(arguments, seed, finite, whole and not finite, positive)
                for arguments in (ordinary, perturbed(ordinary, seed))
            )
            try:
                found.append(Special(self._special_problem(inputs, changed), changed))
            except ProgramError:
                continue  # the program itself rejects such numbers
        return found

    def compiled_alike(self, special: "Special") -> Problem:
        """Return a special problem that also ignores results that change when compiled like a candidate."""
        return self._special_problem(special.problem.inputs, special.changed, self._alike)

    @cached_property
    def _alike(self) -> Executable:
        restart_clock()
        return compile_module(self._proto, self._passes)

    def _special_problem(
        self, inputs: Sequence[Array], changed: Sequence[Array], *variants: Executable
    ) -> Problem:
        """Return the expected results on special numbers, ignoring those that depend on the compilation.

        Args:
            inputs: The arguments.
            changed: The same arguments with the last bits of the ordinary numbers changed.
            variants: Further compilations of the original.
        """
        restart_clock()
        alike = [variant.run(inputs) for variant in (self._coarser, *variants)]
        moved = [self._coarser.run(changed), self._executable.run(changed)]
        expected = [
            rounded(result, [sample[place] for sample in (*alike, *moved)])
            if level is Exactness.ROUNDED
            else _steady(result, [sample[place] for sample in alike], level)
            for place, (result, level) in enumerate(zip(self.run(inputs), self._exactness, strict=True))
        ]
        return Problem(inputs, expected)

    def _drawn(self, seed: int, scale: float) -> Problem:
        """Return the problem of random arguments.

        Signed arguments exercise more, but may lie outside a program's domain without a visible root of a
        parameter. If they lead to NaN, the arguments are drawn positive.
        """
        arguments = random_arguments(self._proto, seed, scale=scale)
        if any(map(_has_nan, self.run(arguments))):
            arguments = random_arguments(self._proto, seed, positive=True, scale=scale)
        return problem(
            arguments,
            self.expected(arguments, seed),
            {"the results on arguments turned round": self.run(turned(arguments))},
            {"the results with a number of each argument left out": self.run(without_greatest(arguments))},
        )


_PROMISES = ("unique_indices = true", "indices_are_sorted = true")


def _steady(values: Array, samples: Sequence[Array], level: Exactness) -> Expected:
    """Expect the original's results, ignoring those that depend on how it is compiled."""
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
        problem: The arguments and the expected results.
        changed: The same arguments with the last bits of the ordinary numbers changed.
    """

    problem: Problem
    changed: Sequence[Array]


_original = lru_cache(maxsize=1)(Original)


@lru_cache(maxsize=4)
def problem_of(proto: bytes, seed: int, passes: bool) -> Problem:
    """Return the problem on which a program is checked; recent ones are cached for further candidates."""
    return _original(proto, passes).problem(seed)


@lru_cache(maxsize=4)
def special_problems_of(proto: bytes, seed: int, passes: bool) -> list[Special]:
    """Return the problems with special numbers; see `Original.special`."""
    return _original(proto, passes).special(seed)


_PACKED = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
"""Types that some programs store several to a byte."""


@lru_cache(maxsize=1)
def check_source(source: str, proto: bytes, seed: int) -> None:
    """Check that the program computes the same as the user's unmodified file.

    jaxlib compiles StableHLO unchanged. HLO runs on TensorFlow's XLA:CPU, which takes it unchanged, whereas
    jaxlib takes only StableHLO. HLO that calls what TensorFlow lacks, such as LAPACK, is not checked.

    Args:
        source: The user's file.
        proto: HloModuleProto of the program that was read from it.
        seed: Seed of the arguments.

    Raises:
        ProgramError: The file computes something else.
        CompileFailure: XLA:CPU refuses the file.
        StorageError: The file cannot be read.
    """
    problems = [
        problem_of(proto, seed, True),
        *(special.problem for special in special_problems_of(proto, seed, True)),
    ]
    restart_clock()
    if Path(source).suffix.lower() in STABLEHLO:
        with explained(f"cannot read {source}", "check the path and its permissions"):
            content = Path(source).read_bytes()
        run = compile_stablehlo(content, proto).run
    else:
        like = [expected.values for expected in problems[0].expected]
        run = partial(_run_as_hlo, load_engine().from_proto(proto), like)
    for check in problems:
        results = run(check.inputs)
        found = Agreement() if results is None else check.judge(results)
        if not found.ok:
            raise ProgramError(f"{source}, run as it is, computes something else than here ({found.detail})")


def _run_as_hlo(module: Module, like: Sequence[Array], arguments: Sequence[Array]) -> list[Array] | None:
    """Return the results of a module on TensorFlow's XLA:CPU; None if it does not run there."""
    if any(array.dtype.name in _PACKED for array in (*like, *arguments)):
        return None
    try:
        data = module.execute(b"".join(argument.tobytes() for argument in arguments))
    except PassFailure:
        return None
    results: list[Array] = []
    for array in like:
        results.append(np.frombuffer(data[: array.nbytes], array.dtype).reshape(array.shape))
        data = data[array.nbytes :]
    return results


def compiled_alike(proto: bytes, passes: bool, special: Special) -> Problem:
    """Return a special problem in a less strict form; see `Original.compiled_alike`."""
    return _original(proto, passes).compiled_alike(special)


def _has_nan(values: Array) -> bool:
    return bool(np.any(values != values))
