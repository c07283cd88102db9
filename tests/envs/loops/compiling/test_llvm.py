from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from irgym.core.target import X86_64, X86_64_V3, X86_64_V4, Target
from irgym.envs.loops.compiling import llvm, llvm_ir
from irgym.envs.loops.compiling.kernel import Accumulator, Block, Fma, Kernel, Repeat, Tile
from irgym.envs.loops.compiling.lower import lower
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction, Tensor, matmul, parse_uri

Guard = Callable[[Tensor], Tensor]


def check(contraction: Contraction, kernel: Kernel, guard: Guard) -> None:
    """Run twice in a row from a C full of NaN, with memory behind each tensor that must not be touched."""
    inputs = contraction.random_inputs(seed=0)
    a, b = map(guard, inputs)
    c = guard(np.full(contraction.shapes[2], np.nan, dtype=np.float32))
    ir = llvm_ir.emit(kernel, "f", repetitions=True)
    with closing(llvm.compile(ir, "f", llvm.host(), kernel.workspace)) as executable:
        executable.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 2)
    terms = contraction.flops // (2 * c.size)
    np.testing.assert_allclose(c, contraction.reference(*inputs), rtol=1e-5, atol=1e-6 * (terms + 8))


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
def test_rows_by_vectors_with_tails(lanes: int, clear: bool, at_page_end: Guard) -> None:
    check(*rows_by_vectors(lanes, clear), at_page_end)


@pytest.mark.parametrize("load", [False, True])
def test_sum_over_lanes_with_a_tail(load: bool, at_page_end: Guard) -> None:
    # C[m, n] = sum over k of A[m, k] * B[n, k], with k = 16 + 5 along the lanes.
    contraction = parse_uri("loops://einsum/mk,nk->mn?m=3&n=2&k=21")
    fmas = (Fma(0, 0, 0, 16), Fma(0, 16, 16, 5))
    blocks = [fmas[:1], fmas[1:]] if load else [fmas]
    tiles = tuple(Tile((Accumulator(0, 1),), load, (Block(block),)) for block in blocks)
    body = Repeat(3, (21, 0, 2), (Repeat(2, (0, 21, 1), tiles),))
    check(contraction, Kernel((body,), 16, True, True, True, 6 if load else 0), at_page_end)


def test_a_broadcast_operand_does_not_reach_the_unused_lanes_of_a_sum() -> None:
    # 0 * infinity would be NaN in the lanes beyond the tail.
    kernel = Kernel(
        (Tile((Accumulator(0, 1),), False, (Block((Fma(0, 0, 0, 3),)),)),), 16, True, False, True, 0
    )
    a, b, c = np.ones(16, np.float32), np.full(1, np.inf, np.float32), np.zeros(1, np.float32)
    ir = llvm_ir.emit(kernel, "f", repetitions=True)
    with closing(llvm.compile(ir, "f", llvm.host(), kernel.workspace)) as executable:
        executable.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 1)
    assert c[0] == np.inf


def test_scalar_code(at_page_end: Guard) -> None:
    # n innermost and transposed: B[n, k] has no unit stride along n.
    contraction = parse_uri("loops://einsum/mk,nk->mn?m=3&n=5&k=7")
    block = Block((Fma(0, 0, 0, 1),))
    tile = Tile((Accumulator(0, 1),), False, (Repeat(7, (1, 1, 0), (block,)),))
    body = Repeat(3, (7, 0, 5), (Repeat(5, (0, 7, 1), (tile,)),))
    check(contraction, Kernel((body,), 1, False, False, False, 0), at_page_end)


def test_neither_operand_is_broadcast(at_page_end: Guard) -> None:
    # C[b, n] = A[b, n] * B[b, n]: nothing is broadcast.
    contraction = parse_uri("loops://einsum/bn,bn->bn?b=3&n=19")
    parts = ((0, 16), (16, 3))
    tile = Tile(
        tuple(Accumulator(at, width) for at, width in parts),
        False,
        (Block(tuple(Fma(place, at, at, width) for place, (at, width) in enumerate(parts))),),
    )
    check(contraction, Kernel((Repeat(3, (19, 19, 19), (tile,)),), 16, True, True, False, 0), at_page_end)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), target=st.sampled_from([X86_64, X86_64_V3, X86_64_V4]))
def test_random_nests(
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    at_page_end: Guard,
    seed: int,
    target: Target,
) -> None:
    contraction = random_contraction(seed)
    kernel = lower(contraction, random_nest(contraction, seed), target)
    check(contraction, kernel, at_page_end)


def test_three_arguments_without_repetitions() -> None:
    _, kernel = rows_by_vectors(8, clear=True)
    ir = llvm_ir.emit(kernel, "irgym_kernel", repetitions=False)
    assert "define void @irgym_kernel(ptr noalias %a, ptr noalias %b, ptr noalias %c) " in ir
    assert llvm.compile_object(ir, llvm.host())
