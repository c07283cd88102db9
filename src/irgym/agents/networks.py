"""From hyper-parameters to networks: what all learners ask of them, and weights to start from."""

from pathlib import Path
from typing import Any

from irgym.agents.hyperparameters import NetworkOptions
from irgym.base.errors import IrgymError
from irgym.core.task import Task
from irgym.networks.actor_critic import Actor
from irgym.networks.encoders import ACTIVATIONS, EncoderSpec, spec_for
from irgym.networks.policy import TorchPolicy


def check_network(config: NetworkOptions) -> None:
    """Make sure that a network can be made so.

    Raises:
        IrgymError: There is no such activation.
    """
    if config.activation not in ACTIVATIONS:
        raise IrgymError(
            f"there is no activation {config.activation!r}: choose among {', '.join(ACTIVATIONS)}"
        )


def spec_of(config: NetworkOptions, task: Task[Any]) -> EncoderSpec:
    """Return the specification of the encoder for the observations of a task.

    Raises:
        IrgymError: There is no such observation or encoder here, or they do not suit each other.
    """
    return spec_for(
        task.observe(task.initial(), config.observation),
        config.hidden,
        config.activation,
        normalise=config.normalise_observations,
        encoder=config.encoder,
    )


def start_from(path: Path, actor: Actor) -> None:
    """Give an actor the weights of a policy.

    Raises:
        StorageError: The file holds no policy.
        IrgymError: The policy's network differs from the actor.
    """
    network = TorchPolicy.load(path).network
    if not isinstance(network, Actor):
        raise IrgymError(f"the policy {path} is a Q-learner's: start from one of PPO, A2C or imitation")
    if network.layout.space != actor.layout.space:
        raise IrgymError(f"the policy {path} has learnt other actions: start from one of this environment")
    if _shape(network) != _shape(actor):
        raise IrgymError(
            f"the policy {path} has another network than this training: set hidden, activation, encoder, "
            "observation, actions and normalise_observations as they were when it was made"
        )
    actor.load_state_dict(network.state_dict())


def _shape(actor: Actor) -> tuple[object, ...]:
    """Return what must agree for one actor's weights to suit another."""
    return actor.spec, actor.layout.kind, actor.encoder.observation
