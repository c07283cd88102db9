"""The results of tuning each part of a program, such as the functions of a file, and what they come to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irgym.core.environment import Environment
from irgym.judging.statistics import Interval, geometric_interval
from irgym.judging.tuned import Tuned


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
        """Geometric mean of the costs as written over those now; None where nothing was tuned."""
        return _mean([one.speedup for one in self.results])

    @property
    def reference_ratio(self) -> Interval | None:
        """Geometric mean of the costs after the default schedule over ours; None where there is none."""
        return _mean([one.reference_ratio for one in self.results])

    @property
    def proven(self) -> int:
        """How many results are proven: no schedule is better."""
        return sum(one.search is not None and one.search.complete for one in self.results)

    def export(self, path: str | Path) -> list[Path]:
        """Write the whole with all parts as they are now, in a form that is usable without irgym.

        Raises:
            IrgymError: The suffix names no form, or the environment writes parts alone.
            StorageError: A file cannot be written.
        """
        return self.environment.export_parts([(one.task, one.state) for one in self.results], Path(path))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "program": self.program,
            "parts": [one.to_json() for one in self.results],
            "failures": dict(self.failures),
            "speedup": None if self.speedup is None else self.speedup.mean,
            "reference_ratio": None if self.reference_ratio is None else self.reference_ratio.mean,
            "proven": self.proven,
        }


def _mean(ratios: Sequence[float | None]) -> Interval | None:
    known = [one for one in ratios if one is not None and 0.0 < one < math.inf]
    return geometric_interval(known) if known else None
