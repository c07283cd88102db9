"""Writing a schedule and what it makes of a program, for use without irgym."""

from pathlib import Path
from typing import TYPE_CHECKING

from irgym.core.cost import Call
from irgym.core.errors import IrgymError, StorageError
from irgym.core.task import check_form
from irgym.measure.child import Child
from irgym.measure.evaluators import error_of
from irgym.measure.protocol import Raised, Returned

if TYPE_CHECKING:
    from irgym.envs.linalg.task import LinalgState, LinalgTask

FORMS = {
    ".mlir": "the program after the schedule; .transform.mlir for the schedule itself",
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
    check_form(target, FORMS)
    script = task.script(state)
    if target.name.endswith(".transform.mlir"):
        program = target.with_name(target.name.removesuffix(".transform.mlir") + ".program.mlir")
        files = {target: script, program: task.text}
    else:
        form = "llvm" if target.suffix.lower() == ".ll" else "mlir"
        files = {target: _written(task.text, script, form)}
    try:
        for path, content in files.items():
            path.write_text(content)
    except OSError as error:
        raise StorageError(f"cannot write {error.filename}: {error.strerror}") from error
    return list(files)


def _written(text: str, script: str, form: str) -> str:
    call = Call("irgym.envs.linalg.runner:written", (text, script, form))
    with Child() as child:
        reply = child.call(call)
    if isinstance(reply, Raised):
        raise error_of(call, reply)
    if not isinstance(reply, Returned):
        raise IrgymError(f"MLIR failed on the schedule ({reply}): try another")
    return reply.value
