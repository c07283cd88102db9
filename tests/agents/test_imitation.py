from dataclasses import replace
from itertools import product

import dials
import numpy as np
import ordering
import pytest
import torch

from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.evaluation import greedy_score
from irgym.agents.imitation.cloning import ImitationConfig, actor_for, clone, with_exchanged
from irgym.agents.imitation.demonstrations import Demonstration
from irgym.agents.imitation.expert_iteration import (
    Searches,
    choose_and_clone,
    expert_iteration,
    found,
    greedy_share,
    rotated,
    search_programs,
    transfer,
)
from irgym.base.errors import IrgymError
from irgym.core.actions import ActionSpace
from irgym.core.cost import Measurement, Outcome, Record
from irgym.core.kinds import ActionKind
from irgym.core.schedule import Schedule, replay
from irgym.networks.policy import TorchPolicy
from irgym.search import SEARCHES
from irgym.search.budget import Budget
from irgym.search.rollouts import rollout

CONFIG = ImitationConfig(epochs=150, hidden=(64, 64), lr=3e-3)
PROBLEM = dials.problem(dials.CODES[7::30])


def schedule(text: str) -> Schedule:
    return Schedule.parse(text, dials.SPACE)


EVERY = [schedule(f"turn_0_{a} turn_1_{b} turn_2_{c}") for a, b, c in product(range(dials.DIGITS), repeat=3)]


WHOLE = [found(PROBLEM.tasks[0], dict.fromkeys(EVERY[first : first + 3], 1.0)) for first in range(0, 216, 3)]
"""Results of searches in which every schedule is among the three cheapest of some program."""


def best(transferred):
    return [program.likeliest(None, CONFIG.alike) for program in transferred]


def test_searches_find_schedules_for_each_program():
    tasks = PROBLEM.tasks[:2]
    strategy, budget = SEARCHES.load("evolutionary")(), Budget(evaluations=150)
    searched = search_programs(tasks, PROBLEM.evaluator, strategy, budget, seed=0)
    assert [program.task for program in searched] == list(tasks)
    for program in searched:
        measured = PROBLEM.evaluator.evaluate(
            [program.task.job(replay(program.task, each)) for each in program.costs]
        )
        assert [m.cost for m in measured] == list(program.costs.values()) == sorted(program.costs.values())
        assert min(program.costs.values()) <= 200.0


def test_transfer_takes_the_cheapest_schedule_that_applies():
    long, inapplicable = schedule("turn_0_1 " * 1 + "turn_1_1 " * 3), schedule("stop")
    others = found(PROBLEM.tasks[0], {long: 1.0, inapplicable: 2.0})
    shown = best(transfer([others, *WHOLE], PROBLEM.tasks, PROBLEM.evaluator))
    assert [demo.cost for demo in shown] == [100.0] * len(PROBLEM.tasks)


def test_schedules_come_from_the_programs_that_stand_nearest():
    tasks = dials.problem(dials.CODES[:6]).tasks
    searched = [found(task, {schedule: 1.0}) for task, schedule in zip(tasks, EVERY, strict=False)]
    places = {(task.uri, task.target_text): place for place, task in enumerate(tasks)}
    [near] = transfer(searched, tasks[5:], PROBLEM.evaluator, near=2, places=places)
    [every] = transfer(searched, tasks[5:], PROBLEM.evaluator)
    assert set(near.costs) == set(EVERY[4:6]) and set(every.costs) == set(EVERY[:6])


def test_transfer_says_when_nothing_runs():
    with pytest.raises(IrgymError, match="no schedule runs"):
        transfer([found(PROBLEM.tasks[0], {schedule("stop"): 1.0})], PROBLEM.tasks, PROBLEM.evaluator)


def test_the_likeliest_of_equally_good_schedules_is_demonstrated():
    task = PROBLEM.tasks[0]
    [program] = transfer(WHOLE, [task], PROBLEM.evaluator)
    cheapest = program.likeliest(None, CONFIG.alike).schedule
    other = schedule(" ".join(reversed(cheapest.text(dials.SPACE).split())))
    both = found(task, {cheapest: 100.0, other: 101.0})
    for preferred in (cheapest, other):
        policy = clone(CONFIG, [replace(program.likeliest(None, CONFIG.alike), schedule=preferred)])
        assert both.likeliest(policy, CONFIG.alike).schedule == preferred
        assert greedy_share(policy, [both], PROBLEM.evaluator) == pytest.approx(1.0)


def test_a_further_selection_takes_what_most_programs_have():
    def both(task, dearer):
        turns = [f"turn_{dial}_{digit}" for dial, digit in enumerate(task.code)]
        ways = {"forth": schedule(" ".join(turns)), "back": schedule(" ".join(reversed(turns)))}
        return found(task, {way: 101.0 if name == dearer else 100.0 for name, way in ways.items()})

    *most, last = PROBLEM.tasks[:5]
    known = [*(both(task, "back") for task in most), both(last, "forth")]
    for selections, first_dial in ((1, "2"), (2, "0")):
        _, shown = choose_and_clone(replace(CONFIG, selections=selections), known, None)
        assert shown[-1].schedule.text(dials.SPACE).startswith(f"turn_{first_dial}")


@pytest.mark.parametrize("actions", ["structured", "autoregressive", "flat"])
def test_a_clone_repeats_what_it_was_shown_and_ppo_starts_from_it(actions, tmp_path):
    shown = best(transfer(WHOLE, PROBLEM.tasks, PROBLEM.evaluator))
    policy = clone(replace(CONFIG, actions=actions), shown)
    assert greedy_score(policy, PROBLEM.tasks, PROBLEM) == pytest.approx(dials.BEST_RETURN)

    policy.save(tmp_path / "start.pt")
    config = PPOConfig(
        start=str(tmp_path / "start.pt"), actions=actions, hidden=(64, 64), lr=1e-9, lr_end=1e-9, episodes=8
    )
    learner = config.build(PROBLEM)
    learner.iterate()
    assert greedy_score(learner.policy(), PROBLEM.tasks, PROBLEM) == pytest.approx(dials.BEST_RETURN)
    with pytest.raises(IrgymError, match="another network"):
        replace(config, hidden=(32,)).build(PROBLEM).iterate()


class Ended(dials.Dials):
    space = ActionSpace((*dials.SPACE.kinds[:-1], ActionKind("halt", ends="episode")))


class Endless(dials.Dials):
    space = ActionSpace((*dials.SPACE.kinds[:-1], ActionKind("stop")))


@pytest.mark.parametrize(("task", "steps"), [(Ended((3, 1, 2)), 4), (Endless((3, 1, 2)), 3)])
def test_a_clone_ends_its_schedules_by_the_kind_that_is_marked(task, steps):
    shown = Demonstration(task, schedule("turn_0_3 turn_1_1 turn_2_2"), 100.0)
    [path] = rollout(task, clone(CONFIG, [shown]), 1, None)
    assert path[3].state[0] == task.code and not path[3].state[2]
    assert (len(path) == 5 and path[4].state[2]) == (steps == 4)


def test_cloning_is_deterministic():
    shown = best(transfer(WHOLE, PROBLEM.tasks, PROBLEM.evaluator))
    first, second = (clone(replace(CONFIG, epochs=3), shown) for _ in range(2))
    for left, right in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(left, right)


def test_copies_keep_their_own_row_and_get_the_rows_of_others_as_neighbours():
    rows = [np.full((3, 2), float(place), dtype=np.float32) for place in range(1, 40)]
    masks, actions = [PROBLEM.tasks[0].mask(PROBLEM.tasks[0].initial())] * 39, list(range(39))
    rng = np.random.default_rng(0)
    observations, more_masks, more_actions = with_exchanged(rows, masks, actions, 2, rng)
    assert len(observations) == len(more_masks) == 3 * 39 and more_actions == actions * 3
    for place, observation in enumerate(observations):
        np.testing.assert_array_equal(observation[0], rows[place % 39][0])
        if place < 39:
            np.testing.assert_array_equal(observation, rows[place])
    neighbours = np.stack(observations[39:])[:, 1:, 0]
    assert 0.3 < (neighbours == 0).mean() < 0.7 and len(np.unique(neighbours)) > 20


def test_observations_without_rows_have_none_to_exchange():
    shown = best(transfer(WHOLE, PROBLEM.tasks[:1], PROBLEM.evaluator))
    with pytest.raises(IrgymError, match="no rows to exchange"):
        clone(replace(CONFIG, exchanged=1), shown)


def test_rounds_search_other_programs_and_a_policy_to_start_from_leads_the_first(tmp_path):
    searches = Searches(SEARCHES.load("evolutionary")(), Budget(evaluations=40), programs=2)
    rounds = expert_iteration(CONFIG, searches, PROBLEM.tasks, PROBLEM.evaluator)
    first, second = next(rounds), next(rounds)
    assert first.share is None and second.share is not None and 0.0 < second.share <= 1.0
    uris = [demo.task.uri for demo in second.shown]
    assert uris[:2] == [demo.task.uri for demo in first.shown] and len(set(uris)) == len(uris) > 2
    first.policy.save(tmp_path / "start.pt")
    led = replace(CONFIG, start=str(tmp_path / "start.pt"))
    assert next(expert_iteration(led, searches, PROBLEM.tasks, PROBLEM.evaluator)).share is not None


def test_a_start_is_kept_where_nothing_is_learnt_and_refused_where_it_does_not_fit(tmp_path):
    shown = best(transfer(WHOLE, PROBLEM.tasks, PROBLEM.evaluator))
    policy = clone(replace(CONFIG, epochs=3, normalise_observations=True), shown)
    policy.save(tmp_path / "start.pt")
    config = replace(
        CONFIG,
        epochs=1,
        lr=1e-12,
        lr_end=1e-12,
        normalise_observations=True,
        start=str(tmp_path / "start.pt"),
    )
    again = clone(config, shown).network.state_dict()
    for name, value in policy.network.state_dict().items():
        torch.testing.assert_close(again[name], value)
    searches = Searches(SEARCHES.load("random")(), Budget(evaluations=1), programs=1)
    other = replace(config, hidden=(32,))
    with pytest.raises(IrgymError, match="another network"):
        next(expert_iteration(other, searches, PROBLEM.tasks, PROBLEM.evaluator))


def test_programs_of_rounds_are_spread_and_soon_all_had_their_turn():
    tasks = list(PROBLEM.tasks)
    rounds = [[task.uri for task in rotated(tasks, number, 3)] for number in range(8)]
    assert all(len(set(each)) == 3 for each in rounds)
    assert rounds[0] != rounds[1]
    assert {uri for each in rounds for uri in each} == {task.uri for task in tasks}
    assert rotated(tasks, 0, len(tasks) + 1) == tasks


def test_programs_that_never_run_do_not_count_in_the_share():
    policy = clone(replace(CONFIG, epochs=1), best(transfer(WHOLE, PROBLEM.tasks[:1], PROBLEM.evaluator)))

    class Failing:
        def evaluate(self, jobs):
            return [Measurement(Outcome.CRASH) for _ in jobs]

    assert greedy_share(policy, WHOLE[:1], Failing()) == 0.0


def test_a_policy_of_another_sort_or_environment_is_refused_by_its_reason(tmp_path):
    DQNConfig(hidden=(8,)).build(PROBLEM).policy().save(tmp_path / "q.pt")
    with pytest.raises(IrgymError, match="is one of DQN or of Ape-X"):
        actor_for(replace(CONFIG, start=str(tmp_path / "q.pt")), PROBLEM.tasks[0])
    TorchPolicy(actor_for(CONFIG, ordering.problem().tasks[0])).save(tmp_path / "other.pt")
    with pytest.raises(IrgymError, match="other actions"):
        actor_for(replace(CONFIG, start=str(tmp_path / "other.pt")), PROBLEM.tasks[0])


def test_recorded_schedules_are_demonstrated_without_a_search(tmp_path):
    [searched] = transfer(WHOLE, PROBLEM.tasks[:1], PROBLEM.evaluator)
    task = searched.task
    rows = [
        Record(task.uri, task.key(replay(task, schedule)), task.job(task.initial()).toolchain, cost)
        for schedule, cost in (
            (schedule, Measurement(Outcome.OK, (cost,))) for schedule, cost in searched.costs.items()
        )
    ]

    class Recorded:
        def evaluate(self, jobs):
            raise AssertionError("nothing is measured")

        def recall(self, jobs):
            return [None for _ in jobs]

        def records(self, scheme, objective, target, limit):
            old = replace(rows[0], toolchain="another", measurement=Measurement(Outcome.OK, (0.1,)))
            return [old, replace(rows[0], schedule="nonsense"), *rows]

    class Read(type(task)):
        def recorded_actions(self, text):
            return texts.get(text)

    texts = {task.key(replay(task, schedule)): schedule.actions for schedule in searched.costs}
    readable = [Read(known.code) for known in PROBLEM.tasks]
    searches = Searches(SEARCHES.load("random")(), Budget(evaluations=1), programs=0, recorded=True)
    first = next(expert_iteration(replace(CONFIG, epochs=1), searches, readable, Recorded()))
    assert [demo.cost for demo in first.shown] == [min(searched.costs.values())]
    with pytest.raises(IrgymError, match="can be read back"):
        next(expert_iteration(CONFIG, searches, PROBLEM.tasks, PROBLEM.evaluator))


def test_the_best_of_what_teachers_do_is_demonstrated():
    tasks = PROBLEM.tasks
    known = transfer(WHOLE, tasks, PROBLEM.evaluator)
    teachers = [clone(CONFIG, best(known)[place::2]) for place in range(2)]
    assert all(greedy_share(teacher, known, PROBLEM.evaluator) < 1 for teacher in teachers)
    searches = Searches(SEARCHES.load("random")(), Budget(evaluations=1), programs=0)
    first = next(expert_iteration(CONFIG, searches, tasks, PROBLEM.evaluator, None, teachers))
    assert [demo.cost for demo in first.shown] == [100.0] * len(tasks)
    assert greedy_share(first.policy, known, PROBLEM.evaluator) == pytest.approx(1.0)


def test_inputs_that_the_encoder_cannot_hide_are_refused_before_any_search():
    class Unused:
        def evaluate(self, jobs):
            raise AssertionError("measured")

    searches = Searches(SEARCHES.load("random")(), Budget(evaluations=1), programs=1)
    config = replace(CONFIG, hidden_inputs=0.1)
    with pytest.raises(IrgymError, match="only the encoder graph can hide inputs"):
        next(expert_iteration(config, searches, PROBLEM.tasks, Unused()))
