"""How a comparison gets on, on the console."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irgym.base.files import write_file
from irgym.cli.output import Output, StatusLine
from irgym.cli.traces import Traces
from irgym.comparing.comparison import ComparisonObserver
from irgym.comparing.results import Comparison
from irgym.core.schedule import Candidate
from irgym.core.task import Task


class Shown(ComparisonObserver):
    """Shows which program is at hand, with the method where there are several; keeps a CSV file up to date.

    Args:
        out: Where to print.
        status: Where to show progress.
        with_method: Whether to name the method.
        csv: File for the rows; None for none.
        traces: Files of the trees that searches walk; None for none.
    """

    def __init__(
        self,
        out: Output,
        status: StatusLine,
        with_method: bool = True,
        csv: Path | None = None,
        traces: Traces | None = None,
    ) -> None:
        self._out = out
        self._status = status
        self._with_method = with_method
        self._csv = csv
        self._traces = traces
        self._so_far: Comparison | None = None

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
        """Keep all results so far; write their rows, and the trees of the searches that have ended."""
        self._so_far = comparison
        if self._csv is not None:
            write_file(self._csv, comparison.to_csv().encode())
        if self._traces is not None:
            self._traces.write()

    @contextmanager
    def showing_when_interrupted(self, show: Callable[[Comparison], None]) -> Generator[None]:
        """Show the results so far if an interrupt ends the comparison."""
        try:
            yield
        except KeyboardInterrupt:
            if self._so_far is not None:
                show(self._so_far)
            raise

    def note(self, text: str) -> None:
        """Print a note."""
        self._out.print(text)
