"""The installation and the caches: where to look first, and what to include in a bug report."""

import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from irgym.core.datasets import registered
from irgym.core.reward_names import REWARDS
from irgym.measure.machine import cache_dir, fingerprint
from irgym.measure.torchvision_library import mismatch
from irgym.search import SEARCHES
from irgym.search.policies import has_torch

NOT_FOR_USERS = ("dev", "docs")
"""Extras for irgym's own developers."""


@dataclass(frozen=True)
class Extra:
    """An extra: a part of irgym that needs further libraries.

    Attributes:
        name: Its name.
        installed: The libraries that are here, with their versions.
        missing: Names of those that are not.
    """

    name: str
    installed: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """The command that installs what is missing; empty where nothing is."""
        return f"pip install 'irgym[{self.name}]'" if self.missing else ""


@dataclass(frozen=True)
class Kept:
    """The folder of irgym's caches.

    Attributes:
        folder: Where it is.
        sizes: Bytes of each file and folder in it, the greatest first.
        free: Bytes that are left on its disk.
    """

    folder: Path
    sizes: tuple[tuple[str, int], ...]
    free: int


def installation() -> str:
    """Return the versions of irgym and Python, and the machine, in a line."""
    return f"irgym {version('irgym')}, Python {platform.python_version()}; {fingerprint().text()}"


def extras() -> list[Extra]:
    """Return the extras, and what of them is installed."""
    names = metadata("irgym").get_all("Provides-Extra") or []
    return [_extra(name) for name in names if name not in NOT_FOR_USERS]


def hidden_parts() -> list[str]:
    """Return a sentence for each part of another package that cannot be used, or is hidden by one of ours."""
    hidden = [*SEARCHES.hidden().values(), *REWARDS.hidden().values(), *registered()[1]]
    if has_torch():
        from irgym.agents import AGENTS

        hidden += AGENTS.hidden().values()
    return hidden


def mismatched() -> list[str]:
    """Return a sentence, with the remedy, for each library that is installed but does not load here."""
    found = mismatch() if has_torch() else ""
    return [found] if found else []


def kept() -> Kept:
    """Return what the folder of caches holds."""
    folder = cache_dir()
    there = next(place for place in (folder, *folder.parents) if place.exists())
    entries = folder.iterdir() if folder.is_dir() else ()
    sizes = sorted(((entry.name, _size(entry)) for entry in entries), key=lambda pair: -pair[1])
    return Kept(folder, tuple(sizes), shutil.disk_usage(there).free)


def _extra(name: str) -> Extra:
    installed: list[str] = []
    missing: list[str] = []
    for library in _libraries(name):
        try:
            installed.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            missing.append(library)
    return Extra(name, tuple(installed), tuple(missing))


def _libraries(extra: str) -> Iterator[str]:
    """Yield the names of the libraries that an extra needs on a machine of this kind."""
    for requirement in requires("irgym") or []:
        what, _, marker = requirement.partition(";")
        wanted = re.search(r"extra\s*==\s*['\"](.*?)['\"]", marker)
        machine = re.search(r"platform_machine\s*==\s*['\"](.*?)['\"]", marker)
        name = re.match(r"[\w.-]+", what)
        if wanted is None or name is None or wanted[1] != extra:
            continue
        if machine is None or machine[1] == platform.machine():
            yield name[0]


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if path.is_symlink() or not path.exists():
        return 0
    return sum(map(_size, path.iterdir())) if path.is_dir() else path.stat().st_size
