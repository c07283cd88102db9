"""Exports of random modules in every form, read back and compared with the original.

An export may be refused with a message; it is a fault if an exported file cannot be read, or computes
something else.
"""

import tempfile
from pathlib import Path

import jax.export
import numpy as np

from fuzz.fuzzer import Tally
from fuzz.hlo.passes import ORDER
from irgym.base.errors import IrgymError
from irgym.envs.hlo.actions import STOP
from irgym.envs.hlo.checking.checks import problem_of
from irgym.envs.hlo.compiling.executable import compile_module
from irgym.envs.hlo.compiling.export import FORMS
from irgym.envs.hlo.compiling.store import read_program
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.lowering import convert
from irgym.envs.hlo.state import HloState
from irgym.envs.hlo.task import HloTask


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


def run(seed: int) -> Tally:
    """Export a module of a family in a form."""
    rng, tally = np.random.default_rng(seed), Tally()
    task = HLO.task(f"hlo://{ORDER[seed % len(ORDER)]}")
    state = shuffled(task, rng)
    suffix = list(FORMS)[(seed + seed // len(ORDER)) % len(FORMS)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"module{suffix}"
        subject = f"{task.uri} {suffix} {task.key(state)}"
        try:
            wrong = said_of(task, state, file, seed)
        except IrgymError as error:
            if file.exists():
                tally.add("not read back", f"not read back: {subject}: {error}")
            else:
                tally.add("refused")
        else:
            tally.add("wrong" if wrong else "right", wrong and f"wrong: {subject}: {wrong}")
    return tally
