"""IR of clang (C and C++), rustc and Zig: opened, scored, proved and written.

    python fuzz/cse_compilers.py

For each function with candidates, the choices of nothing and of everything are scored, and the latter is
proved. LLVM must be able to read the exported module. rustc is skipped with a message if it is not installed.
The exit status is 1 if anything fails.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

from irgym.base.errors import ProgramError
from irgym.core.schedule import replay
from irgym.envs.cse.checking.proving.proofs import proofs_of
from irgym.envs.cse.compiling import llvm
from irgym.envs.cse.compiling.export import export_module
from irgym.envs.cse.environment import CSE
from irgym.measure.evaluators import Inline

SOURCES = Path(__file__).parent / "cse_languages"
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


@dataclass(frozen=True)
class Options:
    """Options of the test."""

    only: str = ""
    """Text that the names of commands must contain."""
    count: int = 60
    """Greatest number of functions of a module."""


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


def tried(file: Path, count: int) -> tuple[Counter[str], list[str]]:
    """Return the totals and the failures of a module's functions."""
    totals: Counter[str] = Counter()
    problems: list[str] = []
    parts = []
    for uri in islice(CSE.parts(f"cse:{file}", "x86-64"), count):
        try:
            task = CSE.task(uri, target="x86-64")
        except ProgramError as error:
            totals["left out"] += 1
            print(f"  {error}")
            continue
        everything = replay(task, task.pipeline("all"))
        totals["functions"] += 1
        problems += [
            f"{uri}: {measured.detail}"
            for measured in Inline().evaluate([task.job(task.initial()), task.job(everything)])
            if not measured.ok
        ]
        shared = tuple(range(len(task.names)))
        proofs = proofs_of(str(task.module), task.analysed.function.name, shared)
        totals.update({"pairs": proofs.pairs, "proved": proofs.proved})
        problems += [f"{uri}: {pair} refuted" for pair in proofs.refuted]
        parts.append(task.choice(everything))
    [result] = export_module(parts, file.with_name("result.ll"))
    llvm.read(result.read_text(), result.name)
    return totals, problems


def main(options: Options) -> None:
    """Print the totals and the failures for each compiler."""
    failed = False
    for name, (source, words) in COMMANDS.items():
        if options.only not in name:
            continue
        if words[0] == "rustc" and shutil.which("rustc") is None:
            print(f"{name}: left out, since rustc is not installed")
            continue
        with TemporaryDirectory(prefix="irgym-") as folder:
            totals, problems = tried(written(source, words, Path(folder)), options.count)
        failed = failed or bool(problems)
        print(f"{name}: {', '.join(f'{count} {what}' for what, count in totals.items())}", flush=True)
        print("".join(f"  {problem}\n" for problem in problems), end="")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
