"""Hyper-parameters: the groups and ranges that algorithms share, and the check that all go through."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from irgym.base.values import Range, check_fields

GREATEST = 1e30
"""What torch can still compute with in 32 bits."""

Count = Annotated[int, Range(low=1)]
CountOrNone = Annotated[int, Range(low=0)]
Episodes = Annotated[int, Range(1, 1_000_000)]
Positive = Annotated[float, Range(above=0, high=GREATEST)]
Limit = Annotated[float | None, Range(above=0, high=GREATEST)]
Weight = Annotated[float, Range(0, GREATEST)]
Share = Annotated[float, Range(0, 1)]
Widths = Annotated[tuple[int, ...], Range(1, 65_536)]
Threads = Annotated[int, Range(1, 1024)]
Seed = Annotated[int, Range(low=0)]


@dataclass(frozen=True)
class Hyperparameters:
    """What configures an algorithm: a frozen dataclass whose fields declare types and ranges.

    None of its values is ever out of range: it cannot be made so. What concerns several fields, a
    configuration checks where it is used.
    """

    name: ClassVar[str] = "the algorithm"
    """The algorithm, for messages."""

    def __post_init__(self) -> None:
        """Make sure that every value suits its declaration.

        Raises:
            IrgymError: One does not; the message names it, its value and its range.
        """
        check_fields(self, self.name)


@dataclass(frozen=True)
class RandomOptions(Hyperparameters):
    """What repeats a run."""

    seed: Seed = 0
    """Of all random choices."""
    threads: Threads = 1
    """Threads of torch."""


@dataclass(frozen=True)
class NetworkOptions(Hyperparameters):
    """What a network is like."""

    hidden: Widths = (256, 256)
    """Widths of the hidden layers."""
    activation: str = "tanh"
    """tanh or relu."""
    encoder: str = ""
    """mlp, or lstm for observations of several rows; empty for the one that suits the observation."""
    normalise_observations: bool = False
    """Whether inputs are brought to mean 0 and deviation 1 over what was seen so far."""
    observation: str = ""
    """Name of what is observed; several, separated by commas, are joined; empty for the default."""


@dataclass(frozen=True)
class TrainingOptions(RandomOptions, NetworkOptions):
    """What every learner of a training run has."""

    iterations: Count = 200
    """Iterations after which annealed quantities have reached their end; also the length of training."""
    episodes: Episodes = 64
    """Episodes collected in an iteration."""
    normalise_rewards: bool = True
    """Whether rewards are divided by the deviation of the returns so far."""
    validate_every: CountOrNone = 0
    """Iterations between greedy evaluations on validation programs; 0 for none."""
    checkpoint_every: Weight = 30.0
    """Seconds between checkpoints."""
