"""Data sets of programs, each with a fixed split into training and test programs.

`operators`, the default, has the mix of MLIR RL (arXiv 2409.11068). Its training programs are single
operators with sizes from networks, contractions of lattice QCD, and chains of operators; its test programs
are operators, contractions and whole networks. The sizes are drawn from a fixed seed.
"""

import math
import random
from collections.abc import Callable, Iterator
from functools import partial

from irgym.core.dataset import Dataset, dataset_of
from irgym.envs.linalg.programs.uris import parse_uri

DEFAULT = "operators"
"""Name of the default data set."""

_SHARES = {
    "conv2d": 278,
    "add": 271,
    "maxpool": 250,
    "matmul": 187,
    "relu": 135,
    "depthwise_conv2d": 50,
    "lattice": 79,
    "sequence": 50,
}
"""Number of programs of each family among 1,300; the first five are MLIR RL's numbers."""

MIX = {family: 2 * count for family, count in _SHARES.items()}
"""Number of training programs of each family."""

POINTS = (1 << 12, 1 << 27)
"""Least and greatest number of points of the loop nest of a training program."""

_SEED = 2409

_TEST = (
    "matmul/256x512x1024",
    "matmul/128x768x768",
    "matmul/64x1000x2048",
    "matmul/512x512x512",
    "conv2d/1x3x230x230x64x7x7?stride=2",
    "conv2d/1x64x58x58x64x3x3",
    "conv2d/1x128x30x30x256x3x3?stride=2",
    "conv2d/1x1024x14x14x256x1x1",
    "maxpool/1x64x114x114x3?stride=2",
    "maxpool/1x64x224x224x2?stride=2",
    "maxpool/1x192x57x57x3?stride=2",
    "add/1x64x56x56",
    "add/1x512x28x28",
    "add/512x1024",
    "relu/1x64x112x112",
    "relu/512x2048",
    "resnet18?size=224",
    "mobilenetv2?size=224",
    "vgg11?size=224",
    "lattice/1000",
    "lattice/1001",
    "lattice/1002",
)
"""16 operators with sizes of ResNet, VGG, GoogLeNet and BERT, 3 networks, 3 lattice contractions."""

_TINY_TRAIN = (
    "matmul/32x48x64",
    "batch_matmul/4x16x24x32",
    "conv2d/1x8x10x10x16x3x3",
    "maxpool/1x16x16x16x2?stride=2",
    "add/32x128",
    "relu/1x16x14x14",
    "softmax/16x64",
    "sequence/0?length=2",
)
_TINY_TEST = (
    "matmul/48x32x96",
    "conv2d/1x4x18x18x8x3x3?stride=2",
    "layernorm/16x64",
    "sequence/1000?length=2",
)

_CHANNELS = (3, 8, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 240, 256, 320, 384, 512, 576, 768, 1024)
_PIXELS = (7, 8, 13, 14, 16, 24, 27, 28, 32, 48, 55, 56, 64, 96, 112, 128, 160, 224)
_WIDTHS = (
    10,
    16,
    32,
    48,
    64,
    96,
    100,
    128,
    160,
    192,
    256,
    320,
    384,
    512,
    640,
    768,
    1000,
    1024,
    1280,
    1536,
    2048,
)
_BATCHES = (1, 1, 1, 2, 4, 8)


def _conv2d(rng: random.Random) -> tuple[str, int]:
    kernel, stride = rng.choice((1, 1, 3, 3, 3, 5, 7)), rng.choice((1, 1, 2))
    channels, filters, pixels = rng.choice(_CHANNELS), rng.choice(_CHANNELS[1:]), rng.choice(_PIXELS)
    padded = pixels + kernel - 1
    points = filters * channels * (kernel * ((padded - kernel) // stride + 1)) ** 2
    return f"1x{channels}x{padded}x{padded}x{filters}x{kernel}x{kernel}" + _stride(stride), points


def _depthwise(rng: random.Random) -> tuple[str, int]:
    kernel, stride = rng.choice((3, 3, 3, 5, 7)), rng.choice((1, 1, 2))
    channels, pixels = rng.choice(_CHANNELS[1:]), rng.choice(_PIXELS)
    padded = pixels + kernel - 1
    points = channels * (kernel * ((padded - kernel) // stride + 1)) ** 2
    return f"1x{channels}x{padded}x{padded}x{kernel}x{kernel}" + _stride(stride), points


def _maxpool(rng: random.Random) -> tuple[str, int]:
    kernel, stride = rng.choice(((2, 2), (2, 2), (3, 2), (3, 2), (3, 1), (2, 1), (5, 1)))
    batch, channels, pixels = rng.choice(_BATCHES), rng.choice(_CHANNELS[1:]), rng.choice(_PIXELS)
    points = batch * channels * (kernel * ((pixels - kernel) // stride + 1)) ** 2
    return f"{batch}x{channels}x{pixels}x{pixels}x{kernel}" + _stride(stride), points


def _matmul(rng: random.Random) -> tuple[str, int]:
    m, n, k = (rng.choice(_WIDTHS) for _ in range(3))
    return f"{m}x{n}x{k}", m * n * k


def _elementwise(rng: random.Random) -> tuple[str, int]:
    if rng.random() < 0.4:
        sizes = (rng.choice(_WIDTHS), rng.choice(_WIDTHS))
    else:
        sizes = (rng.choice(_BATCHES), rng.choice(_CHANNELS), *(rng.choice(_PIXELS),) * 2)
    return "x".join(map(str, sizes)), math.prod(sizes)


def _stride(stride: int) -> str:
    return f"?stride={stride}" if stride > 1 else ""


_DRAWS: dict[str, Callable[[random.Random], tuple[str, int]]] = {
    "conv2d": _conv2d,
    "add": _elementwise,
    "maxpool": _maxpool,
    "matmul": _matmul,
    "relu": _elementwise,
    "depthwise_conv2d": _depthwise,
}


def _drawn(family: str, count: int, taken: set[str]) -> Iterator[str]:
    """Yield distinct programs of a family, whose sizes are not in `taken`; the stride does not count."""
    rng = random.Random(f"{family} {_SEED}")
    while count:
        text, points = _DRAWS[family](rng)
        sizes = f"{family}/{text.partition('?')[0]}"
        if POINTS[0] <= points <= POINTS[1] and sizes not in taken:
            taken.add(sizes)
            count -= 1
            yield f"linalg://{family}/{text}"


def _operators() -> Dataset:
    taken = {name.partition("?")[0] for name in _TEST}
    train = [uri for family in _DRAWS for uri in _drawn(family, MIX[family], taken)]
    train += [f"linalg://lattice/{seed}" for seed in range(MIX["lattice"])]
    train += [
        parse_uri(f"linalg://sequence/{seed}?length={2 + seed % 5}").uri for seed in range(MIX["sequence"])
    ]
    return _dataset(
        DEFAULT, "MLIR RL's mix: operators, contractions, chains; networks in the test", train, _TEST
    )


def _tiny() -> Dataset:
    train = [f"linalg://{name}" for name in _TINY_TRAIN]
    return _dataset("tiny", "small operators, for trying things out", train, _TINY_TEST)


def _dataset(name: str, description: str, train: list[str], test: tuple[str, ...]) -> Dataset:
    return Dataset(name, description, tuple(train), tuple(f"linalg://{uri}" for uri in test))


DATASETS: dict[str, Callable[[], Dataset]] = {DEFAULT: _operators, "tiny": _tiny}
"""The data sets, the default first."""

dataset = partial(dataset_of, DATASETS)
"""Return a data set by its name."""
