from collections import Counter

import numpy as np
import pytest

from irgym.agents.archive.niches import Niches
from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.policies.layout import StructuredLayout

LAYOUT = StructuredLayout(
    ActionSpace(
        (
            ActionKind("stop", ends="episode"),
            ActionKind("tile", ((2, 4, 8), (2, 4, 8))),
            ActionKind("pack"),
            ActionKind("split", ((2, 4, 8),)),
        )
    )
)
STOP, PACK = [0, 0, 0, 0], [2, 0, 0, 0]


def script(*actions):
    return np.array(actions, dtype=np.int64)


def tile(size):
    return [1, size, 0, 0]


def split(factor):
    return [3, 0, 0, factor]


@pytest.fixture
def niches():
    return Niches(["product", "product", "convolution"], LAYOUT)


def text(choices):
    return str(choices.tolist())


def drawn(niches, program, count=200):
    rng = np.random.default_rng(0)
    return Counter(text(niches.own(program, rng)) for _ in range(count))


def test_a_worse_episode_is_kept_in_another_niche(niches):
    fast, packed = script(tile(1), STOP), script(tile(0), PACK, STOP)
    niches.add(0, fast, 1.0)
    niches.add(0, script(tile(2), STOP), 0.9)
    niches.add(0, packed, 0.2)
    found = drawn(niches, 0)
    assert set(found) == {text(fast), text(packed)}
    assert found[text(fast)] > 2 * found[text(packed)] > 20, "good niches come up more often"


def test_an_episode_that_was_predicted_too_well_gives_way(niches):
    hopeful, better = script(tile(1), STOP), script(tile(2), STOP)
    niches.add(0, hopeful, 3.0)
    niches.add(0, better, 1.0)
    assert set(drawn(niches, 0)) == {text(hopeful)}
    niches.add(0, hopeful, 0.1)
    niches.add(0, better, 1.0)
    assert set(drawn(niches, 0)) == {text(better)}


def test_niches_differ_by_the_number_of_actions_of_a_kind(niches):
    scripts = [script(*[tile(0)] * count, STOP) for count in range(1, 5)]
    for choices in scripts:
        niches.add(0, choices, 1.0)
    niches.add(0, script(tile(0), tile(1), STOP), 0.5)
    assert set(drawn(niches, 0)) == set(map(text, scripts))


def test_niches_differ_by_an_actions_only_parameter(niches):
    scripts = [script(split(factor), split(0), STOP) for factor in range(3)]
    for choices in scripts:
        niches.add(0, choices, 1.0)
    niches.add(0, script(split(0), split(2), STOP), 0.5)
    assert set(drawn(niches, 0)) == set(map(text, scripts)), "in whatever order"


def test_often_the_best_of_those_with_few_actions_is_drawn(niches):
    scripts = [script(*[tile(0)] * length, STOP) for length in range(1, 40)]
    for choices in scripts:
        niches.add(0, choices, len(choices) / 10)
    found = drawn(niches, 0, 1000)
    assert found[text(scripts[2])] > 40, "the best of at most four actions"
    assert found[text(scripts[10])] > 40, "the best of at most twelve"
    assert found[text(scripts[-1])] > 40


def test_the_best_of_the_draws_in_a_niche_is_taken_from_others(niches):
    good, poor, packed = script(tile(1), STOP), script(tile(0), STOP), script(PACK, STOP)
    niches.add(0, good, 1.0)
    niches.add(1, poor, 0.5)
    niches.add(2, packed, 9.0)
    niches.add(2, script(STOP), 0.0)
    rng = np.random.default_rng(0)

    def found(kind):
        return Counter(text(niches.another(kind, 16, rng)) for _ in range(200))

    assert set(found("product")) == {text(good)}
    assert found("convolution")[text(packed)] > 120
    assert set(found(None)) == {text(good), text(packed), text(script(STOP))}


def test_niches_go_on_exactly_from_their_state(niches):
    rng = np.random.default_rng(1)
    for _ in range(200):
        steps = [tile(int(size)) if size < 3 else PACK for size in rng.integers(0, 4, rng.integers(1, 5))]
        niches.add(int(rng.integers(3)), script(*steps, STOP), float(rng.random()))
    again = Niches(["product", "product", "convolution"], LAYOUT)
    again.add(0, script(STOP), 5.0)
    again.load_state_dict(niches.state_dict())
    for kind in ("product", "convolution", None):
        rng, other = np.random.default_rng(2), np.random.default_rng(2)
        for _ in range(100):
            assert niches.another(kind, 4, rng).tolist() == again.another(kind, 4, other).tolist()
            assert niches.own(0, rng).tolist() == again.own(0, other).tolist()


def test_no_niches_have_a_state_too(niches):
    niches.load_state_dict(Niches(["product"], LAYOUT).state_dict())
    niches.add(0, script(STOP), 1.0)
    assert text(niches.own(0, np.random.default_rng(0))) == text(script(STOP))
