"""A logger that remembers what it is told."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Remembering:
    """Each call as a tuple in `calls`; `fails` names a method that raises an error."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails = fails

    def _remember(self, *call: Any) -> None:
        self.calls.append(call)
        if call[0] == self.fails:
            raise RuntimeError(f"{self.fails} fails")

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        self._remember("start", iteration, configuration)

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        self._remember("metrics", iteration, dict(values))

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._remember("evaluation", iteration, name, list(rows))

    def artefact(self, iteration: int, path: Path) -> None:
        self._remember("artefact", iteration, path.name)

    def end(self) -> None:
        self._remember("end")
