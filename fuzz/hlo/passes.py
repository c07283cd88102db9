"""Random episodes of XLA's passes: no lost process, no invalid module, no wrong result.

Every final module goes through XLA's verifier; one of a seed runs on XLA:CPU and is compared with the
original program.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzz.fuzzer import Tally
from irgym.base.errors import IrgymError
from irgym.core.schedule import Schedule
from irgym.envs.hlo.actions import STOP
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.state import HloState
from irgym.envs.hlo.task import HloTask

LOCKSTEP = 16
"""Episodes of a seed, which run side by side."""

STEPS = 25
"""Passes of an episode."""

ORDER = np.random.default_rng(0).permutation(sorted(FAMILIES)).tolist()
"""Families, one for each seed in turn."""


def episodes(task: HloTask, count: int, steps: int, rng: np.random.Generator) -> list[HloState]:
    """Return the final states of random episodes that never stop early."""
    states: list[HloState] = [task.initial()] * count
    for _ in range(steps):
        live, actions = [], []
        for place, state in enumerate(states):
            legal = [action for action in task.space.legal(task.mask(state)) if action.kind != STOP]
            if legal:
                live.append(place)
                actions.append(legal[int(rng.integers(len(legal)))])
        after: list[Any] = task.step_batch([states[place] for place in live], actions)
        for place, state in zip(live, after, strict=True):
            states[place] = state
    return states


def run(seed: int) -> Tally:
    """Run episodes of a family, and execute a final module."""
    rng, tally = np.random.default_rng(seed), Tally()
    task = HLO.task(f"hlo://{ORDER[seed % len(ORDER)]}")
    ends = episodes(task, LOCKSTEP, STEPS, rng)
    tally.notes["passes"] = sum(state.steps for state in ends)
    sound: list[HloState] = []
    for state in ends:
        if state.failure:
            tally.add("recorded as crashed")
        elif said := task.modules.pool.call("verify", task.modules.file, state.path):
            tally.add("invalid", f"invalid: {_text(task, state)}: {said}")
        else:
            tally.add("valid")
            sound.append(state)
    if sound:
        _execute(task, sound, rng, seed, tally)
    return tally


def _execute(
    task: HloTask, states: Sequence[HloState], rng: np.random.Generator, seed: int, tally: Tally
) -> None:
    """Run a final module and compare its results."""
    state = states[int(rng.integers(len(states)))]
    tally.notes["executed"] += 1
    with HLO.bench() as bench:
        try:
            found = bench.call(task.validation(state, 1, seed))
        except IrgymError as error:
            tally.findings.append(f"not run: {_text(task, state)}: {error}")
            return
    if not found.ok:
        tally.findings.append(f"wrong by {found.error:.3g}: {_text(task, state)}: {found.detail}")


def _text(task: HloTask, state: HloState) -> str:
    schedule = Schedule(tuple(task.space.flat[kind] for kind in state.path))
    return f"{task.uri} {schedule.text(task.space)!r}"
