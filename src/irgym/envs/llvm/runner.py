"""Functions that the measuring child runs: modules after their passes."""

from irgym.core.cost import Measurement, Outcome, Validation
from irgym.envs.llvm.checking.validation import compared
from irgym.envs.llvm.compiling.sections import text_bytes
from irgym.envs.llvm.compiling.store import store
from irgym.measure.passes.store import PassFailure, Path

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


def validate(program: str, path: Path, backend: str, inputs: int, seed: int) -> Validation:
    """Run the functions of a module before and after passes in random worlds, and compare what they do.

    Args:
        program: File of the program's bitcode.
        path: Kinds of the passes.
        backend: Name of the LLVM.
        inputs: Number of random inputs of each function.
        seed: Seed of the first.

    Raises:
        PassFailure: A pass fails.
    """
    stored = store(backend).module(program, path)
    complaint = stored.module.verify()
    if complaint:
        return Validation(False, 0.0, "LLVM's verifier", 0, complaint.splitlines()[0])
    before = store(backend).module(program, ()).module.text()
    return compared(before, stored.module.text(), inputs, seed)
