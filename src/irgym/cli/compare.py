"""`irgym compare`."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from irgym.cli.options import (
    budget,
    check_file,
    check_limit,
    check_most,
    check_objective,
    check_seed,
    check_target,
    dataset_named,
)
from irgym.cli.output import console, identify_policy, load_policy, write_json
from irgym.core.environment import ENVIRONMENTS, spread
from irgym.core.errors import IrgymError
from irgym.core.files import lock_for
from irgym.evaluate.comparison import run_comparison
from irgym.evaluate.results import Comparison, read_comparison
from irgym.evaluate.tables import table


@dataclass(frozen=True)
class Compare:
    """Compare methods on the same programs, side by side: searches, policies, other libraries."""

    environment: Positional[str]
    """Name of the environment."""
    methods: str | None = None
    """Separated by commas: base, a default schedule, a search, policy:DIR, guided:DIR, or a baseline.

    By default the environment's own choice.
    """
    programs: tuple[str, ...] = ()
    """URIs; by default a split of the data set."""
    dataset: str | None = None
    """Name of a data set; by default the environment's own."""
    split: Literal["train", "test"] = "test"
    """Which programs of the data set."""
    limit: int | None = None
    """Only this many programs, evenly spread over the split."""
    seconds: float | None = None
    """Time for each search on each program; 10 where no number of evaluations is given."""
    evaluations: int | None = None
    """Number of distinct candidates for each search on each program."""
    seed: int = 0
    """Seed of all random choices."""
    objective: str | None = None
    """What is minimised, such as `time`; by default the environment's own objective."""
    also: tuple[str, ...] = ()
    """Other objectives under which the schedules found are measured too."""
    time: bool = False
    """The same as --also time."""
    inputs: int | None = None
    """Random inputs on which each result is checked; by default the environment's own number."""
    unvalidated: bool = False
    """Do not check results; the tables then say so."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default this machine."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    run_folder: Path | None = None
    """Write the comparison into this run folder too, for `irgym report`."""
    json: Path | None = None
    """Write the comparison as JSON to this file; it is kept up to date while the comparison runs."""
    resume: bool = False
    """Go on with the results that the JSON file, or else the run folder, holds; begin if there are none."""

    def run(self) -> None:
        """Compare, print, record."""
        limits = budget(self.evaluations, self.seconds)
        inputs = self._inputs()
        check_limit(self.limit)
        check_seed(self.seed)
        recorded = self.run_folder / "comparison.json" if self.run_folder else None
        check_file(self.json)
        check_file(recorded)
        environment = ENVIRONMENTS.load(self.environment)
        for objective in (self.objective, *self._others()):
            check_objective(environment, objective)
        check_target(self.target)
        dataset = dataset_named(environment, self.dataset)
        uris = list(self.programs) or spread(dataset.split(self.split), self.limit)
        methods = environment.default_methods if self.methods is None else self.methods.split(",")

        def record(comparison: Comparison) -> None:
            data = comparison.to_json()
            write_json(self.json, data)
            write_json(recorded, data)

        out = console()
        with ExitStack() as held:
            for file in {os.path.realpath(path): path for path in (self.json, recorded) if path}.values():
                held.enter_context(lock_for(file))
            done = self._done(recorded)
            bench = held.enter_context(environment.bench(self.farm, self.backend))
            status = held.enter_context(out.status("comparing"))
            comparison = run_comparison(
                environment,
                bench,
                uris,
                [method for method in methods if method],
                limits,
                self.seed,
                lambda name, task: load_policy(environment, name, task),
                lambda uri, method: status.update(f"{uri}: {method}"),
                self.backend,
                self.objective,
                self._others(),
                inputs,
                record,
                done,
                lambda name: identify_policy(environment, name),
                out.print,
                self.target,
            )
            record(comparison)
        out.print(table(comparison))

    def _others(self) -> list[str]:
        return [*self.also, *(["time"] if self.time else [])]

    def _inputs(self) -> int | None:
        """Return the number of inputs to check results on, 0 for no checks, None for the environment's."""
        if self.unvalidated and self.inputs is not None:
            raise IrgymError("--inputs and --unvalidated exclude each other: give one of them")
        if self.inputs is not None and self.inputs < 1:
            raise IrgymError(f"{self.inputs} inputs check nothing: give at least 1, or --unvalidated")
        check_most(self.inputs, "inputs")
        return 0 if self.unvalidated else self.inputs

    def _done(self, recorded: Path | None) -> Comparison | None:
        """Return what an earlier run left; None where there is nothing to resume."""
        if not self.resume:
            return None
        path = self.json or recorded
        if path is None:
            raise IrgymError("--resume needs the results so far: name their file by --json or --run-folder")
        return read_comparison(path)
