"""Construction of networks from hyper-parameters: checks, encoder specifications, initial weights."""

from pathlib import Path
from typing import Any

from irgym.agents.hyperparameters import NetworkOptions
from irgym.base.errors import IrgymError
from irgym.core.task import Task
from irgym.loggers import fetched
from irgym.networks.actor_critic import Actor
from irgym.networks.encoders import ACTIVATIONS, EncoderSpec, spec_for
from irgym.networks.policy import TorchPolicy
from irgym.networks.q_ensemble import QEnsemble
from irgym.networks.q_network import QNetwork
from irgym.policies.run_folder import RunFolder


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


def start_from(start: str, network: Actor | QNetwork) -> None:
    """Load the weights of a policy into a network of the same kind.

    Args:
        start: Run folder, file, or logged artefact; see `StartOptions.start`.
        network: The network.

    Raises:
        StorageError: There is no policy.
        IrgymError: The policy's network is another, or the artefact cannot be had.
        BackendError: The package of the artefact's logger is not installed.
    """
    found = TorchPolicy.load(_file_of(start)).network
    if found.kind != network.kind:
        known = {Actor.kind: "PPO, of A2C or of imitation", QNetwork.kind: "DQN or of Ape-X"}
        others = known.get(found.kind, "imitation of values")
        raise IrgymError(
            f"the policy {start} is one of {others}, whose network differs: start from one of "
            f"{known[network.kind]}"
        )
    if found.layout.space != network.layout.space:
        raise IrgymError(f"the policy {start} has learnt other actions: start from one of this environment")
    if _shape(found) != _shape(network):
        raise IrgymError(
            f"the policy {start} has another network than this training: set hidden, activation, encoder, "
            "attention, no_op, observation, actions and normalise_observations as they were when it was made"
        )
    network.load_state_dict(found.state_dict())


def _file_of(start: str) -> Path:
    """Return the file of a policy that is named as a run folder, a file, or an artefact."""
    path = Path(start)
    if path.is_dir():
        return RunFolder(path).policy
    artefact = None if path.exists() else fetched(start)
    return path if artefact is None else artefact


def _shape(network: Actor | QNetwork | QEnsemble) -> tuple[object, ...]:
    """Return the properties that networks with exchangeable weights share."""
    return network.spec, network.layout.kind, network.encoder.observation
