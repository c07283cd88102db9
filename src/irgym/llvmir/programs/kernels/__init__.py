"""irgym's kernels, in C."""

from pathlib import Path

KERNELS = Path(__file__).parent
"""The folder with the files."""
