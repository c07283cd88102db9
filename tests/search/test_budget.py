"""A budget that several searches share."""

from irgym.search.budget import LEAST_S, Budget, SharedBudget


def test_each_search_gets_an_equal_share_of_what_is_left():
    left = SharedBudget(Budget(evaluations=100, seconds=8.0), 4)
    assert left.share() == Budget(25, 2.0)
    left.spend(10, 0.5)
    assert left.share() == Budget(30, 2.5)
    left.spend()
    assert left.share() == Budget(45, 3.75)


def test_a_search_that_comes_too_late_gets_the_least():
    left = SharedBudget(Budget(evaluations=3, seconds=1.0), 2)
    left.spend(3, 2.0)
    assert left.share() == Budget(1, LEAST_S)


def test_a_missing_limit_stays_missing():
    assert SharedBudget(Budget(seconds=4.0), 2).share() == Budget(None, 2.0)
    assert SharedBudget(Budget(evaluations=4), 2).share() == Budget(2, None)
