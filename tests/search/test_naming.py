"""Searches by name, with options, and the names of strategies."""

from dataclasses import dataclass

import pytest

from irgym.base.errors import IrgymError
from irgym.search import SEARCHES
from irgym.search.naming import search_named
from irgym.search.request import Budget, SearchRequest
from irgym.search.run import run_search
from irgym.search.strategies.beam import Beam
from irgym.search.strategies.evolutionary import Evolutionary
from irgym.search.strategies.greedy import Greedy
from irgym.search.strategies.mcts import MonteCarloTreeSearch
from irgym.search.strategies.screened import Screened


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("beam", Beam()),
        ("beam:width=2", Beam(width=2)),
        ("beam:width=2,order=breadth", Beam(2, "breadth")),
        ("beam-bfs:width=2", Beam(2, "breadth")),
        ("greedy:lookahead=3", Greedy(3)),
        ("greedy2", Greedy(2)),
        ("screened:proposals=4,population=16", Screened(Evolutionary(population=16), proposals=4)),
    ],
)
def test_a_text_names_a_search_with_options(text: str, strategy: object):
    named = search_named(text)
    assert named.strategy == strategy and named.name == text and not named.policy


@pytest.mark.parametrize(
    "text", ["beam", "beam:width=2,order=breadth", "greedy:lookahead=3", "taso:alpha=1.0"]
)
def test_a_strategy_is_named_as_its_text(text: str):
    assert search_named(search_named(text).strategy).name == text


def test_strategies_of_others_are_named_after_their_class():
    @dataclass(frozen=True)
    class Mine:
        steps: int
        rate: float = 0.5

        def run(self, session: object, rng: object) -> None: ...

    class Plain:
        def run(self, session: object, rng: object) -> None: ...

    assert search_named(Mine(3)).name == "Mine:steps=3,rate=0.5" and search_named(Plain()).name == "Plain"


def test_a_search_that_a_policy_leads_may_name_it():
    named = search_named("guided:runs/mine,rollouts=8")
    assert named.policy == "runs/mine" and getattr(named.strategy, "rollouts", 0) == 8
    named = search_named("mcts:runs/mine,rollout=2")
    assert named.policy == "runs/mine" and named.strategy == MonteCarloTreeSearch(rollout=2)
    assert not search_named("mcts").policy


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("bema", "no search 'bema': did you mean beam[?] choose among random"),
        ("beam:widht=2", "beam has no option 'widht': did you mean width[?] choose among width, order"),
        ("beam:width=0", "width of beam is '0': choose 1 to 1000000"),
        ("beam:2", "the search beam takes no policy, so 'beam:2' names none: write beam:width=... "),
        (
            "exhaustive:mine",
            "takes no policy, so 'exhaustive:mine' names none: write exhaustive, or guided:mine",
        ),
        ("exhaustive:width=2", "exhaustive takes no options: leave out width"),
        (Beam, "is no search: give the name of one, or a strategy"),
        (3, "3 is no search"),
    ],
)
def test_other_searches_are_refused(search: object, message: str):
    with pytest.raises(IrgymError, match=message):
        search_named(search)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", SEARCHES.builtin)
def test_options_of_every_search_are_checked(name: str):
    with pytest.raises(IrgymError, match=f"{name} (has no option|takes no options)"):
        search_named(f"{name}:nothing=1")


def test_a_wider_beam_sees_more(task, evaluator):
    request = SearchRequest(Budget(10_000), seed=0)
    found = [
        run_search(Beam(width, order), task, evaluator, request) for width in (1, 2) for order in ("depth",)
    ]
    assert found[0].evaluations < found[1].evaluations
