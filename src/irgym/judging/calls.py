"""Functions timed in turn as users call them, in this process."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from irgym.base.errors import IrgymError
from irgym.core.baseline import Versus
from irgym.measure.timing import Run, Timing, interleave

TIMING = Timing(sample_ns=10_000_000, clock="process")
"""Calls of Python take microseconds, and the function called may start threads."""

Function = Callable[..., Any]


def time_calls(ours: Function, theirs: Function, inputs: Sequence[Any], rounds: int, detail: str) -> Versus:
    """Time two functions of the same inputs in turn, without gradients, each until its results are there.

    Args:
        ours: What is judged.
        theirs: What it is compared with.
        inputs: What both are called with.
        rounds: Number of rounds; fewer where they would take long.
        detail: What the other is, in words.

    Raises:
        IrgymError: Inputs are shapes only.
    """
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if jax is not None and any(isinstance(value, jax.ShapeDtypeStruct) for value in jax.tree.leaves(inputs)):
        raise IrgymError("inputs were given as shapes only, with which nothing can be called: give arrays")
    with ExitStack() as held:
        if torch is not None:
            held.enter_context(torch.inference_mode())
        return Versus.of(
            interleave(_repeated(ours, inputs), _repeated(theirs, inputs), rounds, TIMING), detail
        )


def _repeated(function: Function, inputs: Sequence[Any]) -> Run:
    jax = sys.modules.get("jax")

    def run(count: int) -> None:
        for _ in range(count):
            results = function(*inputs)
            if jax is not None:  # its results may be promises
                jax.block_until_ready(results)

    return run
