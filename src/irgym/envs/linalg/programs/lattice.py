"""Random contractions shaped like those of lattice QCD: many short loops, several of them reductions.

Correlation functions multiply propagators, which have 3 colours, 4 spins and a few longer dimensions
(sites, eigenvectors), and sum over most of them (arXiv 2409.11068 trains on such loops). Complex numbers are
left out.
"""

import math
import random
from dataclasses import dataclass
from functools import cached_property

POINTS = (1 << 19, 1 << 25)
"""Least and greatest number of points of the loop nest."""

MAX_LOOPS = 12
"""Greatest number of loops."""

_ELEMENTS = 1 << 22
_SHORT = (2, 3, 3, 4, 4)
_LONG = (8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Contraction:
    """A product of tensors, summed over the indices that the result lacks.

    Attributes:
        subscripts: In einsum's notation: `abc,bd,cd->a`.
        extents: Pairs of an index and its size, the indices of the result first.
    """

    subscripts: str
    extents: tuple[tuple[str, int], ...]

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the inputs."""
        return tuple(self._shape(access) for access in self.subscripts.partition("->")[0].split(","))

    @cached_property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self._shape(self.subscripts.partition("->")[2])

    @property
    def points(self) -> int:
        """Points of the loop nest."""
        return math.prod(size for _, size in self.extents)

    def _shape(self, access: str) -> tuple[int, ...]:
        sizes = dict(self.extents)
        return tuple(sizes[letter] for letter in access)


def lattice(seed: int) -> Contraction:
    """Return the contraction of a seed: 2 to 4 inputs, 6 to 12 loops, 2 to 5 of them reductions."""
    rng = random.Random(f"lattice {seed}")
    while True:
        contraction = _draw(rng)
        largest = max(math.prod(shape) for shape in (*contraction.inputs, contraction.output))
        if POINTS[0] <= contraction.points <= POINTS[1] and largest <= _ELEMENTS:
            return contraction


def _draw(rng: random.Random) -> Contraction:
    letters = "abcdefghijkl"[: rng.randint(6, MAX_LOOPS)]
    kept = letters[: -rng.randint(2, min(5, len(letters) - 2))]
    long = rng.sample(letters, rng.randint(1, 3))
    extents = tuple((letter, rng.choice(_LONG if letter in long else _SHORT)) for letter in letters)
    count = rng.choice((2, 2, 3, 3, 4))
    accesses: list[list[str]] = [[] for _ in range(count)]
    for letter in letters:
        # A summed index joins at least two inputs: otherwise its input could be summed beforehand.
        times = rng.randint(1, 2) if letter in kept else rng.randint(2, count)
        for place in rng.sample(range(count), times):
            accesses[place].append(letter)
    if not all(accesses):
        return _draw(rng)
    for access in accesses:
        rng.shuffle(access)
    return Contraction(",".join(map("".join, accesses)) + f"->{kept}", extents)
