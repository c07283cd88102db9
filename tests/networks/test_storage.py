import resource

import numpy as np
import pytest
import torch

from irgym.base.errors import StorageError
from irgym.networks import storage


def test_the_file_replaced_is_kept_as_the_previous(tmp_path):
    path, previous = tmp_path / "a.pt", tmp_path / "b.pt"
    for number in range(3):
        storage.write(path, {"kind": "x", "number": number}, previous)
        assert storage.read(path, "x")["number"] == number
    assert storage.read(previous, "x")["number"] == 1
    assert sorted(tmp_path.iterdir()) == [path, previous]


def test_a_full_disk_loses_nothing(tmp_path):
    path, previous = tmp_path / "a.pt", tmp_path / "b.pt"
    storage.write(path, {"kind": "x", "number": 1}, previous)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(StorageError, match="free some space"):
            storage.write(path, {"kind": "x", "number": 2, "much": torch.zeros(100_000)}, previous)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert storage.read(path, "x")["number"] == 1
    assert list(tmp_path.iterdir()) == [path]


def test_large_integers_survive(tmp_path):
    storage.write(tmp_path / "a.pt", {"kind": "x", "state": 2**127 + 1})
    assert storage.read(tmp_path / "a.pt", "x")["state"] == 2**127 + 1


STATE = {
    "weights": {"a": torch.zeros(2), "b": torch.ones(2)},
    "rng": {"state": 2**100, "kind": "PCG64"},
    "seen": [np.zeros(2), (1, None, "text")],
}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"weights": {"a": torch.zeros(2), "b": torch.zeros(2)}}, "state[weights][b]"),
        ({"weights": {"a": torch.zeros(2), "b": torch.ones(2, dtype=torch.float64)}}, "state[weights][b]"),
        ({"weights": {"a": torch.zeros(2)}}, "state[weights]"),
        ({"rng": {"state": 2**100 + 1, "kind": "PCG64"}}, "state[rng][state]"),
        ({"seen": [np.ones(2), (1, None, "text")]}, "state[seen][0]"),
        ({"seen": [np.zeros(2), (1, None, "other")]}, "state[seen][1][2]"),
        ({"seen": [np.zeros(2), (True, None, "text")]}, "state[seen][1][0]"),
        ({"seen": [np.zeros(2)]}, "state[seen]"),
        ({"seen": None}, "state[seen]"),
        ({"more": 1}, "state"),
    ],
)
def test_the_first_difference_is_named(change: dict[str, object], place: str):
    changed = STATE | change
    assert storage.difference(STATE, changed, "state") == place
    assert storage.difference(changed, STATE, "state") == place


def test_equal_contents_have_no_difference():
    again = {**STATE, "weights": {name: value.clone() for name, value in STATE["weights"].items()}}
    assert storage.difference(STATE, again) == ""
