"""The environment `superpmi`, as `irgym` commands and Gymnasium use it."""

import os
import weakref
from functools import cache
from types import MappingProxyType

from irgym.base.errors import ProgramError
from irgym.core.baseline import Pipeline
from irgym.core.bench import Bench
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment, check_only_backend
from irgym.core.paper_recipes import JIT_CSE
from irgym.core.reward import RelativeImprovement
from irgym.core.target import Target
from irgym.envs.cse.superpmi.methods import methods_of, toolchain
from irgym.envs.cse.superpmi.session import Collection, SuperPmi
from irgym.envs.cse.superpmi.task import PIPELINES, SuperPmiTask
from irgym.envs.cse.superpmi.uris import VARIABLES, collection_of, parse_uri, uri_of
from irgym.measure.isolation.protocol import GIB, Limits

BACKEND = "superpmi"
"""Name of the back end."""

COLLECTION = "collection"
"""Name of the data set: the methods of the collection in the environment variables."""

LIMITS = Limits(timeout_s=300.0, memory_bytes=8 * GIB)
"""Limits of compiling a method, restarts of SuperPMI included."""

HELD_OUT = 10
"""One method in this many is in the test split."""


class SuperPmiEnvironment(Environment):
    """The choice of common subexpressions that the .NET JIT shares in recorded methods.

    SuperPMI starts on first use and ends with this process.
    """

    name = "superpmi"
    summary = "cse on the .NET JIT, through SuperPMI; cost: its PerfScore"
    default_dataset = COLLECTION
    default_reward = RelativeImprovement()
    recipes = MappingProxyType({"jit-cse": JIT_CSE})
    objectives = SuperPmiTask.objectives
    reference_pipeline = "cost-test"
    pipelines = tuple(Pipeline(name, summary) for name, summary in PIPELINES.items())
    default_methods = ("base", "all", "cost-test", "random", "greedy", "beam", "evolutionary")

    def __init__(self) -> None:
        self._sessions: dict[Collection, SuperPmi] = {}
        weakref.finalize(self, _close, self._sessions)

    def backends(self) -> list[BackendStatus]:
        """Return whether the environment variables name a JIT and a collection."""
        try:
            collection = collection_of("", self.name)
            collection.command()
        except ProgramError as error:
            remedy = f"set {' and '.join(VARIABLES.values())}"
            return [BackendStatus(BACKEND, False, str(error).partition(":")[0], remedy)]
        return [BackendStatus(BACKEND, True, f"{collection.mch.name}; the JIT of {collection.core_root}")]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> SuperPmiTask:
        """Return the task of a `superpmi:` URI. The JIT's build determines the target.

        Raises:
            ProgramError: The URI is malformed, a file is missing, or the JIT does not compile the method.
            BackendError: There is no such back end, or SuperPMI does not work.
            IrgymError: There is no such objective.
        """
        del target
        check_only_backend("superpmi", backend, BACKEND)
        program = parse_uri(uri)
        if program.collection not in self._sessions:
            self._sessions[program.collection] = SuperPmi(program.collection)
        session = self._sessions[program.collection]
        none = session.compile(program.index, ())
        heuristic = session.heuristic_choice(program.index)
        task = SuperPmiTask(program, none, heuristic, toolchain(program.collection))
        return task.under(objective)

    def canonical(self, uri: str) -> str:
        """Return the canonical URI of a method."""
        return parse_uri(uri).uri

    def dataset_names(self) -> list[str]:
        """Return the name of the data set, if the environment variables name a collection."""
        return [COLLECTION] if all(os.environ.get(variable) for variable in VARIABLES.values()) else []

    def dataset(self, name: str) -> Dataset:
        """Return the methods with candidates of a collection, one in ten in the test split.

        Args:
            name: `collection`, or `core_root=FOLDER&mch=FILE`.

        Raises:
            ProgramError: There is no such collection.
            BackendError: SuperPMI does not work.
        """
        return _dataset(name, collection_of("" if name == COLLECTION else name, name))

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Start the measuring processes, each with one SuperPMI: a child, or a farm."""
        from irgym.measure.bench import MeasuringBench

        del backend
        return MeasuringBench(limits=LIMITS, farm=farm)


@cache
def _dataset(name: str, collection: Collection) -> Dataset:
    uris = [uri_of(index, collection) for index in methods_of(collection)]
    test = tuple(uri for place, uri in enumerate(uris) if place % HELD_OUT == 0)
    train = tuple(uri for place, uri in enumerate(uris) if place % HELD_OUT)
    return Dataset(
        name, f"methods of {collection.mch.name} with candidates; one in ten to test on", train, test
    )


def _close(sessions: dict[Collection, SuperPmi]) -> None:
    for session in sessions.values():
        session.close()


SUPERPMI = SuperPmiEnvironment()
"""The environment."""
