"""Extraction: shared choices cost once, and there are no circles."""

import pytest

from irgym.envs.graph.eqsat.extraction import Choice, extract


def way(cost: float, needs: str = "") -> Choice:
    return Choice(cost, frozenset(needs), None)


def test_a_value_that_several_operators_need_costs_once():
    choices = {"r": [way(0, "pq")], "p": [way(3), way(1, "s")], "q": [way(3), way(1, "s")], "s": [way(3)]}
    found = extract(choices, ["r"], 10)
    assert found.optimal and found.cost == 5, "by trees, p and q alone would cost less"
    first, *_, last = found.chosen
    assert (first, last) == ("s", "r")


def test_nothing_needs_itself():
    choices = {"a": [way(0, "b"), way(5)], "b": [way(0, "c"), way(4)], "c": [way(0, "a"), way(6)]}
    found = extract(choices, ["a", "c"], 10)
    assert found.optimal and found.cost == 4
    assert list(found.chosen) == ["b", "a", "c"]


def test_values_that_only_circles_make_are_not_chosen():
    choices = {"r": [way(0, "a"), way(9)], "a": [way(0, "b")], "b": [way(0, "a")]}
    assert extract(choices, ["r"], 10).cost == 9
    with pytest.raises(ValueError, match="nothing makes a"):
        extract(choices, ["a"], 10)


def test_without_time_the_result_is_not_called_the_cheapest():
    choices = {"r": [way(0, "pq")], "p": [way(3), way(1, "s")], "q": [way(3), way(1, "s")], "s": [way(3)]}
    found = extract(choices, ["r"], 0.0)
    assert not found.optimal and found.cost == 6 and "found nothing in 0 s" in found.how


def test_the_greedy_method_takes_the_cheapest_trees():
    choices = {"r": [way(0, "pq")], "p": [way(3), way(1, "s")], "q": [way(3), way(1, "s")], "s": [way(3)]}
    found = extract(choices, ["r"], 10, "greedy")
    assert not found.optimal and found.cost == 6 and found.how == "each value by its cheapest tree"
