"""torchvision that was built for another torch."""

from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from irgym.measure import torchvision_library
from irgym.measure.torchvision_library import matching, mismatch, refusal

pytest.importorskip("torch")


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let torchvision be a folder."""
    spec = ModuleSpec("torchvision", None, origin=str(folder / "__init__.py"))
    monkeypatch.setattr(torchvision_library, "find_spec", lambda name: spec)
    versions: Any = {"torch": "2.9.1+cpu", "torchvision": "0.20.0"}
    monkeypatch.setattr(torchvision_library, "version", versions.get)


def test_a_library_that_does_not_load_comes_with_its_reason_and_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    installed(monkeypatch, tmp_path)
    assert "_C.so is missing" in mismatch()
    (tmp_path / "_C.so").write_bytes(b"no library")
    found = mismatch()
    assert "torchvision 0.20.0 is not built for torch 2.9.1+cpu" in found and "_C.so" in refusal()
    assert found.endswith(matching("2.9.1+cpu"))


def test_without_torchvision_nothing_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torchvision_library, "find_spec", lambda name: None)
    assert refusal() == mismatch() == ""


def test_the_matching_version_comes_from_the_place_that_torch_came_from():
    cpu = "https://download.pytorch.org/whl/cpu"
    assert matching("2.13.0+cpu").endswith(f"'torchvision==0.28.*' --index-url {cpu}")
    assert matching("2.9.1").endswith("'torchvision==0.24.*'")
    assert matching("3.0.0").endswith(" torchvision")
