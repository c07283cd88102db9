import pickle
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hlo_modules import ALL, CALLS
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import BackendError, IrgymError, ProgramError, ScheduleError
from irgym.core.actions import Action
from irgym.core.reward import potential
from irgym.core.schedule import Schedule, replay, states_along
from irgym.core.target import LEVELS
from irgym.envs.hlo.actions import SPACE, STOP
from irgym.envs.hlo.compiling.engine import load_engine
from irgym.envs.hlo.compiling.pipelines import ORDERS
from irgym.envs.hlo.compiling.pool import Pool
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.observing.features import FEATURES
from irgym.envs.hlo.observing.observations import VIEWS
from irgym.envs.hlo.observing.opcodes import COUNTED
from irgym.envs.hlo.task import HloTask
from irgym.gym.env import TaskEnv
from irgym.measure.passes.store import Failure
from irgym.measure.target import host_target
from irgym.search.rollouts import most_probable, outcome

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    for name, text in ALL.items():
        (folder / f"{name}.hlo.txt").write_text(text)
    return {name: f"hlo:{folder / name}.hlo.txt" for name in ALL}


@pytest.fixture(scope="module")
def task(files):
    return HLO.task(files["calls"])


def walk(task, seed, steps=12):
    rng = np.random.default_rng(seed)
    state, actions = task.initial(), []
    while len(actions) < steps and not task.terminal(state):
        legal = task.space.legal(task.mask(state))
        actions.append(legal[int(rng.integers(len(legal)))])
        state = task.step(state, actions[-1])
    return state, Schedule(tuple(actions))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(list(ALL)))
def test_a_fork_is_a_replay(files, seed, name):
    task = HLO.task(files[name])
    state, schedule = walk(task, seed)
    text = schedule.text(task.space)
    again = replay(task, Schedule.parse(text, task.space))
    assert again == state
    assert (again.node.counts == state.node.counts).all()
    assert (task.observe(again) == task.observe(state)).all()
    assert (task.mask(again).kinds == task.mask(state).kinds).all()
    assert task.job(again) == task.job(state)


def test_other_processes_agree(files):
    task = HLO.task(files["loop"])
    others = Pool(1)
    try:
        elsewhere = HLO.task(files["loop"])
        elsewhere.modules = type(task.modules)(task.uri, task.modules.file, task.modules.content, others)
        for seed in range(5):
            state, schedule = walk(task, seed)
            other = replay(elsewhere, schedule)
            assert other.path == state.path
            assert elsewhere.identity(other) == task.identity(state)
            assert (other.node.counts == state.node.counts).all()
    finally:
        others.close()


def test_counts_are_those_of_the_module(task):
    state, _ = walk(task, 3)
    text = task.modules.pool.call("text", task.modules.file, state.path)
    module = load_engine().from_text(text)
    content = module.content()
    assert content.counts == state.node.counts.tobytes()
    assert (state.node.total, state.node.entry) == (content.total, content.entry)
    assert content.total == module.size == state.node.counts.sum()


def test_passes_without_effect_are_masked_until_the_module_changes(task):
    state = task.initial()
    cse = task.space.parse("cse")
    after = task.step(state, cse)
    assert after == state and after.steps == 1
    assert not task.space.allows(task.mask(after), cse)
    with pytest.raises(ScheduleError, match="does not apply there"):
        replay(task, Schedule((cse, cse)))
    changed = task.step(after, task.space.parse("call-inliner"))
    assert changed != state
    assert task.space.allows(task.mask(changed), cse)


def test_stop_ends_an_episode(task):
    stopped = task.step(task.initial(), task.space.parse("stop"))
    assert task.terminal(stopped) and stopped != task.initial()
    assert not task.mask(stopped).kinds.any()
    with pytest.raises(ScheduleError):
        task.step(stopped, task.space.parse("dce"))


def test_a_failure_is_terminal_and_costs_infinitely(task):
    kind = task.space.parse("reshape-mover")
    task.modules.record((), kind.kind, Failure("reshape-mover: planted"))
    failed = task.step(task.initial(), kind)
    task.modules._known.clear()
    assert task.terminal(failed) and failed != task.initial()
    known = task.job(failed).known
    assert known is not None and not known.ok and known.cost == np.inf
    assert "planted" in known.detail


def test_a_batch_is_its_steps_one_by_one(files):
    tasks = [HLO.task(uri) for uri in files.values()]
    rng = np.random.default_rng(0)
    picked = [tasks[place] for place in rng.integers(len(tasks), size=40)]
    states = [walk(task, seed % 7, steps=4)[0] for seed, task in enumerate(picked)]
    going = [(task, state) for task, state in zip(picked, states, strict=True) if not task.terminal(state)]
    legal = [task.space.legal(task.mask(state)) for task, state in going]
    actions = [options[int(rng.integers(len(options)))] for options in legal]
    together = type(tasks[0]).step_many([task for task, _ in going], [state for _, state in going], actions)
    for (task, state), action, after in zip(going, actions, together, strict=True):
        assert after == task.step(state, action)


def test_objectives_count_what_their_names_say(task):
    state = replay(task, Schedule.parse("call-inliner", task.space))
    names = [objective.name for objective in HloTask.objectives]
    costs = {name: task.under(name).job(state) for name in names}
    assert costs["ops"].known.cost == state.node.total
    assert costs["entry-ops"].known.cost == state.node.entry
    assert costs["flops"].known.cost == 24.0
    assert costs["time"].known is None
    assert len({job.objective for job in costs.values()}) == len(names)
    with pytest.raises(IrgymError, match="no objective 'speed': choose among ops"):
        task.under("speed")


def test_analysis_is_a_share_of_the_first(task):
    assert (task.analysis(task.initial()) == 1.0).all()
    analysed = task.analysed()
    state = analysed.step(analysed.initial(), task.space.parse("call-inliner"))
    assert state.node.analysis is not None
    assert analysed.analysis(state).shape == (3,)
    assert potential(task, state) == 1.0 - analysed.analysis(state).mean()
    assert potential(task, task.initial()) == 0.0


@pytest.mark.parametrize("name", ORDERS)
def test_orders_end_at_a_module_that_they_do_not_change(files, name):
    for uri in files.values():
        task = HLO.task(uri)
        schedule = task.pipeline(name)
        states = states_along(task, schedule)
        assert all(before != after for before, after in pairwise(states))
    with pytest.raises(IrgymError, match="no order 'gpu'"):
        HLO.task(uri).pipeline("gpu")


def test_the_core_order_simplifies(files):
    task = HLO.task(files["add_zero"])
    assert replay(task, task.pipeline("core")).node.total == 2


@pytest.mark.parametrize("view", VIEWS)
def test_observations_lie_in_their_spaces(task, view):
    space = VIEWS[view].space()
    for seed in range(4):
        state, _ = walk(task, seed)
        value = VIEWS[view].element(task, state, lambda: 0.0)
        assert space.contains(value)


def test_features_tell_where_an_episode_is(task):
    first, after = task.initial(), task.step(task.initial(), task.space.parse("cse"))
    assert task.observe(first).shape == (FEATURES,)
    assert (task.observe(first) != task.observe(after)).any()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), steps=st.integers(0, 20), name=st.sampled_from(list(ALL)))
def test_features_are_those_of_their_description(files, seed, steps, name):
    task = HLO.task(files[name])
    state, _ = walk(task, seed, steps)
    first, now, before = task.initial().node, state.node, state.before
    counts, earlier = (np.array([node.counts[place] for place in COUNTED]) for node in (now, before))
    kinds = range(STOP)
    expected = [
        *np.log(1 + counts) / 5,
        *10 * counts / first.total,
        *10 * (counts - earlier) / first.total,
        *[min(state.path.count(kind) / 3, 1) for kind in kinds],
        *[kind == state.last for kind in kinds],
        *[kind in state.tried for kind in kinds],
        now.total / first.total,
        10 * (now.total / before.total - 1),
        np.log(1 + now.total) / 10,
        now.entry / now.total,
        1 - state.steps / task.horizon,
        state.steps > 0 and state.last not in state.tried,
    ]
    np.testing.assert_allclose(task.observe(state), np.array(expected, dtype=float), rtol=1e-5, atol=1e-6)


def test_masks_in_gymnasium_know_which_passes_had_no_effect(files):
    env = TaskEnv("hlo", programs=[files["calls"]])
    try:
        _, info = env.reset(seed=0)
        task, state, masked = env.task, env.task.initial(), 0
        for kind in [*np.flatnonzero(info["action_mask"])[:-1].tolist()] * 2:
            _, _, _, over, info = env.step(kind)
            if task.mask(state).kinds[kind]:
                after = task.step(state, Action(kind))
                masked += after == state
                state = after
            assert info["action_mask"].tolist() == task.mask(state).kinds.tolist()
            if over:
                break
        assert masked
    finally:
        env.close()


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_accepts_it(files):
    env = TaskEnv("hlo", programs=[files["calls"], files["loop"]])
    try:
        check_env(env, skip_render_check=True)
        _, info = env.reset(seed=1)
        rewards = 0.0
        for kind in np.flatnonzero(info["action_mask"])[:-1].tolist():
            _, reward, *_ = env.step(kind)
            rewards += reward
        assert rewards == pytest.approx(1.0 - env.cost() / info["cost"])
    finally:
        env.close()


@pytest.mark.parametrize("suffix", [".hlo", ".txt", ".pb", ".mlir"])
def test_exports_are_read_back(files, tmp_path, suffix):
    task = HLO.task(files["calls"])
    state = replay(task, Schedule.parse("call-inliner tuple-simplifier", task.space))
    [file] = task.export(state, tmp_path / f"module{suffix}")
    again = HLO.task(f"hlo:{file}")
    assert again.initial().node.total == state.node.total or suffix == ".mlir"
    with pytest.raises(IrgymError, match=r"end the name in one of \.hlo"):
        task.export(state, tmp_path / "module.onnx")


def test_validation_and_time_on_xla_cpu(files):
    task = HLO.task(files["loop"])
    state = replay(task, task.pipeline("core"))
    with HLO.bench() as bench:
        found = bench.call(task.validation(state, 2, 0))
        assert found.ok and found.inputs == 2
        timed, initial = bench.measure([task.under("time").job(s) for s in (state, task.initial())])
    assert timed.ok and initial.ok and 0 < timed.cost < 1e9


@pytest.mark.parametrize(
    "text",
    [CALLS[:200], CALLS.replace("multiply", "frobnicate"), CALLS.replace("x = f32[8]", "x = f32[<=8]"), "\0"],
)
def test_malformed_files_are_reported_in_one_sentence(tmp_path, text):
    file = tmp_path / "bad.hlo"
    file.write_text(text)
    with pytest.raises(ProgramError, match=r"bad\.hlo[^\n]*$"):
        HLO.task(f"hlo:{file}")


def test_states_can_be_sent(task):
    state, _ = walk(task, 1)
    assert pickle.loads(pickle.dumps(state)) == state


def test_stop_is_the_last_kind(task):
    assert task.space.kinds[STOP].name == "stop"


def test_counts_are_of_no_target_and_times_of_this_machine(files):
    uri = files["calls"]
    lesser = next(level.name for level in LEVELS if level.name != host_target().name)
    counted = HLO.task(uri, target=lesser)
    state = counted.initial()
    assert counted.target is None and counted.job(state) == HLO.task(uri).job(HLO.task(uri).initial())
    timed = HLO.task(uri, target=host_target().name, objective="time")
    assert timed.target == host_target() and timed.job(timed.initial()).target == host_target().text
    for refused in (lambda: counted.under("time"), lambda: HLO.task(uri, target=lesser, objective="time")):
        with pytest.raises(BackendError, match=f"none for {lesser}: leave the target out, or choose another"):
            refused()


class Wasteful:
    """Policy that takes expanding passes, and never ends an episode."""

    observation = next(iter(VIEWS))

    def act(self, observations, masks, rng, temperature=1.0):
        del observations, rng, temperature
        return [self._chosen(mask) for mask in masks]

    def _chosen(self, mask):
        legal = SPACE.legal(mask)
        return next((action for action in legal if "expander" in SPACE.kinds[action.kind].name), legal[0])


@pytest.mark.parametrize("name", ALL)
def test_an_episode_ends_with_what_xla_does_by_itself(files, name):
    task = HLO.task(files[name])
    own = replay(task, task.pipeline("core"))
    path = most_probable(task, Wasteful())
    assert outcome(task, path).state.node.total <= own.node.total
    for node in path:
        assert replay(task, node.schedule) == node.state


def test_an_episode_is_finished_by_its_order_and_by_merging(task):
    state, _ = walk(task, 3, steps=4)
    after = replay(task, Schedule(tuple(Action(kind) for kind in state.path) + task.finishing(state).actions))
    assert not task.finishing(after).actions
    own, finished = task.pipeline("core"), task.finishing(task.initial())
    merged = own.then(SPACE.parse("computation-deduplicator"))
    fewer = replay(task, merged).node.total < replay(task, own).node.total
    assert finished == (merged if fewer else own)


def test_gymnasium_tells_the_cost_analysis_in_every_step():
    program = "hlo://mlp?layers=1"
    env = TaskEnv("hlo", programs=[program], actions="cse,dce,algsimp", horizon=3)
    _, info = env.reset(seed=0)
    keys, done = set(info), False
    while not done:
        analysis = info["analysis"]
        assert analysis.shape == (3,) and analysis.dtype == np.float64 and analysis[0] > 0
        seen = env.task.views["cost-analysis"].element(env.task, env.state, lambda: 0.0)
        np.testing.assert_allclose(analysis, seen, rtol=1e-6)
        place = int(np.flatnonzero(env.action_masks())[0])
        _, _, terminated, truncated, info = env.step(place)
        assert set(info) == keys
        done = terminated or truncated
    env.close()
    silent = TaskEnv("hlo", programs=[program], analysis=False)
    assert "analysis" not in silent.reset(seed=0)[1]
    silent.close()
