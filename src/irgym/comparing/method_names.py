"""The methods of a comparison by name, with their options."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from irgym.base.errors import IrgymError
from irgym.base.keywords import did_you_mean
from irgym.base.options import Word, with_options, word_of
from irgym.comparing.methods import AsWritten, BaselineMethod, Method, Pipelined, Searched
from irgym.comparing.policy_methods import RawPolicy, RolledOut
from irgym.comparing.rows import BASE, POLICY, RAW
from irgym.core.baseline import Baseline
from irgym.core.environment import DEFAULT, Environment
from irgym.policies.policy import Policy
from irgym.policies.sb3_files import PREFIX
from irgym.search import SEARCHES
from irgym.search.naming import NamedSearch, search_named
from irgym.search.strategy import Strategy, needs_policy

MethodName = str | Strategy
"""A method of a comparison: its text, or a strategy."""


def policy_of(method: Method) -> str:
    """Return the name of the policy that decides or leads in a method; empty where none does."""
    if isinstance(method, RolledOut | RawPolicy):
        return method.name.partition(":")[2]
    return method.led_by if isinstance(method, Searched) else ""


def with_raw(methods: Sequence[MethodName]) -> list[MethodName]:
    """Return distinct methods; `raw:NAME` comes after each `policy:NAME`.

    `sb3:FILE`, a model of Stable-Baselines3, is short for `policy:sb3:FILE`.
    """
    found: list[MethodName] = []
    for method in methods:
        if not isinstance(method, str):
            found.append(method)
            continue
        text = f"{POLICY}:{method}" if method.startswith(PREFIX) else method
        kind, colon, policy = text.partition(":")
        found += [text, f"{RAW}:{policy}"] if kind == POLICY and colon else [text]
    return [method for place, method in enumerate(found) if method not in found[:place]]


def parse_method(
    method: MethodName, environment: Environment, load_policy: Callable[[str], Policy]
) -> Method:
    """Return the method that a text names.

    Args:
        method: `base`, a default schedule or a baseline of the environment, a search, `policy:NAME` (a policy
            without search), `raw:NAME` (the same, even where that is worse than the original program) or
            `SEARCH:NAME` (a search led by a policy), NAME being a policy that ships or a run folder. Options
            of a search or a baseline follow, as in `beam:width=2,order=breadth` and `guided:NAME,rollouts=8`.
            A strategy that needs a policy is led by the default one.
        environment: Where the programs come from.
        load_policy: Returns the policy of a name.

    Raises:
        IrgymError: There is no such method, option or policy.
    """
    if not isinstance(method, str):
        named = search_named(method)
        return _searched(named, DEFAULT if needs_policy(named.strategy) else "", load_policy)
    if method == BASE:
        return AsWritten()
    if method in [pipeline.name for pipeline in environment.pipelines]:
        return Pipelined(method)
    name, colon, policy = method.partition(":")
    if name in (POLICY, RAW) and colon:
        if not policy:
            raise IrgymError(_no_name(method))
        raw = RawPolicy(f"{RAW}:{policy}", load_policy(policy))
        return raw if name == RAW else RolledOut(method, raw)
    baselines = {baseline.name: baseline for baseline in environment.baselines}
    if name in baselines:
        return _baseline(word_of(method), baselines[name])
    if name not in SEARCHES:
        raise IrgymError(_unknown(method, environment))
    if colon and not policy:
        raise IrgymError(_no_name(method))
    named = search_named(method)
    if needs_policy(named.strategy) and not named.policy:
        options = method.partition(":")[2]
        raise IrgymError(
            f"{method!r} needs a policy: write {name}:NAME{',' if options else ''}{options} with a policy "
            "that ships, or a run folder"
        )
    return _searched(named, named.policy, load_policy)


def _searched(named: NamedSearch, policy: str, load_policy: Callable[[str], Policy]) -> Searched:
    return Searched(named.name, named.strategy, load_policy(policy) if policy else None, policy)


def _baseline(word: Word, baseline: Baseline) -> BaselineMethod:
    if word.argument:
        raise IrgymError(f"{word.argument!r} in {word.text!r} is no option: write name=value")
    if word.options:
        baseline = replace(baseline, options=with_options(baseline.options, word.options, word.name))
    return BaselineMethod(word.text, baseline)


def _no_name(method: str) -> str:
    return f"{method!r} names no policy: write {method}NAME with a policy that ships, or a run folder"


def _unknown(method: str, environment: Environment) -> str:
    """Return in words that there is no such method, and which there are."""
    pipelines = [pipeline.name for pipeline in environment.pipelines]
    baselines = [baseline.name for baseline in environment.baselines]
    named = [*(f"{kind}:NAME" for kind in (POLICY, RAW, "guided")), f"{PREFIX}FILE"]
    known = [BASE, *pipelines, *SEARCHES.names(), *named, *baselines]
    return f"there is no method {method!r}: {did_you_mean([method], known)}choose among {', '.join(known)}"
