"""`irgym history`."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table
from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.objects import named_object
from irgym.api.replaying import history
from irgym.api.requests import Measuring
from irgym.cli.output import console, write_json_to
from irgym.core.catalogue import environment_of
from irgym.judging.history import Known, best_first
from irgym.judging.units import cost_text


@dataclass(frozen=True)
class History:
    """Show what `tune` found for a program on this machine: when, how, and the best schedule."""

    uri: Positional[str]
    """The program, as `tune` takes it."""
    environment: str | None = None
    """Environment that took a torch module: `graph` by default, or `linalg`."""
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)
    json: Path | None = None
    """Write the results as JSON to this file, the oldest first."""

    def run(self) -> None:
        """Print the table and the best schedule."""
        program, inputs = named_object(self.uri) or (self.uri, ())
        known = history(program, *inputs, environment=self.environment, measuring=self.measuring)
        write_json_to(self.json, [asdict(result) for result in known])
        out = console()
        if not known:
            out.print(f"no result for {self.uri} on this machine yet: run irgym tune {self.uri}")
            return
        table = Table("when", "search")
        for column in ("candidates", "s", "cost", "gain"):
            table.add_column(column, justify="right")
        home = environment_of(known[0].program)
        for result in known:
            table.add_row(*_cells(result, cost_text(result.cost, home.objective(result.objective))))
        out.print(table)
        best = best_first(known)[0]
        out.print(f"the best, of {best.date}: {best.schedule or '(none)'}")


def _cells(result: Known, cost: str) -> tuple[str, ...]:
    return (
        result.date[:16].replace("T", " "),
        result.search if result.policy is None else f"{result.search}:{result.policy}",
        str(result.evaluations),
        f"{result.seconds:.1f}",
        cost,
        f"{result.speedup:.2f}x",
    )
