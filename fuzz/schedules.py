"""Random schedules of loops and linalg: no result may be wrong, on special numbers and extremes neither.

    python fuzz/schedules.py --count 5000

Loops are compared with numpy in float64, operations of linalg with the program as MLIR's own passes lower it.
Each schedule runs in an isolated process on whole numbers, on random ones, and on infinities, NaN, zeros of
either sign, subnormal and large numbers. Every second schedule of linalg is a sketch: random ones hardly ever
pack and vectorise.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from irgym.core.cost import Call, Validation
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg.environment import LIMITS, LINALG
from irgym.envs.loops.compiling.backends import BACKENDS
from irgym.envs.loops.environment import LOOPS
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Raised, Returned

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from linalg_files import FILES
from linalg_fuzz import PROGRAMS, random_state
from loops_fuzz import random_program, random_schedule

TOGETHER = 8
"""Schedules of a program of linalg: what they are checked on is made once."""


@dataclass(frozen=True)
class Options:
    """Options of the campaign."""

    count: int = 5000
    """Schedules of both environments."""
    seconds: float = float("inf")
    """Time after which no further schedule is drawn."""
    seed: int = 0
    """Seed of programs, schedules and inputs."""
    environments: tuple[str, ...] = ("loops", "linalg")
    """Environments, which take turns."""
    target: str | None = None
    """Instruction set, such as x86-64-v3; by default this machine."""
    linalg_share: float = 0.3
    """Share of schedules of linalg, which take longer."""


@dataclass(frozen=True)
class Drawn:
    """A schedule, as text, and the call that validates it."""

    environment: str
    text: str
    call: Call


def loops_schedules(options: Options) -> Iterator[Drawn]:
    """Yield random schedules of loops for each code generator in turn."""
    draw = random.Random(options.seed)
    generators = [backend.name for backend in BACKENDS if backend.available().available]
    while True:
        for generator in generators:
            task = LOOPS.task(random_program(draw), generator, options.target)
            schedule, state = random_schedule(task, draw)
            call = task.validation(state, inputs=2, seed=draw.randrange(1 << 30))
            yield Drawn("loops", f"{generator} {task.uri} {schedule.text(task.space)!r}", call)


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


def linalg_schedules(options: Options, folder: Path) -> Iterator[Drawn]:
    """Yield random schedules and sketches of linalg, some of a program after one another."""
    rng = np.random.default_rng(options.seed)
    for name, text in FILES.items():
        (folder / f"{name}.mlir").write_text(text)
    fixed = [*PROGRAMS, *(f"linalg:{folder / name}.mlir" for name in FILES)]
    while True:
        uri = str(rng.choice(fixed)) if rng.integers(3) == 0 else operator(rng)
        task = LINALG.task(uri, target=options.target)
        seed = int(rng.integers(1 << 30))
        for number in range(TOGETHER):
            if number % 2:
                state, schedule = random_state(task, rng)
            else:
                schedule = Schedule(tuple(task.sketch(rng)))
                state = replay(task, schedule)
            call = task.validation(state, inputs=2, seed=seed)
            yield Drawn("linalg", f"{uri} {schedule.text(task.space)!r}", call)


def drawn(options: Options, folder: Path) -> Iterator[Drawn]:
    """Yield schedules of both environments, in their shares."""
    rng = random.Random(options.seed)
    sources = {
        name: source
        for name, source in (
            ("loops", loops_schedules(options)),
            ("linalg", linalg_schedules(options, folder)),
        )
        if name in options.environments
    }
    for _ in range(options.count):
        name = "linalg" if rng.random() < options.linalg_share else "loops"
        yield next(sources.get(name) or next(iter(sources.values())))


def outcome(reply: object) -> tuple[str, str]:
    """Return what came of a validation, in a word, and what was said."""
    if isinstance(reply, Returned) and isinstance(reply.value, Validation):
        found = reply.value
        return ("wrong", found.detail) if not found.ok else ("blind" if found.blind else "right", found.blind)
    if isinstance(reply, Raised) and reply.user_error is not None:
        return "refused", reply.message
    return "failed", reply.message if isinstance(reply, Raised) else str(reply)


def main(options: Options) -> int:
    """Run the campaign; return the exit status."""
    started = time.monotonic()
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder, closing(Child(LIMITS)) as child:
        for check in drawn(options, Path(folder)):
            if time.monotonic() - started > options.seconds:
                break
            word, said = outcome(child.call(check.call))
            counts[check.environment, word] += 1
            if word not in ("right", "blind"):
                print(f"{word.upper()} {check.environment} {check.text}: {said}", flush=True)
    told = ", ".join(f"{name} {word} {count}" for (name, word), count in sorted(counts.items()))
    wrong = sum(count for (_, word), count in counts.items() if word in ("wrong", "failed"))
    print(f"{counts.total()} schedules, {wrong} wrong, {time.monotonic() - started:.0f} s: {told}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(Options, description=__doc__)))
