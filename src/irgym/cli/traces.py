"""Files of the trees that the searches of a comparison walk."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irgym.base.files import make_folder
from irgym.core.schedule import Candidate
from irgym.core.task import Task
from irgym.reporting.trees import write_tree
from irgym.search.tree import SearchTree

LONGEST = 100
"""Characters of a program's URI in the name of a file; of longer ones the end is taken."""


class Traces:
    """Writes a picture of each tree into a folder once its search has ended.

    Args:
        folder: The folder, which is made.

    Raises:
        StorageError: It cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder, "name another folder by --trace")
        self._folder = folder
        self._trees: dict[tuple[str, str], tuple[Task[Any], SearchTree]] = {}

    def add(self, task: Task[Any], method: str, nodes: Sequence[Candidate], costs: Sequence[float]) -> None:
        """Add candidates of a search to its tree."""
        _, tree = self._trees.setdefault((task.uri, method), (task, SearchTree()))
        tree.add(nodes, costs)

    def write(self) -> None:
        """Write the trees so far, and forget them.

        Raises:
            StorageError: A file cannot be written.
        """
        for (uri, method), (task, tree) in self._trees.items():
            program = re.sub(r"[^\w.=,-]+", "-", uri)[-LONGEST:].strip("-")
            way = re.sub(r"[^\w.=,:-]+", "-", method)
            write_tree(tree, task, self._folder / f"{program} {way}.svg", f"{uri}, {method}")
        self._trees.clear()
