"""Build of the C that walks through modules, by ziglang, once per machine."""

from pathlib import Path
from tempfile import TemporaryDirectory

from irgym.base.errors import BackendError
from irgym.llvmir.programs.clang import clang_version, zig_cc
from irgym.measure.store import Store, digest

FOLDER = Path(__file__).parent

FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=default", "-fno-sanitize=undefined", "-std=c11", "-w")

STORE = Store("llvm/native", ".so")
"""Built libraries."""


def build() -> Path:
    """Return the shared library, built on first use. Its symbols of LLVM are those of the library loaded.

    Raises:
        BackendError: ziglang is not installed, or does not work here.
        StorageError: The cache folder cannot be written.
    """
    sources = sorted((*FOLDER.glob("*.c"), *FOLDER.glob("*.h")))
    parts = [clang_version(), *FLAGS, *(file.name for file in sources)]
    return STORE.get(f"walk-{digest(*parts, *(file.read_bytes() for file in sources))}", _built)


def _built() -> bytes:
    with TemporaryDirectory(prefix="irgym-") as folder:
        made = Path(folder) / "made.so"
        done = zig_cc([*FLAGS, "-o", str(made), *map(str, sorted(FOLDER.glob("*.c")))], folder)
        if done.returncode:
            raise BackendError(
                f"ziglang cannot build what irgym needs for llvm: {done.stderr.strip()[-300:]}"
            )
        return made.read_bytes()
