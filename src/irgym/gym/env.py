"""The Gymnasium view: episodes over a set of programs, an evaluator and a reward."""

import pickle
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Never

import gymnasium
import numpy as np

from irgym.base.errors import IrgymError, RenderModeError
from irgym.base.keywords import refuse_unknown
from irgym.core.actions import BoolArray, IntArray
from irgym.core.cost import Evaluator
from irgym.core.datasets import Programs
from irgym.core.reward import Reward
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.gym.arguments import program_option
from irgym.gym.batched import Batched, Episode
from irgym.gym.setting import Setting

PROGRESS = ("first", "last", "reference", "steps", "costs")
"""Attributes of an episode that a copy of an environment takes over, beside its actions."""


class TaskEnv(gymnasium.Env[Any, np.int64 | IntArray]):
    """Tasks as a Gymnasium environment with a masked action space.

    Actions are places in `ActionSpace.flat`; where they are too many to list, vectors of whole numbers: the
    kind of action, then a choice for each parameter slot of each kind, of which those of other kinds count
    for nothing. Where states have candidates, places after those of `flat` stand for them. An action that
    does not apply changes nothing and costs a step; `action_masks()` and `info["action_mask"]` say which
    apply. An episode ends (`terminated`) by a terminal action and is cut off
    (`truncated`) at the horizon. Some action is shown as one that applies even then, since vector
    environments ask for one more: it changes nothing.

    `info` holds `action_mask`, `uri`, `schedule` (text), `applied` (whether the action applied) and
    `objective`. Where the cost of the state is known, it has `cost`, in the objective's unit (nanoseconds for
    `time`), and `speedup` over the first state. Where states have candidates, `candidates` holds the texts of
    those shown, and `candidates_not_shown` the number of those beyond the space's capacity. Where the
    compiler counts what a program does, `analysis` holds floating-point operations, transcendental operations
    and bytes accessed, shape [3].

    Args:
        environment: Name of the environment.
        programs: URIs to draw from at each reset; by default the training split of `dataset`.
        dataset: Names programs, as `Training.dataset`; by default the environment's own data set.
        split: `train`, `test` or `all`.
        holdout: Share of test programs, by which the data set is divided again; by default its splits stay.
        observation: Name of an observation, or several: a dictionary of them is then observed.
        reward: Reward function, or the name of one, as `train --reward` takes it; by default the
            environment's own.
        evaluator: Where costs come from; by default the environment's, which measures in a child
            process and keeps costs in the user's cache.
        horizon: Steps of an episode; by default the task's.
        actions: Actions that may be taken, in the form of `--actions`; by default all.
        analysis: Whether `info` has the `analysis`, which makes steps to new states slower.
        backend: Name of a back end; by default the preferred one.
        peak_gflops: Machine peak for rewards that need an ideal cost. Measured by default, unless an
            `evaluator` is given.
        objective: Cost to minimise; by default the environment's first objective.
        target: Target that code is generated for, or its name, such as `x86-64-v3`; by default this machine.
        render_mode: `ansi` renders the program as text.

    Raises:
        IrgymError: An argument makes no sense; the message says which.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (Gymnasium's own declaration)

    def __init__(
        self,
        environment: str,
        programs: Sequence[str] | None = None,
        dataset: Programs | None = None,
        split: str = "train",
        observation: str | Sequence[str] | None = None,
        reward: Reward | str | None = None,
        evaluator: Evaluator | None = None,
        horizon: int | None = None,
        backend: str | None = None,
        peak_gflops: float | None = None,
        render_mode: str | None = None,
        objective: str | None = None,
        target: Target | str | None = None,
        actions: str | None = None,
        analysis: bool = True,
        holdout: float | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, TaskEnv)
        self._arguments: dict[str, Any] = {
            "environment": environment,
            "programs": programs,
            "dataset": dataset,
            "split": split,
            "holdout": holdout,
            "observation": observation,
            "reward": reward,
            "evaluator": evaluator,
            "horizon": horizon,
            "backend": backend,
            "peak_gflops": peak_gflops,
            "render_mode": render_mode,
            "objective": objective,
            "target": target,
            "actions": actions,
            "analysis": analysis,
        }
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RenderModeError(f"there is no render mode {render_mode!r}: choose ansi")
        self.render_mode = render_mode
        shared = {name: value for name, value in self._arguments.items() if name != "render_mode"}
        self.setting = Setting(**shared)
        self.action_space = self.setting.action_space
        self.observation_space = self.setting.observation_space
        self._playing = False

    @cached_property
    def _one(self) -> Batched:
        """The episode; before any has begun, the first state of the first program."""
        return Batched(self.setting.course, 1)

    @property
    def _episode(self) -> Episode:
        return self._one.episode(0)

    @property
    def programs(self) -> tuple[str, ...]:
        """URIs to draw from."""
        return self.setting.programs

    @property
    def horizon(self) -> int:
        """Number of steps after which the current episode is cut off."""
        return self.setting.course.horizon or self.task.horizon

    @property
    def task(self) -> Task[Any]:
        """The task of the current episode; before any, that of the first program."""
        return self._episode.node.task

    @property
    def state(self) -> Any:
        """The current state; states are immutable."""
        return self._episode.node.state

    @property
    def schedule(self) -> Schedule:
        """The actions applied in this episode."""
        return Schedule(tuple(self._episode.actions))

    def cost(self) -> float:
        """Return the cost of the current state, measuring it if need be; infinite if it failed."""
        return self._one.cost(0)

    def action_masks(self) -> BoolArray:
        """Return which actions apply, in the form that sb3-contrib's maskable learners ask for.

        Shape [actions]. Where actions are vectors, which choices each of their numbers may be, shape [sum of
        the sizes]: a vector of such choices applies.

        Where an episode has ended and none applies, the first action is shown as one that does: it changes
        nothing. Vector environments ask for an action there, before they reset, and no learner can draw one
        from a mask that is all false.
        """
        return self._episode.node.shown

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode on a program drawn at random, or on `options["program"]`.

        Raises:
            IrgymError: There is no such option or program.
        """
        uri = program_option(options)
        super().reset(seed=seed)
        if uri is None:
            uri = self.programs[int(self.np_random.integers(len(self.programs)))]
        task = self.setting.task_of(uri)
        self._playing = False  # if the first cost cannot be had, no episode has begun
        self._one.begin([0], task)
        self._playing = True
        return self._observation(), self._one.info(0)

    def step(self, action: np.int64 | int | IntArray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Apply an action; one that the mask forbids changes nothing.

        Raises:
            IrgymError: There is no such action, or no episode has begun.
        """
        if not self._playing:
            raise IrgymError("no episode has begun: call reset before step")
        [reward], [ended], [cut] = self._one.step([0], [action])
        return self._observation(), float(reward), bool(ended), bool(cut), self._one.info(0)

    def _observation(self) -> Any:
        return self.setting.element(self._one.observation(0))

    def render(self) -> str | None:
        """Return the program as text in mode `ansi`."""
        return self.task.describe(self.state) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the child process, where the environment started one."""
        self.setting.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that restores this environment, and its current episode, in another process.

        Raises:
            IrgymError: It has an evaluator that cannot be pickled.
        """
        try:
            pickle.dumps(self._arguments["evaluator"])
        except Exception as error:
            raise IrgymError(
                f"the evaluator of this environment cannot be pickled ({error}): leave it out, and each copy "
                "of the environment measures for itself"
            ) from error
        episode = self._episode
        return {
            "arguments": self._arguments,
            "horizon": self.setting.course.horizon,
            "peak": self.setting.peak_gflops,
            "uri": self.task.uri,
            "actions": tuple(episode.actions),
            "progress": {name: getattr(episode, name) for name in PROGRESS},
            "playing": self._playing,
            "spec": self.spec,
            "random": (self._np_random, self._np_random_seed),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the environment, and replay the current episode."""
        TaskEnv.__init__(self, **state["arguments"])
        self.setting.course.horizon, self.setting.peak_gflops = state["horizon"], state["peak"]
        self.spec = state["spec"]
        self._np_random, self._np_random_seed = state["random"]
        self._one.restore(0, self.setting.task_of(state["uri"]), state["actions"], state["progress"])
        self._playing = state["playing"]
