"""Options that several commands share."""

from dataclasses import dataclass

from tyro.conf import OmitArgPrefixes, configure


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Measuring:
    """What is measured, and where."""

    objective: str | None = None
    """What costs are, such as `time`; by default the environment's own objective."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default this machine."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
