"""Schedules of small programs: allowed actions apply, and keep the program's results."""

from itertools import pairwise

import numpy as np
import pytest

from irgym.base.errors import IrgymError, ScheduleError
from irgym.core.actions import Action
from irgym.core.cost import Outcome
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import actions, runner
from irgym.envs.linalg.compiling.contexts import mlir, parse, run_passes
from irgym.envs.linalg.environment import LINALG, LINALG_SWAPS
from irgym.envs.linalg.observing.features import FEATURES, OPERATIONS
from irgym.envs.linalg.scheduling.operations import OperationKind
from irgym.envs.linalg.scheduling.transformations import PARTS
from irgym.measure.timing import Timing
from irgym.search.budget import Budget
from irgym.search.minimise import minimise
from irgym.search.request import SearchRequest
from irgym.search.session import Session
from irgym.search.walks import alone, follow

PROGRAMS = (
    "linalg://matmul/16x32x8",
    "linalg://batch_matmul/2x8x16x4",
    "linalg://conv2d/1x4x10x10x8x3x3",
    "linalg://conv2d/1x4x9x9x8x3x3?stride=2",
    "linalg://maxpool/1x8x8x8x2?stride=2",
    "linalg://add/8x16",
    "linalg://relu/4x8x16",
    "linalg://softmax/8x16",
    "linalg://layernorm/8x16",
    "linalg://lattice/1",
    "linalg://sequence/1?length=4",
    "linalg://sequence/2?length=5",
)

QUICK = Timing(budget_ns=1, fewest=1, most=1)


def walk(task, rng, steps=12):
    """Return the states and the schedule of a random episode that visits every operation."""
    state, taken, states = task.initial(), [], [task.initial()]
    while not task.terminal(state) and len(taken) < steps * len(task.order):
        action = task.space.sample(task.mask(state), rng)
        state = task.step(state, action)
        taken.append(action)
        states.append(state)
    return states, Schedule(tuple(taken))


def measured(task, state):
    return runner.measure(task.text, task.script(state), task.target, QUICK)


@pytest.mark.parametrize("uri", PROGRAMS)
def test_allowed_actions_apply_and_keep_the_results(uri):
    task, rng = LINALG.task(uri), np.random.default_rng(0)
    for _ in range(3):
        states, schedule = walk(task, rng)
        result = measured(task, states[-1])
        assert result.outcome is Outcome.OK, f"{schedule.text(task.space)}: {result.detail}"


@pytest.mark.parametrize("uri", PROGRAMS[:3])
def test_a_fork_is_a_replay(uri):
    task, rng = LINALG.task(uri), np.random.default_rng(1)
    for _ in range(5):
        states, schedule = walk(task, rng)
        text = schedule.text(task.space)
        again = replay(task, Schedule.parse(text, task.space))
        assert again == states[-1] and hash(again) == hash(states[-1])
        assert task.script(again) == task.script(states[-1])
        assert task.job(again) == task.job(states[-1])


@pytest.mark.timed
def test_the_best_known_matmul_schedule_beats_the_original():
    task = LINALG.task("linalg://matmul/128x128x128")
    state = replay(task, Schedule.parse("tile_8_32_1 vectorise_0", task.space))
    plain = runner.measure(task.text, "", task.target, Timing())
    tiled = runner.measure(task.text, task.script(state), task.target, Timing())
    assert tiled.ok and plain.cost > 10 * tiled.cost


def test_sizes_that_do_not_divide_are_masked_in_parallel_tiles():
    task = LINALG.task("linalg://matmul/12x10x7")
    mask = task.mask(task.initial())

    def sizes(kind: int) -> dict[int, set[int]]:
        return {
            loop: {
                size
                for choice, size in enumerate(actions.SIZES)
                if mask.params[task.space.slot_offsets[kind][loop] + choice]
            }
            for loop in range(4)
        }

    assert sizes(actions.TILE) == {0: {*range(9)}, 1: {*range(9)}, 2: {*range(7)}, 3: {0}}
    assert sizes(actions.TILE_PARALLEL) == {0: {0, 1, 2, 3, 4, 6}, 1: {0, 1, 2, 5}, 2: {0}, 3: {0}}


REMAINDERS = {
    "linalg://matmul/13x21x7": "tile_6_16_1 vectorise_0",
    "linalg://matmul/70x50x33": "tile_32_0_16 tile_6_16_5 vectorise_0",
    "linalg://batch_matmul/3x13x21x7": "tile_2_6_16_1 vectorise_1",
    "linalg://conv2d/1x3x11x11x7x3x3": "tile_0_4_1_5_1_1_1 vectorise_1",
    "linalg://conv2d/1x3x12x12x7x3x3?stride=2": "img2col tile_0_4_16_5 tile_0_3_12_1 vectorise_0",
    "linalg://maxpool/1x5x13x13x3": "tile_0_2_3_7_1_1 vectorise_0",
    "linalg://add/13x21": "tile_2_8 vectorise_0",
}


@pytest.mark.parametrize(("uri", "text"), REMAINDERS.items())
def test_remainders_of_tiles_are_computed(uri, text):
    task = LINALG.task(uri)
    state = replay(task, Schedule.parse(text, task.space))
    [parts] = [operation.parts for operation in state.operations if operation.steps]
    assert len(parts) > 1
    result = measured(task, state)
    assert result.outcome is Outcome.OK, result.detail


def test_no_operation_is_split_into_more_parts_than_allowed():
    task = LINALG.task("linalg://conv2d/1x5x13x13x7x3x3")
    state = replay(task, Schedule.parse("tile_0_4_3_5_2_2_2", task.space))
    [scheduled] = [operation for operation in state.operations if operation.steps]
    assert len(scheduled.parts) == PARTS
    # The three innermost loops keep their sizes; others get the next size that divides.
    assert scheduled.steps[0].text == "tile_0_1_1_1_2_2_2"
    assert measured(task, state).outcome is Outcome.OK


def test_vectorising_waits_for_a_tile_and_ends_the_operation():
    task = LINALG.task("linalg://matmul/64x64x64")
    vectorise = Action(actions.VECTORISE, (0,))
    assert not task.space.allows(task.mask(task.initial()), vectorise)
    tiled = replay(task, Schedule.parse("tile_8_32_1", task.space))
    assert task.space.allows(task.mask(tiled), vectorise)
    done = task.step(tiled, vectorise)
    assert task.space.options(task.mask(done)) == "next"
    with pytest.raises(ScheduleError):
        replay(task, Schedule.parse("tile_8_32_1 vectorise_0 tile_4", task.space))


def test_interchange_places_one_loop_after_the_other():
    task = LINALG.task("linalg://matmul/16x32x8")
    state = replay(task, Schedule.parse("interchange_0 interchange_2", task.space))
    matmul = state.operations[task.order[0]]
    assert matmul.operation.bounds == (16, 8, 32) and matmul.operation.parallel == (True, False, True)
    half = replay(task, Schedule.parse("interchange_2", task.space))
    assert task.space.options(task.mask(half)) == "interchange_0 interchange_1"


def test_a_fused_producer_has_the_size_of_the_tile():
    task = LINALG.task("linalg://sequence/1?length=4")
    fusing = [
        place
        for place in task.order
        if any(load.producer is not None for load in task.program.operations[place].loads)
    ]
    assert fusing, "the chain has no operation that reads another's result"
    state = task.initial()
    rng = np.random.default_rng(0)
    sizes: list[tuple[int, int]] = []
    while not task.terminal(state):
        mask = task.mask(state)
        if mask.kinds[actions.FUSE]:
            kinds = np.zeros_like(mask.kinds)
            kinds[actions.FUSE] = True
            state = task.step(state, task.space.sample(type(mask)(kinds, mask.params), rng))
            for operation in state.operations:
                if operation.consumer == task.at_hand(state):
                    whole = task.program.operations[operation.operation.place]
                    sizes.append((operation.operation.points, whole.points))
        state = task.step(state, Action(actions.NEXT))
    assert any(part < whole for part, whole in sizes) and all(part <= whole for part, whole in sizes)
    assert measured(task, state).outcome is Outcome.OK


def test_observations_have_one_shape_and_follow_the_state():
    task, rng = LINALG.task("linalg://sequence/2?length=5"), np.random.default_rng(3)
    states, _ = walk(task, rng)
    seen = [task.observe(state) for state in states]
    assert all(
        observation.shape == (OPERATIONS, FEATURES) and np.isfinite(observation).all() for observation in seen
    )
    assert any((observation != other).any() for observation, other in pairwise(seen))


def test_fills_have_no_turn():
    task = LINALG.task("linalg://sequence/1?length=4")
    assert all(task.program.operations[place].kind is not OperationKind.FILL for place in task.order)


@pytest.mark.parametrize("name", ["a.transform.mlir", "a.mlir", "a.ll"])
def test_exports(name, tmp_path):
    task = LINALG.task("linalg://matmul/16x32x8")
    state = replay(task, Schedule.parse("tile-parallel_8_16 tile_4_8_1 vectorise_0", task.space))
    files = task.export(state, tmp_path / name)
    assert files[0].name == name and all(path.stat().st_size for path in files)
    if name == "a.transform.mlir":
        script, program = files
        passes = f"transform-preload-library{{transform-library-paths={script}}},transform-interpreter"
        with mlir():
            module = parse(program.read_text())
            run_passes(module, passes)
            assert "vector.contract" in str(module) or "vector.multi_reduction" in str(module)
    with pytest.raises(IrgymError, match="end the name in one of"):
        task.export(state, tmp_path / "a.onnx")


def test_actions_without_effect_are_masked_until_the_state_changes():
    task = LINALG.task("linalg://matmul/16x32x8")
    parse = task.space.parse

    def kinds(state):
        return {task.space.kinds[kind].name for kind in np.flatnonzero(task.mask(state).kinds)}

    idle = task.step(task.initial(), parse("tile"))
    assert "tile" not in kinds(idle) and "tile-parallel" in kinds(idle)
    assert "tile" in kinds(task.step(idle, parse("tile-parallel_4")))
    turned = replay(task, Schedule.parse("interchange_1 interchange_0", task.space))
    assert "interchange" not in kinds(turned)
    assert "interchange" in kinds(task.step(turned, parse("tile_4")))
    same = replay(task, Schedule.parse("interchange_0 interchange_1", task.space))
    assert task.identity(same) == task.identity(task.initial()) and "interchange" not in kinds(same)


def test_searches_allow_what_a_replay_allows():
    # States that differ only in barred actions have different masks: a search must not confuse them.
    task = LINALG.task("linalg://matmul/16x32x8")
    with LINALG.bench() as bench:
        session = Session(task, bench.evaluator, SearchRequest(Budget(evaluations=1)))
        wanted = Schedule.parse("interchange_0 interchange_1 interchange_2 interchange_0", task.space)
        [*_, last] = alone(session, follow(session, session.root, wanted.actions))
    replay(task, last.schedule)
    short = minimise(task, last)
    assert task.key(replay(task, short.schedule)) == task.key(short.state) == task.key(last.state)


def test_recorded_actions_lead_to_the_recorded_state_if_there_are_any():
    task, rng = LINALG.task("linalg://sequence/2?length=4"), np.random.default_rng(11)
    found = 0
    for _ in range(60):
        states, _ = walk(task, rng)
        text = task.key(states[-1])
        way = task.recorded_actions(text)
        if way is not None:
            found += 1
            assert task.key(replay(task, Schedule(tuple(way)))) == text
    assert found > 30
    assert task.recorded_actions("1: turn_7") is None
    assert LINALG_SWAPS.task("linalg://relu/8x16").recorded_actions("") is None


def test_runs_with_empty_caches_are_another_objective():
    task = LINALG.task("linalg://sequence/0?length=2")
    cold = task.under("cold")
    assert cold.timing.cold and not task.timing.cold
    jobs = [each.job(each.initial()) for each in (task, cold)]
    assert [job.objective for job in jobs] == ["time", "cold"] and jobs[0].toolchain != jobs[1].toolchain
    assert all(part.objective == cold.objective for part in cold.parts())
    add = LINALG.task("linalg://add/32x128", objective="cold")
    state = add.initial()
    assert runner.measure(*add.job(state).call.arguments).ok
    assert runner.compare(*add.baseline_call("numpy", state, 1).arguments).ratios
