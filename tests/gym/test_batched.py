"""Episodes side by side, on the toy of pass ordering."""

import passes
import pytest

from irgym.core.reward import RelativeImprovement, Saving
from irgym.core.schedule import Schedule
from irgym.gym.batched import Batched, Course


@pytest.mark.parametrize("objective", ["ops", "time"])
def test_an_episode_that_is_the_pipeline_has_the_return_1(objective: str) -> None:
    tasks = [passes.PASSES.task(uri, objective=objective) for uri in passes.URIS]
    bench, fourth = passes.PassBench(), passes.URIS[3]
    batched = Batched(Course(tasks, [], bench, Saving("core"), lambda task: None), len(tasks))
    for place, task in enumerate(tasks):
        batched.begin([place], task)
    returns = sum(
        batched.step(range(len(tasks)), [action] * len(tasks))[0]
        for action in Schedule.parse("fold0 fold1 fold2 fold3", passes.SPACE).actions
    )
    assert returns == pytest.approx([1.0, 1.0, 1.0, 0.0]), f"the pipeline saves nothing of {fourth}"
    asked = len(bench.measured) + len(bench.calls)
    batched.begin(range(len(tasks)), tasks[0])
    assert len(bench.measured) + len(bench.calls) == asked, "nothing is measured twice"


def test_other_rewards_need_no_pipeline() -> None:
    task = passes.PASSES.task(passes.URIS[0])
    batched = Batched(Course([task], [], passes.PassBench(), RelativeImprovement(), lambda task: None), 1)
    batched.begin([0])
    assert task.steps == 0 and batched.episode(0).reference is None
