"""The interface of loggers, and several loggers as one."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Cell: TypeAlias = str | float | int | bool | None
"""Value of a table."""


class Logger(Protocol):
    """Copies what happens in a run to another tool.

    `start` comes first and `end` last; between them, the calls come in any order. A run that is resumed, and
    `irgym evaluate` and `irgym compare` into its folder, start a logger on the same folder again.
    """

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        """Begin, or continue.

        Args:
            run: Folder of the run; the logger may keep files there.
            configuration: Content of the run's config.json.
            iteration: Iterations already done. What was logged of later ones is out of date.

        Raises:
            IrgymError: The tool cannot be used; the message says what to do.
        """
        ...

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Log numbers by name, such as `train/reward_mean`; all are finite."""
        ...

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Log a table, such as `evaluation` or `comparison`: one mapping from columns to cells each row."""
        ...

    def artefact(self, iteration: int, path: Path) -> None:
        """Log a file, such as the policy; a later file of the same name is a newer version of it."""
        ...

    def end(self) -> None:
        """Write what is left; called once, also after an error."""
        ...


METHODS = ("start", "metrics", "evaluation", "artefact", "end")


def logger_fault(logger: object) -> str:
    """Return in words how an object is no logger; empty where it is one."""
    missing = [name for name in METHODS if not callable(getattr(logger, name, None))]
    return f"has no method `{missing[0]}`" if missing else ""


def class_fault(kind: object) -> str:
    """Return in words how a logger's class is wrong; empty where it is right."""
    return logger_fault(kind) if callable(kind) else "cannot be called to make a logger"


@dataclass(frozen=True)
class Loggers:
    """Several loggers as one, which logs while it is open.

    Attributes:
        members: The loggers.
    """

    members: Sequence[Logger] = ()

    @contextmanager
    def logging(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> Generator[None]:
        """Start all loggers, and end those that started, whatever happens; see `Logger.start`.

        Raises:
            IrgymError: One of the tools cannot be used.
        """
        with ExitStack() as started:
            for member in self.members:
                member.start(run, configuration, iteration)
                started.callback(member.end)
            yield

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Log numbers by name."""
        for member in self.members:
            member.metrics(iteration, values)

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Log a table."""
        for member in self.members:
            member.evaluation(iteration, name, rows)

    def artefact(self, iteration: int, path: Path) -> None:
        """Log a file."""
        for member in self.members:
            member.artefact(iteration, path)
