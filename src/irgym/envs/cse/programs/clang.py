"""C, compiled to LLVM's IR by the clang in the package `ziglang`. Nothing of it is optimised yet."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from irgym.base.errors import ProgramError
from irgym.envs.cse.compiling.machines import MACHINES
from irgym.envs.cse.compiling.toolchain import clang_version
from irgym.measure.machine import cache_dir

TIMEOUT_S = 300.0
"""Seconds that clang may take for a file."""

SHOWN = 2
"""Messages of clang that are told."""

FLAGS = ("-O1", "-Xclang", "-disable-llvm-passes", "-fno-sanitize=undefined", "-g0", "-w")
"""Without -O1, clang marks functions so that LLVM leaves them as they are."""

_INCLUDED = re.compile(rb'^# \d+ "([^"<]+)"', re.MULTILINE)

SEARCHED = "CPATH"
"""The environment variable that names folders of headers, to clang as to GCC."""


def searched() -> tuple[str, ...]:
    """Return the folders of headers that the user names, as options; clang runs elsewhere, and later."""
    folders = os.environ.get(SEARCHED, "").split(os.pathsep)
    return tuple(f"-I{Path(one).absolute()}" for one in folders if one)


def compiled(source: Path, target: str, options: Sequence[str] = ()) -> bytes:
    """Return the IR of a file of C, as text.

    Args:
        source: The file; headers beside it are found.
        target: Name of what code is made for.
        options: What clang is told beside: folders of headers and macros.

    Raises:
        BackendError: The compiler is not installed.
        ProgramError: The file is no C; the message has the first of clang's.
    """
    return _made(source, target, ("-S", "-emit-llvm", *options))


def preprocessed(source: Path, target: str, options: Sequence[str] = ()) -> bytes:
    """Return a file of C with all that it includes, which its IR depends on.

    Args:
        source: See `compiled`.
        target: See `compiled`.
        options: See `compiled`.

    Raises:
        BackendError: The compiler is not installed.
        ProgramError: The file includes what is not there.
    """
    return _made(source, target, ("-E", *options))


def included(text: bytes) -> set[str]:
    """Return the files that a text was made of, which `preprocessed` returned."""
    return {os.fsdecode(match[1]) for match in _INCLUDED.finditer(text)}


def _made(source: Path, target: str, options: Sequence[str]) -> bytes:
    clang_version()
    machine = MACHINES[target]
    with TemporaryDirectory(prefix="irgym-") as folder:
        made = Path(folder) / "made"
        command = [sys.executable, "-m", "ziglang", "cc", "-target", machine.platform, f"-mcpu={machine.zig}"]
        command += [*FLAGS, *options, "-o", str(made), str(source.absolute())]
        others = {name: value for name, value in os.environ.items() if name != SEARCHED}
        caches = {"ZIG_GLOBAL_CACHE_DIR": str(cache_dir() / "cse" / "zig"), "ZIG_LOCAL_CACHE_DIR": folder}
        try:
            done = subprocess.run(
                command,
                env={**others, **caches},
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ProgramError(
                f"{source.name}: clang took longer than {TIMEOUT_S:g} s: choose a smaller file"
            ) from error
        if done.returncode or not made.is_file():
            missing = "' file not found" in done.stderr
            remedy = f": name the header's folder in the environment variable {SEARCHED}" if missing else ""
            raise ProgramError(
                f"{source.name} is no C that clang compiles: {_said(done.stderr, source)}{remedy}"
            )
        return made.read_bytes()


def _said(messages: str, source: Path) -> str:
    """Return the first messages that tell what is wrong."""
    lines = [line.replace(f"{source.absolute()}:", "line ") for line in messages.splitlines()]
    errors = [line for line in lines if "error:" in line] or [line for line in lines if line.strip()]
    more = len(errors) - SHOWN
    return "; ".join(errors[:SHOWN]) + (f"; and {more} more" if more > 0 else "") or "it does not say why"
