"""X-RLflow's observation: the graph after every candidate; policies learn from it."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irgym.cli.main import main
from irgym.core.actions import Action
from irgym.core.graph_observation import GraphObservation
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.observing.table import KINDS
from irgym.envs.graph.rewriting.transitions import KEPT
from irgym.envs.graph.state import EVERYWHERE, GraphState
from irgym.envs.graph.task import GraphTask
from irgym.policies.files import read_arrays
from irgym.policies.run_folder import RunFolder

TINY = GRAPH.dataset("tiny").train
CONVOLUTIONS, RECURRENT = TINY[0], TINY[3]
UPSAMPLING = GRAPH.dataset("tiny").test[0]

Block = tuple[bytes, bytes, bytes]


def seen(task: GraphTask, state: GraphState) -> GraphObservation:
    observation = task.observe(state, "meta-graph")
    assert isinstance(observation, GraphObservation)
    return observation


def blocks(view: GraphObservation) -> list[Block]:
    """Return the nodes, edges and links of the graphs, the present one first."""
    owner = np.full(len(view.nodes), -1)
    owner[view.members[:, 1]] = view.members[:, 0]
    of_link = owner[view.links]
    assert (of_link[:, 0] == of_link[:, 1]).all(), "no edge leads from one graph to another"
    assert (owner[: view.own] == -1).all() and (owner[view.own :] >= 0).all()
    found: list[Block] = []
    for number in range(-1, len(view.candidates)):
        [nodes], [edges] = np.nonzero(owner == number), np.nonzero(of_link[:, 0] == number)
        links = view.links[edges] - nodes.min(initial=len(owner))
        found.append((view.nodes[nodes].tobytes(), view.edges[edges].tobytes(), links.tobytes()))
    return found


def with_rules_of_taso(uri: str) -> GraphTask:
    """Return a task as of `graph-taso`, without exporting the model again."""
    return GRAPH.task(uri).restricted("TASO")


@pytest.mark.parametrize("task_of", [GRAPH.task, with_rules_of_taso], ids=["all", "taso"])
@pytest.mark.parametrize("uri", [CONVOLUTIONS, TINY[1], RECURRENT])
def test_each_candidate_of_the_mask_shows_the_graph_after_it(task_of, uri: str):
    task = task_of(uri)
    state = task.initial()
    view, pairs = seen(task, state), task.mask(state).candidates
    assert view.nodes.shape[1] == len(KINDS) and (view.nodes.sum(axis=1) == 1).all()
    assert view.edges.shape == (len(view.links), 4) and view.state.tolist() == [0.0]
    assert view.candidates.shape == (len(pairs), 0) and pairs
    members = view.members[:, 1].tolist()
    present = len(state.graph.inputs) + len(state.graph.nodes)
    assert members == list(range(present, len(view.nodes))), (
        "each node outside the present graph belongs to a candidate"
    )
    found = blocks(view)
    for number, (kind, name) in enumerate(pairs):
        if name == EVERYWHERE or number % 8 == 0:
            after = task.step(task.step(state, Action(kind, candidate=name)), task.space.parse("stop"))
            assert blocks(seen(task, after)) == [found[1 + number]], (task.space.kinds[kind].name, name)
    assert len(set(found)) > 1


def test_nodes_and_edges():
    task = GRAPH.task(CONVOLUTIONS)
    state = task.initial()
    view, graph = seen(task, state), state.graph
    names = [*graph.inputs, *graph.nodes]
    kinds = [KINDS[place] for place in view.nodes[: len(names)].argmax(axis=1)]
    assert kinds == ["input"] * len(graph.inputs) + [node.operator for node in graph.nodes.values()]
    own = view.links[:, 0] == view.links[:, 1]
    assert sorted(view.links[own, 0].tolist()) == list(range(len(view.nodes))) and not view.edges[own].any()
    edges = {tuple(link): edge for link, edge in zip(view.links.tolist(), view.edges, strict=True)}
    first = next(node for node in graph.nodes.values() if graph.inputs[0] in node.inputs)
    sizes = edges[names.index(graph.inputs[0]), names.index(first.name)]
    np.testing.assert_array_equal(sizes * 4096, graph.types[graph.inputs[0]].shape)
    last = next(node for node in graph.nodes.values() if node.name in graph.outputs)
    before = graph.producers[last.inputs[0]]
    shape = graph.types[last.inputs[0]].shape
    sizes = edges[names.index(before), names.index(last.name)]
    np.testing.assert_array_equal(sizes * 4096, [*[0] * (4 - len(shape)), *shape][-4:])


def test_the_rules_of_taso_show_a_part_of_what_all_rules_show():
    every, some = GRAPH.task(CONVOLUTIONS), with_rules_of_taso(CONVOLUTIONS)
    state = every.initial()
    shown = dict(zip(every.mask(state).candidates, blocks(seen(every, state))[1:], strict=True))
    pairs = some.mask(state).candidates
    assert len(pairs) < len(shown)
    assert blocks(seen(some, state))[1:] == [shown[pair] for pair in pairs]


def test_rows_are_in_the_order_of_candidates():
    torch = pytest.importorskip("torch")
    from irgym.networks.encoders import spec_for

    task = with_rules_of_taso(RECURRENT)
    state = task.initial()
    other = replace(state, sites=dict(reversed(state.sites.items())))
    torch.manual_seed(0)
    encoder = spec_for(seen(task, state), (8, 8), "tanh").build().eval()
    rows = []
    for reached in (state, other):
        encoded = encoder.encode(encoder.collate([seen(task, reached)])).candidates
        pairs = task.mask(reached).candidates
        rows.append({pair: row for pair, row in zip(pairs, encoded, strict=True) if pair[1] != EVERYWHERE})
    assert list(rows[0]) != list(rows[1]) and rows[0].keys() == rows[1].keys()
    for pair, row in rows[0].items():
        torch.testing.assert_close(row, rows[1][pair])
    assert not torch.allclose(*list(rows[0].values())[:2]), "graphs after candidates tell these apart"


def test_observing_keeps_the_last_state_that_was_stepped_to():
    task = GRAPH.task(CONVOLUTIONS)
    state = task.initial()
    pairs = task.mask(state).candidates
    assert len(pairs) > KEPT
    action = Action(pairs[0][0], candidate=pairs[0][1])
    after = task.step(state, action)
    seen(task, state)
    assert task.step(state, action) is after


def test_the_end_of_a_schedule_and_other_processes():
    task = with_rules_of_taso(RECURRENT)
    first = seen(task, task.initial())
    again = pickle.loads(pickle.dumps(first))
    assert blocks(again) == blocks(first)
    ended = seen(task, task.step(task.initial(), task.space.parse("stop")))
    assert blocks(ended) == blocks(first)[:1] and not len(ended.members)
    assert task.views["meta-graph"].space().contains(first.instance)


def test_a_policy_trains_on_meta_graphs_of_a_program(tmp_path: Path):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    settings = "hidden=8,8 shared=true episodes=2 minibatch=16 epochs=1 normalise_rewards=false"
    settings += " attention=gat no_op=true"
    main(["train", "graph-taso", "--run", str(run), "--dataset", UPSAMPLING, "--observation", "meta-graph",
          "--reward", "x-rlflow", "--objective", "nodes", "--iterations", "2",
          "--set", *settings.split()])  # fmt: skip
    assert [line["iteration"] for line in RunFolder(run).read_metrics()] == [1, 2]
    encoder = read_arrays(RunFolder(run).policy)["encoder"]
    assert (encoder["attention"], encoder["no_op"]) == ("gat", True)
    main(["evaluate", str(run)])
    kept, raw = json.loads(RunFolder(run).evaluation.read_text())["rows"]
    assert kept["program"] == raw["program"] == UPSAMPLING
    assert kept["speedup"] >= max(1, raw["speedup"]) and raw["speedup"] > 0
