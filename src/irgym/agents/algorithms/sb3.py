"""Third-party learners: Stable-Baselines3 and sb3-contrib on a Gymnasium environment of irgym.

They add algorithms, and are the oracle for irgym's. Actions are those of `irgym.gym.spaces`: places in
`ActionSpace.flat`, followed by those of candidates; or vectors where the actions are too many to list. Needs
the extra `sb3`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray

from irgym.agents.hyperparameters import Count
from irgym.agents.optimisation import DivergedError
from irgym.base.errors import BackendError, IrgymError
from irgym.base.values import Range, check_value
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.candidates import CandidateObservation, list_mask, padded
from irgym.gym.spaces import action_of, gym_mask
from irgym.loggers.events import without_tensorflow


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


ALGORITHMS: dict[str, tuple[str, str]] = {
    "maskable-ppo": ("sb3_contrib", "MaskablePPO"),
    "ppo": ("stable_baselines3", "PPO"),
    "a2c": ("stable_baselines3", "A2C"),
    "dqn": ("stable_baselines3", "DQN"),
    "trpo": ("sb3_contrib", "TRPO"),
}
"""Name to package and class. Only `maskable-ppo` uses masks in training; with the others an action that
does not apply wastes a step."""

RANGES = {
    "steps": Count,
    "environments": Annotated[int, Range(1, 1024)],
    "seed": Annotated[int, Range(0, 2**32 - 1)],
    "reporting.every": Count,
}
"""Ranges of the adapter's numeric parameters."""

FLAT_ONLY = frozenset({"dqn"})
"""Algorithms that score every action, so that actions must be listable."""


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
) -> "Sb3Policy":
    """Train one of `ALGORITHMS` and return its policy.

    Args:
        algorithm: Name in `ALGORITHMS`.
        make: Returns a new environment with the actions that `gym_space(space)` says; with `action_masks()`
            for `maskable-ppo`.
        space: The actions of its tasks.
        steps: Environment steps to train for.
        environments: Number of environments, stepped one after the other.
        seed: Of all random choices.
        reporting: Reports of the course of the training; none by default.
        observation: Name of the observation that the environments show; empty: the default.
        hyperparameters: Passed on to the algorithm, such as `policy_kwargs={"net_arch": [64, 64]}`.

    Raises:
        IrgymError: There is no such algorithm here, the actions are too many for it, or a number is out of
            range.
        DivergedError: The policy has weights that are not finite.
        BackendError: The package is not installed.
    """
    if algorithm not in ALGORITHMS:
        raise IrgymError(f"there is no algorithm {algorithm!r}: choose among {', '.join(ALGORITHMS)}")
    every = 1 if reporting is None else reporting.every
    numbers = {"steps": steps, "environments": environments, "seed": seed, "reporting.every": every}
    for field, value in numbers.items():
        check_value(RANGES[field], value, field, algorithm)
    for field, value in hyperparameters.items():
        if isinstance(value, float):  # the library checks the others
            check_value(float, value, field, algorithm)
    if algorithm in FLAT_ONLY and not space.listable:
        others = ", ".join(name for name in ALGORITHMS if name not in FLAT_ONLY)
        raise IrgymError(
            f"{algorithm} scores every action, and these {space.size:.1e} are too many: choose among {others}"
        )
    package, name = ALGORITHMS[algorithm]
    without_tensorflow()  # Stable-Baselines3 imports TensorBoard
    try:
        kind: Any = getattr(import_module(package), name)
        vectorised: Any = import_module("stable_baselines3.common.vec_env")
        logging: Any = import_module("stable_baselines3.common.logger")
    except ImportError as error:
        raise BackendError(f"{package} is not installed: run pip install 'irgym[sb3]'") from error
    envs = vectorised.VecMonitor(vectorised.DummyVecEnv([make] * environments))
    try:
        model = kind("MlpPolicy", envs, seed=seed, device="cpu", **hyperparameters)
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
    return Sb3Policy(model, space, observation)


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


class Sb3Policy:
    """Implements `irgym.policies.policy.Policy` with a trained model of Stable-Baselines3.

    In a state with more candidates than the space's capacity, it sees only the first ones.

    Attributes:
        model: The model, for instance to call its `save`.
        space: The actions.
        observation: Name of the observation that it reads; empty: the default.
    """

    def __init__(self, model: Any, space: ActionSpace, observation: str = "") -> None:
        self.model = model
        self.space = space
        self.observation = observation

    def probabilities(self, observations: Sequence[Any], masks: Sequence[Mask]) -> list[NDArray[np.float64]]:
        """Return for each state the probability of every place in the flat view; 0 where it does not apply.

        For a Q-learner it is the softmax of the action values.

        Raises:
            IrgymError: The actions are too many to list.
        """
        if not observations:
            return []
        legal = np.stack([list_mask(self.space, mask) for mask in masks])
        scores = np.where(legal, self._scores(observations), -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return list(weights / weights.sum(axis=-1, keepdims=True))

    def act(
        self,
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return an action for each state: sampled with `rng`, or the most probable where it is None.

        Scores are divided by the temperature before sampling.
        """
        if not observations:
            return []
        scores = self._scores(observations)
        if rng is not None:
            # Gumbel-max: the argmax of scores plus this noise is a sample of their softmax.
            scores = scores / temperature + rng.gumbel(size=scores.shape)
        legal = np.stack([gym_mask(self.space, mask) for mask in masks])
        scores = np.where(legal, scores, -np.inf)
        if self.space.listable or self.space.has_candidates:
            places = scores.argmax(axis=-1)
            return [action_of(self.space, place, mask) for place, mask in zip(places, masks, strict=True)]
        parts = np.split(scores, np.cumsum(self.space.dimensions)[:-1], axis=-1)
        vectors = np.stack([part.argmax(axis=-1) for part in parts], axis=-1)
        return [action_of(self.space, vector) for vector in vectors]

    def _scores(self, observations: Sequence[Any]) -> NDArray[np.float64]:
        """Return the logits or values of all choices, masked or not, those of all dimensions joined."""
        seen = [
            padded(observation, self.space.capacity)
            if isinstance(observation, CandidateObservation)
            else observation
            for observation in observations
        ]
        tensors, _ = self.model.policy.obs_to_tensor(np.stack(seen))
        if hasattr(self.model, "q_net"):
            logits = [self.model.q_net(tensors)]
        else:
            logits = [part.logits for part in _parts(self.model.policy.get_distribution(tensors))]
        return np.concatenate([part.detach().numpy() for part in logits], axis=-1).astype(np.float64)


def _parts(distribution: Any) -> list[Any]:
    """Return a distribution's categorical parts, one for each number of an action."""
    if hasattr(distribution, "distributions"):
        return distribution.distributions  # sb3-contrib's
    parts = distribution.distribution
    return cast(list[Any], parts) if isinstance(parts, list) else [parts]
