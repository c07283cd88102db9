"""Sizes at which a model with open dimensions runs, where its user names none.

Names and places of dimensions tell what they are; ONNX Runtime tells which sizes the model accepts.
"""

# The types of onnx are incomplete.
# pyright: reportUnknownMemberType=false

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import onnx

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of
from irgym.envs.graph.programs.metadata import write_sizes

SECONDS = 25.0
"""Time for trying sizes."""

SEED = 20261129
"""Seed of the inputs on which sizes are tried."""

BATCH = (1, 2)
IMAGE = (320, 224, 256, 640, 512, 416, 128, 112, 96, 64, 48, 32, 28)
SEQUENCE = (128, 256, 512, 64, 32, 576, 100, 16, 4, 2, 1)
SAMPLES = (16_000, 512, 576, 1_024, 8_000, 1_600, 128)
OTHER = (64, 16, 4, 1, 2)

WORDS: tuple[tuple[tuple[str, ...], Sequence[int]], ...] = (
    (("batch", "num_images"), BATCH),
    (("height", "width", "_h", "_w"), IMAGE),
    (("sample", "audio", "wave"), SAMPLES),
    (("seq", "len", "token", "time", "frame", "step"), SEQUENCE),
)
"""Parts of the names of dimensions, and the sizes that they have often."""

CHANNELS = 4
"""Greatest number of channels of an image."""


@dataclass(frozen=True)
class Dimension:
    """An open dimension of an input.

    Attributes:
        name: Its name.
        axis: Its place.
        shape: The sizes of the input; None where they are open.
        floating: Whether the input holds floating-point numbers.
    """

    name: str
    axis: int
    shape: tuple[int | None, ...]
    floating: bool

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes to try, the likeliest first."""
        rank, name = len(self.shape), self.name.lower()
        image = rank == 4 and any(
            size is not None and size <= CHANNELS for size in (self.shape[1], self.shape[3])
        )
        if image and self.axis > 0:
            return IMAGE
        for words, sizes in WORDS:
            if any(word in name for word in words):
                return sizes
        if self.axis == 0 and rank > 1:
            return BATCH
        if rank == 4 and self.axis > 1:
            return IMAGE
        if rank == 2 and self.floating and self.axis == 1:
            return SAMPLES
        return SEQUENCE if rank > 1 else OTHER


def proposed(
    model: onnx.ModelProto, dimensions: Sequence[Dimension], given: Mapping[str, int], name: str
) -> dict[str, int]:
    """Return sizes of all open dimensions at which the model runs.

    Args:
        model: The model, whose open dimensions have names. Its metadata are changed.
        dimensions: The open dimensions.
        given: Sizes that the user names.
        name: The model's name in messages.

    Raises:
        ProgramError: No such sizes are found, or the range of an integer input is unknown.
    """
    from irgym.envs.graph.running.sessions import CompileError, Opened

    choices = {dimension.name: dimension.sizes for dimension in reversed(dimensions)}
    choices = {name: (given[name],) if name in given else choices[name] for name in sorted(choices)}
    try:
        program = Opened(model, (), threads=1)
    except CompileError as error:
        raise ProgramError(f"{name} does not run: {error}") from error
    reasons: list[str] = []

    def runs(sizes: Mapping[str, int]) -> bool:
        write_sizes(model, sizes)
        feeds = draw(inputs_of(model), ranges_of(model), SEED)
        try:
            program.run(feeds)
        except CompileError as error:
            reasons.append(str(error))
            return False
        return True

    until = time.monotonic() + SECONDS
    for sizes in _tries(choices):
        if runs(sizes):
            return _enlarged(sizes, choices, lambda sizes: time.monotonic() < until and runs(sizes))
        if time.monotonic() > until:
            break
    query = "&".join(f"{name}=1" for name in choices)
    raise ProgramError(
        f"{name} leaves sizes open ({', '.join(choices)}), and does not run at those that irgym tried "
        f"({reasons[-1]}): give them, as in graph:{name}?{query}"
    )


def _tries(choices: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Yield sizes to try: first dimensions of a kind with the same size, then all combinations."""
    kinds = list(dict.fromkeys(map(tuple, choices.values())))
    for chosen in sorted(product(*(range(len(kind)) for kind in kinds)), key=sum):
        by_kind = dict(zip(kinds, chosen, strict=True))
        yield {name: sizes[by_kind[tuple(sizes)]] for name, sizes in choices.items()}
    for chosen in product(*choices.values()):
        yield dict(zip(choices, chosen, strict=True))


def _enlarged(
    sizes: dict[str, int], choices: Mapping[str, Sequence[int]], runs: Callable[[Mapping[str, int]], bool]
) -> dict[str, int]:
    """Return sizes in which each that can have the likeliest size alone has it."""
    for name, likely in choices.items():
        changed = {**sizes, name: likely[0]}
        if changed != sizes and runs(changed):
            sizes = changed
    return sizes
