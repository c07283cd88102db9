"""Random choices in functions of the data sets: LLVM's verifier, proofs, and runs.

Results and memory must be equal bit for bit before and after a choice. For each function, all candidates
are shared, then some of them, then others in a run. Results that are neither proved nor refuted are
executed only.
"""

import numpy as np

from fuzz.cse.subjects import some
from fuzz.fuzzer import Tally
from irgym.core.cost import Call, Validation
from irgym.envs.cse.environment import LIMITS
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import CHECKS, CseTask
from irgym.measure.isolation.child import Child, Returned

EACH = 3
"""Functions of a seed."""

INPUTS = 2
"""Random inputs of a run."""


def random_choice(task: CseTask, rng: np.random.Generator) -> tuple[int, ...]:
    """Return a choice of a random size."""
    share = rng.random()
    return tuple(place for place in range(len(task.names)) if rng.random() < share)


def verifying(task: CseTask, shared: tuple[int, ...]) -> Call:
    """Return the call that verifies and proves a choice."""
    return Call(f"{CHECKS}:checked", (str(task.module), task.analysed.function.name, shared, 0, 0, False))


def running(task: CseTask, rng: np.random.Generator) -> Call:
    """Return the call that proves a random choice of at least one candidate, and runs it."""
    shared = frozenset(random_choice(task, rng)) or frozenset([0])
    return task.validation(CseState(shared), INPUTS, int(rng.integers(2**31)))


def run(seed: int) -> Tally:
    """Check choices in some functions."""
    rng, tally = np.random.default_rng(seed), Tally()
    with Child(LIMITS) as child:
        for task in some(seed, EACH, tally):
            everything = tuple(range(len(task.names)))
            calls = (
                verifying(task, everything),
                verifying(task, random_choice(task, rng)),
                running(task, rng),
            )
            for call in calls:
                reply = child.call(call)
                found = reply.value if isinstance(reply, Returned) else None
                if not isinstance(found, Validation) or not found.ok:
                    said = str(reply) if found is None else found.detail
                    tally.add("wrong", f"wrong: {task.uri}: {call.arguments[2]}: {said}")
                    continue
                tally.add(_outcome(found, call is calls[-1]))
                tally.notes.update({what.replace("_", " "): count for what, count in found.figures.items()})
    return tally


def _outcome(found: Validation, ran: bool) -> str:
    if not ran:
        return "verified"
    if not found.inputs:
        return "not run"
    return "equal, all seen in a run" if found.checked else "equal, in part unseen"
