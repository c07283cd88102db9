"""Windows of convolutions and pools."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irgym.envs.graph.reference.calls import Array, Call, OperatorError


@dataclass(frozen=True)
class Windows:
    """Positions of windows along each spatial axis.

    Attributes:
        kernel: Elements of a window.
        strides: Steps between windows.
        dilations: Steps between the elements of a window.
        before: Padding in front.
        after: Padding behind.
        sizes: Number of windows.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    sizes: tuple[int, ...]

    def of(self, x: Array, fill: float) -> Array:
        """Return the windows of an array.

        Args:
            x: Shape (batch, channels, *spatial).
            fill: Value of the padding, and of elements beyond it.

        Returns:
            Shape (batch, channels, *sizes, *kernel). It shares the memory of one padded array.
        """
        padded = np.pad(x, [(0, 0), (0, 0), *self._reach(x.shape[2:])], constant_values=fill)
        spans = tuple(_span(k, d) for k, d in zip(self.kernel, self.dilations, strict=True))
        axes = tuple(range(2, x.ndim))
        every = np.lib.stride_tricks.sliding_window_view(padded, spans, axes)
        places = [slice(0, (n - 1) * s + 1, s) for n, s in zip(self.sizes, self.strides, strict=True)]
        return every[(slice(None), slice(None), *places, *(slice(None, None, d) for d in self.dilations))]

    def _reach(self, spatial: Sequence[int]) -> list[tuple[int, int]]:
        """Return the padding, including elements beyond it if the number of windows is rounded up."""
        pads: list[tuple[int, int]] = []
        for axis, size in enumerate(spatial):
            end = (self.sizes[axis] - 1) * self.strides[axis] + _span(self.kernel[axis], self.dilations[axis])
            pads.append((self.before[axis], max(self.after[axis], end - size - self.before[axis])))
        return pads


def windows_of(call: Call, spatial: Sequence[int], kernel: Sequence[int], *, pool: bool = False) -> Windows:
    """Return the windows that the attributes of a convolution or a pool describe.

    Args:
        call: With `strides`, `dilations`, `pads`, `auto_pad` and `ceil_mode`.
        spatial: Sizes of the input.
        kernel: Elements of a window.
        pool: Whether it is a pool.

    Raises:
        OperatorError: No window fits, or ONNX Runtime does not pad as ONNX says.
    """
    rank = len(spatial)
    strides, dilations = call.integers("strides", (1,) * rank), call.integers("dilations", (1,) * rank)
    pads = call.integers("pads", (0,) * 2 * rank)
    auto = call.text("auto_pad", "NOTSET")
    before, after, sizes = [0] * rank, [0] * rank, [0] * rank
    for axis, size in enumerate(spatial):
        span, stride = _span(kernel[axis], dilations[axis]), strides[axis]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            sizes[axis] = -(-size // stride)
            total = (sizes[axis] - 1) * stride + span - size
            # ONNX Runtime refuses such convolutions, and shifts the windows of such pools.
            if dilations[axis] != 1:
                raise call.refusal(f"auto_pad={auto!r} and dilations")
            if pool and total < 0:
                raise call.refusal(f"auto_pad={auto!r} and strides longer than the kernel")
            total = max(0, total)
            before[axis] = (total + (auto == "SAME_LOWER")) // 2
            after[axis] = total - before[axis]
            continue
        if auto == "NOTSET":
            before[axis], after[axis] = pads[axis], pads[rank + axis]
        room = size + before[axis] + after[axis] - span
        sizes[axis] = room // stride + 1
        if call.integer("ceil_mode", 0) and room >= 0:
            sizes[axis] = -(-room // stride) + 1
            # A window that starts in the padding behind does not count.
            sizes[axis] -= (sizes[axis] - 1) * stride >= size + before[axis]
        if call.missing(sizes[axis]):
            raise OperatorError(f"{call.operator} has a window wider than its padded input; make it smaller")
    return Windows(tuple(kernel), strides, dilations, tuple(before), tuple(after), tuple(sizes))


def _span(kernel: int, dilation: int) -> int:
    """Return the number of elements from a window's first to its last."""
    return (kernel - 1) * dilation + 1
