from base64 import b64decode

import numpy as np
import pytest
from llvm_modules import observed

from irgym.base.errors import IrgymError
from irgym.core.observation import observed as observed_by
from irgym.core.observation import views_of
from irgym.envs.llvm.observing.graphs import EDGE, NODE, ProgramGraph
from irgym.envs.llvm.observing.ir2vec import Vocabulary
from irgym.envs.llvm.observing.module_views import Observed, module_views

OBSERVED = Observed(
    counts=lambda task, state: np.frombuffer(state.counts, dtype=np.int32),
    graph=lambda task, state: ProgramGraph.read(*state.graph),
    text=lambda task, state: state.text,
    bitcode=lambda task, state: state.bitcode,
)
VOCABULARY = Vocabulary.of({"add": np.ones(6, np.float32), "integerty": np.ones(6, np.float32)})
VIEWS = views_of(*module_views(OBSERVED, VOCABULARY))


@pytest.fixture(params=["small", "signals"])
def state(request, llvm, sources, small):
    content = small if request.param == "small" else sources["signals"]
    return llvm.submit(observed, content, "default<O3>" * (request.param == "signals")).result()["first"]


@pytest.mark.parametrize("name", VIEWS)
def test_values_lie_in_their_spaces(state, name):
    view = VIEWS[name]
    value = view.element(None, state, lambda: 0.0)
    assert view.space().contains(value)
    assert view.description


def test_what_views_show(state):
    shapes = {"inst-count": (70,), "inst-count-norm": (69,), "autophase": (56,), "ir2vec": (6,)}
    assert {name: VIEWS[name].seen(None, state).shape for name in shapes} == shapes
    assert VIEWS["text"].seen(None, state) == state.text
    assert b64decode(VIEWS["bitcode"].seen(None, state)) == state.bitcode
    graph = VIEWS["graph"].seen(None, state)
    assert graph.nodes.shape[1] == NODE and graph.edges.shape[1] == EDGE
    exact = VIEWS["programl"].seen(None, state)
    assert exact.nodes.shape == (len(graph.nodes), 5) and exact.edges.shape == (len(graph.edges), 2)


def test_policies_can_join_vectors(state):
    assert observed_by(VIEWS, "inst-count, autophase", None, state).shape == (126,)


def test_policies_can_join_vectors_to_a_graph(state):
    seen = observed_by(VIEWS, "inst-count,graph,ir2vec", None, state)
    graph, counts, embedding = (VIEWS[name].seen(None, state) for name in ("graph", "inst-count", "ir2vec"))
    assert np.array_equal(seen.state, np.concatenate([counts, embedding], dtype=np.float32))
    assert np.array_equal(seen.nodes, graph.nodes) and np.array_equal(seen.links, graph.links)
    assert seen.encoder == "graph" and not len(graph.state)


@pytest.mark.parametrize(
    ("names", "last"), [("graph,inst-count,programl", "programl"), ("inst-count,text", "text")]
)
def test_two_graphs_and_texts_cannot_be_joined(state, names, last):
    with pytest.raises(IrgymError, match=f"{last} cannot be joined"):
        observed_by(VIEWS, names, None, state)


def test_without_a_vocabulary_there_is_no_embedding():
    assert [view.name for view in module_views(OBSERVED, None)] == [
        name for name in VIEWS if name != "ir2vec"
    ]
