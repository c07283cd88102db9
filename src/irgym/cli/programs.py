"""`irgym programs`."""

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.checks import check_file
from irgym.api.programs import environment_named
from irgym.api.selecting import Selecting
from irgym.base.errors import IrgymError
from irgym.base.files import write_file
from irgym.cli.output import write_json_to
from irgym.core.dataset import Dataset, spread
from irgym.core.datasets import dataset_names, left_out_text
from irgym.core.environment import Environment
from irgym.core.program_files import list_text


@dataclass(frozen=True)
class Programs:
    """List the programs of a data set by URI, one a line, and the names of all data sets.

    `--save FILE` writes them with their splits, as `--dataset FILE` of all commands reads them.
    """

    environment: Positional[str]
    """Name of the environment."""
    selecting: OmitArgPrefixes[Selecting] = field(default_factory=lambda: Selecting(split="all"))
    family: str | None = None
    """Only programs of this family, as tables of results group them."""
    match: str | None = None
    """Only programs whose URIs this pattern matches, such as '*x64'."""
    save: Path | None = None
    """Write the programs to this file."""
    json: Path | None = None
    """Write the same as JSON to this file."""

    def run(self) -> None:
        """Print the URIs."""
        environment = environment_named(self.environment)
        check_file(self.save)
        dataset = self._chosen(environment, self.selecting.whole(environment))
        print(
            f"# {dataset.name}: {dataset.description}; {len(dataset.train)} train, {len(dataset.test)} test"
        )
        print(f"# data sets: {', '.join(dataset_names(environment))}")
        if dataset.left_out:
            print(f"# {left_out_text(dataset)}")
        uris = dataset.split(self.selecting.split)
        print("\n".join(uris))
        split = None if self.selecting.split == "all" else self.selecting.split
        write_json_to(self.json, {"dataset": dataset.name, "split": split, "programs": list(uris)})
        if self.save is not None:
            head = f"{environment.name}: {dataset.name}"
            write_file(self.save, list_text(dataset.train, dataset.test, head, self.save.parent).encode())
            print(f"# written: {self.save}")

    def _chosen(self, environment: Environment, dataset: Dataset) -> Dataset:
        """Return the programs that the options choose.

        Raises:
            IrgymError: There are none.
        """
        kept = {uri for uri in dataset.split(self.selecting.split) if self._fits(environment, uri)}
        if not kept:
            raise IrgymError(f"no program of {dataset.name} fits --family and --match: choose others")
        train, test = ([uri for uri in split if uri in kept] for split in (dataset.train, dataset.test))
        limit = self.selecting.limit
        if limit is None:
            return replace(dataset, train=tuple(train), test=tuple(test))
        # The limit leaves both splits a program, where they have any.
        least = 1 if test and (limit > 1 or not train) else 0
        tested = max(least, round(limit * len(test) / (len(train) + len(test))))
        train, test = spread(train, limit - tested), spread(test, tested)
        return replace(dataset, train=tuple(train), test=tuple(test))

    def _fits(self, environment: Environment, uri: str) -> bool:
        fits = self.match is None or fnmatchcase(uri, self.match)
        return fits and self.family in (None, environment.family(uri))
