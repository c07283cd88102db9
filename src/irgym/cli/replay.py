"""`irgym replay`."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from irgym.api.checks import check_export_of, check_file
from irgym.api.tuning import replay
from irgym.cli.tuned import show


@dataclass(frozen=True)
class Replay:
    """Apply a schedule to a program, check its results and measure it."""

    uri: Positional[str]
    """The program, such as loops://mm/128x128x128, or a file."""
    schedule: Positional[str]
    """The schedule, as `tune` prints it: actions separated by blanks."""
    seed: int = 0
    """Seed of the inputs that the results are checked on."""
    objective: str | None = None
    """What is measured, such as `time`; by default the environment's own objective."""
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
        """Replay, print, export."""
        check_file(self.json)
        check_export_of(self.uri, self.backend, self.target, self.objective, self.export)
        result = replay(
            self.uri,
            self.schedule,
            seed=self.seed,
            objective=self.objective,
            backend=self.backend,
            target=self.target,
            farm=self.farm,
        )
        show(result, self.json, self.export)
