"""`torch.compile(module, backend="irgym")`: graphs of torch, tuned by the environment `graph`."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from os import cpu_count
from typing import Any

from irgym.api.checks import check_options
from irgym.api.requests import Measuring, Searching
from irgym.api.tuning import Tuning, say_nothing
from irgym.base.errors import IrgymError
from irgym.core.catalogue import locate

NAME = "irgym"
"""Name of the back end."""

ROUNDS = 9
"""Rounds in which the tuned graph is timed in turn with the graph itself."""


@dataclass(frozen=True)
class CompileOptions:
    """Options of the back end, as in `torch.compile(module, backend="irgym", options={"seconds": 60})`.

    Raises:
        IrgymError: An option makes no sense.
    """

    seconds: float = 10.0
    """Time for tuning each graph, from its export to the checks of its results."""
    threads: int | None = None
    """Threads that graphs run on; by default torch's, as far as there are cores."""
    reuse: bool = True
    """Take the best schedule that was found for the same graph before, without a search."""
    seed: int = 0
    """Seed of all random choices."""

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> "CompileOptions":
        """Return the options that a user gives.

        Raises:
            IrgymError: There is no option of a name, or a value makes no sense.
        """
        known = [field.name for field in fields(cls)]
        for name in options or {}:
            if name not in known:
                raise IrgymError(
                    f"the back end irgym has no option {name!r}: choose among {', '.join(known)}"
                )
        found = cls(**(options or {}))
        found.measuring()
        check_options(seed=found.seed)
        Searching().limits(found.seconds, None)
        if not isinstance(found.reuse, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise IrgymError(f"the option reuse is True or False, not {found.reuse!r}")
        return found

    def measuring(self) -> Measuring:
        """Return the threads as `tune` takes them."""
        import torch

        threads = self.threads
        return Measuring(
            threads=min(torch.get_num_threads(), cpu_count() or 1) if threads is None else threads
        )


def backend(
    graph: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """Return a function that computes a graph: tuned, or the graph itself where that fails or is no faster.

    A warning says why where it is the graph itself.

    Args:
        graph: A `torch.fx.GraphModule`.
        inputs: Its arguments.
        options: See `CompileOptions`.
        mode: Must be None.

    Raises:
        IrgymError: An option makes no sense.
    """
    chosen = CompileOptions.of(options)
    if mode is not None:
        raise IrgymError(f"the back end irgym has no mode {mode!r}: leave it out")
    from irgym.measure.callables.torch_graphs import refuse_modes

    try:
        refuse_modes(inputs)
        with ThreadPoolExecutor(1) as pool:  # torch.export would add to the guards of this thread's tracing
            return pool.submit(_tuned, graph, inputs, chosen).result()
    except IrgymError as error:
        _warn(str(error))
        return graph.forward


def _tuned(graph: Any, inputs: Sequence[Any], options: CompileOptions) -> Callable[..., Any]:
    """Return a graph after the best schedule, or the graph itself if that is no slower.

    Raises:
        IrgymError: The graph cannot be tuned.
    """
    from irgym.judging.original import Original
    from irgym.measure.callables.torch_graphs import Compiled, called_graph, concrete

    started = time.monotonic()
    called = called_graph(graph, inputs)
    tensors = called.examples[0]
    home, uri = locate(called, tensors)
    searching, limits = Searching(quick=options.reuse), Searching().limits(options.seconds, None)
    measuring, seed = options.measuring(), options.seed
    job = Tuning(home, measuring, searching, limits, None, seed, say_nothing, started)
    with job.bench() as bench:
        bench.prepare()
        result = job.tune(bench, uri, Original(called, tensors, home))
    assert result.original is not None
    tuned: Any = result.original.function(result.task, result.state)
    compiled = Compiled(graph, called, tuned, _warn)
    if is_slower(compiled, graph.forward, list(map(concrete, inputs))):
        raise IrgymError("nothing faster was found")
    return compiled


def is_slower(ours: Callable[..., Any], theirs: Callable[..., Any], inputs: Sequence[Any]) -> bool:
    """Say whether a function takes longer than another, called in turn."""
    from irgym.judging.calls import time_calls

    return time_calls(ours, theirs, inputs, ROUNDS, "the graph").ratio < 1.0


def _warn(reason: str) -> None:
    warnings.warn(f"torch.compile with irgym: the graph runs as it is, since {reason}", stacklevel=2)
