"""The functions with candidates in the files of pinned packages."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FUNCTIONS = Path(__file__).with_name("functions.json")
"""The functions by file, written by `python benchmarks/cse_packages.py --write`."""


@cache
def functions() -> Mapping[str, tuple[str, ...]]:
    """Return the functions with candidates by file: `PACKAGE/PATH`."""
    return {file: tuple(names) for file, names in json.loads(FUNCTIONS.read_text()).items()}
