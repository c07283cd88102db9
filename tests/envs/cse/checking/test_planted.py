"""The bars of fuzz/cse_planted.py, on a few faults and choices."""

import time

import pytest
from cse_planted import Options, plant_nothing, plant_wrong, plant_zeros

WRONG_S = 25.0
"""Processor time for faults, in seconds; most of it proves that they are not equivalent."""


def test_no_planted_fault_is_accepted(capsys: pytest.CaptureFixture[str]):
    assert not plant_wrong(Options("wrong", 6, time.process_time() + WRONG_S, inputs=2, datasets=()))
    planted = capsys.readouterr().out.rpartition(" planted faults")[0].split()[-1]
    assert int(planted) > 30


@pytest.mark.parametrize(("what", "plant", "count"), [("zero", plant_zeros, 8), ("right", plant_nothing, 12)])
def test_the_bars_hold_on_the_kernels(what: str, plant, count: int):
    assert not plant(Options(what, count=count, seconds=1e9, inputs=2, datasets=("kernels",)))
