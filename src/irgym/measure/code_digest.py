"""Hashes of irgym's sources: recorded costs are valid only for the code that measured them."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent

SUFFIXES = (".py", ".c", ".cc", ".h")
"""Suffixes of source files."""

MEASURING = (
    "measure/arrays.py",
    "measure/checking",
    "measure/eviction.py",
    "measure/isolation",
    "measure/machine.py",
    "measure/native.py",
    "measure/code_digest.py",
    "measure/target.py",
    "measure/timing.py",
    "measure/variables.py",
)
"""Sources that check, time and isolate the candidates of all environments."""


@cache
def digest_of(*places: str, root: Path = ROOT) -> str:
    """Return a hash of source files and of `MEASURING`, cached; nothing is imported.

    Args:
        places: Files and folders relative to `root`: `envs/loops/runner.py`, `envs/loops/compiling`.
        root: Folder of the sources.

    Raises:
        FileNotFoundError: A file or folder is missing.
    """
    return hash_of(files_of((*MEASURING, *places), root), root)


@cache
def package_digest(root: Path, *places: str) -> str:
    """Return a hash of another package's source files and of irgym's `MEASURING`, cached.

    It belongs in the `toolchain` of the jobs of an environment whose package generates or runs code itself.

    Args:
        root: Folder of the package: `Path(__file__).parent`.
        places: Files and folders relative to `root`; by default the whole folder. A file that is named may
            have any suffix.

    Raises:
        FileNotFoundError: A file or folder is missing.
    """
    return f"{hash_of(files_of(places or ('.',), root), root)}+{digest_of()}"


def hash_of(files: Sequence[Path], root: Path) -> str:
    """Return a hash of the names and contents of files.

    Args:
        files: The files, in a fixed order.
        root: Folder that names are relative to.
    """
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(root).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def files_of(places: Sequence[str], root: Path = ROOT) -> list[Path]:
    """Return the source files of some files and folders, sorted.

    Raises:
        FileNotFoundError: A file or folder is missing.
    """
    found: set[Path] = set()
    for place in places:
        path = root / place
        if path.is_dir():
            found |= {file for file in path.rglob("*") if file.suffix in SUFFIXES}
        elif path.exists():
            found.add(path)
        else:
            raise FileNotFoundError(f"{path} is missing, and costs depend on it")
    return sorted(found)
