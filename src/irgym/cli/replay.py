"""`irgym replay`."""

from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.checks import check_file
from irgym.api.exports import check_export_of
from irgym.api.replaying import replay
from irgym.api.requests import Measuring
from irgym.cli.output import console
from irgym.core.catalogue import locate


@dataclass(frozen=True)
class Replay:
    """Apply a schedule to a program, check its results and measure it."""

    uri: Positional[str]
    """The program, such as loops://mm/128x128x128, or a file."""
    schedule: Positional[str]
    """The schedule, as `tune` prints it: actions separated by blanks or commas."""
    seed: int = 0
    """Seed of the inputs that the results are checked on."""
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)
    export: Path | None = None
    """Write the result to this file, usable without irgym; its suffix chooses the form."""
    report: Path | None = None
    """Write a page on the result to this file: the gains, and the program before and after."""
    json: Path | None = None
    """Write the result as JSON to this file."""

    def run(self) -> None:
        """Replay, print, export."""
        check_file(self.report)
        check_export_of(*locate(self.uri), self.measuring, self.export)
        with console().status(self.uri) as status:
            result = replay(
                self.uri, self.schedule, seed=self.seed, measuring=self.measuring, note=status.update
            )
        from irgym.cli.results import show  # late, as in `tune`

        show(result, self.json, self.export, self.report)
