"""Single operators, chains and lattice contractions as MLIR text: linalg on tensors, float32."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from irgym.base.errors import ProgramError
from irgym.envs.linalg.programs.function_text import FunctionText, Tensor, scalar
from irgym.envs.linalg.programs.lattice import lattice
from irgym.envs.linalg.programs.sequences import Step, sequence, windows

MAX_ELEMENTS = 1 << 28
"""Greatest number of elements of a tensor (1 GiB of float32)."""

EPSILON = 1e-5
"""Epsilon of layer normalisation, torch's default."""


@dataclass(frozen=True)
class Operator:
    """An operator with its sizes; baselines compute it from these.

    Attributes:
        name: Its family: `conv2d`.
        sizes: Its sizes, in the family's order.
        options: Every option of the family and its value.
    """

    name: str
    sizes: tuple[int, ...]
    options: tuple[tuple[str, int], ...] = ()

    def text(self) -> str:
        """Return a module with the function `main`, which maps inputs, then weights, to one result.

        Raises:
            ProgramError: A window exceeds its image, or a tensor has more than `MAX_ELEMENTS` elements.
        """
        function = FunctionText()
        result = _BUILDERS[self.name](function, self.sizes, dict(self.options))
        if function.largest > MAX_ELEMENTS:
            raise ProgramError(
                f"a tensor has {function.largest} elements: choose sizes that keep each below {MAX_ELEMENTS}"
            )
        return function.text(result)


def matmul(function: FunctionText, left: Tensor, right: Tensor) -> Tensor:
    """Append a product of two matrices, or of two batches of matrices, pair by pair."""
    name = "linalg.batch_matmul" if len(left.shape) == 3 else "linalg.matmul"
    into = function.filled(0.0, *left.shape[:-1], right.shape[-1])
    return function.named(name, (left, right), into)


def conv2d(function: FunctionText, image: Tensor, filters: Tensor, stride: int) -> Tensor:
    """Append a convolution, NCHW by FCHW, without padding.

    Raises:
        ProgramError: The filter exceeds the image.
    """
    rows, columns = _windows(image, filters.shape[2:], stride)
    into = function.filled(0.0, image.shape[0], filters.shape[0], rows, columns)
    return function.named("linalg.conv_2d_nchw_fchw", (image, filters), into, _steps(stride))


def depthwise_conv2d(function: FunctionText, image: Tensor, filters: Tensor, stride: int) -> Tensor:
    """Append a depthwise convolution, NCHW by CHW, without padding.

    Raises:
        ProgramError: The filter exceeds the image.
    """
    rows, columns = _windows(image, filters.shape[1:], stride)
    into = function.filled(0.0, *image.shape[:2], rows, columns)
    return function.named("linalg.depthwise_conv_2d_nchw_chw", (image, filters), into, _steps(stride))


def maxpool(function: FunctionText, image: Tensor, kernel: int, stride: int) -> Tensor:
    """Append a max pooling, NCHW, without padding.

    Raises:
        ProgramError: The window exceeds the image.
    """
    rows, columns = _windows(image, (kernel, kernel), stride)
    into = function.filled(-math.inf, *image.shape[:2], rows, columns)
    # Only the window's shape matters.
    window = function.empty(kernel, kernel)
    return function.named("linalg.pooling_nchw_max", (image, window), into, _steps(stride))


def add(function: FunctionText, left: Tensor, right: Tensor) -> Tensor:
    """Append an elementwise sum."""
    return function.named("linalg.add", (left, right), function.empty(*left.shape))


def bias(function: FunctionText, tensor: Tensor, offsets: Tensor) -> Tensor:
    """Append the addition of an offset to each column of a matrix, or to each channel of an image."""
    letters = _letters(tensor)
    into = function.empty(*tensor.shape)
    body = scalar("arith.addf", "%in0", "%in1")
    return function.generic(f"{letters},{letters[1]}->{letters}", (tensor, offsets), into, body)


def relu(function: FunctionText, tensor: Tensor) -> Tensor:
    """Append a ReLU."""
    letters = _letters(tensor)
    body = scalar("arith.maximumf", "%in0", function.constant(0.0))
    return function.generic(f"{letters}->{letters}", (tensor,), function.empty(*tensor.shape), body)


def softmax(function: FunctionText, matrix: Tensor) -> Tensor:
    """Append the softmax of each row: maximum, exponentials of the differences, sum, quotient."""
    rows = matrix.shape[:1]
    greatest = function.generic(
        "rc->r", (matrix,), function.filled(-math.inf, *rows), scalar("arith.maximumf", "%in0", "%out")
    )
    powers = function.generic(
        "rc,r->rc",
        (matrix, greatest),
        function.empty(*matrix.shape),
        scalar("arith.subf", "%in0", "%in1"),
        scalar("math.exp", "%v0"),
    )
    total = _row_sum(function, powers)
    quotient = scalar("arith.divf", "%in0", "%in1")
    return function.generic("rc,r->rc", (powers, total), function.empty(*matrix.shape), quotient)


def layernorm(function: FunctionText, matrix: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
    """Append the layer normalisation of each row: sum, centred elements, sum of squares, result."""
    share, epsilon = function.constant(1 / matrix.shape[1]), function.constant(EPSILON)
    total = _row_sum(function, matrix)
    centred = function.generic(
        "rc,r->rc",
        (matrix, total),
        function.empty(*matrix.shape),
        scalar("arith.mulf", "%in1", share),
        scalar("arith.subf", "%in0", "%v0"),
    )
    squares = function.generic(
        "rc->r",
        (centred,),
        function.filled(0.0, matrix.shape[0]),
        scalar("arith.mulf", "%in0", "%in0"),
        scalar("arith.addf", "%v0", "%out"),
    )
    return function.generic(
        "rc,r,c,c->rc",
        (centred, squares, gain, offset),
        function.empty(*matrix.shape),
        scalar("arith.mulf", "%in1", share),
        scalar("arith.addf", "%v0", epsilon),
        scalar("math.rsqrt", "%v1"),
        scalar("arith.mulf", "%in0", "%v2"),
        scalar("arith.mulf", "%v3", "%in2"),
        scalar("arith.addf", "%v4", "%in3"),
    )


def _row_sum(function: FunctionText, matrix: Tensor) -> Tensor:
    body = scalar("arith.addf", "%in0", "%out")
    return function.generic("rc->r", (matrix,), function.filled(0.0, matrix.shape[0]), body)


def _windows(image: Tensor, kernel: tuple[int, ...], stride: int) -> tuple[int, ...]:
    sizes = image.shape[2:]
    if any(width > size for width, size in zip(kernel, sizes, strict=True)):
        raise ProgramError(
            f"a window of {kernel[0]}x{kernel[1]} does not fit into {sizes[0]}x{sizes[1]}: enlarge the image"
        )
    return tuple(windows(size, width, stride) for size, width in zip(sizes, kernel, strict=True))


def _steps(stride: int) -> str:
    return f"{{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"


def _letters(tensor: Tensor) -> str:
    return "abcdef"[: len(tensor.shape)]


Sizes = tuple[int, ...]
Options = dict[str, int]


def _matmul(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    m, n, k = sizes
    return matmul(function, function.argument(m, k), function.argument(k, n))


def _batch_matmul(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    batch, m, n, k = sizes
    return matmul(function, function.argument(batch, m, k), function.argument(batch, k, n))


def _conv2d(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    batch, channels, height, width, filters, rows, columns = sizes
    image = function.argument(batch, channels, height, width)
    return conv2d(function, image, function.argument(filters, channels, rows, columns), options["stride"])


def _depthwise_conv2d(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    *shape, rows, columns = sizes
    image = function.argument(*shape)
    filters = function.argument(shape[1], rows, columns)
    return depthwise_conv2d(function, image, filters, options["stride"])


def _maxpool(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    *image, kernel = sizes
    return maxpool(function, function.argument(*image), kernel, options["stride"])


def _add(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    return add(function, function.argument(*sizes), function.argument(*sizes))


def _relu(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    return relu(function, function.argument(*sizes))


def _softmax(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    return softmax(function, function.argument(*sizes))


def _layernorm(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    gain, offset = sizes[1:], sizes[1:]
    return layernorm(
        function, function.argument(*sizes), function.argument(*gain), function.argument(*offset)
    )


def _lattice(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    contraction = lattice(sizes[0])
    inputs = [function.argument(*shape) for shape in contraction.inputs]
    body = [scalar("arith.mulf", "%in0", "%in1")]
    body += [scalar("arith.mulf", f"%v{n}", f"%in{n + 2}") for n in range(len(inputs) - 2)]
    body.append(scalar("arith.addf", f"%v{len(body) - 1}", "%out"))
    into = function.filled(0.0, *contraction.output)
    return function.generic(contraction.subscripts, inputs, into, *body)


def _sequence(function: FunctionText, sizes: Sizes, options: Options) -> Tensor:
    chain = sequence(sizes[0], options["length"])
    tensor = function.argument(*chain.start)
    for step in chain.steps:
        tensor = _append(function, tensor, step)
    return tensor


def _append(function: FunctionText, tensor: Tensor, step: Step) -> Tensor:
    """Append a step of a chain; its weights become further arguments."""
    channels = tensor.shape[1]
    match step.name:
        case "matmul":
            return matmul(function, tensor, function.argument(channels, *step.sizes))
        case "conv2d":
            filters, kernel, stride = step.sizes
            return conv2d(function, tensor, function.argument(filters, channels, kernel, kernel), stride)
        case "maxpool":
            return maxpool(function, tensor, *step.sizes)
        case "bias":
            return bias(function, tensor, function.argument(channels))
        case "add":
            return add(function, tensor, function.argument(*tensor.shape))
        case "softmax":
            return softmax(function, tensor)
        case "layernorm":
            return layernorm(function, tensor, function.argument(channels), function.argument(channels))
        case _:
            return relu(function, tensor)


_BUILDERS: dict[str, Callable[[FunctionText, Sizes, Options], Tensor]] = {
    "matmul": _matmul,
    "batch_matmul": _batch_matmul,
    "conv2d": _conv2d,
    "depthwise_conv2d": _depthwise_conv2d,
    "maxpool": _maxpool,
    "add": _add,
    "relu": _relu,
    "softmax": _softmax,
    "layernorm": _layernorm,
    "lattice": _lattice,
    "sequence": _sequence,
}
