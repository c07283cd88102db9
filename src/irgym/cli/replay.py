"""`irgym replay`."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from irgym.cli.finding import data_of, print_finding
from irgym.cli.options import check_export, check_file, check_seed, task_of
from irgym.cli.output import console, write_json
from irgym.core.environment import environment_of
from irgym.core.schedule import Schedule
from irgym.evaluate.tuning import Validator, confirm


@dataclass(frozen=True)
class Replay:
    """Apply a schedule to a program, check its results and measure it."""

    uri: Positional[str]
    """The program, such as loops://mm/128x128x128."""
    schedule: Positional[str]
    """The schedule, as `tune` prints it: actions separated by blanks."""
    seed: int = 0
    """Seed of the inputs that the results are checked on."""
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
        """Apply, confirm, print, export."""
        check_seed(self.seed)
        check_file(self.json)
        environment = environment_of(self.uri)
        task = task_of(environment, self.uri, self.backend, self.target, self.objective)
        check_export(task, self.export)
        schedule = Schedule.parse(self.schedule, task.space)
        with environment.bench(self.farm, self.backend) as bench:
            validator = Validator(bench, environment.validation_inputs, self.seed)
            finding = confirm(environment, bench, task, schedule, validator)
            data = data_of(environment, bench, task, finding)
        print_finding(console(), task, finding, data)
        write_json(self.json, data)
        for file in task.export(finding.state, self.export) if self.export else ():
            print(f"written: {file}")
