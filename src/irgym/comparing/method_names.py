"""The methods of a comparison by name."""

from collections.abc import Callable, Sequence

from irgym.base.errors import IrgymError
from irgym.comparing.methods import AsWritten, BaselineMethod, Method, Pipelined, Searched
from irgym.comparing.policy_methods import RawPolicy, RolledOut
from irgym.comparing.rows import BASE, POLICY, RAW
from irgym.core.environment import Environment
from irgym.policies.policy import Policy
from irgym.policies.sb3_files import PREFIX
from irgym.search import SEARCHES
from irgym.search.strategy import needs_policy


def policy_of(method: Method) -> str:
    """Return the name of the policy that decides or leads in a method; empty where none does."""
    led = isinstance(method, RolledOut | RawPolicy) or (
        isinstance(method, Searched) and method.policy is not None
    )
    return method.name.partition(":")[2] if led else ""


def with_raw(methods: Sequence[str]) -> list[str]:
    """Return the texts of distinct methods; `raw:NAME` comes after each `policy:NAME`.

    `sb3:FILE`, a model of Stable-Baselines3, is short for `policy:sb3:FILE`.
    """
    found: list[str] = []
    for method in methods:
        text = f"{POLICY}:{method}" if method.startswith(PREFIX) else method
        kind, colon, policy = text.partition(":")
        found += [text, f"{RAW}:{policy}"] if kind == POLICY and colon else [text]
    return list(dict.fromkeys(found))


def parse_method(text: str, environment: Environment, load_policy: Callable[[str], Policy]) -> Method:
    """Return the method that a text names.

    Args:
        text: `base`, a default schedule or a baseline of the environment, a search, `policy:NAME` (a policy
            without search), `raw:NAME` (the same, even where that is worse than the original program) or
            `SEARCH:NAME` (a search led by a policy), NAME being a policy that ships or a run folder.
        environment: Where the programs come from.
        load_policy: Returns the policy of a name.

    Raises:
        IrgymError: There is no such method or policy.
    """
    name, colon, policy = text.partition(":")
    baselines = [baseline.name for baseline in environment.baselines]
    pipelines = [pipeline.name for pipeline in environment.pipelines]
    if text == BASE:
        return AsWritten()
    if text in pipelines:
        return Pipelined(text)
    if text in baselines:
        return BaselineMethod(text)
    if colon and not policy:
        raise IrgymError(
            f"{text!r} names no policy: write {text}NAME with a policy that ships, or a run folder"
        )
    if name in (POLICY, RAW) and colon:
        raw = RawPolicy(f"{RAW}:{policy}", load_policy(policy))
        return raw if name == RAW else RolledOut(text, raw)
    if name not in SEARCHES:
        named = ("policy:NAME", "raw:NAME", "guided:NAME", "sb3:FILE")
        known = [BASE, *pipelines, *SEARCHES.names(), *named, *baselines]
        raise IrgymError(f"there is no method {text!r}: choose among {', '.join(known)}")
    strategy = SEARCHES.load(name)()
    if needs_policy(strategy) and not colon:
        raise IrgymError(
            f"{text!r} needs a policy: write {text}:NAME with a policy that ships, or a run folder"
        )
    if colon and not needs_policy(strategy):
        raise IrgymError(f"the search {name} takes no policy: write {name}, or guided:{policy}")
    return Searched(text, strategy, load_policy(policy) if colon else None)
