"""Random orders of LLVM's passes: no lost process, no invalid module, no wrong result; replays are the same.

Each seed takes a module of the kernels or of the packages. All orders of a seed run side by side. The final
modules are made again in another process and verified, some again with nothing remembered and compared
by digest, and one is run beside the original in random worlds.
"""

import numpy as np

from fuzz.fuzzer import Tally
from irgym.base.errors import IrgymError
from irgym.core.actions import Action
from irgym.core.bench import Bench
from irgym.core.cost import Call, Measurement, Outcome
from irgym.core.schedule import Schedule
from irgym.envs.llvm.actions import STOP
from irgym.envs.llvm.compiling.modules import ProgramModules
from irgym.envs.llvm.environment import LLVM
from irgym.envs.llvm.state import LlvmState
from irgym.envs.llvm.task import LlvmTask

LOCKSTEP = 64
"""Orders of a seed: many, since passes and LLVM's verifier are fast beside the runs in worlds."""

STEPS = 45
"""Passes of an order."""

REPLAYED = 4
"""Final modules of a seed that are made again."""


def uris() -> list[str]:
    """Return the modules, one for each seed in turn; even seeds need no network."""
    sets = [LLVM.dataset(name) for name in ("kernels", "packages-small")]
    kernels, packages = ([*known.train, *known.test] for known in sets)
    order = np.random.default_rng(0).permutation(packages).tolist()
    return [uri for place, other in enumerate(order) for uri in (kernels[place % len(kernels)], other)]


def run(seed: int) -> Tally:
    """Run orders on a module, and check what they lead to."""
    rng, tally = np.random.default_rng(seed), Tally()
    known = uris()
    task = LLVM.task(known[seed % len(known)])
    ends = orders(task, LOCKSTEP, STEPS, rng)
    tally.notes["passes"] = sum(state.steps for state in ends)
    tally.reach("actions", (LlvmTask.space.kinds[kind].name for state in ends for kind in state.path))
    for state in ends:
        tally.add("failed" if state.failure else "ended")
        if state.failure:
            tally.remarks.append(f"{told(task, state)}: {state.failure}")
    sound = [state for state in ends if not state.failure]
    for state in sound[:REPLAYED]:
        replay(task, state, tally)
    with LLVM.bench() as bench:
        for state in sound:
            verify(task, state, bench, tally)
        if sound:
            execute(task, sound[0], seed, bench, tally)
    return tally


def orders(task: LlvmTask, count: int, steps: int, rng: np.random.Generator) -> list[LlvmState]:
    """Return the final states of random orders that never stop early."""
    states: list[LlvmState] = [task.initial()] * count
    for _ in range(steps):
        live = [place for place, state in enumerate(states) if not task.terminal(state)]
        actions = [
            Action(int(rng.choice(np.flatnonzero(task.mask(states[place]).kinds[:STOP])))) for place in live
        ]
        after = task.step_batch([states[place] for place in live], actions)
        for place, state in zip(live, after, strict=True):
            states[place] = state
    return states


def replay(task: LlvmTask, state: LlvmState, tally: Tally) -> None:
    """Make a module again, by the passes that changed it, with nothing remembered."""
    modules = task.modules
    fresh = LlvmTask(ProgramModules(modules.uri, modules.path, modules.content, modules.pool))
    again = fresh.initial()
    for kind in state.path:
        again = fresh.step(again, Action(kind))
    tally.notes["replayed"] += 1
    if again.node.digest != state.node.digest or again.path != state.path:
        tally.findings.append(f"a replay differs: {told(task, state)}")


def verify(task: LlvmTask, state: LlvmState, bench: Bench, tally: Tally) -> None:
    """Make a module again in another process, and run LLVM's verifier on it."""
    modules = task.modules
    arguments = (modules.file, state.path, modules.pool.backend, task.objective.name)
    found = bench.call(Call("irgym.envs.llvm.runner:measure", arguments))
    tally.notes["verified"] += 1
    if found != Measurement(Outcome.OK, (float(state.node.total),)):
        tally.findings.append(f"made again, it is not valid and the same: {told(task, state)}: {found}")


def execute(task: LlvmTask, state: LlvmState, seed: int, bench: Bench, tally: Tally) -> None:
    """Run a module beside the original in random worlds."""
    try:
        found = bench.call(task.validation(state, 1, seed))
    except IrgymError as error:
        tally.findings.append(f"not run: {told(task, state)}: {error}")
        return
    tally.notes["executed"] += 1
    tally.notes["blind"] += bool(found.blind)
    if not found.ok:
        tally.findings.append(f"wrong: {told(task, state)}: {found.detail}")


def told(task: LlvmTask, state: LlvmState) -> str:
    """Return what repeats a state."""
    return f"{task.uri} {Schedule(tuple(Action(kind) for kind in state.path)).text(task.space)!r}"
