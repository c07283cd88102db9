"""Networks in torch, for inference: batch norms are folded into convolutions. Imported in a child only."""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

Options = Mapping[str, int]

# Expansion, channels, number of blocks, stride: Sandler et al., table 2.
_MOBILE_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)

# Channels of the convolutions; a pooling follows each group (Simonyan and Zisserman, table 1, column A).
_VGG_GROUPS = ((64,), (128,), (256, 256), (512, 512), (512, 512))


class Residual(nn.Module):
    """A sum of two branches, followed by an activation."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module, activation: nn.Module) -> None:
        super().__init__()
        self.branch, self.shortcut, self.activation = branch, shortcut, activation

    def forward(self, x: Tensor) -> Tensor:
        """Return both branches' sum."""
        return self.activation(self.branch(x) + self.shortcut(x))


class Mean(nn.Module):
    """The mean of each channel: NCHW to NC."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        return x.mean((2, 3))


class Attention(nn.Module):
    """Self-attention with several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.combine = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the attended values; `x` and the result have shape (batch, length, width)."""
        batch, length, width = x.shape
        parts = self.project(x).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5
        gathered = scores.softmax(-1) @ value
        return self.combine(gathered.transpose(1, 2).reshape(batch, length, width))


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    """Return a convolution padded to keep the image's size, stride aside; the bias includes a batch norm."""
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups)


def _basic_block(inputs: int, outputs: int, stride: int) -> nn.Module:
    branch = nn.Sequential(_conv(inputs, outputs, 3, stride), nn.ReLU(), _conv(outputs, outputs, 3))
    same = inputs == outputs and stride == 1
    shortcut = nn.Identity() if same else _conv(inputs, outputs, 1, stride)
    return Residual(branch, shortcut, nn.ReLU())


def resnet18(options: Options) -> nn.Module:
    """Return ResNet-18: four stages of two basic blocks."""
    layers: list[nn.Module] = [_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [_basic_block(inputs, outputs, stride), _basic_block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, Mean(), nn.Linear(512, options["classes"]))


def _inverted_blocks(inputs: int) -> Iterator[nn.Module]:
    for expansion, outputs, count, first_stride in _MOBILE_STAGES:
        for stride in (first_stride, *(1,) * (count - 1)):
            inner = inputs * expansion
            expand = (_conv(inputs, inner, 1), nn.ReLU6()) if expansion > 1 else ()
            depthwise = (_conv(inner, inner, 3, stride, groups=inner), nn.ReLU6())
            branch = nn.Sequential(*expand, *depthwise, _conv(inner, outputs, 1))
            same = inputs == outputs and stride == 1
            yield Residual(branch, nn.Identity(), nn.Identity()) if same else branch
            inputs = outputs


def mobilenetv2(options: Options) -> nn.Module:
    """Return MobileNetV2: inverted residuals with depthwise convolutions."""
    return nn.Sequential(
        _conv(3, 32, 3, 2),
        nn.ReLU6(),
        *_inverted_blocks(32),
        _conv(320, 1280, 1),
        nn.ReLU6(),
        Mean(),
        nn.Linear(1280, options["classes"]),
    )


def vgg11(options: Options) -> nn.Module:
    """Return VGG-11: eight convolutions and three fully connected layers."""
    layers: list[nn.Module] = []
    inputs = 3
    for group in _VGG_GROUPS:
        for outputs in group:
            layers += [_conv(inputs, outputs, 3), nn.ReLU()]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    pixels = (options["size"] // 32) ** 2
    layers += [nn.Flatten(), nn.Linear(inputs * pixels, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(4096, options["classes"]))


def transformer(options: Options) -> nn.Module:
    """Return one encoder block: attention and feed-forward, each with a norm before it and a shortcut."""
    width = options["width"]
    attention = nn.Sequential(nn.LayerNorm(width), Attention(width, options["heads"]))
    feed_forward = nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
    )
    same = nn.Identity
    return nn.Sequential(Residual(attention, same(), same()), Residual(feed_forward, same(), same()))


def build(name: str, options: Options) -> tuple[nn.Module, Tensor]:
    """Return a network in evaluation mode, with random weights, and an input; on torch's default device."""
    module = _BUILDERS[name](options).eval()
    batch, size = options["batch"], options.get("size", 0)
    shape = (batch, 3, size, size) if size else (batch, options["length"], options["width"])
    return module, torch.zeros(shape)


def as_function(name: str, options: Options) -> Callable[..., Tensor]:
    """Return a network as a function of its program's arguments: the weights, then the input."""
    with torch.device("meta"):
        module, _ = build(name, options)
    names = [name for name, _ in module.named_parameters()]

    def function(*arguments: Tensor) -> Tensor:
        *weights, example = arguments
        return functional_call(module, dict(zip(names, weights, strict=True)), (example,))

    return function


_BUILDERS: dict[str, Callable[[Options], nn.Module]] = {
    "resnet18": resnet18,
    "mobilenetv2": mobilenetv2,
    "vgg11": vgg11,
    "transformer": transformer,
}
