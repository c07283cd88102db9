"""Parts of large nests: what they compute, how large they are, and how long the whole is said to take."""

from contextlib import closing
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.target import X86_64_V3, X86_64_V4, Target
from irgym.envs.loops.compiling.backends import BACKENDS, Backend
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.modelling.analytical import ranked
from irgym.envs.loops.modelling.parts import PART, growth, part_of
from irgym.envs.loops.nest import initial_nest, parse_nest
from irgym.envs.loops.programs.contraction import matmul, parse_uri
from irgym.envs.loops.runner import estimate, measure
from irgym.envs.loops.sketches import draw
from irgym.measure.timing import Timing

LARGE = (
    "loops://mm/1024x1024x1024",
    "loops://mm/700x1000x900",
    "loops://bmm/16x512x512x64",
    "loops://conv/1x56x56x128x128x3x3",
    "loops://mm/1x16384x16384",
)
each = pytest.mark.parametrize("generator", BACKENDS, ids=lambda generator: generator.name)


@settings(max_examples=60, deadline=None)
@given(
    uri=st.sampled_from(LARGE),
    target=st.sampled_from((X86_64_V3, X86_64_V4)),
    seed=st.integers(0, 10**6),
)
def test_a_part_has_about_as_many_operations_as_wanted(uri: str, target: Target, seed: int):
    contraction = parse_uri(uri)
    nest = draw(contraction, target, np.random.default_rng(seed))
    part = part_of(contraction, nest)
    sizes = {**contraction.sizes, **part}
    assert all(0 < sizes[dim] <= contraction.sizes[dim] for dim in sizes)
    operations = contraction.inputs * prod(sizes.values())
    assert operations < contraction.flops
    assert PART / 3 < operations < 3 * PART
    assert growth(contraction, nest, target, part) > 1.5


@each
@pytest.mark.parametrize("nest", ["m k n", "k/8 n/16 pack(b) m/4 k m n", "n/32 m/6 pack(a) k m n", "n m k"])
def test_a_part_computes_what_the_program_does_on_parts_of_the_inputs(generator: Backend, nest: str):
    if not generator.available().available:
        pytest.skip(generator.available().detail)
    contraction = matmul(40, 70, 33)
    a, b = contraction.random_inputs(1)
    c = np.full((40, 70), np.nan, np.float32)
    part = {"m": 13, "n": 37, "k": 16}
    with closing(generator.compile(contraction, parse_nest(nest), part)) as executable:
        executable.run(a.ctypes.data, b.ctypes.data, c.ctypes.data, 2)
    np.testing.assert_allclose(c[:13, :37], a[:13, :16] @ b[:16, :37], rtol=1e-5, atol=1e-5)
    assert not np.nan_to_num(c[13:]).any() and not np.nan_to_num(c[:, 37:]).any()


def test_only_large_programs_on_one_thread_are_estimated():
    large, small = LARGE[0], "loops://mm/64x64x64"
    for uri, backend, estimated in ((large, "llvm", True), (small, "llvm", False), (large, "llvm:2", False)):
        task = LOOPS.task(uri, backend)
        job = task.estimate(task.initial())
        assert (job is not None) == estimated
        if job is not None:
            assert job.objective != task.job(task.initial()).objective


@pytest.mark.timed
def test_estimates_are_near_what_whole_nests_take():
    uri = "loops://mm/768x768x768"
    task = LOOPS.task(uri)
    contraction = parse_uri(uri)
    for nest in (*ranked(contraction, task.target)[:2], initial_nest(contraction)):
        arguments = (uri, nest, task.backend.name, task.target, Timing())
        whole, found = measure(*arguments), estimate(*arguments)
        assert whole.ok and found.ok
        assert 0.6 < found.cost / whole.cost < 1.5, nest.text()
