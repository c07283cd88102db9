from collections import Counter
from dataclasses import replace

import dials
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainings import learns

import irgym
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.archive.best import Archive
from irgym.agents.archive.following import Following
from irgym.agents.archive.near_best import script_of
from irgym.agents.archive.scripts import FREE, LONGEST, RANDOM, sketch_script
from irgym.agents.episodes.advantages import risk_seeking_advantages
from irgym.agents.episodes.rollout import rollout
from irgym.agents.episodes.trajectories import Trajectories, select_episodes
from irgym.base.errors import IrgymError
from irgym.conformance.training import check_training
from irgym.core import capabilities
from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.policies import heads
from irgym.policies.layout import StructuredLayout

CONFIG = PPOConfig(
    iterations=60,
    episodes=48,
    started=48,
    imitation=0.3,
    epochs=6,
    minibatch=128,
    lr=3e-3,
    entropy=0.1,
    hidden=(64, 64),
)
CODES = dials.CODES[7::30]


def choices_of(trajectories, episode):
    rows = np.flatnonzero(trajectories.episode == episode)
    return trajectories.choices[rows[np.argsort(trajectories.step[rows])]]


def random_episodes(learner, places, scripts=None, seed=0):
    """Episodes on some programs by a policy that chooses at random."""
    rng = np.random.default_rng(seed)

    def choose(batch, legal):
        scores = np.zeros(legal.shape, dtype=np.float32)
        return heads.sample(scores, legal, learner.layout, rng)

    tasks = [learner.problem.tasks[place] for place in places]
    following = Following(scripts or {}, learner.layout, rng)
    return rollout(tasks, learner.problem, learner.encoder, learner.layout, choose, guide=following)


@pytest.fixture
def learner():
    return CONFIG.build(dials.problem(CODES))


def test_learns_the_dials():
    assert learns(CONFIG, dials.problem(CODES), 0.9 * dials.BEST_RETURN)


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, episodes=96, started=0, group=8, risk=0.25)])
def test_it_keeps_the_rules(config: PPOConfig):
    skip = {"episodes": "episodes from the archive are added"} if config.started else {}
    check_training(replace(config, epochs=1), dials.problem(CODES), skip=skip)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16))
def test_an_episode_follows_its_script_to_the_end(seed):
    learner = CONFIG.build(dials.problem(CODES))
    first, outcomes = random_episodes(learner, [0, 1, 2], seed=seed)
    script = choices_of(first, 1)
    again, anew = random_episodes(learner, [2, 1], {1: script}, seed=seed + 1)
    np.testing.assert_array_equal(choices_of(again, 1), script)
    assert anew.last[1] == outcomes.last[1]


def test_inapplicable_actions_are_skipped_and_free_ones_left_to_the_policy(learner):
    layout = learner.layout
    legal = np.ones((2, layout.segments, layout.width), dtype=np.bool_)
    legal[0, 0, 1] = False
    wanted = np.zeros((2, layout.segments), dtype=np.int64)
    wanted[0, 0] = 1
    beyond = np.full((1, layout.segments), layout.width, dtype=np.int64)
    free = np.full((1, layout.segments), FREE, dtype=np.int64)
    scripts = {7: np.concatenate([beyond, wanted]), 8: free}
    following = Following(scripts, layout, np.random.default_rng(0))
    own = heads.Draw(
        np.full((2, layout.segments), 2, dtype=np.int64), np.float32([-1, -2]), np.float32([-1, -2])
    )
    drawn = following.draw([7, 8], legal, lambda allowed: own)
    assert drawn.choices[0].tolist() == wanted[1].tolist()
    assert drawn.choices[1].tolist() == own.choices[1].tolist()
    assert drawn.behaviour_logp.tolist() == [0, -2]
    assert following.draw([7, 8], legal, lambda allowed: own).choices.tolist() == own.choices.tolist()


def test_parameters_that_do_not_apply_are_omitted_where_they_can_be():
    layout = TILED
    legal = np.ones((1, layout.segments, layout.width), dtype=np.bool_)
    legal[0, 2, 1:] = legal[0, 4, 1] = False
    tile, only_there, split, last = [1, 3, 2, RANDOM], [1, 0, 2, 0], [2, 0, 0, 0, 1, 0], [2, 0, 0, 0, 0, 1]
    rows = [row + [0] * (layout.segments - len(row)) for row in (tile, only_there, split, last)]
    following = Following({0: np.array(rows)}, layout, np.random.default_rng(0))
    own = heads.Draw(np.zeros((1, layout.segments), dtype=np.int64), np.float32([-1]), np.float32([-1]))
    first, second = (following.draw([0], legal, lambda allowed: own).choices[0].tolist() for _ in range(2))
    assert first[:3] == [1, 3, 0] and first[3] >= 0
    assert second == rows[3], "an action is left out of which nothing applies, or what cannot be omitted"


def test_random_actions_are_of_any_legal_kind(learner):
    layout = learner.layout
    legal = np.zeros((1, layout.segments, layout.width), dtype=np.bool_)
    legal[0, 0, :2] = True
    legal[0, 1:, 1:3] = True
    script = np.full((200, layout.segments), RANDOM, dtype=np.int64)
    following = Following({0: script}, layout, np.random.default_rng(0))
    own = heads.Draw(np.zeros((1, layout.segments), dtype=np.int64), np.float32([-1]), np.float32([-1]))
    drawn = [following.draw([0], legal, lambda allowed: own) for _ in range(200)]
    choices = np.concatenate([draw.choices for draw in drawn])
    assert all(draw.behaviour_logp.tolist() == [0] for draw in drawn)
    assert np.take_along_axis(legal[0], choices.T, axis=1).T[layout.active[choices[:, 0]]].all()
    assert 70 < (choices[:, 0] == 0).sum() < 130, "both kinds, whatever their parameters"
    after = following.draw([0], legal, lambda allowed: own)
    assert after.behaviour_logp.tolist() == [-1], "the script is at its end"


def test_random_parameters_take_any_legal_value(learner):
    layout = learner.layout
    row = int(np.argmax(layout.active.sum(axis=1)))
    slot = int(np.flatnonzero(layout.active[row])[1])
    legal = np.ones((1, layout.segments, layout.width), dtype=np.bool_)
    legal[0, slot] = np.isin(np.arange(layout.width), [0, 2])
    varied = np.where(layout.active[row], 1, 0)
    varied[[0, slot]] = row, RANDOM
    following = Following({0: np.tile(varied, (100, 1))}, layout, np.random.default_rng(0))
    own = heads.Draw(np.zeros((1, layout.segments), dtype=np.int64), np.float32([-1]), np.float32([-1]))
    drawn = np.concatenate([following.draw([0], legal, lambda allowed: own).choices for _ in range(100)])
    assert set(drawn[:, slot].tolist()) == {0, 2}
    rest = np.arange(layout.segments) != slot
    assert (drawn[:, rest] == varied[rest]).all()


def test_free_actions_do_not_end_an_episode_that_can_go_on(learner):
    layout = learner.layout
    legal = np.ones((2, layout.segments, layout.width), dtype=np.bool_)
    legal[1, 0] = False
    legal[1, 0, : layout.width] = layout.ends
    assert layout.ends.any()
    free = np.full((1, layout.segments), FREE, dtype=np.int64)
    following = Following({0: free, 1: free}, layout, np.random.default_rng(0))
    asked = []

    def choose(allowed):
        asked.append(allowed)
        return heads.Draw(np.zeros((2, layout.segments), dtype=np.int64), *np.zeros((2, 2), np.float32))

    for _ in range(2):
        following.draw([0, 1], legal, choose)
    first, after = asked
    assert not first[0, 0, : layout.width][layout.ends].any() and first[0, 0].any()
    assert (first[1] == legal[1]).all(), "nothing else is left there"
    assert (after == legal).all(), "the scripts are at their ends"


def test_the_archive_keeps_the_cheapest_episode_of_each_program(learner):
    archive = Archive([""] * 9, learner.layout, learner.encoder)
    least: dict[int, float] = {}
    for seed in range(5):
        places = [0, 1, 1, 2, 0, 3]
        trajectories, outcomes = random_episodes(learner, places, seed=seed)
        archive.add(places, trajectories, outcomes.last)
        for place, cost in zip(places, outcomes.last.tolist(), strict=True):
            least[place] = min(cost, least.get(place, np.inf))
    assert archive.costs == least
    scripts = {place: choices_of(archive.episodes, place) for place in range(4)}
    _, again = random_episodes(learner, list(archive.costs), scripts, seed=9)
    assert again.last.tolist() == list(archive.costs.values())


def test_failed_episodes_are_not_kept(learner):
    archive = Archive([""] * 9, learner.layout, learner.encoder)
    trajectories, outcomes = random_episodes(learner, [0, 1])
    archive.add([0, 1], trajectories, np.array([np.inf, outcomes.last[1]]))
    assert list(archive.costs) == [1]


def test_a_shorter_or_shared_episode_is_kept_among_equally_good_ones(learner):
    archive = Archive([""] * 9, learner.layout, learner.encoder)
    trajectories, _ = random_episodes(learner, [0] * 12)
    lengths = np.bincount(trajectories.episode)
    longer, shorter = int(np.argmax(lengths)), int(np.argmin(lengths))
    assert lengths[longer] > lengths[shorter]

    def add(episode, cost, program=0):
        alone = select_episodes(trajectories, np.array([episode]), learner.encoder)
        archive.add([program], alone, np.array([cost]))
        kept = archive.episodes.scripts()[list(archive.costs).index(program)]
        return kept.tolist() == choices_of(trajectories, episode).tolist()

    assert add(longer, 100.0)
    assert not add(shorter, 106.0), "a cost that is higher by more than the noise"
    assert add(shorter, 104.0)
    assert not add(longer, 99.5) and add(longer, 90.0) and add(shorter, 92.0)
    alike = [place for place in np.flatnonzero(lengths == lengths[shorter]) if place != shorter]
    other = int(alike[0])
    assert not add(other, 91.0), "as long, and no other program has it"
    assert add(other, 50.0, program=1) and add(other, 50.0, program=2) and add(other, 92.0)
    assert not add(shorter, 89.0)
    assert archive.costs[0] == 89.0


def test_an_empty_archive_starts_nothing(learner):
    assert Archive([""] * 9, learner.layout, learner.encoder).scripts([0], np.random.default_rng(0)) == []


def test_a_script_is_made_by_edits_of_an_episode(learner):
    archive = Archive([""] * 9, learner.layout, learner.encoder)
    trajectories, outcomes = random_episodes(learner, [0, 1])
    archive.add([0, 1], trajectories, outcomes.last)
    episodes = [choices_of(archive.episodes, place).tolist() for place in range(2)]
    scripts = [script.tolist() for script in archive.scripts([0] * 400, np.random.default_rng(0))]
    made = [script for script in scripts if len(script) < LONGEST]
    assert 280 < len(made) < 360, "one in five is random throughout"
    assert 40 < sum(script in episodes for script in made) < 240, "many are another's as they are"
    once = sum(any(edited(episode, script) for episode in episodes) for script in made)
    assert 0.625 * len(made) < once < len(made), "most are edited at most once, some further"


def test_programs_share_more_with_their_kind(learner):
    archive = Archive(["wide", "wide", "narrow", "narrow"], learner.layout, learner.encoder)
    trajectories, outcomes = random_episodes(learner, [0, 2], seed=3)
    archive.add([0, 2], trajectories, outcomes.last)
    wide, narrow = (choices_of(archive.episodes, place).tolist() for place in range(2))
    assert wide != narrow
    for program, own, other in ((1, wide, narrow), (3, narrow, wide)):
        scripts = [script.tolist() for script in archive.scripts([program] * 4000, np.random.default_rng(0))]
        assert scripts.count(own) > 4 * scripts.count(other) > 0, (
            "three in four tournaments, or seven in eight"
        )
        assert scripts.count(own) + scripts.count(other) > 700, "one in five is taken over as it is"


TILED = StructuredLayout(
    ActionSpace(
        (
            ActionKind("stop", ends="episode"),
            ActionKind("tile", ((0, 2, 4, 8, 16),) * 3, omitted=0),
            ActionKind("split", ((2, 4), (1, 2))),
        )
    )
)


def archive_of(kinds, episodes, encoder, layout=TILED, sketched=(), share=0.0):
    """An archive of the first programs, with these choices, none better than another."""
    choices = np.concatenate(episodes)
    steps = len(choices)
    nothing = np.zeros(steps, dtype=np.float32)
    archive = Archive(kinds, layout, encoder, 1.0, sketched, share)
    archive.costs = dict.fromkeys(range(len(episodes)), 1.0)
    archive.episodes = Trajectories(
        observations=np.zeros((steps, 1), dtype=np.float32),
        legal=np.ones((steps, layout.segments, layout.width), dtype=np.bool_),
        choices=choices,
        policy_logp=nothing,
        behaviour_logp=nothing,
        rewards=nothing,
        episode=np.repeat(np.arange(len(episodes)), [len(choices) for choices in episodes]),
        step=np.concatenate([np.arange(len(choices)) for choices in episodes]),
        privileged=np.zeros((steps, 0), dtype=np.float32),
    )
    for program, episode in enumerate(episodes):
        archive.niches.add(program, episode, 0.0)
        archive.near.add(program, script_of(episode), 1.0)
    return archive


def test_actions_of_another_kind_may_shift_to_inner_or_outer_loops(learner):
    choices = np.array([[1, 1, 2, 0, 0, 0], [2, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]])
    archive = archive_of(["product", "convolution", "product"], [choices], learner.encoder)

    def found(program):
        scripts = archive.scripts([program] * 900, np.random.default_rng(0))
        whole = [script for script in scripts if len(script) == 3 and (script[1:] == choices[1:]).all()]
        return Counter(tuple(script[0, 1:4].tolist()) for script in whole)

    tiles = found(1)
    assert tiles[1, 2, 0] > 80 and tiles[0, 1, 2] > 40 and tiles[2, 0, 0] > 40
    alike = found(2)
    assert alike[1, 2, 0] > 4 * (alike[0, 1, 2] + alike[2, 0, 0]) > 0


def test_the_rest_of_another_episode_may_follow_a_beginning(learner):
    own, other = ([[1, size, place, 0, 0, 0] for place in range(5)] for size in (1, 2))
    archive = archive_of(["", ""], [np.array(own), np.array(other)], learner.encoder)
    scripts = [script.tolist() for script in archive.scripts([0] * 16000, np.random.default_rng(0))]
    crossed = [[*own[:head], *other[tail:]] for head in range(1, 5) for tail in range(1, 5) if head != tail]
    assert sum(map(scripts.count, crossed)) > 24


def test_a_share_of_the_scripts_are_sketches_that_end(learner):
    task = irgym.task("loops://mm/64x64x64", target="x86-64-v3")
    layout = StructuredLayout(task.space)
    script = sketch_script(task, layout, np.random.default_rng(0))
    sketch = capabilities.sketch(task, np.random.default_rng(0))
    *before, last = layout.actions(script)
    assert before == list(sketch) and task.space.kinds[last.kind].name == "stop"
    nothing = np.zeros((1, layout.segments), dtype=np.int64)
    archive = archive_of([""], [nothing], learner.encoder, layout, [task], 0.3)
    found = archive.scripts([0] * 400, np.random.default_rng(0))
    # A quarter of the sketches are a single action.
    assert 60 < sum(len(script) > 8 and (script >= 0).all() for script in found) < 120


def test_programs_without_sketches_refuse_scripts_of_them():
    with pytest.raises(IrgymError, match="set sketched to 0"):
        replace(CONFIG, sketched=0.5).build(dials.problem(CODES))


def test_sketches_need_episodes_that_follow_them():
    with pytest.raises(IrgymError, match="set started to 1 or more"):
        PPOConfig(sketched=0.3).build(dials.problem(CODES))


def test_some_scripts_leave_out_actions(learner):
    episode = [[1, size, place, 0, 0, 0] for size in (1, 2) for place in (1, 2, 3)]
    archive = archive_of([""], [np.array(episode)], learner.encoder)
    scripts = [script.tolist() for script in archive.scripts([0] * 1000, np.random.default_rng(0))]
    without = [
        script
        for script in scripts
        if len(script) < 6 and script == [row for row in episode if row in script]
    ]
    assert 130 < len(without) < 260, "one in five of those that are not random throughout, and cut-off ones"
    assert len({len(script) for script in without}) > 3


def test_some_of_an_actions_parameters_may_come_before_it(learner):
    tile = [1, 1, 2, 0, 0, 0]
    episode = np.array([tile, [0, 0, 0, 0, 0, 0]])
    archive = archive_of([""], [episode], learner.encoder)
    scripts = [script.tolist() for script in archive.scripts([0] * 4000, np.random.default_rng(0))]
    for part in ([1, 1, 0, 0, 0, 0], [1, 0, 2, 0, 0, 0]):
        assert scripts.count([part, *episode.tolist()]) > 8


def test_some_scripts_go_on_at_random_before_their_end(learner):
    episode = np.array([[1, 1, 2, 0, 0, 0], [2, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]])
    archive = archive_of([""], [episode], learner.encoder)
    scripts = [script for script in archive.scripts([0] * 1000, np.random.default_rng(0)) if len(script) > 3]
    longer = [
        script
        for script in scripts
        if (script[2:-1] == RANDOM).all() and (script[[1, -1]] == episode[1:]).all()
    ]
    lengths = [len(script) - 3 for script in longer]
    assert 200 < len(lengths) < 280, "three in ten of those that are not random throughout"
    assert 4 < np.mean(lengths) < 6


def test_programs_of_one_family_and_target_are_of_a_kind():
    problem = dials.problem(CODES[:3])
    families = {task.uri: name for task, name in zip(problem.tasks, ("long", "short", "long"), strict=True)}
    kinds = CONFIG.build(replace(problem, families=families)).archive.kinds
    assert kinds[0] == kinds[2] != kinds[1]


def edited(before: list, after: list) -> bool:
    """Whether one action was changed, inserted or deleted, or the end was cut off, left free or put off."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    rest, new = before[same:], after[same:]
    free = new and all(action[0] == FREE for action in new)
    put = [action for action in new if all(choice == RANDOM for choice in action)]
    longer = len(rest) <= 1 and new == [*put, *rest]
    return free or longer or not new or rest == new or rest[1:] in (new, new[1:]) or rest == new[1:]


def test_only_the_best_share_of_a_group_is_learnt_from():
    advantages = risk_seeking_advantages(np.array([1.0, 2.0, 3.0, 5.0, 9.0, 9.0, 9.0, 9.0]), 4, 0.25)
    assert advantages.tolist() == [0, 0, 0, 1.5, 0, 0, 0, 0]


def test_risk_needs_a_group():
    with pytest.raises(IrgymError, match="set group to 2 or more"):
        PPOConfig(risk=0.1).build(dials.problem(CODES))
