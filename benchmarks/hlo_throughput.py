"""Steps a second on the one-layer tiny GPT-2: a pass, the counts, the observation; and what a fork costs.

Two kinds of random episodes of 25 steps: any of all actions, as CompilerGym's environments count steps (those
that the mask rules out change nothing), and only those that the mask allows, which do more.

    python benchmarks/hlo_throughput.py --repeats 3
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from irgym.core.actions import Action
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.modules import ProgramModules
from irgym.envs.hlo.passes import STOP
from irgym.envs.hlo.pool import Pool
from irgym.envs.hlo.task import HloState, HloTask
from irgym.measure.bench import MeasuringBench

COMPILERGYM = 1091
"""Steps a second that CompilerGym's paper gives for its LLVM environment (arXiv 2109.08267)."""

EPISODE = 25
LOCKSTEP = 32

Choice = Callable[[HloTask, HloState, np.random.Generator], Action]


def any_action(task: HloTask, state: HloState, rng: np.random.Generator) -> Action:
    """Return any pass."""
    return Action(int(rng.integers(STOP)))


def legal_action(task: HloTask, state: HloState, rng: np.random.Generator) -> Action:
    """Return a pass that the mask allows."""
    kinds = np.flatnonzero(task.mask(state).kinds[:STOP])
    return Action(int(kinds[rng.integers(len(kinds))]))


def steps_per_second(pool: Pool, choose: Choice, seconds: float, seed: int) -> float:
    """Return steps a second over whole episodes; every observation is made, nothing is known beforehand."""
    like = HLO.task("hlo://gpt2?layers=1").modules
    task = HloTask(ProgramModules(like.uri, like.file, like.content, pool))
    rng = np.random.default_rng(seed)
    task.initial()
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        states = [task.initial()] * LOCKSTEP
        for _ in range(EPISODE):
            live = [state for state in states if not task.terminal(state)]
            states = task.step_batch(live, [choose(task, state, rng) for state in live])
            for state in states:
                task.observe(state)
            steps += len(states)
    return steps / (time.perf_counter() - started)


def fork_and_step_us(seconds: float) -> tuple[float, float]:
    """Return microseconds for a fork (a state kept and gone on from twice) and for a step, beyond it."""
    task = HLO.task("hlo://gpt2?layers=1")
    state = task.step(task.initial(), task.space.parse("algsimp"))
    forks, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        forked = state
        assert forked.path == state.path
        forks += 1
    fork_s = (time.perf_counter() - started) / forks
    return 1e6 * fork_s, 1e6 / steps_per_second(HLO.pool(), legal_action, seconds, seed=1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with MeasuringBench() as bench:
        print(bench.machine)
    for processes in (1, 2):
        pool = Pool(processes)
        for name, choose in (("any action", any_action), ("legal actions", legal_action)):
            steps_per_second(pool, choose, 1.0, seed=99)
            rates = [steps_per_second(pool, choose, options.seconds, seed) for seed in range(options.repeats)]
            middle = statistics.median(rates)
            print(
                f"{processes} process{'es' * (processes > 1)}, {name}: {middle:.0f} steps/s "
                f"({min(rates):.0f} to {max(rates):.0f}), {middle / COMPILERGYM:.1f}x CompilerGym's published "
                f"{COMPILERGYM}"
            )
        pool.close()
    fork, step = fork_and_step_us(options.seconds / 2)
    print(f"fork {fork:.2f} us, step {step:.0f} us")


if __name__ == "__main__":
    main()
