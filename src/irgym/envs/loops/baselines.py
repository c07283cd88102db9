"""Peers that compute the same contraction: numpy, torch, TVM. Imported in the child only."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.core.errors import BackendError, IrgymError
from irgym.envs.loops.contraction import Contraction, Floats, aligned


@dataclass(frozen=True)
class Peer:
    """A peer, prepared for one program and its inputs.

    Attributes:
        run: Computes the result that many times.
        result: Returns the last result.
        detail: What it ran on: library, kernels, threads.
    """

    run: Callable[[int], None]
    result: Callable[[], NDArray[np.floating]]
    detail: str


def _repeat(function: Callable[[], Any]) -> Callable[[int], None]:
    def run(repetitions: int) -> None:
        for _ in range(repetitions):
            function()

    return run


def _fastest(candidates: Mapping[str, Callable[[], Any]]) -> str:
    """Return the name of the fastest candidate of three runs each, the first not counted."""

    def least(function: Callable[[], Any]) -> float:
        function()
        times: list[float] = []
        for _ in range(3):
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
        return min(times)

    return min(candidates, key=lambda name: least(candidates[name]))


def numpy_kernels() -> str:
    """Return which BLAS numpy uses, the kernels it picked, and its threads."""
    if "OPENBLAS_CORETYPE" in os.environ or "OPENBLAS_L2_SIZE" in os.environ:
        raise BackendError("numpy is held to slow kernels: unset OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE")
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    text = f"numpy {np.__version__}, {blas['name']} {blas['version']}"
    core = _openblas_core()
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    count = "1 thread" if threads == "1" else f"{threads} threads"
    return f"{text}{f' on {core} kernels' if core else ''}, {count}"


def _openblas_core() -> str | None:
    """Return the name of the kernels that OpenBLAS picked for this CPU, None with another BLAS."""
    import ctypes

    libraries = {
        line.split()[-1]
        for line in (
            Path("/proc/self/maps").read_text().splitlines() if Path("/proc/self/maps").exists() else ()
        )
        if "openblas" in line
    }
    for path in libraries:
        library = ctypes.CDLL(path)
        for prefix in ("scipy_openblas_get_corename64_", "openblas_get_corename"):
            function: Any = getattr(library, prefix, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return function().decode()
    return None


def numpy_peer(contraction: Contraction, a: Floats, b: Floats) -> Peer:
    """Return numpy's fastest way: matmul where the program is one, else einsum or a sum of matmuls."""
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
    return Peer(_repeat(candidates[chosen]), lambda: c, f"{chosen}, {numpy_kernels()}")


def _stride(contraction: Contraction) -> int:
    """Return the stride of a convolution: how far the input moves with the output's row."""
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


def torch_peer(contraction: Contraction, a: Floats, b: Floats) -> Peer:
    """Return torch's own operator: mm, bmm, conv2d (channels last) or einsum; one thread, no gradients."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        raise BackendError("torch is not installed: run pip install 'irgym[learn]'") from None
    torch.set_num_threads(1)
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

    detail = f"torch {torch.__version__}, 1 thread"

    def result() -> NDArray[np.floating]:
        return results[0].numpy()

    def run_all(repetitions: int) -> None:
        with torch.inference_mode():
            for _ in range(repetitions):
                run()

    return Peer(run_all, result, detail)


def tvm_peer(contraction: Contraction, a: Floats, b: Floats) -> Peer:
    """Return what TVM's MetaSchedule finds in 64 trials; see `irgym.envs.loops.tvm_peer`."""
    from irgym.envs.loops.tvm_peer import tune

    try:
        run, result, detail = tune(contraction, a, b, trials=64)
    except IrgymError:
        raise
    except Exception as error:
        # Whatever goes wrong inside TVM must not end a comparison of other methods.
        raise BackendError(f"TVM failed on {contraction.uri} ({error}): leave tvm out") from error
    return Peer(_repeat(run), result, detail)


PEERS: dict[str, Callable[[Contraction, Floats, Floats], Peer]] = {
    "numpy": numpy_peer,
    "torch": torch_peer,
    "tvm": tvm_peer,
}
"""The peers by name."""
