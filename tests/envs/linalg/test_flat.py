"""Actions that can be listed: the same programs and states as `linalg`, a loop and a size for each tiling."""

from pathlib import Path

import numpy as np
import pytest

from irgym.cli.main import main
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import actions
from irgym.envs.linalg.environment import LINALG, LINALG_FLAT
from irgym.policies.files import read_arrays
from irgym.policies.run_folder import RunFolder

URI = "linalg://matmul/12x10x7"


def test_an_action_tiles_one_loop():
    task, whole = LINALG_FLAT.task(URI), LINALG.task(URI)
    for kind in ("tile", "tile-parallel"):
        for loop, size in ((0, 4), (0, 6), (1, 5)):
            ours = task.step(task.initial(), task.space.parse(f"{kind}_{loop}-{size}"))
            theirs = whole.step(
                whole.initial(), whole.space.parse("_".join([kind, *["0"] * loop, str(size)]))
            )
            assert task.key(ours) == whole.key(theirs) and task.job(ours) == whole.job(theirs)


def test_the_mask_allows_what_tiles_each_loop_alone():
    task, whole = LINALG_FLAT.task(URI), LINALG.task(URI)
    begin = whole.space.slot_offsets
    wanted = {
        f"{whole.space.kinds[kind].name}_{loop}-{size}"
        for kind in (actions.TILE, actions.TILE_PARALLEL)
        for loop in range(actions.LOOPS)
        for place, size in enumerate(actions.SIZES)
        if size and whole.mask(whole.initial()).params[begin[kind][loop] + place]
    }
    listed = {task.space.text(action) for action in task.space.legal(task.mask(task.initial()))}
    assert wanted and wanted == {text for text in listed if text.startswith("tile")}


def test_a_loop_of_one_iteration_is_not_tiled():
    task = LINALG_FLAT.task("linalg://relu/1x1")
    mask = task.mask(task.initial())
    assert not mask.kinds[[actions.TILE, actions.TILE_PARALLEL]].any() and mask.kinds[actions.NEXT]


def test_every_action_is_listed():
    assert LINALG_FLAT.space.size == len(LINALG_FLAT.space.flat) == 756


def test_sketches_tile_by_several_actions_and_replay():
    task, rng = LINALG_FLAT.task("linalg://conv2d/1x8x10x10x16x3x3"), np.random.default_rng(0)
    schedules = [Schedule(tuple(task.sketch(rng))) for _ in range(30)]
    assert any("vectorise" in schedule.text(task.space) for schedule in schedules)
    for schedule in schedules:
        text = schedule.text(task.space)
        assert replay(task, Schedule.parse(text, task.space)).turn <= len(task.order)


@pytest.mark.parametrize("learner", [("--set", "actions=flat", "episodes=2", "epochs=1", "hidden=8,8"),
                                     ("--agent", "dqn", "--set", "hidden=8,8")])  # fmt: skip
def test_a_flat_policy_trains(tmp_path: Path, learner: tuple[str, ...]):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    main(["train", "linalg-flat", "--run", str(run), "--dataset", f"linalg-flat:{URI[7:]}",
          "--iterations", "1", *learner])  # fmt: skip
    assert len(read_arrays(RunFolder(run).policy)["space"][actions.TILE][1][0]) == len(actions.TILED)
