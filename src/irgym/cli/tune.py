"""`irgym tune`."""

from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import Positional

from irgym.api.checks import check_export_of, check_file
from irgym.api.tuning import tune
from irgym.cli.options import Measuring
from irgym.cli.output import console
from irgym.cli.tuned import show


@dataclass(frozen=True)
class Tune:
    """Find the best schedule for a program, check its results, and say how good it is."""

    uri: Positional[str]
    """The program, such as loops://mm/128x128x128, or a file."""
    search: str | None = None
    """Search strategy; by default `exhaustive` where costs are exact and there are few programs, else
    `guided` where there is a policy, else `evolutionary`."""
    policy: str | None = None
    """Policy that leads the search: the name of one that ships (`default`), or a run folder."""
    seconds: float | None = None
    """Time for the search; 10 where neither this nor the number of evaluations is given."""
    evaluations: int | None = None
    """Number of distinct candidates to evaluate."""
    seed: int = 0
    """Seed of all random choices."""
    measuring: Measuring = field(default_factory=Measuring)
    export: Path | None = None
    """Write the result to this file, usable without irgym; its suffix chooses the form."""
    report: Path | None = None
    """Write a page on the result to this file: what was gained by what, and the program before and after."""
    json: Path | None = None
    """Write the result as JSON to this file."""

    def run(self) -> None:
        """Tune, print, export."""
        what = self.measuring
        check_file(self.report)
        check_export_of(self.uri, what.backend, what.target, what.objective, self.export)
        with console().status(self.uri) as status:
            result = tune(
                self.uri,
                search=self.search,
                policy=self.policy,
                seconds=self.seconds,
                evaluations=self.evaluations,
                seed=self.seed,
                **vars(self.measuring),
                note=status.update,
            )
        show(result, self.json, self.export, self.report)
