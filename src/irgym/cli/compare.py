"""`irgym compare`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from irgym.api.comparing import compare
from irgym.base.errors import IrgymError
from irgym.cli.options import Measuring
from irgym.cli.output import console
from irgym.cli.progress import Shown
from irgym.reporting.tables import table


@dataclass(frozen=True)
class Compare:
    """Compare methods on the same programs, side by side: searches, policies, other libraries."""

    environment: Positional[str]
    """Name of the environment."""
    methods: str | None = None
    """Methods, separated by commas: base (the original program), a default schedule of the compiler, a
    search, policy:NAME (never worse than base), raw:NAME (the policy's final state as it is; comes with
    policy:NAME), guided:NAME, or a baseline such as numpy.

    By default the environment's own choice.
    """
    programs: tuple[str, ...] = ()
    """URIs or files; by default a split of the data set."""
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
    also: tuple[str, ...] = ()
    """Other objectives under which the schedules found are measured too."""
    time: bool = False
    """The same as --also time."""
    inputs: int | None = None
    """Random inputs on which each result is checked; by default the environment's own number."""
    unvalidated: bool = False
    """Do not check results; the tables then say so."""
    measuring: Measuring = field(default_factory=Measuring)
    run_folder: Path | None = None
    """Also write the comparison into this run folder, for `irgym report`."""
    json: Path | None = None
    """Write the comparison as JSON to this file; it is kept up to date while the comparison runs."""
    resume: bool = False
    """Continue with the results in the JSON file, or else in the run folder; start over without one."""

    def run(self) -> None:
        """Compare, print, record."""
        out = console()
        with out.status("comparing") as status:
            comparison = compare(
                self.environment,
                self.programs,
                methods=None if self.methods is None else [name for name in self.methods.split(",") if name],
                dataset=self.dataset,
                split=self.split,
                limit=self.limit,
                seconds=self.seconds,
                evaluations=self.evaluations,
                seed=self.seed,
                also=(*self.also, *(["time"] if self.time else [])),
                inputs=self._inputs(),
                **self.measuring.arguments,
                json=self.json,
                run_folder=self.run_folder,
                resume=self.resume,
                observer=Shown(out, status),
            )
        out.print(table(comparison))

    def _inputs(self) -> int | None:
        """Return the number of inputs to check results on, 0 for no checks, None for the environment's."""
        if self.unvalidated and self.inputs is not None:
            raise IrgymError("--inputs and --unvalidated exclude each other: give one of them")
        if self.inputs is not None and self.inputs < 1:
            raise IrgymError(f"{self.inputs} inputs check nothing: give at least 1, or --unvalidated")
        return 0 if self.unvalidated else self.inputs
