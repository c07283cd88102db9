"""Data sets of functions, each with a fixed split into training and test programs.

`kernels` is split by file, `packages` by package.
"""

from collections.abc import Callable
from functools import partial

from irgym.core.dataset import Dataset, dataset_of
from irgym.envs.cse.programs.functions import functions
from irgym.llvmir.programs.packages.pinned import packages

DEFAULT = "kernels"
"""The data set to train on and to compare with."""

TRAIN = {
    "bytes.c": "decode_base64 decode_utf8 pack_runs find edit_distance parse_number",
    "geometry.c": "attract inside clip_line blend fill live",
    "matrices.c": "multiply transpose eliminate cholesky stencil convolve shortest_paths",
}
"""Functions with candidates, by file: the training split."""

TEST = {
    "signals.c": "fourier clip_gain encipher mix multiply_numbers compare_numbers",
    "sorting.c": "insertion_sort sift quick_sort lower_bound count_keys remove_key",
}
"""Functions with candidates, by file: the test split."""


def _uris(files: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"cse://kernels/{file}#{name}" for file, names in files.items() for name in names.split())


def _kernels() -> Dataset:
    return Dataset(
        "kernels", "C written for irgym; the splits have no file in common", _uris(TRAIN), _uris(TEST)
    )


def _packages() -> Dataset:
    uris: dict[str, list[str]] = {"train": [], "test": []}
    for file, names in functions().items():
        split = packages()[file.partition("/")[0]].split
        uris[split] += [f"cse://packages/{file}#{name}" for name in names]
    return Dataset(
        "packages",
        "C of source distributions, fetched on first use; the splits have no package in common",
        tuple(uris["train"]),
        tuple(uris["test"]),
    )


DATASETS: dict[str, Callable[[], Dataset]] = {"kernels": _kernels, "packages": _packages}
"""The data sets, the default first."""

dataset = partial(dataset_of, DATASETS)
"""Return a data set by name."""
