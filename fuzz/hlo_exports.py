"""Exports of random modules in every form, read back and compared with the original program.

    python fuzz/hlo_exports.py --count 40 --seconds 540 --seed 0

Prints how many exports were read back and ran, and how many were rejected with an error message; exits with 1
if an exported file cannot be read, or computes something else.
"""

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import jax.export
import numpy as np
import tyro

from irgym.base.errors import IrgymError
from irgym.envs.hlo.actions import STOP
from irgym.envs.hlo.checking.checks import problem_of
from irgym.envs.hlo.compiling.executable import compile_module
from irgym.envs.hlo.compiling.export import FORMS
from irgym.envs.hlo.compiling.store import read_program
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.programs.lowering import convert
from irgym.envs.hlo.state import HloState
from irgym.envs.hlo.task import HloTask


@dataclass(frozen=True)
class Options:
    """Options of the fuzzer."""

    count: int = 40
    """Number of modules, each exported in every form."""
    seconds: float = 540.0
    """Time in seconds after which no further module is started."""
    seed: int = 0
    """Seed of the passes and inputs."""
    families: tuple[str, ...] = tuple(FAMILIES)
    """Families of the programs; networks take minutes each."""


def shuffled(task: HloTask, rng: np.random.Generator, steps: int = 10) -> HloState:
    """Return the state after random passes, up to the first that fails."""
    state = task.initial()
    for _ in range(steps):
        legal = [action for action in task.space.legal(task.mask(state)) if action.kind != STOP]
        after = task.step(state, legal[int(rng.integers(len(legal)))])
        if after.failure:
            break
        state = after
    return state


def said_of(task: HloTask, state: HloState, file: Path, seed: int) -> str:
    """Export a module, read the file back and run it; return the error, or nothing."""
    task.export(state, file)
    problem = problem_of(read_program(task.modules.file), seed, True)
    if file.suffix == ".jax":
        function = jax.export.deserialize(bytearray(file.read_bytes()))
        with jax.enable_x64(True):
            results = [np.asarray(leaf) for leaf in jax.tree.leaves(function.call(*problem.inputs))]
    else:
        results = compile_module(convert(str(file)), quickly=True).run(problem.inputs)
    return problem.judge(results).detail


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    rng = np.random.default_rng(options.seed)
    outcomes: Counter[str] = Counter()
    started = time.monotonic()
    modules = 0
    families = rng.permutation(options.families).tolist()
    with tempfile.TemporaryDirectory() as folder:
        while modules < options.count and time.monotonic() - started < options.seconds:
            task = HLO.task(f"hlo://{families[modules % len(families)]}")
            state = shuffled(task, rng)
            for suffix in FORMS:
                file = Path(folder) / f"module{suffix}"
                try:
                    wrong = said_of(task, state, file, options.seed)
                except IrgymError as error:
                    wrong = f"not read back: {error}" if file.exists() else ""
                    outcomes["refused"] += not file.exists()
                    print(f"  {task.uri} {suffix} {task.key(state)}: {error}", flush=True)
                else:
                    outcomes["wrong" if wrong else "ran"] += 1
                if wrong:
                    outcomes["wrong"] += wrong.startswith("not read back")
                    print(f"  WRONG {task.uri} {suffix} {task.key(state)}: {wrong}", flush=True)
                file.unlink(missing_ok=True)
            modules += 1
            print(f"{modules} modules: {dict(outcomes)}", file=sys.stderr, flush=True)
    print(f"{modules} modules, {sum(outcomes.values())} exports: {dict(outcomes)}")
    sys.exit(1 if outcomes["wrong"] else 0)


if __name__ == "__main__":
    main()
