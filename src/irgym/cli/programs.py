"""`irgym programs`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from irgym.cli.output import write_json_to
from irgym.core.catalogue import ENVIRONMENTS, dataset_named


@dataclass(frozen=True)
class Programs:
    """List the programs of a data set by URI, one a line, and the names of all data sets."""

    environment: Positional[str]
    """Name of the environment."""
    dataset: str | None = None
    """Name of the data set; by default the environment's own."""
    split: Literal["train", "test"] | None = None
    """Only this split."""
    json: Path | None = None
    """Write the same as JSON to this file."""

    def run(self) -> None:
        """Print the URIs."""
        environment = ENVIRONMENTS.load(self.environment)
        dataset = dataset_named(environment, self.dataset)
        print(
            f"# {dataset.name}: {dataset.description}; {len(dataset.train)} train, {len(dataset.test)} test"
        )
        print(f"# data sets: {', '.join(environment.dataset_names())}")
        splits = [self.split] if self.split else ["train", "test"]
        uris = [uri for split in splits for uri in dataset.split(split)]
        print("\n".join(uris))
        write_json_to(self.json, {"dataset": dataset.name, "split": self.split, "programs": uris})
