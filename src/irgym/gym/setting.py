"""Arguments of a Gymnasium environment, checked: its programs, its spaces, and the course of its episodes."""

from collections.abc import Sequence
from typing import Any, cast

from gymnasium import spaces

from irgym.base.errors import IrgymError
from irgym.core import capabilities
from irgym.core.bench import Bench
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.cost import Evaluator
from irgym.core.dataset import check_holdout, check_names
from irgym.core.datasets import Programs, dataset_named
from irgym.core.limits import Limits, limited
from irgym.core.observation import view_named
from irgym.core.reward import Reward
from irgym.core.reward_names import reward_from
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.gym.arguments import check_number, text_of, texts_of
from irgym.gym.batched import Course, counts_of
from irgym.gym.spaces import gym_space


class Setting:
    """The programs and spaces of an environment, and what its episodes share. Close it.

    The arguments are those of `irgym.gym.env.TaskEnv`, which says what they mean.

    Attributes:
        environment: The environment.
        programs: URIs to draw from.
        action_space: Gymnasium's space of the actions.
        observation_space: Gymnasium's space of the observations.
        peak_gflops: The machine's peak; None until it is measured.
        course: What all episodes share.

    Raises:
        IrgymError: An argument makes no sense; the message says which.
    """

    def __init__(
        self,
        environment: str,
        programs: Sequence[str] | None = None,
        dataset: Programs | None = None,
        split: str = "train",
        holdout: float | None = None,
        observation: str | Sequence[str] | None = None,
        reward: Reward | str | None = None,
        evaluator: Evaluator | None = None,
        horizon: int | None = None,
        backend: str | None = None,
        peak_gflops: float | None = None,
        objective: str | None = None,
        target: Target | str | None = None,
        actions: str | None = None,
        analysis: bool = True,
    ) -> None:
        self.environment = ENVIRONMENTS.load(environment)
        check_number("horizon", horizon, int, 1)
        check_number("peak_gflops", peak_gflops, float, 0)
        self.programs = self._drawn_from(programs, dataset, split, holdout)
        self._reward = reward_from(self.environment, reward)
        self.peak_gflops = peak_gflops
        self._made_for = backend, target, objective
        self._limits = Limits(actions=text_of("actions", actions, "of actions, such as split,stop"))
        self._analysis = bool(analysis)
        self._tasks: dict[str, Task[Any]] = {}
        self.environment.objective(objective)
        outline = self.environment.outline
        # What is given may be refused, so that a program is opened even where its spaces are known without.
        if outline is None or any((programs, backend, target, actions)):
            first = self.task_of(self.programs[0])
            outline = first.space, first.views
        space, views = outline
        self._single = observation is None or isinstance(observation, str)
        names = next(iter(views)) if observation is None else observation
        names = (
            (names,) if isinstance(names, str) else texts_of("observation", names, f"of {', '.join(views)}")
        )
        shown = tuple(view_named(views, name) for name in names)
        self.action_space = gym_space(space)
        view_spaces = {view.name: view.space() for view in shown}
        self.observation_space: spaces.Space[Any] = (
            view_spaces[shown[0].name] if self._single else spaces.Dict(view_spaces)
        )
        # Created last, so that a bad argument leaves no child process behind.
        self._own_bench = self.environment.bench(backend=backend) if evaluator is None else None
        source = evaluator or cast(Bench, self._own_bench).evaluator
        self.course = Course(
            _Tasks(self), shown, source, self._reward, self.ideal_cost, horizon, self._analysis
        )

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

    def task_of(self, uri: str) -> Task[Any]:
        """Return the task of a program. All its episodes share the task, which may cache results."""
        task = self._tasks.get(uri)
        if task is None:
            task = self.environment.task(uri, *self._made_for)
            analysed = self._reward.shaped or (self._analysis and counts_of(task) is not None)
            task = limited(capabilities.analysed(task) if analysed else task, self._limits)
            self._tasks[uri] = task
        return task

    def end_within(self, steps: int) -> None:
        """Cut off episodes after at most `steps` steps.

        A `TimeLimit` around an environment does the same, but without the reward that an episode's end has.
        """
        self.course.horizon = min(steps, self.course.horizon or steps)

    def ideal_cost(self, task: Task[Any]) -> float | None:
        """Return a lower bound on a task's cost; None where none is known."""
        if capabilities.ideal_cost(task, 1.0) is None:
            return None
        if self.peak_gflops is None and self._own_bench is not None:
            self.peak_gflops = self._own_bench.peak_gflops
        return None if self.peak_gflops is None else capabilities.ideal_cost(task, self.peak_gflops)

    def element(self, values: Sequence[Any]) -> Any:
        """Return the values of all views as an element of the observation space."""
        names = [view.name for view in self.course.views]
        return values[0] if self._single else dict(zip(names, values, strict=True))

    def close(self) -> None:
        """End the child process, where one was started."""
        if self._own_bench is not None:
            self._own_bench.close()


class _Tasks(Sequence[Any]):
    """The tasks of a setting's programs, each made when it is drawn."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def __len__(self) -> int:
        return len(self._setting.programs)

    def __getitem__(self, place: Any) -> Any:
        return self._setting.task_of(self._setting.programs[int(place)])
