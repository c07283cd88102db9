"""irgym's programs with a `main`, in C: each prints a few numbers, and runs for some tenths of a second."""

from functools import cache
from pathlib import Path

WHOLE = Path(__file__).parent
"""The folder with the files."""


@cache
def whole_programs() -> tuple[str, ...]:
    """Return the file names of the programs."""
    return tuple(sorted(file.name for file in WHOLE.glob("*.c")))
