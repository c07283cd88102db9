"""The Gymnasium view: episodes over a set of programs, an evaluator and a reward."""

import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, Never, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from irgym.base.errors import IrgymError, RenderModeError
from irgym.base.keywords import refuse_unknown
from irgym.core import capabilities
from irgym.core.actions import Action, ActionSpace, BoolArray, IntArray
from irgym.core.bench import Bench
from irgym.core.candidates import candidate_info
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import Evaluator
from irgym.core.dataset import check_holdout, check_names
from irgym.core.datasets import Programs, dataset_named
from irgym.core.limits import Limits, limited, unlimited
from irgym.core.observation import ObservationView, view_named
from irgym.core.reward import EpisodeCosts, Reward, Transition, asks
from irgym.core.reward_names import reward_from
from irgym.core.schedule import Schedule
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.gym.arguments import check_number, program_option, text_of, texts_of
from irgym.gym.spaces import action_of, gym_mask, gym_space, with_a_choice


class TaskEnv(gymnasium.Env[Any, np.int64 | IntArray]):
    """Tasks as a Gymnasium environment with a masked action space.

    Actions are places in `ActionSpace.flat`; where they are too many to list, vectors of whole numbers: the
    kind of action, then a choice for each parameter slot of each kind, of which those of other kinds count
    for nothing. Where states have candidates, places after those of `flat` stand for them. An action that
    does not apply changes nothing and costs a step; `action_masks()` and `info["action_mask"]` say which
    apply. An episode ends (`terminated`) by a terminal action and is cut off
    (`truncated`) at the horizon. Some action is shown as one that applies even then, since vector
    environments ask for one more: it changes nothing.

    `info` always holds the same keys: `action_mask`, `uri`, `schedule` (text), `applied` (whether the action
    applied) and `objective`; `cost`, in the objective's unit (nanoseconds for `time`), and `speedup` over the
    first state, which are nan where the cost of the state is not known. Where states have candidates,
    `candidates` holds the texts of those shown, and `candidates_not_shown` the number of those beyond the
    space's capacity. Where the compiler counts what a program does, `analysis` holds floating-point
    operations, transcendental operations and bytes accessed, shape [3].

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
        self._arguments = {
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
        self.environment = ENVIRONMENTS.load(environment)
        check_number("horizon", horizon, int, 1)
        check_number("peak_gflops", peak_gflops, float, 0)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RenderModeError(f"there is no render mode {render_mode!r}: choose ansi")
        self.programs = self._drawn_from(programs, dataset, split, holdout)
        self.reward = reward_from(self.environment, reward)
        self.backend = backend
        self.objective = objective
        self.target = target
        self.limits = Limits(actions=text_of("actions", actions, "of actions, such as split,stop"))
        self.horizon_override = horizon
        self.render_mode = render_mode
        self._peak = peak_gflops
        self._analysis = bool(analysis)
        self._single = observation is None or isinstance(observation, str)
        self._tasks: dict[str, Task[Any]] = {}
        self._current: Task[Any] | None = None
        space, views = self._spaces(eager=any((programs, backend, target, actions)))
        self._views = self._select(observation, views)
        self.action_space = gym_space(space)
        view_spaces = {view.name: view.space() for view in self._views}
        self.observation_space = (
            view_spaces[self._views[0].name] if self._single else spaces.Dict(view_spaces)
        )
        # Created last, so that a bad argument leaves no child process behind.
        self._own_bench = self.environment.bench(backend=backend) if evaluator is None else None
        self.evaluator = evaluator or cast(Bench, self._own_bench).evaluator

    def _drawn_from(
        self, programs: Sequence[str] | None, dataset: Programs | None, split: str, holdout: float | None
    ) -> tuple[str, ...]:
        """Return the programs of the episodes."""
        check_names(dataset)
        check_holdout(holdout)
        if programs is None:
            return dataset_named(self.environment, dataset, holdout).split(split)
        if (dataset, holdout) != (None, None):
            raise IrgymError("programs and a data set exclude each other: leave out dataset and holdout")
        return texts_of("programs", programs, "URI")

    def _spaces(self, eager: bool) -> tuple[ActionSpace, Mapping[str, ObservationView]]:
        """Return the actions and the observations by name.

        Args:
            eager: Whether to open a program even where they are known without: what is given may be refused.
        """
        self.environment.objective(self.objective)
        outline = self.environment.outline
        return (self._task.space, self._task.views) if eager or outline is None else outline

    @property
    def _task(self) -> Task[Any]:
        """The task of the current episode; before any, that of the first program."""
        if self._current is None:
            self._begin(self._task_of(self.programs[0]))
        return cast(Task[Any], self._current)

    def _select(
        self, observation: str | Sequence[str] | None, views: Mapping[str, ObservationView]
    ) -> tuple[ObservationView, ...]:
        names = next(iter(views)) if observation is None else observation
        names = (
            (names,) if isinstance(names, str) else texts_of("observation", names, f"of {', '.join(views)}")
        )
        return tuple(view_named(views, name) for name in names)

    def _task_of(self, uri: str) -> Task[Any]:
        """Return the task of a program. All its episodes share the task, which may cache results."""
        task = self._tasks.get(uri)
        if task is None:
            task = self.environment.task(uri, self.backend, self.target, self.objective)
            analysed = self.reward.shaped or self._counts(task) is not None
            task = limited(capabilities.analysed(task) if analysed else task, self.limits)
            self._tasks[uri] = task
        return task

    def _counts(self, task: Task[Any]) -> capabilities.CostAnalysis | None:
        """Return what counts for `info`; None where nothing does."""
        return capabilities.ask(task, capabilities.CostAnalysis) if self._analysis else None

    @property
    def horizon(self) -> int:
        """Number of steps after which the current episode is cut off."""
        return self.horizon_override or self._task.horizon

    def end_within(self, steps: int) -> None:
        """Cut off episodes after at most `steps` steps.

        A `TimeLimit` around this environment does the same, but without the reward that an episode's end has.
        """
        self.horizon_override = min(steps, self.horizon_override or steps)

    def _begin(self, task: Task[Any]) -> None:
        self._current = task
        self._playing = False
        self._schedule = Schedule()
        self._text = ""
        self._steps = 0
        self._costs: dict[str, float] = {}
        self._first = self._last = float("nan")
        self._enter(task.initial())

    def _enter(self, state: Any) -> None:
        """Make `state` the current one."""
        self._state = state
        self._mask = self._task.mask(state)
        self._job = self._task.job(state)

    @property
    def task(self) -> Task[Any]:
        """The task of the current episode."""
        return self._task

    @property
    def state(self) -> Any:
        """The current state; states are immutable."""
        return self._state if self._current else self._task.initial()

    @property
    def schedule(self) -> Schedule:
        """The actions applied in this episode."""
        return self._schedule

    def cost(self) -> float:
        """Return the cost of the current state, measuring it if need be; infinite if it failed."""
        job = self._job if self._current else self._task.job(self.state)
        if job.schedule not in self._costs:
            known = job.known or self.evaluator.evaluate([job])[0]
            self._costs[job.schedule] = known.cost
        return self._costs[job.schedule]

    def action_masks(self) -> BoolArray:
        """Return which actions apply, in the form that sb3-contrib's maskable learners ask for.

        Shape [actions]. Where actions are vectors, which choices each of their numbers may be, shape [sum of
        the sizes]: a vector of such choices applies.

        Where an episode has ended and none applies, the first action is shown as one that does: it changes
        nothing. Vector environments ask for an action there, before they reset, and no learner can draw one
        from a mask that is all false.
        """
        space = self._task.space
        return with_a_choice(space, gym_mask(space, self._mask))

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
        self._begin(self._task_of(uri))
        self._first = self._last = self.cost()
        self._playing = True
        return self._observation(), self._info(applied=True)

    def step(self, action: np.int64 | int | IntArray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Apply an action; one that the mask forbids changes nothing.

        Raises:
            IrgymError: There is no such action, or no episode has begun.
        """
        if not self._playing:
            raise IrgymError("no episode has begun: call reset before step")
        chosen = action_of(self._task.space, action, self._mask)
        applied = self._task.space.allows(self._mask, chosen)
        before = self._state
        final_before = self._task.terminal(before)
        if applied:
            self._apply(chosen)
        self._steps += 1
        terminated = self._task.terminal(self._state)
        truncated = not terminated and self._steps >= self.horizon
        final = (terminated and not final_before) or truncated
        reward = self._reward(before, chosen, final)
        return self._observation(), reward, terminated, truncated, self._info(applied)

    def _apply(self, action: Action) -> None:
        self._enter(self._task.step(self._state, action))
        self._schedule = self._schedule.then(action)
        # Word by word: to write the whole schedule at each step would take quadratic time.
        self._text = f"{self._text} {self._task.space.text(action)}".lstrip()

    def _reward(self, before: Any, action: Action, final: bool) -> float:
        if math.isinf(self._first):
            return 0.0  # as in the learners' rollouts: there is nothing to compare with
        asked = asks(self.reward.every, self._steps, final)
        previous = self._last
        self._last = self.cost() if asked else previous
        potentials = (0.0, 0.0)
        if self.reward.shaped:
            potentials = (
                capabilities.potential(self._task, before),
                capabilities.potential(self._task, self._state),
            )
        costs = EpisodeCosts(
            self._first, previous, self._last, self._ideal_cost(self._task), potentials, asked
        )
        task, states = unlimited(self._task), (before, self._state)
        return float(self.reward(Transition(task, states, 0, action, costs, final)))

    def _ideal_cost(self, task: Task[Any]) -> float | None:
        if capabilities.ideal_cost(task, 1.0) is None:
            return None
        if self._peak is None and self._own_bench is not None:
            self._peak = self._own_bench.peak_gflops
        return None if self._peak is None else capabilities.ideal_cost(task, self._peak)

    def _observation(self) -> Any:
        values = {view.name: view.element(self._task, self._state, self.cost) for view in self._views}
        return values[self._views[0].name] if self._single else values

    def _info(self, applied: bool) -> dict[str, Any]:
        info: dict[str, Any] = {
            "action_mask": self.action_masks(),
            "uri": self._task.uri,
            "schedule": self._text,
            "applied": applied,
            "objective": self._task.objective.name,
        }
        info |= candidate_info(self._task.space, self._mask)
        if (counts := self._counts(self._task)) is not None:
            info["analysis"] = counts.cost_analysis(self._state)
        cost = self.cost() if self._job.known else self._costs.get(self._job.schedule)
        if cost is None or math.isinf(self._first):
            cost = math.nan
        return info | {"cost": cost, "speedup": self._first / cost}

    def render(self) -> str | None:
        """Return the program as text in mode `ansi`."""
        return self._task.describe(self._state) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the child process, where the environment started one."""
        if self._own_bench is not None:
            self._own_bench.close()

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
        return {
            "arguments": self._arguments,
            "horizon": self.horizon_override,
            "uri": self._task.uri,
            "actions": self._schedule.actions,
            "costs": self._costs,
            "spec": self.spec,
            "random": (self._np_random, self._np_random_seed),
            "progress": {
                name: getattr(self, name) for name in ("_peak", "_steps", "_first", "_last", "_playing")
            },
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the environment, and replay the current episode."""
        TaskEnv.__init__(self, **state["arguments"])
        self.horizon_override = state["horizon"]
        self.spec = state["spec"]
        self._np_random, self._np_random_seed = state["random"]
        self._begin(self._task_of(state["uri"]))
        for action in state["actions"]:
            self._apply(action)
        self._costs = dict(state["costs"])
        for name, value in state["progress"].items():
            setattr(self, name, value)
