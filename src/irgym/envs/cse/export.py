"""Writing what was chosen in forms that other tools read."""

from collections.abc import Sequence
from pathlib import Path

from irgym.core.cost import Call
from irgym.core.errors import IrgymError
from irgym.core.files import write_file
from irgym.core.task import form_of
from irgym.envs.cse.ir.modules import with_body
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import RUNNER, CseTask
from irgym.measure.answers import answered
from irgym.measure.isolation.child import Child


def export(task: CseTask, state: CseState, path: Path) -> list[Path]:
    """Write a choice.

    Args:
        task: The function.
        state: What is shared.
        path: File to write: `.ll` for the IR of the whole module; `.s` for the assembly of the function; else
            a list of the candidates that are shared, one on a line: name, operation and what it replaces.

    Returns:
        The file written.

    Raises:
        IrgymError: The suffix is another.
        StorageError: The file cannot be written.
    """
    suffix = form_of(path, task.forms)
    function = task.analysed.function
    if suffix == ".ll":
        lines = task.analysed.sharing.lines(sorted(state.shared))
        content = with_body(task.module.read_text(), function.header, lines)
    elif suffix == ".s":
        content = assembly_text(task, state)
    else:
        content = _list(task, state)
    write_file(path, content.encode())
    return [path]


def export_module(parts: Sequence[tuple[CseTask, CseState]], path: Path) -> list[Path]:
    """Write the module that some functions are of, each with what is shared in it.

    Args:
        parts: Functions of one module.
        path: File to write, `.ll`.

    Raises:
        IrgymError: The suffix is another, or there are no functions.
        StorageError: The file cannot be written.
    """
    form_of(path, {".ll": CseTask.forms[".ll"]})
    if not parts:
        raise IrgymError("no function was tuned, so there is no module to write")
    text = parts[0][0].module.read_text()
    for task, state in parts:
        text = with_body(
            text, task.analysed.function.header, task.analysed.sharing.lines(sorted(state.shared))
        )
    write_file(path, text.encode())
    return [path]


def _list(task: CseTask, state: CseState) -> str:
    rows: list[str] = []
    for place in sorted(state.shared):
        one = task.analysed.candidates[place]
        replaced = ", ".join(f"{name} by {leader}" for name, leader in one.replaced)
        rows.append(f"{task.names[place]} ({one.opcode}): {replaced}\n")
    return "".join(rows)


def assembly_text(task: CseTask, state: CseState) -> str:
    """Return the assembly of a function with what is shared in it.

    Raises:
        IrgymError: LLVM does not make it.
    """
    arguments = (str(task.module), task.analysed.function.name, tuple(sorted(state.shared)), task.target.name)
    call = Call(f"{RUNNER}:assembly_of", arguments)
    with Child() as child:
        return answered(child, call, task.uri, "LLVM", "choose another function")
