"""Pinned source distributions."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Package:
    """A source distribution.

    Attributes:
        name: Name in the index.
        version: Version.
        split: Split of the data set to which its functions belong.
        url: URL of the archive.
        sha256: The archive's SHA-256.
        sources: Patterns of the compiled files, relative to the archive's folder.
        include: Header folders, likewise.
        define: Macros, `NAME` or `NAME=VALUE`.
        only: The one environment that takes programs from it; empty where all do.
    """

    name: str
    version: str
    split: str
    url: str
    sha256: str
    sources: tuple[str, ...]
    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    only: str = ""

    def options(self, folder: Path) -> tuple[str, ...]:
        """Return the compiler options.

        Args:
            folder: Folder of the unpacked archive.
        """
        return (
            *(f"-I{folder / header}" for header in self.include),
            *(f"-D{macro}" for macro in self.define),
        )


@cache
def packages() -> Mapping[str, Package]:
    """Return the packages by name."""
    return {
        name: _package(name, entry)
        for name, entry in tomllib.loads((FOLDER / "pinned.toml").read_text()).items()
    }


def packages_of(environment: str) -> Mapping[str, Package]:
    """Return the packages from which an environment takes programs, by name."""
    return {name: package for name, package in packages().items() if package.only in ("", environment)}


def _package(name: str, entry: Mapping[str, Any]) -> Package:
    lists = {key: tuple(entry.get(key, ())) for key in ("sources", "include", "define")}
    return Package(
        name,
        entry["version"],
        entry["split"],
        entry["url"],
        entry["sha256"],
        only=entry.get("only", ""),
        **lists,
    )
