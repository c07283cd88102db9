"""Random choices, checked by LLVM's verifier, by proofs, and by runs against the original.

    python benchmarks/cse_fuzz.py --choices 20000

Results and memory must be equal bit for bit before and after a choice. Functions that cannot run are counted
by reason. `--run` limits the number of functions that run; the others are verified and proved only.
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import tyro

from irgym.base.errors import ProgramError
from irgym.core.catalogue import tasks_of
from irgym.core.cost import Call, Validation
from irgym.core.dataset import spread
from irgym.envs.cse.environment import CSE, LIMITS
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import CHECKS, CseTask
from irgym.measure.farm import LocalFarm
from irgym.measure.isolation.protocol import Reply, Returned
from irgym.measure.machine import fingerprint

BARS = {"choices": 20_000, "functions": 3_000}
"""Number of choices that must pass the verifier and the proofs, and of functions that must compare equal."""

CHUNK = 64
"""Number of functions whose choices are checked together."""


@dataclass(frozen=True)
class Options:
    """Options of the check."""

    choices: int = BARS["choices"]
    """Random choices over all functions."""
    datasets: tuple[str, ...] = ("kernels", "packages")
    """Data sets, of which both splits are used."""
    target: str = "x86-64"
    """Target of the code."""
    limit: int | None = None
    """Greatest number of functions, spread evenly."""
    run: int | None = None
    """Greatest number of functions that run."""
    inputs: int = 2
    """Random inputs per function."""
    workers: int = 2
    """Number of processes."""
    seed: int = 0
    """Seed of the choices and of the inputs."""


def random_choice(task: CseTask, rng: np.random.Generator) -> tuple[int, ...]:
    """Return a choice of a random size."""
    share = rng.random()
    return tuple(place for place in range(len(task.names)) if rng.random() < share)


def verifying(task: CseTask, shared: tuple[int, ...]) -> Call:
    """Return the call that verifies and proves a choice."""
    return Call(f"{CHECKS}:checked", (str(task.module), task.analysed.function.name, shared, 0, 0, False))


def running(task: CseTask, rng: np.random.Generator, inputs: int) -> Call:
    """Return the call that runs a function under a random choice of at least one candidate."""
    shared = frozenset(random_choice(task, rng)) or frozenset([0])
    return task.validation(CseState(shared), inputs, int(rng.integers(2**31)))


def told(reply: Reply) -> Validation:
    """Return the outcome of a check; a check that did not end has failed."""
    return reply.value if isinstance(reply, Returned) else Validation(False, 0.0, "", 0, str(reply))


def main(options: Options) -> None:
    """Print the number of choices and functions checked, and the wrong ones."""
    print(fingerprint().text())
    rng = np.random.default_rng(options.seed)
    datasets = [CSE.dataset(name) for name in options.datasets]
    uris = spread([uri for dataset in datasets for uri in (*dataset.train, *dataset.test)], options.limit)
    each = -(-options.choices // len(uris))
    started = time.perf_counter()
    passed = wrong = same = seen = 0
    running_left = len(uris) if options.run is None else options.run
    blind: Counter[str] = Counter()
    proofs: Counter[str] = Counter()

    def left_out(_: str, error: ProgramError) -> None:
        blind[str(error)] += 1

    with LocalFarm(options.workers, LIMITS) as farm:
        for begin in range(0, len(uris), CHUNK):
            chunk = uris[begin : begin + CHUNK]
            opened = tasks_of(chunk, lambda uri: CSE.task(uri, target=options.target), left_out)
            tasks = [task for task in opened if task.names]
            looked_at = [(task, random_choice(task, rng)) for task in tasks for _ in range(each)]
            calls = [(task, verifying(task, shared)) for task, shared in looked_at]
            calls += [(task, running(task, rng, options.inputs)) for task in tasks[:running_left]]
            running_left -= len(tasks[:running_left])
            said = [told(reply) for reply in farm.run([call for _, call in calls])]
            for (task, call), validation in zip(calls, said, strict=True):
                if not validation.ok:
                    wrong += 1
                    print(f"{task.uri}: {call.arguments[2]}: {validation.detail}", flush=True)
            ran = said[len(looked_at) :]
            passed += sum(validation.ok for validation in said[: len(looked_at)])
            for answer in said[: len(looked_at)]:
                proofs.update(answer.figures)
            same += sum(validation.ok and validation.inputs > 0 for validation in ran)
            seen += sum(validation.checked for validation in ran)
            blind.update(validation.blind for validation in ran if validation.ok and not validation.inputs)
            print(
                f"{begin + len(chunk)} functions, {passed} choices, {same} ran", file=sys.stderr, flush=True
            )
    for why, count in blind.most_common():
        print(f"{count} functions: {why}")
    print(", ".join(f"{what.replace('_', ' ')} {count}" for what, count in proofs.items()))
    print(f"{len(uris)} functions, {time.perf_counter() - started:.0f} s: {wrong} wrong")
    print(f"all that is shared shows in some run of {seen} functions, and not in those of {same - seen}")
    for what, count in (("choices", passed), ("functions", same)):
        verdict = "met" if count >= BARS[what] and not wrong else "NOT met"
        done = "passed the verifier" if what == "choices" else "computed the same"
        print(f"{count} {what} {done}; bar {BARS[what]}: {verdict}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
