"""Loggers: copies of a run's metrics, evaluations and policy for other tools; metrics.jsonl is the record.

Other packages add loggers through the entry-point group `irgym.loggers`.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from irgym.base.errors import IrgymError
from irgym.base.registry import Registry
from irgym.loggers.logger import Logger, logger_fault

LOGGERS: Registry[Callable[[], Logger]] = Registry(
    kind="logger",
    group="irgym.loggers",
    builtin={
        "tensorboard": "irgym.loggers.tensorboard:TensorBoardLogger",
        "wandb": "irgym.loggers.wandb:WandbLogger",
        "mlflow": "irgym.loggers.mlflow:MlflowLogger",
        "csv": "irgym.loggers.csv:CsvLogger",
    },
    fault="irgym.loggers.logger:class_fault",
)

NONE = "none"
"""Text that names no logger."""


def logger_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a list separated by commas; by default TensorBoard, where it is installed.

    Raises:
        IrgymError: There is no such logger, or the text names none.
    """
    if text is None:
        return ("tensorboard",) if find_spec("tensorboard") is not None else ()
    if text == NONE:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in LOGGERS:
            known = ", ".join([*LOGGERS.names(), NONE])
            raise IrgymError(f"there is no logger {name!r}: choose among {known}, separated by commas")
    return names


def check_loggers(text: str | None, others: object) -> None:
    """Make sure that loggers exist by name, and that others are loggers.

    Raises:
        IrgymError: One does not exist, or something else is no logger.
    """
    logger_names(text)
    for other in cast(Sequence[object], others) if isinstance(others, list | tuple) else (others,):
        fault = logger_fault(other)
        if fault:
            raise IrgymError(f"{other!r} is no logger, since it {fault}: give objects with its methods")


def make_loggers(names: Sequence[str]) -> list[Logger]:
    """Return new loggers.

    Raises:
        IrgymError: There is no such logger.
        BackendError: A package that a logger needs is not installed.
    """
    return [LOGGERS.load(name)() for name in names]


def fetched(reference: str) -> Path | None:
    """Return the policy of a logged artefact, `LOGGER:NAME`, as a local file; None for other texts.

    Raises:
        IrgymError: The logger keeps no artefacts, or there is no such artefact.
        BackendError: The logger's package is not installed.
    """
    kind, colon, name = reference.partition(":")
    if not colon or kind not in LOGGERS:
        return None
    fetch: Callable[[str], Path] | None = getattr(LOGGERS.load(kind), "fetch", None)
    if fetch is None:
        raise IrgymError(f"{kind} keeps no policies: name a run folder or a file in place of {reference!r}")
    return fetch(name)
