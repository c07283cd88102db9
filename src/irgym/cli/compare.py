"""`irgym compare`."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.comparing import compare
from irgym.api.requests import Comparing, Measuring
from irgym.base.errors import IrgymError
from irgym.base.options import words_in
from irgym.cli.output import console
from irgym.cli.progress import Shown
from irgym.cli.traces import Traces
from irgym.reporting.tables import table


@dataclass(frozen=True)
class Compare:
    """Compare methods on the same programs, side by side: searches, policies, other libraries."""

    environment: Positional[str]
    """Name of the environment."""
    methods: tuple[str, ...] = ()
    """Methods, separated by blanks or commas: base (the original program), a default schedule of the
    compiler, a search, policy:NAME (never worse than base), raw:NAME (the policy's final state as it is;
    comes with policy:NAME), guided:NAME, or a baseline such as numpy. Options follow a colon, as in
    beam:width=2,order=breadth or guided:NAME,rollouts=8.

    By default the environment's own choice.
    """
    programs: tuple[str, ...] = ()
    """URIs or files; by default a split of the data set."""
    seconds: float | None = None
    """Time of each search on each program, with its checks and comparisons; 10 if no number of evaluations is
    given. Methods without a search take what they take."""
    seed: int = 0
    """Seed of all random choices."""
    comparing: OmitArgPrefixes[Comparing] = field(default_factory=Comparing)
    csv: Path | None = None
    """Write a row for each program and method to this file: program, ratios, schedule, seconds and others."""
    trace: Path | None = None
    """Write the tree that each search walked on each program to this folder: PROGRAM METHOD.svg."""
    time: bool = False
    """The same as --also time."""
    unvalidated: bool = False
    """Do not check results; the tables then say so."""
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)

    def run(self) -> None:
        """Compare, print, record."""
        out = console()
        traces = None if self.trace is None else Traces(self.trace)
        also = (*self.comparing.also, *(["time"] if self.time else []))
        with out.status("comparing") as status:
            shown = Shown(out, status, csv=self.csv, traces=traces)
            with shown.showing_when_interrupted(lambda so_far: out.print(table(so_far))):
                comparison = compare(
                    self.environment,
                    self.programs,
                    methods=words_in(self.methods) if self.methods else None,
                    seconds=self.seconds,
                    seed=self.seed,
                    comparing=replace(self.comparing, also=also, validation_inputs=self._inputs()),
                    measuring=self.measuring,
                    observer=shown,
                )
        out.print(table(comparison))

    def _inputs(self) -> int | None:
        """Return the number of inputs to check results on, 0 for no checks, None for the environment's."""
        inputs = self.comparing.validation_inputs
        if self.unvalidated and inputs is not None:
            raise IrgymError("--validation-inputs and --unvalidated exclude each other: give one of them")
        if inputs is not None and inputs < 1:
            raise IrgymError(f"{inputs} inputs check nothing: give at least 1, or --unvalidated")
        return 0 if self.unvalidated else inputs
