"""Random contractions and nests, for the generators to be compared on."""

from collections.abc import Callable
from random import Random

import pytest

from irgym.envs.loops.codegen.plan import vectorisable
from irgym.envs.loops.contraction import Contraction, batched_matmul, convolution, matmul, parse_uri
from irgym.envs.loops.nest import Loop, Mark, Nest

RandomProgram = Callable[[Random], tuple[Contraction, Nest]]


def contraction_by(random: Random) -> Contraction:
    size = random.randint
    match random.randrange(6):
        case 0 | 1:
            return matmul(size(1, 50), size(1, 70), size(1, 50))
        case 2:
            return batched_matmul(size(1, 4), size(1, 12), size(1, 40), size(1, 20))
        case 3:
            channels, filters = size(1, 20), size(1, 20)
            kernel = (size(1, 3), size(1, 3))
            return convolution(size(1, 2), size(1, 5), size(1, 6), channels, filters, kernel, size(1, 2))
        case 4:  # both inputs run along the reduction: lanes can be summed
            return parse_uri(f"loops://einsum/mk,nk->mn?m={size(1, 20)}&n={size(1, 20)}&k={size(1, 70)}")
        case _:  # the output is transposed: only scalar code writes along its rows
            return parse_uri(f"loops://einsum/mk,kn->nm?m={size(1, 40)}&n={size(1, 20)}&k={size(1, 20)}")


def nest_by(random: Random, contraction: Contraction) -> Nest:
    chains: list[list[Loop]] = []
    for dim, size in contraction.dims:
        steps = [1]
        while random.random() < 0.6 and steps[-1] * 2 < size:
            steps.append(steps[-1] * random.choice([2, 3, 4, 8, 16, 32]))
        chains.append([Loop(dim, step) for step in reversed(steps)])
    loops: list[Loop] = []
    while chains := [chain for chain in chains if chain]:
        loops.append(random.choice(chains).pop(0))
    marks = [Mark.UNROLL if random.random() < 0.2 else Mark.PLAIN for _ in loops]
    vectors = [at for at, loop in enumerate(loops) if loop.step == 1 and vectorisable(contraction, loop.dim)]
    if vectors and random.random() < 0.5:
        marks[random.choice(vectors)] = Mark.VECTORISE
    return Nest(tuple(Loop(loop.dim, loop.step, mark) for loop, mark in zip(loops, marks, strict=True)))


@pytest.fixture(scope="session")
def random_program() -> RandomProgram:
    """Return a function that draws a small contraction and a legal nest of it."""

    def draw(random: Random) -> tuple[Contraction, Nest]:
        contraction = contraction_by(random)
        return contraction, nest_by(random, contraction)

    return draw
