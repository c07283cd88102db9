"""The vector entry point: many episodes in lockstep as one Gymnasium vector environment.

`gymnasium.make_vec("irgym/Loops-v0", num_envs=64, vectorization_mode="vector_entry_point")` makes it. It
plays the episodes that `SyncVectorEnv` plays, faster: all costs of a step are one request, and a state that
several episodes reach is masked and observed once.
"""

from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.actions import BoolArray
from irgym.gym.arguments import check_number, program_option
from irgym.gym.batched import Batched
from irgym.gym.env import TaskEnv

Arrays = dict[str, Any]


class TaskVectorEnv(VectorEnv[Any, Any, Any]):
    """Episodes of tasks side by side; the spaces, rewards, ends and `info` are those of `TaskEnv`.

    `infos` holds arrays with a row for each episode. As in all of Gymnasium's vector environments,
    `_KEY` says which rows of `KEY` are filled.

    Args:
        num_envs: Number of episodes.
        autoreset_mode: When the next episode begins where one ended: `NextStep`, with the step after, whose
            action counts for nothing; `SameStep`, at once, with the last observation in `final_obs` and the
            last `info` in `final_info`; or `Disabled`, by `reset(options={"reset_mask": ...})`.
        max_episode_steps: The same as `horizon`; the smaller counts.
        arguments: The keywords of `TaskEnv`.

    Raises:
        IrgymError: An argument makes no sense; the message says which.
    """

    closed = True  # until it is made: some versions of Gymnasium close even what `__init__` refused

    def __init__(
        self,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        **arguments: Any,
    ) -> None:
        check_number("num_envs", num_envs, int, 1)
        check_number("max_episode_steps", max_episode_steps, int, 1)
        modes = [mode.value for mode in AutoresetMode]
        if autoreset_mode not in (*modes, *AutoresetMode):
            raise IrgymError(
                f"there is no autoreset mode {autoreset_mode!r}: choose among {', '.join(modes)}"
            )
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**TaskEnv.metadata, "autoreset_mode": self.autoreset_mode}
        single = TaskEnv(**arguments)
        self._setting = single.setting
        if max_episode_steps is not None:
            self._setting.end_within(max_episode_steps)
        self.render_mode = single.render_mode
        self.num_envs = num_envs
        self.single_action_space = self._setting.action_space
        self.single_observation_space = self._setting.observation_space
        self.action_space = batch_space(self._setting.action_space, num_envs)
        self.observation_space = batch_space(self._setting.observation_space, num_envs)
        self._batched = Batched(self._setting.course, num_envs)
        self._over = np.ones(num_envs, np.bool_)
        self._begun = False
        self.closed = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes, or those of `options["reset_mask"]`; `options["program"]` names their program.

        Raises:
            IrgymError: The seeds or the mask have another length, or there is no such option or program.
        """
        given = dict(options or {})
        mask: Any = given.pop("reset_mask", np.ones(self.num_envs, np.bool_))
        if not hasattr(mask, "dtype") or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise IrgymError(f"reset_mask must be an array of {self.num_envs} truth values: give one")
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + place for place in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise IrgymError(f"there are {len(seeds)} seeds for {self.num_envs} episodes: give one for each")
        places: list[int] = np.flatnonzero(mask).tolist()
        for place in places:
            if seeds[place] is not None:
                self._batched.seed(place, cast(int, seeds[place]))
        uri = program_option(given)
        self._batched.begin(places, None if uri is None else self._setting.task_of(uri))
        self._begun = self._begun or len(places) == self.num_envs
        self._over[places] = False
        return self._observations(), self._infos(places)

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float64], BoolArray, BoolArray, dict[str, Any]]:
        """Take an action in each episode.

        Raises:
            IrgymError: There is no such action, no episode has begun, or one has ended and does not begin by
                itself.
        """
        if not self._begun:
            raise IrgymError("no episode has begun: call reset before step")
        if len(actions) != self.num_envs:
            raise IrgymError(f"there are {len(actions)} actions for {self.num_envs} episodes: give one each")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._over.any():
            raise IrgymError("some episodes have ended: begin them by reset(options={'reset_mask': ...})")
        rewards = np.zeros(self.num_envs)
        ended, cut = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        resting: list[int] = np.flatnonzero(self._over).tolist()
        places: list[int] = np.flatnonzero(~self._over).tolist()
        if places:
            rewards[places], ended[places], cut[places] = self._batched.step(
                places, [actions[place] for place in places]
            )
        if resting:
            self._batched.begin(resting)
        over = ended | cut
        final: Arrays = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and over.any():
            last: list[int] = np.flatnonzero(over).tolist()
            final = self._final(last)
            self._batched.begin(last)
            over = np.zeros(self.num_envs, np.bool_)
        self._over = over
        return self._observations(), rewards, ended, cut, final | self._infos(range(self.num_envs))

    def action_masks(self) -> BoolArray:
        """Return which actions apply, see `TaskEnv.action_masks`, a row for each episode."""
        return np.stack([self._batched.episode(place).node.shown for place in range(self.num_envs)])

    def render(self) -> tuple[str, ...] | None:
        """Return the programs as text in mode `ansi`."""
        if self.render_mode != "ansi":
            return None
        nodes = [self._batched.episode(place).node for place in range(self.num_envs)]
        return tuple(node.task.describe(node.state) for node in nodes)

    def close_extras(self, **options: Any) -> None:
        """End the child process, where the environment started one."""
        del options
        self._setting.close()

    def _observation(self, place: int) -> Any:
        return self._setting.element(self._batched.observation(place))

    def _observations(self) -> Any:
        rows = [self._observation(place) for place in range(self.num_envs)]
        space = self._setting.observation_space
        if isinstance(space, gymnasium.spaces.Box):
            return np.stack(rows)
        return concatenate(space, rows, create_empty_array(space, self.num_envs))

    def _final(self, places: Sequence[int]) -> Arrays:
        """Return what the last step of some episodes showed."""
        seen = np.full(self.num_envs, None, dtype=object)
        there = np.zeros(self.num_envs, np.bool_)
        for place in places:
            seen[place] = self._observation(place)
        there[list(places)] = True
        infos = self._infos(places)
        return {"final_obs": seen, "_final_obs": there, "final_info": infos, "_final_info": there.copy()}

    def _infos(self, places: Sequence[int]) -> Arrays:
        """Return the `info` of some places as arrays, and which rows are filled."""
        infos: Arrays = {}
        for place in places:
            for key, value in self._batched.info(place).items():
                array = infos.get(key)
                if array is None:
                    array = infos[key] = self._empty(value)
                    infos[f"_{key}"] = np.zeros(self.num_envs, np.bool_)
                array[place] = value
                infos[f"_{key}"][place] = True
        return infos

    def _empty(self, value: Any) -> NDArray[Any]:
        """Return an array for a value of each episode."""
        if isinstance(value, np.ndarray):
            array = cast(NDArray[Any], value)
            return np.zeros((self.num_envs, *array.shape), array.dtype)
        if isinstance(value, bool | int | float):
            return np.zeros(self.num_envs, type(value))
        return np.full(self.num_envs, None, dtype=object)
