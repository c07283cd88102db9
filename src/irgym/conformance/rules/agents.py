"""Rules about agents: configurations, learners, and the policies that they make."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, fields
from types import NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints

import numpy as np

from irgym.agents.episodes.played import Outcomes
from irgym.agents.learner import Learner, Statistics, config_fault
from irgym.base.errors import IrgymError
from irgym.base.values import MismatchError, Range, conform
from irgym.conformance.rule import AgentRule, attempt, words_of
from irgym.conformance.trial import Trial, differing, elsewhere
from irgym.core.lockstep import Turn, play
from irgym.core.task import Task
from irgym.networks import storage
from irgym.networks.policy import TorchPolicy

SENSELESS = {
    "iterations": 0,
    "episodes": 0,
    "threads": 0,
    "seed": -1,
    "validate_every": -1,
    "checkpoint_every": -1.0,
}
"""Values out of range of the fields that all agents have."""

OTHERS: tuple[Any, ...] = (None, True, -1, 0.5, math.nan, math.inf, "no-such-value", [[]])
"""Values that most types do not have."""


def _fields(trial: Trial) -> str:
    kind = type(trial.config)
    if fault := config_fault(kind):
        return f"{kind.__name__} {fault}"
    try:
        json.dumps(trial.values)
    except (TypeError, ValueError) as error:
        return f"config.json cannot hold its values: {error}"
    return ""


def _refused(trial: Trial) -> str:
    for name, value in _wrong_values(trial):
        config, error = attempt(trial.changed, {name: value})
        if config is not None:
            _, error = attempt(config.build, trial.problem)
        if error is None:
            return f"{name} = {value!r} is accepted, and must raise an IrgymError"
        if not isinstance(error, IrgymError):
            return f"{name} = {value!r} raises {words_of(error)}, and must raise an IrgymError"
        if "\n" in str(error):
            return f"{name} = {value!r} is refused in more than one sentence: {words_of(error)}"
    return ""


def _wrong_values(trial: Trial) -> Iterator[tuple[str, Any]]:
    """Yield values that fields must not have: those that their declared types and ranges exclude."""
    hints = get_type_hints(type(trial.config), include_extras=True)
    for field in fields(cast(Any, trial.config)):
        if field.name in SENSELESS:
            yield field.name, SENSELESS[field.name]
        for value in (*OTHERS, *_beyond(hints[field.name])):
            _, error = attempt(conform, hints[field.name], value)
            if isinstance(error, MismatchError):
                yield field.name, value


def _beyond(hint: Any) -> Iterator[Any]:
    """Yield numbers that the ranges of a type exclude, or tuples of such a number."""
    ranges = [part for part in get_args(hint)[1:] if isinstance(part, Range)]
    kind = get_args(hint)[0] if ranges else NoneType
    whole = int in (kind, *get_args(kind))
    for limits in ranges:
        edges = (limits.above, limits.below)
        outside = [edge for edge in edges if edge is not None]
        outside += [limits.low - 1] if limits.low is not None else []
        outside += [limits.high * 2 + 1] if limits.high is not None else []
        for number in outside:
            value = int(number) if whole else number
            yield (value,) if get_origin(kind) is tuple else value


def _built(trial: Trial) -> str:
    learner = trial.config.build(trial.problem)
    held, _ = attempt(asdict, learner.config)
    if held is None or held.keys() != trial.values.keys():
        return "the learner's `config` is not the configuration, with its defaults resolved"
    return ""


def _masked(trial: Trial) -> str:
    attempt(lambda: trial.whole)  # an error breaks the next rule, unless an action here is its reason
    return f"its episodes take {trial.forbidden[0]}, which the mask forbids" if trial.forbidden else ""


def _iterates(trial: Trial) -> str:
    wanted = trial.values.get("episodes")
    for outcomes, statistics in trial.whole.iterations:
        if not isinstance(outcomes, Outcomes) or not isinstance(statistics, Statistics):  # pyright: ignore[reportUnnecessaryIsInstance]
            return "`iterate` returns no Outcomes with Statistics"
        lengths = [len(getattr(outcomes, name)) for name in ("first", "last", "best", "returns")]
        if len(set(lengths)) > 1:
            return f"the arrays of the outcomes have the lengths {lengths}"
        if wanted is not None and lengths[0] != wanted:
            return f"an iteration has {lengths[0]} episodes, and `episodes` is {wanted}"
    return ""


def _finite(trial: Trial) -> str:
    for number, (outcomes, statistics) in enumerate(trial.whole.iterations, start=1):
        if not np.isfinite(outcomes.returns).all():
            return f"a return of iteration {number} is not finite"
        for name, value in asdict(statistics).items():
            if value is not None and not (isinstance(value, float | int) and math.isfinite(value)):
                return f"{name} of iteration {number} is {value!r}"
    return ""


def _policy_of(learner: Learner) -> TorchPolicy:
    """Return the policy of a learner; the rules look into its network.

    Raises:
        IrgymError: It is of another kind.
    """
    policy = learner.policy()
    if not isinstance(policy, TorchPolicy):
        raise IrgymError(f"the rules are for learners of a TorchPolicy, not of a {type(policy).__name__}")
    return policy


def _acts(trial: Trial) -> str:
    policy, rng = _policy_of(trial.whole.learner), np.random.default_rng(0)
    for generator in (None, rng):
        for task in trial.problem.tasks:
            for state, action in _episode(policy, task, generator):
                if not task.space.allows(task.mask(state), action):
                    return f"the policy takes {task.space.text(action)!r}, which the mask forbids"
    return ""


def _episode(
    policy: TorchPolicy, task: Task[Any], rng: np.random.Generator | None
) -> Iterator[tuple[Any, Any]]:
    """Yield the states and the actions of an episode up to the first that the mask forbids."""
    state = task.initial()
    for _ in range(task.horizon):
        if task.terminal(state):
            return
        [action] = policy.act([task.observe(state, policy.observation)], [task.mask(state)], rng)
        yield state, action
        state = task.step(state, action)


def _learns(trial: Trial) -> str:
    first = _policy_of(trial.config.build(trial.problem)).network.state_dict()
    last = _policy_of(trial.whole.learner).network.state_dict()
    if storage.difference(first, last):
        return ""
    return (
        f"the policy has the weights of its beginning after {trial.iterations} iterations: it takes no "
        "gradient step, or the configuration does not let it begin so early"
    )


def _seeds(trial: Trial) -> str:
    with elsewhere(seed=1):
        again = trial.begun(trial.config)
    if found := differing(trial.whole.iterations[: trial.half], again.iterations):
        return f"a second training with the same seed differs in {found}"
    seed = trial.values["seed"]
    other = trial.begun(trial.changed({"seed": seed + 1}))
    if not storage.difference(again.middle, other.middle):
        return f"the trainings with the seeds {seed} and {seed + 1} are equal"
    return ""


def _stored(trial: Trial) -> str:
    middle = trial.whole.middle
    found = storage.difference(middle, trial.stored(middle), "state")
    return f"a file gives back another {found}" if found else ""


def _resumes(trial: Trial) -> str:
    whole, resumed = trial.whole, trial.resumed()
    rest = whole.iterations[trial.half :]
    if found := differing(rest, resumed.iterations):
        return f"after a resumption {found} differs: `state_dict` lacks something that decides it"
    ours, theirs = whole.learner, resumed.learner
    found = storage.difference(ours.state_dict(), theirs.state_dict(), "state") or storage.difference(
        _policy_of(ours).network.state_dict(), _policy_of(theirs).network.state_dict(), "weights"
    )
    return f"{len(rest)} iterations after a resumption, {found} differs" if found else ""


def _policy_file(trial: Trial) -> str:
    policy, file = _policy_of(trial.whole.learner), trial.folder / "policy.pt"
    policy.save(file)
    loaded, tasks = TorchPolicy.load(file), trial.problem.tasks
    for seed in (None, 0):
        ours, theirs = (_actions(found, tasks, seed) for found in (policy, loaded))
        for task, first, second in zip(tasks, ours, theirs, strict=True):
            if first != second:
                return f"the policy's file gives other actions on {task.uri}"
    return ""


def _actions(policy: TorchPolicy, tasks: Any, seed: int | None) -> list[list[str]]:
    """Return the texts of a policy's actions on each task: sampled with a seed, or the best."""
    rng = None if seed is None else np.random.default_rng(seed)

    def choose(turn: Turn) -> Any:
        return policy.act(turn.observations(policy.observation), turn.masks, rng)

    episodes = play(tasks, choose)
    return [
        [task.space.text(action) for action in episode.actions]
        for task, episode in zip(tasks, episodes, strict=True)
    ]


AGENT_RULES = (
    AgentRule(
        "fields",
        "The configuration is a frozen dataclass of plain values with defaults, has the fields that `train` "
        "reads, and a method `build`.",
        _fields,
    ),
    AgentRule("values", "A value of a wrong type or out of its range is refused in one sentence.", _refused),
    AgentRule("build", "The learner holds its configuration, with all defaults resolved.", _built),
    AgentRule("masked", "Episodes take only actions that the mask allows.", _masked),
    AgentRule("episodes", "An iteration plays as many episodes as `episodes` says.", _iterates),
    AgentRule("statistics", "Returns and statistics are finite numbers.", _finite),
    AgentRule("acting", "The policy takes only actions that the mask allows.", _acts),
    AgentRule("learning", "The policy's weights change in the iterations of the check.", _learns),
    AgentRule(
        "seeds", "The seed alone decides the course of a training, and another seed changes it.", _seeds
    ),
    AgentRule("state", "A file gives back the learner's state.", _stored),
    AgentRule(
        "resumption",
        "A training that goes on from a file has the outcomes, statistics, weights and state of one that was "
        "not interrupted.",
        _resumes,
    ),
    AgentRule("policy-file", "A policy's file gives the same actions.", _policy_file),
)
"""The rules in the order of checking: what others rest on comes first."""
