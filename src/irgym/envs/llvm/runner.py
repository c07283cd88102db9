"""Functions that the measuring child runs: modules after their passes."""

from irgym.core.cost import Measurement, Outcome
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
