"""Searches by name, with options: `greedy`, `beam:width=2,order=breadth`; and the names of strategies."""

from dataclasses import dataclass, is_dataclass
from typing import Any, cast

from irgym.base.errors import IrgymError
from irgym.base.options import Word, options_of, options_text, with_options, word_of
from irgym.search import SEARCHES
from irgym.search.strategy import Strategy, takes_policy


@dataclass(frozen=True)
class NamedSearch:
    """A search.

    Attributes:
        name: Its name in results, with its options.
        strategy: The strategy.
        policy: Name of the policy that is to lead it; empty where none is named.
    """

    name: str
    strategy: Strategy
    policy: str = ""


def search_named(search: str | Strategy) -> NamedSearch:
    """Return a search that is given by its name, or as a strategy.

    Args:
        search: A strategy, or a text of the form `SEARCH`, `SEARCH:OPTION=VALUE,...` or
            `SEARCH:POLICY,OPTION=VALUE,...`.

    Raises:
        IrgymError: There is no such search or option, a value does not suit its option, a policy is named
            although the search takes none, or something else is given.
    """
    if not isinstance(search, str):
        return NamedSearch(_name(search), search)
    word = word_of(search)
    default = SEARCHES.load(word.name)()
    if word.argument and not takes_policy(default):
        raise IrgymError(_no_policy(word, default))
    return NamedSearch(word.text, with_options(default, word.options, word.name), word.argument)


def _no_policy(word: Word, strategy: Strategy) -> str:
    """Return in words that a search takes no policy, and what to write in its place."""
    options = options_of(strategy)
    own = f"{word.name}:{options[0]}=... (its options are {', '.join(options)})" if options else word.name
    return (
        f"the search {word.name} takes no policy, so {word.text!r} names none: write {own}, or "
        f"guided:{word.argument} for a search that a policy leads"
    )


def _name(strategy: Any) -> str:
    """Return the registered name of a strategy, or else its class's, with the options that are no defaults.

    Raises:
        IrgymError: It is no strategy.
    """
    kind = cast(type[Any], type(strategy))
    if isinstance(strategy, type) or not callable(getattr(strategy, "run", None)):
        raise IrgymError(
            f"{strategy!r} is no search: give the name of one, or a strategy such as Beam(width=2)"
        )
    place = f"{kind.__module__}:{kind.__qualname__}"
    name = next((name for name, own in SEARCHES.builtin.items() if own == place), kind.__name__)
    if not is_dataclass(strategy):
        return name
    try:
        default = kind()
    except TypeError:  # it has parameters without a default
        default = None
    options = options_text(strategy, default)
    return f"{name}:{options}" if options else name
