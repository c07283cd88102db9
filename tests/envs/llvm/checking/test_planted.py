"""Planted wrong passes are caught: each changes one line of a kernel."""

from collections.abc import Mapping

import pytest
from llvm_wrong_passes import WRONG, places, rewritten

from irgym.envs.llvm.checking.validation import compared

from .conftest import Passes

PLANTED = (
    ("drop a store", "bytes", "pack_runs", 2),
    ("drop a store", "matrices", "multiply", 1),
    ("drop a store", "sorting", "quick_sort", 7),
    ("drop a call", "sorting", "heap_sort", 1),
    ("drop a call", "sorting", "remove_key", 0),
    ("swap operands", "sorting", "lower_bound", 1),
    ("swap operands", "sorting", "quick_sort", 2),
    ("swap operands", "geometry", "inside", 2),
    ("loosen a comparison", "sorting", "lower_bound", 2),
    ("loosen a comparison", "matrices", "multiply", 1),
    ("loosen a comparison", "sorting", "quick_sort", 7),
    ("negate a comparison", "sorting", "lower_bound", 2),
    ("negate a comparison", "bytes", "pack_runs", 3),
    ("negate a comparison", "matrices", "multiply", 1),
    ("compare with the other sign", "sorting", "quick_sort", 7),
    ("compare with the other sign", "geometry", "inside", 0),
    ("compare with the other sign", "sorting", "sift", 2),
    ("change a constant", "sorting", "lower_bound", 1),
    ("change a constant", "bytes", "pack_runs", 4),
    ("change a constant", "matrices", "multiply", 1),
    ("swap branch targets", "sorting", "lower_bound", 2),
    ("swap branch targets", "bytes", "pack_runs", 3),
    ("swap branch targets", "matrices", "multiply", 1),
    ("drop a check", "sorting", "lower_bound", 2),
    ("drop a check", "bytes", "pack_runs", 3),
    ("drop a check", "matrices", "multiply", 1),
    ("replace an incoming value", "bytes", "pack_runs", 3),
    ("replace an incoming value", "matrices", "multiply", 1),
    ("replace an incoming value", "sorting", "quick_sort", 7),
    ("skip the first iteration", "bytes", "pack_runs", 2),
    ("skip the first iteration", "matrices", "multiply", 1),
    ("skip the first iteration", "geometry", "inside", 1),
    ("another operation", "sorting", "lower_bound", 2),
    ("another operation", "bytes", "pack_runs", 6),
    ("another operation", "matrices", "multiply", 5),
    ("swap the choices of a select", "geometry", "clip_line", 4),
    ("swap the choices of a select", "bytes", "digit", 0),
    ("narrow a load", "sorting", "lower_bound", 1),
    ("narrow a load", "sorting", "quick_sort", 9),
    ("narrow a load", "signals", "mix", 5),
    ("widen a load", "sorting", "quick_sort", 9),
    ("widen a load", "signals", "mix", 5),
    ("widen a load", "bytes", "decode_utf8", 3),
    ("wrong index", "sorting", "lower_bound", 1),
    ("wrong index", "bytes", "pack_runs", 4),
    ("wrong index", "matrices", "multiply", 2),
    ("truncate a value", "sorting", "lower_bound", 2),
    ("truncate a value", "bytes", "pack_runs", 6),
    ("truncate a value", "signals", "mix", 1),
    ("extend with the other sign", "bytes", "pack_runs", 1),
    ("extend with the other sign", "bytes", "adler", 0),
    ("extend with the other sign", "bytes", "crc", 0),
    ("promise no overflow", "signals", "mix", 4),
    ("promise no overflow", "sorting", "heap_sort", 1),
    ("promise no overflow", "signals", "compare_numbers", 0),
)
"""Rewrite, kernel, function, and which of the lines to which the rewrite applies."""


@pytest.fixture(scope="session")
def originals(kernel_texts: Mapping[str, str], after_passes: Passes) -> Mapping[str, str]:
    """The kernels with values in registers, which more rewrites apply to."""
    sequence = ["mem2reg", "instnamer"]
    return {name: after_passes(text, [sequence])[0] for name, text in kernel_texts.items()}


@pytest.mark.parametrize(("name", "kernel", "function", "which"), PLANTED)
def test_planted_wrong_passes_are_caught(
    originals: Mapping[str, str], name: str, kernel: str, function: str, which: int
) -> None:
    """The comparison finds the change."""
    text = originals[kernel]
    wrong = rewritten(text, places(text, function, name)[which], name)
    validation = compared(text, wrong, 1, 0)
    assert not validation.ok
    assert ": " in validation.detail


def test_all_rewrites_are_planted() -> None:
    """Each kind of change is among them, and there are enough."""
    assert {name for name, _, _, _ in PLANTED} == set(WRONG)
    assert len(set(PLANTED)) >= 40
