"""Writing what was chosen in forms that other tools read."""

from collections.abc import Sequence
from pathlib import Path

from irgym.base.errors import IrgymError
from irgym.base.files import write_file
from irgym.core.cost import Call
from irgym.core.task import form_of
from irgym.envs.cse.ir.analysis import analysed
from irgym.envs.cse.ir.modules import ModuleText, with_bodies
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import RUNNER, CseTask
from irgym.measure.isolation.child import Child
from irgym.measure.replies import answered


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
    if suffix == ".ll":
        content = module_text([(task, state)])
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
    write_file(path, module_text(parts).encode())
    return [path]


def module_text(parts: Sequence[tuple[CseTask, CseState]]) -> str:
    """Return the module that some functions are of, each with what is shared in it, and all else as it was.

    Candidates are found without what is written for debuggers, and shared in the text that has it.
    """
    text = parts[0][0].module.read_text()
    module = ModuleText.read(text, debugging=True)
    bodies: dict[str, Sequence[str]] = {}
    for task, state in parts:
        if not state.shared:
            continue
        function = analysed(module, task.analysed.function.name)
        places = {candidate.name: place for place, candidate in enumerate(function.candidates)}
        chosen = [places[task.analysed.candidates[place].name] for place in sorted(state.shared)]
        bodies[function.function.header] = function.sharing.lines(chosen)
    return with_bodies(text, bodies)


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
