"""Export of a module for other tools; each reads the content back before it is written."""

from pathlib import Path

from irgym.base.files import write_file
from irgym.core.cost import Call
from irgym.core.task import form_of
from irgym.envs.hlo.compiling.modules import PassPath, ProgramModules
from irgym.envs.hlo.compiling.store import read_program
from irgym.measure.isolation.child import Child
from irgym.measure.replies import answered

FORMS = {
    ".hlo": "HLO text",
    ".txt": "HLO text",
    ".pb": "HloModuleProto",
    ".mlir": "StableHLO",
    ".jax": "a function that jax.export.deserialize reads",
}
"""Forms of export by suffix."""


def export(modules: ProgramModules, path: PassPath, target: Path) -> list[Path]:
    """Write a program after the passes of a path.

    Args:
        modules: The program.
        path: Kinds of the passes.
        target: File to write; its suffix selects the form.

    Returns:
        The file written.

    Raises:
        IrgymError: The suffix is unknown, or the module has no such form or is not read back unchanged.
        StorageError: The file cannot be written.
    """
    suffix = form_of(target, FORMS)
    if suffix in (".hlo", ".txt"):
        content = modules.pool.call("text", modules.file, path).encode()
    elif suffix == ".pb":
        content = modules.pool.call("proto", modules.file, path)
    else:
        protos = read_program(modules.file), modules.pool.call("proto", modules.file, path)
        content = _translated("stablehlo_text" if suffix == ".mlir" else "exported_function", *protos)
    write_file(target, content)
    return [target]


def _translated(function: str, original: bytes, proto: bytes) -> bytes:
    """Return a module in a form that jax writes and reads, from a child process."""
    call = Call(f"irgym.envs.hlo.compiling.exporting:{function}", (original, proto))
    with Child() as child:
        content: str | bytes = answered(child, call, "the module", "jax", "export .hlo or .pb")
    return content.encode() if isinstance(content, str) else content
