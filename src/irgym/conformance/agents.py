"""The check of an agent against the rules that training relies on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from irgym.conformance.rule import NONE
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.dataset import spread
from irgym.core.datasets import dataset_named
from irgym.core.environment import Environment
from irgym.search.policies import require_torch

if TYPE_CHECKING:
    from irgym.agents.learner import AgentConfig

PROGRAMS = 4
"""Training programs that an agent is checked on unless others are given."""


def check_agent(
    agent: "AgentConfig | type[AgentConfig] | str",
    environment: "Environment | str" = "loops",
    programs: Sequence[str] = (),
    *,
    dataset: str | None = None,
    iterations: int = 6,
    skip: Mapping[str, str] = NONE,
) -> None:
    """Check that an agent keeps the rules that training relies on, in some short trainings.

    No time is measured: the costs are those of the environment's first exact objective or, if it has none,
    invented.

    Args:
        agent: The configuration, small enough to learn within seconds; or its class or its name, for its
            defaults with hidden layers of 16.
        environment: The environment to train on, or its name. An agent that acts on a farm, as Ape-X does,
            needs one with an exact objective.
        programs: URIs; by default some training programs of a data set. Choose small ones.
        dataset: A data set, as in trainings; by default the environment's own.
        iterations: Length of the trainings, at least 2. The agent must begin to learn in them.
        skip: Names of rules that are not checked, each with the reason.

    Raises:
        ConformanceError: A rule is broken; the error names it.
        IrgymError: Something that is named does not exist, or a program cannot be read.
        BackendError: torch is not installed.
    """
    require_torch("checking an agent")
    from irgym.conformance.training import check_training, configuration, problem_of

    home = ENVIRONMENTS.load(environment) if isinstance(environment, str) else environment
    uris = tuple(programs) or tuple(spread(dataset_named(home, dataset).split("train"), PROGRAMS))
    with problem_of(home, uris) as problem:
        check_training(configuration(agent), problem, iterations=iterations, skip=skip)
