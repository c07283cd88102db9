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


def test_sketches_of_a_seed_are_the_same():
    task = LINALG.task("linalg://sequence/3?length=4")
    first, second = (list(task.sketch(np.random.default_rng(5))) for _ in range(2))
    assert first == second
