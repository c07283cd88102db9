import numpy as np
import pytest

from irgym.core.schedule import Schedule, states_along
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.features import FEATURES
from irgym.envs.loops.observations import VIEWS

networkx = pytest.importorskip("networkx")

PROGRAMS = {
    "loops://mm/100x72x65": "split_8 down swap_down down split_32 swap_up swap_up unroll stop",
    "loops://conv/1x14x14x16x32x3x3?stride=2": "down down down down down swap_up swap_up vectorise",
    "loops://mm/1x1x1": "",
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
        assert space.contains(view.value(task, state, lambda: 1500.0))


def test_loops_tensor_columns():
    task, path = states("loops://mm/100x72x65")
    rows = VIEWS["loops_tensor"].value(task, path[0], lambda: 1.0)
    assert rows.shape == (10, 20)
    assert rows[0, 0] == 1 and not rows[1:, 0].any()
    np.testing.assert_allclose(rows[:3, 1], np.log2([101, 66, 73]))
    # n moves through B and C by 1 element, k through A by 1 and through B by a row of 72
    assert rows[2, 4] == 2 and rows[1, 4] == 1 and rows[1, 4 + 7] == 1
    assert not rows[3:].any()
    split = VIEWS["loops_tensor"].value(task, path[1], lambda: 1.0)
    assert split[0, 2] == pytest.approx(np.log2(1 + 100 % 8))


def test_previous_actions_keep_the_last_five():
    task, path = states("loops://mm/100x72x65")
    rows = VIEWS["5_prev_actions_tensor"].value(task, path[-1], lambda: 1.0)
    flat = [task.space.text(task.space.flat[index]) for index in rows.argmax(axis=1)]
    assert flat == ["split_32", "swap_up", "swap_up", "unroll", "stop"]
    assert rows.sum() == 5


def test_graphs_name_loops_tensors_and_strides():
    task, path = states("loops://conv/1x14x14x16x32x3x3?stride=2")
    graph = VIEWS["ir_graph_networkx"].value(task, path[0], lambda: 1.0)
    assert {"A", "B", "C", "statement"} <= set(graph)
    assert graph.edges["L0", "A"]["stride"] == task.contraction.strides[0]["h"]
    tree = VIEWS["ir_tree_networkx"].value(task, path[0], lambda: 1.0)
    assert (
        networkx.is_directed_acyclic_graph(tree) and networkx.dag_longest_path_length(tree) == len(tree) - 1
    )


def test_runtime_and_throughput_come_from_the_cost():
    task, path = states("loops://mm/100x72x65")
    assert VIEWS["runtime"].value(task, path[0], lambda: 2e6)[0] == pytest.approx(2e-3)
    assert VIEWS["flops"].value(task, path[0], lambda: 2e6)[0] == pytest.approx(task.contraction.flops / 2e6)


@pytest.mark.parametrize("uri", PROGRAMS)
def test_features_are_finite_and_tell_states_apart(uri: str):
    task, path = states(uri)
    rows = [task.observe(state) for state in path]
    assert all(
        row.shape == (FEATURES,) and row.dtype == np.float32 and np.isfinite(row).all() for row in rows
    )
    assert len({row.tobytes() for row in rows}) == len(path)
    assert max(abs(row).max() for row in rows) < 8
