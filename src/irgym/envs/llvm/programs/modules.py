"""The modules of pinned packages, with their numbers of instructions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MODULES = Path(__file__).with_name("modules.json")
"""The modules by file, written by `python benchmarks/llvm_packages.py --write`."""


@dataclass(frozen=True)
class Size:
    """Numbers of a module's instructions.

    Attributes:
        original: Before any pass.
        reference: After -Oz.
    """

    original: int
    reference: int


@cache
def modules() -> Mapping[str, Size]:
    """Return the modules of packages that define a function, by file: `PACKAGE/PATH`."""
    return {file: Size(*counts) for file, counts in json.loads(MODULES.read_text()).items()}
