"""Baselines: numpy, torch and TVM on the same contraction. For child processes only."""

import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from irgym.base.errors import BackendError, IrgymError
from irgym.base.options import with_options, word_of
from irgym.core.baseline import INSTALL_TORCH, Tuning
from irgym.envs.loops.programs.contraction import GRAMMAR, Contraction, Tensor
from irgym.envs.loops.programs.convolution import Convolution, convolution_of
from irgym.envs.loops.programs.elements import BF16, F32, I8
from irgym.measure.arrays import aligned
from irgym.measure.baselines import PreparedBaseline, numpy_kernels, repeat
from irgym.measure.machine import threads_text


def _fastest(candidates: Mapping[str, Callable[[], Any]]) -> str:
    """Return the name of the candidate with the fastest of three runs, after a warm-up run."""

    def least(function: Callable[[], Any]) -> float:
        function()
        times: list[float] = []
        for _ in range(3):
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
        return min(times)

    return min(candidates, key=lambda name: least(candidates[name]))


DIRECT = 1_000_000
"""Greatest number of operations for which numpy's plain loop, without BLAS, is tried too."""


def numpy_baseline(contraction: Contraction, a: Tensor, b: Tensor, threads: int) -> PreparedBaseline:
    """Return numpy's fastest implementation: matmul for matrix products, else einsum or a sum of matmuls.

    Inputs narrower than the sums are converted in each run: numpy's own sums of them are not wide. The
    environment of the process sets the threads of its BLAS.
    """
    del threads
    c = aligned(contraction.shapes[2], contraction.elements.sum_type)
    named = GRAMMAR.parse(contraction.uri)
    prepare, inputs, out = _prepared(contraction, a, b, c)
    functions: dict[str, Callable[[], Any]]
    if named.family in ("mm", "bmm"):
        functions = {"matmul": lambda: np.matmul(*inputs, out=out)}
    else:
        subscripts, views = contraction.einsum_on(*inputs[: contraction.inputs])
        functions = {"einsum": lambda: np.einsum(subscripts, *views, out=out, optimize=True)}
        if contraction.flops <= DIRECT:
            functions["einsum, one loop"] = lambda: np.einsum(subscripts, *views, out=out)
        found = convolution_of(named)
        if found is not None and found.groups == 1:
            functions["a sum of matmuls"] = _shifted_matmuls(contraction, *inputs, out)
    chosen = _fastest(functions) if len(functions) > 1 else next(iter(functions))
    compute = functions[chosen]

    def converted() -> None:
        prepare()
        compute()
        if out is not c:
            np.copyto(c, out, casting="unsafe")

    plain = out is c and not any(contraction.padded)
    run = repeat(compute if plain else converted)
    return PreparedBaseline(run, lambda: c, f"{chosen}, {numpy_kernels()}")


_WIDE: Mapping[str, type[np.floating]] = {BF16.name: np.float32, I8.name: np.float64}
"""Types in which numpy computes, where it has to convert the inputs; sums of int8 are exact in float64."""


def _prepared(
    contraction: Contraction, a: Tensor, b: Tensor, c: Tensor
) -> tuple[Callable[[], None], tuple[Tensor, Tensor], Tensor]:
    """Return a function that pads and converts the inputs, its results, and the array for the output."""
    wide = _WIDE.get(contraction.elements.name)
    copies: list[tuple[Tensor, Tensor]] = []

    def laid_out(operand: int, array: Tensor) -> Tensor:
        if wide is None and not contraction.padded[operand]:
            return array
        buffer = aligned(contraction.layouts[operand], wide or array.dtype)
        buffer.fill(0)
        padding = zip(contraction.padding[operand], array.shape, strict=True)
        inner = [slice(low, low + size) for (low, _), size in padding]
        copies.append((buffer[*inner, ...], array))
        return buffer

    def prepare() -> None:
        for inner, array in copies:
            inner[...] = array

    inputs = laid_out(0, a), laid_out(1, b)
    prepare()
    return prepare, inputs, c if wide is None else aligned(c.shape, wide)


def _taps(contraction: Contraction) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield the index of each element of a filter, and the elements of the padded input that it meets."""
    images = [axis for axis in contraction.a if len(axis.terms) > 1]
    padding = [
        ends for axis, ends in zip(contraction.a, contraction.padding[0], strict=True) if axis in images
    ]
    sizes = contraction.sizes
    for tap in np.ndindex(*(sizes[axis.terms[1][0]] for axis in images)):
        slices: list[slice] = []
        for axis, (low, _), at in zip(images, padding, tap, strict=True):
            (out, stride), (_, distance) = axis.terms
            first = axis.offset + low + distance * at
            slices.append(slice(first, first + stride * (sizes[out] - 1) + 1, stride))
        yield tap, tuple(slices)


def _shifted_matmuls(contraction: Contraction, a: Tensor, b: Tensor, c: Tensor) -> Callable[[], Any]:
    """Return a convolution as one matmul for each element of the filter, on a shifted view of the input."""
    partial = aligned(c.shape, c.dtype)
    taps = list(_taps(contraction))

    def run() -> None:
        c.fill(0)
        for tap, slices in taps:
            np.matmul(a[:, *slices, :], b[tap], out=partial)
            np.add(c, partial, out=c)

    return run


def torch_baseline(contraction: Contraction, a: Tensor, b: Tensor, threads: int) -> PreparedBaseline:
    """Return torch's operator, without gradients: mm, bmm, conv1d to conv3d (channels last) or einsum.

    Raises:
        BackendError: torch is not installed, or has no such operator.
    """
    try:
        torch: Any = import_module("torch")
    except ImportError:
        raise BackendError(f"torch is not installed: run {INSTALL_TORCH}") from None
    elements = contraction.elements
    if elements.bytes < elements.sum_bytes:
        raise BackendError(
            f"torch has no products of {elements.inputs} with sums in {elements.sums}: leave it out"
        )
    torch.set_num_threads(threads)
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    named = GRAMMAR.parse(contraction.uri)
    if named.family in ("mm", "bmm"):
        out = torch.from_numpy(aligned(contraction.shapes[2], elements.sum_type))
        operator = torch.mm if named.family == "mm" else torch.bmm

        def once() -> Any:
            return operator(left, right, out=out)
    elif found := convolution_of(named):
        once = _torch_convolution(torch, found, left, right)
    else:
        once = _torch_einsum(torch, contraction, left, right)
    results: list[Any] = [None]

    def run_all(repetitions: int) -> None:
        with torch.inference_mode():
            for _ in range(repetitions):
                results[0] = once()

    def result() -> Tensor:
        return results[0].numpy()

    return PreparedBaseline(run_all, result, f"torch {torch.__version__}, {threads_text(threads)}")


def _torch_convolution(torch: Any, convolution: Convolution, left: Any, right: Any) -> Callable[[], Any]:
    rank = len(convolution.axes)
    functions = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)
    formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
    image = left.reshape(*left.shape[: rank + 1], -1).movedim(-1, 1)
    weight = right.reshape(*right.shape[: rank + 1], -1).movedim((-1, -2), (0, 1))
    if convolution.flip:
        weight = weight.flip(tuple(range(2, rank + 2)))
    weight = weight.contiguous(memory_format=formats[rank - 1])
    options = {name: getattr(convolution, name) for name in ("stride", "padding", "dilation", "groups")}
    return lambda: functions[rank - 1](image, weight, **options).movedim(1, -1)


def _torch_einsum(torch: Any, contraction: Contraction, left: Any, right: Any) -> Callable[[], Any]:
    """Return torch's einsum on strided views, of padded copies made in each run.

    Raises:
        BackendError: An axis is reversed, and torch has no such views.
    """
    subscripts, views = contraction.einsum_operands(left.numpy(), right.numpy())
    if any(stride < 0 for view in views for stride in view.strides):
        raise BackendError("torch has no views with reversed axes: leave it out")

    def laid_out(operand: int, tensor: Any) -> Any:
        if contraction.padded[operand]:
            ends = [end for pair in reversed(contraction.padding[operand]) for end in pair]
            tensor = torch.nn.functional.pad(tensor, ends)
        view = views[operand]
        strides = [stride // contraction.elements.bytes for stride in view.strides]
        return torch.as_strided(tensor, view.shape, strides, contraction.origins[operand])

    inputs = (left, right)[: contraction.inputs]
    if not any(contraction.padded):
        fixed = [laid_out(operand, tensor) for operand, tensor in enumerate(inputs)]
        return lambda: torch.einsum(subscripts, *fixed)
    return lambda: torch.einsum(
        subscripts, *(laid_out(operand, tensor) for operand, tensor in enumerate(inputs))
    )


def tvm_baseline(
    contraction: Contraction, a: Tensor, b: Tensor, threads: int, tuning: Tuning
) -> PreparedBaseline:
    """Return the best of the trials of TVM's MetaSchedule; see `irgym.envs.loops.tvm_baseline`."""
    if threads > 1:
        raise BackendError("the baseline tvm has one thread: leave it out, or the back end's threads")
    if contraction.elements is not F32 or contraction.inputs < 2 or any(contraction.padded):
        raise BackendError("the baseline tvm takes two float32 inputs without padding: leave it out")
    from irgym.envs.loops.tvm_baseline import tune

    try:
        run, result, detail = tune(contraction, a, b, trials=tuning.trials)
    except IrgymError:
        raise
    except Exception as error:
        # An error inside TVM must not end a comparison of other methods.
        raise BackendError(f"TVM failed on {contraction.uri} ({error}): leave tvm out") from error
    return PreparedBaseline(repeat(run), result, detail)


BASELINES: dict[str, Callable[[Contraction, Tensor, Tensor, int], PreparedBaseline]] = {
    "numpy": numpy_baseline,
    "torch": torch_baseline,
}
"""The baselines without options, by name."""


def prepared_baseline(
    name: str, contraction: Contraction, a: Tensor, b: Tensor, threads: int
) -> PreparedBaseline:
    """Return a baseline on a contraction.

    Args:
        name: Its name, with options where it takes some: `tvm:trials=256`.
        contraction: The contraction.
        a: The first input.
        b: The second input.
        threads: Threads that it may use.

    Raises:
        BackendError: It needs something that is missing.
        IrgymError: There is no such option.
    """
    word = word_of(name)
    if word.name == "tvm":
        return tvm_baseline(contraction, a, b, threads, with_options(Tuning(), word.options, word.name))
    return BASELINES[word.name](contraction, a, b, threads)
