"""How a comparison gets on, on the console."""

from irgym.cli.output import Output, StatusLine
from irgym.comparing.comparison import ComparisonObserver


class Shown(ComparisonObserver):
    """Shows which program is at hand, with the method where there are several, and prints notes."""

    def __init__(self, out: Output, status: StatusLine, with_method: bool = True) -> None:
        self._out = out
        self._status = status
        self._with_method = with_method

    def progress(self, program: str, method: str) -> None:
        """Show program and method."""
        self._status.update(f"{program}: {method}" if self._with_method else program)

    def note(self, text: str) -> None:
        """Print a note."""
        self._out.print(text)
