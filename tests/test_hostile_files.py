"""A short run of `fuzz/hostile_files.py`: a file for each kind of door, under a watchdog."""

import pytest
from hostile_files import CASES, opened

DOORS = (
    "onnx/external_offset_negative",
    "pt2/pickle_in_sample_inputs",
    "source/c_includes_stdin",
    "folder/cache_pickle",
    "protocol/package_leaves_its_folder",
)


@pytest.mark.parametrize("name", DOORS)
def test_a_hostile_file_ends_in_one_sentence(name: str):
    verdict = opened(CASES[name])
    # A busy machine may be slow: that is for the campaign to judge.
    assert set(verdict.faults) <= {"too slow"}, verdict.ending.said


def test_there_are_many_hostile_files():
    assert len(CASES) > 150
