"""All outcomes of a program, and a policy that learns what actions are worth from them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rewriting
import torch

from irgym.agents.evaluation import greedy_score
from irgym.agents.imitation.outcomes import Outcomes, all_outcomes
from irgym.agents.imitation.values import ValuesConfig, learn_values
from irgym.api.imitation import imitate
from irgym.api.requests import Imitating, Measuring
from irgym.base.errors import IrgymError
from irgym.core.schedule import Schedule
from irgym.networks.policy import TorchPolicy

CONFIG = ValuesConfig(epochs=40, hidden=(64, 64), minibatch=32, lr=5e-3, largest=1.0, scale=10.0, price=0.03)
PROBLEM = rewriting.problem()


@pytest.fixture(scope="module")
def known() -> list[Outcomes]:
    found = [program for _, program in all_outcomes(PROBLEM.tasks, PROBLEM.evaluator, 500)]
    return [program for program in found if program is not None]


def test_the_least_cost_is_the_optimum(known: list[Outcomes]):
    for program in known:
        assert np.exp(program.least[0]) == pytest.approx(rewriting.optimum(program.task))


def test_an_advantage_is_what_the_best_way_on_gains(known: list[Outcomes]):
    program = max(known, key=lambda program: len(program.states))
    for state, actions in enumerate(program.actions):
        for action, advantage in zip(actions, program.advantages(state), strict=True):
            after = program.states.index(program.task.step(program.states[state], action))
            assert advantage == pytest.approx(program.costs[state] - program.least[after])


def test_programs_with_too_many_states_are_left_out(known: list[Outcomes]):
    most = max(len(program.states) for program in known)
    found = dict(all_outcomes(PROBLEM.tasks, PROBLEM.evaluator, most - 1))
    assert 0 < sum(program is None for program in found.values()) < len(found)


def test_the_policy_reaches_the_optimum_of_programs_that_it_has_not_seen(known: list[Outcomes]):
    held_out = rewriting.problem(rewriting.TEST)
    best = np.mean([1 - rewriting.optimum(task) / rewriting.cost(task.initial()) for task in rewriting.TEST])
    assert greedy_score(learn_values(CONFIG, known), held_out.tasks, held_out) > 0.97 * best


def test_a_policy_goes_by_the_mean_of_its_members(known: list[Outcomes], tmp_path: Path):
    few = replace(CONFIG, epochs=2)
    both = learn_values(replace(few, members=2), known)
    each = [learn_values(replace(few, seed=seed), known) for seed in (0, 1)]
    task = PROBLEM.tasks[0]
    seen = [task.observe(task.initial())]
    legal = torch.as_tensor(both.network.layout.legal([task.mask(task.initial())]))
    both.save(tmp_path / "both.pt")
    for policy in (both, TorchPolicy.load(tmp_path / "both.pt")):
        found = policy.network.forward(policy.network.encoder.collate(seen), legal)
        single = [policy.network.forward(policy.network.encoder.collate(seen), legal) for policy in each]
        torch.testing.assert_close(found, (single[0] + single[1]) / 2)


def test_a_seed_gives_the_same_policy(known: list[Outcomes]):
    first, second = (learn_values(replace(CONFIG, epochs=2), known) for _ in range(2))
    for weight, other in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(weight, other)


def test_a_margin_ends_episodes_sooner(known: list[Outcomes]):
    task = PROBLEM.tasks[0]
    few = replace(CONFIG, epochs=2)
    wary = learn_values(replace(few, margin=100.0), known)
    [action] = wary.act([task.observe(task.initial())], [task.mask(task.initial())], None)
    assert Schedule((action,)).text(task.space) == "stop"


def test_imitate_writes_a_policy(tmp_path: Path):
    file = tmp_path / "policy.pt"
    found = imitate(
        "cse",
        file,
        imitating=Imitating(
            dataset="kernels", programs=3, values=True, hyperparameters={"epochs": 1, "hidden": (8,)}
        ),
        measuring=Measuring(target="x86-64"),
    )
    assert file.is_file() and found.programs and found.schedules > found.programs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"programs": 0}, "1 or more"),
        ({"hyperparameters": {"most": 2}}, "at most 2 states"),
        ({"hyperparameters": {"alike": 1.0}}, "no hyper-parameter of values"),
        ({"hyperparameters": {"activation": "step"}}, "no activation 'step'"),
    ],
)
def test_bad_options_are_told(tmp_path: Path, options: dict[str, object], message: str):
    given: dict[str, Any] = {"programs": 2, **options}
    with pytest.raises(IrgymError, match=message):
        imitate(
            "cse",
            tmp_path / "policy.pt",
            imitating=Imitating(dataset="kernels", values=True, **given),
            measuring=Measuring(target="x86-64"),
        )
