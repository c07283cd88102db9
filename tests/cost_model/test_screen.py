"""Screens on a toy: what they measure, what they predict, what they learn from."""

import math
from dataclasses import replace

import dials
import numpy as np
import pytest
import told
from told import Told, measured

from irgym.base.errors import IrgymError
from irgym.core.cost import CostHistory
from irgym.cost_model.recorded import recorded_samples
from irgym.cost_model.screen import Screen

TASKS = [Told(code) for code in dials.CODES[::6]]


def jobs(tasks, count, seed):
    """Return the jobs of random digits, and those of the original programs."""
    rng = np.random.default_rng(seed)
    drawn = [tasks[place] for place in rng.integers(len(tasks), size=count)]
    written = [task.job(task.initial()) for task in drawn]
    digits = rng.integers(-1, dials.DIGITS, size=(count, dials.DIALS)).tolist()
    return written + [task.job((tuple(own), 1, False, -1)) for task, own in zip(drawn, digits, strict=True)]


def cost(job):
    return dials.cost(*job.call.arguments).cost


def identity(job):
    return job.program, job.schedule


def test_it_measures_its_share_and_predicts_the_rest_well(tmp_path):
    evaluator, farm = measured(tmp_path)
    screen = Screen(evaluator, TASKS, 0.25, seed=0)
    assert isinstance(evaluator, CostHistory)
    assert not any(answer.predicted for answer in screen.evaluate(jobs(TASKS, 80, 0)))
    for batch in range(1, 5):
        asked = jobs(TASKS, 60, batch)
        recalled = evaluator.recall(asked)
        new = {identity(job) for job, known in zip(asked, recalled, strict=True) if known is None}
        new -= {identity(task.job(task.initial())) for task in TASKS}
        farm.calls.clear()
        answers = screen.evaluate(asked)
        predicted = {identity(job) for job, answer in zip(asked, answers, strict=True) if answer.predicted}
        assert predicted < new and len(predicted) == len(new) - math.ceil(0.25 * len(new))
        calls = {(job.program, job.schedule): job.call for job in asked}
        assert not {repr(calls[pair]) for pair in predicted} & set(map(repr, farm.calls))
        for job, answer in zip(asked, answers, strict=True):
            assert answer.cost == cost(job) if not answer.predicted else answer.cost > 0.0
    errors = [abs(math.log(answer.cost / cost(job))) for job, answer in zip(asked, answers, strict=True)]
    assert screen.quality is not None and screen.quality.error < 0.2
    assert np.mean(errors) < 0.2


def test_each_answer_tells_whether_it_was_measured_now(tmp_path):
    evaluator, farm = measured(tmp_path)
    screen = Screen(evaluator, TASKS, 0.5, seed=0)
    for batch in range(4):
        farm.calls.clear()
        asked = jobs(TASKS, 40, batch)
        told = {identity(job): answer for job, answer in zip(asked, screen.evaluate(asked), strict=True)}
        assert sum(not answer.cached and not answer.predicted for answer in told.values()) == len(farm.calls)


def test_it_measures_what_is_best(tmp_path):
    screen = Screen(measured(tmp_path)[0], TASKS, 0.3, seed=0)
    screen.evaluate(jobs(TASKS, 150, 0))
    asked = jobs(TASKS[:1], 100, 1)[100:]
    answers = screen.evaluate(asked)
    seen = {
        identity(job): cost(job) for job, answer in zip(asked, answers, strict=True) if not answer.predicted
    }
    unseen = {
        identity(job): cost(job) for job, answer in zip(asked, answers, strict=True) if answer.predicted
    }
    assert min(seen.values()) < min(unseen.values())
    assert np.mean(list(seen.values())) < np.mean(list(unseen.values()))


def test_it_measures_its_share_of_each_family(tmp_path):
    screen = Screen(measured(tmp_path)[0], TASKS, 0.3, seed=0, families={TASKS[0].uri: "first"})
    screen.evaluate(jobs(TASKS, 150, 0))
    asked = jobs(TASKS[:1], 10, 1)[10:] + jobs(TASKS[1:], 90, 2)[90:]
    answers = {identity(job): answer for job, answer in zip(asked, screen.evaluate(asked), strict=True)}
    for own in (True, False):
        new = [
            answer
            for (uri, _), answer in answers.items()
            if (uri == TASKS[0].uri) == own and not answer.cached
        ]
        assert len(new) > 3
        assert sum(not answer.predicted for answer in new) == math.ceil(0.3 * len(new))


def test_no_prediction_is_recorded_and_what_is_recorded_is_not_predicted(tmp_path):
    evaluator, _ = measured(tmp_path)
    screen = Screen(evaluator, TASKS, 0.5, seed=0)
    for batch in range(3):
        asked = jobs(TASKS, 60, batch)
        answers = screen.evaluate(asked)
        for job, answer, known in zip(asked, answers, evaluator.recall(asked), strict=True):
            assert (known is None) == answer.predicted
            assert known is None or known.cost == cost(job)
    everything = jobs(TASKS, 100, 9)
    evaluator.evaluate(everything)
    assert not any(answer.predicted for answer in screen.evaluate(everything))


def test_it_learns_from_what_was_recorded(tmp_path):
    evaluator, _ = measured(tmp_path)
    evaluator.evaluate(jobs(TASKS, 300, 0))
    screen = Screen(evaluator, TASKS, 0.5, seed=0)
    answers = screen.evaluate(jobs(TASKS, 60, 1))
    assert any(answer.predicted for answer in answers)
    assert screen.quality is not None and screen.quality.error < 0.2


def test_records_of_other_toolchains_targets_and_programs_are_left_out(tmp_path):
    evaluator, _ = measured(tmp_path)
    both = jobs(TASKS[:1], 25, 0) + jobs(TASKS[1:2], 25, 4)
    evaluator.evaluate(both[:50])
    written = {identity(task.job(task.initial())) for task in TASKS}
    known = [job for job in both if identity(job) not in written]
    count = len({identity(job) for job in known})
    evaluator.evaluate([replace(job, toolchain="another") for job in jobs(TASKS[:2], 50, 1)])
    evaluator.evaluate([replace(job, target="another") for job in jobs(TASKS[:2], 50, 5)])
    evaluator.evaluate([replace(job, objective="another") for job in jobs(TASKS[:2], 50, 2)])
    evaluator.evaluate(jobs(TASKS[2:3], 20, 3)[20:])  # never the original programs
    evaluator.evaluate(both[50:])
    tasks = {task.uri: task for task in TASKS}
    samples = recorded_samples(evaluator, TASKS[0], tasks.get)
    assert samples.cost_features.shape == (count, 9)
    firsts = {task.uri: cost(task.job(task.initial())) for task in TASKS}
    expected = sorted({identity(job): math.log(cost(job) / firsts[job.program]) for job in known}.values())
    np.testing.assert_allclose(sorted(samples.targets), expected)
    assert not len(recorded_samples(evaluator, TASKS[0], lambda uri: None).targets)


def test_a_screen_continues_exactly():
    batches = [jobs(TASKS, 50, seed) for seed in range(6)]
    whole, first, second = (Screen(dials.Inline(), TASKS, 0.4, seed=3) for _ in range(3))
    expected = [whole.evaluate(batch) for batch in batches]
    assert expected[:3] == [first.evaluate(batch) for batch in batches[:3]]
    second.load_state_dict(first.state_dict())
    assert expected[3:] == [second.evaluate(batch) for batch in batches[3:]]
    assert any(answer.predicted for batch in expected[3:] for answer in batch)


def test_tasks_that_cannot_be_screened_are_refused():
    class Silent(Told):
        def recorded(self, schedule):
            return None

    for tasks, share, words in (
        (TASKS, 0.0, "choose more than 0"),
        (TASKS, 1.5, "at most 1"),
        ([dials.Dials((0, 0, 0))], 0.5, "has no cost features"),
        ([Silent((0, 0, 0))], 0.5, "needs programs that can be read back"),
    ):
        with pytest.raises(IrgymError, match=words):
            Screen(dials.Inline(), tasks, share, seed=0)


def test_programs_of_others_are_measured():
    screen = Screen(dials.Inline(), TASKS, 0.2, seed=0)
    screen.evaluate(jobs(TASKS, 80, 0))
    others = [told.Told(code) for code in dials.CODES[1::6]]
    assert not any(answer.predicted for answer in screen.evaluate(jobs(others, 40, 1)))
