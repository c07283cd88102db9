"""The checks of llvm on modules of packages: no right result may be called wrong, few may be not checkable.

    python benchmarks/llvm_checks.py --modules 100 --random 2

Each module is optimised by LLVM's pipelines, by the list of sequences and in random orders, and compared with
the original. Prints what is wrong, with the passes, and what is not checkable, with the reason. LLVM has
wrong passes, too: look before you blame the checks.
"""

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tyro

from irgym.core.actions import Action
from irgym.core.dataset import spread
from irgym.core.schedule import Schedule
from irgym.envs.llvm.actions import HORIZON, STOP
from irgym.envs.llvm.environment import LLVM
from irgym.envs.llvm.state import LlvmState
from irgym.envs.llvm.task import LlvmTask


@dataclass(frozen=True)
class Options:
    """Options of the count."""

    dataset: str = "packages-small"
    """Data set, of which the test split is used."""
    modules: int = 100
    """Number of modules, spread over the packages."""
    pipelines: tuple[str, ...] = ("oz", "o1", "list")
    """Pipelines."""
    random: int = 2
    """Number of random orders of each module."""
    inputs: int = LLVM.validation_inputs
    """Number of random inputs of each function."""
    seed: int = 0
    """Seed of the orders and of the inputs."""


def orders(task: LlvmTask, options: Options, number: int) -> Iterator[tuple[str, LlvmState]]:
    """Yield the final states of a module, each with the name of its order."""
    for name in options.pipelines:
        yield name, followed(task, task.pipeline(name))
    for turn in range(options.random):
        rng = np.random.default_rng((options.seed, number, turn))
        state = task.initial()
        for _ in range(HORIZON):
            legal = np.flatnonzero(task.mask(state).kinds[:STOP])
            after = task.step(state, Action(int(rng.choice(legal))))
            state = state if after.failure else after
        yield f"random {turn}", state


def followed(task: LlvmTask, schedule: Schedule) -> LlvmState:
    """Return the state after a schedule; passes that do not apply are skipped."""
    state = task.initial()
    for action in schedule.actions:
        state = task.step(state, action) if task.accepts(state, action) else state
    return state


def main(options: Options) -> None:
    """Check all modules; exit with status 1 if a result is called wrong."""
    uris = spread(LLVM.dataset(options.dataset).test, options.modules)
    outcomes, seconds = Counter[str](), list[float]()
    with LLVM.bench() as bench:
        for number, uri in enumerate(uris):
            task = LLVM.task(uri)
            for name, state in orders(task, options, number):
                begin = time.perf_counter()
                found = bench.call(task.validation(state, options.inputs, options.seed))
                seconds.append(time.perf_counter() - begin)
                outcome = "right" if found.checked else "not checkable" if found.ok else "WRONG"
                outcomes[outcome] += 1
                if outcome != "right":
                    print(f"{outcome} {uri} {name}: {found.detail or found.blind}", flush=True)
                if outcome == "WRONG":
                    print(f"  {task.key(state)}", flush=True)
    families = len({LLVM.family(uri) for uri in uris})
    print(f"{len(uris)} modules of {families} packages: {', '.join(f'{n} {o}' for o, n in outcomes.items())}")
    print(f"a check takes {statistics.median(seconds):.1f} s (median), at most {max(seconds):.1f} s")
    raise SystemExit(1 if outcomes["WRONG"] else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
