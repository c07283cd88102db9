"""Functions that the measuring child runs: modules after their passes, on XLA:CPU."""

from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.hlo.checking.checks import check_source, problem_of, special_problems_of
from irgym.envs.hlo.compiling.execution import CompileFailure, compare, time_module
from irgym.envs.hlo.compiling.store import read_program, store
from irgym.measure.passes.store import PassFailure
from irgym.measure.timing import Timing


def optimised(program: str, path: tuple[int, ...]) -> bytes:
    """Return the HloModuleProto of a program after the passes of a path, checked by XLA's verifier.

    Raises:
        PassFailure: A pass fails, or the resulting module is invalid.
    """
    module = store().module(program, path)
    module.verify()
    return module.proto()


def measure(program: str, path: tuple[int, ...], timing: Timing) -> Measurement:
    """Compile a module for the CPU, check its results and time it on one thread, nanoseconds."""
    try:
        return time_module(optimised(program, path), timing, original=read_program(program))
    except (CompileFailure, PassFailure) as failure:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(failure))


def count(program: str, path: tuple[int, ...], objective: str) -> Measurement:
    """Count operations, in all computations or in the entry, or FLOPs; tasks know these without a child."""
    try:
        module = store().module(program, path)
        if objective == "flops":
            return Measurement(Outcome.OK, (module.analysis()[0],))
        content = module.content()
        return Measurement(Outcome.OK, (float(content.entry if objective == "entry-ops" else content.total),))
    except PassFailure as failure:
        return Measurement(Outcome.CRASH, detail=str(failure))


def prepare(program: str, seed: int, source: str = "") -> None:
    """Compile and run the original and load the engine, ahead of `validate`.

    Raises:
        IrgymError: It does not compile, does not run, or differs from the user's file.
    """
    original = read_program(program)
    problem_of(original, seed, True)
    special_problems_of(original, seed, True)
    if source:
        check_source(source, original, seed)
    store().module(program, ())


def validate(program: str, path: tuple[int, ...], inputs: int, seed: int, source: str = "") -> Validation:
    """Run a program before and after passes on random inputs, and compare the results.

    Args:
        program: File of its HloModuleProto.
        path: Kinds of the passes.
        inputs: Number of inputs.
        seed: Seed of the first.
        source: The user's file that the program was read from; empty for a model.

    Raises:
        IrgymError: One of them does not compile or run, or the program differs from the user's file.
    """
    original = read_program(program)
    if source:
        check_source(source, original, seed)
    return compare(original, optimised(program, path), inputs, seed)
