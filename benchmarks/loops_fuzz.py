"""Correctness: random schedules on random odd shapes against numpy in float64, for each generator.

python benchmarks/loops_fuzz.py --schedules 5000
"""

import random
import time
from dataclasses import dataclass

import tyro

from irgym.core.actions import Action
from irgym.core.cost import Validation
from irgym.core.schedule import Schedule, replay
from irgym.envs.loops.compiling.backends import BACKENDS
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.state import LoopsState
from irgym.envs.loops.task import LoopsTask
from irgym.measure.isolation.child import Child, Limits, Returned


@dataclass(frozen=True)
class Options:
    """Options of the fuzzer."""

    schedules: int = 5000
    """Random schedules for each generator."""
    generators: tuple[str, ...] = ()
    """Generators to check; by default all available ones."""
    seed: int = 0
    """Seed of programs and schedules."""


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


def check(generator: str, options: Options) -> int:
    """Check one generator; return the number of mismatches."""
    rng = random.Random(options.seed)
    calls, texts = [], []
    for _ in range(options.schedules):
        task = LOOPS.task(random_program(rng), generator)
        schedule, state = random_schedule(task, rng)
        text = schedule.text(task.space)
        assert replay(task, Schedule.parse(text, task.space)) == state, (
            f"fork is not replay: {task.uri} {text}"
        )
        calls.append(task.validation(state, inputs=1, seed=rng.randrange(1 << 30)))
        texts.append(f"{task.uri} {text!r}")
    started, wrong, worst = time.perf_counter(), 0, 0.0
    with Child(Limits()) as child:
        for text, reply in zip(texts, child.stream(calls), strict=True):
            if isinstance(reply, Returned) and isinstance(reply.value, Validation) and reply.value.ok:
                worst = max(worst, reply.value.error)
            else:
                wrong += 1
                print(f"MISMATCH {generator} {text}: {reply}")
    seconds = time.perf_counter() - started
    print(
        f"{generator}: {options.schedules} schedules, {wrong} mismatches, greatest error {worst:.2g}, "
        f"{options.schedules / seconds:.0f} checked/s"
    )
    return wrong


def main(options: Options) -> None:
    """Check all generators."""
    generators = options.generators or tuple(
        backend.name for backend in BACKENDS if backend.available().available
    )
    wrong = sum(check(generator, options) for generator in generators)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
