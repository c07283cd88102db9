"""Interchange as one of enumerated swaps: the same programs and states as `linalg`, other actions."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.cli.main import main
from irgym.core.actions import Action
from irgym.core.catalogue import environment_of
from irgym.core.cost import Measurement, Outcome
from irgym.core.reward import LogSpeedup
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import actions, runner
from irgym.envs.linalg.environment import LINALG, LINALG_SWAPS
from irgym.measure.timing import Timing
from irgym.search.policies import load_policy

PROGRAMS = (
    "linalg://matmul/16x32x8",
    "linalg://batch_matmul/2x8x16x4",
    "linalg://conv2d/1x4x10x10x8x3x3",
    "linalg://maxpool/1x8x8x8x2?stride=2",
    "linalg://layernorm/8x16",
    "linalg://sequence/2?length=5",
)
QUICK = Timing(budget_ns=1, fewest=1, most=1)


def only(mask: Any, kind: int) -> Any:
    """The mask restricted to one kind of actions."""
    kinds = np.zeros_like(mask.kinds)
    kinds[kind] = mask.kinds[kind]
    return type(mask)(kinds, mask.params)


def swaps(task: Any, state: Any) -> list[Action]:
    return task.space.legal(only(task.mask(state), actions.INTERCHANGE))


def test_the_actions_of_linalg_are_as_they_were():
    space = LINALG.space
    assert [(kind.name, len(kind.slots), kind.omitted) for kind in space.kinds] == [
        ("next", 0, None),
        ("tile", 12, 0),
        ("tile-parallel", 12, 0),
        ("fuse", 12, 0),
        ("interchange", 1, None),
        ("img2col", 0, None),
        ("vectorise", 1, None),
        ("pack", 1, None),
    ]
    assert space.kinds[actions.INTERCHANGE].slots == (tuple(range(12)),)
    others = [place for place in range(len(space.kinds)) if place != actions.INTERCHANGE]
    assert [space.kinds[place] for place in others] == [LINALG_SWAPS.space.kinds[place] for place in others]


def test_as_many_candidates_as_the_paper_has():
    for loops in range(3, actions.LOOPS + 1):
        assert sum(actions.Swaps().choices((), loops)[0]) == 3 * loops - 6
    assert sum(actions.Swaps().choices((), 2)[0]) == 1


@pytest.mark.parametrize("uri", PROGRAMS)
def test_exactly_the_pairs_of_the_loops_at_hand_may_be_swapped(uri: str):
    task = LINALG_SWAPS.task(uri)
    state = task.initial()
    while not task.terminal(state):
        loops = state.operations[task.at_hand(state)].operation.loops
        pairs = {f"swap_{i}-{j}" for i, j in itertools.combinations(range(loops), 2) if j - i <= 3}
        assert {task.space.text(action) for action in swaps(task, state)} == pairs
        state = task.step(state, Action(actions.NEXT))


@pytest.mark.parametrize("uri", PROGRAMS)
def test_a_swap_is_the_interchange_that_level_pointers_write(uri: str):
    task, pointed = LINALG_SWAPS.task(uri), LINALG.task(uri)
    first = task.initial()
    for action in swaps(task, first):
        swapped = task.step(first, action)
        outer, inner = map(int, task.space.text(action).removeprefix("swap_").split("-"))
        order = list(range(first.operations[task.at_hand(first)].operation.loops))
        order[outer], order[inner] = inner, outer
        state = pointed.initial()
        for loop in order[:-1]:
            state = pointed.step(state, pointed.space.parse(f"interchange_{loop}"))
        assert task.identity(swapped) == pointed.identity(state)
        assert task.job(swapped) == pointed.job(state)
        [again] = [swap for swap in swaps(task, swapped) if swap == action]
        assert task.step(swapped, again).operations[task.at_hand(first)].operation == (
            first.operations[task.at_hand(first)].operation
        )


@pytest.mark.parametrize("uri", PROGRAMS)
def test_allowed_actions_apply_and_replay(uri: str):
    task, rng = LINALG_SWAPS.task(uri), np.random.default_rng(0)
    swapped = 0
    for _ in range(2):
        state, taken = task.initial(), list[Action]()
        while not task.terminal(state):
            mask = task.mask(state)
            if mask.kinds[actions.INTERCHANGE] and rng.random() < 0.3:
                mask = only(mask, actions.INTERCHANGE)
            taken.append(task.space.sample(mask, rng))
            state = task.step(state, taken[-1])
        text = Schedule(tuple(taken)).text(task.space)
        assert replay(task, Schedule.parse(text, task.space)) == state
        result = runner.measure(task.text, task.script(state), task.target, QUICK)
        assert result.outcome is Outcome.OK, f"{text}: {result.detail}"
        swapped += text.count("swap_")
    assert swapped


def test_sketches_swap_and_have_steps_left_for_vectors():
    task, rng = LINALG_SWAPS.task("linalg://conv2d/1x8x10x10x16x3x3"), np.random.default_rng(0)
    sketches = [Schedule(tuple(task.sketch(rng))) for _ in range(60)]
    swapping = [sketch for sketch in sketches if "swap_" in sketch.text(task.space)]
    assert swapping and all(sketch.text(task.space).count("swap_") == 1 for sketch in swapping)
    ends = [replay(task, sketch).operations for sketch in swapping]
    assert sum(any(operation.vectorised for operation in operations) for operations in ends) > len(ends) / 2


def test_programs_data_sets_and_uris_are_those_of_linalg(capsys: pytest.CaptureFixture[str]):
    uri = PROGRAMS[0]
    alias = f"linalg-swaps:{uri.removeprefix('linalg:')}"
    assert environment_of(alias) is LINALG_SWAPS and environment_of(uri) is LINALG
    task = LINALG_SWAPS.task(alias)
    assert (
        task.uri == uri and task.space == LINALG_SWAPS.space == LINALG_SWAPS.task(uri).space != LINALG.space
    )
    assert LINALG_SWAPS.family(alias) == LINALG.family(uri) == "matmul"
    for name in LINALG.dataset_names():
        assert LINALG_SWAPS.dataset(name) == LINALG.dataset(name)
    main(["envs"])
    main(["programs", "linalg-swaps", "--dataset", "tiny"])
    told = capsys.readouterr().out
    assert "linalg-swaps" in told and all(uri in told for uri in LINALG.dataset("tiny").test)


class Constant:
    """Every schedule costs the same."""

    def evaluate(self, jobs: Any) -> list[Measurement]:
        return [Measurement(Outcome.OK, (1.0,)) for _ in jobs]


def test_a_policy_serves_its_own_variant_only(tmp_path: Path):
    variants = (LINALG, LINALG_SWAPS)
    for number, variant in enumerate(variants):
        task, other = variant.task(PROGRAMS[0]), variants[1 - number]
        problem = Problem([task], Constant(), LogSpeedup())
        learner = PPOConfig(iterations=1, episodes=2, hidden=(8,)).build(problem)
        learner.iterate()
        file = tmp_path / f"{variant.name}.pt"
        learner.policy().save(file)
        state = task.initial()
        policy = load_policy(variant, str(file), task)
        [action] = policy.act([task.observe(state)], [task.mask(state)], None)
        assert task.space.allows(task.mask(state), action)
        with pytest.raises(IrgymError, match=r"other actions .* choose a policy trained on this environment"):
            load_policy(other, str(file), other.task(PROGRAMS[0]))
    assert LINALG_SWAPS.policies() == {}
