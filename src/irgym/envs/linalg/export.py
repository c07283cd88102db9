"""Writing a schedule and what it makes of a program, for use without irgym."""

from pathlib import Path
from typing import TYPE_CHECKING

from irgym.core.cost import Call
from irgym.core.files import write_files
from irgym.core.task import form_of
from irgym.envs.linalg.script import transform_module
from irgym.envs.linalg.sources import LIMITS, answer
from irgym.measure.child import Child

if TYPE_CHECKING:
    from irgym.envs.linalg.task import LinalgState, LinalgTask

TRANSFORM = ".transform.mlir"

FORMS = {
    ".mlir": "the program after the schedule",
    TRANSFORM: "the schedule itself",
    ".ll": "LLVM's code",
}
"""What can be written, by suffix."""


def export(task: "LinalgTask", state: "LinalgState", target: Path) -> list[Path]:
    """Write the schedule, the program after it, or its LLVM code; the file's suffix chooses.

    The schedule is a transform-dialect script. The program that it runs on goes beside it.

    Raises:
        IrgymError: The suffix is unknown, or MLIR refuses the schedule.
        StorageError: A file cannot be written.
    """
    suffix = form_of(target, FORMS)
    script = task.script(state)
    if suffix == TRANSFORM:
        program = target.with_name(target.name[: -len(TRANSFORM)] + ".program.mlir")
        files = {target: script or transform_module(""), program: task.text}
    else:
        form = "llvm" if suffix == ".ll" else "mlir"
        call = Call("irgym.envs.linalg.runner:written", (task.text, script, form, task.threads))
        with Child(LIMITS) as child:
            files = {target: answer(child, call, "the schedule")}
    write_files({path: content.encode() for path, content in files.items()})
    return list(files)
