"""A toy problem: turn three dials to the digits shown. Its cost is computed, not measured."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from irgym.agents.problem import Problem
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.core.kinds import ActionKind
from irgym.core.observation import array_view, views_of
from irgym.core.reward import LogSpeedup, Reward
from irgym.core.task import Task

DIALS, DIGITS = 3, 5
SPACE = ActionSpace(
    (
        ActionKind("turn", (tuple(range(DIALS)), tuple(range(DIGITS)))),
        ActionKind("reset"),
        ActionKind("all", (tuple(range(DIGITS)),)),
        ActionKind("stop", ends="episode"),
    )
)
State = tuple[tuple[int, ...], int, bool, int]


def cost(digits: tuple[int, ...], code: tuple[int, ...]) -> Measurement:
    """100 for the right digits, twice as much for each wrong one."""
    wrong = sum(a != b for a, b in zip(digits, code, strict=True))
    return Measurement(Outcome.OK, (100.0 * 2.0**wrong,))


class Dials(Task[State]):
    """State: digits, which begin at -1; steps taken; whether stopped; the dial just turned, or -1."""

    space = SPACE
    horizon = DIALS + 1
    views = views_of(
        array_view("dials", "", (DIALS * (2 * DIGITS + 1) + 1,), lambda task, state: task.features(state))
    )

    def __init__(self, code: tuple[int, ...]) -> None:
        self.code = code
        self.uri = "dials://" + "-".join(map(str, code))

    def initial(self) -> State:
        return (-1,) * DIALS, 0, False, -1

    def mask(self, state: State) -> Mask:
        digits, steps, stopped, last = state
        moved = steps > 0 and not stopped
        ready = -1 not in digits and not stopped
        dials = [dial != last for dial in range(DIALS)]
        params = [*dials, *[True] * DIGITS, *[True] * DIGITS]
        return SPACE.mask([not stopped, moved, steps == 0, ready], params)

    def step(self, state: State, action: Action) -> State:
        digits, steps, _, _ = state
        last = -1
        kind = SPACE.kinds[action.kind].name
        if kind == "turn":
            last, digit = action.params
            digits = (*digits[:last], digit, *digits[last + 1 :])
        elif kind == "reset":
            digits = (-1,) * DIALS
        elif kind == "all":
            digits = (action.params[0],) * DIALS
        return digits, steps + 1, kind == "stop", last

    def terminal(self, state: State) -> bool:
        return state[2]

    def features(self, state: State) -> np.ndarray:
        seen = np.zeros(DIALS * (2 * DIGITS + 1) + 1, dtype=np.float32)
        seen[-1] = state[1] / self.horizon
        for dial, (digit, wanted) in enumerate(zip(state[0], self.code, strict=True)):
            start = dial * (2 * DIGITS + 1)
            seen[start + wanted] = 1.0
            seen[start + DIGITS + 1 + digit] = 1.0
        return seen

    def key(self, state: State) -> str:
        return repr(state[0])

    def job(self, state: State) -> Job:
        return Job(
            Call("dials:cost", (state[0], self.code)), self.uri, self.key(state), "none", "score", target=""
        )

    def validation(self, state: State, inputs: int, seed: int) -> Call:
        raise NotImplementedError

    def describe(self, state: State) -> str:
        return repr(state)

    def export(self, state: State, path: Path) -> list[Path]:
        raise NotImplementedError


class Inline:
    """Evaluates in process."""

    def evaluate(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [cost(*job.call.arguments) for job in jobs]


CODES = [(a, b, c) for a in range(DIGITS) for b in range(DIGITS) for c in range(DIGITS)]
BEST_RETURN = 3 * np.log10(2.0)


def problem(codes: Sequence[tuple[int, ...]] = CODES, reward: Reward | None = None) -> Problem:
    makers = [Call("dials:Dials", (code,)) for code in codes]
    return Problem([Dials(code) for code in codes], Inline(), reward or LogSpeedup(), makers=makers)
