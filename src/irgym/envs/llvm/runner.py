"""Functions that the measuring child runs: modules after their passes."""

from irgym.core.baseline import ROUNDS, Versus
from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.llvm.checking.programs import both, compared_programs
from irgym.envs.llvm.checking.validation import LEAST_SECONDS, SECONDS, compared
from irgym.envs.llvm.compiling.library import library
from irgym.envs.llvm.compiling.sections import text_bytes
from irgym.envs.llvm.compiling.store import store
from irgym.envs.llvm.whole.timing import WholeProgram, in_turn, linked, timed
from irgym.measure.machine import restart_clock
from irgym.measure.passes.store import PassFailure, Path
from irgym.measure.timing import Timing

SIZE = "size"
"""Name of the objective that needs machine code."""


def measure(program: str, path: Path, backend: str, objective: str) -> Measurement:
    """Return the number of instructions of a module, or the bytes of its machine code.

    Args:
        program: File of the program's bitcode.
        path: Kinds of the passes.
        backend: Name of the LLVM.
        objective: `size`, or another for the instructions.
    """
    try:
        stored = store(backend).module(program, path)
        complaint = stored.module.verify()
        if complaint:
            return Measurement(Outcome.COMPILE_ERROR, detail=f"LLVM's verifier: {complaint.splitlines()[0]}")
        if objective != SIZE:
            return Measurement(Outcome.OK, (float(stored.size),))
        return Measurement(Outcome.OK, (float(text_bytes(stored.module.code())),))
    except PassFailure as failure:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(failure))


def time_program(program: WholeProgram, path: Path, timing: Timing) -> Measurement:
    """Return run times of a whole program after passes, in nanoseconds.

    Raises:
        ProgramError: The original does not link, crashes, or does not end within the limits.
    """
    try:
        complaint = store(program.backend).module(program.file, path).module.verify()
        if complaint:
            return Measurement(Outcome.COMPILE_ERROR, detail=f"LLVM's verifier: {complaint.splitlines()[0]}")
        return timed(program, path, timing)
    except PassFailure as failure:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(failure))


def stages(program: WholeProgram, before: Path, after: Path, timing: Timing) -> list[tuple[float, float]]:
    """Time a program after the passes of two paths in turn; see `irgym.envs.llvm.whole.timing.in_turn`."""
    return in_turn(program, before, after, ROUNDS, timing)


def compare(program: WholeProgram, path: Path, theirs: Path, rounds: int, timing: Timing) -> Versus:
    """Time a program after passes in turn with the program after LLVM's -O3.

    Args:
        program: The program.
        path: Kinds of the passes.
        theirs: Kinds of the passes that -O3 stands for.
        rounds: Number of rounds.
        timing: The timing protocol.

    Raises:
        BaselineError: The program after -O3 gives other results than the original.
        IrgymError: The program after the passes does, or does not link.
    """
    detail = f"-O3 of LLVM {library(program.backend).version}"
    return Versus.of(in_turn(program, path, theirs, rounds, timing), detail)


def validate(
    program: str,
    path: Path,
    backend: str,
    inputs: int,
    seed: int,
    whole: WholeProgram | None = None,
    seconds: float = SECONDS,
) -> Validation:
    """Compare a module after passes with the module before them.

    Its functions run in random worlds. Of a whole program, executables before and after the passes run too.

    Args:
        program: File of the program's bitcode.
        path: Kinds of the passes.
        backend: Name of the LLVM.
        inputs: Number of random inputs of each function.
        seed: Seed of the first.
        whole: The program, where it is to be run; None where only its functions are.
        seconds: Processor time for the functions, within `LEAST_SECONDS` and `SECONDS`.

    Raises:
        PassFailure: A pass fails.
        ProgramError: The whole program does not link.
    """
    stored = store(backend).module(program, path)
    complaint = stored.module.verify()
    if complaint:
        return Validation(False, 0.0, "LLVM's verifier", 0, complaint.splitlines()[0])
    before = store(backend).module(program, ()).module.text()
    seconds = min(max(seconds, LEAST_SECONDS), SECONDS)
    restart_clock()
    functions = compared(before, stored.module.text(), inputs, seed, seconds)
    if whole is None:
        return functions
    restart_clock()
    with linked(whole, ()) as original, linked(whole, path) as optimised:
        return both(functions, compared_programs(original, optimised, whole.run))
