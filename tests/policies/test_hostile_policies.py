"""Policies that are made to do harm: `fuzz/hostile/files.py` opens the same ones by the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fuzz.hostile import folders

from irgym.base.errors import StorageError
from irgym.networks import storage
from irgym.networks.policy import TorchPolicy
from irgym.policies.plain import PlainPolicy

LARGE = {"policy_bomb"}
"""Policies that take long to write."""


@pytest.mark.parametrize("load", [PlainPolicy.load, TorchPolicy.load], ids=["numpy", "torch"])
@pytest.mark.parametrize(
    "name", [name for name in folders.CASES if name.startswith("policy_") and name not in LARGE]
)
def test_a_hostile_policy_is_refused_and_runs_nothing(name: str, load: Callable[[Path], Any], tmp_path: Path):
    canary = tmp_path / "canary"
    folders.CASES[name](tmp_path, f"touch {canary}")
    with pytest.raises(StorageError, match=r"policy\.pt"):
        load(tmp_path / "policy.pt")
    assert not canary.exists()


def test_compressed_archives_are_refused(tmp_path: Path):
    import zipfile

    with (
        zipfile.ZipFile(folders.SHIPPED) as shipped,
        zipfile.ZipFile(tmp_path / "policy.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in shipped.namelist():
            packed.writestr(name, shipped.read(name))
    with pytest.raises(StorageError, match="is no policy, or it is truncated"):
        PlainPolicy.load(tmp_path / "policy.pt")


@pytest.mark.parametrize("place", ["dict", "list"])
def test_expanded_tensors_of_checkpoints_are_refused(place: str, tmp_path: Path):
    tensor = torch.zeros(1).expand(1 << 40)
    part = {"weights": tensor} if place == "dict" else {"weights": [tensor]}
    torch.save({"kind": "checkpoint", **part}, tmp_path / "checkpoint.pt")
    with pytest.raises(StorageError, match="is no checkpoint"):
        storage.read(tmp_path / "checkpoint.pt", "checkpoint")


def test_networks_of_other_sizes_than_the_weights_are_refused(tmp_path: Path):
    content = torch.load(folders.SHIPPED, weights_only=True)
    content["encoder"] = {**content["encoder"], "hidden": (1 << 40,)}
    torch.save(content, tmp_path / "policy.pt")
    with pytest.raises(StorageError, match="incomplete policy"):
        TorchPolicy.load(tmp_path / "policy.pt")
