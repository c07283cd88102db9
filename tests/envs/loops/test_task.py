import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.actions import Action
from irgym.core.schedule import Schedule, replay, states_along
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.legality import MAX_LOOPS
from irgym.envs.loops.nest import Mark
from irgym.envs.loops.observing.features import FEATURES

PROGRAMS = (
    "loops://mm/128x128x128",
    "loops://mm/33x47x65",
    "loops://bmm/3x17x31x8",
    "loops://conv/1x14x14x16x32x3x3?stride=2",
    "loops://einsum/mk,k->m?m=40&k=70",
    "loops://mm/1x1x1",
    "loops://einsum/Ij,j->?I=40&j=70&dtype=i8",
    "loops://conv1d/2x40x6x20x3?flip=true&padding=1&dtype=f64",
    "loops://einsum/ij->ji?dtype=bf16&i=30&j=41",
    "loops://einsum/[-i+40]j,j->i?i=41&j=30",
)


def random_actions(uri: str, seed: int, length: int = 30) -> list[Action]:
    rng, task = random.Random(seed), LOOPS.task(uri, "llvm")
    state, taken = task.initial(), list[Action]()
    while len(taken) < length and not task.terminal(state):
        action = rng.choice(task.space.legal(task.mask(state)))
        taken.append(action)
        state = task.step(state, action)
    return taken


@settings(max_examples=60, deadline=None)
@given(uri=st.sampled_from(PROGRAMS), seed=st.integers(0, 10**6))
def test_replay_is_fork_and_parse_is_the_inverse_of_text(uri: str, seed: int):
    task = LOOPS.task(uri, "llvm")
    schedule = Schedule(tuple(random_actions(uri, seed)))
    states = [task.initial()]
    for action in schedule.actions:
        states.append(task.step(states[-1], action))
    parsed = Schedule.parse(schedule.text(task.space), task.space)
    assert parsed == schedule
    assert states_along(LOOPS.task(uri, "llvm"), parsed) == states
    assert hash(replay(task, parsed)) == hash(states[-1])


@settings(max_examples=60, deadline=None)
@given(uri=st.sampled_from(PROGRAMS), seed=st.integers(0, 10**6))
def test_recorded_texts_lead_back_to_their_nests(uri: str, seed: int):
    task = LOOPS.task(uri, "llvm")
    for state in states_along(task, Schedule(tuple(random_actions(uri, seed)))):
        again = task.recorded(task.key(state))
        assert again is not None and again.nest == state.nest and task.job(again) == task.job(state)
        np.testing.assert_array_equal(task.cost_features(again), task.cost_features(state))
        assert task.cost_features(state).shape == (FEATURES,)


@pytest.mark.parametrize("uri", PROGRAMS)
def test_actions_lead_to_recorded_nests(uri: str):
    task = LOOPS.task(uri, "llvm")
    sketched = [task.sketch(np.random.default_rng(seed)) for seed in range(20)]
    wandered = [random_actions(uri, seed) for seed in range(20)]
    found = 0
    for drawn in (*sketched, *wandered):
        text = task.key(replay(task, Schedule(tuple(drawn[: task.horizon]))))
        way = task.recorded_actions(text)
        if way is not None:
            found += 1
            assert task.key(replay(task, Schedule(tuple(way)))) == text
    assert found > 25
    assert task.recorded_actions("m n") is None


def test_steps_that_no_split_makes_are_not_led_to():
    task = LOOPS.task("loops://mm/128x128x128", "llvm")
    assert task.recorded_actions("m/66 m/22 n/16 k m n") is None
    assert task.recorded_actions("m/60 n/16 m/6 k m n")


@pytest.mark.parametrize("text", ["", "m n", "m/8 n k", "m n k b", "m:w n k", "m//8 m n k", "m n k ;"])
def test_malformed_texts_are_not_read(text: str):
    assert LOOPS.task("loops://mm/32x32x32", "llvm").recorded(text) is None


@settings(max_examples=60, deadline=None)
@given(uri=st.sampled_from(PROGRAMS), seed=st.integers(0, 10**6))
def test_nests_keep_their_invariants(uri: str, seed: int):
    task = LOOPS.task(uri, "llvm")
    for state in states_along(task, Schedule(tuple(random_actions(uri, seed)))):
        nest = state.nest
        assert 0 <= state.cursor < len(nest.loops) <= MAX_LOOPS
        assert sum(loop.mark is Mark.VECTORISE for loop in nest.loops) <= 1
        for place, (loop, parent) in enumerate(zip(nest.loops, nest.parents, strict=True)):
            assert nest.trips(task.contraction, place) >= 1
            if parent is not None:
                assert nest.loops[parent].step % loop.step == 0
                assert nest.loops[parent].step > loop.step
        dims = {dim for dim, size in task.contraction.dims if size > 1}
        assert {loop.dim for loop in nest.loops if loop.step == 1} >= dims


def test_the_schedule_of_the_paper_reads_as_a_nest():
    task = LOOPS.task("loops://mm/128x128x128", "llvm")
    text = "split_8 down swap_down down split_32 swap_up swap_up"
    state = replay(task, Schedule.parse(text, task.space))
    assert state.nest.text() == "m/8 n/32 k m n"
    assert "for n (4 x 32)" in task.describe(state)


def test_equal_nests_have_equal_jobs():
    task = LOOPS.task("loops://mm/64x64x64", "llvm")
    texts = "down up", "down down up up", "swap_down swap_up", "split_8 merge", ""
    jobs = [task.job(replay(task, Schedule.parse(text, task.space))) for text in texts]
    assert {job.schedule for job in jobs} == {"m k n"}


def test_swapping_loops_over_one_dimension_is_masked():
    task = LOOPS.task("loops://mm/64x64x64", "llvm")
    with pytest.raises(ScheduleError, match="action 2 of the schedule, swap_down, does not apply"):
        replay(task, Schedule.parse("split_8 swap_down", task.space))


def test_nothing_applies_after_stop():
    task = LOOPS.task("loops://mm/64x64x64", "llvm")
    state = replay(task, Schedule.parse("stop", task.space))
    assert task.terminal(state) and not task.space.legal(task.mask(state))
    with pytest.raises(ScheduleError, match="has stopped"):
        replay(task, Schedule.parse("stop up", task.space))


@pytest.mark.parametrize(
    "uri",
    [
        "loops://mm/0x4x4",
        "loops://mm/4x4",
        "loops://mm/4x4xfour",
        "loops://mm/-1x4x4",
        "loops://mm/4x4x4?stride=2",
        "loops://conv/1x8x8x4x4x3x3?stride=0",
        "loops://conv/1x8x8x4x4x3x3?pad=1",
        "loops://fft/128",
        "loops://",
        "loops:mm",
        "loops://mm/99999x99999x99999",
        "loops://einsum/mk,kn->mn?m=4&k=4",
        "loops://einsum/mk,kn->mn?m=4&k=4&n=4&z=4",
        "loops://einsum/mk,kn->mm?m=4&k=4&n=4",
        "loops://einsum/mk,kn->q?m=4&k=4&n=4&q=4",
        "loops://einsum/mk,kn,nj->mj?m=4&k=4&n=4&j=4",
        "loops://einsum/[m+m]k,kn->mn?m=4&k=4&n=4",
    ],
)
def test_bad_uris_are_refused_in_one_sentence(uri: str):
    with pytest.raises(IrgymError) as caught:
        LOOPS.task(uri, "llvm")
    assert "\n" not in str(caught.value) and repr(uri)[1:6] in str(caught.value)


def test_unknown_backend_names_the_choices():
    with pytest.raises(IrgymError, match="avx512, avx2, llvm"):
        LOOPS.task("loops://mm/4x4x4", "gcc")


def test_costs_peaks_and_features_know_the_type_of_elements():
    of = {dtype: LOOPS.task(f"loops://mm/32x32x32?dtype={dtype}") for dtype in ("f32", "f64", "bf16", "i8")}
    assert of["f64"].ideal_cost(100.0) == 2 * of["f32"].ideal_cost(100.0) == 2 * of["i8"].ideal_cost(100.0)
    jobs = [task.job(task.initial()) for task in of.values()]
    assert len({job.program for job in jobs}) == len(jobs)
    rows = [task.observe(task.initial()).tobytes() for task in of.values()]
    assert len(set(rows)) == len(rows)
    assert of["bf16"].backend.name == of["i8"].backend.name == "llvm"
    assert of["f64"].backend.name == of["f32"].backend.name


@pytest.mark.parametrize(
    ("uri", "backend", "said"),
    [
        ("loops://mm/8x8x8?dtype=bf16", "avx2", "no instructions for dtype=bf16: choose the back end llvm"),
        ("loops://conv1d/1x9x2x3x3?padding=1", "llvm:2", "run on one thread: pad the input"),
    ],
)
def test_programs_that_a_back_end_has_not_are_refused(uri: str, backend: str, said: str):
    with pytest.raises(IrgymError, match=said):
        LOOPS.task(uri, backend)
