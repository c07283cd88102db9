"""The graph network: batches of graphs, what their order means, and that it can be learnt with."""

from dataclasses import replace

import candidate_states
import numpy as np
import pytest
import torch
from graph_states import SPEC, observation
from torch.nn import functional

from irgym.base.errors import IrgymError
from irgym.core.actions import ActionSpace
from irgym.core.graph_observation import GraphObservation
from irgym.core.kinds import ActionKind
from irgym.networks.actor_critic import Actor
from irgym.networks.attention import OneWay
from irgym.networks.encoders import spec_for
from irgym.networks.graphs import GraphSpec
from irgym.networks.q_network import QNetwork
from irgym.networks.ragged import Ragged, join
from irgym.policies.layout import LAYOUTS

GAT = replace(SPEC, attention="gat")
both_kinds = pytest.mark.parametrize("spec", [SPEC, GAT], ids=["gatv2", "gat"])


def network(spec: GraphSpec = SPEC):
    torch.manual_seed(0)
    encoder = spec.build()
    encoder.adapt(encoder.collate([observation(np.random.default_rng(seed)) for seed in range(20)]))
    return encoder.eval()


BATCH = [observation(np.random.default_rng(seed), count) for seed, count in enumerate((2, 0, 3, 1, 0))]
FIELDS = ("nodes", "edges", "links", "state", "candidates", "members", "own")


def same(graph: GraphObservation, other: GraphObservation) -> bool:
    return all(np.array_equal(getattr(graph, field), getattr(other, field)) for field in FIELDS)


@both_kinds
def test_each_graph_is_encoded_as_if_it_were_alone(spec: GraphSpec):
    encoder = network(replace(spec, no_op=True))
    together = encoder.encode(encoder.collate(BATCH))
    begin = 0
    for place, graph in enumerate(BATCH):
        alone = encoder.encode(encoder.collate([graph]))
        torch.testing.assert_close(alone.states[0], together.states[place])
        torch.testing.assert_close(alone.unchanged[0], together.unchanged[place])
        end = begin + len(graph.candidates)
        torch.testing.assert_close(alone.candidates, together.candidates[begin:end])
        begin = end
    assert together.counts.tolist() == [2, 0, 3, 1, 0]


def test_batches_are_cut_and_joined():
    encoder = network()
    batch = encoder.collate(BATCH)
    assert all(map(same, encoder.separate(batch), BATCH))
    chosen = encoder.select(batch, torch.tensor([3, 0, 0]))
    assert all(map(same, encoder.separate(chosen), [BATCH[3], BATCH[0], BATCH[0]]))
    both = encoder.join([encoder.select(batch, slice(2)), encoder.select(batch, slice(2, None))])
    assert all(map(same, encoder.separate(both), BATCH))


@pytest.mark.parametrize("seed", range(10))
def test_the_numbering_of_nodes_means_nothing(seed: int):
    rng = np.random.default_rng(seed)
    encoder, graph = network([SPEC, GAT][seed % 2]), observation(rng, 3)
    order = rng.permutation(len(graph.nodes))
    place = np.argsort(order)
    edges = rng.permutation(len(graph.edges))
    turned = replace(
        graph,
        nodes=graph.nodes[order],
        links=place[graph.links[edges]].reshape(-1, 2),
        edges=graph.edges[edges],
        members=np.stack([graph.members[:, 0], place[graph.members[:, 1]]], axis=1),
    )
    first, other = (encoder.encode(encoder.collate([each])) for each in (graph, turned))
    torch.testing.assert_close(first.states, other.states)
    torch.testing.assert_close(first.candidates, other.candidates)


def test_the_order_of_candidates_is_the_order_of_their_features():
    encoder, graph = network(), observation(np.random.default_rng(3), 3)
    order = np.array([2, 0, 1])
    members = [(new, node) for new, old in enumerate(order) for own, node in graph.members if own == old]
    turned = replace(graph, candidates=graph.candidates[order], members=np.array(members))
    first, other = (encoder.encode(encoder.collate([each])) for each in (graph, turned))
    torch.testing.assert_close(first.candidates[torch.as_tensor(order)], other.candidates)
    torch.testing.assert_close(first.states, other.states)


def test_nodes_alone_are_brought_to_deviation_one():
    """Without a state and candidates, as in program graphs."""
    graphs = [GraphObservation(graph.nodes, graph.edges, graph.links) for graph in BATCH]
    encoder = GraphSpec(3, 2, 0, 0, (8, 8), normalise=True).build()
    batch = encoder.collate(graphs)
    encoder.adapt(batch)
    nodes = np.concatenate([graph.nodes for graph in graphs])
    assert np.allclose(encoder.node_norm.centre, nodes.mean(axis=0), atol=1e-6)
    assert np.allclose(1 / encoder.node_norm.scale, nodes.std(axis=0), atol=1e-6)
    assert encoder(batch).shape == (len(graphs), 8)


@both_kinds
def test_edges_their_direction_and_members_matter(spec: GraphSpec):
    encoder, graph = network(spec), observation(np.random.default_rng(5), 1)
    line = replace(
        graph,
        nodes=np.eye(3, dtype=np.float32),
        edges=np.ones((2, 2), np.float32),
        links=np.array([[0, 1], [1, 2]]),
        members=np.array([[0, 0]]),
    )
    changed = [
        replace(line, links=line.links[:, ::-1].copy()),
        replace(line, links=np.array([[0, 1], [0, 2]])),
        replace(line, edges=2 * line.edges),
    ]
    first = encoder.encode(encoder.collate([line]))
    for other in changed:
        assert not torch.allclose(first.states, encoder.encode(encoder.collate([other])).states, atol=1e-4)
    other = encoder.encode(encoder.collate([replace(line, members=np.array([[0, 2]]))]))
    assert not torch.allclose(first.candidates, other.candidates, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_gat_against_the_equations_of_the_paper(seed: int):
    torch.manual_seed(seed)
    graph = observation(np.random.default_rng(seed))
    layers = OneWay(6, 2, 2)
    nodes, edges, links = torch.randn(len(graph.nodes), 6), torch.tensor(graph.edges), graph.links.tolist()
    update, *attentions = layers
    rows = [
        functional.relu(
            nodes[i]
            + update.edge(sum((edges[e] for e, (_, j) in enumerate(links) if j == i), torch.zeros(2)))
        )
        for i in range(len(nodes))
    ]
    for layer in attentions:
        sent = [layer.sent(row) for row in rows]
        heard = []
        for i in range(len(nodes)):
            near = [j for j, k in links if k == i and j != i] + [i]
            asked = torch.cat([layer.source(sent[j]) + layer.target(sent[i]) for j in near])
            shares = functional.leaky_relu(asked, 0.2).softmax(0)
            heard.append(functional.elu(sum(share * sent[j] for share, j in zip(shares, near, strict=True))))
        rows = heard
    torch.testing.assert_close(layers(nodes, edges, torch.tensor(graph.links)), torch.stack(rows))


@pytest.mark.parametrize("network_of", [Actor, QNetwork])
def test_stop_is_scored_as_a_candidate_that_leaves_the_graph_unchanged(network_of):
    torch.manual_seed(0)
    scorer = network_of(replace(SPEC, no_op=True), LAYOUTS["flat"](candidate_states.SPACE))
    encoder = scorer.encoder
    encoder.adapt(encoder.collate(BATCH))
    for parameter in scorer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    graph = replace(observation(np.random.default_rng(3), 2), present=None)
    everything = np.array([[2, node] for node in range(len(graph.nodes))])
    with_same = replace(
        graph,
        candidates=np.vstack([graph.candidates, np.zeros((1, 5), np.float32)]),
        members=np.vstack([graph.members, everything]),
    )
    [mask] = candidate_states.masks_of(candidate_states.SPACE, [3])
    legal = torch.as_tensor(scorer.layout.legal([mask]))
    scores = scorer.forward(encoder.collate([with_same]), legal)[0, 0]
    [stop] = np.flatnonzero(scorer.layout.ends)
    torch.testing.assert_close(scores[stop], scores[scorer.layout.width + 2])
    assert not torch.isclose(scores[:stop], scores[stop]).any()
    fewer = scorer.forward(encoder.collate([replace(with_same, present=1)]), legal)[0, 0]
    changed = (~torch.isclose(fewer, scores)).nonzero()[:, 0].tolist()
    assert stop in changed and (network_of is QNetwork or changed == [stop])


def test_options_that_an_encoder_lacks_are_refused():
    with pytest.raises(IrgymError, match="no attention 'gta': choose among gatv2, gat"):
        spec_for(BATCH[0], (8, 8), "tanh", options={"attention": "gta"})
    with pytest.raises(IrgymError, match="the encoder mlp has no no_op: leave it out, or change encoder"):
        spec_for(np.zeros(4), (8,), "tanh", options={"no_op": True})
    spec = spec_for(BATCH[0], (8, 8), "tanh", options={"attention": "gat", "no_op": True})
    assert (spec.attention, spec.no_op) == ("gat", True) and GraphSpec.from_dict(spec.to_dict()) == spec
    without = ActionSpace((ActionKind("stop", ends="episode"), ActionKind("go")))
    with pytest.raises(IrgymError, match="name no candidates for a no-op to be among"):
        Actor(spec, LAYOUTS["structured"](without))


def test_ragged_rows_against_loops():
    rng = np.random.default_rng(0)
    counts = [3, 0, 2, 1]
    parts = [torch.as_tensor(rng.standard_normal((count, 2))) for count in counts]
    rows = Ragged(torch.cat(parts), torch.tensor(counts))
    none = torch.zeros(2, dtype=torch.float64)
    mean = torch.stack([part.mean(0) if len(part) else none for part in parts])
    greatest = torch.stack([part.amax(0) if len(part) else none for part in parts])
    torch.testing.assert_close(rows.mean(), mean)
    torch.testing.assert_close(rows.greatest(), greatest)
    assert rows.owners.tolist() == [0, 0, 0, 2, 2, 3]
    assert all(map(torch.equal, rows.separate(), parts))
    assert torch.equal(join([rows.select(slice(1)), rows.select(slice(1, None))]).rows, rows.rows)


def test_malformed_graphs_are_refused():
    encoder = network()
    with pytest.raises(IrgymError, match="takes graphs with nodes of 3 values"):
        encoder.collate([replace(BATCH[0], nodes=np.zeros((2, 4), np.float32))])
    with pytest.raises(IrgymError, match="reads graphs and needs hidden layers of one width"):
        spec_for(np.zeros(4), (8, 8), "tanh", encoder="graph")
    with pytest.raises(IrgymError, match="reads graphs and needs hidden layers of one width"):
        spec_for(BATCH[0], (8, 4), "tanh")
    assert GraphSpec.from_dict(SPEC.to_dict()) == SPEC


def test_features_are_hidden_throughout_a_graph():
    encoder = network()
    batch = encoder.collate(BATCH)
    hidden = encoder.separate(encoder.hide(batch, 0.5, torch.Generator().manual_seed(0)))
    columns = 0
    for graph, after in zip(BATCH, hidden, strict=True):
        for shown, left in ((graph.nodes, after.nodes), (graph.candidates, after.candidates)):
            gone = (left == 0).all(axis=0)
            assert np.array_equal(left, np.where(gone, 0, shown))
            columns += int(gone.sum()) if len(shown) else 0
        assert all(np.array_equal(getattr(graph, name), getattr(after, name)) for name in ("edges", "state"))
    assert 0 < columns < sum(3 + (5 if len(graph.candidates) else 0) for graph in BATCH)
    again = encoder.separate(encoder.hide(batch, 0.5, torch.Generator().manual_seed(0)))
    assert all(map(same, hidden, again))


def test_features_constant_in_training_have_no_effect():
    torch.manual_seed(0)
    encoder = SPEC.build()
    rng = np.random.default_rng(0)
    seen = [observation(rng, 3) for _ in range(20)]
    for graph in seen:
        graph.candidates[:, 4] = 0  # a trait that no rule of the training networks has
    encoder.adapt(encoder.collate(seen))
    new = replace(seen[0], candidates=seen[0].candidates + np.eye(5, dtype=np.float32)[4])
    old, other = (encoder.encode(encoder.collate([graph])) for graph in (seen[0], new))
    torch.testing.assert_close(old.candidates, other.candidates)
    known = replace(seen[0], candidates=seen[0].candidates + np.eye(5, dtype=np.float32)[3])
    assert not torch.allclose(old.candidates, encoder.encode(encoder.collate([known])).candidates)
