from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.target import X86_64_V3, X86_64_V4, Target
from irgym.envs.loops.compiling.kernel import Block, Copy, Node
from irgym.envs.loops.compiling.lower import lower
from irgym.envs.loops.compiling.plan import can_unroll, plan, vectorisable
from irgym.envs.loops.nest import Mark, Nest, parse_nest
from irgym.envs.loops.programs.contraction import Contraction, matmul, parse_uri

WIDE = X86_64_V4
NARROW = X86_64_V3
MM = matmul(128, 128, 128)
SEEDS = st.integers(0, 2**32 - 1)


nest = parse_nest


def emitted(nodes: tuple[Node, ...]) -> int:
    return sum(
        len(node.fmas) if isinstance(node, Block) else emitted(node.body)
        for node in nodes
        if not isinstance(node, Copy)
    )


def test_the_tile_of_a_good_matmul() -> None:
    tiles = plan(MM, nest("m/8 n/32 k m n"), WIDE)
    assert (tiles.lanes, tiles.vector_dim, tiles.a_vector, tiles.b_vector) == (16, "n", False, True)
    assert (tiles.tile_start, tiles.hoist, tiles.accumulators, tiles.fmas) == (3, 2, 16, 16)
    assert not tiles.partial
    assert not tiles.sum_lanes
    assert 1 < tiles.unroll[2] <= 8


def test_accumulators_limit_the_tile() -> None:
    tiles = plan(MM, nest("m/8 n/32 k m n"), NARROW)
    assert tiles.accumulators == 4
    assert tiles.partial
    assert plan(matmul(28, 16, 9), nest("k m n"), WIDE).accumulators == 28
    assert plan(matmul(29, 16, 9), nest("k m n"), WIDE).accumulators == 1


def test_a_reduction_outside_a_parallel_loop_makes_partial_sums() -> None:
    assert plan(MM, nest("k/16 m/8 n/32 k m n"), WIDE).partial
    assert not plan(matmul(128, 128, 1), nest("k m/8 n/32 m n"), WIDE).partial


def test_a_long_innermost_loop_is_strip_mined() -> None:
    tiles = plan(matmul(4, 600, 4), nest("m k n"), WIDE)
    assert [(loop.dim, loop.step) for loop in tiles.order] == [("m", 1), ("k", 1), ("n", 64), ("n", 1)]
    assert tiles.accumulators == 4
    assert plan(matmul(4, 28 * 16, 4), nest("m k n"), WIDE).accumulators == 28
    sums = plan(parse_uri("loops://einsum/mk,nk->mn?m=4&n=4&k=1000"), nest("m n k"), WIDE)
    assert [loop.step for loop in sums.order] == [1, 1, 16, 1]
    assert sums.sum_lanes


def test_a_vectorised_loop_moves_innermost() -> None:
    tiles = plan(MM, nest("n:v m k"), WIDE)
    assert [loop.dim for loop in tiles.order] == ["m", "k", "n"]
    assert tiles.lanes == 16


def test_an_unsuitable_innermost_loop_is_scalar() -> None:
    tiles = plan(MM, nest("k n m"), WIDE)
    assert (tiles.lanes, tiles.vector_dim) == (1, None)


def test_loops_of_one_iteration_do_not_count_as_innermost() -> None:
    assert plan(matmul(5, 1, 40), nest("m k n"), WIDE).vector_dim == "k"


@pytest.mark.parametrize(
    ("uri", "suitable"),
    [
        ("loops://mm/8x8x8", "n"),
        ("loops://einsum/mk,nk->mn?m=8&n=8&k=8", "k"),
        ("loops://einsum/km,kn->mn?m=8&n=8&k=8", "n"),
        ("loops://einsum/km,kn->nm?m=8&n=8&k=8", "m"),
        ("loops://einsum/mk,k->m?m=8&k=8", "k"),
        ("loops://einsum/mn,mn->mn?m=8&n=8", "n"),
        ("loops://einsum/m,n->mn?m=8&n=8", "n"),
        ("loops://einsum/[m+k],k->m?m=8&k=8", "mk"),
        ("loops://einsum/[2*m+k],k->m?m=8&k=8", "k"),
    ],
)
def test_vectorisable_dimensions(uri: str, suitable: str) -> None:
    contraction = parse_uri(uri)
    assert {dim for dim in contraction.sizes if vectorisable(contraction, dim)} == set(suitable)


def test_convolutions_vectorise_along_filters() -> None:
    conv = parse_uri("loops://conv/1x8x8x16x32x3x3?stride=2")
    assert [dim for dim in conv.sizes if vectorisable(conv, dim)] == ["f"]


def test_unroll_lets_a_loop_into_the_block() -> None:
    text = "m/8 n/32 k/8 k m n"
    before, after = plan(MM, nest(text), WIDE), plan(MM, nest(text.replace(" k m", " k:u m")), WIDE)
    assert (before.fmas, before.tile_start) == (16, 4)
    assert (after.fmas, after.tile_start) == (128, 3)
    assert can_unroll(MM, nest(text), 3, WIDE)


def test_unroll_of_an_outer_loop_copies_its_body() -> None:
    tiles = plan(MM, nest("m/8 n/32:u k m n"), WIDE)
    assert tiles.unroll[1] == 4
    assert tiles.emitted_fmas == 4 * plan(MM, nest("m/8 n/32 k m n"), WIDE).emitted_fmas


def test_unroll_is_refused_where_it_changes_nothing_or_too_much() -> None:
    assert not can_unroll(MM, nest("m/8 n/32 k m n"), 4, WIDE)  # in the block already
    assert not can_unroll(MM, nest("m/8 n/32 k:u m n"), 2, WIDE)  # marked already
    assert not can_unroll(MM, nest("m/8 n/32 k m n"), 2, WIDE)  # 128 * 16 FMAs
    assert not can_unroll(matmul(1, 64, 8), nest("m k n"), 0, WIDE)  # one iteration


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS, target=st.sampled_from([WIDE, NARROW]))
def test_the_plan_foretells_the_kernel(
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    seed: int,
    target: Target,
) -> None:
    contraction = random_contraction(seed)
    loops = random_nest(contraction, seed)
    tiles = plan(contraction, loops, target)
    assert emitted(lower(contraction, loops, target).body) == tiles.emitted_fmas
    assert 1 <= tiles.accumulators <= target.accumulators
    assert tiles.hoist <= tiles.tile_start <= len(tiles.order)
    for place, loop in enumerate(loops.loops):
        if can_unroll(contraction, loops, place, target):
            marked = list(loops.loops)
            marked[place] = replace(loop, mark=Mark.UNROLL)
            assert lower(contraction, Nest(tuple(marked)), target) != lower(contraction, loops, target)
