"""The checks of loops, tried with wrong results and with right schedules; see `checks.py`."""

import random
from collections.abc import Iterator, Sequence

import numpy as np
from fuzz.loops.schedules import random_program, random_schedule
from mutations import MUTATIONS, Array

from irgym.core.cost import Validation
from irgym.envs.loops import runner
from irgym.envs.loops.checking.inputs import Draw, first_products, prepared
from irgym.envs.loops.compiling.backends import BACKENDS
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.programs.contraction import Contraction, parse_uri
from irgym.measure.checking.problem import validation

LONG = ("loops://mm/4x4x400000", "loops://mm/1x1x2000000")
"""Programs of long sums, where a single product is easiest to miss."""


def mutations(seed: int, count: int) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield for each pair the program, the mutation, whether it would be validated, and whether it is wrong.

    A mutation is that of a program: it is made of the right results on each of the inputs. It is wrong where
    it changes a result at all on the whole numbers.
    """
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    for number in range(0, count, len(MUTATIONS) + 1):
        uri = draw.choice(LONG) if number % 10 == 0 else random_program(draw)
        seeds = draw.randrange(1000), draw.randrange(1000)
        problems = [
            prepared(uri, first, draw).problem
            for first, draw in zip(seeds, (Draw.WHOLE, Draw.NORMAL), strict=True)
        ]
        contraction = parse_uri(uri)
        rights = [problem.expected[0].values for problem in problems]
        mutants = {name: [mutate(right, rng) for right in rights] for name, mutate in MUTATIONS.items()}
        mutants["one product missing"] = [
            _one_short(contraction, problem.inputs, right, rng)
            for problem, right in zip(problems, rights, strict=True)
        ]
        for name, wrong in mutants.items():
            agreements = [problem.judge([result]) for problem, result in zip(problems, wrong, strict=True)]
            accepted = validation(problems, agreements, "").checked
            yield uri, name, accepted, not np.array_equal(wrong[0], rights[0])


def _one_short(
    contraction: Contraction, inputs: Sequence[Array], right: Array, rng: np.random.Generator
) -> Array:
    """Leave the first product out of one sum."""
    place = tuple(int(rng.integers(size)) for size in right.shape)
    wrong = right.copy()
    wrong[place] -= first_products(contraction, *inputs)[place]
    return wrong


def schedules(seed: int, count: int) -> Iterator[tuple[str, str, Validation]]:
    """Yield for each right schedule the program, its text and the validation."""
    draw = random.Random(seed)
    generators = [backend.name for backend in BACKENDS if backend.available().available]
    for number in range(count):
        uri = random_program(draw)
        name = generators[number % len(generators)]
        task = LOOPS.task(uri, name)
        schedule, state = random_schedule(task, draw)
        yield uri, schedule.text(task.space), runner.validate(uri, state.nest, name, task.target, 3, number)
