"""Random schedules and sketches of linalg, compared with the program as MLIR lowers it.

MLIR must accept all. Every second schedule is a sketch: random ones hardly ever pack and vectorise. Each
runs in an isolated process on whole numbers, on random ones, and on infinities, NaN, zeros of either
sign, subnormal and large numbers; the first of a seed is also measured.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fuzz.fuzzer import Tally
from fuzz.linalg.files import FILES
from fuzz.validating import validated
from irgym.core.cost import Call
from irgym.core.schedule import Schedule, replay
from irgym.core.target import LEVELS
from irgym.envs.linalg.environment import LIMITS, LINALG
from irgym.envs.linalg.state import LinalgState
from irgym.envs.linalg.task import LinalgTask
from irgym.measure.isolation.child import Child, Returned
from irgym.measure.target import runs_here
from irgym.measure.timing import Timing

PROGRAMS = (
    "linalg://matmul/48x64x32",
    "linalg://batch_matmul/4x24x32x16",
    "linalg://conv2d/1x8x18x18x16x3x3",
    "linalg://conv2d/2x3x17x17x8x5x5?stride=2",
    "linalg://conv2d/2x6x19x33x10x3x3?stride=2",
    "linalg://conv2d/1x24x14x14x40x1x1",
    "linalg://matmul/50x70x90",
    "linalg://depthwise_conv2d/1x12x20x20x3x3",
    "linalg://depthwise_conv2d/1x12x21x35x3x3?stride=2",
    "linalg://maxpool/1x16x24x24x3?stride=3",
    "linalg://maxpool/1x8x15x15x3?stride=2",
    "linalg://add/12x16x28",
    "linalg://relu/64x96",
    "linalg://softmax/32x48",
    "linalg://layernorm/32x48",
    "linalg://transformer?length=12&width=24",
    *(f"linalg://sequence/{seed}?length={2 + seed % 5}" for seed in range(10)),
)
"""Programs of every operator, small so that the originals do not take most of the time."""

ONCE = Timing(budget_ns=1, fewest=1, most=1)

TOGETHER = 4
"""Schedules of a seed, all of one program: the inputs to check it on are made once."""


def random_state(task: LinalgTask, rng: np.random.Generator) -> tuple[LinalgState, Schedule]:
    """Return the end of a random episode, and its schedule."""
    state, actions = task.initial(), []
    while not task.terminal(state):
        actions.append(task.space.sample(task.mask(state), rng))
        state = task.step(state, actions[-1])
    return state, Schedule(tuple(actions))


def drawn_state(task: LinalgTask, sketch: bool, rng: np.random.Generator) -> tuple[LinalgState, Schedule]:
    """Return a terminal state and its schedule, random or a sketch."""
    if not sketch:
        return random_state(task, rng)
    schedule = Schedule(tuple(task.sketch(rng)))
    return replay(task, schedule), schedule


def operator(rng: np.random.Generator) -> str:
    """Return an operator of random sizes, which are odd more often than experts choose them."""

    def size(most: int) -> int:
        return int(rng.integers(1, most + 1))

    kernel, stride = size(3), size(2)
    height, width = kernel + size(12), kernel + size(20)
    option = f"?stride={stride}"
    return str(
        rng.choice(
            [
                f"linalg://matmul/{size(40)}x{size(50)}x{size(40)}",
                f"linalg://batch_matmul/{size(4)}x{size(20)}x{size(20)}x{size(20)}",
                f"linalg://conv2d/{size(2)}x{size(6)}x{height}x{width}x{size(12)}x{kernel}x{kernel}{option}",
                f"linalg://depthwise_conv2d/1x{size(12)}x{height}x{width}x{kernel}x{kernel}{option}",
                f"linalg://maxpool/1x{size(9)}x{height}x{width}x{kernel}{option}",
                f"linalg://add/{size(8)}x{size(20)}x{size(20)}",
                f"linalg://relu/{size(40)}x{size(40)}",
                f"linalg://softmax/{size(30)}x{size(40)}",
                f"linalg://layernorm/{size(30)}x{1 + size(40)}",
            ]
        )
    )


def program(rng: np.random.Generator, folder: Path) -> str:
    """Return a random operator, or a fixed program every third time; files are written to a folder."""
    if rng.integers(3):
        return operator(rng)
    place = int(rng.integers(len(PROGRAMS) + len(FILES)))
    if place < len(PROGRAMS):
        return PROGRAMS[place]
    name, text = list(FILES.items())[place - len(PROGRAMS)]
    (folder / f"{name}.mlir").write_text(text)
    return f"linalg:{folder / name}.mlir"


def run(seed: int) -> Tally:
    """Check schedules of a program, for this machine or an older one."""
    rng, tally = np.random.default_rng(seed), Tally()
    with tempfile.TemporaryDirectory() as folder, Child(LIMITS) as child:
        targets = [None, None, *(level.name for level in LEVELS if runs_here(level))]
        task = LINALG.task(program(rng, Path(folder)), target=targets[int(rng.integers(len(targets)))])
        inputs = int(rng.integers(1 << 30))
        for number in range(TOGETHER):
            state, schedule = drawn_state(task, number % 2 == 1, rng)
            subject = f"{task.uri} for {task.target_text} {schedule.text(task.space)!r}"
            tally.add(*validated(child, task.validation(state, 2, inputs), subject))
            if not number:
                tally.findings += measured(child, task, state, subject)
                tally.notes["measured"] += 1
    return tally


def measured(child: Child, task: LinalgTask, state: LinalgState, subject: str) -> Iterator[str]:
    """Measure a schedule, and yield a finding if that fails."""
    call = Call("irgym.envs.linalg.runner:measure", (task.text, task.script(state), task.target, ONCE))
    reply = child.call(call)
    if not isinstance(reply, Returned):
        yield f"not measured: {subject}: {reply}"
    elif not reply.value.ok:
        yield f"measured as {reply.value.outcome.value}: {subject}: {reply.value.detail}"
