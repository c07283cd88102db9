from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.target import X86_64_V3, X86_64_V4, Cache, Target
from irgym.envs.loops.compiling.plan import plan
from irgym.envs.loops.modelling.model import Model, caches_of, slots
from irgym.envs.loops.nest import Nest, parse_nest
from irgym.envs.loops.programs.contraction import Contraction, parse_uri
from irgym.envs.loops.sketches import draw

CACHES = (Cache(1, 32 << 10, 64, 8), Cache(2, 1 << 20, 64, 8), Cache(3, 32 << 20, 64, 16))
ZEN_4 = replace(X86_64_V4, caches=CACHES)
TARGETS = (ZEN_4, X86_64_V3)
PROGRAMS = (
    "loops://mm/256x256x256",
    "loops://mm/33x47x65",
    "loops://mm/512x48x1024",
    "loops://bmm/4x64x64x32",
    "loops://conv/1x14x14x16x32x3x3",
    "loops://einsum/mk,nk->mn?m=40&n=70&k=90",
)


def model(contraction: Contraction, nest: str, target: Target = ZEN_4) -> Model:
    return Model(contraction, plan(contraction, parse_nest(nest), target), target)


def lines(contraction: Contraction) -> int:
    """Lines of A, B and C, each from its first to its last element that is used."""
    return sum(
        -(-4 * (1 + sum(stride * (contraction.sizes[dim] - 1) for dim, stride in strides.items())) // 64)
        for strides in contraction.strides
    )


def test_full_tiles_take_about_a_slot_for_each_multiply_add():
    product, multiply_adds = parse_uri("loops://mm/280x320x256"), 280 * 320 * 256 / 16
    assert model(product, "n/32 m/14 k m n").arithmetic == pytest.approx(multiply_adds, rel=0.03)
    # Here there are as many loads as multiply-adds.
    assert model(product, "m/14 n/16 k m n").arithmetic > 1.1 * multiply_adds
    # A single accumulator waits for itself.
    assert model(product, "m n/16 k n").arithmetic == 8 * multiply_adds


def random_nest(uri: str, target: Target, seed: int) -> tuple[Nest, Model]:
    contraction = parse_uri(uri)
    nest = draw(contraction, target, np.random.default_rng(seed))
    return nest, Model(contraction, plan(contraction, nest, target), target)


nests = st.builds(random_nest, st.sampled_from(PROGRAMS), st.sampled_from(TARGETS), st.integers(0, 10**6))


@settings(max_examples=80, deadline=None)
@given(nests)
def test_no_nest_is_faster_than_the_peak(drawn: tuple[Nest, Model]):
    nest, found = drawn
    assert found.arithmetic * found.target.lanes >= found.contraction.flops / 2
    assert found.total >= found.arithmetic > 0
    assert found.total == slots(found.contraction, nest, found.target)


@settings(max_examples=80, deadline=None)
@given(nests)
def test_a_larger_cache_never_lacks_more(drawn: tuple[Nest, Model]):
    _, found = drawn
    missed = [found.missed(Cache(1, 1 << size, 64)) for size in range(12, 28)]
    assert all(more >= less * 0.999 for more, less in pairwise(missed))


def test_a_cache_that_holds_everything_has_it_from_the_run_before():
    product = parse_uri("loops://mm/64x64x64")
    found = model(product, "n/32 m/14 k m n")
    assert found.missed(CACHES[1]) == 0
    assert found.missed(CACHES[0]) >= lines(product)


def test_blocks_and_copies_spare_misses():
    product = parse_uri("loops://mm/1024x1024x1024")
    plain = model(product, "n/32 m/14 k m n")
    blocked = model(product, "k/256 pack(b) m/224 pack(a) n/32 m/14 k m n")
    assert blocked.missed(CACHES[1]) < plain.missed(CACHES[1]) / 4
    assert blocked.lines[1] < plain.lines[1] / 4 and blocked.copies > plain.copies == 0
    assert blocked.total < plain.total


def test_a_level_without_caches_has_usual_ones():
    assert [cache.level for cache in caches_of(X86_64_V3)] == [1, 2, 3]
    assert caches_of(ZEN_4) == CACHES
