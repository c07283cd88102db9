"""The results of tuning each part of a program, such as the functions of a file, and what they come to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irgym.core.environment import Environment
from irgym.judging.result import Tuned
from irgym.judging.statistics import Interval, geometric_interval


@dataclass(frozen=True)
class TunedParts:
    """Parts of a program after schedules.

    Attributes:
        program: URI of the whole.
        results: The parts that were tuned.
        failures: Why others were not, by URI.
        environment: Where they come from.
    """

    program: str
    results: tuple[Tuned, ...]
    failures: Mapping[str, str]
    environment: Environment = field(repr=False, compare=False)

    @property
    def speedup(self) -> Interval | None:
        """Geometric mean of the original costs over those now; None where nothing was tuned."""
        return _mean([result.speedup for result in self.results])

    @property
    def reference_ratio(self) -> Interval | None:
        """Geometric mean of the costs after the default schedule over ours; None where there is none."""
        return _mean([result.reference_ratio for result in self.results])

    @property
    def proven(self) -> int:
        """How many results are proven: no schedule is better."""
        return sum(result.search is not None and result.search.complete for result in self.results)

    def export(self, path: str | Path) -> list[Path]:
        """Write the whole with all parts as they are now, in a form that is usable without irgym.

        Raises:
            IrgymError: The suffix names no form, or the environment writes parts alone.
            StorageError: A file cannot be written.
        """
        parts = [(result.task, result.state) for result in self.results]
        return self.environment.export_parts(parts, Path(path))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "program": self.program,
            "parts": [result.to_json() for result in self.results],
            "failures": dict(self.failures),
            "speedup": None if self.speedup is None else self.speedup.mean,
            "reference_ratio": None if self.reference_ratio is None else self.reference_ratio.mean,
            "proven": self.proven,
        }


def _mean(ratios: Sequence[float | None]) -> Interval | None:
    known = [ratio for ratio in ratios if ratio is not None and 0.0 < ratio < math.inf]
    return geometric_interval(known) if known else None
