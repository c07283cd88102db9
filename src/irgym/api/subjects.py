"""Policies to evaluate: those of run folders, and any others on an environment that is named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irgym.api.checks import path_of
from irgym.api.policies import GivenPolicies, named_methods
from irgym.api.programs import environment_named
from irgym.base.errors import IrgymError
from irgym.comparing.rows import POLICY
from irgym.core.uri import is_file, is_folder
from irgym.policies.run_folder import RunFolder, RunProblem
from irgym.policies.sb3_files import PREFIX


@dataclass(frozen=True)
class Subject:
    """A policy to evaluate.

    Attributes:
        method: The method `policy:NAME`.
        problem: Environment, data set and conditions by default.
        policies: Where the policy is found.
        folder: The run folder that takes the results; None where there is none.
    """

    method: str
    problem: RunProblem
    policies: GivenPolicies
    folder: RunFolder | None


def subject_of(run: Any, environment: str | None) -> Subject:
    """Return the policy to evaluate.

    Args:
        run: A run folder; where the environment is named also the name of a policy, a file, or a policy, as
            `irgym.policies.foreign.adapted` takes it.
        environment: Name of the environment; by default the run's.

    Raises:
        IrgymError: There is no such environment, or it is to be named.
        StorageError: The folder is no training run, or is damaged.
    """
    if environment is not None:
        found = environment_named(environment)
        problem = RunProblem(environment=found.name, dataset=found.default_dataset, backend=None)
        if isinstance(run, str | Path):
            return Subject(f"{POLICY}:{run}", problem, GivenPolicies(found, {}), None)
        [method], given = named_methods([run])
        return Subject(str(method), problem, GivenPolicies(found, given), None)
    if not isinstance(run, str | Path) or str(run).startswith(PREFIX) or is_file(Path(run)):
        raise IrgymError(
            "the policy is of no run folder, so its environment must be named: give --environment, in Python "
            "environment='...'"
        )
    path = path_of(run, "a run folder")
    if not is_folder(path):
        raise IrgymError(
            f"there is no run folder {path}: name one that irgym train wrote, or the environment of a policy "
            "that ships or that a function returns, by --environment, in Python environment='...'"
        )
    folder = RunFolder(path)
    problem = folder.problem()
    found = environment_named(problem.environment)
    return Subject(f"{POLICY}:{folder.path}", problem, GivenPolicies(found, {}), folder)
