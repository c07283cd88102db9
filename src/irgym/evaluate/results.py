"""A comparison: its rows, traces and settings, and their form as JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from irgym.core.errors import StorageError
from irgym.evaluate.rows import Row, Side
from irgym.evaluate.statistics import NOISE, Verdict
from irgym.evaluate.summary import Summary, summarise


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
    points: tuple[tuple[int, float, float], ...]
    end_s: float


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on the same programs.

    Attributes:
        environment: Name of the environment.
        peer: Name of the peer that `peer_ratio` refers to, if there is one.
        rows: One for each program and method.
        traces: One for each program and search.
        machine: The machine, threads and load, in words.
        settings: Everything else that the numbers depend on: objective, reference, date, budget, seed,
            validation, the peer's library.
    """

    environment: str
    peer: str | None
    rows: tuple[Row, ...]
    traces: tuple[Trace, ...] = ()
    machine: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def objective(self) -> str:
        """What costs are."""
        return str(self.settings.get("objective", "time"))

    @property
    def reference(self) -> str | None:
        """Name of the pipeline that `reference_ratio` and `gain_ratio` refer to, if there is one."""
        name: Any = self.settings.get("reference")
        return None if name is None else str(name)

    @property
    def also(self) -> list[str]:
        """The other objectives."""
        return list(self.settings.get("also", ()))

    @property
    def noise(self) -> float:
        """Relative difference below which a single ratio says nothing: none where costs are exact."""
        return 0.0 if self.settings.get("exact") else NOISE

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

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back; numbers that are not finite become None."""
        ratio = f"{self.peer or 'peer'}_ratio"
        return {
            "environment": self.environment,
            "peer": self.peer,
            "machine": self.machine,
            "settings": dict(self.settings),
            "rows": [_renamed(_plain(asdict(row)), "peer_ratio", ratio) for row in self.rows],
            "summary": {
                line.method: _renamed(_plain(asdict(line)), "peer_ratio", ratio) for line in self.summary
            },
            "traces": [_plain(asdict(trace)) for trace in self.traces],
        }

    @staticmethod
    def from_json(data: Any) -> "Comparison":
        """Read what `to_json` returned.

        Raises:
            StorageError: It is something else.
        """
        try:
            peer = data["peer"]
            ratio = f"{peer or 'peer'}_ratio"
            rows = tuple(_row(_renamed(row, ratio, "peer_ratio")) for row in data["rows"])
            traces = tuple(_trace(trace) for trace in data["traces"])
            return Comparison(
                data["environment"], peer, rows, traces, data["machine"], dict(data["settings"])
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StorageError(
                f"this is not a comparison that irgym wrote ({error!r}): run irgym compare again"
            ) from error


def _row(data: Mapping[str, Any]) -> Row:
    also = {objective: Side(**side) for objective, side in data.get("also", {}).items()}
    return replace(Row(**data), also=also)


def _trace(data: Mapping[str, Any]) -> Trace:
    points = tuple(
        (int(evaluations), float(seconds), float(cost)) for evaluations, seconds, cost in data["points"]
    )
    return Trace(str(data["program"]), str(data["method"]), points, float(data["end_s"]))


def _renamed(data: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if key == old else key: value for key, value in data.items()}


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, Verdict):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value
