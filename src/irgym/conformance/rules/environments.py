"""Rules about what an environment lists and makes."""

from collections.abc import Callable, Iterator
from typing import Any

from irgym.base.errors import BackendError, IrgymError, ProgramError
from irgym.comparing.method_names import parse_method
from irgym.conformance.rule import EnvironmentRule, attempt, words_of
from irgym.core.capabilities import Baselines, Pipelines, ask
from irgym.core.cost import Call
from irgym.core.dataset import Dataset
from irgym.core.environment import Environment
from irgym.core.objective import Objective
from irgym.core.reward_names import reward_from
from irgym.core.schedule import replay
from irgym.core.task import Task
from irgym.policies.policy import Policy
from irgym.search.policies import check_suits, policy_in, policy_path

Tasks = tuple[Task[Any], ...]
NOTHING = "no-such-name"


def _refusal(make: Callable[[], object], expected: type[IrgymError]) -> str:
    """Return how the answer to a wrong name differs from one sentence of a kind; empty where it does not."""
    _, error = attempt(make)
    if error is None:
        return f"is accepted, and must raise {expected.__name__}"
    if not isinstance(error, expected):
        return f"raises {words_of(error)}, and must raise {expected.__name__}"
    return "" if "\n" not in str(error) else f"is refused in more than one sentence: {error}"


def _uris(environment: Environment, tasks: Tasks) -> str:
    for task in tasks:
        if (again := environment.task(task.uri).uri) != task.uri:
            return f"the URI {task.uri} is no canonical one: its task has {again}"
        if (again := environment.canonical(task.uri)) != task.uri:
            return f"the URI {task.uri} is no canonical one: `canonical` returns {again}"
    if wrong := _refusal(lambda: environment.task(f"{environment.name}://{NOTHING}"), ProgramError):
        return f"the URI {environment.name}://{NOTHING} {wrong}"
    return ""


def _tasks(environment: Environment, tasks: Tasks) -> str:
    outline = environment.outline
    for task in tasks:
        if outline is not None and (task.space, dict(task.views)) != (outline[0], dict(outline[1])):
            return f"the actions or observations of {task.uri} are not those of the outline"
        if task.horizon < 1:
            return f"the horizon of {task.uri} is {task.horizon}: it must be at least 1"
        if not task.views:
            return f"{task.uri} has no observation"
        for name, view in task.views.items():
            if view.name != name:
                return f"the observation {name} calls itself {view.name}"
            if (view.value is None) == (view.of_cost is None):
                return f"the observation {name} needs one of `value` and `of_cost`"
        for suffix in task.forms:
            if not suffix.startswith(".") or suffix != suffix.lower():
                return f"the form {suffix!r} is no suffix in lower case"
        names = [kind.name for kind in task.space.kinds]
        if len(set(names)) < len(names):
            return "two kinds of actions have one name"
    return ""


def _backends(environment: Environment, tasks: Tasks) -> str:
    statuses = environment.backends()
    names = [status.name for status in statuses]
    if not names or len(set(names)) < len(names):
        return f"the back ends are {names}: there must be one at least, and no name twice"
    if not any(status.available for status in statuses):
        return "no back end is available, and tasks are made"
    for task in tasks[:1]:
        if wrong := _refusal(lambda uri=task.uri: environment.task(uri, NOTHING), BackendError):
            return f"the back end {NOTHING!r} {wrong}"
    return ""


def _listed(environment: Environment) -> Iterator[tuple[str, Dataset]]:
    """Yield the data sets by name, but for those that take parameters, of which only the form is listed."""
    for name in environment.dataset_names():
        if not any(mark in name for mark in " =:"):
            yield name, environment.dataset(name)


def _datasets(environment: Environment, tasks: Tasks) -> str:
    del tasks
    if environment.default_dataset not in environment.dataset_names():
        return f"the default data set, {environment.default_dataset}, is not listed"
    if not environment.dataset(environment.default_dataset).train:
        return f"the default data set, {environment.default_dataset}, has no training programs"
    for name, data in _listed(environment):
        if data != environment.dataset(name):
            return f"the data set {name} differs from call to call"
        if data.name != name or not data.test:
            return f"the data set {name} is named {data.name!r}, or has no test programs"
        if any(len(set(split)) < len(split) for split in (data.train, data.test)):
            return f"a split of the data set {name} has a program twice"
        for uri in (*data.train, *data.test):
            environment.family(uri)  # must not fail
    if wrong := _refusal(lambda: environment.dataset(NOTHING), ProgramError):
        return f"the data set {NOTHING!r} {wrong}"
    return ""


def _splits(environment: Environment, tasks: Tasks) -> str:
    del tasks
    for name, data in _listed(environment):
        if both := set(data.train) & set(data.test):
            return f"the splits of the data set {name} share {min(both)}"
    return ""


def _objectives(environment: Environment, tasks: Tasks) -> str:
    objectives = environment.objectives
    if not objectives or len({objective.name for objective in objectives}) < len(objectives):
        return "there is no objective, or one is listed twice"
    for task in tasks:
        if tuple(task.objectives) != tuple(objectives):
            names = [[objective.name for objective in listed] for listed in (task.objectives, objectives)]
            return f"{task.uri} lists the objectives {names[0]}, and the environment {names[1]}"
        if task.objective != objectives[0]:
            return f"the default objective of {task.uri} is {task.objective.name}, not {objectives[0].name}"
        for objective in objectives:
            named = under_objective(environment, task.uri, objective)
            for found in filter(None, (named, task.under(objective.name))):
                if found.objective != objective or found.uri != task.uri:
                    return f"{task.uri} under {objective.name} is {found.uri} under {found.objective.name}"
        if wrong := _refusal(lambda task=task: task.under(NOTHING), IrgymError):
            return f"the objective {NOTHING!r} {wrong}"
        if alike := _alike(task):
            return alike
    return ""


def under_objective(environment: Environment, uri: str, objective: Objective) -> Task[Any] | None:
    """Return the task of a program under an objective; None if the program has no cost under that one.

    Raises:
        ProgramError: The program has no cost under the default objective.
    """
    try:
        return environment.task(uri, objective=objective.name)
    except ProgramError:
        if objective == environment.objectives[0]:
            raise
        return None


def _alike(task: Task[Any]) -> str:
    """Return which objectives measure the same thing, in words; empty where none do."""
    measured: dict[Call, str] = {}
    for objective in task.objectives:
        job = task.under(objective.name).job(task.initial())
        if job.known is not None or job.parts:
            continue
        if job.call in measured:
            return f"{task.uri} is measured by the same call under {measured[job.call]} and {objective.name}"
        measured[job.call] = objective.name
    return ""


def _names(environment: Environment, tasks: Tasks) -> str:
    del tasks
    baselines = [baseline.name for baseline in environment.baselines]
    pipelines = [pipeline.name for pipeline in environment.pipelines]
    for known, name, what in (
        (baselines, environment.reference_baseline, "reference_baseline"),
        (pipelines, environment.reference_pipeline, "reference_pipeline"),
    ):
        if name is not None and name not in known:
            return f"{what} needs {name!r}, and the names are {known}"
        if len(set(known)) < len(known):
            return f"a name is listed twice: {known}"
    for reward in (environment.default_reward, *environment.rewards.values()):
        reward_from(environment, reward)
    if wrong := _wrong_methods(environment):
        return wrong
    if environment.validation_inputs < 1:
        return f"validation_inputs is {environment.validation_inputs}: results are compared on at least one"
    policies = environment.policies()
    for name, path in policies.items():
        if not path.is_file() or not path.stat().st_size:
            return f"the policy {name} is {path}, which is not there or is empty"
    if policies and "default" not in policies:
        return f"policies ship, {', '.join(policies)}, and none is the default"
    return ""


def _wrong_methods(environment: Environment) -> str:
    """Return why the default methods cannot be compared, in words; empty where they can."""

    def shipped(name: str) -> Policy:
        return policy_in(policy_path(name, environment))

    if not environment.default_methods:
        return "there are no default_methods, and compare needs some"
    for text in environment.default_methods:
        try:
            parse_method(text, environment, shipped)
        except BackendError:
            continue  # torch is not installed
        except IrgymError as error:
            return f"default_methods names {text!r}: {error}"
    return ""


def _policies(environment: Environment, tasks: Tasks) -> str:
    names = {path: name for name, path in environment.policies().items()}  # a file may have several
    for path, name in names.items():
        try:
            policy = policy_in(path)
        except BackendError:
            continue  # torch is not installed
        for task in tasks:
            try:
                check_suits(policy, task)
            except IrgymError as error:
                return f"the policy {name} does not suit {task.uri}: {error}"
    return ""


def _offers(environment: Environment, tasks: Tasks) -> str:
    baselines, pipelines = environment.baselines, environment.pipelines
    for task in tasks:
        timed, ordered = ask(task, Baselines), ask(task, Pipelines)
        if bool(baselines) != (timed is not None):
            return "baselines and the tasks' baseline_call() must be there together"
        if bool(pipelines) != (ordered is not None):
            return "pipelines and the tasks' pipeline() must be there together"
        if ordered is None:
            continue
        for pipeline in pipelines:
            try:
                schedule = ordered.pipeline(pipeline.name)
            except IrgymError:
                continue  # a compiler may not tell what it does to a program
            replay(task, schedule)
        if wrong := _refusal(lambda ordered=ordered: ordered.pipeline(NOTHING), IrgymError):
            return f"the pipeline {NOTHING!r} {wrong}"
    return ""


ENVIRONMENT_RULES = (
    EnvironmentRule("uri", "The URI of a task is canonical, and a wrong one is refused.", _uris),
    EnvironmentRule(
        "task",
        "Tasks have a horizon, observations, those of `outline` where there is one, and kinds and forms with "
        "distinct names.",
        _tasks,
    ),
    EnvironmentRule("backends", "A back end is available, and wrong names are refused.", _backends),
    EnvironmentRule(
        "datasets",
        "Data sets are fixed, have test programs, the default also training programs, and no program twice.",
        _datasets,
    ),
    EnvironmentRule("splits", "No program is in both splits of a data set.", _splits),
    EnvironmentRule("objectives", "Tasks can be had under each objective.", _objectives),
    EnvironmentRule("names", "References, rewards, methods and policies that are named exist.", _names),
    EnvironmentRule("policies", "Policies that ship suit the tasks.", _policies),
    EnvironmentRule(
        "offers", "Baselines and pipelines that are listed are offered by the tasks, and replay.", _offers
    ),
)
