"""Compilation of C to unoptimised LLVM IR, by the clang in the package `ziglang`."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

from irgym.base.errors import BackendError, ProgramError
from irgym.llvmir.programs.machines import MACHINES
from irgym.measure.machine import cache_dir

TIMEOUT_S = 300.0
"""Time limit of a call, in seconds. On first use, ziglang builds libraries, which takes some ten seconds."""

LARGEST = 1 << 26
"""Most bytes of a preprocessed file."""

SHOWN = 2
"""Number of clang's messages that an error quotes."""

UNOPTIMISED = ("-Xclang", "-disable-llvm-passes", "-fno-sanitize=undefined", "-g0", "-w")
"""Options of clang for unoptimised IR, beside the level that it is made for."""

FLAGS = ("-O1", *UNOPTIMISED)
"""Options of clang. Without -O1, clang marks functions `optnone`, and LLVM does not optimise them."""

_CRASHED = re.compile(r"clang frontend command failed|unable to spawn|terminated with signal|LLVM ERROR")
_EXHAUSTED = re.compile("out of memory|bad_alloc|Cannot allocate memory|OutOfMemory")
_INCLUDED = re.compile(rb'^# \d+ "([^"<]+)"', re.MULTILINE)

SEARCHED = "CPATH"
"""The environment variable with header folders, as for clang and GCC."""


INSTALL = "pip install ziglang"
"""Command that installs the C compiler."""


@cache
def clang_version() -> str:
    """Return the package that contains clang, and its version.

    Raises:
        BackendError: It is not installed.
    """
    try:
        return f"ziglang {version('ziglang')}"
    except PackageNotFoundError as error:
        raise BackendError(f"C is compiled by ziglang, which is not installed: run {INSTALL}") from error


def searched() -> tuple[str, ...]:
    """Return the user's header folders as options with absolute paths, since clang runs in another folder."""
    folders = os.environ.get(SEARCHED, "").split(os.pathsep)
    return tuple(f"-I{Path(folder).absolute()}" for folder in folders if folder)


def compiled(source: Path, target: str, options: Sequence[str] = (), flags: Sequence[str] = FLAGS) -> bytes:
    """Compile a file of C to IR text.

    Args:
        source: The file; headers in its folder are found.
        target: Name of the target.
        options: Further options: header folders and macros.
        flags: Level of optimisation, and what belongs to it.

    Raises:
        BackendError: The compiler is not installed.
        ProgramError: clang refuses the file; the message quotes clang.
    """
    return _made(source, target, (*flags, "-S", "-emit-llvm", *options))


def preprocessed(
    source: Path, target: str, options: Sequence[str] = (), flags: Sequence[str] = FLAGS
) -> bytes:
    """Preprocess a file of C, which yields all the text that its IR depends on.

    Args:
        source: See `compiled`.
        target: See `compiled`.
        options: See `compiled`.
        flags: See `compiled`.

    Raises:
        BackendError: The compiler is not installed.
        ProgramError: An included file is missing, or the text has more than `LARGEST` bytes.
    """
    text = _made(source, target, (*flags, "-E", *options))
    if len(text) > LARGEST:
        raise ProgramError(
            f"{source.name} has {len(text) >> 20:,} MiB with all that it includes, and at most "
            f"{LARGEST >> 20} MiB are compiled: choose a smaller file"
        )
    return text


def zig_cc(arguments: Sequence[str], folder: str) -> "subprocess.CompletedProcess[str]":
    """Run ziglang's C compiler, and return what it said and how it ended.

    Args:
        arguments: Options and files, with absolute paths.
        folder: Where it runs, and where files go that only this call needs.

    Raises:
        BackendError: It is not installed.
        subprocess.TimeoutExpired: It took longer than `TIMEOUT_S`.
    """
    clang_version()
    others = {name: value for name, value in os.environ.items() if name != SEARCHED}
    return subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", "-fno-crash-diagnostics", *arguments],
        env={**others, "ZIG_GLOBAL_CACHE_DIR": str(cache_dir() / "zig"), "ZIG_LOCAL_CACHE_DIR": folder},
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )


def included(text: bytes) -> set[str]:
    """Return the files that went into a preprocessed text."""
    return {os.fsdecode(match[1]) for match in _INCLUDED.finditer(text)}


def _made(source: Path, target: str, options: Sequence[str]) -> bytes:
    machine = MACHINES[target]
    with TemporaryDirectory(prefix="irgym-") as folder:
        made = Path(folder) / "made"
        chosen = ("-target", machine.platform, f"-mcpu={machine.zig}", *options)
        try:
            done = zig_cc([*chosen, "-o", str(made), str(source.absolute())], folder)
        except subprocess.TimeoutExpired as error:
            raise ProgramError(
                f"{source.name}: clang took longer than {TIMEOUT_S:g} s: choose a smaller file"
            ) from error
        if _CRASHED.search(done.stderr):
            how = "runs out of memory" if _EXHAUSTED.search(done.stderr) else "crashes"
            raise ProgramError(f"clang {how} on {source.name}: choose a smaller or another file")
        if done.returncode or not made.is_file():
            missing = "' file not found" in done.stderr
            remedy = f": name the header's folder in the environment variable {SEARCHED}" if missing else ""
            raise ProgramError(f"clang cannot compile {source.name}: {_said(done.stderr, source)}{remedy}")
        return made.read_bytes()


def _said(messages: str, source: Path) -> str:
    """Return the first error messages."""
    lines = [line.replace(f"{source.absolute()}:", "line ") for line in messages.splitlines()]
    errors = [line for line in lines if "error:" in line] or [line for line in lines if line.strip()]
    more = len(errors) - SHOWN
    return "; ".join(errors[:SHOWN]) + (f"; and {more} more" if more > 0 else "") or "it does not say why"
