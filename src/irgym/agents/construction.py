"""Construction of networks from hyper-parameters: checks, encoder specifications, initial weights."""

from pathlib import Path
from typing import Any

from irgym.agents.hyperparameters import NetworkOptions
from irgym.base.errors import IrgymError
from irgym.core.task import Task
from irgym.networks.actor_critic import Actor
from irgym.networks.encoders import ACTIVATIONS, EncoderSpec, spec_for
from irgym.networks.policy import TorchPolicy


def check_network(config: NetworkOptions) -> None:
    """Check the options of a network.

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
        IrgymError: There is no such observation or encoder, or the encoder cannot read the observation or
            has no such option.
    """
    return spec_for(
        task.observe(task.initial(), config.observation),
        config.hidden,
        config.activation,
        normalise=config.normalise_observations,
        encoder=config.encoder,
        options=encoder_options(config),
    )


def encoder_options(config: NetworkOptions) -> dict[str, Any]:
    """Return the options of the encoder that differ from their defaults."""
    options: dict[str, Any] = {"attention": config.attention, "no_op": config.no_op}
    return {name: value for name, value in options.items() if value}


def start_from(path: Path, actor: Actor) -> None:
    """Load the weights of a policy into an actor.

    Raises:
        StorageError: The file holds no policy.
        IrgymError: The policy's network differs from the actor.
    """
    network = TorchPolicy.load(path).network
    if not isinstance(network, Actor):
        raise IrgymError(f"the policy {path} is a Q-learner's: start from one of PPO or of imitation")
    if network.layout.space != actor.layout.space:
        raise IrgymError(f"the policy {path} has learnt other actions: start from one of this environment")
    if _shape(network) != _shape(actor):
        raise IrgymError(
            f"the policy {path} has another network than this training: set hidden, activation, encoder, "
            "attention, no_op, observation, actions and normalise_observations as they were when it was made"
        )
    actor.load_state_dict(network.state_dict())


def _shape(actor: Actor) -> tuple[object, ...]:
    """Return the properties that actors with exchangeable weights share."""
    return actor.spec, actor.layout.kind, actor.encoder.observation
