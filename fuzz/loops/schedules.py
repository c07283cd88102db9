"""Random schedules of programs by each code generator, compared with numpy.

Each schedule runs in an isolated process on whole numbers, on random ones, and on infinities, NaN, zeros
of either sign, subnormal and large numbers. Replaying the text of a schedule must lead to the same state.
"""

import random

from fuzz.fuzzer import Tally
from fuzz.loops.programs import any_program
from fuzz.validating import validated
from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay
from irgym.envs.loops.compiling.backends import BACKENDS
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.state import LoopsState
from irgym.envs.loops.task import LoopsTask
from irgym.measure.isolation.child import Child

BY_NAME = {backend.name: backend for backend in BACKENDS}

EACH = 8
"""Schedules of a seed, for each code generator."""


def random_program(rng: random.Random) -> str:
    """Return a small program of odd sizes: matmul, batched matmul, convolution or another einsum."""

    def size(most: int) -> int:
        return rng.randint(1, most)

    kind = rng.random()
    if kind < 0.4:
        return f"loops://mm/{size(70)}x{size(140)}x{size(70)}"
    if kind < 0.6:
        return f"loops://bmm/{size(5)}x{size(30)}x{size(70)}x{size(30)}"
    if kind < 0.85:
        kernel, stride = rng.choice((1, 2, 3)), rng.choice((1, 1, 2))
        uri = f"loops://conv/{size(2)}x{size(9)}x{size(9)}x{size(9)}x{size(50)}x{kernel}x{kernel}"
        return uri + (f"?stride={stride}" if stride > 1 else "")
    spec = rng.choice(("mk,nk->mn", "km,kn->nm", "mk,k->m", "m,n->mn", "bm,bm->bm", "[2*x+r]c,rcf->xf"))
    letters = sorted({letter for letter in spec if letter.isalpha()})
    return f"loops://einsum/{spec}?" + "&".join(f"{letter}={size(40)}" for letter in letters)


def random_schedule(task: LoopsTask, rng: random.Random) -> tuple[Schedule, LoopsState]:
    """Return a schedule of up to 24 legal actions, each drawn uniformly, and its state."""
    state, taken = task.initial(), list[Action]()
    for _ in range(rng.randint(0, 24)):
        legal = [action for action in task.space.legal(task.mask(state)) if task.space.text(action) != "stop"]
        if not legal:
            break
        action = rng.choice(legal)
        taken.append(action)
        state = task.step(state, action)
    return Schedule(tuple(taken)), state


def run(seed: int) -> Tally:
    """Check schedules of every code generator that runs here."""
    rng, tally = random.Random(seed), Tally()
    generators = [backend.name for backend in BACKENDS if backend.available().available]
    with Child() as child:
        for generator in generators * EACH:
            kinds = (random_program(rng), any_program(rng, BY_NAME[generator].types).uri)
            task = LOOPS.task(rng.choice(kinds), generator)
            schedule, state = random_schedule(task, rng)
            text = schedule.text(task.space)
            subject = f"{generator} {task.uri} {text!r}"
            if replay(task, Schedule.parse(text, task.space)) != state:
                tally.findings.append(f"replay leads to another state: {subject}")
            tally.add(*validated(child, task.validation(state, 2, rng.randrange(1 << 30)), subject))
    return tally
