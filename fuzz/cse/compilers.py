"""IR of clang (C and C++), rustc and Zig: opened, scored, proved and written.

For each function with candidates, the choices of nothing and of everything are scored, and the latter is
proved. LLVM must be able to read the exported module. rustc is left out if it is not installed. Seeds go
through the compilers with their options, and through the functions.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.fuzzer import Tally, part
from irgym.base.errors import ProgramError
from irgym.core.schedule import replay
from irgym.envs.cse.checking.proving.proofs import proofs_of
from irgym.envs.cse.compiling import llvm
from irgym.envs.cse.compiling.export import export_module
from irgym.envs.cse.environment import CSE
from irgym.measure.evaluators import Inline

SOURCES = Path(__file__).parent / "languages"
ZIG = (sys.executable, "-m", "ziglang")
CLANG = ("-S", "-emit-llvm", "-fno-sanitize=undefined", "-w")
RUST = ("rustc", "--emit=llvm-ir", "-C", "no-prepopulate-passes")

COMMANDS: Mapping[str, tuple[str, Sequence[str]]] = {
    **{
        f"{file} {' '.join(options)}": (file, (*ZIG, driver, *CLANG, *options, "-o"))
        for file, driver in (("shapes.cpp", "c++"), ("symbols.c", "cc"))
        for options in (
            ("-O0", "-g"),
            ("-O1", "-Xclang", "-disable-llvm-passes"),
            ("-O1", "-g", "-Xclang", "-disable-llvm-passes"),
        )
    },
    "shapes.rs": ("shapes.rs", (*RUST, "-C", "opt-level=1", "-o")),
    "shapes.rs -g": ("shapes.rs", (*RUST, "-g", "-o")),
    "checked.zig": ("checked.zig", (*ZIG, "build-obj", "-fno-emit-bin")),
    "checked.zig -O ReleaseSafe": ("checked.zig", (*ZIG, "build-obj", "-fno-emit-bin", "-O", "ReleaseSafe")),
}
"""Commands that write IR, without file arguments: name, source, words."""


EACH = 10
"""Functions of a seed, all of one module."""


def written(source: str, words: Sequence[str], folder: Path) -> Path:
    """Return the IR of a source."""
    file = folder / "module.ll"
    place = [f"-femit-llvm-ir={file}"] if words[-1] != "-o" else [str(file)]
    caches = {f"ZIG_{name}_CACHE_DIR": str(folder / "zig") for name in ("GLOBAL", "LOCAL")}
    subprocess.run(
        [*words, *place, str(SOURCES / source)],
        check=True,
        cwd=folder,
        env={**os.environ, **caches},
        capture_output=True,
    )
    return file


def tried(file: Path, seed: int, tally: Tally) -> None:
    """Try some functions of a module."""
    parts = []
    for uri in part(list(CSE.parts(f"cse:{file}", "x86-64")), seed, EACH)[0]:
        try:
            task = CSE.task(uri, target="x86-64")
        except ProgramError:
            tally.notes["functions left out"] += 1
            continue
        everything = replay(task, task.pipeline("all"))
        measured = Inline().evaluate([task.job(task.initial()), task.job(everything)])
        faults = [result.detail for result in measured if not result.ok]
        proofs = proofs_of(str(task.module), task.analysed.function.name, tuple(range(len(task.names))))
        tally.notes.update({"pairs": proofs.pairs, "proved": proofs.proved})
        faults += [f"{pair} refuted" for pair in proofs.refuted]
        tally.add("wrong" if faults else "right", (faults and f"{uri}: {'; '.join(faults)}") or "")
        parts.append(task.choice(everything))
    for result in export_module(parts, file.with_name("result.ll")) if parts else ():
        llvm.read(result.read_text(), result.name)


def run(seed: int) -> Tally:
    """Compile a source, and try some of its functions."""
    tally = Tally()
    name, (source, words) = list(COMMANDS.items())[seed % len(COMMANDS)]
    if words[0] == "rustc" and shutil.which("rustc") is None:
        tally.notes["without rustc"] += 1
        return tally
    with TemporaryDirectory(prefix="irgym-") as folder:
        tried(written(source, words, Path(folder)), seed // len(COMMANDS), tally)
    tally.reach("compilers", [name])
    return tally
