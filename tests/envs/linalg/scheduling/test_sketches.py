import re

import numpy as np
import pytest

from irgym.core.schedule import Schedule, states_along
from irgym.envs.linalg.environment import LINALG

PROGRAMS = (
    "linalg://matmul/32x48x64",
    "linalg://conv2d/1x8x10x10x16x3x3?stride=1",
    "linalg://conv2d/1x8x11x11x16x3x3?stride=2",
    "linalg://maxpool/1x16x16x16x2?stride=2",
    "linalg://softmax/16x64",
    "linalg://lattice/1000",
    "linalg://sequence/3?length=4",
)


@pytest.mark.parametrize("uri", PROGRAMS)
def test_sketches_apply_and_schedule_every_operation(uri):
    task = LINALG.task(uri)
    rng = np.random.default_rng(0)
    texts = set()
    for _ in range(20):
        states = states_along(task, Schedule(tuple(task.sketch(rng))))
        assert task.terminal(states[-1]) and len(states) <= task.horizon
        texts.add(task.key(states[-1]))
    assert len(texts) > 5


def test_sketches_of_products_are_vectorised():
    task = LINALG.task("linalg://matmul/32x48x64")
    rng = np.random.default_rng(0)
    ends = [states_along(task, Schedule(tuple(task.sketch(rng))))[-1] for _ in range(20)]
    assert all(end.operations[1].vectorised for end in ends)


@pytest.mark.parametrize(
    ("uri", "form"),
    [
        ("linalg://matmul/96x256x256", r"tile_0_16_0 pack_1 tile_6_0_1 vectorise_0"),
        ("linalg://conv2d/1x32x30x34x48x3x3", r"tile_0_6_1_(16|0)_1_1_1 vectorise_0"),
        ("linalg://conv2d/1x16x33x33x48x3x3?stride=2", r"img2col.* tile_0_0_16_0 pack_1 tile_0_6_0_1 vec"),
    ],
)
def test_many_sketches_have_the_form_that_experts_write(uri, form):
    task = LINALG.task(uri, target="x86-64-v3")
    rng = np.random.default_rng(0)
    ends = [states_along(task, Schedule(tuple(task.sketch(rng))))[-1] for _ in range(100)]
    assert sum(re.search(form, task.key(end)) is not None for end in ends) >= 5


def test_sketches_of_a_seed_are_the_same():
    task = LINALG.task("linalg://sequence/3?length=4")
    first, second = (list(task.sketch(np.random.default_rng(5))) for _ in range(2))
    assert first == second
