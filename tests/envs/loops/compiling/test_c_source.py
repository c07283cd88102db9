import ctypes
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from irgym.core.target import X86_64, X86_64_V3, X86_64_V4, Target
from irgym.envs.loops.compiling import c_source
from irgym.envs.loops.compiling.kernel import Accumulator, Block, Fma, Kernel, Tile
from irgym.envs.loops.compiling.lower import lower
from irgym.envs.loops.nest import Loop, Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction, Tensor, matmul, parse_uri

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")

WARNINGS = ("-Wall", "-Wextra", "-Werror")
Guard = Callable[[Tensor], Tensor]
TARGETS = (X86_64_V4, X86_64_V3, X86_64)


def build(source: str, folder: Path, *flags: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """Compile `source` without a warning and return its function `kernel`."""
    file = folder / "kernel.c"
    file.write_text(source)
    library = file.with_suffix(".so")
    assert COMPILER is not None
    subprocess.run([COMPILER, *WARNINGS, *flags, "-shared", "-fPIC", file, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).kernel
    function.restype = None
    return lambda *tensors: function(*(ctypes.c_void_p(tensor.ctypes.data) for tensor in tensors))


def check(
    contraction: Contraction, nest: Nest, target: Target, guard: Guard, folder: Path, *flags: str
) -> None:
    """Compute from a C full of NaN, with memory behind each tensor that must not be touched."""
    kernel = lower(contraction, nest, target)
    run = build(c_source.emit(kernel, contraction, nest, "kernel"), folder, *flags)
    a, b = contraction.random_inputs(seed=0)
    c = guard(np.full(contraction.shapes[2], np.nan, dtype=np.float32))
    run(guard(a), guard(b), c)
    terms = contraction.flops // (2 * c.size)
    np.testing.assert_allclose(c, contraction.reference(a, b), rtol=1e-5, atol=1e-6 * (terms + 8))


@needs_compiler
@pytest.mark.parametrize("flags", [("-O2", "-march=native"), ("-O1",)], ids=" ".join)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.lanes} lanes")
@pytest.mark.parametrize(
    "uri",
    [
        "loops://mm/9x37x11",  # rows of vectors with tails
        "loops://einsum/mk,nk->mn?m=3&n=2&k=21",  # a sum over lanes with a tail
        "loops://einsum/mk,kn->nm?m=3&n=5&k=4",  # scalar code
    ],
)
def test_unscheduled_nests(
    uri: str, target: Target, flags: tuple[str, ...], at_page_end: Guard, tmp_path: Path
) -> None:
    contraction = parse_uri(uri)
    check(contraction, initial_nest(contraction), target, at_page_end, tmp_path, *flags)


@needs_compiler
@pytest.mark.parametrize("seed", range(6))
def test_random_nests(
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    prefetching: Callable[[bool], AbstractContextManager[object]],
    at_page_end: Guard,
    seed: int,
    tmp_path: Path,
) -> None:
    contraction = random_contraction(seed)
    nest = random_nest(contraction, seed)
    with prefetching(seed % 2 == 0):
        check(contraction, nest, TARGETS[seed % 3], at_page_end, tmp_path, "-O1", "-march=native")


@needs_compiler
def test_a_sum_that_is_continued(at_page_end: Guard, tmp_path: Path) -> None:
    # The reduction is outside and inside: C is cleared first, and tiles add to it.
    contraction = matmul(5, 19, 12)
    nest = Nest((Loop("k", 4), Loop("m", 1), Loop("n", 1), Loop("k", 1)))
    assert lower(contraction, nest, TARGETS[0]).clear == 5 * 19
    for target in TARGETS:
        check(contraction, nest, target, at_page_end, tmp_path, "-O1")


@needs_compiler
def test_a_broadcast_operand_does_not_reach_the_unused_lanes_of_a_sum(tmp_path: Path) -> None:
    kernel = Kernel(
        (Tile((Accumulator(0, 1),), False, (Block((Fma(0, 0, 0, 3),)),)),), 16, True, False, True, 0
    )
    contraction = parse_uri("loops://einsum/k,n->n?k=3&n=1")
    run = build(c_source.emit(kernel, contraction, initial_nest(contraction), "kernel"), tmp_path, "-O1")
    c = np.zeros(1, np.float32)
    run(np.ones(16, np.float32), np.full(1, np.inf, np.float32), c)
    assert c[0] == np.inf


def test_the_comment_says_what_it_is_and_how_to_use_it() -> None:
    contraction = matmul(4, 5, 6)
    nest = Nest((Loop("m", 2), Loop("k", 1), Loop("m", 1), Loop("n", 1)))
    source = c_source.emit(lower(contraction, nest, TARGETS[0]), contraction, nest, "multiply")
    head = source.partition("*/")[0]
    for part in (
        "loops://mm/4x5x6",
        "m/2 k m n",
        "C[m, n] += A[m, k] * B[k, n]",
        "cc -O3 -march=native",
        "void multiply(const float *restrict a, const float *restrict b, float *restrict c);",
        "a: float[4][6], b: float[6][5], c: float[4][5]",
    ):
        assert part in head
