"""Running methods side by side on the same programs: what `irgym compare` and `irgym evaluate` do."""

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from irgym.core.environment import Bench, Environment
from irgym.core.errors import IrgymError
from irgym.core.policy import Policy
from irgym.core.task import Task
from irgym.evaluate.methods import Conditions, Method, Outcome, parse_method
from irgym.evaluate.results import Comparison, Row
from irgym.evaluate.tuning import VALIDATION_INPUTS
from irgym.search.session import Budget


def run_comparison(
    environment: Environment,
    bench: Bench,
    uris: Sequence[str],
    methods: Sequence[str],
    budget: Budget,
    seed: int,
    load_policy: Callable[[str, Task[Any]], Policy],
    progress: Callable[[str, str], None] | None = None,
    backend: str | None = None,
) -> Comparison:
    """Run every method on every program.

    A method that fails on a program gets a row that says why; the rest goes on.

    Args:
        environment: Where the programs come from.
        bench: Where they are measured.
        uris: The programs.
        methods: Texts as `parse_method` reads them.
        budget: What each search may spend on each program.
        seed: Seed of all random choices.
        load_policy: Returns the policy of a name that suits a task.
        progress: Called with program and method before each run.
        backend: Back end of the environment; by default the preferred one.

    Raises:
        IrgymError: There are no programs, or a program, method or policy does not exist.
    """
    if not uris or not methods:
        raise IrgymError("there is nothing to compare: name at least one program and one method")
    tasks = [environment.task(uri, backend) for uri in uris]
    chosen = [
        parse_method(text, environment, lambda name: load_policy(name, tasks[0]))
        for text in dict.fromkeys(methods)
    ]
    conditions = Conditions(environment, bench, budget, seed)
    outcomes: list[Outcome] = []
    for task in tasks:
        for method in chosen:
            if progress is not None:
                progress(task.uri, method.name)
            outcomes.append(_attempt(method, conditions, task))
    return Comparison(
        environment=environment.name,
        peer=environment.reference_peer,
        rows=tuple(outcome.row for outcome in outcomes),
        traces=tuple(outcome.trace for outcome in outcomes if outcome.trace is not None),
        machine=bench.machine,
        settings=_settings(conditions, outcomes),
    )


def _attempt(method: Method, conditions: Conditions, task: Task[Any]) -> Outcome:
    """Return the outcome of a method on a program; of a failure, a row that says why."""
    try:
        return method.solve(conditions, task)
    except IrgymError as error:
        return Outcome(Row(task.uri, method.name, None, None, None, None, None, False, detail=str(error)))


def _settings(conditions: Conditions, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what the numbers depend on, beside the machine."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "seconds": conditions.budget.seconds,
        "evaluations": conditions.budget.evaluations,
        "seed": conditions.seed,
        "validation_inputs": VALIDATION_INPUTS,
        "peer": next((outcome.peer for outcome in outcomes if outcome.peer), ""),
    }
