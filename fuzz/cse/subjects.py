"""Functions of the data sets of `cse`, for fuzzers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fuzz.fuzzer import Tally, part
from irgym.base.errors import ProgramError
from irgym.core.cost import Validation
from irgym.envs.cse.checking.validation import Comparison
from irgym.envs.cse.compiling.scorer import function_at, module_at
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.ir.analysis import Analysed
from irgym.envs.cse.task import CseTask
from irgym.llvmir.ir.modules import ModuleText

DATASETS = ("kernels", "packages")
"""Data sets, of which both splits are used: even seeds take the first, which needs no network."""


def some(seed: int, count: int, tally: Tally) -> Iterator[CseTask]:
    """Yield some functions of a data set that have candidates; seeds go through all.

    Args:
        seed: The seed.
        count: Number of functions, those that are left out included.
        tally: Takes the number of functions that cannot be opened.
    """
    dataset = CSE.dataset(DATASETS[seed % len(DATASETS)])
    uris = (*dataset.train, *dataset.test)
    order = np.random.default_rng(0).permutation(len(uris)).tolist()
    for place in part(order, seed // len(DATASETS), count)[0]:
        try:
            task = CSE.task(uris[place], target="x86-64")
        except ProgramError:
            tally.notes["functions left out"] += 1
            continue
        if task.names:
            yield task


INPUTS = 4
"""Random inputs of a check, the default of `tune`."""


@dataclass(frozen=True)
class Subject:
    """A function to plant faults in."""

    name: str
    module: ModuleText
    analysed: Analysed

    @property
    def lines(self) -> list[str]:
        """Lines of the original function."""
        return self.analysed.sharing.lines(())

    def checked(self, lines: Sequence[str], inputs: int, seed: int) -> Validation:
        """Return the outcome of the check for other lines."""
        return Comparison(self.module, self.analysed, inputs, seed).compare(lines, {}, {})


def subject_of(task: CseTask) -> Subject:
    """Return the function of a task."""
    path = str(task.module)
    return Subject(task.uri, module_at(path), function_at(path, task.analysed.function.name))
