"""A stand-in for CORE_ROOT, the folder of a Checked build of the .NET JIT with SuperPMI."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from irgym.envs.cse.superpmi.session import Collection

SCRIPT = Path(__file__).parents[2] / "toys" / "superpmi.py"

MakeCollection = Callable[..., Collection]


@pytest.fixture
def make_collection(tmp_path: Path) -> MakeCollection:
    """Return a function that makes the collection of a stand-in with some arguments."""

    def make(*arguments: str, timeout_s: float = 20.0) -> Collection:
        for name in ("libclrjit.so", "some.mch"):
            (tmp_path / name).touch()
        program = tmp_path / "superpmi"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPT} {" ".join(arguments)} "$@"\n')
        program.chmod(0o755)
        return Collection(tmp_path, tmp_path / "some.mch", timeout_s)

    return make
