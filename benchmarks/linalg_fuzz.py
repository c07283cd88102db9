"""Random schedules and sketches of all operators: MLIR must accept all, and no result may be wrong.

Every second one is a sketch, since random schedules hardly ever pack and vectorise. Each is compiled in an
isolated process, run on random inputs and compared with the original program.

    python benchmarks/linalg_fuzz.py --schedules 1000
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import tyro

from irgym.core.cost import Call, Job, Outcome
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg.environment import LIMITS, LINALG
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.task import LinalgTask
from irgym.measure.evaluators import Measured
from irgym.measure.farm import LocalFarm
from irgym.measure.timing import Timing

PROGRAMS = (
    "linalg://matmul/48x64x32",
    "linalg://batch_matmul/4x24x32x16",
    "linalg://conv2d/1x8x18x18x16x3x3",
    "linalg://conv2d/2x3x17x17x8x5x5?stride=2",
    "linalg://conv2d/2x6x19x33x10x3x3?stride=2",
    "linalg://conv2d/1x24x14x14x40x1x1",
    "linalg://matmul/50x70x90",
    "linalg://depthwise_conv2d/1x12x20x20x3x3",
    "linalg://depthwise_conv2d/1x12x21x35x3x3?stride=2",
    "linalg://maxpool/1x16x24x24x3?stride=3",
    "linalg://maxpool/1x8x15x15x3?stride=2",
    "linalg://add/12x16x28",
    "linalg://relu/64x96",
    "linalg://softmax/32x48",
    "linalg://layernorm/32x48",
    "linalg://transformer?length=12&width=24",
    *(f"linalg://sequence/{seed}?length={2 + seed % 5}" for seed in range(10)),
)
"""Programs of every operator, small so that the originals do not take most of the time."""

ONCE = Timing(budget_ns=1, fewest=1, most=1)


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    schedules: int = 200
    """Random schedules and sketches over all programs."""
    workers: int = 2
    """Processes that compile and run."""
    seed: int = 0
    """Seed of the schedules."""


def random_state(task: LinalgTask, rng: np.random.Generator) -> tuple[LinalgState, Schedule]:
    """Return the end of a random episode, and its schedule."""
    state, actions = task.initial(), []
    while not task.terminal(state):
        actions.append(task.space.sample(task.mask(state), rng))
        state = task.step(state, actions[-1])
    return state, Schedule(tuple(actions))


def drawn_state(task: LinalgTask, number: int, rng: np.random.Generator) -> tuple[LinalgState, Schedule]:
    """Return a terminal state and its schedule, of a sketch in every second round of the programs."""
    if number // len(PROGRAMS) % 2 == 0:
        return random_state(task, rng)
    schedule = Schedule(tuple(task.sketch(rng)))
    return replay(task, schedule), schedule


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    rng = np.random.default_rng(options.seed)
    started = time.perf_counter()
    texts, jobs = [], []
    for number in range(options.schedules):
        task = LINALG.task(PROGRAMS[number % len(PROGRAMS)])
        state, schedule = drawn_state(task, number, rng)
        texts.append(f"{task.uri}: {schedule.text(task.space)}")
        call = Call("irgym.envs.linalg.runner:measure", (task.text, task.script(state), task.target, ONCE))
        jobs.append(Job(call, task.uri, str(number), "fuzz", target=task.target_text))
    with LocalFarm(options.workers, LIMITS) as farm:
        results = Measured(farm).evaluate(jobs)
    for text, result in zip(texts, results, strict=True):
        if result.outcome is not Outcome.OK:
            print(f"{result.outcome.value}: {text}: {result.detail}")
    counts = Counter(result.outcome.value for result in results)
    seconds = time.perf_counter() - started
    told = ", ".join(f"{outcome} {count}" for outcome, count in counts.most_common())
    print(f"{len(results)} schedules of {len(PROGRAMS)} programs, {seconds:.0f} s: {told}")
    sys.exit(0 if set(counts) == {Outcome.OK.value} else 1)


if __name__ == "__main__":
    main()
