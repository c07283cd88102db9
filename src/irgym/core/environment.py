"""Environments: tasks from URIs, data sets, back ends, baselines, trained policies."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from irgym.base.errors import BackendError, IrgymError
from irgym.core.actions import ActionSpace
from irgym.core.baseline import Baseline, Pipeline
from irgym.core.bench import Bench
from irgym.core.cost import Validation
from irgym.core.dataset import Dataset
from irgym.core.objective import TIME, Objective, objective_named
from irgym.core.observation import ObservationView
from irgym.core.recipe import Recipe
from irgym.core.reward import Reward
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.core.uri import Grammar


@dataclass(frozen=True)
class BackendStatus:
    """Whether a back end runs on this machine.

    Attributes:
        name: The back end.
        available: Whether it runs here.
        detail: Its version, or why it does not run.
        remedy: The one command that mends it, where there is one.
    """

    name: str
    available: bool
    detail: str
    remedy: str = ""


def recipe_of(environment: "Environment", name: str) -> Recipe:
    """Return one of an environment's recipes.

    Raises:
        IrgymError: There is none of that name; the message lists those that exist.
    """
    known = environment.recipes
    if name not in known:
        remedy = f"choose among {', '.join(known)}" if known else "it has none, so name none"
        raise IrgymError(f"{environment.name} has no recipe {name!r}: {remedy}")
    return known[name]


class Environment(ABC):
    """One compiler-optimisation problem.

    Attributes:
        name: The scheme of its URIs: `loops`.
        summary: One line.
        default_dataset: What `train` and `compare` use unless told otherwise.
        default_reward: What an agent is trained on unless told otherwise.
        rewards: Further rewards by name, beside those that every environment has.
        recipes: Set-ups of trainings that work well here, by name.
        objectives: What may be minimised, the default first.
        baselines: Baselines that a comparison may include: tasks take their names.
        pipelines: The compiler's own pipelines, which a comparison may include: tasks take their names.
        default_methods: What `compare` runs unless told otherwise.
        reference_baseline: The baseline that results are timed against side by side, if there is one.
        reference_pipeline: The default schedule that costs are compared with, if there is one, unless
            `reference` says otherwise.
        first_pipelines: Pipelines that searches begin with where costs are exact, by default the reference,
            unless `beginnings` says otherwise.
        validation_inputs: Random inputs on which optimised programs are compared with the originals.
        accepts: What `program_of` takes, in words; empty: nothing.
        part_forms: The suffixes that `export_parts` writes, and what each stands for.
        grammar: The grammar of its URIs, from which grids of programs are made, if there is one. A variant of
            another environment has that one's.
        yields_files: Whether it takes files that another environment takes too only where it is named.
        outline: Actions and observations of all its tasks, where no program has to be opened to know them;
            Gymnasium environments then start without a program.
    """

    name: str
    summary: str
    default_dataset: str
    default_reward: Reward
    rewards: Mapping[str, Reward] = MappingProxyType({})
    recipes: Mapping[str, Recipe] = MappingProxyType({})
    objectives: Sequence[Objective] = (TIME,)
    baselines: Sequence[Baseline] = ()
    pipelines: Sequence[Pipeline] = ()
    default_methods: tuple[str, ...] = ("base", "random", "greedy", "beam", "evolutionary")
    reference_baseline: str | None = None
    reference_pipeline: str | None = None
    first_pipelines: tuple[str, ...] = ()
    validation_inputs: int = 3
    accepts: str = ""
    part_forms: Mapping[str, str] = MappingProxyType({})
    grammar: Grammar | None = None
    yields_files: bool = False
    outline: tuple[ActionSpace, Mapping[str, ObservationView]] | None = None

    @abstractmethod
    def backends(self) -> list[BackendStatus]:
        """Return the state of each back end, the preferred first."""

    @abstractmethod
    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> Task[Any]:
        """Return the task of a URI.

        Args:
            uri: The program.
            backend: Name of a back end; by default the preferred one of those that make code for the target.
            target: The target or its name; by default the target of the back end named, else this machine.
                Tasks whose costs depend on no target take any, and have none.
            objective: What is minimised; by default the environment's first objective.

        Raises:
            ProgramError: The URI is malformed, or the program has no cost under the objective.
            BackendError: The back end or the code for the target does not run here, or they do not go
                together.
            IrgymError: There is no such objective.
        """

    def canonical(self, uri: str) -> str:
        """Return the URI that the task of a URI has; override it where a task takes long to make.

        Raises:
            ProgramError: The URI is malformed.
        """
        return self.task(uri).uri

    def program_of(self, program: object, inputs: Sequence[Any]) -> str | None:
        """Return the URI of a program that is given as a file or as an object; None for what is none of ours.

        Args:
            program: The path of a file that is there, or an object such as a module of torch.
            inputs: What the object is called with; empty for a file.

        Raises:
            IrgymError: It is one of ours, but cannot be read.
        """
        del program, inputs
        return None

    def in_place_of(
        self, program: object, inputs: Sequence[Any], task: Task[Any], state: Any
    ) -> Callable[..., Any]:
        """Return what computes a scheduled program and is called as the object that it was made of.

        Args:
            program: The object that `program_of` took.
            inputs: What it was given with.
            task: The task of its URI.
            state: The schedule.

        Raises:
            IrgymError: Programs of this environment cannot be called from Python.
        """
        del program, inputs, task, state
        raise IrgymError(f"programs of {self.name} cannot be called from Python: export the result")

    def compare_called(
        self, program: object, inputs: Sequence[Any], function: Callable[..., Any], seed: int
    ) -> Validation:
        """Compare what `in_place_of` returned with the object itself, called as its user calls it.

        Args:
            program: The object that `program_of` took.
            inputs: What it was given with: the first inputs that are tried.
            function: What stands for it.
            seed: Seed of further inputs.

        Raises:
            IrgymError: Programs of this environment cannot be called from Python.
        """
        del program, inputs, function, seed
        raise IrgymError(f"programs of {self.name} cannot be called from Python: export the result")

    def parts(self, uri: str, target: Target | str | None = None) -> Sequence[str]:
        """Return the programs that a URI stands for where they are several, such as the functions of a file.

        Each is tuned by itself. Empty: the URI is one program.

        Raises:
            ProgramError: The URI is malformed, or has no programs.
        """
        del uri, target
        return ()

    def programs_of(self, uri: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the programs that a URI adds to a data set, and for others of its file why they are none.

        By default these are its parts, or the URI itself.

        Raises:
            ProgramError: The URI is malformed, or has no programs.
        """
        return self.parts(uri) or [uri], ()

    def export_parts(self, parts: Sequence[tuple[Task[Any], Any]], path: Path) -> list[Path]:
        """Write what the parts are of, with each part in a state, in a form usable without irgym.

        Args:
            parts: Tasks of the URIs that `parts` returned, and a state of each.
            path: File to write; its suffix chooses the form.

        Returns:
            The files written.

        Raises:
            IrgymError: There is no such form.
            StorageError: The file cannot be written.
        """
        raise IrgymError(f"{self.name} does not write {path.name} with {len(parts)} programs: export one")

    @abstractmethod
    def dataset_names(self) -> list[str]:
        """Return the names of the data sets."""

    @abstractmethod
    def dataset(self, name: str) -> Dataset:
        """Return a data set.

        Raises:
            ProgramError: There is none of that name.
        """

    @abstractmethod
    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Start what measures this environment's programs, with the user's cost cache.

        Args:
            farm: Address of the farm to measure on, such as `local:4` or `dask://HOST:PORT`; by default one
                process on this machine.
            backend: Back end of the tasks to measure, as `task` takes it: some need several cores.

        Raises:
            IrgymError: The address is malformed, nothing answers there, or the cache cannot be opened.
            BackendError: There is no such back end.
        """

    def objective(self, name: str | None) -> Objective:
        """Return the objective of a name, or the default where None is given.

        Raises:
            IrgymError: There is none of that name; the message lists the objectives.
        """
        return objective_named(name, self.objectives, self.name)

    def reference(self, objective: Objective) -> str | None:
        """Return the pipeline that costs of an objective are compared with; None if there is none."""
        del objective
        return self.reference_pipeline

    def beginnings(self, objective: Objective) -> Sequence[str]:
        """Return the pipelines that searches begin with under an objective.

        They are `first_pipelines` if costs are exact, else none: a compiler whose costs are measured may run
        its pipeline after every schedule.
        """
        if not objective.exact:
            return ()
        reference = self.reference(objective)
        return self.first_pipelines or (() if reference is None else (reference,))

    def family(self, uri: str) -> str:
        """Return the name of a program's family, by which tables group results; empty: no grouping."""
        del uri
        return ""

    def policies(self) -> Mapping[str, Path]:
        """Return the trained policies that ship, by name; `default` among them where there is one."""
        return {}


DEFAULT = "default"
"""Name of the policy that an environment recommends, where one ships."""


def environment_fault(part: object) -> str:
    """Return in words how another package's environment is wrong; empty where it is right."""
    return "" if isinstance(part, Environment) else "is no Environment"


def policies_in(folder: Path, default: str, of_targets: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Return the policies in a folder by name, and the recommended ones also as `DEFAULT`.

    Args:
        folder: Where they are.
        default: The one that `DEFAULT` means, if it is there.
        of_targets: By target, what `DEFAULT` means there instead: see `default_on`.
    """
    policies = {path.stem: path for path in sorted(folder.glob("*.pt"))}
    names = {DEFAULT: default}
    names |= {default_on(target): name for target, name in (of_targets or {}).items()}
    return policies | {name: policies[stem] for name, stem in names.items() if stem in policies}


def default_on(target: str) -> str:
    """Return the name of what `DEFAULT` means on a target, if that is another policy."""
    return f"{DEFAULT}-{target}"


def check_only_backend(environment: str, name: str | None, only: str) -> None:
    """Make sure that a back end is the only one of an environment, on one thread, or none was asked for.

    Raises:
        BackendError: It is another one.
    """
    if name is not None and name.startswith(":"):
        raise BackendError(f"{environment} runs programs on one thread: leave out --threads")
    if name not in (None, only):
        raise BackendError(f"{environment} has no back end {name!r}: choose {only}")
