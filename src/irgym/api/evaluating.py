"""The plan of an evaluation: a comparison under the conditions of a run."""

from dataclasses import replace

from irgym.api.programs import environment_named
from irgym.api.requests import Measuring
from irgym.comparing.comparison import ComparisonPlan
from irgym.core.catalogue import check_objective, dataset_named
from irgym.core.dataset import spread
from irgym.policies.run_folder import RunFolder, RunProblem
from irgym.search.budget import Budget


def evaluation_plan(
    folder: RunFolder,
    methods: tuple[str, ...],
    split: str,
    dataset: str | None,
    limit: int | None,
    seed: int,
    measuring: Measuring,
) -> tuple[ComparisonPlan, Measuring]:
    """Return the plan of a comparison under the conditions of a run, and where to measure; see `evaluate`.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense.
        StorageError: The folder is no training run, or is damaged.
    """
    problem = folder.problem()
    found = environment_named(problem.environment)
    programs = dataset_named(found, problem.dataset if dataset is None else dataset)
    where = replace(
        measuring,
        objective=measuring.objective or problem.objective,
        backend=measuring.processor or problem.backend,
        threads=None,
        target=measuring.target or _own_target(problem),
    )
    plan = ComparisonPlan(
        environment=found,
        programs=tuple(spread(programs.split(split), limit)),
        methods=methods,
        budget=Budget(evaluations=1),
        seed=seed,
        backend=where.backend,
        target=where.target,
        objective=where.objective,
    )
    check_objective(found, plan.objective)
    return plan, where


def _own_target(problem: RunProblem) -> str | None:
    """Return the target to evaluate a policy on; None for this machine."""
    return problem.targets[0] if len(problem.targets) == 1 else None
