"""The data of a comparison: rows, summaries, traces, and their form as JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from irgym.core.errors import StorageError
from irgym.evaluate.statistics import Interval, Verdict, geometric_interval

BASE = "base"
"""The method that leaves every program as written."""


@dataclass(frozen=True)
class Row:
    """What a method made of a program.

    Attributes:
        program: URI.
        method: Name of the method.
        cost_ns: Cost measured after the method ended, nanoseconds; None where it failed.
        speedup: Cost of the program as written over `cost_ns`.
        peer_ratio: The reference peer's time over ours; above 1, we are faster. None without a peer.
        seconds: Wall-clock time that the method took, without the final measurement.
        evaluations: Candidates that it evaluated.
        validated: Whether the results were compared with the original program's and agree.
        schedule: Text of the schedule; empty for peers.
        detail: For a failure, why; otherwise what should be known about the numbers.
        best_seen_ns: For a policy, the least cost of the states that it passed through.
        peak_share: Share of the machine's peak, timed in turn with it; None where no peak bounds the cost.
    """

    program: str
    method: str
    cost_ns: float | None
    speedup: float | None
    peer_ratio: float | None
    seconds: float | None
    evaluations: int | None
    validated: bool
    schedule: str = ""
    detail: str = ""
    best_seen_ns: float | None = None
    peak_share: float | None = None


@dataclass(frozen=True)
class Trace:
    """The best cost of a search over time.

    Attributes:
        program: URI.
        method: Name of the search.
        points: Triples of evaluations, seconds and cost in nanoseconds, one for each improvement.
        end_s: When the search ended.
    """

    program: str
    method: str
    points: tuple[tuple[int, float, float], ...]
    end_s: float


@dataclass(frozen=True)
class Summary:
    """A method over all programs.

    Attributes:
        method: Name of the method.
        programs: Programs that it was run on.
        failed: How many of them it failed on; they are left out of the following.
        speedup: Over the programs as written; None where all failed.
        peer_ratio: Over the reference peer; None without a peer.
        verdict: What `peer_ratio` shows, or without a peer `speedup`.
        to_best: The cost of the best method over this one's, on the programs that both solved.
        seconds: Mean time it took for a program.
    """

    method: str
    programs: int
    failed: int
    speedup: Interval | None
    peer_ratio: Interval | None
    verdict: Verdict | None
    to_best: Interval | None
    seconds: float | None


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on the same programs.

    Attributes:
        environment: Name of the environment.
        peer: Name of the peer that `peer_ratio` refers to, if there is one.
        rows: One for each program and method.
        traces: One for each program and search.
        machine: The machine, threads and load, in words.
        settings: Everything else that the numbers depend on: date, budget, seed, repeats, the peer's library.
    """

    environment: str
    peer: str | None
    rows: tuple[Row, ...]
    traces: tuple[Trace, ...] = ()
    machine: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

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
        return summarise(self.rows)

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
            rows = tuple(Row(**_renamed(row, ratio, "peer_ratio")) for row in data["rows"])
            traces = tuple(_trace(trace) for trace in data["traces"])
            return Comparison(
                data["environment"], peer, rows, traces, data["machine"], dict(data["settings"])
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StorageError(
                f"this is not a comparison that irgym wrote ({error!r}): run irgym compare again"
            ) from error


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


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """Return a summary for each method, in the order of the rows."""
    best: dict[str, Row] = {}
    for row in rows:
        if row.cost_ns is not None:
            holder = best.setdefault(row.program, row)
            if (_quotient(row, holder) or 0.0) < 1.0:
                best[row.program] = row
    return [
        _summary(method, [row for row in rows if row.method == method], best)
        for method in dict.fromkeys(row.method for row in rows)
    ]


def _interval(values: Any) -> Interval | None:
    ratios = [value for value in values if value is not None]
    return geometric_interval(ratios) if ratios else None


def _summary(method: str, rows: list[Row], best: Mapping[str, Row]) -> Summary:
    solved = {row.program: row for row in rows if row.cost_ns is not None}
    speedup = _interval(row.speedup for row in solved.values())
    peer_ratio = _interval(row.peer_ratio for row in solved.values())
    decisive = peer_ratio or speedup
    times = [row.seconds for row in solved.values() if row.seconds is not None]
    return Summary(
        method=method,
        programs=len(rows),
        failed=len(rows) - len(solved),
        speedup=speedup,
        peer_ratio=peer_ratio,
        verdict=decisive.verdict if decisive else None,
        to_best=_interval(_quotient(best[program], row) for program, row in solved.items()),
        seconds=math.fsum(times) / len(times) if times else None,
    )


def _quotient(best: Row, row: Row) -> float | None:
    """Return the best cost over a row's; from shares of the peak where known, as clocks change."""
    if best.peak_share and row.peak_share:
        return row.peak_share / best.peak_share
    return best.cost_ns / row.cost_ns if best.cost_ns and row.cost_ns else None
