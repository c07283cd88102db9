"""Random chains of operators; each operator consumes the result of the one before."""

import itertools
import math
import random
from dataclasses import dataclass

POINTS = 1 << 26
"""Greatest number of points of the loop nest of one operator."""


@dataclass(frozen=True)
class Step:
    """One operator of a chain.

    Attributes:
        name: matmul, conv2d, maxpool, bias, add, relu, softmax or layernorm.
        sizes: Columns of the right operand (matmul); filters, kernel and stride (conv2d); kernel and stride
            (maxpool); empty for the others.
    """

    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chain:
    """A chain of operators.

    Attributes:
        start: Shape of the first input: rows and columns, or NCHW.
        steps: The operators in order.
    """

    start: tuple[int, ...]
    steps: tuple[Step, ...]


def windows(size: int, kernel: int, stride: int) -> int:
    """Return the number of windows: the size of a convolution's or pooling's result along one axis."""
    return (size - kernel) // stride + 1


def sequence(seed: int, length: int) -> Chain:
    """Return the chain of a seed, on a matrix or on images; its first operator reduces."""
    rng = random.Random(f"sequence {seed} {length}")
    images = rng.random() < 0.5
    start = _image(rng) if images else (rng.choice(_ROWS), rng.choice(_COLUMNS))
    heavy, light = (_WINDOWED, _ON_IMAGES) if images else (("matmul",), _ON_MATRICES)
    shape, steps = start, list[Step]()
    while len(steps) < length:
        name = rng.choice(heavy if not steps or rng.random() < _HEAVY else light)
        candidates = [step for step in _CHOICES.get(name, (Step(name),)) if _fits(shape, step)]
        if candidates and (not steps or name != steps[-1].name):
            steps.append(rng.choice(candidates))
            shape = result(shape, steps[-1])
    return Chain(start, tuple(steps))


def result(shape: tuple[int, ...], step: Step) -> tuple[int, ...]:
    """Return the shape of an operator's result."""
    if step.name == "matmul":
        return (shape[0], *step.sizes)
    if step.name in _WINDOWED:
        kernel, stride = step.sizes[-2:]
        channels = step.sizes[0] if step.name == "conv2d" else shape[1]
        return (shape[0], channels, *(windows(size, kernel, stride) for size in shape[2:]))
    return shape


_HEAVY = 0.4
_ROWS = (16, 32, 64, 96, 128, 256)
_COLUMNS = (32, 64, 96, 128, 256, 384, 512)
_PIXELS = (14, 16, 28, 32, 56, 64)
_WINDOWED = ("conv2d", "maxpool")
_ON_IMAGES = ("relu", "bias", "add")
_ON_MATRICES = ("relu", "bias", "add", "softmax", "layernorm")
_CHOICES = {
    "matmul": tuple(Step("matmul", (columns,)) for columns in _COLUMNS),
    "conv2d": tuple(Step("conv2d", sizes) for sizes in itertools.product((8, 16, 32, 64), (1, 3, 5), (1, 2))),
    "maxpool": tuple(Step("maxpool", sizes) for sizes in itertools.product((2, 3), (1, 2))),
}


def _image(rng: random.Random) -> tuple[int, ...]:
    pixels = rng.choice(_PIXELS)
    return rng.choice((1, 1, 2)), rng.choice((3, 8, 16, 32, 64)), pixels, pixels


def _fits(shape: tuple[int, ...], step: Step) -> bool:
    """Say whether a step's window fits into its input, and its loop nest has at most `POINTS` points."""
    summed = 1
    if step.name == "matmul":
        summed = shape[1]
    elif step.name in _WINDOWED:
        kernel = step.sizes[-2]
        if kernel > min(shape[2:]):
            return False
        summed = kernel**2 * (shape[1] if step.name == "conv2d" else 1)
    return math.prod(result(shape, step)) * summed <= POINTS
