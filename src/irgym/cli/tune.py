"""`irgym tune`."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from irgym.api.checks import check_export_of, check_file
from irgym.api.tuning import tune
from irgym.cli.output import console
from irgym.cli.tuned import show


@dataclass(frozen=True)
class Tune:
    """Find the best schedule for a program, check its results, and say how good it is."""

    uri: Positional[str]
    """The program, such as loops://mm/128x128x128, or a file."""
    search: str | None = None
    """Search strategy; by default `guided` where there is a policy, else `evolutionary`."""
    policy: str | None = None
    """Policy that leads the search: the name of one that ships (`default`), or a run folder."""
    seconds: float | None = None
    """Time for the search; 10 where neither this nor the number of evaluations is given."""
    evaluations: int | None = None
    """Number of distinct candidates to evaluate."""
    seed: int = 0
    """Seed of all random choices."""
    objective: str | None = None
    """What is minimised, such as `time`; by default the environment's own objective."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default this machine."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    export: Path | None = None
    """Write the result to this file, usable without irgym; its suffix chooses the form."""
    json: Path | None = None
    """Write the result as JSON to this file."""

    def run(self) -> None:
        """Tune, print, export."""
        check_file(self.json)
        check_export_of(self.uri, self.backend, self.target, self.objective, self.export)
        with console().status(self.uri) as status:
            result = tune(
                self.uri,
                search=self.search,
                policy=self.policy,
                seconds=self.seconds,
                evaluations=self.evaluations,
                seed=self.seed,
                objective=self.objective,
                backend=self.backend,
                target=self.target,
                farm=self.farm,
                note=status.update,
            )
        show(result, self.json, self.export)
