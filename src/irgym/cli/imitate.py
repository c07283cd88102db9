"""`irgym imitate`."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.imitation import imitate
from irgym.api.requests import Imitating, Measuring
from irgym.cli.output import console, write_json_to
from irgym.cli.settings import settings_of


@dataclass(frozen=True)
class Imitate:
    """Train a policy to repeat what a search finds; `train --set start=FILE` goes on from it.

    With more rounds, this is expert iteration (Anthony et al., arXiv 1705.08439): the policy leads a search,
    then learns what that search has found.
    """

    environment: Positional[str]
    """Name of the environment."""
    out: Path
    """File to write the policy to."""
    seconds: float | None = None
    """Time for each search; 10 if neither this nor the number of evaluations is given."""
    seed: int = 0
    """Seed of all random choices."""
    imitating: OmitArgPrefixes[Imitating] = field(default_factory=Imitating)
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)
    json: Path | None = None
    """Write the result as JSON to this file."""
    set: tuple[str, ...] = ()
    """Hyper-parameters of the cloning as name=value, such as epochs=100 or start=FILE."""

    def run(self) -> None:
        """Imitate, print, record."""
        out = console()
        values = self.imitating.values
        settings = settings_of(self.set, "values" if values else "imitation")
        with out.status("searching") as status:
            done = imitate(
                self.environment,
                self.out,
                seconds=self.seconds,
                seed=self.seed,
                imitating=replace(self.imitating, hyperparameters=settings),
                measuring=self.measuring,
                note=out.print,
                progress=status.update,
            )
        at_peak = "" if done.peak_share is None else f", at {done.peak_share:.0%} of the peak on average"
        what = "states" if values else "schedules"
        out.print(f"{done.programs} programs, {done.schedules} {what}{at_peak}; {done.seconds:.0f} s")
        out.print(f"written: {done.policy}")
        write_json_to(self.json, done.to_json())
