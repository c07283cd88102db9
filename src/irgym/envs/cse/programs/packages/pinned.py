"""Which source distributions there are, and which of their functions have candidates."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

FUNCTIONS = FOLDER / "functions.json"
"""By file, the functions that have candidates; `python benchmarks/cse_packages.py --write` made it."""


@dataclass(frozen=True)
class Package:
    """A source distribution.

    Attributes:
        name: Its name in the index.
        version: Its version.
        split: Which split of the data set its functions are in.
        url: Where its archive is.
        sha256: The archive's SHA-256.
        sources: Patterns of the files that are compiled, from the archive's folder.
        include: Folders in which headers are looked for, likewise.
        define: Macros, `NAME` or `NAME=VALUE`.
    """

    name: str
    version: str
    split: str
    url: str
    sha256: str
    sources: tuple[str, ...]
    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()

    def options(self, folder: Path) -> tuple[str, ...]:
        """Return what the compiler is told.

        Args:
            folder: Where the archive was unpacked.
        """
        return (*(f"-I{folder / one}" for one in self.include), *(f"-D{one}" for one in self.define))


@cache
def packages() -> Mapping[str, Package]:
    """Return the packages by name."""
    return {
        name: _package(name, of) for name, of in tomllib.loads((FOLDER / "pinned.toml").read_text()).items()
    }


@cache
def functions() -> Mapping[str, tuple[str, ...]]:
    """Return the functions with candidates by file: `PACKAGE/PATH`."""
    return {file: tuple(names) for file, names in json.loads(FUNCTIONS.read_text()).items()}


def _package(name: str, of: Mapping[str, Any]) -> Package:
    lists = {key: tuple(of.get(key, ())) for key in ("sources", "include", "define")}
    return Package(name, of["version"], of["split"], of["url"], of["sha256"], **lists)
