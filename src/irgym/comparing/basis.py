"""Basis of a row: what it depends on besides its program, its method and the options of the command.

A row that is taken over into another run must be what that run would have measured itself.
"""

import hashlib
import re
import sys
from dataclasses import dataclass, fields
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from irgym.core.bench import Bench
from irgym.core.environment import Environment
from irgym.core.task import Task
from irgym.measure.code_digest import ROOT, files_of, hash_of

DIGITS = 16
"""Length of a digest, in hexadecimal digits."""

WORDS = {
    "machine": "another machine or other limits",
    "sources": "another version of irgym",
    "libraries": "other versions of libraries",
    "toolchain": "another toolchain",
    "target": "another target",
    "policy": "another policy",
}
"""Words for the parts of a basis that differ."""


@dataclass(frozen=True)
class Basis:
    """Everything that a row depends on.

    Attributes:
        machine: Key of the machine, and of what a candidate may use there.
        sources: Version of irgym, and a digest of its sources and of those of the environment's package.
        libraries: Digest of the versions of all libraries that irgym can use.
        toolchain: What the jobs of the program say that they are measured with.
        target: What the code is made for; empty where costs depend on no target.
        policy: Digest of the policy that decides or leads; empty where there is none, or nobody knows it.
    """

    machine: str = ""
    sources: str = ""
    libraries: str = ""
    toolchain: str = ""
    target: str = ""
    policy: str = ""

    def differences(self, other: "Basis") -> list[str]:
        """Return in words what differs between two."""
        names = [field.name for field in fields(self)]
        return [WORDS[name] for name in names if getattr(self, name) != getattr(other, name)]


def basis_of(environment: Environment, bench: Bench, task: Task[Any], policy: str = "") -> Basis:
    """Return what a row measured now depends on.

    Args:
        environment: Where the program comes from.
        bench: Where it is measured.
        task: The program.
        policy: Digest of the method's policy.
    """
    sources = f"{metadata.version('irgym')}+{_source_digest(type(environment).__module__)}"
    toolchain = task.job(task.initial()).toolchain
    return Basis(bench.conditions, sources, _library_digest(), toolchain, task.target_text, policy)


@cache
def _source_digest(module: str) -> str:
    """Return a digest of irgym's sources, and of the package that a module belongs to."""
    own = hash_of(files_of(["."], ROOT), ROOT)
    top = module.partition(".")[0]
    if top == ROOT.name:
        return own
    # Folders without __init__.py are no files: there it is the module alone.
    file = Path(sys.modules[top].__file__ or sys.modules[module].__file__ or "")
    places = ["."] if file.name == "__init__.py" else [file.name]
    return f"{own}+{hash_of(files_of(places, file.parent), file.parent)}"


@cache
def _library_digest() -> str:
    """Return a digest of the versions of the libraries that irgym needs or can use."""
    names = {re.split(r"[^\w.-]", text)[0] for text in metadata.requires("irgym") or ()}
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(f"{name} {_version(name)}\n".encode())
    return digest.hexdigest()[:DIGITS]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"
