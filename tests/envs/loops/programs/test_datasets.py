import pytest

from irgym.base.errors import ProgramError
from irgym.envs.loops.programs.contraction import parse_uri
from irgym.envs.loops.programs.datasets import FIXED, dataset


def test_looptunes_ranges_are_complete():
    assert sum(len(dataset("mm64_256_16_range").split(s)) for s in ("train", "test")) == 2197
    assert sum(len(dataset("mm64_128_16_range").split(s)) for s in ("train", "test")) == 125


@pytest.mark.parametrize("name", [*FIXED, "mm_random:count=40", "conv_random:count=40,low=4,high=64,seed=3"])
def test_splits_are_disjoint_fixed_and_valid(name: str):
    data = dataset(name)
    assert data.train and data.test and not set(data.train) & set(data.test)
    assert dataset(name) == data
    assert 0.03 < len(data.test) / (len(data.train) + len(data.test)) < 0.25
    for uri in (*data.train[::37], *data.test[::37]):
        assert parse_uri(uri).uri == uri


def test_the_split_of_the_shipped_policy_does_not_move():
    assert dataset("mm64_256_16_range").test[:3] == (
        "loops://mm/64x64x240",
        "loops://mm/64x80x128",
        "loops://mm/64x80x160",
    )


@pytest.mark.parametrize(
    "name", ["nope", "mm_random:count=0", "mm_random:low=9,high=3", "fft_random", "mm_random:size=3"]
)
def test_bad_names_say_what_exists(name: str):
    with pytest.raises(ProgramError):
        dataset(name)
