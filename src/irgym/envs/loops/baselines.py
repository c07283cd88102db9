"""Baselines: numpy, torch and TVM on the same contraction. For child processes only."""

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BackendError, IrgymError
from irgym.base.options import with_options, word_of
from irgym.core.baseline import INSTALL_TORCH, Tuning
from irgym.envs.loops.programs.contraction import Contraction, Floats
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


def numpy_baseline(contraction: Contraction, a: Floats, b: Floats, threads: int) -> PreparedBaseline:
    """Return numpy's fastest implementation: matmul for matrix products, else einsum or a sum of matmuls.

    The environment of the process sets the threads of its BLAS.
    """
    del threads
    c = aligned(contraction.shapes[2])
    family = contraction.uri.split("/")[2]
    candidates: dict[str, Callable[[], Any]]
    if family in ("mm", "bmm"):
        candidates = {"matmul": lambda: np.matmul(a, b, out=c)}
    else:
        subscripts, left, right = contraction.einsum_operands(a, b)
        candidates = {"einsum": lambda: np.einsum(subscripts, left, right, out=c, optimize=True)}
        if family == "conv":
            candidates["a sum of matmuls"] = _shifted_matmuls(contraction, a, b, c)
    chosen = _fastest(candidates) if len(candidates) > 1 else next(iter(candidates))
    return PreparedBaseline(repeat(candidates[chosen]), lambda: c, f"{chosen}, {numpy_kernels()}")


def _stride(contraction: Contraction) -> int:
    """Return the stride of a convolution: rows of the input for each row of the output."""
    return dict(contraction.a[1].terms)["h"]


def _shifted_matmuls(contraction: Contraction, a: Floats, b: Floats, c: Floats) -> Callable[[], Any]:
    """Return a convolution as one matmul for each element of the filter, on a shifted view of the input."""
    sizes, stride = contraction.sizes, _stride(contraction)
    partial = aligned(c.shape)

    def run() -> None:
        c.fill(0.0)
        for row in range(sizes["r"]):
            for column in range(sizes["s"]):
                rows = slice(row, row + stride * (sizes["h"] - 1) + 1, stride)
                columns = slice(column, column + stride * (sizes["w"] - 1) + 1, stride)
                np.matmul(a[:, rows, columns, :], b[row, column], out=partial)
                np.add(c, partial, out=c)

    return run


def torch_baseline(contraction: Contraction, a: Floats, b: Floats, threads: int) -> PreparedBaseline:
    """Return torch's operator, without gradients: mm, bmm, conv2d (channels last) or einsum."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        raise BackendError(f"torch is not installed: run {INSTALL_TORCH}") from None
    torch.set_num_threads(threads)
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    family = contraction.uri.split("/")[2]
    results: list[Any] = [None]
    if family in ("mm", "bmm"):
        out = torch.from_numpy(aligned(contraction.shapes[2]))
        operator = torch.mm if family == "mm" else torch.bmm

        def run() -> None:
            results[0] = operator(left, right, out=out)
    elif family == "conv":
        image = left.permute(0, 3, 1, 2)
        weight = right.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        stride = _stride(contraction)

        def run() -> None:
            results[0] = torch.nn.functional.conv2d(image, weight, stride=stride).permute(0, 2, 3, 1)
    else:
        subscripts, left_view, right_view = contraction.einsum_operands(a, b)
        left = torch.as_strided(left, left_view.shape, [stride // 4 for stride in left_view.strides])
        right = torch.as_strided(right, right_view.shape, [stride // 4 for stride in right_view.strides])

        def run() -> None:
            results[0] = torch.einsum(subscripts, left, right)

    detail = f"torch {torch.__version__}, {threads_text(threads)}"

    def result() -> NDArray[np.floating]:
        return results[0].numpy()

    def run_all(repetitions: int) -> None:
        with torch.inference_mode():
            for _ in range(repetitions):
                run()

    return PreparedBaseline(run_all, result, detail)


def tvm_baseline(
    contraction: Contraction, a: Floats, b: Floats, threads: int, tuning: Tuning
) -> PreparedBaseline:
    """Return the best of the trials of TVM's MetaSchedule; see `irgym.envs.loops.tvm_baseline`."""
    if threads > 1:
        raise BackendError("the baseline tvm has one thread: leave it out, or the back end's threads")
    from irgym.envs.loops.tvm_baseline import tune

    try:
        run, result, detail = tune(contraction, a, b, trials=tuning.trials)
    except IrgymError:
        raise
    except Exception as error:
        # An error inside TVM must not end a comparison of other methods.
        raise BackendError(f"TVM failed on {contraction.uri} ({error}): leave tvm out") from error
    return PreparedBaseline(repeat(run), result, detail)


BASELINES: dict[str, Callable[[Contraction, Floats, Floats, int], PreparedBaseline]] = {
    "numpy": numpy_baseline,
    "torch": torch_baseline,
}
"""The baselines without options, by name."""


def prepared_baseline(
    name: str, contraction: Contraction, a: Floats, b: Floats, threads: int
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
