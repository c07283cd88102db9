"""Algorithms of Stable-Baselines3 and sb3-contrib as irgym's learners: `irgym train ENV --agent sb3:TRPO`.

The hyper-parameters are those of the algorithm's class, under its names and with its defaults. A resumption
restores networks, optimisers and counts. As in that library, it does not restore replays, episodes in
progress and random numbers: a resumed training goes on, but not exactly as one that was never stopped.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import Any, ClassVar, Union

import torch

from irgym.agents.algorithms.sb3 import ModelPolicy, algorithm_named, built
from irgym.agents.devices import device_named
from irgym.agents.episodes.played import Outcomes
from irgym.agents.hyperparameters import Count, CountOrNone, DeviceOptions, RandomOptions, Weight, Widths
from irgym.agents.learner import Statistics
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.networks import storage
from irgym.policies.files import Head
from irgym.policies.layout import LAYOUTS
from irgym.policies.sb3 import SB3
from irgym.policies.sb3_files import PREFIX

OURS = (
    "policy",
    "env",
    "seed",
    "device",
    "verbose",
    "tensorboard_log",
    "stats_window_size",
    "support_multi_env",
)
"""Parameters of the algorithms' classes that irgym gives."""

LOGGED = {
    "train/value_loss": ("value_loss", 1.0),
    "train/loss": ("value_loss", 1.0),
    "train/policy_gradient_loss": ("policy_loss", 1.0),
    "train/policy_loss": ("policy_loss", 1.0),
    "train/policy_objective": ("policy_loss", -1.0),
    "train/entropy_loss": ("entropy", -1.0),
    "train/approx_kl": ("kl", 1.0),
    "train/kl_divergence_loss": ("kl", 1.0),
    "train/clip_fraction": ("clip_fraction", 1.0),
    "train/explained_variance": ("explained_variance", 1.0),
    "rollout/exploration_rate": ("epsilon", 1.0),
    "train/learning_rate": ("lr", 1.0),
}
"""Keys of the library's logger: the field of `Statistics` that each fills, and a factor."""


@dataclass(frozen=True)
class Sb3Config(DeviceOptions, RandomOptions):
    """Hyper-parameters that all algorithms have; `config_named` adds those of one."""

    algorithm: ClassVar[str] = ""
    """Name of the algorithm's class."""
    own: ClassVar[tuple[str, ...]] = ()
    """Fields that the algorithm's class takes."""

    hidden: Widths = (64, 64)
    """Widths of the hidden layers."""
    observation: str = ""
    """Name of the observation; empty for the default."""
    iterations: Count = 200
    """Length of the training."""
    steps: Count = 2048
    """Environment steps of an iteration, at least: on-policy algorithms round up to whole rollouts."""
    environments: Count = 8
    """Episodes side by side."""
    validate_every: CountOrNone = 0
    """Iterations between greedy evaluations on validation programs; 0 for none."""
    checkpoint_every: Weight = 30.0
    """Seconds between checkpoints."""

    def build(self, problem: Problem) -> "Sb3Learner":
        """Return a learner at the beginning of its training.

        Raises:
            IrgymError: The algorithm cannot choose among the actions, or an option is wrong.
        """
        return Sb3Learner(self, problem)


def config_named(name: str) -> type[Sb3Config]:
    """Return the configuration of an algorithm, whose fields are the plain parameters of its class.

    Raises:
        IrgymError: There is no such algorithm.
        BackendError: The libraries are not installed.
    """
    kind = algorithm_named(name)
    known = {field.name for field in fields(Sb3Config)}
    own = [
        (parameter.name, sort, parameter.default)
        for parameter in inspect.signature(kind.__init__).parameters.values()
        if parameter.name not in (*OURS, *known)
        and not parameter.name.startswith("_")
        and (sort := _sort(parameter)) is not None
    ]
    return make_dataclass(
        f"{kind.__name__}Config",
        own,
        bases=(Sb3Config,),
        namespace={
            "__module__": __name__,
            "__doc__": f"Hyper-parameters of {kind.__name__}.",
            "name": f"{PREFIX}{kind.__name__}",
            "algorithm": kind.__name__,
            "own": tuple(field for field, *_ in own),
        },
        frozen=True,
    )


def _sort(parameter: inspect.Parameter) -> Any:
    """Return the type of a plain parameter, told by its default; None for others, such as classes."""
    default = parameter.default
    if isinstance(default, bool | int | float | str):
        return type(default)
    if default is None:
        for sort in (float, int):
            if sort.__name__ in str(parameter.annotation).replace("'", " ").replace("[", " "):
                return Union[sort, None]  # noqa: UP007  (made at run time)
    return None


class SavedPolicy(ModelPolicy):
    """A model's policy that can be written as irgym's policy files are."""

    def save(self, path: Path) -> None:
        """Write the weights and all data needed to use them; no pickled object is among them.

        Raises:
            IrgymError: A weight is not finite.
            StorageError: The file cannot be written.
        """
        if not self.finite:
            raise IrgymError(f"the policy for {path} has weights that are not finite: lower learning_rate")
        layout = LAYOUTS["structured"](self.space)
        head = Head(self.environment, self.targets, layout, self.observation, self.limits)
        content = head.content() | {
            "network": SB3,
            "activation": self.network.activation,
            "algorithm": type(self.model).__name__,
            "weights": {name: torch.as_tensor(value) for name, value in self.network.weights.items()},
        }
        storage.write(path, content)


class Sb3Learner:
    """A model of the library in training.

    Attributes:
        config: Hyper-parameters.
        model: The model.
        iteration: Iterations done.
    """

    def __init__(self, config: Sb3Config, problem: Problem) -> None:
        from irgym.agents.algorithms.sb3_episodes import Sb3Episodes  # late: it imports the library

        self.config = config
        self.iteration = 0
        self._problem = problem
        self._episodes = Sb3Episodes(problem, config.observation, config.environments, config.seed)
        kind = type(config.algorithm, (_Whole, algorithm_named(config.algorithm)), {})
        self.model: Any = built(
            kind,
            self._episodes,
            seed=config.seed,
            device=str(device_named(config.device)),
            policy_kwargs={"net_arch": list(config.hidden)},
            **{name: getattr(config, name) for name in config.own},
        )
        self.model.whole = config.iterations * config.steps

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Let the model collect steps and learn from them, until an episode has ended."""
        finished = self._episodes.finished
        while True:
            self.model.learn(self.config.steps, reset_num_timesteps=False, log_interval=None)
            if finished.rows:
                break
        self.iteration += 1
        logged: Mapping[str, Any] = self.model.logger.name_to_value
        found: dict[str, float] = {}
        for key, (name, factor) in LOGGED.items():
            if key in logged:
                found.setdefault(name, factor * float(logged[key]))
        return finished.take(self._episodes.counting), Statistics(**found)

    def policy(self) -> SavedPolicy:
        """Return the current policy."""
        return SavedPolicy(self.model, self._problem.tasks[0].space, self.config.observation)

    def state_dict(self) -> dict[str, Any]:
        """Return the networks, optimisers and counts."""
        return {
            "iteration": self.iteration,
            "steps": self.model.num_timesteps,
            "parameters": self.model.get_parameters(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self.iteration = state["iteration"]
        self.model.num_timesteps = state["steps"]
        self.model.set_parameters(state["parameters"], exact_match=True)
        if hasattr(self.model, "weights"):  # ARS keeps its policy's parameters once more
            parameters = self.model.policy.parameters()
            self.model.weights = torch.nn.utils.parameters_to_vector(parameters).detach()


class _Whole:
    """Makes schedules go by the length of the whole training; `learn` is called for each iteration."""

    whole: int = 1

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        del total_timesteps
        self._current_progress_remaining = max(0.0, 1.0 - num_timesteps / self.whole)
