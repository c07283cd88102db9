import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irgym.envs.loops.codegen import llvm
from irgym.envs.loops.codegen.kernel import Accumulator, Block, Fma, Kernel, Repeat, Tile
from irgym.envs.loops.contraction import Contraction, matmul, parse_uri


def check(contraction: Contraction, kernel: Kernel) -> None:
    """Run twice in a row from a C full of NaN; memory beyond the tensors must stay as it was."""
    a, b = contraction.random_inputs(seed=0)
    padded = np.full(contraction.shapes[2][0] * contraction.shapes[2][1] + 64, np.nan, dtype=np.float32)
    c = padded[:-64].reshape(contraction.shapes[2])
    with llvm.compile(llvm.emit(kernel, "f", repetitions=True), "f") as executable:
        executable.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 2)
    reference = contraction.reference(a, b)
    np.testing.assert_allclose(c, reference, rtol=1e-5, atol=1e-5 * np.abs(reference).max())
    assert np.isnan(padded[-64:]).all()


def rows_by_vectors(lanes: int, clear: bool) -> tuple[Contraction, Kernel]:
    """m=4, k=6, n=2*lanes+3 with two rows a tile; `clear` halves the reduction, so that C is read back."""
    n, tail = 2 * lanes + 3, 3
    columns = [(0, lanes), (lanes, lanes), (2 * lanes, tail)]
    accumulators = tuple(Accumulator(row * n + at, width) for row in range(2) for at, width in columns)
    fmas = tuple(
        Fma(3 * row + place, 6 * row, at, width)
        for row in range(2)
        for place, (at, width) in enumerate(columns)
    )
    depth = 3 if clear else 6
    tile = Tile(accumulators, clear, (Repeat(depth, (1, n, 0), (Block(fmas),)),))
    body = Repeat(2, (12, 0, 2 * n), (tile,))
    outer = Repeat(2, (3, 3 * n, 0), (body,)) if clear else body
    return matmul(4, n, 6), Kernel((outer,), lanes, False, True, False, 4 * n if clear else 0)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("clear", [False, True])
def test_rows_by_vectors_with_tails(lanes: int, clear: bool) -> None:
    check(*rows_by_vectors(lanes, clear))


@pytest.mark.parametrize("load", [False, True])
def test_sum_over_lanes_with_a_tail(load: bool) -> None:
    # C[m, n] = sum over k of A[m, k] * B[n, k], with k = 16 + 5 along the lanes.
    contraction = parse_uri("loops://einsum/mk,nk->mn?m=3&n=2&k=21")
    fmas = (Fma(0, 0, 0, 16), Fma(0, 16, 16, 5))
    blocks = [fmas[:1], fmas[1:]] if load else [fmas]
    tiles = tuple(Tile((Accumulator(0, 1),), load, (Block(block),)) for block in blocks)
    body = Repeat(3, (21, 0, 2), (Repeat(2, (0, 21, 1), tiles),))
    check(contraction, Kernel((body,), 16, True, True, True, 6 if load else 0))


def test_a_broadcast_operand_does_not_reach_the_unused_lanes_of_a_sum() -> None:
    # 0 * infinity would be NaN in the lanes beyond the tail.
    kernel = Kernel(
        (Tile((Accumulator(0, 1),), False, (Block((Fma(0, 0, 0, 3),)),)),), 16, True, False, True, 0
    )
    a, b, c = np.ones(16, np.float32), np.full(1, np.inf, np.float32), np.zeros(1, np.float32)
    with llvm.compile(llvm.emit(kernel, "f", repetitions=True), "f") as executable:
        executable.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 1)
    assert c[0] == np.inf


def test_scalar_code() -> None:
    # n innermost and transposed: B[n, k] has no unit stride along n.
    contraction = parse_uri("loops://einsum/mk,nk->mn?m=3&n=5&k=7")
    block = Block((Fma(0, 0, 0, 1),))
    tile = Tile((Accumulator(0, 1),), False, (Repeat(7, (1, 1, 0), (block,)),))
    body = Repeat(3, (7, 0, 5), (Repeat(5, (0, 7, 1), (tile,)),))
    check(contraction, Kernel((body,), 1, False, False, False, 0))


def test_both_operands_along_the_lanes() -> None:
    # C[b, n] = A[b, n] * B[b, n]: nothing is broadcast.
    contraction = parse_uri("loops://einsum/bn,bn->bn?b=3&n=19")
    parts = ((0, 16), (16, 3))
    tile = Tile(
        tuple(Accumulator(at, width) for at, width in parts),
        False,
        (Block(tuple(Fma(place, at, at, width) for place, (at, width) in enumerate(parts))),),
    )
    check(contraction, Kernel((Repeat(3, (19, 19, 19), (tile,)),), 16, True, True, False, 0))


def test_three_arguments_without_repetitions() -> None:
    _, kernel = rows_by_vectors(8, clear=True)
    ir = llvm.emit(kernel, "irgym_kernel", repetitions=False)
    assert "define void @irgym_kernel(ptr noalias %a, ptr noalias %b, ptr noalias %c) " in ir
    assert llvm.compile_object(ir)


def test_the_target_fits_the_host() -> None:
    target = llvm.host_target()
    assert target.lanes in (4, 8, 16)
    assert target.accumulators < target.registers
    assert ("+avx512f" in llvm.host().features.split(",")) == (target.lanes == 16)
