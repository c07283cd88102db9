"""Build of the engine, once per machine: C++ against the XLA headers and libraries in tensorflow-cpu.

The library is kept in a store under a digest of the source, the TensorFlow version, the compiler and the
flags, so concurrent processes can request it. The compiler runs in an isolated child, so that none of its
processes outlives an interrupted run.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from irgym.base.errors import BackendError
from irgym.base.files import make_folder
from irgym.core.cost import Call
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import GIB, Limits, Raised, Returned
from irgym.measure.replies import error_of, failure_of
from irgym.measure.store import Store, digest

TENSORFLOW = "2.21.0"
"""TensorFlow version that the source is written for; the headers of others differ."""

INSTALL = "pip install 'irgym[hlo]'"
"""Command that installs the missing packages."""

SOURCE = Path(__file__).with_name("engine.cc")

HEADERS = (SOURCE.with_name("copying.h"), SOURCE.with_name("equality.h"), SOURCE.with_name("execution.h"))
"""Files that the source includes."""

FLAGS = (
    "-std=c++17",
    "-O2",
    "-DNDEBUG",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-w",  # warnings of TensorFlow's headers
    "-D_GLIBCXX_USE_CXX11_ABI=1",
    "-DEIGEN_MAX_ALIGN_BYTES=64",
    "-Wl,--no-undefined",
)
"""Flags of the compiler; those of the ABI are the wheel's."""

INCLUDES = (
    "include",
    "include/external/ml_dtypes_py",
    "include/external/highwayhash",
    "include/external/farmhash_archive/src",
    "include/external/llvm-project/mlir/include",
)

LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")

STORE = Store("hlo/engine", ".so")
"""Built libraries."""

LIMITS = Limits(timeout_s=900.0, memory_bytes=8 * GIB)
"""Limits of the build."""


@dataclass(frozen=True)
class Recipe:
    """Inputs of the build.

    Attributes:
        tensorflow: Folder of the installed package.
        compiler: Path of the C++ compiler.
    """

    tensorflow: Path
    compiler: str

    @cached_property
    def compiler_version(self) -> str:
        """First line of the compiler's version text."""
        try:
            said = subprocess.run(
                [self.compiler, "--version"], capture_output=True, text=True, timeout=30, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise BackendError(f"the compiler {self.compiler} does not run ({error}): set CXX") from error
        return said.stdout.partition("\n")[0]

    @property
    def name(self) -> str:
        """Name of the built library in the store."""
        sources = [file.read_bytes() for file in (SOURCE, *HEADERS)]
        parts = (*sources, TENSORFLOW, self.compiler_version, str(self.tensorflow), *FLAGS)
        return f"engine-{digest(*parts)}"

    def command(self, target: Path) -> list[str]:
        """Return the compiler's command line."""
        return [
            self.compiler,
            *FLAGS,
            *(f"-I{self.tensorflow / folder}" for folder in INCLUDES),
            str(SOURCE),
            "-o",
            str(target),
            f"-L{self.tensorflow}",
            *(f"-l:{library}" for library in LIBRARIES),
            f"-Wl,-rpath,{self.tensorflow}",
        ]


def recipe() -> Recipe:
    """Return the inputs of the build on this machine.

    Raises:
        BackendError: The system, TensorFlow or a compiler is missing or of the wrong version.
    """
    if sys.platform != "linux":
        raise BackendError(
            f"hlo runs on Linux only, not on {sys.platform}: tensorflow-cpu ships XLA's C++ parts only there"
        )
    tensorflow = _tensorflow()
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise BackendError(
            f"there is no C++ compiler {os.environ.get('CXX', 'g++')!r}, which hlo needs once to build its "
            "engine: install g++ (apt-get install g++) or set CXX"
        )
    return Recipe(tensorflow, compiler)


def _tensorflow() -> Path:
    for name in ("tensorflow-cpu", "tensorflow"):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        if found.version != TENSORFLOW:
            raise BackendError(
                f"hlo needs {name} {TENSORFLOW} for its XLA headers, but {found.version} is installed: "
                f"run {INSTALL}"
            )
        return Path(str(found.locate_file("tensorflow")))
    raise BackendError(f"hlo needs tensorflow-cpu {TENSORFLOW}, which is not installed: run {INSTALL}")


def build() -> Path:
    """Return the engine's library, building it if there is none yet (about half a minute, 1.3 GB of memory).

    Raises:
        BackendError: Something is missing, or the compiler failed.
        StorageError: The cache folder cannot be read or written.
    """
    chosen = recipe()
    return STORE.get(chosen.name, lambda: _compiled(chosen))


def _compiled(chosen: Recipe) -> bytes:
    """Build the library in a separate folder, which a killed build may have left behind."""
    print("irgym: building the engine of hlo, once on this machine (half a minute) ...", file=sys.stderr)
    workshop = STORE.folder / f"{chosen.name}.build"
    shutil.rmtree(workshop, ignore_errors=True)
    make_folder(workshop)
    library = workshop / "engine.so"
    call = Call(f"{__name__}:run_compiler", (chosen.command(library), str(workshop)))
    try:
        # The compiler's processes end with the child, however this process ends.
        with Child(LIMITS) as child:
            reply = child.call(call)
        if isinstance(reply, Raised):
            raise error_of(call, reply)
        reason = reply.value if isinstance(reply, Returned) else failure_of(reply).detail
        if not reason and not library.exists():
            reason = "it wrote no library"
        if reason:
            raise BackendError(
                f"{chosen.compiler} cannot build the engine of hlo ({reason}): use g++ 9 or later, with 2 GB "
                "of memory to spare"
            )
        return library.read_bytes()
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def run_compiler(command: Sequence[str], folder: str) -> str:
    """Run a compiler, with its temporary files in a folder; return the reason of a failure, else nothing."""
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TMPDIR": folder}, check=False
    )
    if done.returncode == 0:
        return ""
    said = [line for line in done.stderr.splitlines() if "error" in line or "killed" in line.lower()]
    return said[0] if said else f"status {done.returncode}"
