"""Few of the faults and choices that fuzz/cse_planted.py counts: the bars hold for them."""

import pytest
from cse_planted import Options, plant_nothing, plant_wrong, plant_zeros


@pytest.mark.parametrize(
    ("what", "plant", "count"),
    [("wrong", plant_wrong, 2), ("zero", plant_zeros, 12), ("right", plant_nothing, 12)],
)
def test_the_bars_hold_on_the_kernels(what: str, plant, count: int):
    assert not plant(Options(what, count=count, seconds=1e9, inputs=2, datasets=("kernels",)))
