"""`irgym imitate`."""

from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import Positional

from irgym.api.imitation import imitate
from irgym.cli.options import Measuring
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
    dataset: str | None = None
    """Name of a data set; by default the environment's own."""
    search: str = "evolutionary"
    """Search of the first round; with `start=FILE`, that policy leads a guided search instead."""
    searched: int = 24
    """Number of training programs to search in each round."""
    seconds: float | None = None
    """Time for each search; 10 where neither this nor the number of evaluations is given."""
    evaluations: int | None = None
    """Number of distinct candidates of each search. If this is the only budget, a run that was stopped can be
    started again: the cost cache has what it measured."""
    rounds: int = 1
    """Number of rounds. From the second on, the policy of the round before leads the guided search, on other
    programs."""
    recorded: bool = False
    """In the first round, also show the policy the best schedules that the cost cache has of all training
    programs; `--searched` may then be 0."""
    programs: int = 400
    """Number of training programs that the schedules of the first round are transferred to; 0 for none. With
    `--values`, number of programs to learn from."""
    values: bool = False
    """Learn what each action is worth from all that can be made of each program, without a search. It suits
    programs of which at most a few thousand things can be made."""
    seed: int = 0
    """Seed of all random choices."""
    measuring: Measuring = field(default_factory=Measuring)
    json: Path | None = None
    """Write the result as JSON to this file."""
    set: tuple[str, ...] = ()
    """Hyper-parameters of the cloning as name=value, such as epochs=100 or start=FILE."""

    def run(self) -> None:
        """Imitate, print, record."""
        out = console()
        with out.status("searching") as status:
            done = imitate(
                self.environment,
                self.out,
                dataset=self.dataset,
                search=self.search,
                searched=self.searched,
                seconds=self.seconds,
                evaluations=self.evaluations,
                rounds=self.rounds,
                recorded=self.recorded,
                programs=self.programs,
                values=self.values,
                seed=self.seed,
                **self.measuring.arguments,
                hyperparameters=settings_of(self.set, "values" if self.values else "imitation"),
                note=out.print,
                progress=status.update,
            )
        at_peak = "" if done.peak_share is None else f", at {done.peak_share:.0%} of the peak on average"
        what = "states" if self.values else "schedules"
        out.print(f"{done.programs} programs, {done.schedules} {what}{at_peak}; {done.seconds:.0f} s")
        out.print(f"written: {done.policy}")
        write_json_to(self.json, done.to_json())
