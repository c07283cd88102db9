"""Options that several commands share."""

from dataclasses import dataclass
from typing import TypedDict

from tyro.conf import OmitArgPrefixes, configure

from irgym.base.errors import IrgymError


class Arguments(TypedDict):
    """What Python functions take of these options."""

    objective: str | None
    backend: str | None
    target: str | None
    farm: str | None


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Measuring:
    """What is measured, and where."""

    objective: str | None = None
    """Objective to minimise, such as `time`; by default the first one of the environment."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """Target of the code, such as x86-64-v3 (AVX2); by default this machine."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    threads: int | None = None
    """Threads that programs run on, in loops, linalg and graph; as `--backend NAME:N`. By default one."""

    @property
    def arguments(self) -> Arguments:
        """What Python functions take of these options.

        Raises:
            IrgymError: The number of threads makes no sense, or the back end names one too.
        """
        backend = self.backend
        if self.threads is not None:
            if self.threads < 1:
                raise IrgymError(f"programs cannot run on {self.threads} threads: give at least 1")
            if backend is not None and ":" in backend:
                raise IrgymError(f"--backend {backend} and --threads both name threads: leave one out")
            if self.threads > 1:
                backend = f"{backend or ''}:{self.threads}"
        return {
            "objective": self.objective,
            "backend": backend,
            "target": self.target,
            "farm": self.farm,
        }
