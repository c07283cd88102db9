"""A residual network whose norms come before its convolutions (He et al., arXiv 1603.05027).

Shortcuts into smaller images go through an average pool, as in ResNet-D (He et al., arXiv 1812.01187).
"""

from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options, images


def _step(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Return a norm, its activation, and a convolution of 3x3."""
    return nn.Sequential(
        nn.BatchNorm2d(inputs),
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
    )


class Block(nn.Module):
    """Two convolutions beside a shortcut.

    Args:
        inputs: Channels of what it is given.
        outputs: Channels of what it returns; where these are others, its sides are half as long.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        smaller = inputs != outputs
        self.steps = nn.Sequential(_step(inputs, outputs, 2 if smaller else 1), _step(outputs, outputs))
        shortcut = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(inputs, outputs, 1, bias=False))
        self.shortcut = shortcut if smaller else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum; shape (batch, outputs, height, width)."""
        return self.steps(x) + self.shortcut(x)


def preresnet(options: Options) -> Model:
    """Return a network of four stages, each of twice the channels of the one before, for 1,000 classes."""
    width = options["width"]
    widths = [width << stage for stage in range(4)]
    blocks = [
        Block(inputs if first else outputs, outputs)
        for inputs, outputs in zip([width, *widths], widths, strict=False)
        for first in (True, *([False] * (options["blocks"] - 1)))
    ]
    last = widths[-1]
    module = nn.Sequential(
        nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.BatchNorm2d(last),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(last, 1000),
    )
    return Model(module, {"image": images(options)})


BUILDERS: dict[str, Builder] = {"preresnet": preresnet}
"""Builders of the families' models."""
