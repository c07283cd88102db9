"""A comparison: its rows, traces and settings, and their form as JSON and as CSV."""

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from irgym.base.errors import StorageError
from irgym.base.json_files import read_json
from irgym.base.values import MismatchError, Range, conform, conform_part, plain
from irgym.comparing.rows import Cost, Evaluations, Row, Seconds
from irgym.comparing.summary import Summary, summarise
from irgym.core.objective import TIME, Objective
from irgym.judging.statistics import NOISE

COLUMNS: tuple[str, ...] = (
    "program",
    "method",
    "reference_ratio",
    "baseline_ratio",
    "speedup",
    "schedule",
    "seconds",
    "evaluations",
    "cost",
    "validated",
    "detail",
)
"""Columns of a comparison as CSV: attributes of `Row`."""


@dataclass(frozen=True)
class Trace:
    """The best cost of a search over time.

    Attributes:
        program: URI.
        method: Name of the search.
        points: Triples of evaluations, seconds and cost, one for each improvement.
        end_s: When the search ended.
    """

    program: str
    method: str
    points: tuple[tuple[Evaluations, Seconds, Cost], ...]
    end_s: Seconds


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on the same programs.

    Attributes:
        environment: Name of the environment.
        baseline: Name of the baseline that `baseline_ratio` refers to, if there is one.
        rows: One for each program and method.
        traces: One for each program and search.
        machine: The machine, threads and load, in words.
        settings: Everything else that the numbers depend on: objective, reference, date, budget, seed,
            validation, the baseline's library.
    """

    environment: str
    baseline: str | None
    rows: tuple[Row, ...]
    traces: tuple[Trace, ...] = ()
    machine: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def objectives(self) -> dict[str, Objective]:
        """Objectives by name: the minimised one, then the others."""
        known = self.settings.get("objectives", [asdict(TIME)])
        return {objective["name"]: Objective(**objective) for objective in known}

    @property
    def objective(self) -> Objective:
        """The minimised objective."""
        return next(iter(self.objectives.values()))

    @property
    def reference(self) -> str | None:
        """Name of the pipeline that `reference_ratio` and `gain_ratio` refer to, if there is one."""
        name: Any = self.settings.get("reference")
        return None if name is None else str(name)

    @property
    def also(self) -> list[Objective]:
        """The other objectives."""
        return list(self.objectives.values())[1:]

    @property
    def noise(self) -> float:
        """Relative difference below which a single ratio says nothing: none where costs are exact."""
        return 0.0 if self.objective.exact else NOISE

    @property
    def methods(self) -> list[str]:
        """The methods, in the order of the rows."""
        return list(dict.fromkeys(row.method for row in self.rows))

    @property
    def programs(self) -> list[str]:
        """The programs, in the order of the rows."""
        return list(dict.fromkeys(row.program for row in self.rows))

    @property
    def summary(self) -> list[Summary]:
        """One summary for each method."""
        return summarise(self.rows, self.noise)

    def of(self, method: str) -> "Comparison":
        """Return the part of this comparison that is of one method."""
        rows = tuple(row for row in self.rows if row.method == method)
        return replace(self, rows=rows, traces=tuple(line for line in self.traces if line.method == method))

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back; numbers that are not finite become None."""
        return {
            "environment": self.environment,
            "baseline": self.baseline,
            "machine": self.machine,
            "settings": dict(self.settings),
            "rows": [plain(asdict(row)) for row in self.rows],
            "summary": {line.method: plain(asdict(line)) for line in self.summary},
            "traces": [plain(asdict(trace)) for trace in self.traces],
        }

    def to_csv(self) -> str:
        """Return the rows as CSV, with the columns in `COLUMNS`; what is not known is empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in self.rows)
        return text.getvalue()

    @staticmethod
    def from_json(data: Any) -> "Comparison":
        """Read what `to_json` returned.

        Raises:
            StorageError: It is something else.
        """
        try:
            written: _Written = conform(_Written, data)
            for name, kind in SETTINGS.items():
                if name in written.settings:
                    conform_part(kind, written.settings[name], f"settings.{name}")
            if written.settings.get("objectives") == []:
                raise MismatchError([], "at least one objective", "settings.objectives")
            return Comparison(
                written.environment,
                written.baseline,
                written.rows,
                written.traces,
                written.machine,
                written.settings,
            )
        except MismatchError as error:
            raise StorageError(
                f"this is not a comparison that irgym wrote ({error}): run irgym compare again"
            ) from error


SETTINGS: Mapping[str, Any] = {
    "date": str,
    "objective": str,
    "objectives": tuple[Objective, ...],
    "reference": str | None,
    "also": tuple[str, ...],
    "backend": str | None,
    "target": str | None,
    "seconds": Annotated[float | None, Range(above=0)],
    "evaluations": Annotated[int | None, Range(low=1)],
    "seed": int,
    "validation_inputs": Annotated[int, Range(low=0)],
    "horizon": Annotated[int | None, Range(low=1)],
    "actions": str | None,
    "baseline": str,
}
"""Types of the settings of a comparison, by name."""


@dataclass(frozen=True)
class _Written:
    """A comparison as it is written, its summary as whatever it is: that follows from the rows."""

    environment: str
    baseline: str | None
    machine: str
    settings: Mapping[str, Any]
    rows: tuple[Row, ...]
    traces: tuple[Trace, ...]
    summary: Mapping[str, Any] = field(default_factory=dict[str, Any])


def read_comparison(path: Path) -> Comparison | None:
    """Read the comparison in a file; None where there is no file.

    Raises:
        StorageError: It cannot be read, or it is damaged.
    """
    data = read_json(path)
    try:
        return None if data is None else Comparison.from_json(data)
    except StorageError as error:
        raise StorageError(f"{path} is damaged: {error}") from error
