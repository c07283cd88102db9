"""The plan of an evaluation: a comparison under the conditions of a run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from irgym.api.programs import environment_named
from irgym.api.requests import Evaluating, Measuring
from irgym.comparing.comparison import ComparisonPlan
from irgym.core.catalogue import check_objective
from irgym.policies.run_folder import RunProblem
from irgym.search.budget import Budget


def evaluation_plan(
    problem: RunProblem,
    methods: tuple[str, ...],
    programs: Sequence[str | Path],
    evaluating: Evaluating,
    seed: int,
    measuring: Measuring,
    note: Callable[[str], None] | None = None,
) -> tuple[ComparisonPlan, Measuring]:
    """Return the plan of a comparison under the conditions of a run, and where to measure; see `evaluate`.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense.
    """
    found = environment_named(problem.environment)
    where = replace(
        measuring,
        objective=measuring.objective or problem.objective,
        backend=measuring.processor or problem.backend,
        threads=None,
        target=measuring.target or _own_target(problem),
        horizon=problem.horizon if measuring.horizon is None else measuring.horizon,
        actions=problem.actions if measuring.actions is None else measuring.actions,
    )
    plan = ComparisonPlan(
        environment=found,
        programs=_named(evaluating, programs, problem).uris(found, programs, note),
        methods=methods,
        budget=Budget(evaluations=1),
        seed=seed,
        backend=where.backend,
        target=where.target,
        objective=where.objective,
        limits=where.limits,
    )
    check_objective(found, plan.objective)
    return plan, where


def _named(evaluating: Evaluating, programs: Sequence[str | Path], problem: RunProblem) -> Evaluating:
    """Return a selection with the data set and the share of the run where neither is given, nor programs."""
    if evaluating.dataset is not None or programs:
        return evaluating
    holdout = problem.holdout if evaluating.holdout is None else evaluating.holdout
    return replace(evaluating, dataset=problem.dataset, holdout=holdout)


def _own_target(problem: RunProblem) -> str | None:
    """Return the target to evaluate a policy on; None for this machine."""
    return problem.targets[0] if len(problem.targets) == 1 else None
