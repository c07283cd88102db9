"""Hyper-parameters: the groups and ranges that algorithms share, and their check."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from irgym.base.values import Range, check_fields

GREATEST = 1e30
"""Upper limit of numbers, within torch's 32-bit range."""

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
    """Base of an algorithm's configuration: a frozen dataclass whose fields declare types and ranges.

    Every instance is within its ranges. Conditions on several fields are checked where a configuration is
    used.
    """

    name: ClassVar[str] = "the algorithm"
    """Name of the algorithm, for messages."""

    def __post_init__(self) -> None:
        """Check each value against its declaration.

        Raises:
            IrgymError: One does not match; the message names it, its value and its range.
        """
        check_fields(self, self.name)


@dataclass(frozen=True)
class RandomOptions(Hyperparameters):
    """Options that make a run repeatable."""

    seed: Seed = 0
    """Seed of all random choices."""
    threads: Threads = 1
    """Threads of torch."""


@dataclass(frozen=True)
class DeviceOptions(Hyperparameters):
    """Where a learner's networks are, for learners that use `irgym.agents.devices`."""

    device: str = "auto"
    """Device to learn on: cpu, cuda, cuda:N, or auto for CUDA where torch sees it. Episodes, policies' files
    and checkpoints are the CPU's; a resumption may change it."""


@dataclass(frozen=True)
class NetworkOptions(Hyperparameters):
    """Options of a network."""

    hidden: Widths = (256, 256)
    """Widths of the hidden layers."""
    activation: str = "tanh"
    """tanh or relu; relu for graphs of hundreds of nodes without candidates, where tanh saturates."""
    encoder: str = ""
    """mlp, or lstm for observations of several rows; empty for the observation's default encoder."""
    attention: str = ""
    """Layers of the encoder graph: gatv2, or gat, X-RLflow's; empty for gatv2."""
    no_op: bool = False
    """Whether the encoder graph scores `stop` as a candidate, the unchanged graph, as X-RLflow does."""
    normalise_observations: bool = False
    """Whether to normalise inputs to mean 0 and deviation 1, by running statistics."""
    observation: str = ""
    """Name of the observation; several, separated by commas, are joined; empty for the default."""


@dataclass(frozen=True)
class TrainingOptions(RandomOptions, NetworkOptions):
    """Options of every learner."""

    iterations: Count = 200
    """Length of the training, and of annealing."""
    episodes: Episodes = 64
    """Episodes collected in an iteration."""
    normalise_rewards: bool = True
    """Whether to divide rewards by the deviation of the returns so far."""
    validate_every: CountOrNone = 0
    """Iterations between greedy evaluations on validation programs; 0 for none."""
    checkpoint_every: Weight = 30.0
    """Seconds between checkpoints."""


@dataclass(frozen=True)
class StartOptions(Hyperparameters):
    """Where the weights come from."""

    start: str = ""
    """Policy to start from, such as one that imitates searches: a run folder, a file, or an artefact that was
    logged (`wandb:ENTITY/PROJECT/policy-RUN:latest`, `mlflow:RUN`); empty for random weights.

    A resumption needs it too.
    """
