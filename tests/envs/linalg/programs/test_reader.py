"""Descriptions of programs are kept: each program is read once on a machine."""

from pathlib import Path

import pytest

from irgym.base.errors import ProgramError
from irgym.core.cost import Call
from irgym.envs.linalg.environment import LIMITS
from irgym.envs.linalg.programs.operators import Operator
from irgym.envs.linalg.programs.reader import STORE, Reader
from irgym.envs.linalg.programs.uris import parse_uri
from irgym.measure.isolation.child import Child, Reply

URI = "linalg://matmul/4x5x6"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache folder."""
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))


def _text() -> str:
    operator = parse_uri(URI).origin
    assert isinstance(operator, Operator)
    return operator.text()


def test_a_program_is_read_once(monkeypatch: pytest.MonkeyPatch):
    with_child = Reader(LIMITS)
    numbered, program = with_child.described(_text(), URI)
    parts = with_child.parts(numbered, program.turns, URI)
    with_child.close()

    def fail(child: Child, call: Call) -> Reply:
        raise AssertionError(f"asked again: {call.function}")

    monkeypatch.setattr(Child, "call", fail)
    without = Reader(LIMITS)
    assert without.described(_text(), URI) == (numbered, program)
    assert without.parts(numbered, program.turns, URI) == parts
    with pytest.raises(AssertionError, match="parts_of"):
        without.parts(numbered, (), URI)


def test_unreadable_programs_are_not_cached():
    reader = Reader(LIMITS)
    for _ in range(2):
        with pytest.raises(ProgramError):
            reader.described("no MLIR", "file.mlir")
    reader.close()
    assert not list(STORE.folder.glob("*.pickle"))
