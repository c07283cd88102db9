"""Steps a second on the one-layer tiny GPT-2 (pass, counts, observation), and the cost of a fork.

Random episodes of 25 steps, of two kinds: all actions, as CompilerGym's environments count steps (masked
actions change nothing), or legal actions only, which do more work. Episodes run sequentially, as in a
Gymnasium environment, or 32 in lockstep, as in irgym's training: then each step works on a different module,
which is no longer in the processor's caches.

    python benchmarks/hlo_throughput.py --repeats 3
"""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import tyro

from irgym.base.garbage import collect_seldom
from irgym.core.actions import Action
from irgym.core.lockstep import Turn, play
from irgym.envs.hlo.actions import STOP
from irgym.envs.hlo.compiling.engine import load_engine
from irgym.envs.hlo.compiling.modules import ProgramModules
from irgym.envs.hlo.compiling.pool import Pool
from irgym.envs.hlo.compiling.store import Store
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.state import HloState
from irgym.envs.hlo.task import HloTask
from irgym.measure.bench import MeasuringBench


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    seconds: float = 5.0
    """Seconds of each run."""
    repeats: int = 3
    """Runs of each kind, with different seeds; the median is reported."""


COMPILERGYM = 1091
"""Steps a second of CompilerGym's LLVM environment, by its paper (arXiv 2109.08267)."""

EPISODE = 25

Choice = Callable[[HloTask, HloState, np.random.Generator], Action]


def any_action(task: HloTask, state: HloState, rng: np.random.Generator) -> Action:
    """Return any pass."""
    return Action(int(rng.integers(STOP)))


def legal_action(task: HloTask, state: HloState, rng: np.random.Generator) -> Action:
    """Return a pass that the mask allows."""
    kinds = np.flatnonzero(task.mask(state).kinds[:STOP])
    return Action(int(kinds[rng.integers(len(kinds))]))


CHOICES: dict[str, Choice] = {"any action": any_action, "legal actions": legal_action}


def steps_per_second(pool: Pool, lockstep: int, choose: Choice, seconds: float, seed: int) -> float:
    """Return steps a second over whole episodes, with all observations and an empty cache."""
    like = HLO.task("hlo://gpt2?layers=1").modules
    task = HloTask(ProgramModules(like.uri, like.file, like.content, pool), horizon=EPISODE)
    rng = np.random.default_rng(seed)
    task.initial()

    def act(turn: Turn) -> list[Action]:
        turn.observations("")
        return [choose(task, state, rng) for state in turn.states]

    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        steps += sum(len(episode.actions) for episode in play([task] * lockstep, act))
    return steps / (time.perf_counter() - started)


def bound(name: str, seconds: float) -> float:
    """Return the steps a second of XLA alone: its passes, and one copy for each episode.

    The same episodes, sequentially in this process; only the time within XLA counts.
    """
    like = HLO.task("hlo://gpt2?layers=1").modules
    store, rng = Store(load_engine()), np.random.default_rng(0)
    within, steps = 0.0, 0
    while within < seconds:
        begun = time.perf_counter()
        module = store.module(like.file, ()).clone()
        within += time.perf_counter() - begun
        tried: set[int] = set()
        for _ in range(EPISODE):
            possible = store.summary(module, analysed=False).possible
            legal = [kind for kind in range(STOP) if possible >> kind & 1 and kind not in tried]
            kind = int(rng.integers(STOP)) if name == "any action" else legal[int(rng.integers(len(legal)))]
            steps += 1
            if kind in legal:
                begun = time.perf_counter()
                changed = store.apply(module, kind)
                within += time.perf_counter() - begun
                tried = set() if changed else tried | {kind}
    return steps / within


def forked_step_us(pool: Pool, repeats: int = 50) -> float:
    """Return microseconds for the first pass after a fork, which copies the module (median)."""
    like = HLO.task("hlo://gpt2?layers=1").modules
    task = HloTask(ProgramModules(like.uri, like.file, like.content, pool))
    times: list[float] = []
    for kind in range(STOP):
        state = task.initial()
        if task.mask(state).kinds[kind] and len(times) < repeats:
            started = time.perf_counter()
            task.step(state, Action(kind))
            times.append(time.perf_counter() - started)
    return 1e6 * statistics.median(times)


def pooled_rates(processes: int, lockstep: int, name: str, options: Options) -> list[float]:
    """Return the rates of all runs with one pool of that many processes."""
    pool = Pool(processes)
    steps_per_second(pool, lockstep, CHOICES[name], 1.0, seed=99)
    rates = [
        steps_per_second(pool, lockstep, CHOICES[name], options.seconds, seed)
        for seed in range(options.repeats)
    ]
    pool.close()
    return rates


def separate_rates(name: str, options: Options) -> list[float]:
    """Return the rates of two programs side by side, each with a separate pool and an episode at a time."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn, initializer=collect_seldom) as executor:
        runs = [executor.submit(pooled_rates, 1, 1, name, options) for _ in range(2)]
        return [sum(rates) for rates in zip(*(run.result() for run in runs), strict=True)]


def report(what: str, rates: list[float]) -> None:
    middle = statistics.median(rates)
    print(
        f"{what}: {middle:.0f} steps/s ({min(rates):.0f} to {max(rates):.0f}), "
        f"{middle / COMPILERGYM:.1f}x the {COMPILERGYM} of CompilerGym's paper",
        flush=True,
    )


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    collect_seldom()  # as irgym does in its processes
    with MeasuringBench() as bench:
        print(bench.machine)
    for name in CHOICES:
        report(f"one process, an episode at a time, {name}", pooled_rates(1, 1, name, options))
        report(f"one process, 32 in lockstep, {name}", pooled_rates(1, 32, name, options))
        report(f"two processes, 32 in lockstep, {name}", pooled_rates(2, 32, name, options))
        report(f"two programs, an episode at a time each, {name}", separate_rates(name, options))
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
            most = executor.submit(bound, name, options.seconds).result()
        print(f"one process, {name}, if only the time within XLA counted: {most:.0f} steps/s", flush=True)
    pool = Pool(1)
    print(f"first pass after a fork, copy included: {forked_step_us(pool):.0f} us")
    pool.close()


if __name__ == "__main__":
    main()
