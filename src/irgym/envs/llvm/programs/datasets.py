"""Data sets of modules, each with a fixed split into training and test programs.

`kernels` and `programs` are split by file, `packages` by package. Folders, globs and lists of files are data
sets too, see `irgym.core.datasets`.
"""

from collections.abc import Callable
from functools import partial

from irgym.core.dataset import Dataset, dataset_of
from irgym.envs.llvm.programs.modules import modules
from irgym.envs.llvm.programs.uris import WHOLE_FAMILY
from irgym.envs.llvm.programs.whole import whole_programs
from irgym.llvmir.programs.packages.pinned import packages_of

DEFAULT = "packages"
"""The data set to train on and to compare with."""

LEAST, MOST = 50, 20_000
"""Range of the number of instructions, before any pass, of the modules in `packages`."""

SMALL = 2_000
"""Greatest number of instructions, before any pass, of the modules in `packages-small`."""

TRAIN = ("bytes.c", "geometry.c", "matrices.c")
"""Kernels for training."""

TEST = ("signals.c", "sorting.c")
"""Kernels for testing."""

TEST_PROGRAMS = ("huffman.c", "nbody.c", "sieve.c")
"""Whole programs for testing; the others are for training."""


def _kernels() -> Dataset:
    train, test = (tuple(f"llvm://kernels/{file}" for file in files) for files in (TRAIN, TEST))
    return Dataset("kernels", "C written for irgym; the splits have no file in common", train, test)


def _programs() -> Dataset:
    test = tuple(f"llvm://{WHOLE_FAMILY}/{file}" for file in TEST_PROGRAMS)
    every = (f"llvm://{WHOLE_FAMILY}/{file}" for file in whole_programs())
    train = tuple(uri for uri in every if uri not in test)
    return Dataset(WHOLE_FAMILY, "whole programs in C written for irgym, to be timed", train, test)


def _packages(name: str, summary: str, most: int) -> Dataset:
    uris: dict[str, list[str]] = {"train": [], "test": []}
    known = packages_of("llvm")
    for file, size in modules().items():
        if LEAST <= size.original <= most:
            uris[known[file.partition("/")[0]].split].append(f"llvm://packages/{file}")
    return Dataset(name, summary, tuple(uris["train"]), tuple(uris["test"]))


def _all_packages() -> Dataset:
    summary = "C of source distributions, fetched on first use; the splits have no package in common"
    return _packages("packages", summary, MOST)


def _small_packages() -> Dataset:
    summary = f"the modules of packages that have at most {SMALL:,} instructions, to learn from in less time"
    return _packages("packages-small", summary, SMALL)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "packages": _all_packages,
    "packages-small": _small_packages,
    "kernels": _kernels,
    "programs": _programs,
}
"""The data sets, the default first."""

dataset = partial(dataset_of, DATASETS)
"""Return a data set by name."""
