"""`irgym compare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from irgym.cli.evaluate import spread
from irgym.cli.options import budget, check_file, check_limit, check_seed
from irgym.cli.output import console, load_policy, write_json
from irgym.core.environment import ENVIRONMENTS
from irgym.evaluate.comparison import run_comparison
from irgym.evaluate.tables import table


@dataclass(frozen=True)
class Compare:
    """Compare methods on the same programs, side by side: searches, policies, other libraries."""

    environment: Positional[str]
    """Name of the environment."""
    methods: str = "base,random,greedy,beam,evolutionary,guided:default,policy:default,numpy"
    """Separated by commas: base, a search, policy:DIR, guided:DIR, or a peer such as numpy, torch or tvm."""
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
    backend: str | None = None
    """Code generator; by default the best for this CPU."""
    run_folder: Path | None = None
    """Write the comparison into this run folder too, for `irgym report`."""
    json: Path | None = None
    """Write the comparison as JSON to this file."""

    def run(self) -> None:
        """Compare, print, record."""
        limits = budget(self.evaluations, self.seconds)
        check_limit(self.limit)
        check_seed(self.seed)
        recorded = self.run_folder / "comparison.json" if self.run_folder else None
        check_file(self.json)
        check_file(recorded)
        environment = ENVIRONMENTS.load(self.environment)
        dataset = environment.dataset(self.dataset or environment.default_dataset)
        uris = list(self.programs) or spread(dataset.split(self.split), self.limit)
        out = console()
        with environment.bench() as bench, out.status("comparing") as status:
            comparison = run_comparison(
                environment,
                bench,
                uris,
                [method for method in self.methods.split(",") if method],
                limits,
                self.seed,
                lambda name, task: load_policy(environment, name, task),
                lambda uri, method: status.update(f"{uri}: {method}"),
                self.backend,
            )
        out.print(table(comparison))
        write_json(self.json, comparison.to_json())
        write_json(recorded, comparison.to_json())
