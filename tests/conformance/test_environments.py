"""Every environment and toy keeps the rules of conformance; `test_examples.py` checks the plug-in."""

from collections.abc import Mapping

import dials
import knobs
import pytest
import rewriting

import irgym
from irgym.core.catalogue import ENVIRONMENTS

TRANSFORMER = "graph://gpt2?heads=2&hidden=32&layers=1&sequence=8&vocabulary=64"
CONVOLUTIONS = "graph://unet?levels=1&size=32&width=4"
SHARED = {"splits": "the data set x-rlflow trains and tests on the same models, as its paper does"}
OF_TOYS = dict.fromkeys(
    ("job", "original", "validation", "export-suffix", "records"),
    "the toy is for searches and agents, and has no such part",
)


@pytest.mark.parametrize(
    ("name", "program", "measure", "skip"),
    [
        ("loops", "loops://mm/12x10x7", True, {}),
        ("loops", "loops://conv1d/1x9x4x6x3?dtype=f64&flip=true&padding=1", True, {}),
        ("loops", "loops://einsum/Ij,j->?I=9&dtype=i8&j=5", True, {}),
        ("hlo", "", False, {}),
        ("graph", TRANSFORMER, False, SHARED),
        ("graph", CONVOLUTIONS, False, SHARED),
        ("graph-taso", TRANSFORMER, False, SHARED),
        ("cse", "cse://kernels/sorting.c#quick_sort", True, {}),
        ("llvm", "llvm://kernels/sorting.c", True, {}),
        ("linalg", "linalg://matmul/12x10x7", False, {}),
        ("linalg-swaps", "linalg-swaps://matmul/12x10x7", False, {}),
        ("linalg-scores", "linalg-scores://matmul/12x10x7", False, {}),
        ("linalg-flat", "linalg-flat://matmul/12x10x7", False, {}),
    ],
)
def test_environments_keep_the_rules(
    name: str, program: str, measure: bool, skip: Mapping[str, str], engine: None
):
    environment = ENVIRONMENTS.load(name)
    uri = program or environment.dataset("tiny").train[0]
    irgym.check_environment(environment, [uri], walks=2, steps=6, measure=measure, skip=skip)


@pytest.mark.parametrize(
    "task", [dials.Dials((1, 2, 3)), knobs.Knobs(), rewriting.Rewriting("sttb")], ids=lambda task: task.uri
)
def test_toys_keep_the_rules(task):
    irgym.check_task(task, skip=OF_TOYS)
