"""Data sets of contractions, each with a fixed split into training and test programs."""

import random
import re
from collections.abc import Callable, Iterable, Sequence

from irgym.base.errors import ProgramError
from irgym.core.dataset import Dataset, NoDatasetError, divided
from irgym.core.uri import Option, read_options
from irgym.envs.loops.programs.contraction import parse_uri

REAL_CONVOLUTIONS = (
    # ResNet-18 and ResNet-50, images of 224x224: output rows, columns, channels, filters, kernel, stride
    (112, 112, 3, 64, 7, 2),
    (56, 56, 64, 64, 1, 1),
    (56, 56, 64, 64, 3, 1),
    (56, 56, 64, 256, 1, 1),
    (56, 56, 256, 64, 1, 1),
    (28, 28, 64, 128, 3, 2),
    (28, 28, 64, 128, 1, 2),
    (28, 28, 128, 128, 3, 1),
    (28, 28, 256, 128, 1, 1),
    (28, 28, 128, 512, 1, 1),
    (28, 28, 256, 512, 1, 2),
    (28, 28, 512, 128, 1, 1),
    (14, 14, 128, 256, 3, 2),
    (14, 14, 128, 256, 1, 2),
    (14, 14, 256, 256, 3, 1),
    (14, 14, 512, 256, 1, 1),
    (14, 14, 256, 1024, 1, 1),
    (14, 14, 1024, 256, 1, 1),
    (7, 7, 256, 512, 3, 2),
    (7, 7, 256, 512, 1, 2),
    (7, 7, 512, 512, 3, 1),
    (7, 7, 512, 2048, 1, 1),
    (7, 7, 2048, 512, 1, 1),
    # VGG-11 and VGG-16
    (224, 224, 3, 64, 3, 1),
    (224, 224, 64, 64, 3, 1),
    (112, 112, 64, 128, 3, 1),
    (112, 112, 128, 128, 3, 1),
    (56, 56, 128, 256, 3, 1),
    (56, 56, 256, 256, 3, 1),
    (28, 28, 256, 512, 3, 1),
    (28, 28, 512, 512, 3, 1),
    (14, 14, 512, 512, 3, 1),
    # MobileNetV2: the first layer and the pointwise ones
    (112, 112, 3, 32, 3, 2),
    (112, 112, 32, 16, 1, 1),
    (112, 112, 16, 96, 1, 1),
    (56, 56, 96, 24, 1, 1),
    (56, 56, 24, 144, 1, 1),
    (28, 28, 144, 32, 1, 1),
    (28, 28, 32, 192, 1, 1),
    (28, 28, 192, 32, 1, 1),
    (14, 14, 192, 64, 1, 1),
    (14, 14, 64, 384, 1, 1),
    (14, 14, 384, 64, 1, 1),
    (14, 14, 384, 96, 1, 1),
    (14, 14, 96, 576, 1, 1),
    (7, 7, 576, 160, 1, 1),
    (7, 7, 160, 960, 1, 1),
    (7, 7, 960, 320, 1, 1),
    (7, 7, 320, 1280, 1, 1),
    # GoogLeNet: the first inception blocks
    (28, 28, 192, 64, 1, 1),
    (28, 28, 192, 96, 1, 1),
    (28, 28, 96, 128, 3, 1),
    (28, 28, 16, 32, 5, 1),
    (14, 14, 480, 192, 1, 1),
    (14, 14, 96, 208, 3, 1),
    (14, 14, 16, 48, 5, 1),
)
"""Layers of published image networks, batch 1; the shapes are those of the networks' papers."""


def _split(name: str, description: str, uris: Iterable[str]) -> Dataset:
    return Dataset(name, description, *divided({uri: uri for uri in uris}))


def _mm_range(name: str, low: int, high: int) -> Dataset:
    sizes = range(low, high + 1, 16)
    return _split(
        name,
        f"all matmuls with M, N, K in {low} to {high} by 16 (LoopTune)",
        (f"loops://mm/{m}x{n}x{k}" for m in sizes for n in sizes for k in sizes),
    )


def _convolutions() -> Dataset:
    uris = (
        f"loops://conv/1x{h}x{w}x{c}x{f}x{k}x{k}" + (f"?stride={stride}" if stride > 1 else "")
        for h, w, c, f, k, stride in REAL_CONVOLUTIONS
    )
    return _split("conv_networks", "convolution layers of ResNet, VGG, MobileNetV2 and GoogLeNet", uris)


def _attention() -> Dataset:
    uris: list[str] = []
    for heads in (8, 12, 16):
        for length in (32, 64, 128, 256):
            for width in (32, 64):
                uris += [
                    f"loops://bmm/{heads}x{length}x{length}x{width}",
                    f"loops://bmm/{heads}x{length}x{width}x{length}",
                ]
    return _split("bmm_attention", "the two batched matmuls of attention: heads, length, width", uris)


MOST_FLOPS = 3_000_000_000
"""Greatest number of operations of a program of `contractions`; longer ones are rarely measured."""


def _contractions() -> Dataset:
    """Return programs of all kinds, grouped by kind, the smallest first."""
    kinds = (
        [*_every(_mm_range("", 64, 256))[::12], *generate("mm", 180, 16, 1100, 0)],
        [*_every(_attention()), *generate("bmm", 90, 16, 256, 0)],
        [*_every(_convolutions()), *generate("conv", 120, 16, 256, 0)],
    )
    uris: list[str] = []
    for kind in kinds:
        flops = {uri: parse_uri(uri).flops for uri in kind}
        uris += sorted((uri for uri in flops if flops[uri] <= MOST_FLOPS), key=flops.__getitem__)
    return _split("contractions", "matmuls, batched matmuls and convolutions of all sizes", uris)


def _every(dataset: Dataset) -> Sequence[str]:
    return (*dataset.train, *dataset.test)


FIXED: dict[str, Callable[[], Dataset]] = {
    "mm64_256_16_range": lambda: _mm_range("mm64_256_16_range", 64, 256),
    "mm64_128_16_range": lambda: _mm_range("mm64_128_16_range", 64, 128),
    "conv_networks": _convolutions,
    "bmm_attention": _attention,
    "contractions": _contractions,
}
"""The data sets with a fixed list of programs."""

MOST = 100_000
"""Greatest number of programs of a generated data set."""

GENERATED = "FAMILY_random:count=N,low=L,high=H,seed=S (FAMILY: mm, bmm or conv)"
"""The form of the names of generated data sets."""

_OPTIONS = (Option("count", 100, high=MOST), Option("low", 16), Option("high", 256), Option("seed", 0, low=0))


def generate(family: str, count: int, low: int, high: int, seed: int) -> tuple[str, ...]:
    """Return URIs of random programs, with all sizes log-uniform in low..high, including odd ones.

    The batch of `bmm` is in 1..16. The filter of `conv` is 1, 3 or 5 wide, with stride 1 or 2.

    Raises:
        ProgramError: An argument is invalid.
    """
    if not 1 <= count <= MOST or not 1 <= low <= high:
        raise ProgramError(
            f"a generated data set needs count of at least 1 and at most {MOST}, and 1 <= low <= high"
        )
    rng = random.Random(f"{family} {seed}")

    def size() -> int:
        return min(high, int(low * (high / low) ** rng.random() + 0.5))

    def program() -> str:
        if family == "mm":
            return f"loops://mm/{size()}x{size()}x{size()}"
        if family == "bmm":
            return f"loops://bmm/{rng.randint(1, 16)}x{size()}x{size()}x{size()}"
        kernel, stride = rng.choice((1, 3, 5)), rng.choice((1, 2))
        pixels = max(1, size() // 4)
        uri = f"loops://conv/1x{pixels}x{pixels}x{size()}x{size()}x{kernel}x{kernel}"
        return uri + ("?stride=2" if stride == 2 else "")

    if family not in ("mm", "bmm", "conv"):
        raise ProgramError(f"there is no family {family!r} to generate: choose mm, bmm or conv")
    return tuple(parse_uri(program()).uri for _ in range(count))


def dataset(name: str) -> Dataset:
    """Return a data set, fixed or generated.

    Raises:
        NoDatasetError: There is none of that name; the message lists the valid names.
        ProgramError: An option of a generated one is invalid.
    """
    if name in FIXED:
        return FIXED[name]()
    match = re.fullmatch(r"([a-z]+)_random(?::(.+))?", name, re.DOTALL)
    if not match:
        raise NoDatasetError(f"there is no data set {name!r}: choose among {', '.join(FIXED)} or {GENERATED}")
    given = read_options(name, match.group(2) or "", _OPTIONS, "a generated data set", ",")
    options = {option.name: int(given.get(option.name, option.default)) for option in _OPTIONS}
    uris = generate(match.group(1), **options)
    return _split(name, f"random {match.group(1)} programs", uris)
