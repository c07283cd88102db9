"""Rules: a name, a sentence, and a check that returns how it is broken."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from irgym.base.errors import IrgymError
from irgym.conformance.case import Case
from irgym.core.environment import Environment
from irgym.core.task import Task

if TYPE_CHECKING:
    from irgym.conformance.trial import Trial

T = TypeVar("T")
Where = Literal["everywhere", "ends", "once"]


@dataclass(frozen=True)
class StateRule:
    """A rule about a task in one state.

    Attributes:
        name: Name of the rule, such as `fork`.
        demand: One sentence: what must hold.
        check: Returns how a case breaks it, in words; empty where it holds. What it raises breaks it too.
        where: The states in which it is checked: all of a walk, the first and the last, or only the last of
            the first walk, for checks that take seconds.
        measures: Whether it needs a bench.
    """

    name: str
    demand: str
    check: Callable[[Case], str]
    where: Where = "everywhere"
    measures: bool = False


@dataclass(frozen=True)
class PairRule:
    """A rule about two states of a task that have equal keys.

    Attributes:
        name: Name of the rule.
        demand: One sentence: what must hold.
        check: Returns how two cases break it, in words; empty where it holds.
        measures: Whether it needs a bench.
    """

    name: str
    demand: str
    check: Callable[[Case, Case], str]
    measures: bool = False


@dataclass(frozen=True)
class EnvironmentRule:
    """A rule about what an environment lists and makes.

    Attributes:
        name: Name of the rule.
        demand: One sentence: what must hold.
        check: From the environment and the tasks of some programs to how it is broken, in words.
    """

    name: str
    demand: str
    check: Callable[[Environment, tuple[Task[Any], ...]], str]


@dataclass(frozen=True)
class AgentRule:
    """A rule about an agent's configuration, and about the learner that it builds.

    Attributes:
        name: Name of the rule.
        demand: One sentence: what must hold.
        check: Returns how an agent on trial breaks it, in words; empty where it holds.
    """

    name: str
    demand: str
    check: "Callable[[Trial], str]"


Rule = StateRule | PairRule | EnvironmentRule


NONE: Mapping[str, str] = MappingProxyType({})
"""No rules to skip."""


def skipped(skip: Mapping[str, str], known: Collection[str]) -> frozenset[str]:
    """Return the names of rules to skip.

    Args:
        skip: Names, each with the reason.
        known: Names of all rules.

    Raises:
        IrgymError: There is no such rule, or a reason is missing.
    """
    for name, reason in skip.items():
        if name not in known:
            raise IrgymError(f"there is no rule {name!r} to skip: choose among {', '.join(known)}")
        if not reason:
            raise IrgymError(f"the rule {name!r} is skipped without a reason: give one")
    return frozenset(skip)


def broken(check: Callable[..., str], *arguments: Any) -> str:
    """Return how a check's arguments break its rule, in words; empty where they keep it.

    Tasks and learners promise which errors they raise, and where; any other one breaks the rule during whose
    check it is raised.
    """
    found, error = attempt(check, *arguments)
    return found or "" if error is None else f"it raises {words_of(error)}"


def attempt(function: Callable[..., T], *arguments: Any) -> tuple[T | None, Exception | None]:
    """Return what a function returns, or the error that it raises.

    Nothing is known of the code that is checked: it may raise anything.
    """
    try:
        return function(*arguments), None
    except Exception as error:  # noqa: BLE001
        return None, error


def words_of(error: Exception) -> str:
    """Return the type of an error, and the first and the last line of its message."""
    lines = str(error).splitlines()[:1] + str(error).splitlines()[1:][-1:]
    return ": ".join([type(error).__name__, *lines])
