"""The check of an environment and of a task against all rules."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from irgym.base.errors import IrgymError
from irgym.conformance.checked import Checked, Tally
from irgym.conformance.errors import ConformanceError
from irgym.conformance.rule import NONE, broken, skipped
from irgym.conformance.rules import ENVIRONMENT_RULES, OBJECTIVE_RULES, PAIR_RULES, RULES, STATE_RULES
from irgym.conformance.rules.environments import under_objective
from irgym.conformance.walking import Walks, walk
from irgym.core.bench import Bench
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.dataset import spread
from irgym.core.environment import Environment
from irgym.core.task import Task

MOST = 10**6
"""Greatest number of walks and of steps."""

PROGRAMS = 2
"""Programs of the default data set that are checked unless others are given."""


def check_environment(
    environment: "Environment | str",
    programs: Sequence[str] = (),
    *,
    seed: int = 0,
    walks: int = 3,
    steps: int = 8,
    measure: bool = True,
    skip: Mapping[str, str] = NONE,
) -> Checked:
    """Check that an environment and the tasks of some programs keep all rules.

    Each program is checked under every objective of the environment: in full under the default, and by the
    rules about jobs and costs under the others.

    Args:
        environment: The environment, or its name.
        programs: URIs; by default a training and a test program of the default data set. Choose small ones.
        seed: Seed of the random walks.
        walks: Random walks from each program's initial state.
        steps: Greatest number of actions of a walk.
        measure: Whether to measure states on the environment's bench and compare their results too.
        skip: Names of rules that are not checked, each with the reason.

    Returns:
        What was checked, and which actions did nothing.

    Raises:
        ConformanceError: A rule is broken; the error names it, and the smallest schedule that shows it.
        IrgymError: A program cannot be read, nothing can be measured here, or a rule that does not exist is
            to be skipped.
    """
    if isinstance(environment, str):
        environment = ENVIRONMENTS.load(environment)
    left_out, tally = skipped(skip, RULES), Tally()
    _check_walks(seed, walks, steps)
    uris = tuple(programs) or _programs_of(environment)
    tasks = tuple(environment.task(uri) for uri in uris)
    for rule in ENVIRONMENT_RULES:
        if rule.name in left_out:
            continue
        tally.rules[rule.name] += 1
        if detail := broken(rule.check, environment, tasks):
            raise ConformanceError(rule.name, environment.name, detail)
    with ExitStack() as stack:
        bench = stack.enter_context(environment.bench()) if measure else None
        for uri, task in zip(uris, tasks, strict=True):
            walk(task, frozenset(RULES) - left_out, Walks(seed, walks, steps, bench), tally)
            for objective in environment.objectives[1:]:
                under = under_objective(environment, uri, objective)
                if under is None:
                    continue
                again = Tally(tally.rules)  # the same actions, which do the same
                walk(under, OBJECTIVE_RULES - left_out, Walks(seed, 1, steps, bench), again)
    return tally.account(tuple(task.uri for task in tasks), RULES.values(), skip, measure)


def check_task(
    task: Task[Any],
    *,
    seed: int = 0,
    walks: int = 3,
    steps: int = 8,
    bench: Bench | None = None,
    skip: Mapping[str, str] = NONE,
) -> Checked:
    """Check that a task keeps all rules, on random walks from its initial state.

    Args:
        task: The task.
        seed: Seed of the random walks.
        walks: Number of walks.
        steps: Greatest number of actions of a walk.
        bench: Measures states, and runs the calls that compare results; None leaves out the rules that need
            one.
        skip: Names of rules that are not checked, each with the reason.

    Returns:
        What was checked, and which actions did nothing.

    Raises:
        ConformanceError: A rule is broken; the error names it, and the smallest schedule that shows it.
        IrgymError: A rule that does not exist is to be skipped.
    """
    wanted, tally = frozenset(RULES) - skipped(skip, RULES), Tally()
    _check_walks(seed, walks, steps)
    walk(task, wanted, Walks(seed, walks, steps, bench), tally)
    return tally.account((task.uri,), (*STATE_RULES, *PAIR_RULES), skip, bench is not None)


def _check_walks(seed: int, walks: int, steps: int) -> None:
    """Make sure that there are walks to take, and that they end.

    Raises:
        IrgymError: There are none, they do not, or the seed is out of range.
    """
    if not 0 <= seed < 2**63:
        raise IrgymError(f"a seed of {seed} is out of range: give 0 or more, below 2^63")
    for name, number in (("walks", walks), ("steps", steps)):
        if not 1 <= number <= MOST:
            raise IrgymError(f"{number} {name} are too {'few' if number < 1 else 'many'}: give 1 to {MOST}")


def _programs_of(environment: Environment) -> tuple[str, ...]:
    data = environment.dataset(environment.default_dataset)
    return tuple(dict.fromkeys([*spread(data.train, 1), *spread(data.test, 1)]))[:PROGRAMS]
