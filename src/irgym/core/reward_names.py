"""Rewards by name: general ones, those of an environment, those of other packages, and their parameters."""

import importlib
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast, get_type_hints

from irgym.base.errors import IrgymError
from irgym.base.registry import Registry
from irgym.base.values import MismatchError, conform, parse_json
from irgym.core.environment import Environment
from irgym.core.reward import Reward, Shaped

T = TypeVar("T")

REWARDS: Registry[type[Any]] = Registry(
    kind="reward",
    group="irgym.rewards",
    builtin={
        "terminal": "irgym.core.reward:LogSpeedup",
        "dense": "irgym.core.reward:RelativeImprovement",
        "saving": "irgym.core.reward:Saving",
        "throughput": "irgym.core.reward:ThroughputGain",
        "log-speedup": "irgym.core.reward:LogSpeedup",
        "negative-cost": "irgym.core.reward:NegativeCost",
        "periodic": "irgym.core.reward:PeriodicImprovement",
        "shaped": "irgym.core.reward:Shaped",
    },
    fault="irgym.core.reward_names:class_fault",
)
"""Classes of the rewards that every environment has, by name."""

DEFAULT = "default"
"""Name of an environment's own default."""

WRAPPED = "reward"
"""Parameter that is a reward itself; in a text it comes last and takes the rest."""

FORM = "NAME[:parameter=value,...] or package.module:Class[:parameter=value,...]"


def reward_names(environment: Environment) -> list[str]:
    """Return the names of an environment's rewards: those that only it has, then the general ones."""
    return list(dict.fromkeys([DEFAULT, *environment.rewards, *REWARDS.names()]))


def reward_from(environment: Environment, reward: Any) -> Reward:
    """Return a reward that is given as such, as a text, or as None for the environment's default.

    Args:
        environment: Names that only it has go before the general ones.
        reward: An object, or a text such as `throughput:every=1`, `shaped:gamma=0.99,reward=dense` or
            `package.module:Class`.

    Raises:
        IrgymError: It is none of these, or a parameter makes no sense.
    """
    if reward is None:
        return environment.default_reward
    if isinstance(reward, str):
        return _read(environment, reward)
    fault = reward_fault(reward)
    if fault:
        known = ", ".join(reward_names(environment))
        raise IrgymError(f"{reward!r} is no reward ({fault}): give one, or the name of one: {known}")
    return cast(Reward, reward)


def reward_fault(reward: object) -> str:
    """Return in words how an object is no reward; empty where it is one."""
    if isinstance(reward, type) or not callable(reward):
        return "it is a class" if isinstance(reward, type) else "it cannot be called"
    missing = [name for name in ("every", "shaped") if not hasattr(reward, name)]
    if missing:
        return f"it has no attribute {' and no attribute '.join(missing)}"
    try:
        inspect.signature(reward).bind(None)
    except (TypeError, ValueError):
        return "it does not take one argument, the transition"
    return ""


def class_fault(part: object) -> str:
    """Return in words how another package's class of rewards is wrong; empty where it is right."""
    return "" if callable(part) else "is no class of rewards"


def reward_text(reward: Reward | str) -> str:
    """Return a text that tells rewards apart, for the description of a run.

    That of a dataclass is read back by `reward_from`, where its parameters are plain values.
    """
    if isinstance(reward, str):
        return reward
    kind = type(reward)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if not is_dataclass(reward):
        values: Mapping[str, Any] = getattr(reward, "__dict__", {})
    else:
        values = {field.name: getattr(reward, field.name) for field in _parameters(kind)}
        values = {
            field: value
            for field, value in values.items()
            if field == WRAPPED or value != _default(kind, field)
        }
    plain = [f"{field}={_plain(value)}" for field, value in values.items() if field != WRAPPED]
    if WRAPPED in values:
        plain.append(f"{WRAPPED}={reward_text(values[WRAPPED])}")
    return ":".join([name, ",".join(plain)]) if plain else name


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _read(environment: Environment, text: str) -> Reward:
    """Return the reward that a text names.

    Raises:
        IrgymError: There is none, or a parameter makes no sense.
    """
    name, _, rest = text.partition(":")
    own = {DEFAULT: environment.default_reward, **environment.rewards}
    if name in own:
        return _with(text, own[name], _parameters_of(environment, text, rest))
    if name in REWARDS:
        kind = REWARDS.load(name)
    else:
        place, _, values = rest.partition(":")
        if not re.fullmatch(r"[A-Za-z_]\w*", place):
            known = ", ".join(reward_names(environment))
            raise IrgymError(
                f"{environment.name} has no reward {text!r}: choose among {known}, or write {FORM}"
            )
        kind, rest = _imported(name, place), values
    parameters = _parameters_of(environment, text, rest)
    if kind is Shaped:
        parameters.setdefault(WRAPPED, environment.default_reward)
    made = _made(text, kind, parameters)
    fault = reward_fault(made)
    if fault:
        raise IrgymError(f"{text} makes no reward ({fault}): see the rewards in irgym.core.reward")
    return made


def _imported(module: str, name: str) -> Any:
    """Import a class; modules in the current folder are found too.

    Raises:
        IrgymError: There is no such module or class, or the module fails.
    """
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        needed = error.name or module
        if f"{module}.".startswith(f"{needed}."):
            raise IrgymError(
                f"there is no reward {module}:{name}, since there is no module {needed}: write {FORM}"
            ) from error
        raise IrgymError(f"the reward {module}:{name} needs {needed}: install it") from error
    except Exception as error:
        raise IrgymError(
            f"the reward {module}:{name} cannot be imported ({type(error).__name__}: {error}): mend it"
        ) from error
    finally:
        sys.path.remove("")
    if not callable(found):
        raise IrgymError(f"{module} has no class {name}: name a class of rewards")
    return found


def _parameters_of(environment: Environment, text: str, rest: str) -> dict[str, Any]:
    """Return the parameters that follow a name: texts, but for a reward, which is read.

    Raises:
        IrgymError: A part is no parameter=value, or is given twice.
    """
    plain, found, wrapped = re.match(r"(?s)(.*?)(?:(?:^|,)(reward)=(.*))?$", rest).groups()  # pyright: ignore[reportOptionalMemberAccess]
    given: dict[str, Any] = {}
    for word in filter(None, plain.split(",")):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise IrgymError(f"{word!r} is no parameter of the reward {text}: write {FORM}")
        if name in given:
            raise IrgymError(f"the parameter {name} of the reward {text} is given twice: give it once")
        given[name] = value
    if found:
        given[WRAPPED] = _read(environment, wrapped)
    return given


def _with(text: str, reward: Reward, parameters: Mapping[str, Any]) -> Reward:
    """Return a reward of an environment with other parameters."""
    if not parameters:
        return reward
    if not is_dataclass(reward):
        raise IrgymError(f"the reward {text.partition(':')[0]} has no parameters: leave them out")
    return replace(cast(Any, reward), **_values(text, type(reward), parameters))


def _made(text: str, kind: Any, parameters: Mapping[str, Any]) -> Reward:
    """Return a reward of a class.

    Raises:
        IrgymError: The class does not take the parameters.
    """
    try:
        return kind(**_values(text, kind, parameters))
    except (TypeError, ValueError) as error:
        raise IrgymError(f"the reward {text} cannot be made ({error}): give other parameters") from error


def _values(text: str, kind: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters: those of a dataclass by the types of its fields, others by their form.

    Raises:
        IrgymError: There is no such parameter, or the value has another type or lies out of range.
    """
    if not is_dataclass(kind):
        return {name: _value(text) if isinstance(text, str) else text for name, text in parameters.items()}
    known = [field.name for field in _parameters(kind)]
    hints = get_type_hints(kind, include_extras=True)
    values: dict[str, Any] = {}
    for name, given in parameters.items():
        if name not in known:
            choice = f"choose among {', '.join(known)}" if known else "it has none"
            raise IrgymError(f"the reward {text} has no parameter {name!r}: {choice}")
        value = given if not isinstance(given, str) or hints[name] is str else _value(given)
        try:
            values[name] = conform(hints[name], value)
        except MismatchError as error:
            raise IrgymError(f"the parameter {name} of the reward {text} must be {error.wanted}") from None
    return values


def _value(text: str) -> Any:
    """Return the number or truth value that a text stands for, else the text itself."""
    try:
        return parse_json(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text


def _parameters(kind: Any) -> "Sequence[Field[Any]]":
    """Return the fields of a dataclass that its constructor takes."""
    return [field for field in fields(kind) if field.init]


def _default(kind: Any, name: str) -> Any:
    """Return the default of a field; `MISSING` where it has none."""
    field = next(field for field in fields(kind) if field.name == name)
    return field.default if field.default_factory is MISSING else field.default_factory()
