"""Convolutional networks drawn at random, of blocks that published ones have.

They are to train on: how blocks follow each other, and how wide they are, is left to chance (Xie et al.,
arXiv 1904.01569, who draw wirings), so that a policy does not learn a dozen networks by heart.
"""

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options, images

ACTIVATIONS: Sequence[Callable[[], nn.Module]] = (
    nn.ReLU,
    nn.ReLU,
    nn.ReLU6,
    nn.SiLU,
    nn.Hardswish,
    nn.LeakyReLU,
    nn.ReLU,
)


class Draw:
    """Random choices of a network.

    Args:
        seed: Seed of all choices.
        depth: Largest number of blocks in a stage, and about the largest number of steps in a dense block.
    """

    def __init__(self, seed: int, depth: int) -> None:
        self.random = random.Random(seed)
        self.depth = depth
        self.activation = self.random.choice(ACTIVATIONS)
        self.norms = self.random.random() < 0.8

    def one_of(self, *choices: int) -> int:
        """Return one of some numbers."""
        return self.random.choice(choices)

    def up_to(self, most: int, least: int = 1) -> int:
        """Return a number from `least` to `most`, both inclusive."""
        return self.random.randint(least, most)

    def likely(self, probability: float) -> bool:
        """Return True with a given probability."""
        return self.random.random() < probability

    def bare(self, inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Module:
        """Return a convolution with its norm."""
        bare = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=not self.norms)
        return nn.Sequential(bare, nn.BatchNorm2d(outputs)) if self.norms else bare

    def convolution(
        self, inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1
    ) -> nn.Module:
        """Return a convolution with its norm and activation."""
        return nn.Sequential(self.bare(inputs, outputs, size, stride, groups), self.activation())

    def before(self, inputs: int, outputs: int, size: int) -> nn.Module:
        """Return a convolution after its norm and activation (He et al., arXiv 1603.05027)."""
        bare = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
        return nn.Sequential(nn.BatchNorm2d(inputs), self.activation(), bare)


class Residual(nn.Module):
    """A block beside a shortcut, with or without an activation after the sum."""

    def __init__(self, block: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.block, self.last = block, last

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum, shaped as the input."""
        return self.last(x + self.block(x))


class Branches(nn.Module):
    """Blocks side by side, their results joined (Szegedy et al., arXiv 1409.4842)."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Return what is joined."""
        return torch.cat([block(x) for block in self.blocks], 1)


class Dense(nn.Module):
    """Steps each of which sees what all before it made (Huang et al., arXiv 1608.06993)."""

    def __init__(self, steps: Sequence[nn.Module]) -> None:
        super().__init__()
        self.steps = nn.ModuleList(steps)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input and what the steps made, joined."""
        for step in self.steps:
            x = torch.cat((x, step(x)), 1)
        return x


class Gate(nn.Module):
    """Channels times gates that are found from their means (Hu et al., arXiv 1709.01507)."""

    def __init__(self, channels: int, gate: nn.Module) -> None:
        super().__init__()
        self.narrow, self.widen = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        """Return the product, shaped as the input."""
        return x * self.gate(self.widen(self.narrow(x.mean((2, 3), keepdim=True)).relu()))


class Halves(nn.Module):
    """A block on half of the channels, which are then shuffled (Ma et al., arXiv 1807.11164)."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        """Return the result, shaped as the input."""
        kept, changed = x.chunk(2, 1)
        joined = torch.cat((kept, self.block(changed)), 1)
        batch, channels, height, width = joined.shape
        return joined.reshape(batch, 2, channels // 2, height, width).transpose(1, 2).flatten(1, 2)


class Bridge(nn.Module):
    """A network at half the resolution, made large again and joined to its input (arXiv 1505.04597)."""

    def __init__(self, down: nn.Module, inner: nn.Module, up: nn.Module) -> None:
        super().__init__()
        self.down, self.inner, self.up = down, inner, up

    def forward(self, x: Tensor) -> Tensor:
        """Return what is joined."""
        return torch.cat((x, self.up(self.inner(self.down(x)))), 1)


def _plain(draw: Draw, width: int) -> nn.Module:
    return nn.Sequential(
        *(draw.convolution(width, width, draw.one_of(1, 3)) for _ in range(draw.one_of(1, 2)))
    )


def _residual(draw: Draw, width: int) -> nn.Module:
    if draw.likely(0.3):
        return Residual(nn.Sequential(*(draw.before(width, width, 3) for _ in range(2))), nn.Identity())
    steps = nn.Sequential(draw.convolution(width, width), draw.bare(width, width))
    return Residual(steps, draw.activation() if draw.likely(0.7) else nn.Identity())


def _bottleneck(draw: Draw, width: int) -> nn.Module:
    inner = width // 2
    groups = draw.one_of(1, 1, 4, inner)
    steps = [draw.convolution(width, inner, 1), draw.convolution(inner, inner, groups=groups)]
    return Residual(nn.Sequential(*steps, draw.bare(inner, width, 1)), draw.activation())


def _inverted(draw: Draw, width: int) -> nn.Module:
    inner = width * draw.one_of(2, 4)
    steps = [
        draw.convolution(width, inner, 1),
        draw.convolution(inner, inner, draw.one_of(3, 5), groups=inner),
    ]
    if draw.likely(0.5):
        steps.append(Gate(inner, nn.Hardsigmoid() if draw.likely(0.5) else nn.Sigmoid()))
    return Residual(nn.Sequential(*steps, draw.bare(inner, width, 1)), nn.Identity())


def _branches(draw: Draw, width: int) -> nn.Module:
    parts = draw.one_of(2, 4)
    pool = nn.AvgPool2d(3, 1, 1) if draw.likely(0.6) else nn.MaxPool2d(3, 1, 1)
    every: list[nn.Module] = [
        draw.convolution(width, width // parts, 1),
        nn.Sequential(draw.convolution(width, width // 2, 1), draw.convolution(width // 2, width // parts)),
        nn.Sequential(pool, draw.convolution(width, width // parts, 1)),
        draw.convolution(width, width // parts),
    ]
    return Branches(every[:parts])


def _dense(draw: Draw, width: int) -> nn.Module:
    steps, growth = draw.up_to(draw.depth + 1, 2), draw.one_of(16, 32)
    made = [draw.before(width + step * growth, growth, draw.one_of(1, 3)) for step in range(steps)]
    return nn.Sequential(Dense(made), draw.before(width + steps * growth, width, 1))


def _halves(draw: Draw, width: int) -> nn.Module:
    return Halves(
        nn.Sequential(draw.convolution(width // 2, width // 2, 1), draw.convolution(width // 2, width // 2))
    )


def _bridge(draw: Draw, width: int) -> nn.Module:
    down = nn.Sequential(nn.MaxPool2d(2), draw.convolution(width, 2 * width))
    up = nn.ConvTranspose2d(2 * width, width, 2, 2) if draw.likely(0.5) else nn.Upsample(scale_factor=2)
    joined = 2 * width if isinstance(up, nn.ConvTranspose2d) else 3 * width
    return nn.Sequential(
        Bridge(down, draw.convolution(2 * width, 2 * width), up), draw.convolution(joined, width)
    )


_BLOCKS = (_plain, _residual, _bottleneck, _inverted, _branches, _dense, _halves, _bridge)


def _smaller(draw: Draw, inputs: int, outputs: int) -> nn.Module:
    """Return what halves an image."""
    match draw.one_of(0, 1, 2, 3):
        case 0:
            return nn.Sequential(nn.MaxPool2d(2), draw.convolution(inputs, outputs, 1))
        case 1:
            return nn.Sequential(draw.before(inputs, outputs, 1), nn.AvgPool2d(2))
        case _:
            return draw.convolution(inputs, outputs, stride=2)


def _network(seed: int, depth: int) -> nn.Module:
    """Return a network of two to four stages, each of one kind of blocks, or now and then of several."""
    draw = Draw(seed, depth)
    width = draw.one_of(16, 24, 32, 48, 64)
    layers: list[nn.Module] = [draw.convolution(3, width, draw.one_of(3, 7), 2)]
    if draw.likely(0.5):
        layers.append(nn.MaxPool2d(3, 2, 1))
    kinds = draw.random.sample(_BLOCKS, draw.one_of(1, 2, 3))
    for stage in range(draw.one_of(2, 3, 4)):
        if stage:
            layers.append(_smaller(draw, width, 2 * width))
            width *= 2
        layers += [draw.random.choice(kinds)(draw, width) for _ in range(draw.up_to(depth))]
    if draw.likely(0.3):
        layers += [nn.BatchNorm2d(width), draw.activation()]
    if draw.likely(0.2):
        return nn.Sequential(*layers, nn.Conv2d(width, 8, 1))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))


def drawn_cnn(options: Options) -> Model:
    """Return the network of a seed."""
    return Model(_network(options["seed"], options["depth"]), {"image": images(options)})


BUILDERS: dict[str, Builder] = {"drawn_cnn": drawn_cnn}
"""Builders of the families' models."""
