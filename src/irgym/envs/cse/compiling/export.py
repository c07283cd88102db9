"""Export of choices: modules, assembly and lists that other tools read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from irgym.base.errors import IrgymError
from irgym.base.files import write_file
from irgym.core.cost import Call
from irgym.core.task import form_of
from irgym.envs.cse.compiling.toolchain import RUNNER
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.llvmir.ir.modules import ModuleText, with_bodies
from irgym.measure.isolation.child import Child
from irgym.measure.replies import answered

FORMS = {
    ".ll": "LLVM IR of the module",
    ".s": "assembly of the function",
    ".txt": "list of what is shared",
}
"""Forms of export by suffix."""

MODULE_FORMS = {".ll": FORMS[".ll"]}
"""Forms of export for several functions of one module."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A function and the candidates that are shared in it.

    Attributes:
        uri: Canonical URI of the program.
        module: File of the prepared module.
        analysed: The function.
        names: Names of the candidates in schedules.
        shared: Places of the shared candidates, in order.
        target: Name of the target.
    """

    uri: str
    module: Path
    analysed: Analysed
    names: tuple[str, ...]
    shared: tuple[int, ...]
    target: str


def export(choice: Choice, path: Path) -> list[Path]:
    """Write a choice.

    Args:
        choice: The choice.
        path: File to write: `.ll` for the IR of the whole module, `.s` for the assembly of the function,
            `.txt` for a list of the shared candidates, one per line: name, operation and replaced results.

    Returns:
        The file written.

    Raises:
        IrgymError: The suffix is another.
        StorageError: The file cannot be written.
    """
    suffix = form_of(path, FORMS)
    if suffix == ".ll":
        content = module_text([choice])
    elif suffix == ".s":
        content = assembly_text(choice)
    else:
        content = _list(choice)
    write_file(path, content.encode())
    return [path]


def export_module(choices: Sequence[Choice], path: Path) -> list[Path]:
    """Write the module of some functions, each under its choice.

    Args:
        choices: Functions of one module.
        path: File to write, `.ll`.

    Raises:
        IrgymError: The suffix is another, or there are no functions.
        StorageError: The file cannot be written.
    """
    form_of(path, MODULE_FORMS)
    if not choices:
        raise IrgymError("no function was tuned, so there is no module to write")
    write_file(path, module_text(choices).encode())
    return [path]


def module_text(choices: Sequence[Choice]) -> str:
    """Return the module of some functions, each under its choice; everything else is unchanged.

    Candidates are found in the text without debug information, and shared in the text that has it.
    """
    text = choices[0].module.read_text()
    module = ModuleText.read(text, debugging=True)
    bodies: dict[str, Sequence[str]] = {}
    for choice in choices:
        if not choice.shared:
            continue
        function = analysed(module, choice.analysed.function.name)
        places = {candidate.name: place for place, candidate in enumerate(function.candidates)}
        chosen = [places[choice.analysed.candidates[place].name] for place in choice.shared]
        bodies[function.function.header] = function.sharing.lines(chosen)
    return with_bodies(text, bodies)


def assembly_text(choice: Choice) -> str:
    """Return the assembly of a function under a choice.

    Raises:
        IrgymError: LLVM fails on it.
    """
    arguments = (str(choice.module), choice.analysed.function.name, choice.shared, choice.target)
    with Child() as child:
        call = Call(f"{RUNNER}:assembly_of", arguments)
        return answered(child, call, choice.uri, "LLVM", "choose another function")


def _list(choice: Choice) -> str:
    rows: list[str] = []
    for place in choice.shared:
        candidate = choice.analysed.candidates[place]
        replaced = ", ".join(f"{name} by {leader}" for name, leader in candidate.replaced)
        rows.append(f"{choice.names[place]} ({candidate.opcode}): {replaced}\n")
    return "".join(rows)
