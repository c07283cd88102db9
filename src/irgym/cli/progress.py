"""How a comparison gets on, on the console."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from irgym.cli.output import Output, StatusLine
from irgym.comparing.comparison import ComparisonObserver
from irgym.comparing.results import Comparison


class Shown(ComparisonObserver):
    """Shows which program is at hand, with the method where there are several, and prints notes."""

    def __init__(self, out: Output, status: StatusLine, with_method: bool = True) -> None:
        self._out = out
        self._status = status
        self._with_method = with_method
        self._so_far: Comparison | None = None

    def progress(self, program: str, method: str) -> None:
        """Show program and method."""
        self._status.update(f"{program}: {method}" if self._with_method else program)

    def record(self, comparison: Comparison) -> None:
        """Keep all results so far."""
        self._so_far = comparison

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
