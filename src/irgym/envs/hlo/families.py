"""The families of model programs and their parameters."""

from collections.abc import Mapping
from dataclasses import dataclass

Value = int | bool | str
"""What a parameter may hold."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family.

    Attributes:
        name: Its name in URIs.
        tiny: Default in tiny shapes.
        full: Default in full shapes: the published size.
        choices: The words allowed, if it is a word.
        low: Least value, if it is a number.
        high: Greatest value, if it is a number.
    """

    name: str
    tiny: Value
    full: Value
    choices: tuple[str, ...] = ()
    low: int = 1
    high: int = 1 << 17

    def default(self, shape: str) -> Value:
        """Return the default in `tiny` or `full` shapes."""
        return self.full if shape == "full" else self.tiny


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        name: Its name in URIs.
        summary: One line.
        parameters: What may be chosen, `mode` and `shape` first.
        multiples: Pairs of parameters of which the first must be a multiple of the second.
        at_most: Pairs of parameters of which the first may not exceed the second.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    multiples: tuple[tuple[str, str], ...] = ()
    at_most: tuple[tuple[str, str], ...] = ()

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name, if there is one."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


def _word(name: str, *choices: str) -> Parameter:
    """Return a parameter whose default is its first choice."""
    return Parameter(name, choices[0], choices[0], choices)


def _flag(name: str, default: bool) -> Parameter:
    return Parameter(name, default, default)


def _size(name: str, tiny: int, full: int, low: int = 1, high: int = 1 << 17) -> Parameter:
    return Parameter(name, tiny, full, low=low, high=high)


def _layers(tiny: int, full: int, high: int = 64) -> Parameter:
    """Return the depth, bounded so that nobody waits an hour for a graph by mistake."""
    return _size("layers", tiny, full, high=high)


_SHAPE = _word("shape", "tiny", "full")
_DTYPE = _word("dtype", "f32", "bf16")
_TRAIN = (
    _word("mode", "train", "forward"),
    _SHAPE,
    _DTYPE,
    _word("optimizer", "adam", "sgd", "momentum", "lion", "adafactor"),
    _flag("clip", True),
)
_DEEP = (_flag("dropout", True), _flag("scan", False), _flag("remat", False))
_HEADS = (("width", "heads"),)


def _transformer(
    layers: int, width: int, heads: int, vocabulary: int, sequence: int, batch: int
) -> tuple[Parameter, ...]:
    """Return the sizes of a language model; those given are the published ones."""
    return (
        _layers(2, layers),
        _size("width", 64, width, high=1 << 14),
        _size("heads", 4, heads, high=256),
        _size("vocabulary", 512, vocabulary, low=2, high=1 << 18),
        _size("sequence", 32, sequence, low=2, high=1 << 15),
        _size("batch", 2, batch, high=1 << 12),
    )


def _images(classes: int, pixels: int, tiny_pixels: int = 32) -> tuple[Parameter, ...]:
    return (
        _size("pixels", tiny_pixels, pixels, low=8, high=1 << 11),
        _size("classes", 10, classes, low=2),
        _size("batch", 2, 8, high=1 << 12),
    )


_FAMILIES = (
    Family(
        "gpt2",
        "GPT-2: decoder-only transformer, next-token loss (Radford et al., 2019)",
        (*_TRAIN, *_DEEP, *_transformer(12, 768, 12, 50257, 1024, 8)),
        _HEADS,
    ),
    Family(
        "bert",
        "BERT: encoder-only transformer, masked-token loss (Devlin et al., arXiv 1810.04805)",
        (*_TRAIN, *_DEEP, *_transformer(12, 768, 12, 30522, 128, 8)),
        _HEADS,
    ),
    Family(
        "resnet18",
        "ResNet of basic blocks, four stages of `depth` blocks; 2 is ResNet-18 (He et al., arXiv 1512.03385)",
        (*_TRAIN, _size("depth", 2, 2, high=8), _size("width", 8, 64, high=1 << 10), *_images(1000, 224)),
    ),
    Family(
        "resnet50",
        "ResNet-50: bottleneck blocks, stages of 3, 4, 6 and 3 (He et al., arXiv 1512.03385)",
        (*_TRAIN, _size("width", 8, 64, high=1 << 10), *_images(1000, 224)),
    ),
    Family(
        "mlp",
        "multi-layer perceptron on flat images",
        (
            *_TRAIN,
            _flag("dropout", False),
            _word("activation", "relu", "gelu", "tanh", "silu"),
            _layers(3, 3),
            _size("inputs", 64, 784, high=1 << 16),
            _size("width", 32, 512, high=1 << 14),
            _size("classes", 10, 10, low=2),
            _size("batch", 8, 128, high=1 << 14),
        ),
    ),
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in _FAMILIES}
"""The families, by name."""
