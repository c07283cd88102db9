"""Archives are fetched once, verified by hash, and compiled with their package's options."""

import hashlib
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from irgym.base.errors import StorageError
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.programs.functions import functions
from irgym.envs.cse.programs.sources import Sources
from irgym.llvmir.programs.files import SourceFile
from irgym.llvmir.programs.packages.fetching import unpacked
from irgym.llvmir.programs.packages.pinned import Package, packages_of

SOURCE = """
#include "most.h"
int f(int *p, int n) { int s = p[n * MOST]; if (s > LEAST) s += p[n * MOST]; return s; }
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "tiny-1.0"
    (folder / "include").mkdir(parents=True)
    (folder / "tiny.c").write_text(SOURCE)
    (folder / "include" / "most.h").write_text("#define MOST 3\n")
    archive = tmp_path / "tiny-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        made.add(folder, folder.name)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return Package("tiny", "1.0", "train", archive.as_uri(), digest, ("*.c",), ("include",), ("LEAST=7",))


def test_a_package_is_fetched_once_and_compiled_as_it_says(package: Package, tmp_path: Path):
    folder = unpacked(package)
    assert (folder / "tiny.c").read_text() == SOURCE
    (tmp_path / "tiny-1.0.tar.gz").unlink()
    assert unpacked(package) == folder
    with Sources() as sources:
        module = sources.module(SourceFile(folder / "tiny.c", package.options(folder)), "x86-64")
        assert sources.with_candidates(module) == ["f"]
        assert ", 3" in module.read_text() and "sgt i32" in module.read_text()


def test_a_package_that_cannot_be_fetched_is_named(package: Package, tmp_path: Path):
    with pytest.raises(StorageError, match="not the pinned 1234"):
        unpacked(replace(package, sha256="1234"))
    with pytest.raises(StorageError, match=r"cannot fetch file:.*: connect to the network"):
        unpacked(replace(package, url=(tmp_path / "none.tar.gz").as_uri()))


def test_packages_are_in_one_split_and_their_functions_in_the_data_set():
    dataset = CSE.dataset("packages")
    for split in ("train", "test"):
        names = {CSE.family(uri) for uri in dataset.split(split)}
        assert names == {name for name, package in packages_of("cse").items() if package.split == split}
    assert len(dataset.train) + len(dataset.test) == sum(map(len, functions().values())) >= 1000
