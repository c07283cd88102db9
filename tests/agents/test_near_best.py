import numpy as np
import pytest

from irgym.agents.archive.near_best import NearBest, choices_of, script_of

SHORT, LONG, OTHER = ((0, 1),), ((1, 0), (0, 1)), ((2, 0),)


@pytest.fixture
def near():
    return NearBest(2)


def best(near, program):
    return min(near.of(program), key=near.rank)


def test_the_shortest_of_those_that_are_about_as_good_comes_first(near):
    near.add(0, LONG, 100.0)
    near.add(0, SHORT, 104.0)
    assert best(near, 0) == SHORT


def test_scripts_worse_by_more_than_the_noise_are_dropped(near):
    near.add(0, SHORT, 100.0)
    near.add(0, OTHER, 106.0)
    assert set(near.of(0)) == {SHORT}
    near.add(0, LONG, 90.0)
    assert set(near.of(0)) == {LONG}


def test_scripts_for_more_programs_come_before_shorter_ones(near):
    for program in range(3):
        near.add(program, LONG, 100.0)
    near.add(0, SHORT, 99.0)
    assert best(near, 0) == LONG
    for program in (1, 2):
        near.add(program, SHORT, 90.0)
    assert best(near, 0) == SHORT, "for the others the long one is too slow by now"


def test_an_unknown_program_has_none(near):
    assert not near.of(3)


def test_it_goes_on_exactly_from_its_state(near):
    rng = np.random.default_rng(0)
    for _ in range(300):
        choices = rng.integers(0, 3, (int(rng.integers(1, 4)), 2))
        near.add(int(rng.integers(4)), script_of(choices), float(rng.uniform(100, 110)))
    again = NearBest(2)
    again.add(9, SHORT, 1.0)
    again.load_state_dict(near.state_dict())
    for program in range(10):
        assert list(again.of(program)) == list(near.of(program))
        assert [again.rank(script) for script in again.of(program)] == [
            near.rank(script) for script in near.of(program)
        ]


def test_choices_come_back():
    assert choices_of(LONG).tolist() == [[1, 0], [0, 1]]


def test_nothing_has_a_state_too(near):
    near.load_state_dict(NearBest(2).state_dict())
    assert not near.of(0)
