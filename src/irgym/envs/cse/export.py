"""Writing what was chosen in forms that other tools read."""

from pathlib import Path

from irgym.core.cost import Call
from irgym.core.errors import IrgymError
from irgym.core.files import write_file
from irgym.core.task import form_of
from irgym.envs.cse.ir.modules import with_body
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import RUNNER, CseTask
from irgym.measure.evaluators import error_of
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Raised, Returned


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
        content = _assembly(task, state)
    else:
        content = _list(task, state)
    write_file(path, content.encode())
    return [path]


def _list(task: CseTask, state: CseState) -> str:
    rows: list[str] = []
    for place in sorted(state.shared):
        one = task.analysed.candidates[place]
        replaced = ", ".join(f"{name} by {leader}" for name, leader in one.replaced)
        rows.append(f"{task.names[place]} ({one.opcode}): {replaced}\n")
    return "".join(rows)


def _assembly(task: CseTask, state: CseState) -> str:
    arguments = (str(task.module), task.analysed.function.name, tuple(sorted(state.shared)), task.target.name)
    call = Call(f"{RUNNER}:assembly_of", arguments)
    with Child() as child:
        reply = child.call(call)
    if isinstance(reply, Raised):
        raise error_of(call, reply)
    if not isinstance(reply, Returned):
        raise IrgymError(f"the assembly cannot be made ({reply}): export .ll")
    return reply.value
