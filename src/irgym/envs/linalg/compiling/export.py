"""Writing a schedule and what it makes of a program, for use without irgym."""

from pathlib import Path

from irgym.core.cost import Call
from irgym.core.files import write_files
from irgym.core.task import form_of
from irgym.envs.linalg.programs.sources import LIMITS, answer
from irgym.envs.linalg.scheduling.script import transform_module
from irgym.measure.isolation.child import Child

TRANSFORM = ".transform.mlir"

FORMS = {
    ".mlir": "the program after the schedule",
    TRANSFORM: "the schedule itself",
    ".ll": "LLVM's code",
}
"""What can be written, by suffix."""


def export(text: str, script: str, threads: int | None, target: Path) -> list[Path]:
    """Write the schedule, the program after it, or its LLVM code; the file's suffix chooses.

    The schedule is a transform-dialect script. The program that it runs on goes beside it.

    Args:
        text: The program's MLIR, the operations numbered.
        script: The schedule; empty where nothing is transformed.
        threads: Threads that parallel loops run on; None makes them sequential.
        target: File to write.

    Raises:
        IrgymError: The suffix is unknown, or MLIR refuses the schedule.
        StorageError: A file cannot be written.
    """
    suffix = form_of(target, FORMS)
    if suffix == TRANSFORM:
        program = target.with_name(target.name[: -len(TRANSFORM)] + ".program.mlir")
        files = {target: script or transform_module(""), program: text}
    else:
        form = "llvm" if suffix == ".ll" else "mlir"
        call = Call("irgym.envs.linalg.runner:written", (text, script, form, threads))
        with Child(LIMITS) as child:
            files = {target: answer(child, call, "the schedule")}
    write_files({path: content.encode() for path, content in files.items()})
    return list(files)
