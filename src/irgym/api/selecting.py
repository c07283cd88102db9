"""Selections of programs: the options of commands that run on the programs of a data set, defined once."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from tyro.constructors import PrimitiveConstructorSpec

from irgym.api.checks import check_options
from irgym.base.errors import IrgymError, ProgramError
from irgym.core.catalogue import locate
from irgym.core.dataset import Dataset, check_holdout, check_names, spread
from irgym.core.datasets import DATASETS, NAME, DatasetSpec, Programs, dataset_named, left_out_text
from irgym.core.environment import Environment

DatasetNames: TypeAlias = Annotated[
    str | Path | Sequence[str | Path] | None,
    PrimitiveConstructorSpec[Any](
        nargs=1,
        metavar="DATASET",
        instance_from_str=lambda words: words[0],
        is_instance=lambda instance: instance is None or isinstance(instance, str | Path | list | tuple),
        str_from_instance=lambda instance: [str(instance)],
    ),
]
"""Names programs, as `irgym.core.datasets.Programs`; on the command line a text."""


def check_dataset(dataset: object, holdout: object) -> None:
    """Make sure that what names programs, and the share of test programs, make sense.

    Raises:
        IrgymError: One does not.
    """
    check_names(dataset)
    check_holdout(holdout)


def recorded(dataset: "DatasetNames") -> str | tuple[str, ...] | None:
    """Return what names programs as plain data, for files."""
    if dataset is None or isinstance(dataset, str | os.PathLike):
        return None if dataset is None else str(dataset)
    return tuple(map(str, dataset))


@dataclass(frozen=True)
class Selecting:
    """Selection of programs from a data set.

    Raises:
        IrgymError: An option makes no sense.
    """

    dataset: DatasetNames = None
    """Programs: a name, a list's file, a folder, a glob, a URI or a grid, several joined by +; by default the
    environment's own."""
    holdout: float | None = None
    """Share of test programs, to divide the data set again; by default its splits stay, if any, or 0.1."""
    split: Literal["train", "test", "all"] = "test"
    """Split of the data set."""
    limit: int | None = None
    """Only this many programs, evenly spread over the split."""

    def __post_init__(self) -> None:
        check_options(limit=self.limit, split=self.split)
        check_dataset(self.dataset, self.holdout)

    def whole(self, environment: Environment) -> Dataset:
        """Return the data set.

        Raises:
            ProgramError: It does not exist.
        """
        return dataset_named(environment, self.dataset, self.holdout)

    def uris(
        self,
        environment: Environment,
        programs: Sequence[str | Path] = (),
        note: Callable[[str], None] | None = None,
    ) -> tuple[str, ...]:
        """Return the programs that are named, or else those of the split.

        Args:
            environment: The environment.
            programs: URIs or files.
            note: Called with a line on files that are no programs, if there are any.

        Raises:
            IrgymError: The data set does not exist, or the split is empty; or both ways are given.
        """
        named = _uris_of(programs)
        if named:
            if (self.dataset, self.holdout, self.limit) != (None, None, None):
                raise IrgymError(
                    "programs and a data set exclude each other: leave out --programs, or --dataset, "
                    "--holdout and --limit"
                )
            return tuple(named)
        dataset = self.whole(environment)
        if note is not None and dataset.left_out:
            note(left_out_text(dataset))
        return tuple(spread(dataset.split(self.split), self.limit))


def _uris_of(programs: Sequence[str | Path]) -> list[str]:
    """Return the URIs of programs; files become those of whoever reads them."""
    if not isinstance(programs, str | list | tuple):
        raise ProgramError(f"programs are URIs or files, not {programs!r}: give a list of them")
    given = [programs] if isinstance(programs, str) else programs
    return [locate(program)[1] for program in given]


def register_dataset(
    name: str,
    environment: str,
    programs: Programs | Callable[[], Programs],
    *,
    test: Programs | Callable[[], Programs] = (),
    description: str = "",
) -> None:
    """Give a name to programs, for the rest of the process; entry points `irgym.datasets` give lasting ones.

    Args:
        name: Letters, digits, `_`, `-` and `.`.
        environment: Name of the environment.
        programs: The programs, as `dataset` takes them, or a function that returns them.
        test: Test programs, in the same forms; by default the hash of each program decides.
        description: One line.

    Raises:
        IrgymError: There is no such environment, it has a data set of that name, or the name has other marks.
    """
    from irgym.api.programs import environment_named

    home = environment_named(environment)
    if not isinstance(name, str) or not NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise IrgymError(f"{name!r} cannot name a data set: use letters, digits, _, - and .")
    if name in home.dataset_names():
        raise IrgymError(f"{environment} has a data set {name!r}: choose another name")
    for given in (programs, test):
        if given != () and not callable(given):
            check_dataset(given, None)
    DATASETS.add(name, DatasetSpec(environment, programs, test, description))
