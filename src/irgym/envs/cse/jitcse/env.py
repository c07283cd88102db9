"""The JIT CSE gymnasium's environment (leculver/jitml; dotnet/runtime pull request 101856).

Spaces, rewards, penalties, ends of episodes and `info` are those of the original, so that its scripts run.
Three defects are fixed: methods are drawn with the environment's random generator, values of other types have
no type, and observations are within their bounds.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Never

import gymnasium
import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError, RenderModeError
from irgym.base.keywords import refuse_unknown
from irgym.envs.cse.jitcse.evaluating import Begin, Evaluation, evaluate
from irgym.envs.cse.jitcse.methods import COLUMNS, CompiledMethod, CompileFailed, Compiler
from irgym.envs.cse.jitcse.on_llvm import LlvmCompiler

MIN_CSE, MAX_CSE = 3, 16
"""Least number of candidates of a method, and the greatest unless `max_cse` says otherwise."""

REWARD_SCALE = 5.0
INVALID_ACTION_PENALTY = -0.05
INVALID_ACTION_LIMIT = 20

FAILURES = 512
"""Consecutive methods that fail to compile before `reset` gives up."""


class JitCseEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Choose the common subexpressions to share in a method, one by one.

    Action `n` shares candidate `n`. The last action stops; it is valid only once something is shared. An
    invalid action costs `INVALID_ACTION_PENALTY`; after `INVALID_ACTION_LIMIT` invalid actions the episode is
    truncated. The reward is the relative reduction of the score by an action, times `REWARD_SCALE`.

    `info` holds `method_index`, `heuristic_method`, `no_cse_method`, `previous`, `current` (see
    `CompiledMethod`), `action`, `action_is_valid`, `invalid_actions`, `total_reward`, and at the end of an
    episode `heuristic_score`, `no_cse_score` and `final_score`.

    Args:
        methods: Names of the methods to draw from: URIs of `cse`, or numbers in a collection. By default the
            functions of `cse`'s data set `kernels`, training split.
        compiler: Returns the compiler of the methods; by default LLVM.
        target: Target of LLVM, by default that of `cse`.
        stop_at_once: Whether stopping is valid before anything is shared.
        render_mode: `human` prints the choice, as does None; `ansi` returns it as text.
        max_cse: Greatest number of candidates of a method, which fixes the sizes of observations and actions.

    Raises:
        IrgymError: There are no methods, there is no such render mode, or `max_cse` is too small.
    """

    metadata = {"render_modes": ["human", "ansi"], "render_fps": 1}  # noqa: RUF012  (Gymnasium's declaration)
    observation_columns = COLUMNS

    def __init__(
        self,
        methods: Sequence[str] | None = None,
        compiler: Callable[[], Compiler] | None = None,
        target: str | None = None,
        stop_at_once: bool = False,
        render_mode: str | None = None,
        max_cse: int = MAX_CSE,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, JitCseEnv)
        if methods is None:
            from irgym.envs.cse.programs.datasets import dataset

            methods = dataset("kernels").train
        self.methods = list(methods)
        if not self.methods:
            raise IrgymError("there are no methods to draw from: name some")
        given: Any = max_cse  # from `gymnasium.make`, unchecked
        if not isinstance(given, int | np.integer) or max_cse < MIN_CSE:
            raise IrgymError(f"max_cse is {max_cse!r}: give a whole number of at least {MIN_CSE}")
        self.max_cse = int(max_cse)
        self._reasons: dict[str, str] = {}
        self._make = compiler or (lambda: LlvmCompiler(target))
        self._compiler: Compiler | None = None
        self._stop_at_once = stop_at_once
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise RenderModeError(f"there is no render mode {render_mode!r}: choose ansi or human")
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Discrete(self.max_cse + 1)
        self.observation_space = gymnasium.spaces.Box(0.0, np.inf, (self.max_cse, len(COLUMNS)), np.float32)
        self.last_info: dict[str, Any] | None = None

    @property
    def compiler(self) -> Compiler:
        """The compiler, started on first use."""
        if self._compiler is None:
            self._compiler = self._make()
        return self._compiler

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode on a method drawn at random, or on `options["method"]`.

        Raises:
            IrgymError: The named method, or none of the drawn ones, compiles with 3 to `max_cse` candidates.
        """
        super().reset(seed=seed)
        self.last_info = None  # even if no method compiles, the previous episode is over
        named = (options or {}).get("method")
        for _ in range(1 if named is not None else FAILURES):
            if not self.methods:
                break
            index = (
                named if named is not None else self.methods[int(self.np_random.integers(len(self.methods)))]
            )
            none, heuristic = self._compiled(index, []), self._compiled(index, None)
            if none and heuristic and self._fits(none):
                self.last_info = {
                    "invalid_actions": 0,
                    "method_index": index,
                    "heuristic_method": heuristic,
                    "no_cse_method": none,
                    "current": none,
                    "total_reward": 0.0,
                    "observation": self.get_observation(none),
                    "action_is_valid": None,
                }
                return self.last_info["observation"], self.last_info
            self._drop(index)
            if named is not None:
                raise IrgymError(f"{index} cannot be used: {self._reasons[index]}")
        raise IrgymError(
            f"no method can be compiled with {MIN_CSE} to {self.max_cse} candidates: name others, or set "
            "max_cse"
        )

    def usable(self) -> list[str]:
        """Compile all methods, and return those with 3 to `max_cse` candidates; the others are dropped."""
        for index in list(self.methods):
            none = self._compiled(index, [])
            if none is None or self._compiled(index, None) is None or not self._fits(none):
                self._drop(index)
        return list(self.methods)

    def evaluate(self, begin: Begin, methods: Sequence[str] | None = None) -> Evaluation:
        """Return what a policy comes to on methods, by default on all; see `evaluating.evaluate`."""
        return evaluate(self, begin, list(self.methods) if methods is None else methods)

    def _fits(self, method: CompiledMethod) -> bool:
        """Say whether a method has as many candidates as fit, and keep the reason if it does not."""
        count = len(method.cse_candidates)
        fits = MIN_CSE <= count <= self.max_cse
        if not fits:
            remedy = f", or set max_cse={count}" if count > self.max_cse else ""
            self._reasons[method.index] = (
                f"its number of candidates is {count}: name one with {MIN_CSE} to {self.max_cse}{remedy}"
            )
        return fits

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Share a candidate, or stop.

        Raises:
            IrgymError: No episode has begun.
        """
        if self.last_info is None:
            raise IrgymError("no episode has begun: call reset before step")
        info = self.last_info.copy()
        observation: NDArray[np.float32] = info.pop("observation").copy()
        previous: CompiledMethod = info["current"]
        chosen = None if action == self.max_cse else int(action)
        info["action"] = chosen
        info["action_is_valid"] = self._valid(chosen, previous)
        terminated = truncated = False
        reward = INVALID_ACTION_PENALTY
        if info["action_is_valid"]:
            wanted = [*previous.cses_chosen, *([] if chosen is None else [chosen])]
            current = self._compiled(info["method_index"], wanted)
            if current is None:
                truncated = True
            else:
                observation = self.get_observation(current)
                terminated = chosen is None or not current.cse_candidates
                reward = self.get_rewards(previous, current)
                info["previous"], info["current"] = previous, current
        else:
            info["invalid_actions"] += 1
            truncated = info["invalid_actions"] >= INVALID_ACTION_LIMIT
        info["observation"] = observation
        info["total_reward"] += reward
        info["terminated"], info["truncated"] = terminated, truncated
        if terminated:
            info["heuristic_score"] = info["heuristic_method"].perf_score
            info["no_cse_score"] = info["no_cse_method"].perf_score
            info["final_score"] = info["current"].perf_score
        self.last_info = info
        return observation, reward, terminated, truncated, info

    def get_rewards(self, previous: CompiledMethod, current: CompiledMethod) -> float:
        """Return the reward of a step from one state of a method to another."""
        return REWARD_SCALE * (previous.perf_score - current.perf_score) / previous.perf_score

    def get_observation(self, method: CompiledMethod) -> NDArray[np.float32]:
        """Return the observation of a method, shape [max_cse, len(COLUMNS)]; unused rows are 0."""
        rows = np.zeros((self.max_cse, len(COLUMNS)), dtype=np.float32)
        for place, candidate in enumerate(method.cse_candidates[: self.max_cse]):
            rows[place] = candidate.row
        return rows

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the mask of valid actions, shape [max_cse + 1], for the maskable learners of sb3-contrib.

        If no action is valid, as after the end of an episode, the mask allows stopping: vector environments
        ask for an action before they reset.
        """
        if self.last_info is None:
            raise IrgymError("no episode has begun: call reset before action_masks")
        current: CompiledMethod = self.last_info["current"]
        mask = np.array([self._valid(action, current) for action in (*range(self.max_cse), None)])
        mask[self.max_cse] |= not mask.any()
        return mask

    def _valid(self, action: int | None, method: CompiledMethod) -> bool:
        if action is None:
            return self._stop_at_once or bool(method.cses_chosen)
        return action < len(method.cse_candidates) and method.cse_candidates[action].can_apply

    def _compiled(self, index: str, chosen: Sequence[int] | None) -> CompiledMethod | None:
        """Return a compiled method, or None if it fails to compile; then it is not drawn again."""
        try:
            method = self.compiler.compile(index, chosen)
        except CompileFailed as error:
            self._reasons[index] = str(error)
            self._drop(index)
            return None
        if math.isclose(method.perf_score, 0.0):
            self._reasons[index] = "its score is 0, which nothing can reduce"
            self._drop(index)
            return None
        return method

    def _drop(self, index: str) -> None:
        self.methods = [method for method in self.methods if method != index]

    def render(self) -> str | None:
        """Print the method, its scores and the choice; in the mode `ansi`, return them as text instead."""
        info = self.last_info
        text = (
            ""
            if info is None
            else (
                f"{info['method_index']} ({info['current'].name}): heuristic "
                f"{info['heuristic_method'].perf_score}, nothing shared {info['no_cse_method'].perf_score}, "
                f"chosen {list(info['current'].cses_chosen)}, now {info['current'].perf_score}"
            )
        )
        if self.render_mode == "ansi":
            return text
        if text:
            print(text)
        return None

    def close(self) -> None:
        """End the compiler's processes."""
        if self._compiler is not None:
            self._compiler.close()
            self._compiler = None
