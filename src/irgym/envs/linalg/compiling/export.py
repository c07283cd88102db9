"""Writing a schedule and what it makes of a program, for use without irgym."""

from pathlib import Path

from irgym.core.cost import Call
from irgym.core.files import write_files
from irgym.core.target import Target
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


def export(text: str, script: str, target: Target, threads: int | None, path: Path) -> list[Path]:
    """Write the schedule, the program after it, or its LLVM code; the file's suffix chooses.

    The schedule is a transform-dialect script. The program that it runs on goes beside it.

    Args:
        text: The program's MLIR, the operations numbered.
        script: The schedule; empty where nothing is transformed.
        target: What code is made for.
        threads: Threads that parallel loops run on; None makes them sequential.
        path: File to write.

    Raises:
        IrgymError: The suffix is unknown, or MLIR refuses the schedule.
        StorageError: A file cannot be written.
    """
    suffix = form_of(path, FORMS)
    if suffix == TRANSFORM:
        program = path.with_name(path.name[: -len(TRANSFORM)] + ".program.mlir")
        files = {path: script or transform_module(""), program: text}
    else:
        form = "llvm" if suffix == ".ll" else "mlir"
        call = Call("irgym.envs.linalg.runner:written", (text, script, form, target, threads))
        with Child(LIMITS) as child:
            files = {path: answer(child, call, "the schedule")}
    write_files({file: content.encode() for file, content in files.items()})
    return list(files)
