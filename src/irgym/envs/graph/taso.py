"""What `irgym` commands and Gymnasium reach by the name `graph-taso`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from irgym.core.target import Target
from irgym.core.uri import renamed
from irgym.envs.graph.environment import GraphEnvironment
from irgym.envs.graph.task import GraphTask


class TasoEnvironment(GraphEnvironment):
    """The programs and actions of `graph`, of which only those apply that are TASO's rules.

    Tensat and X-RLflow have these rules too. Schedules are schedules of `graph` as well.
    """

    name = "graph-taso"
    summary = "graph with the rules of TASO, Tensat and X-RLflow alone; cost: time"
    default_methods = tuple(
        method for method in GraphEnvironment.default_methods if not method.endswith(":default")
    )
    accepts = ""

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> GraphTask:
        """Return the task of a `graph:` URI, which may begin with `graph-taso:` instead.

        Raises:
            ProgramError: The URI or the file is malformed.
            BackendError: As `GraphEnvironment.task`.
            IrgymError: There is no such objective.
        """
        return super().task(renamed(uri, self.name, "graph"), backend, target, objective).restricted("TASO")

    def program_of(self, program: object, inputs: Sequence[Any]) -> str | None:
        """Return None: files are programs of `graph` unless a URI says otherwise."""
        del program, inputs
        return None

    def family(self, uri: str) -> str:
        """Return the architecture of a program; the name of the file for a file."""
        return super().family(renamed(uri, self.name, "graph"))

    def policies(self) -> Mapping[str, Path]:
        """Return none: those that ship have learnt all rules of `graph`."""
        return {}


GRAPH_TASO = TasoEnvironment()
"""The environment."""
