"""How a comparison gets on, on the console."""

from collections.abc import Sequence
from typing import Any

from irgym.cli.output import Output, StatusLine
from irgym.cli.traces import Traces
from irgym.comparing.comparison import ComparisonObserver
from irgym.comparing.results import Comparison
from irgym.core.schedule import Candidate
from irgym.core.task import Task


class Shown(ComparisonObserver):
    """Shows which program is at hand, with the method where there are several, and prints notes.

    Args:
        out: Where to print.
        status: Where to show progress.
        with_method: Whether to name the method.
        traces: Files of the trees that searches walk; None for none.
    """

    def __init__(
        self, out: Output, status: StatusLine, with_method: bool = True, traces: Traces | None = None
    ) -> None:
        self._out = out
        self._status = status
        self._with_method = with_method
        self._traces = traces

    def progress(self, program: str, method: str) -> None:
        """Show program and method."""
        self._status.update(f"{program}: {method}" if self._with_method else program)

    def evaluated(
        self, task: Task[Any], method: str, nodes: Sequence[Candidate], costs: Sequence[float]
    ) -> None:
        """Add to the tree of a search."""
        if self._traces is not None:
            self._traces.add(task, method, nodes, costs)

    def record(self, comparison: Comparison) -> None:
        """Write the trees of the searches that have ended."""
        del comparison
        if self._traces is not None:
            self._traces.write()

    def note(self, text: str) -> None:
        """Print a note."""
        self._out.print(text)
