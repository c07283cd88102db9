import numpy as np
import pytest

from irgym.base.errors import IrgymError
from irgym.core.schedule import Schedule, states_along
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.legality import MAX_LOOPS
from irgym.envs.loops.observing.features import FEATURES
from irgym.envs.loops.observing.observations import VIEWS

PROGRAMS = {
    "loops://mm/100x72x65": "split_8 down swap_down down split_32 swap_up swap_up unroll stop",
    "loops://conv/1x14x14x16x32x3x3?stride=2": "down down down down down swap_up swap_up vectorise",
    "loops://mm/1x1x1": "",
    "loops://conv1d/1x30x4x20x3?dtype=f64&flip=true&padding=1": "down down swap_up pack_a split_2",
}


def states(uri: str):
    task = LOOPS.task(uri, "llvm")
    return task, states_along(task, Schedule.parse(PROGRAMS[uri], task.space))


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("uri", ["loops://mm/100x72x65", "loops://mm/1x1x1"])
def test_every_view_lies_in_its_space(name: str, uri: str):
    task, path = states(uri)
    view = VIEWS[name]
    space = view.space()
    for state in path:
        assert space.contains(view.element(task, state, lambda: 1500.0))


def test_loops_tensor_columns():
    task, path = states("loops://mm/100x72x65")
    rows = VIEWS["loops_tensor"].element(task, path[0], lambda: 1.0)
    assert rows.shape == (MAX_LOOPS, 20)
    assert rows[0, 0] == 1 and not rows[1:, 0].any()
    np.testing.assert_allclose(rows[:3, 1], np.log2([101, 66, 73]))
    # n moves through B and C by 1 element, k through A by 1 and through B by a row of 72
    assert rows[2, 4] == 2 and rows[1, 4] == 1 and rows[1, 4 + 7] == 1
    assert not rows[3:].any()
    split = VIEWS["loops_tensor"].element(task, path[1], lambda: 1.0)
    assert split[0, 2] == pytest.approx(np.log2(1 + 100 % 8))


def test_previous_actions_keep_the_last_five():
    task, path = states("loops://mm/100x72x65")
    rows = VIEWS["5_prev_actions_tensor"].element(task, path[-1], lambda: 1.0)
    flat = [task.space.text(task.space.flat[index]) for index in rows.argmax(axis=1)]
    assert flat == ["split_32", "swap_up", "swap_up", "unroll", "stop"]
    assert rows.sum() == 5


def test_graphs_hold_loops_tensors_and_strides():
    task, path = states("loops://conv/1x14x14x16x32x3x3?stride=2")
    loops = len(path[0].nest.loops)
    tree = task.observe(path[0], "ir_tree")
    assert tree.edge_links.tolist() == [[place, place + 1] for place in range(loops)]
    assert np.array_equal(tree.nodes[:loops, :20], task.observe(path[0], "loops_tensor")[:loops])
    graph = task.observe(path[0], "ir_graph")
    assert len(graph.nodes) == loops + 4
    edges = {
        tuple(link): stride for link, [stride] in zip(graph.edge_links.tolist(), graph.edges, strict=True)
    }
    dims = [loop.dim for loop in path[0].nest.loops]
    assert edges[dims.index("h"), loops + 1] == task.contraction.strides[0]["h"]
    assert (dims.index("h"), loops + 2) not in edges
    assert (loops + 1, loops) in edges and (loops, loops + 3) in edges


def test_several_observations_are_joined():
    task, path = states("loops://mm/100x72x65")
    seen = task.observe(path[0], "stride_tensor,target")
    parts = [task.observe(path[0], name).ravel() for name in ("stride_tensor", "target")]
    assert seen.dtype == np.float32 and np.array_equal(seen, np.concatenate(parts))


def test_vectors_are_joined_to_a_graph_as_its_state():
    task, path = states("loops://mm/100x72x65")
    seen = task.observe(path[0], "features,ir_graph,target")
    parts = [task.observe(path[0], name).ravel() for name in ("features", "target")]
    assert np.array_equal(seen.state, np.concatenate(parts))
    assert np.array_equal(seen.nodes, task.observe(path[0], "ir_graph").nodes)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("runtime", "needs the cost"),
        ("nothing", "choose among features"),
        ("features,ir", "ir cannot be joined"),
        ("features,", "no observation ''"),
    ],
)
def test_observations_that_policies_cannot_use_are_refused(name: str, message: str):
    task, path = states("loops://mm/1x1x1")
    with pytest.raises(IrgymError, match=message):
        task.observe(path[0], name)


def test_runtime_and_throughput_come_from_the_cost():
    task, path = states("loops://mm/100x72x65")
    assert VIEWS["runtime"].element(task, path[0], lambda: 2e6)[0] == pytest.approx(2e-3)
    assert VIEWS["flops"].element(task, path[0], lambda: 2e6)[0] == pytest.approx(
        task.contraction.flops / 2e6
    )


@pytest.mark.parametrize("uri", PROGRAMS)
def test_features_are_finite_and_tell_states_apart(uri: str):
    task, path = states(uri)
    rows = [task.observe(state) for state in path]
    assert all(
        row.shape == (FEATURES,) and row.dtype == np.float32 and np.isfinite(row).all() for row in rows
    )
    assert len({row.tobytes() for row in rows}) == len(path)
    assert max(abs(row).max() for row in rows) < 8
