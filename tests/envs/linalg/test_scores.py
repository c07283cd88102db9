"""Interchanges as scores of all loops: the orders that they stand for, masks, sketches, and a training."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from irgym.cli.main import main
from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import actions
from irgym.envs.linalg.environment import LINALG, LINALG_SCORES
from irgym.policies.files import read_arrays
from irgym.policies.run_folder import RunFolder

URI = "linalg://matmul/12x10x7"


def order_of(*scores: int) -> Action:
    return Action(actions.INTERCHANGE, (*scores, *[0] * (actions.LOOPS - len(scores))))


def test_scores_stand_for_the_orders_that_level_pointers_write():
    task, pointed = LINALG_SCORES.task(URI), LINALG.task(URI)
    for scores in [*itertools.permutations(range(3)), (5, 5, 2), (0, 0, 1), (11, 4, 4)]:
        state = pointed.initial()
        for loop in sorted(range(3), key=lambda loop: (scores[loop], loop))[:-1]:
            state = pointed.step(state, pointed.space.parse(f"interchange_{loop}"))
        scored = task.step(task.initial(), order_of(*scores))
        assert task.key(scored) == pointed.key(state) and task.job(scored) == pointed.job(state)
        assert scored.barred == state.barred == {actions.INTERCHANGE}


def test_every_order_of_the_most_loops_has_scores():
    rng = np.random.default_rng(0)
    for loops in (2, 5, actions.LOOPS):
        order = rng.permutation(loops)
        scores = (*map(int, np.argsort(order)), *[0] * (actions.LOOPS - loops))
        assert actions.Scores().place((), scores, loops) == tuple(order)


def test_only_loops_of_the_operation_are_scored():
    task = LINALG_SCORES.task(URI)
    slots = task.space.choices(task.mask(task.initial()), actions.INTERCHANGE)
    assert [len(choices) for choices in slots] == [actions.LOOPS] * 3 + [1] * (actions.LOOPS - 3)
    assert task.space.text(order_of(2, 0, 1)) == "order_2_0_1"
    assert not task.mask(task.step(task.initial(), order_of(2, 0, 1))).kinds[actions.INTERCHANGE]


def test_sketches_and_random_schedules_replay():
    task, rng = LINALG_SCORES.task("linalg://conv2d/1x8x10x10x16x3x3"), np.random.default_rng(0)
    texts = [Schedule(tuple(task.sketch(rng))).text(task.space) for _ in range(30)]
    assert any("order_" in text for text in texts)
    for text in texts:
        assert replay(task, Schedule.parse(text, task.space)).turn <= len(task.order)


def test_a_policy_of_scores_trains(tmp_path: Path):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    main(["train", "linalg-scores", "--run", str(run), "--dataset", f"linalg-scores:{URI[7:]}",
          "--iterations", "1", "--set", "episodes=2", "epochs=1", "hidden=8,8"])  # fmt: skip
    names = [kind[0] for kind in read_arrays(RunFolder(run).policy)["space"]]
    assert names[actions.INTERCHANGE] == "order"
