"""Third-party learners: Stable-Baselines3 and sb3-contrib on a Gymnasium environment of irgym.

They add algorithms, and are the oracle for irgym's. Only MaskablePPO uses masks in training: with the others
an action that does not apply changes nothing and wastes a step. Actions are those of `irgym.gym.spaces`:
places in `ActionSpace.flat`, followed by those of candidates; or vectors where the actions are too many to
list. Needs the extra `sb3`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import gymnasium
import numpy as np

from irgym.agents.devices import device_named
from irgym.agents.hyperparameters import Count
from irgym.agents.optimisation import DivergedError
from irgym.base.errors import BackendError, IrgymError
from irgym.base.values import Range, check_value
from irgym.core.actions import ActionSpace
from irgym.loggers.events import without_tensorflow
from irgym.policies.foreign import network_of
from irgym.policies.sb3 import Sb3Policy


@dataclass(frozen=True)
class Reporting:
    """Reports of the course of a training.

    Attributes:
        progress: Called with the steps so far and the mean return of the last hundred episodes, once an
            episode has ended.
        every: Least number of steps between two calls; the end of training is one more.
    """

    progress: Callable[[int, float], None]
    every: int = 1000


RANGES = {
    "steps": Count,
    "environments": Annotated[int, Range(1, 1024)],
    "seed": Annotated[int, Range(0, 2**32 - 1)],
    "reporting.every": Count,
}
"""Ranges of the adapter's numeric parameters."""


def train_sb3(
    algorithm: str,
    make: Callable[[], gymnasium.Env[Any, Any]],
    space: ActionSpace,
    *,
    steps: int,
    environments: int = 8,
    seed: int = 0,
    reporting: Reporting | None = None,
    observation: str = "",
    **hyperparameters: Any,
) -> "ModelPolicy":
    """Train an algorithm and return its policy.

    Args:
        algorithm: Its name, such as `TRPO`; see `algorithm_named`.
        make: Returns a new environment with the actions that `gym_space(space)` says; with `action_masks()`
            for `MaskablePPO`.
        space: The actions of its tasks.
        steps: Environment steps to train for.
        environments: Number of environments, stepped one after the other.
        seed: Of all random choices.
        reporting: Reports of the course of the training; none by default.
        observation: Name of the observation that the environments show; empty: the default.
        hyperparameters: Passed on to the algorithm, such as `policy_kwargs={"net_arch": [64, 64]}`, or
            `device="cpu"` in place of CUDA where torch sees it.

    Raises:
        IrgymError: There is no such algorithm here, the actions are too many for it, or a number is out of
            range.
        DivergedError: The policy has weights that are not finite.
        BackendError: The package is not installed.
    """
    kind = algorithm_named(algorithm)
    every = 1 if reporting is None else reporting.every
    numbers = {"steps": steps, "environments": environments, "seed": seed, "reporting.every": every}
    for field, value in numbers.items():
        check_value(RANGES[field], value, field, algorithm)
    for field, value in hyperparameters.items():
        if isinstance(value, float):  # the library checks the others
            check_value(float, value, field, algorithm)
    vectorised: Any = import_module("stable_baselines3.common.vec_env")
    logging: Any = import_module("stable_baselines3.common.logger")
    envs = vectorised.VecMonitor(vectorised.DummyVecEnv([make] * environments))
    try:
        options = {"device": str(device_named("auto")), **hyperparameters}
        model = built(kind, envs, seed=seed, **options)
        if not hyperparameters.keys() & {"tensorboard_log", "verbose"}:
            # The default logger would leave a folder among the system's temporary files, and write nothing.
            model.set_logger(logging.Logger(folder=None, output_formats=[]))
        reporter = None if reporting is None else _Reporter(reporting)
        model.learn(steps, callback=reporter)
        if reporter is not None:
            reporter.report(model, every=1)
        if not all(bool(weights.isfinite().all()) for weights in model.policy.parameters()):
            raise DivergedError("policy", math.nan)
    finally:
        envs.close()
    return ModelPolicy(model, space, observation)


class _Reporter:
    """Makes the reports; Stable-Baselines3 calls it after each step of all environments."""

    def __init__(self, reporting: Reporting) -> None:
        self.reporting = reporting
        self.reported = 0

    def __call__(self, local: dict[str, Any], _: dict[str, Any]) -> bool:
        """Report if it is due, and continue the training."""
        self.report(local["self"], self.reporting.every)
        return True

    def report(self, model: Any, every: int) -> None:
        """Report if at least `every` steps passed since the last report, and an episode has ended."""
        steps: int = model.num_timesteps
        episodes: Sequence[dict[str, float]] = model.ep_info_buffer
        if episodes and steps - self.reported >= every:
            self.reported = steps
            self.reporting.progress(steps, float(np.mean([episode["r"] for episode in episodes])))


class ModelPolicy(Sb3Policy):
    """The policy of a model at the time when this was made.

    Attributes:
        model: The model, for instance to call its `save`.
    """

    def __init__(self, model: Any, space: ActionSpace, observation: str = "") -> None:
        super().__init__(network_of(model), space, observation)
        self.model = model


def algorithms() -> dict[str, Any]:
    """Return the classes of all algorithms by name, those of sb3-contrib last.

    Raises:
        BackendError: The libraries are not installed.
    """
    without_tensorflow()  # Stable-Baselines3 imports TensorBoard
    try:
        base: Any = import_module("stable_baselines3.common.base_class").BaseAlgorithm
        packages = [import_module(name) for name in ("stable_baselines3", "sb3_contrib")]
    except ImportError as error:
        raise BackendError(f"{error.name} is not installed: run pip install 'irgym[sb3]'") from error
    return {
        name: part
        for package in packages
        for name, part in vars(package).items()
        if isinstance(part, type) and issubclass(part, base)
    }


def algorithm_named(name: str) -> Any:
    """Return the class of an algorithm; case and hyphens do not matter: `maskable-ppo` is MaskablePPO.

    Raises:
        IrgymError: There is none.
        BackendError: The libraries are not installed.
    """
    known = algorithms()
    plain = {own.lower(): kind for own, kind in known.items()}
    if name.replace("-", "").lower() not in plain:
        raise IrgymError(
            f"Stable-Baselines3 and sb3-contrib have no algorithm {name!r}: choose among {', '.join(known)}"
        )
    return plain[name.replace("-", "").lower()]


def built(kind: Any, envs: Any, **options: Any) -> Any:
    """Return a model with a perceptron, or with an LSTM if the algorithm is a recurrent one.

    Raises:
        IrgymError: The algorithm cannot choose among the environments' actions, or an option is wrong.
    """
    policy = next(name for name in ("MlpPolicy", "MlpLstmPolicy") if name in kind.policy_aliases)
    try:
        return kind(policy, envs, **options)
    except AssertionError as error:
        if "action space" not in str(error):
            raise IrgymError(f"{kind.__name__} refuses its options: {error}") from error
        raise IrgymError(
            f"{kind.__name__} cannot choose among these actions: choose MaskablePPO, PPO, A2C, TRPO or "
            "RecurrentPPO; DQN and QRDQN where actions can be listed"
        ) from error
    except (TypeError, ValueError) as error:
        raise IrgymError(f"{kind.__name__} refuses its options: {error}") from error
