"""A U-Net (Ronneberger et al., arXiv 1505.04597), padded and with batch norms as it is used today."""

import torch
from torch import Tensor, nn

from irgym.envs.graph.programs.models.model import Builder, Model, Options, images


def _double(inputs: int, outputs: int) -> nn.Sequential:
    """Return two convolutions of 3x3, each with its norm and activation."""
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """A way down by poolings, a way up by transposed convolutions, and bridges between them.

    Args:
        width: Channels of the first level; each further level has twice those of the one before.
        levels: How often the image is halved.
        classes: Channels of the result.
    """

    def __init__(self, width: int, levels: int, classes: int) -> None:
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        self.down = nn.ModuleList(
            _double(inputs, outputs) for inputs, outputs in zip([3, *widths], widths, strict=False)
        )
        upwards = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(below, above, 2, 2) for below, above in upwards)
        self.up = nn.ModuleList(_double(2 * above, above) for _, above in upwards)
        self.pool = nn.MaxPool2d(2)
        self.classify = nn.Conv2d(width, classes, 1)

    def forward(self, image: Tensor) -> Tensor:
        """Return scores of classes for each pixel; shape (batch, classes, height, width)."""
        bridges: list[Tensor] = []
        x = image
        for level, block in enumerate(self.down):
            x = block(self.pool(x) if level else x)
            bridges.append(x)
        bridges.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat((bridges.pop(), grow(x)), 1))
        return self.classify(x)


def unet(options: Options) -> Model:
    """Return a U-Net that tells two classes apart."""
    return Model(UNet(options["width"], options["levels"], 2), {"image": images(options)})


BUILDERS: dict[str, Builder] = {"unet": unet}
"""Builders of the families' models."""
