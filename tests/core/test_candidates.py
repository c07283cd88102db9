"""Actions whose choices come from the state: masks, texts, and Gymnasium's view."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.candidates import CandidateObservation, padded
from irgym.core.kinds import ActionKind
from irgym.core.schedule import Schedule, replay, states_along
from irgym.gym.env import TaskEnv
from irgym.gym.spaces import action_of, gym_mask, gym_space

sys.path.append(str(Path(__file__).parents[1] / "toys"))
import rewriting

SPACE = ActionSpace(
    (
        ActionKind("merge", candidates=True),
        ActionKind("stop", ends="episode"),
        ActionKind("unroll", ((2, 4, 8),), candidates=True),
        ActionKind("tile", ((8, 16), (1, 2))),
        ActionKind("mer_ge", candidates=True),
    )
)
NAMES = st.text(st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc", "Cs"]), min_size=1, max_size=8)
words = NAMES.filter(lambda name: name.replace(",", " ").split() == [name])


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    pairs = draw(st.lists(st.tuples(st.sampled_from([0, 2, 4]), words), unique=True, max_size=6))
    kinds = draw(st.lists(st.booleans(), min_size=5, max_size=5))
    params = [True, *draw(st.lists(st.booleans(), min_size=2, max_size=2)), *[True] * 4]
    return SPACE.mask(kinds, params, pairs)


@given(masks(), st.integers(0, 99))
def test_legal_actions_are_counted_allowed_drawn_and_written(mask, seed):
    legal = SPACE.legal(mask)
    assert len(legal) == len(set(legal)) == SPACE.count(mask)
    assert all(SPACE.allows(mask, action) for action in legal)
    assert {(kind, name) for kind, _, name in legal if name} == set(mask.candidates)
    assert [SPACE.parse(SPACE.text(action)) for action in legal] == legal
    assert SPACE.takeable(mask) == sorted({action.kind for action in legal})
    fixed = [action for action in SPACE.flat if SPACE.allows(mask, action)]
    assert [action for action in legal if not action.candidate] == fixed
    if legal:
        assert SPACE.sample(mask, np.random.default_rng(seed)) in legal


@given(words, st.integers(0, 2))
def test_a_name_is_everything_after_the_first_at(name, choice):
    action = Action(2, (choice,), name)
    assert SPACE.text(action) == f"unroll_{(2, 4, 8)[choice]}@{name}"
    assert SPACE.parse(SPACE.text(action)) == action
    assert SPACE.parse(f"mer_ge@a@b/{name}") == Action(4, (), f"a@b/{name}")


@pytest.mark.parametrize("text", ["merge", "merge@", "stop@x", "stop@", "unroll@x", "unroll_3@x", "x@merge"])
def test_malformed_actions_are_refused_with_the_notation(text):
    with pytest.raises(ScheduleError, match=r"choose among .*(@NAME|stop)"):
        SPACE.parse(text)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "a,b"])
def test_names_that_would_not_parse_back_are_a_bug(name):
    with pytest.raises(ValueError, match="cannot name a candidate"):
        SPACE.text(Action(0, (), name))


def test_a_candidate_twice_is_a_bug():
    with pytest.raises(ValueError, match="twice"):
        _ = SPACE.mask([True] * 5, [True] * 7, [(0, "a"), (0, "a")]).places


def test_long_lists_of_candidates_are_cut():
    few = SPACE.mask([False] * 5, [True] * 7, [(0, "a"), (4, "a")])
    assert SPACE.options(few) == "merge@a mer_ge@a"
    many = SPACE.mask([False] * 5, [True] * 7, [(0, f"h{i}") for i in range(500)] + [(2, "z")])
    assert SPACE.options(many).startswith("merge@h0|h1|")
    assert SPACE.options(many).endswith("h15|... (500 in all) unroll_2@z unroll_4@z unroll_8@z")


def test_spaces_differ_by_capacity_and_by_kinds_with_candidates():
    plain = ActionSpace((ActionKind("merge"),))
    pointed = ActionSpace((ActionKind("merge", candidates=True),))
    assert plain != pointed != ActionSpace(pointed.kinds, capacity=7)
    assert pointed.flat == () and pointed.flat_mask(pointed.mask([True])).shape == (0,)


def test_fork_equals_replay_and_schedules_parse_back():
    rng = np.random.default_rng(0)
    for task in rewriting.TEST:
        state, schedule = task.initial(), Schedule()
        while not task.terminal(state) and len(schedule) < task.horizon:
            action = rewriting.SPACE.sample(task.mask(state), rng)
            state, schedule = task.step(state, action), schedule.then(action)
        text = schedule.text(rewriting.SPACE)
        assert Schedule.parse(text, rewriting.SPACE) == schedule and replay(task, schedule) == state


def test_a_schedule_whose_candidate_is_gone_is_told_which_there_are():
    task = rewriting.Rewriting("bs")
    schedule = Schedule.parse("split@x0 split@x0", task.space)
    with pytest.raises(ScheduleError, match=r"action 2 .* split@x0, does not apply there: .*fuse@x0"):
        states_along(task, schedule)


def test_padding_shows_the_first_candidates():
    seen = CandidateObservation(np.ones(2, np.float32), np.arange(6, dtype=np.float32).reshape(3, 2))
    assert padded(seen, 2).tolist() == [1, 1, 0, 1, 2, 3]
    assert padded(seen, 4).tolist() == [1, 1, 0, 1, 2, 3, 4, 5, 0, 0]


@pytest.fixture
def env(monkeypatch):
    monkeypatch.setattr("irgym.gym.setting.ENVIRONMENTS", rewriting.ENVIRONMENTS)
    return TaskEnv("rewriting", evaluator=rewriting.Known())


def test_gymnasium_checks_the_view(env):
    check_env(env, skip_render_check=True)


def test_gymnasium_takes_the_candidates_that_it_names(env):
    rng = np.random.default_rng(0)
    for _ in range(30):
        observation, info = env.reset(seed=int(rng.integers(1000)))
        done = False
        while not done:
            masks = env.action_masks()
            count = len(info["candidates"])
            assert (
                masks.tolist() == [True] * (1 + count) + [False] * (24 - count) and env.action_space.n == 25
            )
            assert observation.shape == (rewriting.FEATURES + 24 * rewriting.ROW,)
            place = int(rng.integers(25))
            observation, _, ended, cut, after = env.step(place)
            assert after["applied"] == masks[place] and after["candidates_not_shown"] == 0
            if 0 < place <= count:
                assert after["schedule"].split()[-1] == info["candidates"][place - 1]
            done, info = ended or cut, after


def test_copies_of_an_environment_go_on_with_its_candidates(env):
    env.reset(options={"program": "rewriting:sbt"})
    env.step(1)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.schedule == env.schedule == Schedule((Action(rewriting.SPLIT, (), "x1"),))
    assert copy.action_masks().tolist() == env.action_masks().tolist()


def test_candidates_beyond_the_capacity_are_counted():
    space = ActionSpace(rewriting.SPACE.kinds, capacity=2)
    pairs = [(rewriting.SPLIT, f"x{place}") for place in range(5)]
    mask = space.mask([True, False, False, False], (), pairs)
    assert gym_space(space).n == 3 and gym_mask(space, mask).tolist() == [True] * 3
    assert action_of(space, 2, mask) == Action(rewriting.SPLIT, (), "x1")
    with pytest.raises(IrgymError, match="from 0 to 2"):
        action_of(space, 3, mask)
    from irgym.core.candidates import candidate_info

    assert candidate_info(space, mask) == {"candidates": ("split@x0", "split@x1"), "candidates_not_shown": 3}


def test_a_flat_view_cannot_hold_candidates_with_parameters():
    with pytest.raises(IrgymError, match="unroll has candidates and parameters"):
        gym_space(SPACE)


def test_commas_separate_actions_as_blanks_do():
    text = "merge@a stop unroll_4@b tile_8_2"
    assert Schedule.parse(text, SPACE) == Schedule.parse(f" {text.replace(' ', ', ')},", SPACE)
    assert Schedule.parse(text.replace(" ", ","), SPACE).text(SPACE) == text
    with pytest.raises(ValueError, match="cannot name a candidate"):
        SPACE.text(Action(0, (), "a,b"))


def test_an_unknown_action_is_answered_with_all_kinds():
    with pytest.raises(ScheduleError, match=r"did you mean merge[?] choose among merge@NAME stop "):
        SPACE.parse("merg@a")
    with pytest.raises(
        ScheduleError, match=r"among tile_8.16_1.2; the other kinds are merge, stop, unroll, mer_ge"
    ):
        SPACE.parse("tile_9_1")
