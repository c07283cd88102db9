"""Random episodes of passes on all model families: no lost process, no invalid module, no wrong result.

Every final module goes through XLA's verifier; a sample runs on XLA:CPU and is compared with the original
program.

    python benchmarks/hlo_fuzz.py --episodes 2000 --executed 100
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import tyro

from irgym.base.errors import IrgymError
from irgym.core.schedule import Schedule
from irgym.envs.hlo.actions import STOP
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.state import HloState
from irgym.envs.hlo.task import HloTask


@dataclass(frozen=True)
class Options:
    """Options of the fuzzer."""

    episodes: int = 200
    """Random episodes over all families."""
    steps: int = 25
    """Passes of an episode."""
    executed: int = 10
    """Final modules to run on XLA:CPU."""
    seed: int = 0
    """Seed of passes and inputs."""


LOCKSTEP = 16
"""Episodes of one program that run side by side."""


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


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    rng = np.random.default_rng(options.seed)
    started = time.perf_counter()
    ends: list[tuple[HloTask, HloState]] = []
    families = list(FAMILIES)
    quota = np.bincount(np.arange(options.episodes) % len(families), minlength=len(families))
    for family, count in zip(families, quota, strict=True):
        task = HLO.task(f"hlo://{family}")
        for start in range(0, int(count), LOCKSTEP):
            share = min(LOCKSTEP, int(count) - start)
            ends += [(task, state) for state in episodes(task, share, options.steps, rng)]
    failed = [(task, state) for task, state in ends if state.failure]
    sound = [(task, state) for task, state in ends if not state.failure]
    invalid = [
        (task, state, said)
        for task, state in sound
        if (said := task.modules.pool.call("verify", task.modules.file, state.path))
    ]
    steps = sum(state.steps for _, state in ends)
    print(f"{len(ends)} episodes, {steps} steps, {time.perf_counter() - started:.0f} s", flush=True)
    for reason, number in Counter(f"{t.space.kinds[s.last].name}: {s.failure}" for t, s in failed).items():
        print(f"  {number} recorded as crashed: {reason}")
    for task, state, said in invalid:
        print(f"  INVALID {task.uri} {_text(task, state)}: {said}")
    wrong = 0
    chosen = rng.choice(len(sound), min(options.executed, len(sound)), replace=False)
    worst = 0.0
    with HLO.bench() as bench:
        for place in sorted(chosen.tolist()):
            task, state = sound[place]
            try:
                found = bench.call(task.validation(state, 1, options.seed))
            except IrgymError as error:
                wrong += 1
                print(f"  NOT RUN {task.uri} {_text(task, state)}: {error}", flush=True)
                continue
            worst = max(worst, found.error)
            if not found.ok:
                wrong += 1
                print(f"  MISMATCH {found.error:.3g} {task.uri} {_text(task, state)}", flush=True)
    print(
        f"recorded as crashed {len(failed)}, verifier failures {len(invalid)}; executed {len(chosen)}: "
        f"{wrong} mismatches, greatest error {worst:.2g}"
    )
    sys.exit(1 if invalid or wrong else 0)


def _text(task: HloTask, state: HloState) -> str:
    return Schedule(tuple(task.space.flat[kind] for kind in state.path)).text(task.space)


if __name__ == "__main__":
    main()
